"""Whoever tries a delivery is killed at each call in turn, before and after it: the next one brings it to its end."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.core.batch import Done
from lambdas.core.sweeping.delivery_plan import GiveUp, plan
from lambdas.core.sweeping.plan import Reap
from lambdas.core.webhooks.expiring import expire
from tests.builders import NOW, TENANT, any_event_body, later
from tests.fakes_webhooks import ENDPOINT, LIMITS, FakeDeliveries, FakePoster, any_delivery_record
from tests.unit.webhook_office import KEY, Office


class Killed(BaseException):
    """The platform has ended the invocation."""


class Reaper:
    """Kills at the `nth` call (1 is the first) of any port: before it is made, or when it was, and nobody heard."""

    def __init__(self, nth: int, *, unheard: bool) -> None:
        self.nth, self.unheard = nth, unheard
        self.calls: list[str] = []

    def watch(self, owner: Any, *names: str) -> None:
        for name in names:
            setattr(owner, name, self._watched(name, getattr(owner, name)))

    def _watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            mine = len(self.calls) == self.nth
            if mine and not self.unheard:
                raise Killed
            answer = call(*args, **kwargs)
            if mine:
                raise Killed
            return answer

        return watched


def office(status: int, reaper: Reaper) -> Office:
    own = Office(store=FakeDeliveries(any_delivery_record()), poster=FakePoster.saying(status, 200))
    reaper.watch(own.store, "apply", "create")
    reaper.watch(own.endpoints, "read", "save", "of_tenant")
    reaper.watch(own.circuits.rows, "apply")
    reaper.watch(own.poster, "post")
    return own


def recover(own: Office) -> None:
    """As the sweep does it, and the dispatcher: until it has ended."""
    for _ in range(5):
        found = own.found()
        if found.is_final:
            return
        own.at(max(own.clock(), found.not_before, found.lease_until or NOW) + (later(1) - NOW))
        match plan(found, own.clock(), LIMITS):
            case Reap(change):
                own.store.apply(KEY, change)
            case GiveUp():
                expire(found, now=own.clock(), store=own.store, limits=LIMITS, notice=own.notices)
        own.hint(own.found().attempt, request_id=f"again-{own.clock()}")


def each_call(status: int) -> list[tuple[int, bool]]:
    """Until there is no such call any more."""
    whole = Reaper(0, unheard=False)
    office(status, whole).hint()
    assert len(whole.calls) > 4
    return list(itertools.product(range(1, len(whole.calls) + 1), (False, True)))


@pytest.mark.parametrize(("nth", "unheard"), each_call(200))
def test_one_that_is_taken_is_delivered_whoever_is_killed(nth: int, unheard: bool) -> None:
    own = office(200, Reaper(nth, unheard=unheard))
    with pytest.raises(Killed):
        own.hint()
    assert own.found().status in (PENDING, PROCESSING, COMPLETED)
    recover(own)
    assert own.found().status == COMPLETED
    assert 1 <= len(own.poster.posted) <= 2, "at least once, and again only when nobody knew"
    assert len({posted.headers["webhook-id"] for posted in own.poster.posted}) == 1
    assert "due_at" not in own.store.records[KEY]


@pytest.mark.parametrize(("nth", "unheard"), each_call(500))
def test_one_that_is_not_taken_is_tried_again_whoever_is_killed(nth: int, unheard: bool) -> None:
    own = office(500, Reaper(nth, unheard=unheard))
    with pytest.raises(Killed):
        own.hint()
    recover(own)
    assert (own.found().status, len(own.poster.posted)) == (COMPLETED, 2 if own.found().tries > 1 else 1)


@pytest.mark.parametrize(("nth", "unheard"), each_call(410))
def test_one_that_is_gone_ends_and_so_does_its_endpoint_whoever_is_killed(nth: int, unheard: bool) -> None:
    own = office(410, Reaper(nth, unheard=unheard))
    own.poster.script = FakePoster.saying(410).script
    with pytest.raises(Killed):
        own.hint()
    recover(own)
    assert own.found().status == FAILED
    assert len(own.poster.posted) <= 2


@pytest.mark.parametrize(("nth", "unheard"), each_call(200))
def test_no_place_is_lost_for_longer_than_its_lease(nth: int, unheard: bool) -> None:
    own = office(200, Reaper(nth, unheard=unheard))
    with pytest.raises(Killed):
        own.hint()
    own.at(later(71))
    for holder in "ab":
        own.circuits.enter(TENANT, ENDPOINT, holder=holder, now=own.clock(), until=later(200))
    row = own.circuits.rows.records["tenant#acme", f"circuit#{ENDPOINT}"]
    assert {row["place_0_holder"], row["place_1_holder"]} == {"a", "b"}


@pytest.mark.parametrize(("nth", "unheard"), [(1, False), (1, True), (2, False), (2, True)])
def test_an_event_is_planned_once_whoever_is_killed(nth: int, unheard: bool) -> None:
    own = office(200, Reaper(nth, unheard=unheard))
    own.store.records.clear()
    with pytest.raises(Killed):
        own.take(any_event_body())
    assert own.take(any_event_body()) == Done("planned")
    assert (list(own.store.records), len(own.store.images)) == ([KEY], 1)
