"""POST /jobs as API Gateway hands it over: a durable record before the 202, and nothing but a problem otherwise."""

from __future__ import annotations

import json
import time
from types import ModuleType
from typing import Any

import pytest

from lambdas.contracts import names
from lambdas.core import ids
from lambdas.core.canonical import canonical, sha256
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import GLOBEX, IAM, http, jwt, post_job
from tests.integration.records import CALL


@pytest.fixture
def accept(load_handler: Load) -> ModuleType:
    return load_handler("accept")


def post(accept: ModuleType, body: Any, key: str | None = None, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = accept.handler(post_job(body, key, **more), Context(10))
    answer["json"] = json.loads(answer["body"])
    return answer


def records(cloud: Cloud) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cloud.client("dynamodb").scan(TableName=cloud.jobs_table)["Items"]
    return found


def test_an_event_is_recorded_and_then_answered_with_202(cloud: Cloud, accept: ModuleType):
    answer = post(accept, CALL)
    job_id = answer["json"]["job_id"]
    assert answer["statusCode"] == 202
    assert answer["headers"]["Location"] == f"/jobs/{job_id}"
    assert answer["json"] == {"job_id": job_id, "status": "PENDING", "links": answer["json"]["links"]}
    item = cloud.item(job_id)
    assert item is not None
    assert (item["status"]["S"], item["tenant"]["S"], item["type"]["S"]) == ("PENDING", "acme", "summarize")
    assert json.loads(item["input"]["S"]) == CALL["input"]


def test_a_usual_event_costs_one_call(cloud: Cloud, accept: ModuleType):
    post(accept, CALL, "k")
    assert [one.operation for one in cloud.wire.sent] == ["PutItem"]


def test_without_a_key_each_request_is_a_job(cloud: Cloud, accept: ModuleType):
    """IDEM-06: never the first caller's answer."""
    assert post(accept, CALL)["json"]["job_id"] != post(accept, CALL)["json"]["job_id"]
    assert len(records(cloud)) == 2


@pytest.mark.parametrize("name", ["idempotency-key", "Idempotency-Key", "IDEMPOTENCY-KEY"])
def test_api_03_the_key_is_read_in_any_spelling(accept: ModuleType, name: str):
    answer = post(accept, CALL, headers={name: "call-1"})
    assert answer["json"]["job_id"] == ids.job_id_from_key("acme", "POST", "/jobs", "call-1")


def test_api_01_a_body_that_comes_as_base64_is_the_same_event(cloud: Cloud, accept: ModuleType):
    plain = post(accept, CALL, "k")
    event = http("POST /jobs", body=json.dumps(CALL), headers={"idempotency-key": "k"}, as_base64=True)
    answer = accept.handler(event, Context(10))
    assert (answer["statusCode"], json.loads(answer["body"])) == (202, plain["json"])
    assert len(records(cloud)) == 1


def test_idem_09_the_same_value_written_otherwise_is_the_same_event(cloud: Cloud, accept: ModuleType):
    first = post(accept, '{"type":"summarize","input":{"text":"caf\u00e9","language":"en"}}', "k")
    again = post(accept, '{ "input": {"language": "en", "text": "caf\\u00e9"},\n "type": "summarize" }', "k")
    assert (first["statusCode"], again["statusCode"]) == (202, 202)
    assert again["json"] == first["json"]
    assert len(records(cloud)) == 1


def test_api_06_a_key_with_another_body_is_422_and_the_first_stays(cloud: Cloud, accept: ModuleType):
    first = post(accept, CALL, "k")
    other = post(accept, {**CALL, "input": {"text": "something else"}}, "k")
    assert (other["statusCode"], other["headers"]["content-type"]) == (422, "application/problem+json")
    again = post(accept, CALL, "k")
    assert (again["statusCode"], again["json"]) == (202, first["json"])
    assert len(records(cloud)) == 1


def test_api_08_a_key_of_another_tenant_is_another_job(cloud: Cloud, accept: ModuleType):
    mine, theirs = post(accept, CALL, "k"), post(accept, CALL, "k", authorizer=GLOBEX)
    assert (mine["statusCode"], theirs["statusCode"]) == (202, 202)
    assert mine["json"]["job_id"] != theirs["json"]["job_id"]
    assert {item["tenant"]["S"] for item in records(cloud)} == {"acme", "globex"}


def test_a_repeat_is_answered_the_same_whatever_became_of_the_job(cloud: Cloud, accept: ModuleType):
    first = post(accept, CALL, "k")
    cloud.client("dynamodb").update_item(
        TableName=cloud.jobs_table,
        Key={"pk": {"S": first["json"]["job_id"]}, "sk": {"S": "job"}},
        UpdateExpression="SET #s = :done, attempt = :two",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":done": {"S": "COMPLETED"}, ":two": {"N": "2"}},
    )
    assert post(accept, CALL, "k")["json"] == first["json"]


