"""From an event to its deliveries, and from a message on their queue to its end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING
from lambdas.core import times
from lambdas.core.batch import Done, Failed
from lambdas.core.changes import delete
from lambdas.core.job import from_record
from lambdas.core.webhooks import batch
from lambdas.core.webhooks.delivery import read
from tests.builders import (
    NOW,
    TENANT,
    any_delivery,
    any_delivery_hint_body,
    any_event_body,
    any_hint_body,
    any_letter_body,
    final_record,
    later,
)
from tests.fakes import FakeJobStore, FakeSender, Trouble
from tests.fakes_webhooks import (
    ENDPOINT,
    EVENT_ID,
    FakeDeliveries,
    any_delivery_record,
    any_endpoint,
    final_delivery_record,
    registered,
)
from tests.unit.webhook_office import KEY, Office

CALLBACK_URL = "https://Hooks.example.com:443/cb?job=1"


def office(*endpoints: Any, **over: Any) -> Office:
    return Office(store=FakeDeliveries(), endpoints=registered(*endpoints), **over)


def planned(own: Office) -> dict[str, dict[str, Any]]:
    """By endpoint."""
    return {record["endpoint"]: record for record in own.store.records.values()}


def with_callback(*endpoints: Any, url: str = CALLBACK_URL, **over: Any) -> Office:
    record = {**final_record(COMPLETED, **over), "callback_url": url}
    return office(*endpoints, jobs=FakeJobStore(record))


EVENT = any_event_body()
CALLED_BACK = any_event_body(payload={"callback": True})


def test_an_event_becomes_a_delivery_for_each_endpoint() -> None:
    own = office(any_endpoint(), any_endpoint(id="e2", url="https://two.example.com/"))
    assert own.take(EVENT) == Done("planned")
    assert planned(own).keys() == {ENDPOINT, "e2"}
    found = own.found()
    assert (found.status, found.tenant, found.event_type, found.event_id) == (
        PENDING,
        TENANT,
        "job.completed",
        EVENT_ID,
    )
    assert found.registration == any_endpoint().registration
    assert own.jobs.calls == ["read"], "the job's record is not touched, and read once"


def test_what_is_sent_is_the_event_with_the_number_of_its_jobs_attempt() -> None:
    own = office(any_endpoint())
    own.take(any_event_body(attempt=7))
    (record,) = own.store.records.values()
    event = json.loads(any_event_body(attempt=7))
    assert json.loads(record["body"]) == {**event, "payload": {**event["payload"], "sequence": 7}}
    assert (read(record).sequence, record["body"].isascii()) == (7, True)


def left_over(age_days: float, **over: Any) -> Office:
    """A delivery of this event stands there, made so long ago."""
    own = office(any_endpoint())
    made = later(days=-age_days)
    own.store = FakeDeliveries(final_delivery_record(FAILED, created_at=made, history_left_out=3, **over))
    return own


def of_a_job_accepted(at: Any) -> str:
    return any_event_body(payload={"created_at": at})


def test_what_an_earlier_job_of_the_same_key_has_left_makes_room_for_the_delivery_of_this_one() -> None:
    """Its record has expired, so that the key began this one; the ids of its events are the same."""
    own = left_over(91, attempt=7)
    assert own.take(of_a_job_accepted(times.text(NOW))) == Done("planned")
    found, fresh = own.found(), any_delivery_record(status=PENDING)
    assert (found.status, found.attempt, found.tries, found.error, found.expires_at) == (PENDING, 8, 0, None, None)
    assert (found.created_at, found.due_at, found.claim_id, found.history_left_out) == (
        NOW,
        read(fresh).due_at,
        None,
        0,
    )
    assert json.loads(found.body)["payload"]["created_at"] == times.text(NOW)
    assert [line["what"] for line in found.history] == ["planned"]
    assert own.take(of_a_job_accepted(times.text(NOW))) == Done("planned")
    assert own.found() == found, "a repeat finds it"


@pytest.mark.parametrize(
    ("age_days", "accepted"),
    [(0, times.text(later(-60))), (0.9, times.text(NOW)), (91, "soon"), (91, None), (91, {})],
)
def test_a_delivery_of_this_very_job_stays_as_it_is(age_days: float, accepted: Any) -> None:
    """Clocks differ; and where an event does not say when its job began, nothing is taken for older."""
    own = left_over(age_days)
    before = own.found()
    own.take(of_a_job_accepted(accepted))
    assert own.found() == before


@pytest.mark.parametrize("made", [None, "soon", 7])
def test_one_that_does_not_say_when_it_was_made_makes_no_room(made: Any) -> None:
    """Somebody has written it by hand."""
    own = office(any_endpoint())
    own.store = FakeDeliveries({**final_delivery_record(FAILED), "created_at": made})
    before = own.store.records[KEY]
    assert own.take(of_a_job_accepted(times.text(NOW))) == Done("planned")
    assert own.store.records[KEY] == before


def test_one_that_is_still_to_be_delivered_makes_no_room() -> None:
    own = office(any_endpoint())
    own.store = FakeDeliveries(any_delivery_record(created_at=later(days=-91)))
    before = own.found()
    own.take(of_a_job_accepted(times.text(NOW)))
    assert own.found() == before


@pytest.mark.parametrize("status", [COMPLETED, FAILED, CANCELLED])
def test_an_endpoint_hears_of_what_it_wants_to(status: str) -> None:
    event_type = f"job.{status.lower()}"
    own = office(
        any_endpoint(),
        any_endpoint(id="e2", events=(event_type,)),
        any_endpoint(id="e3", events=tuple({"job.completed", "job.failed", "job.cancelled"} - {event_type})),
        any_endpoint(id="e4", enabled=False),
        any_endpoint(id="e5", tenant="other"),
        any_endpoint(id="callback"),
    )
    own.take(any_event_body(status=status))
    assert planned(own).keys() == {ENDPOINT, "e2"}


def test_wh_12_a_duplicate_event_makes_nothing_new_whatever_has_become_of_the_first() -> None:
    own = office(any_endpoint())
    own.store = FakeDeliveries(final_delivery_record())
    assert own.take(EVENT) == Done("planned")
    assert own.store.images == []


def test_a_lost_reply_makes_no_second_one() -> None:
    own = office(any_endpoint())
    own.store.troubles.add("create", Trouble.LOST_REPLY)
    assert own.take(EVENT) == Done("planned")
    assert len(own.store.images) == 1


def test_an_event_of_a_tenant_without_endpoints_is_done() -> None:
    own = office()
    assert own.take(EVENT) == Done("planned")
    assert own.store.records == {}


def test_endpoints_are_read_once_in_a_batch() -> None:
    own = office(any_endpoint())
    planner = own.planner
    desk = batch.Desk(planner, own.courier, own.letters, own.clock())
    for job in ("a" * 32, "b" * 32):
        batch.handle(any_delivery(any_event_body(job)), desk, notice=own.notices)
    assert own.endpoints.calls == ["of_tenant"]
    assert len(own.store.records) == 2


def test_a_broken_record_of_one_endpoint_keeps_nothing_from_the_others() -> None:
    own = office(any_endpoint(), any_endpoint(id="e2"))
    own.endpoints.records[TENANT, "e2"]["secret_version"] = "?"
    assert own.take(EVENT) == Done("planned")
    assert planned(own).keys() == {ENDPOINT}
    assert "unreadable_endpoint" in own.notices.steps


# --- callbacks -------------------------------------------------------------------------------------
def test_a_callback_is_planned_from_the_record() -> None:
    own = with_callback(any_endpoint())
    own.take(CALLED_BACK)
    found = planned(own)
    (callback,) = (one for one in found if one.startswith("callback-"))
    assert found.keys() == {ENDPOINT, callback}
    assert found[callback]["url"] == "https://hooks.example.com/cb?job=1"
    assert "url" not in found[ENDPOINT]


def test_without_the_events_word_and_endpoints_no_record_is_read() -> None:
    own = with_callback()
    own.take(EVENT)
    assert (own.jobs.calls, own.store.records) == ([], {})


def test_without_the_events_word_nobody_is_called_back() -> None:
    own = with_callback(any_endpoint())
    own.take(EVENT)
    assert planned(own).keys() == {ENDPOINT}


@pytest.mark.parametrize("event", [EVENT, CALLED_BACK])
def test_of_a_job_that_was_deleted_meanwhile_nobody_is_told_and_nothing_is_left_beside_it(event: str) -> None:
    """As of one that is deleted when its deliveries are planned: they go with it."""
    record = final_record(COMPLETED, callback_url=CALLBACK_URL)
    handed_over = {name: value for name, value in record.items() if name not in ("due_at", "due_shard")}
    own = office(any_endpoint(), jobs=FakeJobStore(delete(from_record(handed_over)).applied_to(handed_over)))
    assert own.take(event) == Done("planned")
    assert (own.store.records, own.notices.of("planned")["endpoints"]) == ({}, 0)


def test_of_a_job_whose_record_has_expired_its_endpoints_are_told() -> None:
    own = office(any_endpoint())
    assert own.take(CALLED_BACK) == Done("planned")
    assert planned(own).keys() == {ENDPOINT}


@pytest.mark.parametrize("event", [EVENT, CALLED_BACK])
def test_an_event_of_another_tenant_than_its_jobs_is_buried_and_tells_nobody(event: str) -> None:
    own = with_callback(any_endpoint(), tenant="other")
    assert own.take(event) == Done("buried")
    assert (own.store.records, len(own.letters.sent)) == ({}, 1)
    assert "FOREIGN_TENANT" in own.letters.sent[0].body


def test_a_url_that_is_not_called_any_more_is_told_and_keeps_nothing_from_the_others() -> None:
    own = with_callback(any_endpoint(), url="http://127.0.0.1/")
    assert own.take(CALLED_BACK) == Done("planned")
    assert planned(own).keys() == {ENDPOINT}
    assert "unusable_callback" in own.notices.steps


# --- what becomes of the message -------------------------------------------------------------------
@pytest.mark.parametrize("call", ["create", "of_tenant", "read"])
@pytest.mark.parametrize("trouble", [Trouble.UNSENT, Trouble.UNHEARD])
def test_a_store_that_is_away_leaves_the_message_and_a_repeat_makes_what_is_missing(
    call: str, trouble: Trouble
) -> None:
    own = with_callback(any_endpoint(), any_endpoint(id="e2", url="https://two.example.com/"))
    troubles = {"create": own.store.troubles, "of_tenant": own.endpoints.troubles, "read": own.jobs.troubles}
    troubles[call].add(call, trouble)
    first = own.take(CALLED_BACK)
    assert isinstance(first, Failed) or trouble is Trouble.UNHEARD
    assert own.take(CALLED_BACK) == Done("planned")
    assert len(own.store.records) == 3


@pytest.mark.parametrize("body", [
    "", "no json", "{}", "[]", any_hint_body(), any_letter_body(), EVENT.replace('"schema": 1', '"schema": 0'),
    any_event_body(event_type="job.walking"), any_delivery_hint_body(attempt=-1),
    any_event_body(tenant_id="../other"),
])  # fmt: skip
def test_what_is_no_message_of_ours_is_buried_with_a_letter(body: str) -> None:
    own = office(any_endpoint())
    assert own.take(body) == Done("buried")
    assert (len(own.letters.sent), own.store.records) == (1, {})


def test_what_cannot_be_buried_stays_on_the_queue() -> None:
    own = office(letters=FakeSender(lambda message: True))
    assert isinstance(own.take("no json"), Failed)


def test_a_newer_message_is_left_for_the_newer_code() -> None:
    own = office(any_endpoint())
    assert isinstance(own.take(EVENT.replace('"schema": 1', '"schema": 2')), Failed)
    assert own.letters.sent == []


def test_a_broken_record_is_buried() -> None:
    own = office(any_endpoint())
    own.store = FakeDeliveries({**final_delivery_record(), "tries": "many"})
    assert own.hint(1, key=KEY) == Done("buried")


@pytest.mark.parametrize(("body", "receives", "suspect"), [
    (EVENT, 1, False), (EVENT, 2, True), (any_delivery_hint_body(), 1, False),
    (any_delivery_hint_body(crashes=1), 1, True),
])  # fmt: skip
def test_who_was_received_or_has_crashed_before_runs_alone(body: str, receives: int, suspect: bool) -> None:
    assert batch.is_suspect(any_delivery(body, receives=receives)) is suspect
