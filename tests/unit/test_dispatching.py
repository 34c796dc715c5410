"""Letters before events before the mark; what was not sent is not marked, and repeats carry the same ids."""

from __future__ import annotations

import json

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PROCESSING
from lambdas.core.dispatching import Sent, dispatch
from lambdas.core.job import Job, from_record
from lambdas.core.ports import Message
from tests.builders import NOW, any_record, final_record, held_record, later
from tests.fakes import FakeJobStore, FakeOutbox, Notices, Trouble
from tests.fakes_workflows import FakeExecutions


def _of(message: Message) -> str:
    return str(json.loads(message.body)["run_id"])


def _dispatch(
    store: FakeJobStore, outbox: FakeOutbox, notices: Notices | None = None, executions: FakeExecutions | None = None
) -> Sent:
    jobs: list[Job] = [from_record(record) for record in store.records.values()]
    return dispatch(
        jobs,
        now=NOW,
        outbox=outbox,
        store=store,
        executions=executions or FakeExecutions(),
        notice=notices or Notices(),
    )


def test_a_pending_job_gets_a_message_and_no_mark() -> None:
    store, outbox, notices = FakeJobStore(any_record(not_before=later(5))), FakeOutbox(), Notices()
    assert _dispatch(store, outbox, notices).failed == set()
    assert [message.delay_s for message in outbox.work] == [6]
    assert store.calls == []
    assert notices.steps == ["dispatched"]


def test_a_failure_is_told_in_the_order_letter_event_mark() -> None:
    outbox, notices = FakeOutbox(), Notices()
    store = FakeJobStore(final_record(FAILED), before=outbox.order.append)
    assert _dispatch(store, outbox, notices).failed == set()
    assert notices.of("handed_over")["status"] == FAILED
    assert outbox.order == ["letter", "event", "hand_over"]
    assert from_record(next(iter(store.records.values()))).is_handed_over


def test_nothing_is_sent_for_a_job_that_somebody_holds() -> None:
    store, outbox = FakeJobStore(held_record()), FakeOutbox()
    assert _dispatch(store, outbox).failed == set()
    assert (outbox.order, store.calls) == ([], [])


@pytest.mark.parametrize("kind", ["letter", "event"])
def test_str_07_a_job_whose_letter_or_event_was_refused_is_not_marked_and_counts_as_failed(kind: str) -> None:
    store = FakeJobStore(final_record(FAILED, pk="bad"), final_record(FAILED, pk="good"))
    outbox = FakeOutbox(lambda what, message: what == kind and _of(message) == "bad")
    notices = Notices()
    assert _dispatch(store, outbox, notices).failed == {0}
    assert "due_shard" in store.records["bad"]
    assert "due_shard" not in store.records["good"]
    assert notices.of("not_sent")["job"].id == "bad"


def test_an_event_is_not_published_before_its_letter_was_accepted() -> None:
    store = FakeJobStore(final_record(FAILED))
    outbox = FakeOutbox(lambda what, message: what == "letter")
    _dispatch(store, outbox)
    assert outbox.events == []


def test_a_refused_hint_is_reported_and_the_others_are_sent() -> None:
    store = FakeJobStore(any_record(pk="a"), any_record(pk="b"), any_record(pk="c"))
    outbox = FakeOutbox(lambda what, message: _of(message) == "b")
    assert _dispatch(store, outbox).failed == {1}
    assert [_of(message) for message in outbox.work] == ["a", "c"]


def test_positions_of_failures_are_those_of_the_jobs_in_a_mixed_batch() -> None:
    store = FakeJobStore(
        held_record(pk="held"),
        final_record(COMPLETED, pk="done"),
        any_record(pk="new"),
        final_record(FAILED, pk="dead"),
        any_record(pk="far", not_before=later(5_000)),
    )
    outbox = FakeOutbox(lambda what, message: _of(message) in {"new", "dead"})
    assert _dispatch(store, outbox).failed == {2, 3}


def test_a_mark_that_could_not_be_written_counts_as_failed() -> None:
    store, outbox, notices = FakeJobStore(final_record(FAILED)), FakeOutbox(), Notices()
    store.troubles.add("hand_over", Trouble.UNSENT)
    assert _dispatch(store, outbox, notices).failed == {0}
    assert "not_marked" in notices.steps
    assert "due_shard" in next(iter(store.records.values()))


def test_str_08_dying_after_the_send_repeats_the_same_event_and_nothing_else() -> None:
    store, outbox = FakeJobStore(final_record(FAILED)), FakeOutbox()
    store.troubles.add("hand_over", Trouble.UNSENT)
    _dispatch(store, outbox)
    assert _dispatch(store, outbox).failed == set()
    for told in (outbox.letters, outbox.events):
        assert len(told) == 2
        assert len({json.loads(message.body)["event_id"] for message in told}) == 1


def test_a_job_reopened_meanwhile_is_not_marked_and_not_failed() -> None:
    dead = final_record(FAILED)
    store, outbox = FakeJobStore(any_record(attempt=2)), FakeOutbox()
    world = {"outbox": outbox, "store": store, "executions": FakeExecutions(), "notice": Notices()}
    assert dispatch([from_record(dead)], now=NOW, **world).failed == set()  # type: ignore[arg-type]
    assert next(iter(store.records.values()))["due_shard"] == dead["due_shard"]


def test_a_lost_reply_to_the_mark_counts_as_marked() -> None:
    store, outbox = FakeJobStore(final_record(COMPLETED)), FakeOutbox()
    store.troubles.add("hand_over", Trouble.LOST_REPLY)
    assert _dispatch(store, outbox).failed == set()


def test_no_empty_batch_is_sent() -> None:
    class Counting(FakeOutbox):
        calls = 0

        def send_work(self, messages: object) -> set[int]:
            type(self).calls += 1
            return set()

    store = FakeJobStore(held_record(status=PROCESSING))
    _dispatch(store, Counting())
    assert Counting.calls == 0
