"""Rejected answers leave the cache after the record says so; a holder that lost its job changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PROCESSING
from lambdas.core import changes, ids
from lambdas.core.job import from_record
from lambdas.core.outcomes import ModelError, NotReady, Permanent, Rejected
from lambdas.core.ports import Unavailable
from lambdas.core.tasks import Context
from tests.builders import JOB_ID, TENANT, any_record, any_task, final_record, handed_over, held_record
from tests.fakes import FakeModel, Trouble, any_reply
from tests.unit.bench import PAID, held

RESULT = ids.result_key(TENANT, JOB_ID, 1)
ANSWERED = {"summary": "All three are safe."}


def raising(error: BaseException) -> Any:
    def run(task_input: Any, ctx: Context) -> Any:
        raise error

    return any_task(run)


def returning(value: Any, **more: Any) -> Any:
    return any_task(lambda task_input, ctx: value, **more)


OUT = {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}


# --- rejected answers ------------------------------------------------------------------------------
REJECTING = any_task(lambda task_input, ctx: {"answer": ctx.model.ask(task_input["text"]).text}, output=OUT)


def test_n2_the_record_says_rejected_before_the_answer_leaves_the_cache() -> None:
    bench = held(REJECTING)
    bench.execute()
    assert bench.order == ["retry", "forget"]
    assert bench.answers.stored == {}


@pytest.mark.parametrize("stop_reason", ["max_tokens", "content_filtered"])
def test_an_unusable_answer_is_asked_for_anew_and_the_tasks_other_answers_are_neither_forgotten_nor_paid_again(
    stop_reason: str,
) -> None:
    both = any_task(lambda task_input, ctx: [ctx.model.ask("Q1").text, ctx.model.ask("Q2").text], output={})
    bench = held(both, model=FakeModel(any_reply(), any_reply(stop_reason=stop_reason)))
    assert bench.execute() == "retried"
    assert (bench.job().sample, bench.job().unusable, bench.job().cost) == (0, 1, 2 * PAID)
    assert (bench.order, bench.answers.forgotten, len(bench.answers.stored)) == (["retry"], [], 1)
    bench.store.records[JOB_ID] = held_record(attempt=2, tries=2, unusable=1)
    assert bench.execute() == "completed"
    assert [request.prompt for request in bench.model.requests] == ["Q1", "Q2", "Q2"]
    assert len(bench.answers.stored) == 2


def test_a_rejection_raises_the_sample_and_not_what_was_unusable() -> None:
    bench = held(REJECTING)
    bench.execute()
    assert (bench.job().sample, bench.job().unusable) == (1, 0)


def test_n2_an_answer_stays_in_the_cache_when_the_record_could_not_be_written() -> None:
    bench = held(REJECTING)
    bench.store.troubles.add("retry", Trouble.UNSENT)
    with pytest.raises(Unavailable):
        bench.execute()
    assert len(bench.answers.stored) == 1


def test_n2_an_answer_stays_in_the_cache_when_the_writer_was_fenced_out() -> None:
    bench = held(REJECTING)
    job = bench.job()
    bench.store.records[JOB_ID] = held_record(attempt=2, claim_id="another")
    assert bench.execute(job) == "fenced_out"
    assert len(bench.answers.stored) == 1


def test_n2_the_next_sample_is_asked_for_anew_and_stays_with_its_job() -> None:
    bench = held(REJECTING)
    bench.execute()
    bench.store.records[JOB_ID] = {**bench.store.records[JOB_ID], **_held_again(attempt=2, tries=2)}
    assert bench.execute() == "failed"
    assert len(bench.model.requests) == 2
    assert (bench.job().cost, bench.job().error["code"]) == (2 * PAID, "OUTPUT_REJECTED")  # type: ignore[index]
    assert "forget" not in bench.order[2:]


def _held_again(**over: Any) -> dict[str, Any]:
    wanted = ("status", "attempt", "tries", "claim_id", "claimed_at", "lease_until")
    return {name: value for name, value in held_record(**over).items() if name in wanted}


def test_n2_the_last_try_of_all_still_takes_its_rejected_answer_out_of_the_cache() -> None:
    bench = held(REJECTING, tries=5)
    assert bench.execute() == "failed"
    assert bench.answers.stored == {}


def test_n2_an_answer_that_cannot_be_forgotten_is_told_and_the_job_goes_on() -> None:
    bench = held(REJECTING)
    bench.answers.troubles.add("forget", Trouble.UNSENT)
    assert bench.execute() == "retried"
    assert "answer_not_forgotten" in bench.notices.steps


def test_a_failure_that_is_no_rejection_forgets_nothing() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        ctx.model.ask("Q")
        raise ValueError("after the answer")

    bench = held(any_task(run))
    bench.execute()
    assert len(bench.answers.stored) == 1
    assert "forget" not in bench.order


# --- rejected answers that the task names ------------------------------------------------------------
def naming(*questions: str) -> Any:
    """It asks these questions; an answer that says `bad` is no good, and no other one is asked anew for it."""

    def run(task_input: Any, ctx: Context) -> Any:
        for question in questions:
            answer = ctx.model.ask(question)
            if answer.text == "bad":
                raise Rejected("it is bad", answer)
        return {}

    return any_task(run, output={})


def test_n2_answers_that_are_named_leave_the_cache_alone_and_are_asked_for_anew() -> None:
    bench = held(naming("Q1", "Q2", "Q3"), model=FakeModel(any_reply("good"), any_reply("bad"), any_reply("good")))
    assert bench.execute() == "retried"
    assert bench.order == ["retry", "forget"]
    assert (bench.job().sample, bench.job().unusable, len(bench.answers.stored)) == (0, 1, 1)
    bench.store.records[JOB_ID] = {**bench.store.records[JOB_ID], **_held_again(attempt=2, tries=2)}
    assert bench.execute() == "completed"
    assert [request.prompt for request in bench.model.requests] == ["Q1", "Q2", "Q2", "Q3"]


def test_n2_the_last_answers_that_are_named_leave_the_cache_as_well() -> None:
    bench = held(naming("Q1", "Q2"), model=FakeModel(any_reply("good"), any_reply("bad")), unusable=1)
    assert bench.execute() == "failed"
    assert (bench.job().error or {})["code"] == "OUTPUT_REJECTED"
    assert [value["text"] for value, _ in bench.answers.stored.values()] == ["good"]


def test_n2_one_of_a_further_sample_that_is_named_leaves_the_cache_too_since_its_job_asks_under_the_same_key() -> None:
    bench = held(naming("Q1"), model=FakeModel(any_reply("bad")), sample=1)
    bench.execute()
    assert bench.answers.stored == {}


def test_n2_bad_answers_that_a_try_left_behind_when_it_died_do_not_end_the_job() -> None:
    bench = held(naming("Q1"), model=FakeModel(any_reply("bad"), any_reply("good")))
    bench.answers.troubles.add("forget", Trouble.UNSENT)
    assert bench.execute() == "retried"
    assert len(bench.answers.stored) == 1
    ended = []
    for n in (2, 3):
        bench.store.records[JOB_ID] = {**bench.store.records[JOB_ID], **_held_again(attempt=n, tries=n)}
        ended.append(bench.execute())
    assert ended == ["retried", "completed"]
    assert (len(bench.model.requests), bench.job().cost) == (2, 2 * PAID)


def test_n2_an_answer_that_this_try_has_paid_is_new_however_often_it_asks_the_same() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        ctx.model.ask("Q")
        raise Rejected("it is bad", ctx.model.ask("Q"))

    bench = held(any_task(run, output={}), model=FakeModel(any_reply("bad")))
    ended = [bench.execute()]
    bench.store.records[JOB_ID] = {**bench.store.records[JOB_ID], **_held_again(attempt=2, tries=2)}
    ended.append(bench.execute())
    assert (ended, len(bench.model.requests)) == (["retried", "failed"], bench.limits.max_samples)


def test_n2_a_task_that_names_no_answer_but_its_text_is_told_so() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        raise Rejected("it is bad", ctx.model.ask("Q").text)  # type: ignore[arg-type]

    bench = held(any_task(run, output={}))
    assert bench.execute() == "retried"
    told = bench.job().error or {}
    assert (told["code"], told["message"][:9]) == ("TASK_ERROR", "TypeError")


class Unlike(Rejected):
    def __init__(self, field: str) -> None:
        self.field = field


def test_n2_a_rejection_of_a_kind_of_the_tasks_own_takes_its_answers_out_of_the_cache_too() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        ctx.model.ask("Q")
        raise Unlike("total")

    bench = held(any_task(run, output={}))
    assert bench.execute() == "retried"
    assert (bench.job().sample, bench.answers.stored) == (1, {})


# --- the fence -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "record",
    [
        held_record(attempt=2, claim_id="another"),
        held_record(claim_id="another"),
        any_record(attempt=1),
        final_record(COMPLETED, claim_id="another"),
        final_record(FAILED, attempt=3),
    ],
)
@pytest.mark.parametrize("task", [any_task(), raising(ValueError()), raising(NotReady("x")), raising(Permanent("x"))])
def test_swp_02_a_holder_that_lost_its_job_changes_nothing(record: dict[str, Any], task: Any) -> None:
    bench = held(task)
    job = bench.job()
    bench.store.records[JOB_ID] = dict(record)
    assert bench.execute(job) == "fenced_out"
    assert bench.store.records[JOB_ID] == record


def test_nobody_deletes_a_result_because_its_record_could_not_be_written() -> None:
    bench = held()
    job = bench.job()
    bench.store.records[JOB_ID] = held_record(attempt=2, claim_id="another")
    bench.execute(job)
    assert RESULT in bench.results.objects
    assert bench.store.calls == ["complete"]


@pytest.mark.parametrize(
    ("task", "rule", "how"),
    [
        (any_task(), "complete", "completed"),
        (raising(ValueError()), "retry", "retried"),
        (raising(NotReady("x")), "park", "waits"),
        (raising(Permanent("x")), "fail", "failed"),
    ],
)
def test_the_lost_reply_of_the_last_write_counts_as_success_and_is_written_once(task: Any, rule: str, how: str) -> None:
    bench = held(task)
    bench.store.troubles.add(rule, Trouble.LOST_REPLY)
    assert bench.execute() == how
    assert len(bench.store.images) == 1
    assert bench.job().attempt == 1


def test_an_end_that_cannot_be_written_is_told_and_the_record_still_says_processing() -> None:
    bench = held()
    bench.store.troubles.add("complete", Trouble.UNSENT)
    with pytest.raises(Unavailable):
        bench.execute()
    assert bench.job().status == PROCESSING


def test_the_late_answer_of_a_cancelled_job_is_booked_apart() -> None:
    bench = held()
    job = bench.job()
    bench.store.records[JOB_ID] = final_record(CANCELLED, cost=5)
    assert bench.execute(job) == "fenced_out"
    assert (bench.job().status, bench.job().cost, bench.job().late_cost) == (CANCELLED, 5, PAID)


def test_a_cancelled_job_that_cost_nothing_more_is_not_written_again() -> None:
    bench = held(returning({}))
    job = bench.job()
    bench.store.records[JOB_ID] = final_record(CANCELLED)
    bench.execute(job)
    assert bench.store.calls == ["complete"]


def test_the_late_answer_of_another_holder_is_not_booked() -> None:
    bench = held()
    job = bench.job()
    bench.store.records[JOB_ID] = final_record(CANCELLED, attempt=2, claim_id="another")
    bench.execute(job)
    assert bench.job().late_cost == 0


# --- what a cancelled job cost after all -------------------------------------------------------------
def test_what_a_late_answer_cost_is_booked_once_though_its_reply_is_lost() -> None:
    bench = held()
    job = bench.job()
    bench.store.records[JOB_ID] = final_record(CANCELLED, cost=5)
    bench.store.troubles.add("book_late", Trouble.LOST_REPLY)
    assert bench.execute(job) == "fenced_out"
    assert (bench.job().cost, bench.job().late_cost) == (5, PAID)


@pytest.mark.parametrize("trouble", [Trouble.UNSENT, Trouble.UNHEARD])
def test_a_late_cost_that_cannot_be_booked_is_in_the_log_and_its_message_need_not_come_again(trouble: Trouble) -> None:
    bench = held()
    job = bench.job()
    bench.store.records[JOB_ID] = final_record(CANCELLED)
    bench.store.troubles.add("book_late", trouble)
    assert bench.execute(job) == "fenced_out"
    assert bench.notices.of("late_cost_not_booked")["cost_micros"] == PAID


@pytest.mark.parametrize(
    ("task", "model"),
    [
        (any_task(), FakeModel(ModelError("transient", "ReadTimeoutError", "", maybe_billed=True))),
        (any_task(), FakeModel(any_reply(stop_reason="max_tokens"))),
        (any_task(output={"type": "array"}), FakeModel()),
        (any_task(lambda task_input, ctx: (ctx.model.ask("Q"), 1 / 0)), FakeModel()),
    ],
)
def test_whatever_way_a_cancelled_try_ends_what_it_cost_is_booked(task: Any, model: FakeModel) -> None:
    bench = held(task, model=model)
    job = bench.job()
    bench.store.records[JOB_ID] = final_record(CANCELLED)
    assert bench.execute(job) == "fenced_out"
    assert bench.job().late_cost > 0
    assert bench.job().status == CANCELLED


def test_the_late_answer_of_a_cancelled_job_is_stored_and_the_next_opening_pays_nothing() -> None:
    bench = held()
    job = bench.job()
    bench.store.records[JOB_ID] = final_record(CANCELLED)
    bench.execute(job)
    opened = changes.reopen(bench.job(), now=bench.clock(), limits=bench.limits)
    bench.store.apply(JOB_ID, opened)
    bench.handle()
    assert (bench.job().status, bench.job().cost, len(bench.model.requests)) == (COMPLETED, PAID, 1)


def test_n1_a_late_answer_changes_nothing_in_the_tombstone_of_a_deleted_job() -> None:
    bench = held()
    job = bench.job()
    tombstone = changes.delete(from_record(handed_over(CANCELLED))).applied_to(handed_over(CANCELLED))
    bench.store.records[JOB_ID] = dict(tombstone)
    assert bench.execute(job) == "fenced_out"
    assert bench.store.records[JOB_ID] == tombstone
    assert bench.store.calls == ["complete"]