def test_a_key_of_a_deleted_job_is_410(cloud: Cloud, accept: ModuleType):
    job_id = ids.job_id_from_key("acme", "POST", "/jobs", "k")
    sha = sha256(canonical(CALL))
    tombstone = {"pk": job_id, "sk": "job", "tenant": "acme", "status": "DELETED", "body_sha": sha}
    cloud.client("dynamodb").put_item(
        TableName=cloud.jobs_table, Item={name: {"S": value} for name, value in tombstone.items()}
    )
    assert post(accept, CALL, "k")["statusCode"] == 410


@pytest.mark.parametrize("local", [False, True])
def test_a_callback_on_this_machine_is_for_developers_machines(cloud: Cloud, load_handler: Load, local: bool):
    accept = load_handler("accept", **({names.LOCAL: "1"} if local else {}))
    answer = post(accept, {**CALL, "callback_url": "http://127.0.0.1:8123/hook?order=7"})
    assert answer["statusCode"] == (202 if local else 422)
    told = [record["callback_url"]["S"] for record in records(cloud)]
    assert told == (["http://127.0.0.1:8123/hook?order=7"] if local else [])


# --- bodies that are none ------------------------------------------------------------------------
BAD: dict[str, str | bytes] = {
    "nothing": "",
    "cut": '{"type":"summarize"',
    "byte order mark": "\ufeff" + json.dumps(CALL),
    "100,000 brackets": "[" * 100_000,
    "an integer of 5,000 digits": '{"type":"summarize","input":{"text":"x","n":' + "9" * 5_000 + "}}",
    "NaN": '{"type":"summarize","input":{"text":"x","n":NaN}}',
    "infinity": '{"type":"summarize","input":{"text":"x","n":1e400}}',
    "a name twice": '{"type":"summarize","type":"classify","input":{"text":"x"}}',
    "half a surrogate": '{"type":"summarize","input":{"text":"\\ud800"}}',
    "no UTF-8": b'{"type":"summarize","input":{"text":"\xff"}}',
    "a list": "[]",
    "null": "null",
    "a text": '"summarize"',
    "no type": '{"input":{"text":"x"}}',
    "no input": '{"type":"summarize"}',
    "a type that is a number": '{"type":5,"input":{"text":"x"}}',
    "an unknown field": json.dumps({**CALL, "priority": 1}),
    "a field of later work": json.dumps({**CALL, "max_cost": 5}),
    "a callback on the metadata service": json.dumps({**CALL, "callback_url": "https://169.254.169.254/latest"}),
    "a callback without TLS on this machine": json.dumps({**CALL, "callback_url": "http://127.0.0.1:8123/hook"}),
    "a time that is none": json.dumps({**CALL, "not_before": "tomorrow"}),
    "a time of the year 9999": json.dumps({**CALL, "not_before": "9999-12-31T23:59:59-01:00"}),
    "tenant in the body": json.dumps({**CALL, "tenant": "globex"}),
}


@pytest.mark.parametrize("name", BAD)
def test_api_04_a_bad_body_is_a_problem_and_never_a_500(cloud: Cloud, accept: ModuleType, name: str):
    body = BAD[name]
    event = http(
        "POST /jobs", body=body, as_base64=isinstance(body, bytes), headers={"content-type": "application/json"}
    )
    answer = accept.handler(event, Context(10))
    problem = json.loads(answer["body"])
    assert answer["statusCode"] in (400, 422)
    assert answer["headers"]["content-type"] == "application/problem+json"
    assert problem["status"] == answer["statusCode"]
    assert problem["detail"]
    assert records(cloud) == []


def test_a_body_that_says_it_is_base64_and_is_not_is_400(accept: ModuleType):
    event = {**http("POST /jobs", body="{}"), "body": "!!!", "isBase64Encoded": True}
    assert accept.handler(event, Context(10))["statusCode"] == 400


def test_a_wrong_input_is_422_with_the_place_that_is_wrong(accept: ModuleType):
    answer = post(accept, {"type": "summarize", "input": {"text": "x", "language": "English"}})
    assert answer["statusCode"] == 422
    assert answer["json"]["errors"][0]["pointer"] == "/input/language"


