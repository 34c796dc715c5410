"""A tenant's endpoints in the table: registered once, changed under a condition, apart from other tenants'; the adapter
on moto and the fake that the unit tests trust."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lambdas.adapters import clients, clock
from lambdas.adapters.endpoints import DynamoEndpoints
from lambdas.core.ports import Unavailable
from lambdas.core.webhooks import circuits
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks.endpoint import EVENTS
from tests.fakes import FakeEndpoints
from tests.integration.cloud import Cloud


@pytest.fixture(params=["dynamodb", "fake"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeEndpoints()
    return on_the_table(request.getfixturevalue("cloud"))


def on_the_table(cloud: Cloud) -> DynamoEndpoints:
    return DynamoEndpoints(clients.client("dynamodb"), cloud.jobs_table)


def a_record(url: str = "https://a.test/", tenant: str = "acme", **over: Any) -> dict[str, Any]:
    made = endpoints.new(tenant, url, events=EVENTS, description="x", now=clock.now())
    return {**endpoints.record_of(made), **over}


def test_what_was_created_is_read_and_listed_by_its_tenant_alone(store: Any):
    records = [a_record(f"https://{name}.test/") for name in "abc"]
    assert all(store.create(record) for record in records)
    store.create(a_record(tenant="acme2"))  # its partition begins with the other's name
    assert list(store.of_tenant("acme")) == sorted(records, key=lambda one: str(one["id"]))
    assert store.read("acme", records[0]["id"]) == records[0]
    assert store.read("acme2", records[1]["id"]) is None
    assert store.of_tenant("nobody") == []


def test_a_second_one_under_the_same_id_is_refused_and_its_own_effect_is_not(store: Any):
    record = a_record()
    assert store.create(record)
    assert store.create(record)
    assert not store.create({**record, "description": "y"})
    assert store.read("acme", record["id"]) == record


def test_a_change_is_written_only_over_what_was_seen(store: Any):
    record = a_record(secret_version=7)
    store.create(record)
    assert store.save("acme", record["id"], {"secret_version": 8}, {"secret_version": 7})
    assert store.save("acme", record["id"], {"secret_version": 8}, {"secret_version": 7})  # my own, seen again
    assert not store.save("acme", record["id"], {"secret_version": 9}, {"secret_version": 7})
    assert not store.save("acme", "f" * 16, {"secret_version": 9}, {})
    assert not store.save("globex", record["id"], {"secret_version": 9}, {"secret_version": 8})
    assert store.read("acme", record["id"])["secret_version"] == 8


def test_what_is_removed_is_gone_and_once_more_is_the_same(store: Any):
    record, other = a_record(), a_record("https://b.test/")
    store.create(record)
    store.create(other)
    store.remove("globex", record["id"])
    for _ in range(2):
        store.remove("acme", record["id"])
    assert list(store.of_tenant("acme")) == [other]


def test_many_at_once_under_one_id_are_one(cloud: Cloud):
    record, store = a_record(), on_the_table(cloud)  # boto3 makes clients in one thread at a time
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda n: store.create({**record, "description": str(n)}), range(16)))
    assert sum(made) == 1


def test_the_circuit_of_an_endpoint_is_its_own_and_no_endpoint(cloud: Cloud):
    for tenant, name in (("acme", "e1"), ("acme", "e2"), ("globex", "e3")):
        pk, sk = circuits.key(tenant, name)
        cloud.put({"pk": pk, "sk": sk, "failures": 4})
    store = on_the_table(cloud)
    store.create(a_record())
    assert store.circuit("acme", "e1")["failures"] == 4
    assert store.circuit("acme", "e3") == store.circuit("globex", "e1") == {}
    assert len(store.of_tenant("acme")) == 1


def test_the_circuit_of_an_endpoint_goes_with_it_and_no_other(cloud: Cloud):
    """Else one that is registered again under its URL would be left alone for what the one before has done."""
    store, record = on_the_table(cloud), a_record()
    store.create(record)
    for tenant, name in (("acme", record["id"]), ("acme", "e2"), ("globex", record["id"])):
        pk, sk = circuits.key(tenant, name)
        cloud.put({"pk": pk, "sk": sk, "failures": 4})
    store.remove("acme", record["id"])
    assert store.circuit("acme", record["id"]) == {}
    assert store.circuit("acme", "e2")["failures"] == store.circuit("globex", record["id"])["failures"] == 4


@pytest.mark.parametrize("which", ["circuit", "endpoint"])
def test_a_removal_that_broke_off_leaves_nothing_when_it_is_asked_for_again(cloud: Cloud, which: str):
    store, record = on_the_table(cloud), a_record()
    store.create(record)
    pk, sk = circuits.key("acme", record["id"])
    cloud.put({"pk": pk, "sk": sk, "failures": 4})
    cloud.wire.cut("DeleteItem", times=10, part=which)
    with pytest.raises(Unavailable):
        store.remove("acme", record["id"])
    assert store.read("acme", record["id"]) == record
    cloud.wire.mend()
    store.remove("acme", record["id"])
    assert (store.read("acme", record["id"]), store.circuit("acme", record["id"])) == (None, {})


def test_reads_are_consistent_and_ask_for_one_partition(cloud: Cloud):
    on_the_table(cloud).create(a_record())
    cloud.wire.clear()
    on_the_table(cloud).of_tenant("acme")
    (query,) = cloud.wire.sent
    asked = json.loads(query.body)
    assert (query.operation, asked["ConsistentRead"]) == ("Query", True)
    assert asked["ExpressionAttributeValues"][":pk"] == {"S": "tenant#acme"}


def test_a_lost_reply_is_no_refusal(cloud: Cloud):
    store, record = on_the_table(cloud), a_record(secret_version=7)
    cloud.wire.lose("PutItem")
    assert store.create(record)
    cloud.wire.lose("UpdateItem")
    assert store.save("acme", record["id"], {"secret_version": 8}, {"secret_version": 7})
    assert store.read("acme", record["id"]) == {**record, "secret_version": 8}


@pytest.mark.parametrize(
    ("act", "operation"),
    [
        ("of_tenant", "Query"),
        ("circuit", "GetItem"),
        ("read", "GetItem"),
        ("create", "PutItem"),
        ("save", "UpdateItem"),
        ("remove", "DeleteItem"),
    ],
)
def test_a_store_that_cannot_be_reached_says_so(cloud: Cloud, act: str, operation: str):
    store = on_the_table(cloud)
    acts: dict[str, Any] = {
        "of_tenant": lambda: store.of_tenant("acme"),
        "circuit": lambda: store.circuit("acme", "e"),
        "read": lambda: store.read("acme", "e"),
        "create": lambda: store.create(a_record()),
        "save": lambda: store.save("acme", "e", {"enabled": True}, {}),
        "remove": lambda: store.remove("acme", "e"),
    }
    cloud.wire.cut(operation, times=10)
    with pytest.raises(Unavailable):
        acts[act]()
