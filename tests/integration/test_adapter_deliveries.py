"""The DeliveryStore and Circuits ports: what they promise, kept by DynamoDB's adapters and by the fakes alike."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.adapters.circuits import DynamoCircuits
from lambdas.adapters.clients import client
from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.contracts.names import FAILED
from lambdas.core import ids, times
from lambdas.core.ports import Applied, Refused, Unavailable
from lambdas.core.protocol import Change
from lambdas.core.webhooks import circuits
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks.circuits import FAILURES_MAX, PROBE
from lambdas.core.webhooks.delivery import read
from lambdas.core.webhooks.places import Places
from lambdas.core.webhooks.ports import Busy, DeliveryStore, Entered, Key, Open
from tests.builders import JOB_ID, NOW, TENANT, any_record, later
from tests.fakes_webhooks import (
    ENDPOINT,
    LIMITS,
    FakeCircuits,
    FakeDeliveries,
    answered,
    any_delivery,
    any_delivery_record,
    final_delivery,
    final_delivery_record,
    held_delivery,
    held_delivery_record,
)
from tests.integration.cloud import Cloud

WHY = {"code": "HTTP_500", "message": "its endpoint answered 500"}
LAPSED: dict[str, Any] = {"lease_until": later(-1)}
CHANGES: dict[str, tuple[dict[str, Any], Change]] = {
    "claim": (any_delivery_record(), changes.claim(claim_id="me", now=NOW, invocation_ends=later(60))),
    "pull_due": (held_delivery_record(), changes.pull_due(held_delivery())),
    "complete": (
        held_delivery_record(error=WHY),
        changes.complete(held_delivery(), now=NOW, receipt=changes.receipt(answered()), limits=LIMITS),
    ),
    "retry": (
        held_delivery_record(),
        changes.retry(held_delivery(), now=NOW, at=later(5), why=WHY, refused=True, limits=LIMITS, receipt={}),
    ),
    "park": (held_delivery_record(), changes.park(held_delivery(), now=NOW, until=later(5), why=WHY, limits=LIMITS)),
    "leave": (any_delivery_record(), changes.leave(attempt=0, now=NOW)),
    "fail": (held_delivery_record(), changes.fail(held_delivery(), now=NOW, why=WHY, limits=LIMITS, receipt={})),
    "expire": (held_delivery_record(**LAPSED), changes.expire(held_delivery(**LAPSED), now=NOW, limits=LIMITS)),
    "reopen": (final_delivery_record(FAILED), changes.reopen(final_delivery(FAILED), now=NOW, limits=LIMITS)),
    "reap": (held_delivery_record(**LAPSED), changes.reap(held_delivery(**LAPSED), now=NOW, limits=LIMITS)),
    "push_due": (any_delivery_record(), changes.push_due(any_delivery(), later(900))),
    "hasten": (any_delivery_record(), changes.hasten(any_delivery(), now=NOW, limits=LIMITS)),
}


def key_of(record: Any) -> Key:
    return record["pk"], record["sk"]


KEY = key_of(any_delivery_record())


@pytest.fixture(params=["dynamodb", "fake"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeDeliveries()
    cloud: Cloud = request.getfixturevalue("cloud")
    return DynamoDeliveries(client("dynamodb"), cloud.jobs_table)


@pytest.fixture(params=["dynamodb", "fake"])
def places(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeCircuits(places=2)
    cloud: Cloud = request.getfixturevalue("cloud")
    return DynamoCircuits(client("dynamodb"), cloud.jobs_table, places=2)


# --- deliveries ------------------------------------------------------------------------------------
def test_it_is_created_once_and_a_repeat_finds_what_stands_there(store: DeliveryStore):
    record = any_delivery_record()
    assert store.create(record) is None
    assert store.create({**record, "body": "another", "attempt": 7}) == record
    assert store.read(KEY) == record
    assert store.read((JOB_ID, "delivery#other#x")) is None


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_applied_as_computed_and_a_repeat_of_it_is_a_success(store: DeliveryStore, name: str):
    record, change = CHANGES[name]
    store.create(record)
    expected = change.applied_to(record)
    assert store.apply(KEY, change) == Applied(expected)
    assert store.apply(KEY, change) == Applied(expected)
    assert store.read(KEY) == expected


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_has_moved_on_is_refused_with_the_record_as_it_stands(store: DeliveryStore, name: str):
    record, change = CHANGES[name]
    moved_on = {**record, "attempt": 40, "tries": 40, "claim_id": "somebody", "status": "WAITING"}
    store.create(moved_on)
    assert store.apply(KEY, change) == Refused(moved_on)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_is_not_there_makes_nothing(store: DeliveryStore, name: str):
    assert store.apply(KEY, CHANGES[name][1]) == Refused(None)
    assert store.read(KEY) is None


def test_a_job_and_its_deliveries_are_found_together_without_its_text_and_without_others(store: DeliveryStore):
    mine = [any_delivery_record(endpoint=name) for name in ("e2", "e1", "callback-0123456789abcdef")]
    job = any_record()
    chunk = {"pk": JOB_ID, "sk": "chunk#000001#000000", "text": "x"}
    for record in (*mine, job, chunk, any_delivery_record(pk="another"), any_record(pk="another")):
        store.create(record)
    assert store.beside(JOB_ID) == [mine[2], mine[1], mine[0], job]
    assert store.beside("nothing") == []


def test_what_is_due_is_found_oldest_first_page_by_page(store: DeliveryStore):
    shard, made = "delivery#0", []
    for number, offset in enumerate([-50, -40, -40, -40, -30, 5]):
        record = any_delivery_record(endpoint=f"e{number}", due_at=later(offset), due_shard=shard)
        store.create(record)
        made.append((times.text(later(offset)), key_of(record)))
    store.create(any_delivery_record(endpoint="other", due_at=later(-60), due_shard="delivery#1"))
    whole = store.due(shard, NOW, None, 100)
    assert sorted(whole) == sorted(made[:5])
    assert [at for at, _ in whole] == sorted(at for at, _ in whole)
    found, after = [], None
    while page := store.due(shard, NOW, after, 2):
        found += page
        after = page[-1]
    assert found == whole


def test_what_has_ended_is_not_due(store: DeliveryStore):
    record, change = CHANGES["complete"]
    store.create({**record, "due_at": times.text(later(-5))})
    shard = record["due_shard"]
    assert [key for _, key in store.due(shard, NOW, None, 5)] == [KEY]
    store.apply(KEY, change)
    assert store.due(shard, NOW, None, 5) == []


def test_who_looks_for_due_jobs_never_meets_a_delivery_and_the_other_way_round(cloud: Cloud):
    jobs = DynamoJobStore(client("dynamodb"), cloud.jobs_table)
    store = DynamoDeliveries(client("dynamodb"), cloud.jobs_table)
    jobs.create(any_record(due_at=later(-5)))
    for number in range(20):
        store.create(any_delivery_record(endpoint=f"e{number}", due_at=later(-5)))
    assert [job for shard in ids.due_shards() for _, job in jobs.due(shard, NOW, None, 100)] == [JOB_ID]
    found = [key for shard in ids.delivery_shards() for _, key in store.due(shard, NOW, None, 100)]
    assert len(found) == len(set(found)) == 20
    assert all(sk.startswith("delivery#") for _, sk in found)


@pytest.mark.parametrize("name", [name for name in CHANGES if name not in ("leave", "push_due", "hasten", "pull_due")])
def test_a_write_whose_reply_was_lost_is_recognised_as_its_own(cloud: Cloud, name: str):
    record, change = CHANGES[name]
    store = DynamoDeliveries(client("dynamodb"), cloud.jobs_table)
    store.create(record)
    cloud.wire.clear()
    cloud.wire.lose("UpdateItem")
    assert store.apply(KEY, change) == Applied(change.applied_to(record))
    assert cloud.wire.count("UpdateItem") == 2


def test_who_decides_reads_consistently_and_a_store_that_is_away_says_so(cloud: Cloud):
    store = DynamoDeliveries(client("dynamodb"), cloud.jobs_table)
    store.read(KEY)
    store.beside(JOB_ID)
    assert ['"ConsistentRead": true' in one.body for one in cloud.wire.sent] == [True, True]
    calls: dict[str, Any] = {
        "GetItem": lambda: store.read(KEY),
        "PutItem": lambda: store.create(any_delivery_record()),
        "UpdateItem": lambda: store.apply(KEY, CHANGES["claim"][1]),
        "Query": lambda: store.beside(JOB_ID),
    }
    for operation, call in calls.items():
        cloud.wire.refuse(operation, "AccessDeniedException")
        with pytest.raises(Unavailable):
            call()


def test_an_item_that_cannot_be_read_hides_no_other(cloud: Cloud):
    store = DynamoDeliveries(client("dynamodb"), cloud.jobs_table)
    store.create(any_delivery_record())
    broken = {"pk": {"S": JOB_ID}, "sk": {"S": "delivery#e0#x"}, "tries": {"N": "0.5"}}
    cloud.client("dynamodb").put_item(TableName=cloud.jobs_table, Item=broken)
    assert [read(found).key for found in store.beside(JOB_ID)] == [KEY]


# --- circuits --------------------------------------------------------------------------------------
def enter(own: Places, holder: str, at_s: float = 0) -> Entered | Busy | Open:
    return own.enter(TENANT, ENDPOINT, holder=holder, now=later(at_s), until=later(at_s + 70))


def leave(own: Places, holder: str, slot: int = 0, at_s: float = 0, *, ok: bool = False) -> None:
    own.leave(TENANT, ENDPOINT, holder=holder, slot=slot, now=later(at_s), ok=ok, note="HTTP 200" if ok else "HTTP 500")


def test_places_are_leases(places: Places):
    assert [enter(places, holder) for holder in "aba"] == [Entered(0), Entered(1), Entered(0)]
    assert enter(places, "c") == Busy()
    leave(places, "b", 1, ok=True)
    assert enter(places, "c") == Entered(1)
    assert enter(places, "d", 71) == Entered(0)
    leave(places, "a", 0, 72)
    assert enter(places, "e", 71) == Entered(1)


def test_failures_open_it_a_probe_decides_and_a_success_closes_it(places: Places):
    for number in range(FAILURES_MAX):
        assert enter(places, f"h{number}") == Entered(0)
        leave(places, f"h{number}")
    assert enter(places, "x") == Open(later(60))
    assert enter(places, "p", 60) == Entered(PROBE, probe=True)
    assert enter(places, "q", 60) == Busy()
    leave(places, "p", PROBE, 61)
    assert enter(places, "x", 62) == Open(later(61 + 120))
    assert enter(places, "p", 181) == Entered(PROBE, probe=True)
    leave(places, "p", PROBE, 182, ok=True)
    assert enter(places, "x", 182) == Entered(0)
    found = places.read(TENANT, ENDPOINT)
    assert (found.state(later(182)), found.failures, found.note, found.noted_at) == (
        "closed",
        0,
        "HTTP 200",
        later(182),
    )


def test_a_human_closes_it_and_of_what_was_never_called_there_is_no_row(places: Places):
    places.reset(TENANT, ENDPOINT)
    assert places.read(TENANT, ENDPOINT) == circuits.Circuit()
    for number in range(FAILURES_MAX):
        enter(places, f"h{number}")
        leave(places, f"h{number}")
    places.reset(TENANT, ENDPOINT)
    assert enter(places, "x") == Entered(0)


@pytest.mark.parametrize("ok", [True, False])
def test_a_lost_reply_takes_no_second_place_and_counts_no_failure_twice(cloud: Cloud, ok: bool):
    own = DynamoCircuits(client("dynamodb"), cloud.jobs_table, places=2)
    cloud.wire.lose("UpdateItem")
    assert enter(own, "a") == Entered(0)
    cloud.wire.lose("UpdateItem")
    leave(own, "a", ok=ok)
    assert own.read(TENANT, ENDPOINT).failures == (0 if ok else 1)
    assert [enter(own, holder) for holder in "bcd"] == [Entered(0), Entered(1), Busy()]


def test_mostly_one_write_takes_a_place_and_one_gives_it_back(cloud: Cloud):
    own = DynamoCircuits(client("dynamodb"), cloud.jobs_table, places=2)
    enter(own, "a")
    leave(own, "a", ok=True)
    assert [one.operation for one in cloud.wire.sent] == ["UpdateItem", "UpdateItem"]


def test_a_circuit_is_no_endpoint_and_nobody_elses(cloud: Cloud):
    own = DynamoCircuits(client("dynamodb"), cloud.jobs_table, places=1)
    assert enter(own, "a") == Entered(0)
    assert own.enter("other", ENDPOINT, holder="a", now=NOW, until=later(70)) == Entered(0)
    assert own.enter(TENANT, "e2", holder="a", now=NOW, until=later(70)) == Entered(0)
    items = cloud.client("dynamodb").scan(TableName=cloud.jobs_table)["Items"]
    assert sorted((one["pk"]["S"], one["sk"]["S"]) for one in items) == [
        ("tenant#acme", f"circuit#{ENDPOINT}"), ("tenant#acme", "circuit#e2"), ("tenant#other", f"circuit#{ENDPOINT}"),
    ]  # fmt: skip
