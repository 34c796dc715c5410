"""The routes of endpoints and of redelivery: a tenant's own are registered and changed; another's are not there."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.contracts import names
from lambdas.core import changes, times
from lambdas.core.job import from_record
from lambdas.core.ports import Refused
from lambdas.core.webhooks import circuits
from lambdas.core.webhooks import delivery_changes as delivering
from lambdas.core.webhooks.delivery import DeliveryLimits, read
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import ACME, GLOBEX, http
from tests.integration.records import completed, failed, pending

URL = "https://hooks.acme.test/jobs?key=hush"
REDELIVER = "POST /jobs/{id}/redeliver"
ROUTES = (
    "GET /webhooks/{id}", "DELETE /webhooks/{id}", "GET /webhooks/{id}/secret", "POST /webhooks/{id}/rotate",
    "POST /webhooks/{id}/disable", "POST /webhooks/{id}/enable", "POST /webhooks/{id}/ping",
)  # fmt: skip


@pytest.fixture
def webhooks(load_handler: Load) -> ModuleType:
    return load_handler("webhooks")


def ask(function: ModuleType, route: str, about: str = "", body: Any = None, **more: Any) -> dict[str, Any]:
    path = {"id": about} if "{id}" in route else None
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    answer: dict[str, Any] = function.handler(http(route, path=path, body=raw, **more), Context(29))
    answer["json"] = json.loads(answer["body"]) if answer["body"] else None
    return answer


def registered(function: ModuleType, url: str = URL, **more: Any) -> dict[str, Any]:
    answer = ask(function, "POST /webhooks", body={"url": url, **more.pop("body", {})}, **more)
    assert answer["statusCode"] == 201, answer["body"]
    return dict(answer["json"])


def told(record: dict[str, Any]) -> dict[str, Any]:
    """The record, handed over."""
    return changes.hand_over(from_record(record), now=clock.now()).applied_to(record)


def deliveries(cloud: Cloud, job_id: str) -> list[dict[str, Any]]:
    beside = DynamoDeliveries(cloud.client("dynamodb"), cloud.jobs_table).beside(job_id)
    return [dict(one) for one in beside if one["sk"] != names.JOB_SK]


# --- endpoints ---------------------------------------------------------------------------------------------
def test_an_endpoint_from_its_registration_to_its_end(cloud: Cloud, webhooks: ModuleType):
    made = registered(webhooks, body={"events": ["job.failed"], "description": "the shop"})
    answer = ask(webhooks, "POST /webhooks", body={"url": URL, "events": ["job.failed"], "description": "the shop"})
    assert answer["json"] == made
    assert answer["headers"]["Location"] == made["links"]["self"] == f"/webhooks/{made['id']}"
    shown = ask(webhooks, "GET /webhooks/{id}", made["id"])["json"]
    healthy = {"health": {"state": "closed", "failures": 0}}
    assert shown == {name: value for name, value in made.items() if name != "secret"} | healthy
    assert (shown["url"], shown["events"], shown["enabled"]) == (URL, ["job.failed"], True)
    assert ask(webhooks, "GET /webhooks")["json"] == {"webhooks": [shown]}
    off = ask(webhooks, "POST /webhooks/{id}/disable", made["id"])
    assert (off["statusCode"], off["json"]["enabled"], off["json"]["disabled_reason"]) == (200, False, "by the tenant")
    assert ask(webhooks, "POST /webhooks/{id}/ping", made["id"])["statusCode"] == 409
    on = ask(webhooks, "POST /webhooks/{id}/enable", made["id"])
    assert (on["statusCode"], on["json"]) == (200, shown)
    gone = ask(webhooks, "DELETE /webhooks/{id}", made["id"])
    assert (gone["statusCode"], gone["body"]) == (204, "")
    for route in ROUTES:
        answer = ask(webhooks, route, made["id"])
        assert (answer["statusCode"], answer["json"]["type"]) == (404, "urn:neverdrop:problem:no-such-webhook")
    assert ask(webhooks, "GET /webhooks")["json"] == {"webhooks": []}


def test_secrets_are_derived_from_the_one_of_the_deployment_and_rotate(cloud: Cloud, webhooks: ModuleType):
    made = registered(webhooks)
    assert ask(webhooks, "GET /webhooks/{id}/secret", made["id"])["json"] == {
        "id": made["id"],
        "secret": made["secret"],
    }
    turned = ask(webhooks, "POST /webhooks/{id}/rotate", made["id"])["json"]
    assert turned["previous"] == made["secret"]
    assert ask(webhooks, "POST /webhooks/{id}/rotate", made["id"])["json"] == turned
    alone = ask(webhooks, "POST /webhooks/{id}/rotate", made["id"], body={"at_once": True})["json"]
    assert "previous" not in alone
    assert len({made["secret"], turned["secret"], alone["secret"]}) == 3
    for which in ("GET /webhooks/{id}/secret", "POST /webhooks/{id}/rotate"):
        assert ask(webhooks, which, names.CALLBACK)["json"]["secret"].startswith("whsec_")
    mine, theirs = (
        ask(webhooks, "GET /webhooks/{id}/secret", names.CALLBACK, authorizer=who) for who in (ACME, GLOBEX)
    )
    assert mine["json"]["secret"] != theirs["json"]["secret"]


def test_another_tenants_endpoint_is_not_there(cloud: Cloud, webhooks: ModuleType):
    made = registered(webhooks)
    for route in ROUTES:
        answer = ask(webhooks, route, made["id"], authorizer=GLOBEX)
        assert answer["statusCode"] == 404, route
        assert answer["body"] == ask(webhooks, route, "0123456789abcdef")["body"]
    assert ask(webhooks, "GET /webhooks", authorizer=GLOBEX)["json"] == {"webhooks": []}
    assert ask(webhooks, "GET /webhooks/{id}", made["id"])["json"]["enabled"] is True


def test_who_is_no_tenant_is_403(cloud: Cloud, webhooks: ModuleType):
    assert ask(webhooks, "GET /webhooks", authorizer=None)["statusCode"] == 403


@pytest.mark.parametrize("local", [False, True])
def test_only_on_a_developers_machine_may_a_receiver_be_there(cloud: Cloud, load_handler: Load, local: bool):
    webhooks = load_handler("webhooks", **({names.LOCAL: "1"} if local else {}))
    answer = ask(webhooks, "POST /webhooks", body={"url": "http://127.0.0.1:8123/hook"})
    assert answer["statusCode"] == (201 if local else 422)
    if not local:
        assert answer["json"]["errors"][0]["pointer"] == "/url"


@pytest.mark.parametrize(
    ("route", "body", "status"),
    [
        ("POST /webhooks", b"{", 400),
        ("POST /webhooks", b"", 400),
        ("POST /webhooks", {"url": URL, "secret": "mine"}, 400),
        ("POST /webhooks", {"url": "https://169.254.169.254/"}, 422),
        ("POST /webhooks/{id}/rotate", {"at_once": "yes"}, 400),
        ("POST /webhooks/{id}/disable", {"why": "x"}, 400),
        ("POST /webhooks/{id}/enable", [1], 400),
        ("POST /webhooks/{id}/ping", {"n": 2}, 400),
    ],
)
def test_what_breaks_the_contract_is_refused_and_changes_nothing(
    cloud: Cloud, webhooks: ModuleType, route: str, body: Any, status: int
):
    made = registered(webhooks, "https://other.acme.test/")
    before = cloud.client("dynamodb").scan(TableName=cloud.jobs_table)["Items"]
    assert ask(webhooks, route, made["id"], body=body)["statusCode"] == status
    assert cloud.client("dynamodb").scan(TableName=cloud.jobs_table)["Items"] == before


def test_fifty_registrations_of_one_url_at_once_are_one(cloud: Cloud, webhooks: ModuleType):
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: ask(webhooks, "POST /webhooks", body={"url": URL}), range(50)))
    assert {(answer["statusCode"], answer["body"]) for answer in answers} == {(201, answers[0]["body"])}


def test_of_many_at_once_no_more_stay_than_may(cloud: Cloud, webhooks: ModuleType):
    def register(number: int) -> int:
        return int(ask(webhooks, "POST /webhooks", body={"url": f"https://{number}.acme.test/"})["statusCode"])

    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(register, range(30)))
    found = ask(webhooks, "GET /webhooks")["json"]["webhooks"]
    assert len(found) == statuses.count(201) <= 20
    assert set(statuses) <= {201, 409}


def test_the_health_of_an_endpoint_is_told(cloud: Cloud, webhooks: ModuleType):
    made = registered(webhooks)
    pk, sk = circuits.key("acme", made["id"])
    row = {"failures": 5, "open_until": times.text(times.after(clock.now(), 600)), "note": "HTTP 503"}
    cloud.put({"pk": pk, "sk": sk, **row})
    for answer in (
        ask(webhooks, "GET /webhooks/{id}", made["id"])["json"],
        ask(webhooks, "GET /webhooks")["json"]["webhooks"][0],
    ):
        assert answer["health"] == {
            "state": "open", "failures": 5, "until": row["open_until"], "last": "HTTP 503",
        }  # fmt: skip


def test_a_ping_is_a_delivery_and_the_endpoint_tells_what_became_of_it(cloud: Cloud, webhooks: ModuleType):
    made = registered(webhooks)
    answer = ask(webhooks, "POST /webhooks/{id}/ping", made["id"])
    assert (answer["statusCode"], answer["json"]["links"]) == (202, {"self": f"/webhooks/{made['id']}"})
    (event_id, drawn) = answer["json"]["event_id"], answer["json"]["event_id"].partition(".")[2]
    (record,) = deliveries(cloud, names.PING_PK + drawn)
    assert (record["event_type"], record["event_id"], record["endpoint"]) == ("job.ping", event_id, made["id"])
    shown = ask(webhooks, "GET /webhooks/{id}", made["id"])["json"]
    assert shown["ping"] == {"event_id": event_id, "status": names.PENDING}


def test_no_secret_and_no_url_is_logged(cloud: Cloud, webhooks: ModuleType, lines: Lines):
    made = registered(webhooks)
    for route in (*ROUTES, "GET /webhooks"):
        ask(webhooks, route, made["id"])
    ask(webhooks, "POST /webhooks", body={"url": "https://127.0.0.1/?key=hush"})
    assert lines.steps()
    assert not [word for word in ("whsec_", "hush", "hooks.acme") if word in lines.raw]


@pytest.mark.parametrize(
    ("route", "operation"),
    [
        ("POST /webhooks", "PutItem"),
        ("GET /webhooks", "Query"),
        ("GET /webhooks/{id}", "GetItem"),
        ("POST /webhooks/{id}/rotate", "UpdateItem"),
        ("POST /webhooks/{id}/disable", "UpdateItem"),
        ("POST /webhooks/{id}/ping", "PutItem"),
        ("DELETE /webhooks/{id}", "DeleteItem"),
        ("GET /webhooks/{id}/secret", "GetSecretValue"),
    ],
)
def test_without_its_stores_it_is_503_and_a_repeat_is_harmless(
    cloud: Cloud, webhooks: ModuleType, route: str, operation: str
):
    made = registered(webhooks)
    webhooks.parts.cache_clear()  # it knows no secret yet
    body = {"url": "https://more.acme.test/"} if route == "POST /webhooks" else None
    cloud.wire.cut(operation, times=3)
    answer = ask(webhooks, route, made["id"], body=body)
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "2")
    cloud.wire.mend()
    assert ask(webhooks, route, made["id"], body=body)["statusCode"] in (200, 201, 202, 204)


def test_a_record_that_somebody_broke_is_503_and_logged(cloud: Cloud, webhooks: ModuleType, lines: Lines):
    made = registered(webhooks)
    cloud.put({"pk": "tenant#acme", "sk": f"endpoint#{made['id']}", "id": made["id"]})
    assert ask(webhooks, "GET /webhooks/{id}", made["id"])["statusCode"] == 503
    assert lines.of("unreadable_record")


# --- redelivery ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [completed, failed])
def test_an_end_is_delivered_once_more_to_whoever_is_there(cloud: Cloud, webhooks: ModuleType, make: Any):
    made = registered(webhooks)
    record = cloud.put(told(make(callback_url="https://shop.acme.test/done")))
    answer = ask(webhooks, REDELIVER, record["pk"])
    assert answer["statusCode"] == 202
    found = deliveries(cloud, record["pk"])
    assert {one["endpoint"] for one in found} == {one["endpoint"] for one in answer["json"]["deliveries"]}
    assert len(found) == 2
    assert made["id"] in {one["endpoint"] for one in found}
    assert {one["status"] for one in found} == {names.PENDING}


def test_what_was_given_up_is_opened_again_and_one_can_be_meant_alone(cloud: Cloud, webhooks: ModuleType):
    one, two = registered(webhooks), registered(webhooks, "https://two.acme.test/")
    record = cloud.put(told(completed()))
    ask(webhooks, REDELIVER, record["pk"])
    for delivery in deliveries(cloud, record["pk"]):
        ended = delivering.expire(read(delivery), now=times.after(clock.now(), 90 * 86_400), limits=DeliveryLimits())
        cloud.put(ended.applied_to(delivery))
    answer = ask(webhooks, REDELIVER, record["pk"], body={"endpoint": two["id"]})
    assert answer["json"]["deliveries"] == [{"endpoint": two["id"], "status": names.PENDING}]
    states = {found["endpoint"]: found["status"] for found in deliveries(cloud, record["pk"])}
    assert states == {one["id"]: names.FAILED, two["id"]: names.PENDING}


def test_a_redelivery_whose_replies_are_lost_opens_it_once(cloud: Cloud, webhooks: ModuleType):
    registered(webhooks)
    record = cloud.put(told(completed()))
    ask(webhooks, REDELIVER, record["pk"])
    (delivery,) = deliveries(cloud, record["pk"])
    ended = delivering.expire(read(delivery), now=times.after(clock.now(), 90 * 86_400), limits=DeliveryLimits())
    cloud.put(ended.applied_to(delivery))
    cloud.wire.lose("UpdateItem")
    assert ask(webhooks, REDELIVER, record["pk"])["statusCode"] == 202
    (found,) = deliveries(cloud, record["pk"])
    assert (found["status"], found["opening"]) == (names.PENDING, 1)


def test_a_redelivery_that_makes_no_sense_is_refused(cloud: Cloud, webhooks: ModuleType):
    registered(webhooks)
    open_, done = cloud.put(pending()), cloud.put(completed())
    assert ask(webhooks, REDELIVER, open_["pk"])["statusCode"] == 409
    assert ask(webhooks, REDELIVER, done["pk"])["statusCode"] == 409  # not handed over yet
    assert ask(webhooks, REDELIVER, "f" * 32)["statusCode"] == 404
    handed = cloud.put(told(completed()))
    assert ask(webhooks, REDELIVER, handed["pk"], authorizer=GLOBEX)["statusCode"] == 404
    assert ask(webhooks, REDELIVER, handed["pk"], body={"endpoint": "0123456789abcdef"})["statusCode"] == 404
    assert ask(webhooks, REDELIVER, handed["pk"], body={"all": True})["statusCode"] == 400
    assert not [one for record in (open_, done, handed) for one in deliveries(cloud, record["pk"])]


def test_the_timeline_of_a_job_tells_of_its_deliveries_in_one_read(
    cloud: Cloud, webhooks: ModuleType, load_handler: Load
):
    made = registered(webhooks)
    record = cloud.put(told(completed()))
    ask(webhooks, REDELIVER, record["pk"])
    cloud.put({"pk": record["pk"], "sk": "chunk#000001#000000", "text": "x"})
    query = load_handler("query")
    cloud.wire.clear()
    answer = ask(query, "GET /jobs/{id}/events", record["pk"])
    assert [one.operation for one in cloud.wire.sent] == ["Query"]
    planned = answer["json"]["events"][-1]
    assert (planned["what"], planned["endpoint"]) == ("delivery.planned", made["id"])
    assert ask(query, "GET /jobs/{id}/events", record["pk"], authorizer=GLOBEX)["statusCode"] == 404


def test_a_delivery_under_way_of_a_job_that_is_deleted_comes_to_nothing(
    cloud: Cloud, webhooks: ModuleType, load_handler: Load
):
    registered(webhooks)
    record = cloud.put(told(completed()))
    ask(webhooks, REDELIVER, record["pk"])
    store = DynamoDeliveries(cloud.client("dynamodb"), cloud.jobs_table)
    (planned,) = deliveries(cloud, record["pk"])
    claim = delivering.claim(claim_id="c", now=clock.now(), invocation_ends=times.after(clock.now(), 60))
    claimed = store.apply((planned["pk"], planned["sk"]), claim)
    held = read(claimed.record or {})
    assert ask(load_handler("control"), "DELETE /jobs/{id}", record["pk"])["statusCode"] == 204
    assert deliveries(cloud, record["pk"]) == []
    taken = delivering.complete(held, now=clock.now(), receipt={"status": 204, "ms": 3}, limits=DeliveryLimits())
    assert store.apply(held.key, taken) == Refused(None)
    assert deliveries(cloud, record["pk"]) == []
    assert ask(webhooks, REDELIVER, record["pk"])["statusCode"] == 410
