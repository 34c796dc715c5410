"""POST cancel, POST retry and DELETE: a tenant's own job changes its state, and nobody else's does."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.chunks import DynamoChunks
from lambdas.contracts import names
from lambdas.core import changes, ids
from lambdas.core.job import from_record
from lambdas.core.streaming.ports import Chunk
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import GLOBEX, IAM, http, jwt
from tests.integration.records import an_id, cancelled, completed, failed, pending, processing

CANCEL, RETRY, DELETE = "POST /jobs/{id}/cancel", "POST /jobs/{id}/retry", "DELETE /jobs/{id}"
ROUTES = (CANCEL, RETRY, DELETE)


@pytest.fixture
def control(load_handler: Load) -> ModuleType:
    return load_handler("control")


def ask(function: ModuleType, route: str, job_id: str, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = function.handler(http(route, path={"id": job_id}, **more), Context(29))
    answer["json"] = json.loads(answer["body"]) if answer["body"] else None
    return answer


def told(record: dict[str, Any]) -> dict[str, Any]:
    """The record, handed over."""
    return changes.hand_over(from_record(record), now=clock.now()).applied_to(record)


# --- what is changed -----------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [pending, processing, cancelled])
def test_an_open_job_is_cancelled_and_once_more_is_the_same(cloud: Cloud, control: ModuleType, make: Any):
    record = cloud.put(make())
    answers = [ask(control, CANCEL, record["pk"]) for _ in range(2)]
    assert [answer["statusCode"] for answer in answers] == [202, 202]
    assert answers[0]["body"] == answers[1]["body"]
    links = answers[0]["json"].pop("links")
    assert answers[0]["json"] == {"job_id": record["pk"], "status": names.CANCELLED}
    assert links["retry"] == f"/jobs/{record['pk']}/retry"
    assert cloud.record(record["pk"])["status"] == names.CANCELLED


@pytest.mark.parametrize("make", [failed, cancelled])
def test_a_job_that_failed_or_was_cancelled_starts_again(cloud: Cloud, control: ModuleType, make: Any):
    record = cloud.put(make())
    answer = ask(control, RETRY, record["pk"])
    assert (answer["statusCode"], answer["json"]["status"]) == (202, names.PENDING)
    found = cloud.record(record["pk"])
    assert (found["status"], found["attempt"], found["run"]) == (names.PENDING, record["attempt"] + 1, 1)


def test_the_times_of_a_new_opening_are_those_of_the_deployment(cloud: Cloud, load_handler: Load):
    control = load_handler("control", DEADLINE_S=600, DUE_GRACE_S=45, RECORD_DAYS=40)
    record = cloud.put(failed())
    ask(control, RETRY, record["pk"])
    opened = from_record(cloud.record(record["pk"]))
    assert (opened.deadline_at - opened.not_before).total_seconds() == 600
    assert opened.due_at is not None
    assert (opened.due_at - opened.not_before).total_seconds() == 45
    ask(control, CANCEL, record["pk"])
    ended = from_record(cloud.record(record["pk"]))
    assert ended.finished_at is not None
    assert ended.expires_at == int(ended.finished_at.timestamp()) + 40 * 86_400


def test_a_deleted_job_leaves_a_tombstone_and_its_objects_are_gone(cloud: Cloud, control: ModuleType):
    s3, job_id = cloud.client("s3"), an_id()
    key = f"uploads/acme/summarize/{job_id}"
    versions = [s3.put_object(Bucket=cloud.uploads_bucket, Key=key, Body=b"{}")["VersionId"] for _ in range(2)]
    upload = {"key": key, "version": versions[0], "etag": "e", "bytes": 2}
    record = cloud.put({**told(completed(upload=upload)), "pk": job_id})
    sha, answer_key = record["body_sha"], ids.answer_key("acme", "k")
    s3.put_object(Bucket=cloud.inputs_bucket, Key=ids.input_key("acme", job_id, sha), Body=b"{}")
    kept = ids.result_key("acme", "another", 1)
    own = [ids.result_key("acme", job_id, 1), ids.run_result_key("acme", job_id, 1, "{}")]
    own += [ids.part_key("acme", job_id, "summary", "aa"), ids.part_key("acme", job_id, "summary", "bb")]
    for name in (*own, kept, answer_key):
        s3.put_object(Bucket=cloud.results_bucket, Key=name, Body=b"{}")
    answers = [ask(control, DELETE, job_id) for _ in range(2)]
    assert [(answer["statusCode"], answer["body"]) for answer in answers] == [(204, "")] * 2
    tombstone = cloud.record(job_id)
    assert (tombstone["status"], tombstone["body_sha"]) == (names.DELETED, sha)
    assert not {"input", "history", "trace_id", "tenant_shard", "result_key"} & tombstone.keys()
    assert cloud.objects(cloud.inputs_bucket) == {}
    assert set(cloud.objects(cloud.results_bucket)) == {kept, answer_key}
    assert "Versions" not in s3.list_object_versions(Bucket=cloud.uploads_bucket)


def test_a_deleted_jobs_text_is_gone_with_it_and_nobody_elses(cloud: Cloud, control: ModuleType):
    record, other = cloud.put(told(completed(stream=True))), an_id()
    chunks = DynamoChunks(cloud.client("dynamodb"), cloud.jobs_table)
    for job_id in (record["pk"], other):
        for n in range(30):
            chunks.append(job_id, Chunk(n % 3, n, "text"), 2_000_000_000)
    cloud.wire.refuse("BatchWriteItem", "InternalServerError", 500)
    assert ask(control, DELETE, record["pk"])["statusCode"] == 503
    cloud.wire.mend()
    assert ask(control, DELETE, record["pk"])["statusCode"] == 204
    assert [len(chunks.read(record["pk"], attempt, 0, 1_000)) for attempt in range(3)] == [0, 0, 0]
    assert len(chunks.read(other, 1, 0, 1_000)) == 10
    assert cloud.record(record["pk"])["status"] == names.DELETED


# --- what is refused -------------------------------------------------------------------------------------
STATES: dict[str, list[Any]] = {
    CANCEL: [completed, failed],
    RETRY: [pending, processing, completed],
    DELETE: [pending, processing, completed, failed, cancelled],  # none of them is handed over
}


@pytest.mark.parametrize(("route", "make"), [(route, make) for route, makes in STATES.items() for make in makes])
def test_what_the_state_forbids_is_409_and_changes_nothing(cloud: Cloud, control: ModuleType, route: str, make: Any):
    record = cloud.put(make())
    answer = ask(control, route, record["pk"])
    assert (answer["statusCode"], answer["json"]["type"]) == (409, "urn:neverdrop:problem:wrong-state")
    assert answer["headers"]["content-type"] == "application/problem+json"
    assert cloud.record(record["pk"]) == record


@pytest.mark.parametrize("route", ROUTES)
def test_another_tenants_job_is_404_just_like_one_that_is_not_there(cloud: Cloud, control: ModuleType, route: str):
    record = cloud.put(told(failed()) if route == DELETE else failed() if route == RETRY else pending())
    theirs, none = ask(control, route, record["pk"], authorizer=GLOBEX), ask(control, route, an_id())
    assert (theirs["statusCode"], none["statusCode"]) == (404, 404)
    assert theirs["body"] == none["body"]
    assert cloud.record(record["pk"]) == record


@pytest.mark.parametrize("job_id", ["", "x" * 129, "..", "job#1", "lease#sweep", "\u00e9" * 40])
@pytest.mark.parametrize("route", ROUTES)
def test_an_id_that_is_none_is_404(control: ModuleType, route: str, job_id: str):
    assert ask(control, route, job_id)["statusCode"] == 404


@pytest.mark.parametrize("authorizer", [None, {}, jwt(tenant_id="a b")])
@pytest.mark.parametrize("route", ROUTES)
def test_who_is_nobodys_tenant_is_refused(control: ModuleType, authorizer: Any, route: str):
    assert ask(control, route, an_id(), authorizer=authorizer)["statusCode"] == 403


def test_an_iam_caller_changes_the_jobs_of_its_account(cloud: Cloud, control: ModuleType):
    record = cloud.put(pending(tenant="111122223333"))
    assert ask(control, CANCEL, record["pk"], authorizer=IAM)["statusCode"] == 202


@pytest.mark.parametrize("route", [CANCEL, RETRY])
def test_a_deleted_job_is_410(cloud: Cloud, control: ModuleType, route: str):
    record = cloud.put(told(failed()))
    ask(control, DELETE, record["pk"])
    assert ask(control, route, record["pk"])["statusCode"] == 410


@pytest.mark.parametrize("body", [b"", b"{}", b" { } "])
@pytest.mark.parametrize("as_base64", [True, False])
def test_an_empty_body_or_an_empty_object_is_taken(cloud: Cloud, control: ModuleType, body: bytes, as_base64: bool):
    record = cloud.put(pending())
    assert ask(control, CANCEL, record["pk"], body=body, as_base64=as_base64)["statusCode"] == 202


@pytest.mark.parametrize("route", [CANCEL, RETRY])
@pytest.mark.parametrize(("body", "pointer"), [(b'{"why":"x"}', "/why"), (b"[]", ""), (b"nonsense", "")])
def test_a_body_with_anything_in_it_is_400_and_changes_nothing(
    cloud: Cloud, control: ModuleType, route: str, body: bytes, pointer: str
):
    record = cloud.put(failed() if route == RETRY else pending())
    answer = ask(control, route, record["pk"], body=body)
    assert (answer["statusCode"], answer["json"]["errors"][0]["pointer"]) == (400, pointer)
    assert cloud.record(record["pk"]) == record


# --- trouble -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("route", "operation"),
    [
        (CANCEL, "GetItem"),
        (CANCEL, "UpdateItem"),
        (RETRY, "UpdateItem"),
        (DELETE, "UpdateItem"),
        (DELETE, "DeleteObjects"),
        (DELETE, "Query"),
    ],
)
def test_a_store_that_cannot_be_reached_is_503_and_the_same_request_repairs_it(
    cloud: Cloud, control: ModuleType, lines: Lines, route: str, operation: str
):
    record = cloud.put({CANCEL: pending, RETRY: failed, DELETE: lambda: told(completed())}[route]())
    cloud.wire.refuse(operation, "InternalServerError", 500)
    answer = ask(control, route, record["pk"])
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "2")
    assert "store_unavailable" in lines.steps()
    cloud.wire.mend()
    assert ask(control, route, record["pk"])["statusCode"] in (202, 204)


@pytest.mark.parametrize("route", ROUTES)
def test_a_lost_reply_is_repeated_by_the_sdk_and_counts_as_success(cloud: Cloud, control: ModuleType, route: str):
    record = cloud.put({CANCEL: processing, RETRY: failed, DELETE: lambda: told(completed())}[route]())
    cloud.wire.lose("UpdateItem")
    assert ask(control, route, record["pk"])["statusCode"] in (202, 204)
    assert cloud.record(record["pk"])["attempt"] == record["attempt"] + (route == RETRY)


@pytest.mark.parametrize("route", ROUTES)
def test_a_record_that_was_spoilt_by_hand_is_503_and_for_the_operators(
    cloud: Cloud, control: ModuleType, lines: Lines, route: str
):
    record = cloud.put(pending(tries="many"))
    answer = ask(control, route, record["pk"])
    assert (answer["statusCode"], answer["json"]["type"]) == (503, "urn:neverdrop:problem:unreadable")
    assert lines.of("unreadable_record")[0]["job_id"] == record["pk"]


def test_every_change_is_a_line_of_the_jobs_story(cloud: Cloud, control: ModuleType, lines: Lines):
    record = cloud.put(pending())
    for route in (CANCEL, RETRY, CANCEL):
        ask(control, route, record["pk"])
    cloud.put(told(cloud.record(record["pk"])))
    ask(control, DELETE, record["pk"])
    ask(control, CANCEL, record["pk"])
    steps = [(line["step"], line["job_id"]) for line in lines.all() if "step" in line]
    assert steps == [(step, record["pk"]) for step in ("cancelled", "reopened", "cancelled", "deleted", "refused")]


def test_a_change_costs_one_read_and_one_write(cloud: Cloud, control: ModuleType):
    record = cloud.put(pending())
    control.parts()
    cloud.wire.clear()
    ask(control, CANCEL, record["pk"])
    ask(control, RETRY, record["pk"])
    assert [one.operation for one in cloud.wire.sent] == ["GetItem", "UpdateItem"] * 2
