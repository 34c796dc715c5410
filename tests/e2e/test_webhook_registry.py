"""A tenant's endpoint from its registration to its end: tested, told of jobs, given another secret, told once more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.target import Answer, Target, eventually
from tests.receivers import Came, Receiver

pytestmark = pytest.mark.local_only

PATH = "/hook"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def events(receiver: Receiver, event_type: str) -> list[Came]:
    return [came for came in receiver.came(PATH) if json.loads(came.body)["event_type"] == event_type]


def ask(target: Target, tenant: str, method: str, path: str, body: Any = None) -> Answer:
    raw = None if body is None else json.dumps(body).encode()
    return target.request(method, path, raw, {"content-type": "application/json", "x-local-tenant": tenant})


def test_an_endpoint_is_tested_told_of_a_job_rotated_told_again_and_removed(
    target: Target, tenant: str, nonce: str, receiver: Receiver
) -> None:
    made = ask(target, tenant, "POST", "/webhooks", {"url": receiver.url(PATH), "events": ["job.completed"]})
    assert made.status == 201
    endpoint, own = made.json(), f"/webhooks/{made.json()['id']}"
    assert (
        ask(target, tenant, "POST", "/webhooks", {"url": receiver.url(PATH), "events": ["job.completed"]}).body
        == made.body
    )

    assert ask(target, tenant, "POST", f"{own}/ping").status == 202
    shown = eventually(lambda: ask(target, tenant, "GET", own).json(), lambda one: one["ping"]["status"] == "COMPLETED")
    assert shown["health"]["state"] == "closed"
    (ping,) = events(receiver, "job.ping")
    assert ping.is_signed_with(endpoint["secret"])
    assert json.loads(ping.body)["payload"]["endpoint"] == endpoint["id"]

    job_id = target.submit("summarize", {"text": f"ANN: {nonce}"}, tenant=tenant)
    eventually(lambda: events(receiver, "job.completed"), bool)
    (first,) = events(receiver, "job.completed")
    assert first.is_signed_with(endpoint["secret"])
    assert (json.loads(first.body)["run_id"], first.id) == (job_id, f"{job_id}.1.COMPLETED")

    turned = ask(target, tenant, "POST", f"{own}/rotate").json()
    assert turned["previous"] == endpoint["secret"]
    target.final(job_id, tenant)
    eventually(
        lambda: ask(target, tenant, "GET", f"/jobs/{job_id}/events").json()["events"],
        lambda lines: lines[-1]["what"] == "delivery.delivered",
    )
    again = ask(target, tenant, "POST", f"/jobs/{job_id}/redeliver", {"endpoint": endpoint["id"]})
    assert (again.status, again.json()["deliveries"]) == (202, [{"endpoint": endpoint["id"], "status": "PENDING"}])
    _, second = eventually(lambda: events(receiver, "job.completed"), lambda got: len(got) == 2)
    assert (second.id, second.body) == (first.id, first.body)
    assert [second.is_signed_with(secret) for secret in (turned["secret"], turned["previous"])] == [True, True]
    assert not first.is_signed_with(turned["secret"])

    assert ask(target, tenant, "DELETE", own).status == 204
    assert ask(target, tenant, "GET", own).status == 404
    assert ask(target, tenant, "POST", f"/jobs/{job_id}/redeliver").status == 409


def test_two_tenants_with_one_receiver_see_nothing_of_each_other(
    target: Target, tenant: str, receiver: Receiver
) -> None:
    other = f"{tenant}-b"
    mine, theirs = (
        ask(target, who, "POST", "/webhooks", {"url": receiver.url(PATH)}).json() for who in (tenant, other)
    )
    assert (mine["id"] == theirs["id"], mine["secret"] == theirs["secret"]) == (False, False)
    for path in ("", "/secret"):
        assert ask(target, other, "GET", f"/webhooks/{mine['id']}{path}").status == 404
    for act in ("rotate", "disable", "enable", "ping"):
        assert ask(target, other, "POST", f"/webhooks/{mine['id']}/{act}").status == 404
    assert ask(target, other, "DELETE", f"/webhooks/{mine['id']}").status == 404
    assert [one["id"] for one in ask(target, other, "GET", "/webhooks").json()["webhooks"]] == [theirs["id"]]
    assert ask(target, tenant, "GET", f"/webhooks/{mine['id']}").json()["enabled"] is True


def test_what_is_disabled_hears_nothing_until_it_is_asked_for(
    target: Target, tenant: str, nonce: str, receiver: Receiver
) -> None:
    endpoint = ask(target, tenant, "POST", "/webhooks", {"url": receiver.url(PATH)}).json()
    own = f"/webhooks/{endpoint['id']}"
    assert ask(target, tenant, "POST", f"{own}/disable").json()["disabled_reason"] == "by the tenant"
    job_id = target.submit("summarize", {"text": f"ANN: {nonce}"}, tenant=tenant)
    target.final(job_id, tenant)
    assert ask(target, tenant, "POST", f"/jobs/{job_id}/redeliver").status == 409
    assert ask(target, tenant, "POST", f"{own}/enable").status == 200
    assert receiver.came(PATH) == []
    assert ask(target, tenant, "POST", f"/jobs/{job_id}/redeliver").status == 202
    (only,) = eventually(lambda: events(receiver, "job.completed"), bool)
    assert only.is_signed_with(endpoint["secret"])
    assert json.loads(only.body)["run_id"] == job_id
    assert ask(target, tenant, "DELETE", own).status == 204