def test_an_unknown_type_is_422_and_names_the_known_ones(accept: ModuleType):
    answer = post(accept, {"type": "translate", "input": {}})
    assert answer["statusCode"] == 422
    assert "summarize" in answer["json"]["detail"]


@pytest.mark.parametrize("key", ["", " ", "x" * 256, "tab\there", "\u00e9", "new\nline"])
def test_a_key_that_is_none_is_400_and_not_taken_for_no_key(cloud: Cloud, accept: ModuleType, key: str):
    assert post(accept, CALL, headers={"idempotency-key": key})["statusCode"] == 400
    assert records(cloud) == []


def test_ddb_01_numbers_with_fractions_are_accepted_and_kept(cloud: Cloud, accept: ModuleType):
    answer = post(accept, {"type": "classify", "input": {"fields": {"temperature": 30.40, "n": 1e21}}})
    assert answer["statusCode"] == 202
    item = cloud.item(answer["json"]["job_id"])
    assert item is not None
    assert json.loads(item["input"]["S"])["fields"] == {"temperature": 30.4, "n": 1e21}


# --- large inputs --------------------------------------------------------------------------------
def test_a_large_input_lies_in_s3_before_its_record_points_to_it(cloud: Cloud, accept: ModuleType):
    body = {**CALL, "input": {"text": "x" * 163_000}}
    job_id = post(accept, body, "k")["json"]["job_id"]
    item = cloud.item(job_id)
    assert item is not None
    assert "input" not in item
    key = f"inputs/acme/{job_id}/{item['body_sha']['S']}"
    (stored,) = cloud.objects(cloud.inputs_bucket).items()
    assert (stored[0], sha256(stored[1].decode())) == (key, item["body_sha"]["S"])
    assert [one.operation for one in cloud.wire.sent][:2] == ["PutObject", "PutItem"]


def test_another_large_body_under_the_same_key_overwrites_nothing(cloud: Cloud, accept: ModuleType):
    """Hole 1: job A would run on body B."""
    first = {**CALL, "input": {"text": "A" * 40_000}}
    post(accept, first, "k")
    assert post(accept, {**CALL, "input": {"text": "B" * 40_000}}, "k")["statusCode"] == 422
    job_id = ids.job_id_from_key("acme", "POST", "/jobs", "k")
    kept = cloud.objects(cloud.inputs_bucket)[ids.input_key("acme", job_id, sha256(canonical(first)))]
    assert json.loads(kept)["input"] == first["input"]


@pytest.mark.parametrize("length", [1_100_000, 7_000_000])
def test_api_10_an_input_that_is_too_large_is_413_with_a_way_out(cloud: Cloud, accept: ModuleType, length: int):
    answer = post(accept, {**CALL, "input": {"text": "x" * length}})
    assert answer["statusCode"] == 413
    assert "/uploads" in answer["json"]["detail"]
    assert (records(cloud), cloud.objects(cloud.inputs_bucket)) == ([], {})


def test_an_input_just_below_the_limit_is_accepted(accept: ModuleType):
    assert post(accept, {**CALL, "input": {"text": "x" * 999_980}})["statusCode"] == 202


# --- when the store is in trouble ----------------------------------------------------------------
def test_api_09_nothing_is_accepted_when_the_record_cannot_be_written(cloud: Cloud, accept: ModuleType):
    cloud.wire.refuse("PutItem", "AccessDeniedException")
    answer = post(accept, CALL, "k")
    assert answer["statusCode"] == 503
    assert answer["headers"]["Retry-After"]
    assert answer["json"]["type"].endswith("not-accepted")
    assert records(cloud) == []


def test_an_event_whose_put_landed_unheard_is_accepted(cloud: Cloud, accept: ModuleType):
    """Hole 4: one consistent read decides."""
    cloud.wire.lose("PutItem", times=3)
    answer = post(accept, CALL)
    assert answer["statusCode"] == 202
    assert cloud.item(answer["json"]["job_id"]) is not None


def test_when_nobody_knows_503_says_so_and_names_the_job(cloud: Cloud, accept: ModuleType):
    cloud.wire.lose("PutItem", times=3)
    cloud.wire.cut("GetItem", times=3)
    answer = post(accept, CALL, "k")
    assert answer["statusCode"] == 503
    assert answer["json"]["job_id"] == ids.job_id_from_key("acme", "POST", "/jobs", "k")
    assert "same Idempotency-Key" in answer["json"]["detail"]
    assert cloud.item(answer["json"]["job_id"]) is not None
    assert post(accept, CALL, "k")["statusCode"] == 202


