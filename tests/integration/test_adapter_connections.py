"""The Tickets and Connections ports: DynamoDB and the fakes keep the same promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lambdas.adapters.clients import client
from lambdas.adapters.connections import DynamoConnections, DynamoTickets
from lambdas.core.ports import Unavailable
from lambdas.core.watching.ports import Connection, Connections, Grant, Tickets, Watch
from tests.audience import FakeConnections, FakeTickets
from tests.integration.cloud import Cloud

NOW = 1_795_966_244
ANNA, BEN = "anna=", "ben="
GRANT = Grant("acme", ("one", "two"))
WATCH = Watch(ANNA, "one", "acme", "mark-1", 1, 3)


@pytest.fixture(params=["dynamodb", "fake"])
def tickets(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeTickets()
    cloud: Cloud = request.getfixturevalue("cloud")
    return DynamoTickets(client("dynamodb"), cloud.connections_table)


@pytest.fixture(params=["dynamodb", "fake"])
def connections(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeConnections()
    return request.getfixturevalue("table")


@pytest.fixture
def table(cloud: Cloud) -> DynamoConnections:
    return DynamoConnections(client("dynamodb"), cloud.connections_table)


def items(cloud: Cloud) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cloud.client("dynamodb").scan(TableName=cloud.connections_table)["Items"]
    return found


# --- tickets --------------------------------------------------------------------------------------
def test_a_ticket_is_taken_once(tickets: Tickets) -> None:
    tickets.put("digest", GRANT, NOW + 60)
    assert tickets.take("digest", NOW) == GRANT
    assert tickets.take("digest", NOW) is None


@pytest.mark.parametrize(("now", "good"), [(NOW + 59, True), (NOW + 60, False)])
def test_an_expired_ticket_is_not_taken_though_it_is_still_there(tickets: Tickets, now: int, good: bool) -> None:
    tickets.put("digest", GRANT, NOW + 60)
    assert (tickets.take("digest", now) is not None) is good


def test_a_ticket_that_was_never_put_is_not_taken(tickets: Tickets) -> None:
    assert tickets.take("digest", NOW) is None


def test_a_ticket_whose_taking_was_not_heard_is_lost_and_not_taken_twice(cloud: Cloud) -> None:
    tickets = DynamoTickets(client("dynamodb"), cloud.connections_table)
    tickets.put("digest", GRANT, NOW + 60)
    cloud.wire.lose("DeleteItem")
    assert tickets.take("digest", NOW) is None  # botocore's own repeat finds it gone
    assert items(cloud) == []


def test_a_ticket_expires_by_itself(cloud: Cloud) -> None:
    DynamoTickets(client("dynamodb"), cloud.connections_table).put("digest", GRANT, NOW + 60)
    (item,) = items(cloud)
    assert item["expires_at"] == {"N": str(NOW + 60)}
    described = cloud.client("dynamodb").describe_time_to_live(TableName=cloud.connections_table)
    assert described["TimeToLiveDescription"]["AttributeName"] == "expires_at"


# --- connections ------------------------------------------------------------------------------------
def test_a_connection_is_found_with_what_it_may_watch(connections: Connections) -> None:
    opened = Connection(ANNA, GRANT, NOW)
    connections.open(opened)
    assert connections.find(ANNA) == opened
    assert connections.find(BEN) is None


def test_who_watches_is_found_by_the_job_and_by_the_connection(connections: Connections) -> None:
    watches = [WATCH, replace(WATCH, connection_id=BEN), replace(WATCH, job_id="two")]
    for watch in watches:
        connections.watch(watch, NOW)
    assert connections.watchers_of("one") == watches[:2]
    assert connections.watchers_of("tw") == []
    assert connections.jobs_of(ANNA) == ["one", "two"]
    assert connections.watch_of(ANNA, "one") == WATCH
    assert connections.watch_of(BEN, "two") is None


def test_a_later_watch_of_the_same_job_takes_the_place_of_the_first(connections: Connections) -> None:
    later = replace(WATCH, mark="mark-2", attempt=1, next=0)
    connections.watch(WATCH, NOW)
    connections.watch(later, NOW)
    assert connections.watchers_of("one") == [later]


@pytest.mark.parametrize(
    ("at", "to"), [((1, 3), (1, 4)), ((1, 3), (2, 0)), ((1, 3), (2, 1)), ((0, 0), (1, 0)), ((9, 9), (10, 10))]
)
def test_a_cursor_goes_forward(connections: Connections, at: tuple[int, int], to: tuple[int, int]) -> None:
    connections.watch(replace(WATCH, attempt=at[0], next=at[1]), NOW)
    assert connections.advance(WATCH, *to) is True
    (found,) = connections.watchers_of("one")
    assert (found.attempt, found.next, found.mark, found.tenant) == (*to, "mark-1", "acme")


@pytest.mark.parametrize("to", [(1, 3), (1, 2), (0, 9)])
def test_a_cursor_never_goes_back(connections: Connections, to: tuple[int, int]) -> None:
    connections.watch(WATCH, NOW)
    assert connections.advance(WATCH, *to) is True  # somebody else was as far already
    assert connections.watchers_of("one") == [WATCH]


def test_a_cursor_of_another_watch_is_left_alone(connections: Connections) -> None:
    later = replace(WATCH, mark="mark-2", next=0)
    connections.watch(later, NOW)
    assert connections.advance(WATCH, 1, 9) is False
    assert connections.watchers_of("one") == [later]


def test_a_cursor_of_nobody_is_not_made(connections: Connections) -> None:
    assert connections.advance(WATCH, 1, 9) is False
    assert connections.watchers_of("one") == []


@pytest.mark.parametrize("before", ["", "000001.001", "000001.009"])
def test_what_was_told_goes_forward_and_leaves_the_cursor(connections: Connections, before: str) -> None:
    connections.watch(WATCH, NOW)
    for told in (before, "000001.010", "000001.002"):  # the last one was overtaken
        if told:
            connections.tell(WATCH, told)
    assert connections.watchers_of("one") == [replace(WATCH, told="000001.010")]
    connections.tell(WATCH, "000002.000")
    assert connections.watch_of(ANNA, "one") == replace(WATCH, told="000002.000")


def test_what_was_told_to_another_watch_or_to_nobody_is_left_alone(connections: Connections) -> None:
    connections.tell(WATCH, "000001.001")
    assert connections.watchers_of("one") == []
    later = replace(WATCH, mark="mark-2")
    connections.watch(later, NOW)
    connections.tell(WATCH, "000001.001")
    assert connections.watchers_of("one") == [later]


def test_a_new_watch_has_been_told_nothing(connections: Connections) -> None:
    connections.watch(WATCH, NOW)
    connections.tell(WATCH, "000001.001")
    again = replace(WATCH, mark="mark-2")
    connections.watch(again, NOW)
    assert connections.watchers_of("one") == [again]


def test_who_unwatches_one_job_still_watches_the_other(connections: Connections) -> None:
    other = replace(WATCH, job_id="two")
    for watch in (WATCH, other):
        connections.watch(watch, NOW)
    connections.unwatch(WATCH)
    connections.unwatch(WATCH)
    assert (connections.watchers_of("one"), connections.watchers_of("two")) == ([], [other])
    assert connections.jobs_of(ANNA) == ["two"]


def test_the_end_of_an_old_watch_is_not_that_of_a_new_one(connections: Connections) -> None:
    later = replace(WATCH, mark="mark-2")
    connections.watch(later, NOW)
    connections.unwatch(WATCH)
    assert connections.watchers_of("one") == [later]
    assert connections.jobs_of(ANNA) == ["one"]


def test_a_connection_that_closes_takes_its_watches_along_and_no_others(connections: Connections) -> None:
    other = replace(WATCH, connection_id=BEN)
    connections.open(Connection(ANNA, GRANT, NOW))
    for watch in (WATCH, replace(WATCH, job_id="two"), other):
        connections.watch(watch, NOW)
    connections.close(ANNA)
    connections.close(ANNA)
    assert connections.find(ANNA) is None
    assert (connections.watchers_of("one"), connections.watchers_of("two")) == ([other], [])
    assert connections.jobs_of(ANNA) == []


def test_nothing_is_left_of_who_closed_and_everything_expires(cloud: Cloud, table: DynamoConnections) -> None:
    table.open(Connection(ANNA, GRANT, NOW))
    table.watch(WATCH, NOW)
    assert [item["expires_at"] for item in items(cloud)] == [{"N": str(NOW)}] * 3
    table.close(ANNA)
    assert items(cloud) == []


def test_what_a_close_left_half_done_the_next_one_finds(cloud: Cloud, table: DynamoConnections) -> None:
    table.open(Connection(ANNA, GRANT, NOW))
    table.watch(WATCH, NOW)
    cloud.wire.refuse("DeleteItem", "InternalServerError", 500, part='"job#one"}, "sk": {"S": "conn#')
    with pytest.raises(Unavailable):
        table.close(ANNA)
    assert table.watchers_of("one") == [WATCH]
    cloud.wire.mend()
    table.close(ANNA)
    assert items(cloud) == []


def test_more_watchers_than_one_page_are_all_found(cloud: Cloud) -> None:
    class PagesOfTwo:
        def __getattr__(self, name: str) -> Any:
            return getattr(client("dynamodb"), name)

        def query(self, **asked: Any) -> Any:
            return client("dynamodb").query(Limit=2, **asked)

    table = DynamoConnections(PagesOfTwo(), cloud.connections_table)
    names = [f"{n}=" for n in range(5)]
    for name in names:
        table.watch(replace(WATCH, connection_id=name), NOW)
    assert [watch.connection_id for watch in table.watchers_of("one")] == names


def test_reads_are_consistent(cloud: Cloud, table: DynamoConnections) -> None:
    """Who watched before a chunk was stored must be found by whom that chunk woke."""
    table.find(ANNA)
    table.watch_of(ANNA, "one")
    table.watchers_of("one")
    table.jobs_of(ANNA)
    assert [one.body.count('"ConsistentRead": true') for one in cloud.wire.sent if one.service == "dynamodb"] == [1] * 4


CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "open": ("PutItem", lambda table: table.open(Connection(ANNA, GRANT, NOW))),
    "find": ("GetItem", lambda table: table.find(ANNA)),
    "close": ("DeleteItem", lambda table: table.close(ANNA)),
    "watch": ("PutItem", lambda table: table.watch(WATCH, NOW)),
    "unwatch": ("DeleteItem", lambda table: table.unwatch(WATCH)),
    "advance": ("UpdateItem", lambda table: table.advance(WATCH, 1, 4)),
    "tell": ("UpdateItem", lambda table: table.tell(WATCH, "000001.001")),
    "watch of": ("GetItem", lambda table: table.watch_of(ANNA, "one")),
    "jobs of": ("Query", lambda table: table.jobs_of(ANNA)),
    "watchers of": ("Query", lambda table: table.watchers_of("one")),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_table_that_cannot_be_reached_is_unavailable(cloud: Cloud, table: DynamoConnections, call: str) -> None:
    operation, act = CALLS[call]
    cloud.wire.refuse(operation, "InternalServerError", 500)
    with pytest.raises(Unavailable):
        act(table)


@pytest.mark.parametrize("call", ["put", "take"])
def test_a_table_of_tickets_that_cannot_be_reached_is_unavailable(cloud: Cloud, call: str) -> None:
    tickets = DynamoTickets(client("dynamodb"), cloud.connections_table)
    cloud.wire.refuse("PutItem" if call == "put" else "DeleteItem", "ProvisionedThroughputExceededException")
    with pytest.raises(Unavailable):
        tickets.put("digest", GRANT, NOW) if call == "put" else tickets.take("digest", NOW)
