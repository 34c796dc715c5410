"""The Ledger port: DynamoDB and the fake keep one holder at a time, and say when they cannot be reached.

(What `admin` and `redrive` build on is tested beside the letters.)"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.ledger import DynamoLedger
from lambdas.core.ports import Ledger, Unavailable
from tests.builders import NOW, any_record, later
from tests.fakes import FakeLedger
from tests.integration.cloud import Cloud

SOON = later(30)
CALLS: dict[str, tuple[str, Callable[[Ledger], Any]]] = {
    "take": ("UpdateItem", lambda ledger: ledger.take("sweep", "me", NOW, SOON)),
    "keep": ("UpdateItem", lambda ledger: ledger.keep("sweep", "me", SOON, {})),
    "give back": ("UpdateItem", lambda ledger: ledger.give_back("sweep", "me", {})),
    "create": ("PutItem", lambda ledger: ledger.create("sweep#1", "sweep", {})),
    "save": ("UpdateItem", lambda ledger: ledger.save("sweep#1", "sweep", {"n": 1})),
    "read": ("GetItem", lambda ledger: ledger.read("sweep#1", "sweep")),
    "page": ("Query", lambda ledger: ledger.page("review", "", 5)),
}


@pytest.fixture
def table(cloud: Cloud) -> DynamoLedger:
    return DynamoLedger(client("dynamodb"), cloud.jobs_table)


@pytest.fixture(params=["dynamodb", "fake"])
def ledger(request: pytest.FixtureRequest) -> Any:
    return FakeLedger() if request.param == "fake" else request.getfixturevalue("table")


def take(ledger: Ledger, holder: str, now: datetime = NOW, seconds: float = 30) -> Any:
    return ledger.take("sweep", holder, now, now + timedelta(seconds=seconds))


@pytest.mark.parametrize(("at", "taken"), [(29.999, False), (30, False), (30.001, True)])
def test_a_lease_ends_with_its_time_to_the_millisecond(ledger: Ledger, at: float, taken: bool):
    assert take(ledger, "one") == {}
    assert (take(ledger, "two", later(at)) is not None) is taken


def test_leases_of_different_names_do_not_know_each_other(ledger: Ledger):
    assert take(ledger, "one") == {}
    assert ledger.take("letters", "two", NOW, SOON) == {}


def test_who_keeps_a_lease_holds_on_to_it(ledger: Ledger):
    take(ledger, "one")
    assert ledger.keep("sweep", "one", later(100), {"cursor": "k", "counts": {"repaired": 3}, "done": [1, 2]})
    assert take(ledger, "two", later(60)) is None
    assert take(ledger, "two", later(101)) == {"cursor": "k", "counts": {"repaired": 3}, "done": [1, 2]}


def test_who_has_lost_its_lease_writes_nothing(ledger: Ledger):
    take(ledger, "one")
    ledger.keep("sweep", "one", SOON, {"at": 1})
    take(ledger, "two", later(31))
    assert not ledger.keep("sweep", "one", later(200), {"at": 2})
    assert not ledger.give_back("sweep", "one", {"at": 3})
    assert take(ledger, "three", later(62)) == {"at": 1}


def test_a_lease_that_nobody_ever_took_is_nobodys(ledger: Ledger):
    assert not ledger.keep("sweep", "one", SOON, {})
    assert not ledger.give_back("sweep", "one", {})
    assert take(ledger, "two") == {}


def test_a_lease_that_was_given_back_is_free_at_once_and_its_state_stays(ledger: Ledger):
    take(ledger, "one")
    assert ledger.give_back("sweep", "one", {"at": 5})
    assert take(ledger, "two", later(0.001)) == {"at": 5}


def test_only_the_fields_that_are_saved_change(ledger: Ledger):
    ledger.create("sweep#1", "sweep", {"state": "RUNNING", "who": "ann", "status": "x"})
    assert ledger.save("sweep#1", "sweep", {"state": "DONE", "size": 7})
    found = ledger.read("sweep#1", "sweep")
    assert found == {"pk": "sweep#1", "sk": "sweep", "state": "DONE", "who": "ann", "status": "x", "size": 7}


def test_a_field_that_is_not_there_fits_no_condition(ledger: Ledger):
    ledger.create("sweep#1", "sweep", {"state": "RUNNING"})
    assert not ledger.save("sweep#1", "sweep", {"state": "DONE"}, {"who": "ann"})


def test_a_float_is_a_mistake_everywhere(ledger: Ledger):
    take(ledger, "one")
    with pytest.raises(TypeError):
        ledger.create("sweep#1", "sweep", {"rate": 0.5})
    with pytest.raises(TypeError):
        ledger.keep("sweep", "one", SOON, {"rate": 0.5})


@pytest.mark.parametrize("name", CALLS)
def test_a_table_that_cannot_be_reached_is_unavailable(cloud: Cloud, table: DynamoLedger, name: str):
    operation, call = CALLS[name]
    cloud.wire.refuse(operation, "AccessDeniedException")
    with pytest.raises(Unavailable):
        call(table)


def test_the_lost_reply_of_taking_and_keeping_is_ones_own_lease(cloud: Cloud, table: DynamoLedger):
    cloud.wire.lose("UpdateItem")
    assert take(table, "one") == {}
    cloud.wire.lose("UpdateItem")
    assert table.keep("sweep", "one", SOON, {"at": 1})
    cloud.wire.lose("UpdateItem")
    assert table.give_back("sweep", "one", {"at": 2})


def test_items_of_operations_are_no_jobs(cloud: Cloud, table: DynamoLedger):
    """Neither the stream's filter (`sk = job`) nor any index meets them."""
    take(table, "one")
    table.create("review", "letter-1", {"status": "open", "tenant": "acme"})
    store = DynamoJobStore(client("dynamodb"), cloud.jobs_table)
    assert store.read("review") is store.read("lease#sweep") is None
    assert store.create(any_record()) is None
    for index in ("due", "by_tenant", "by_upload"):
        rows = cloud.client("dynamodb").scan(TableName=cloud.jobs_table, IndexName=index)["Items"]
        assert {row["sk"]["S"] for row in rows} <= {"job"}


def test_a_repeated_write_finds_its_own_effect_and_counts_as_done(ledger: Ledger):
    item = {"state": "RUNNING", "holder": "me"}
    assert ledger.create("redrive#1", "redrive", item)
    assert ledger.create("redrive#1", "redrive", item)
    assert not ledger.create("redrive#1", "redrive", {**item, "holder": "another"})
    assert ledger.save("redrive#1", "redrive", {"round": 1, "holder": "me"}, {"state": "RUNNING"})
    assert ledger.save("redrive#1", "redrive", {"state": "DONE"}, {"state": "RUNNING"})
    assert ledger.save("redrive#1", "redrive", {"state": "DONE"}, {"state": "RUNNING"})
    assert not ledger.save("redrive#1", "redrive", {"state": "STOPPED"}, {"state": "RUNNING"})


def test_a_page_of_large_items_is_whole(ledger: Ledger):
    """One answer of DynamoDB ends at a megabyte: a short page would look like the last one."""
    for number in range(30):
        ledger.create("review", f"letter-{number:02}", {"patch": "x" * 50_000})
    assert [item["sk"] for item in ledger.page("review", "", 25)] == [f"letter-{n:02}" for n in range(25)]
    assert len(ledger.page("review", "letter-24", 25)) == 5


def test_an_item_is_read_consistently_before_anybody_decides(cloud: Cloud, table: DynamoLedger):
    table.read("review", "letter-1")
    assert '"ConsistentRead": true' in cloud.wire.sent[-1].body
