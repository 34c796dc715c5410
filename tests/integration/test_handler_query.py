"""GET: a tenant's own jobs, their results and timelines; what belongs to another is not there at all."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.contracts import names
from lambdas.core import changes, times
from lambdas.core.job import from_record
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Load
from tests.integration.events import ACME, GLOBEX, IAM, http, jwt
from tests.integration.records import LIMITS, an_id, cancelled, completed, failed, pending, processing
from tests.integration.waits import Waits


@pytest.fixture
def query(load_handler: Load) -> ModuleType:
    return load_handler("query")


@pytest.fixture
def waits(query: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr(query, "time", made)
    return made


def get(function: ModuleType, route: str, job_id: str | None = None, **more: Any) -> dict[str, Any]:
    path = {"id": job_id} if job_id is not None else None
    answer: dict[str, Any] = function.handler(http(f"GET {route}", path=path, **more), Context(29))
    answer["json"] = json.loads(answer["body"])
    return answer


OTHERS = ("/admin/", "/webhooks")  # answered by functions of their own
JOB, RESULT, EVENTS = "/jobs/{id}", "/jobs/{id}/result", "/jobs/{id}/events"


# --- one job -------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [pending, processing, completed, failed, cancelled])
def test_a_job_is_shown_to_its_tenant(cloud: Cloud, query: ModuleType, make: Any):
    record = cloud.put(make())
    answer = get(query, JOB, record["pk"])
    assert answer["statusCode"] == 200
    assert (answer["json"]["job_id"], answer["json"]["status"]) == (record["pk"], record["status"])
    assert answer["headers"]["content-type"] == "application/json"


def test_a_failed_job_says_why_and_what_it_cost(cloud: Cloud, query: ModuleType):
    shown = get(query, JOB, cloud.put(failed(late_cost=4))["pk"])["json"]
    assert shown["error"] == {"code": "MODEL_PERMANENT", "message": "no such model"}
    assert shown["cost_micros"] == 7


def test_nothing_internal_is_shown(cloud: Cloud, query: ModuleType):
    shown = get(query, JOB, cloud.put(processing())["pk"])["json"]
    assert not {"input", "claim_id", "body_sha", "tenant_shard", "due_shard", "result_key"} & shown.keys()


@pytest.mark.parametrize("route", [JOB, RESULT, EVENTS])
def test_another_tenants_job_is_404_just_like_one_that_is_not_there(cloud: Cloud, query: ModuleType, route: str):
    record = cloud.put(completed())
    theirs, none = get(query, route, record["pk"], authorizer=GLOBEX), get(query, route, an_id())
    assert (theirs["statusCode"], none["statusCode"]) == (404, 404)
    assert theirs["body"] == none["body"]


@pytest.mark.parametrize("job_id", ["", "x" * 129, "..", "job#1", "\u00e9" * 40, "a b"])
def test_an_id_that_is_none_is_404(query: ModuleType, job_id: str):
    assert get(query, JOB, job_id)["statusCode"] == 404


@pytest.mark.parametrize("route", [JOB, RESULT, EVENTS])
def test_a_deleted_job_is_410(cloud: Cloud, query: ModuleType, route: str):
    tombstone = {"pk": an_id(), "sk": "job", "tenant": "acme", "status": names.DELETED, "attempt": 2}
    assert get(query, route, cloud.put(tombstone)["pk"])["statusCode"] == 410


@pytest.mark.parametrize("authorizer", [None, {}, jwt(tenant_id="a b")])
@pytest.mark.parametrize("route", ["/jobs", JOB, RESULT, EVENTS])
def test_who_is_nobodys_tenant_is_refused(query: ModuleType, authorizer: Any, route: str):
    answer = get(query, route, an_id() if "{id}" in route else None, authorizer=authorizer)
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (403, "application/problem+json")


def test_an_iam_caller_sees_the_jobs_of_its_account(cloud: Cloud, query: ModuleType):
    record = cloud.put(pending(tenant="111122223333"))
    assert get(query, JOB, record["pk"], authorizer=IAM)["statusCode"] == 200


# --- waiting -------------------------------------------------------------------------------------
def test_wait_answers_as_soon_as_the_job_is_final(cloud: Cloud, query: ModuleType, waits: Waits):
    record = cloud.put(processing())
    waits.happens[2] = lambda: cloud.put({**completed(), "pk": record["pk"]})
    answer = get(query, JOB, record["pk"], query={"wait": "10"})
    assert answer["json"]["status"] == names.COMPLETED
    assert waits.made == [0.5, 0.5]


def test_wait_ends_with_what_is_known(cloud: Cloud, query: ModuleType, waits: Waits):
    record = cloud.put(pending())
    answer = get(query, JOB, record["pk"], query={"wait": "1"})
    assert (answer["statusCode"], answer["json"]["status"]) == (200, names.PENDING)
    assert waits.made == [0.5, 0.5]


@pytest.mark.parametrize("wait", ["0", None])
def test_without_wait_the_record_is_read_once(cloud: Cloud, query: ModuleType, wait: str | None):
    record = cloud.put(pending())
    cloud.wire.clear()
    get(query, JOB, record["pk"], query={"wait": wait} if wait else None)
    assert [one.operation for one in cloud.wire.sent] == ["GetItem"]


def test_a_job_that_is_final_waits_for_nothing(cloud: Cloud, query: ModuleType, waits: Waits):
    get(query, JOB, cloud.put(failed())["pk"], query={"wait": "20"})
    assert waits.made == []


def test_the_deployment_may_forbid_waiting(cloud: Cloud, load_handler: Load, waits: Waits):
    query, record = load_handler("query", WAIT_MAX_S=0), cloud.put(pending())
    assert get(query, JOB, record["pk"], query={"wait": "20"})["statusCode"] == 200
    assert waits.made == []


BAD_WAITS = ["-1", "21", "1.5", "x", "", "\u0663", "1,2", "1e1", "00002" + "0" * 5_000]


@pytest.mark.parametrize("wait", BAD_WAITS, ids=lambda wait: ascii(wait[:9]))
def test_a_wait_that_is_none_is_400(cloud: Cloud, query: ModuleType, wait: str):
    assert get(query, JOB, cloud.put(failed())["pk"], query={"wait": wait})["statusCode"] == 400


def test_an_unknown_parameter_is_400(cloud: Cloud, query: ModuleType):
    assert get(query, JOB, cloud.put(failed())["pk"], query={"wiat": "5"})["statusCode"] == 400


# --- results -------------------------------------------------------------------------------------
def with_result(cloud: Cloud, body: bytes) -> dict[str, Any]:
    record = cloud.put({**completed(), "result_bytes": len(body)})
    cloud.client("s3").put_object(Bucket=cloud.results_bucket, Key=record["result_key"], Body=body)
    return record


def test_a_result_is_answered_as_the_task_made_it(cloud: Cloud, query: ModuleType):
    record = with_result(cloud, '{"summary":"caf\u00e9 \U0001f600"}'.encode())
    answer = get(query, RESULT, record["pk"])
    assert (answer["statusCode"], answer["json"]) == (200, {"summary": "caf\u00e9 \U0001f600"})


def test_a_large_result_is_fetched_from_s3(cloud: Cloud, query: ModuleType):
    record = with_result(cloud, b'{"summary":"' + b"x" * 1_100_000 + b'"}')
    answer = get(query, RESULT, record["pk"])
    assert answer["statusCode"] == 303
    assert record["result_key"] in answer["headers"]["Location"]
    assert "Signature=" in answer["headers"]["Location"]


@pytest.mark.parametrize("make", [pending, processing])
def test_no_result_yet_is_202(cloud: Cloud, query: ModuleType, make: Any):
    answer = get(query, RESULT, cloud.put(make())["pk"])
    assert (answer["statusCode"], answer["json"]["status"] in names.OPEN) == (202, True)


def test_no_result_ever_is_409_with_the_reason(cloud: Cloud, query: ModuleType):
    answer = get(query, RESULT, cloud.put(failed())["pk"])
    assert answer["statusCode"] == 409
    assert "MODEL_PERMANENT" in answer["json"]["detail"]
    assert get(query, RESULT, cloud.put(cancelled())["pk"])["statusCode"] == 409


def test_a_result_that_is_gone_is_410(cloud: Cloud, query: ModuleType):
    assert get(query, RESULT, cloud.put(completed())["pk"])["statusCode"] == 410


# --- timelines -----------------------------------------------------------------------------------
def test_a_timeline_tells_what_happened_in_order_and_in_one_read(cloud: Cloud, query: ModuleType):
    record = processing()
    job = from_record(record)
    why = changes.error("MODEL_TRANSIENT", "cut")
    retried = changes.retry(job, now=clock.now(), wait_s=1, why=why, cost=0, limits=LIMITS).applied_to(record)
    cloud.put(retried)
    cloud.wire.clear()
    answer = get(query, EVENTS, record["pk"])
    assert [event["what"] for event in answer["json"]["events"]] == ["accepted", "claimed", "retried"]
    assert [one.operation for one in cloud.wire.sent] == ["Query"]


def test_a_handed_over_job_says_so_last(cloud: Cloud, query: ModuleType):
    done = completed()
    handed = changes.hand_over(from_record(done), now=clock.now()).applied_to(done)
    events = get(query, EVENTS, cloud.put(handed)["pk"])["json"]["events"]
    assert [event["what"] for event in events] == ["accepted", "claimed", "completed", "handed_over"]
    assert all("at" in event for event in events)


# --- lists ---------------------------------------------------------------------------------------
def many(cloud: Cloud, count: int, **over: Any) -> list[str]:
    """So many jobs, a second apart; their ids, newest first."""
    start = times.after(clock.now(), -count)
    made = [cloud.put(pending(now=times.after(start, number), **over))["pk"] for number in range(count)]
    return made[::-1]


def pages(function: ModuleType, **parameters: str) -> list[list[str]]:
    found: list[list[str]] = []
    while True:
        answer = get(function, "/jobs", query=parameters)
        assert answer["statusCode"] == 200
        found.append([job["job_id"] for job in answer["json"]["jobs"]])
        if "cursor" not in answer["json"]:
            return found
        assert len(found) < 50
        parameters["cursor"] = answer["json"]["cursor"]


def test_a_list_has_the_newest_first_and_nobody_elses(cloud: Cloud, query: ModuleType):
    mine = many(cloud, 5)
    many(cloud, 2, tenant="globex")
    assert pages(query) == [mine]


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_pages_give_each_job_once_and_in_order(cloud: Cloud, query: ModuleType, limit: int):
    mine = many(cloud, 10)
    found = pages(query, limit=str(limit))
    assert [job_id for page in found for job_id in page] == mine
    assert all(len(page) <= limit for page in found)


def test_an_empty_list_has_no_cursor(query: ModuleType):
    assert get(query, "/jobs")["json"] == {"jobs": []}


def test_a_list_may_be_narrowed_by_status_and_type(cloud: Cloud, query: ModuleType):
    many(cloud, 3)
    dead = cloud.put(failed())["pk"]
    form = {"type": "classify", "input": {"fields": {"a": 1}}}
    sorted_ = cloud.put(pending(request=form))["pk"]
    assert [job for page in pages(query, status="FAILED") for job in page] == [dead]
    assert [job for page in pages(query, type="classify", limit="2") for job in page] == [sorted_]


def test_a_deleted_job_is_not_listed(cloud: Cloud, query: ModuleType):
    mine = many(cloud, 2)
    record = pending()
    kept = ("pk", "sk", "tenant", "tenant_shard", "created_at")
    cloud.put({**{name: record[name] for name in kept}, "status": names.DELETED})
    assert [job for page in pages(query) for job in page] == mine


BAD_QUERIES = [
    *({"limit": limit} for limit in ("0", "101", "x", "-1", "0000501", "5" + "0" * 5_000)),
    *({"status": status} for status in ("DONE", "pending", "DELETED")),
    *({"cursor": cursor} for cursor in ("x", "", "bnVsbA", "e30x")),
    {"cursor": "eyI5IjpbIjIwMjYtMTEtMjlUMTU6MzA6NDQuMTIzWiIsImEiXX0"},  # a shard that there is not
    {"order": "oldest"},
]


@pytest.mark.parametrize("parameters", BAD_QUERIES, ids=lambda query: str(query)[:30])
def test_a_query_that_is_none_is_400(query: ModuleType, parameters: dict[str, str]):
    answer = get(query, "/jobs", query=parameters)
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (400, "application/problem+json")


def test_a_cursor_of_another_tenant_shows_only_my_own_jobs(cloud: Cloud, query: ModuleType):
    many(cloud, 6, tenant="globex")
    mine = many(cloud, 3)
    cursor = get(query, "/jobs", query={"limit": "2"}, authorizer=GLOBEX)["json"]["cursor"]
    listed = get(query, "/jobs", query={"cursor": cursor}, authorizer=ACME)
    assert listed["statusCode"] == 200
    assert {job["job_id"] for job in listed["json"]["jobs"]} <= set(mine)


# --- the rest ------------------------------------------------------------------------------------
@pytest.mark.parametrize("route", ["/health", "/openapi.json"])
def test_health_and_contract_need_no_identity_and_no_store(cloud: Cloud, query: ModuleType, route: str):
    answer = get(query, route, authorizer=None)
    assert answer["statusCode"] == 200
    assert cloud.wire.count() == 0


def test_the_contract_names_every_route_that_is_answered(query: ModuleType):
    paths = get(query, "/openapi.json", authorizer=None)["json"]["paths"]
    answered = {route.split(" ")[1] for route in (*query.ROUTES, *query.OPEN_ROUTES)}
    reading = {path for path, methods in paths.items() if "get" in methods and not path.startswith(OTHERS)}
    assert reading == answered


@pytest.mark.parametrize(("route", "operation"), [(JOB, "GetItem"), ("/jobs", "Query"), (RESULT, "GetObject")])
def test_a_store_that_cannot_be_read_is_503_with_a_time_to_come_back(
    cloud: Cloud, query: ModuleType, route: str, operation: str
):
    record = with_result(cloud, b"{}")
    cloud.wire.refuse(operation, "AccessDeniedException")
    answer = get(query, route, record["pk"] if "{id}" in route else None)
    assert answer["statusCode"] == 503
    assert answer["headers"]["Retry-After"]
