"""From a message to a held job, or to what becomes of the message: row 3a, line by line."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PENDING, PROCESSING, WAITING
from lambdas.core import times
from lambdas.core.claiming import Acknowledge, Claimed, Early, NoSuchJob, Outcome, claim, reopen
from lambdas.core.envelope import Hint, ReturnedLetter
from lambdas.core.job import UnreadableRecord
from lambdas.core.policy import Limits
from lambdas.core.ports import Unavailable
from tests.builders import (
    CLAIM,
    FINALS,
    JOB_ID,
    NOW,
    any_record,
    final_record,
    handed_over,
    held_record,
    later,
)
from tests.fakes import FakeJobStore, Trouble

LIMITS = Limits()


def _claim(
    store: FakeJobStore, attempt: int = 0, *, now: datetime = NOW, claim_id: str = "me", ends_s: float = 120
) -> Outcome:
    return claim(
        Hint(JOB_ID, attempt, 0),
        claim_id=claim_id,
        invocation_ends=later(ends_s),
        now=now,
        max_tries=5,
        store=store,
        limits=LIMITS,
    )


def _now(store: FakeJobStore) -> dict[str, Any]:
    return store.records[JOB_ID]


# --- row 3 -----------------------------------------------------------------------------------------
def test_a_claimable_job_is_claimed_with_one_write_and_no_read() -> None:
    store = FakeJobStore(any_record(attempt=2, tries=1))
    outcome = _claim(store, attempt=2)
    assert isinstance(outcome, Claimed)
    assert (outcome.job.attempt, outcome.job.tries, outcome.job.claim_id) == (3, 2, "me")
    assert store.calls == ["claim"]


@pytest.mark.parametrize("attempt", [0, 1, 2, 9])
def test_any_message_may_claim_a_claimable_job_however_old_it_is(attempt: int) -> None:
    assert isinstance(_claim(FakeJobStore(any_record(attempt=2)), attempt=attempt), Claimed)


@pytest.mark.parametrize(("early_s", "claimed"), [(1, True), (1.001, False)])
def test_a_clock_that_is_a_second_slow_does_not_make_a_message_early(early_s: float, claimed: bool) -> None:
    assert isinstance(_claim(FakeJobStore(any_record(not_before=later(early_s)))), Claimed) is claimed


def test_a_lapsed_holder_is_replaced_and_the_try_is_charged() -> None:
    store = FakeJobStore(held_record(lease_until=later(-1)))
    outcome = _claim(store)
    assert isinstance(outcome, Claimed)
    assert (outcome.job.attempt, outcome.job.tries, outcome.job.claim_id) == (2, 2, "me")


def test_ddb_05_the_lost_reply_of_a_claim_is_a_claim() -> None:
    store = FakeJobStore(any_record())
    store.troubles.add("claim", Trouble.LOST_REPLY)
    outcome = _claim(store)
    assert isinstance(outcome, Claimed)
    assert (outcome.job.attempt, outcome.job.tries) == (1, 1)


# --- row 3a, in its order --------------------------------------------------------------------------
def test_3a_my_own_claim_on_a_job_that_was_cancelled_meanwhile_is_not_run() -> None:
    assert isinstance(_claim(FakeJobStore(final_record(CANCELLED, claim_id="me"))), Acknowledge)


def test_3a_no_record_is_no_such_job() -> None:
    assert _claim(FakeJobStore()) == NoSuchJob()


def test_3a_a_tombstone_is_acknowledged_though_it_is_no_job_record() -> None:
    store = FakeJobStore({"pk": JOB_ID, "sk": "job", "status": "DELETED", "attempt": 3})
    assert isinstance(_claim(store), Acknowledge)
    assert store.calls == ["claim"]


@pytest.mark.parametrize("status", [*FINALS, WAITING])
def test_3a_a_final_or_waiting_job_is_acknowledged_and_left_alone(status: str) -> None:
    record = final_record(status, lease_until=later(-60), tries=9)
    store = FakeJobStore(record)
    outcome = _claim(store, attempt=1)
    assert isinstance(outcome, Acknowledge)
    assert outcome.why == f"already {status}"
    assert _now(store) == record


@pytest.mark.parametrize("lease_s", [0, 1, 130])
def test_3a_a_live_lease_is_acknowledged(lease_s: int) -> None:
    store = FakeJobStore(held_record(lease_until=later(lease_s), tries=9))
    outcome = _claim(store)
    assert isinstance(outcome, Acknowledge)
    assert outcome.why == "held by somebody else"
    assert _now(store)["status"] == PROCESSING


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (any_record(tries=5), "ATTEMPTS_EXHAUSTED"),
        (any_record(deadline_at=NOW), "DEADLINE_EXCEEDED"),
        (held_record(tries=5, lease_until=later(-1)), "ATTEMPTS_EXHAUSTED"),
        (held_record(deadline_at=later(-1), lease_until=later(-1)), "DEADLINE_EXCEEDED"),
    ],
)
def test_3a_a_claimable_job_that_is_used_up_or_late_fails_and_its_message_is_acknowledged(
    record: dict[str, Any], code: str
) -> None:
    store = FakeJobStore(record)
    assert isinstance(_claim(store), Acknowledge)
    assert (_now(store)["status"], _now(store)["error"]["code"]) == (FAILED, code)


def test_3a_used_up_and_reopened_in_between_is_acknowledged_and_not_failed() -> None:
    store = FakeJobStore(any_record(tries=5, attempt=3))

    def reopened(name: str) -> None:
        if name == "expire":
            store.records[JOB_ID] = any_record(attempt=4)

    store.before = reopened
    assert isinstance(_claim(store), Acknowledge)
    assert _now(store)["status"] == PENDING


def test_3a_an_early_message_of_the_current_attempt_is_hidden_until_the_jobs_time() -> None:
    outcome = _claim(FakeJobStore(any_record(attempt=2, not_before=later(45))), attempt=2)
    assert outcome == Early(45)


def test_3a_an_early_message_of_an_older_attempt_is_acknowledged() -> None:
    store = FakeJobStore(any_record(attempt=2, not_before=later(45)))
    outcome = _claim(store, attempt=1)
    assert isinstance(outcome, Acknowledge)
    assert "older" in outcome.why
    assert _now(store)["status"] == PENDING


def test_3a_a_job_that_became_claimable_a_moment_ago_is_asked_for_again_soon() -> None:
    store = FakeJobStore(any_record())
    original = store._apply

    def refused_once(job_id: str, change: Any) -> Any:
        store._apply = original  # type: ignore[method-assign]
        store.records[JOB_ID] = held_record()
        outcome = original(job_id, change)
        return type(outcome)(any_record())

    store._apply = refused_once  # type: ignore[method-assign]
    outcome = _claim(store)
    assert isinstance(outcome, Early)
    assert 0 < outcome.wait_s <= 5


@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.UNSENT, Trouble.UNHEARD])
def test_3a_a_store_error_is_told_to_the_caller(trouble: Trouble) -> None:
    store = FakeJobStore(any_record())
    store.troubles.add("claim", trouble)
    with pytest.raises(Unavailable):
        _claim(store)


def test_a_record_that_nobody_can_read_is_told_to_the_caller() -> None:
    broken = held_record()
    del broken["body_sha"]
    with pytest.raises(UnreadableRecord):
        _claim(FakeJobStore(broken))


# --- pull_due: N4 ----------------------------------------------------------------------------------
def test_n4_a_claim_pulls_in_a_look_that_a_backlog_pushed_far_ahead() -> None:
    store = FakeJobStore(any_record(due_at=later(hours=1)))
    assert isinstance(_claim(store), Claimed)
    assert store.calls == ["claim", "pull_due"]
    assert _now(store)["due_at"] == times.text(later(130))


@pytest.mark.parametrize("due_s", [-60, 120, 130])
def test_n4_a_look_before_the_lease_ends_costs_no_write(due_s: int) -> None:
    store = FakeJobStore(any_record(due_at=later(due_s)))
    _claim(store)
    assert store.calls == ["claim"]


@pytest.mark.parametrize("due_s", [130.001, 300, 430])
def test_n4_a_job_that_a_sweep_has_sent_again_is_looked_for_when_its_lease_ends(due_s: float) -> None:
    store = FakeJobStore(any_record(due_at=later(due_s)))
    _claim(store)
    assert store.calls == ["claim", "pull_due"]
    assert _now(store)["due_at"] == times.text(later(130))


def test_a_fresh_job_that_is_claimed_late_in_an_invocation_costs_no_second_write() -> None:
    store = FakeJobStore(any_record(due_at=later(LIMITS.grace_s)))
    _claim(store, ends_s=75)
    assert store.calls == ["claim"]


@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.UNSENT, Trouble.UNHEARD])
def test_a_claim_is_not_given_up_because_the_look_could_not_be_pulled_in(trouble: Trouble) -> None:
    store = FakeJobStore(any_record(due_at=later(hours=1)))
    store.troubles.add("pull_due", trouble)
    assert isinstance(_claim(store), Claimed)


# --- row 8: a letter that came back ----------------------------------------------------------------
def _reopen(store: FakeJobStore, attempt: int = 1) -> Outcome:
    return reopen(ReturnedLetter(JOB_ID, attempt), now=later(days=1), store=store, limits=LIMITS)


def test_a_letter_reopens_a_job_that_is_dead_at_the_attempt_it_names() -> None:
    store = FakeJobStore(handed_over(FAILED, tries=5))
    assert isinstance(_reopen(store), Acknowledge)
    assert (_now(store)["status"], _now(store)["attempt"], _now(store)["tries"], _now(store)["run"]) == (
        PENDING,
        2,
        0,
        1,
    )


@pytest.mark.parametrize(
    ("record", "attempt"),
    [
        (handed_over(FAILED, attempt=3), 2),
        (handed_over(FAILED, attempt=3), 4),
        (handed_over(COMPLETED), 1),
        (handed_over(CANCELLED), 1),
        (any_record(attempt=1), 1),
        (held_record(), 1),
        ({"pk": JOB_ID, "sk": "job", "status": "DELETED", "attempt": 1}, 1),
    ],
)
def test_a_letter_does_nothing_to_a_job_in_any_other_state(record: dict[str, Any], attempt: int) -> None:
    store = FakeJobStore(record)
    assert isinstance(_reopen(store, attempt), Acknowledge)
    assert _now(store) == record


def test_the_second_copy_of_a_letter_does_nothing() -> None:
    store = FakeJobStore(handed_over(FAILED))
    _reopen(store)
    reopened = dict(_now(store))
    assert isinstance(_reopen(store), Acknowledge)
    assert _now(store) == reopened


def test_an_ordinary_message_never_reopens_a_failed_job() -> None:
    store = FakeJobStore(handed_over(FAILED))
    assert isinstance(_claim(store, attempt=1), Acknowledge)
    assert _now(store)["status"] == FAILED


def test_a_letter_about_an_unknown_job_is_no_such_job() -> None:
    assert _reopen(FakeJobStore()) == NoSuchJob()


def test_the_lost_reply_of_a_reopening_is_not_repeated() -> None:
    store = FakeJobStore(handed_over(FAILED))
    store.troubles.add("reopen", Trouble.LOST_REPLY)
    _reopen(store)
    assert (_now(store)["attempt"], _now(store)["run"]) == (2, 1)


def test_a_failed_job_that_holds_my_old_claim_is_not_taken_for_claimed() -> None:
    store = FakeJobStore(final_record(FAILED))
    assert isinstance(_claim(store, claim_id=CLAIM), Acknowledge)