def test_a_lost_reply_that_botocore_repeats_is_a_plain_202(cloud: Cloud, accept: ModuleType):
    cloud.wire.lose("PutItem")
    assert post(accept, CALL, "k")["statusCode"] == 202
    assert len(records(cloud)) == 1


def test_a_large_input_that_cannot_be_stored_is_not_accepted(cloud: Cloud, accept: ModuleType):
    cloud.wire.refuse("PutObject", "AccessDenied", 403)
    answer = post(accept, {**CALL, "input": {"text": "x" * 40_000}}, "k")
    assert answer["statusCode"] == 503
    assert records(cloud) == []


# --- who it is -----------------------------------------------------------------------------------
def tenant_of(cloud: Cloud, answer: dict[str, Any]) -> str:
    item = cloud.item(answer["json"]["job_id"])
    assert item is not None
    return str(item["tenant"]["S"])


def test_a_token_names_its_tenant(cloud: Cloud, accept: ModuleType):
    assert tenant_of(cloud, post(accept, CALL, authorizer=jwt(tenant_id="globex"))) == "globex"


def test_an_iam_caller_is_its_account(cloud: Cloud, accept: ModuleType):
    assert tenant_of(cloud, post(accept, CALL, authorizer=IAM)) == "111122223333"


@pytest.mark.parametrize(
    "arn", ["arn:aws:iam::111122223333:role/Backend", "arn:aws:sts::111122223333:assumed-role/Backend/session-1"]
)
def test_a_declared_principal_is_its_tenant(cloud: Cloud, load_handler: Load, arn: str):
    accept = load_handler("accept", TENANTS=json.dumps({"arn:aws:iam::111122223333:role/Backend": "globex"}))
    caller = {"iam": {**IAM["iam"], "userArn": arn}}
    assert tenant_of(cloud, post(accept, CALL, authorizer=caller)) == "globex"


@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {},
        jwt(),
        jwt(tenant_id=""),
        jwt(tenant_id="a|b"),
        jwt(tenant_id="x" * 65),
        jwt(tenant_id="a/../b"),
        {"jwt": {}},
    ],
)
def test_who_is_nobodys_tenant_is_refused(cloud: Cloud, accept: ModuleType, authorizer: Any):
    answer = post(accept, CALL, authorizer=authorizer, headers={"x-local-tenant": "acme"})
    assert answer["statusCode"] == 403
    assert records(cloud) == []


# --- time ----------------------------------------------------------------------------------------
def test_not_before_is_kept_and_too_far_is_refused(cloud: Cloud, accept: ModuleType):
    far = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 29 * 86_400))
    answer = post(accept, {**CALL, "not_before": far})
    item = cloud.item(answer["json"]["job_id"])
    assert item is not None
    assert item["not_before"]["S"][:19] == far[:19]
    assert item["due_at"]["S"] == item["not_before"]["S"]  # nobody but the sweep sends it
    too_far = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 32 * 86_400))
    assert post(accept, {**CALL, "not_before": too_far})["statusCode"] == 422


def test_not_before_is_bounded_by_the_deployments_own_setting(load_handler: Load):
    accept = load_handler("accept", NOT_BEFORE_MAX_S=5 * 86_400)
    inside = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 4 * 86_400))
    outside = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 6 * 86_400))
    assert post(accept, {**CALL, "not_before": inside})["statusCode"] == 202
    assert post(accept, {**CALL, "not_before": outside})["statusCode"] == 422


# --- what is logged ------------------------------------------------------------------------------
def test_an_accepted_event_is_one_line_with_its_ids_and_nothing_of_its_input(accept: ModuleType, lines: Lines):
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "authorization": "Bearer secret-token"}
    answer = post(accept, {**CALL, "input": {"text": "a private sentence"}}, "key-of-the-client", headers=headers)
    (line,) = lines.of("accepted")
    assert (line["job_id"], line["tenant"], line["trace_id"]) == (answer["json"]["job_id"], "acme", trace)
    for secret in ("private sentence", "secret-token"):
        assert secret not in lines.raw


def test_a_refused_event_is_told_without_its_input(accept: ModuleType, lines: Lines):
    post(accept, {"type": "summarize", "input": {"text": "a private sentence", "language": "private language"}})
    assert lines.steps() == ["refused"]
    assert "private" not in lines.raw


def test_each_invocation_has_its_own_request_id(accept: ModuleType, lines: Lines):
    for request_id in ("first", "second"):
        accept.handler(post_job(CALL), Context(10, request_id))
    assert [line["request_id"] for line in lines.of("accepted")] == ["first", "second"]
