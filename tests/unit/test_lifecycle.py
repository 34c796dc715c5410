"""Cancelling, starting again and deleting: which states allow it, what races do to it, and what a repeat finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, FINAL, OPEN, PENDING, PROCESSING
from lambdas.core import changes, ids, times
from lambdas.core.changes import OF_A_TOMBSTONE
from lambdas.core.job import Job, UnreadableRecord, from_record
from lambdas.core.lifecycle import Cancelled, Deleted, Office, Reopened, cancel, delete, no_parameters, retry
from lambdas.core.policy import Limits
from lambdas.core.ports import Unavailable
from lambdas.core.problems import Problem
from lambdas.core.streaming.ports import Chunk
from tests.builders import (
    CLAIM,
    JOB_ID,
    NOW,
    TENANT,
    any_record,
    final_record,
    handed_over,
    held_record,
    later,
)
from tests.fakes import FakeChunks, FakeClock, FakeJobStore, FakeObjects, FakeUploads, Trouble

LIMITS = Limits()
Act = Callable[[str, str, Office], Any]
ACTS: list[Act] = [cancel, retry, delete]


class Hall:
    """One job and an office with everything faked. `before`: what somebody else does before each call to the store."""

    def __init__(self, record: Mapping[str, Any] | None = None, *uploads: tuple[str, str]) -> None:
        self.meanwhile: dict[str, Callable[[], None]] = {}
        self.store = FakeJobStore(*([] if record is None else [record]), before=self._before)
        self.inputs, self.results, self.uploads = FakeObjects(), FakeObjects(), FakeUploads(*uploads)
        self.chunks = FakeChunks()
        self.clock = FakeClock(later(60))
        self.office = Office(self.store, self.inputs, self.results, self.uploads, self.chunks, LIMITS, self.clock)

    def _before(self, name: str) -> None:
        act = self.meanwhile.pop(name, None)
        if act:
            act()

    @property
    def record(self) -> dict[str, Any]:
        return self.store.records[JOB_ID]

    @property
    def job(self) -> Job:
        return from_record(self.record)

    def ask(self, act: Act, tenant: str = TENANT, job_id: str = JOB_ID) -> Any:
        return act(tenant, job_id, self.office)

    def refused(self, act: Act) -> Problem:
        """The refusal, after which the record is as it was."""
        was = dict(self.record)
        outcome = self.ask(act)
        assert isinstance(outcome, Problem), outcome
        assert self.record == was
        return outcome

    def put(self, record: Mapping[str, Any]) -> None:
        self.store.records[JOB_ID] = dict(record)


def claimed(record: Mapping[str, Any]) -> dict[str, Any]:
    change = changes.claim(claim_id=CLAIM, max_tries=5, now=later(60), invocation_ends=later(180))
    return change.applied_to(record)


# --- whose job ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize(
    ("tenant", "job_id"), [("globex", JOB_ID), (TENANT, "f" * 32), (TENANT, ""), (TENANT, "x" * 129)]
)
def test_what_is_not_the_tenants_is_not_there(act: Act, tenant: str, job_id: str) -> None:
    hall = Hall(handed_over(FAILED))
    outcome = hall.ask(act, tenant, job_id)
    assert (outcome.status, outcome.kind) == (404, "no-such-job")
    assert hall.record == handed_over(FAILED)


@pytest.mark.parametrize("act", [cancel, retry])
def test_a_deleted_job_is_gone(act: Act) -> None:
    hall = Hall(handed_over())
    hall.ask(delete)
    assert hall.refused(act).status == 410


@pytest.mark.parametrize("act", ACTS)
def test_a_record_that_nobody_can_read_is_left_alone(act: Act) -> None:
    hall = Hall(any_record(tries="many"))
    with pytest.raises(UnreadableRecord):
        hall.ask(act)
    assert hall.store.images == []


@pytest.mark.parametrize("act", ACTS)
def test_without_the_store_nothing_is_known(act: Act) -> None:
    hall = Hall(handed_over(FAILED))
    hall.store.troubles.add("read", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        hall.ask(act)


# --- cancel --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", OPEN)
def test_an_open_job_is_cancelled_and_somebody_must_hear_of_it(status: str) -> None:
    hall = Hall(held_record(status=status))
    outcome = hall.ask(cancel)
    assert isinstance(outcome, Cancelled)
    assert outcome.job == hall.job
    assert (hall.job.status, hall.job.finished_at, hall.job.attempt) == (CANCELLED, hall.clock(), 1)
    assert hall.record["expires_at"] == int(hall.clock().timestamp()) + 90 * 86_400
    assert "due_shard" in hall.record
    assert not hall.job.is_handed_over


def test_the_look_at_a_job_that_waits_for_days_is_pulled_in() -> None:
    hall = Hall(any_record(not_before=later(days=3), due_at=later(days=3), deadline_at=later(days=4)))
    hall.ask(cancel)
    assert hall.job.due_at == times.after(hall.clock(), LIMITS.grace_s)


def test_the_look_is_never_later_than_the_deadline() -> None:
    hall = Hall(any_record(deadline_at=later(90)))
    hall.ask(cancel)
    assert hall.job.due_at == later(90)


def test_a_cancelled_job_is_cancelled_again_without_a_write() -> None:
    hall = Hall(any_record())
    first = hall.ask(cancel)
    hall.clock.advance(1_000)
    assert hall.ask(cancel) == first
    assert len(hall.store.images) == 1


@pytest.mark.parametrize("status", [COMPLETED, FAILED])
def test_a_job_that_ended_otherwise_cannot_be_cancelled(status: str) -> None:
    problem = Hall(final_record(status)).refused(cancel)
    assert (problem.status, problem.kind, problem.job_id) == (409, "wrong-state", JOB_ID)
    assert status in problem.detail


def test_the_claim_of_a_holder_stays_so_that_it_can_book_what_its_call_cost() -> None:
    hall = Hall(held_record())
    hall.ask(cancel)
    assert hall.record["claim_id"] == CLAIM
    assert [line["what"] for line in hall.job.history] == ["accepted", "claimed", "cancelled"]


def test_the_claim_of_one_that_has_written_its_end_goes_so_that_its_lost_reply_books_nothing_twice() -> None:
    held = from_record(held_record())
    parking = changes.park(
        held, now=NOW, until=later(60), why=changes.error("X", ""), cost=7, refund=True, limits=LIMITS
    )
    hall = Hall(parking.applied_to(held_record()))
    hall.ask(cancel)
    assert "claim_id" not in hall.record
    assert not parking.is_own_effect(hall.record)  # so the holder takes it for a refusal, and would book
    hall.store.apply(JOB_ID, changes.book_late(held, 7))
    assert (hall.job.cost, hall.job.late_cost) == (7, 0)


def test_a_claim_that_comes_between_is_seen_and_the_job_is_cancelled_all_the_same() -> None:
    hall = Hall(any_record())
    hall.meanwhile["cancel"] = lambda: hall.put(claimed(any_record()))
    assert isinstance(hall.ask(cancel), Cancelled)
    assert (hall.job.status, hall.job.attempt, hall.record["claim_id"]) == (CANCELLED, 1, CLAIM)
    assert [line["what"] for line in hall.job.history] == ["accepted", "claimed", "cancelled"]
    assert hall.store.calls == ["read", "cancel", "cancel"]


def test_an_end_that_comes_between_is_what_the_answer_says() -> None:
    hall = Hall(held_record())
    hall.meanwhile["cancel"] = lambda: hall.put(final_record(COMPLETED))
    outcome = hall.ask(cancel)
    assert (outcome.status, COMPLETED in outcome.detail) == (409, True)
    assert hall.record == final_record(COMPLETED)


def test_who_cancels_at_the_same_time_is_no_trouble() -> None:
    hall = Hall(held_record())
    hall.meanwhile["cancel"] = lambda: hall.put(final_record(CANCELLED))
    assert hall.ask(cancel) == Cancelled(from_record(final_record(CANCELLED)))


def test_a_record_that_never_stands_still_is_not_cancelled_and_that_is_said() -> None:
    hall = Hall(any_record())

    def restless() -> None:
        hall.put(any_record(attempt=hall.record["attempt"] + 1))
        hall.meanwhile["cancel"] = restless

    hall.meanwhile["cancel"] = restless
    with pytest.raises(Unavailable) as trouble:
        hall.ask(cancel)
    assert trouble.value.unknown is False
    assert hall.job.status == PENDING


def test_a_lost_reply_of_the_cancellation_counts_as_success() -> None:
    hall = Hall(held_record())
    hall.store.troubles.add("cancel", Trouble.LOST_REPLY)
    assert isinstance(hall.ask(cancel), Cancelled)
    assert len(hall.store.images) == 1


# --- retry ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [FAILED, CANCELLED])
@pytest.mark.parametrize("make", [final_record, handed_over])
def test_a_job_that_failed_or_was_cancelled_starts_again(status: str, make: Callable[..., Any]) -> None:
    hall = Hall(make(status, tries=5, sample=1, cost=40))
    outcome = hall.ask(retry)
    assert isinstance(outcome, Reopened)
    assert (hall.job.status, hall.job.attempt, hall.job.run, hall.job.tries, hall.job.sample) == (PENDING, 2, 1, 0, 0)
    assert hall.job.deadline_at == times.after(hall.clock(), LIMITS.deadline_s)
    assert not {"expires_at", "claim_id", "finished_at"} & hall.record.keys()
    assert {"due_at", "due_shard"} <= hall.record.keys()


def test_what_came_late_after_the_cancellation_is_part_of_the_cost_of_the_next_opening() -> None:
    hall = Hall(final_record(CANCELLED, cost=40, late_cost=7))
    hall.ask(retry)
    assert (hall.job.cost, "late_cost" in hall.record) == (47, False)


def test_what_comes_late_at_the_very_moment_of_the_retry_is_not_lost() -> None:
    hall = Hall(final_record(CANCELLED, cost=40))
    hall.meanwhile["reopen"] = lambda: hall.record.update(late_cost=7)
    assert isinstance(hall.ask(retry), Reopened)
    assert (hall.job.cost, "late_cost" in hall.record) == (47, False)


@pytest.mark.parametrize("status", [*OPEN, COMPLETED])
def test_a_job_that_neither_failed_nor_was_cancelled_is_not_started_again(status: str) -> None:
    problem = Hall(held_record(status=status)).refused(retry)
    assert (problem.status, status in problem.detail) == (409, True)


def test_two_retries_at_once_are_one_opening_and_both_succeed() -> None:
    hall = Hall(handed_over(FAILED))
    hall.meanwhile["reopen"] = lambda: hall.put(
        changes.reopen(from_record(handed_over(FAILED)), now=later(59), limits=LIMITS).applied_to(handed_over(FAILED))
    )
    assert isinstance(hall.ask(retry), Reopened)
    assert (hall.job.attempt, hall.job.run) == (2, 1)


def test_a_lost_reply_whose_job_was_claimed_before_the_repeat_counts_as_success() -> None:
    hall = Hall(handed_over(FAILED))
    opened = changes.reopen(from_record(handed_over(FAILED)), now=NOW, limits=LIMITS).applied_to(handed_over(FAILED))
    hall.meanwhile["reopen"] = lambda: hall.put(claimed(opened))
    outcome = hall.ask(retry)
    assert isinstance(outcome, Reopened)
    assert (outcome.job.status, hall.job.attempt) == (PROCESSING, 3)


def test_a_job_that_was_deleted_meanwhile_is_not_brought_back() -> None:
    hall = Hall(handed_over(FAILED))
    tomb = changes.delete(from_record(handed_over(FAILED))).applied_to(handed_over(FAILED))
    hall.meanwhile["reopen"] = lambda: hall.put(tomb)
    assert hall.ask(retry).status == 410
    assert hall.record == tomb


def test_what_stands_instead_is_what_the_refusal_says() -> None:
    hall = Hall(handed_over(FAILED))
    hall.meanwhile["reopen"] = lambda: hall.put(handed_over(CANCELLED, run=2, attempt=5))
    outcome = hall.ask(retry)
    assert (outcome.status, CANCELLED in outcome.detail) == (409, True)


# --- delete --------------------------------------------------------------------------------------------
def full_hall(**over: Any) -> Hall:
    """A job with three attempts and their objects, and objects of others beside them."""
    record = handed_over(COMPLETED, attempt=3, **over)
    hall = Hall(record)
    hall.inputs.objects = {ids.input_key(TENANT, JOB_ID, record["body_sha"]): b"{}", "inputs/acme/other/sha": b"{}"}
    own = [*(ids.result_key(TENANT, JOB_ID, n) for n in (1, 2, 3)), ids.run_result_key(TENANT, JOB_ID, 2, "{}")]
    own += [ids.part_key(TENANT, JOB_ID, branch, sha) for branch in ("entities", "summary") for sha in ("aa", "bb")]
    results = [*own, "results/acme/other/1", f"results/acme/{JOB_ID}0/1", "answers/acme/shared"]
    hall.results.objects = dict.fromkeys(results, b"{}")
    for job_id in (JOB_ID, "other"):
        hall.chunks.append(job_id, Chunk(1, 0, "text"), 1)
    return hall


def test_a_deleted_job_leaves_a_tombstone_and_no_object_of_its_own() -> None:
    hall = full_hall(upload_shard="uploads#1", upload_key="k\0v")
    was = hall.record
    assert hall.ask(delete) == Deleted(JOB_ID, 3)
    assert hall.record == {name: was[name] for name in OF_A_TOMBSTONE if name in was} | {"status": DELETED}
    assert {"body_sha", "expires_at", "tenant", "attempt", "upload_shard", "upload_key"} <= hall.record.keys()
    assert list(hall.inputs.objects) == ["inputs/acme/other/sha"]
    assert list(hall.results.objects) == ["results/acme/other/1", f"results/acme/{JOB_ID}0/1", "answers/acme/shared"]
    assert list(hall.chunks.items) == [("other", 1, 0)]


def test_the_tombstone_stands_before_the_first_object_goes() -> None:
    hall = full_hall()
    hall.store.troubles.add("delete", Trouble.UNSENT)
    with pytest.raises(Unavailable):
        hall.ask(delete)
    assert (len(hall.inputs.objects), len(hall.results.objects), hall.record["status"]) == (2, 11, COMPLETED)
    assert len(hall.chunks.items) == 2


@pytest.mark.parametrize(
    ("where", "call"), [("inputs", "delete_many"), ("results", "delete_folder"), ("chunks", "delete_all")]
)
def test_a_repeat_finishes_what_a_failure_has_left(where: str, call: str) -> None:
    hall = full_hall()
    getattr(hall, where).troubles.add(call, Trouble.UNSENT)
    with pytest.raises(Unavailable):
        hall.ask(delete)
    assert hall.record["status"] == DELETED
    assert hall.ask(delete) == hall.ask(delete) == Deleted(JOB_ID, 3)
    assert (list(hall.inputs.objects), len(hall.results.objects)) == (["inputs/acme/other/sha"], 3)
    assert list(hall.chunks.items) == [("other", 1, 0)]
    assert hall.store.calls.count("delete") == 1


@pytest.mark.parametrize("status", OPEN)
def test_an_open_job_is_not_deleted(status: str) -> None:
    problem = Hall(held_record(status=status)).refused(delete)
    assert (problem.status, status in problem.detail) == (409, True)


@pytest.mark.parametrize("status", FINAL)
def test_a_job_whose_end_nobody_has_heard_of_is_not_deleted(status: str) -> None:
    problem = Hall(final_record(status)).refused(delete)
    assert (problem.status, "not handed over yet" in problem.detail) == (409, True)


def test_a_job_that_was_opened_meanwhile_is_not_deleted() -> None:
    hall = full_hall()
    hall.meanwhile["delete"] = lambda: hall.put(any_record(attempt=4, run=1))
    assert hall.ask(delete).status == 409
    assert hall.job.status == PENDING
    assert len(hall.results.objects) == 11


def test_a_job_that_expired_meanwhile_is_not_there() -> None:
    hall = full_hall()
    hall.meanwhile["delete"] = hall.store.records.clear
    assert hall.ask(delete).status == 404


ANNOUNCED, FOREIGN = f"uploads/acme/summarize/{JOB_ID}", "uploads/acme/summarize/notes.txt"


@pytest.mark.parametrize(
    ("key", "left"),
    [
        (ANNOUNCED, [(FOREIGN, "v1"), (FOREIGN, "v2")]),
        (FOREIGN, [(ANNOUNCED, "v1"), (ANNOUNCED, "v2"), (FOREIGN, "v2")]),
    ],
)
def test_an_upload_goes_with_its_job_all_versions_of_it_where_the_name_was_given_out(key: str, left: list[Any]) -> None:
    """The versions of a name that others chose are jobs of their own."""
    upload = {"key": key, "version": "v1", "etag": "e", "bytes": 3}
    uploads = [(name, version) for name in (ANNOUNCED, FOREIGN) for version in ("v1", "v2")]
    hall = Hall(handed_over(upload=upload), *uploads)
    hall.uploads.troubles.add("delete", Trouble.UNSENT)
    with pytest.raises(Unavailable):
        hall.ask(delete)
    assert len(hall.uploads.versions) == 4
    hall.ask(delete)
    assert sorted(hall.uploads.versions) == sorted(left)


# --- bodies --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("raw", [b"", b"  \n", b"{}", b" { } "])
def test_a_request_without_parameters_is_taken(raw: bytes) -> None:
    assert no_parameters(raw) is None


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b"[]", ""), (b"null", ""), (b"0", ""), (b'""', ""), (b"{", ""), (b"\xff", ""),
        (b'{"why": "x"}', "/why"), (b'{"b": 1, "a/c": 2}', "/a~1c"),
    ],
)  # fmt: skip
def test_a_body_with_anything_in_it_is_refused_with_its_place(raw: bytes, pointer: str) -> None:
    problem = no_parameters(raw)
    assert problem is not None
    assert (problem.status, problem.pointer) == (400, pointer)
