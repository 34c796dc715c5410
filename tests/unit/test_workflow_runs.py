"""Whole runs of a workflow: what they cost at worst, what is kept, and a kill at every call of each function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING
from lambdas.core import changes, ids
from lambdas.core.documents import read_document
from lambdas.core.outcomes import ModelError, Permanent
from lambdas.core.ports import ModelRequest, Reply
from lambdas.core.tasks import Context
from lambdas.core.workflows.ports import EndedBadly
from lambdas.core.workflows.told import TransientError, WaitError
from tests.builders import any_record, any_task
from tests.fakes import FakeModel, Trouble, any_reply
from tests.fakes_workflows import BRANCHES, WORKFLOW, any_workflow
from tests.unit.assembly import TRIES, Assembly, raising
from tests.unit.bench import PAID
from tests.unit.test_documents import LONG, QUESTION

FIVE = ("one", "two", "three", "four", "five")


def reopened(bench: Assembly) -> int:
    """`/retry`, and the worker that starts the next run. That run."""
    bench.store.apply(bench.job().id, changes.reopen(bench.job(), now=bench.clock(), limits=bench.limits))
    job = bench.job()
    bench.store.records[job.id] |= {"status": "PROCESSING", "claim_id": "me", "lease_until": "2027-01-01T00:00:00.000Z"}
    assert bench.start() == "started"
    return bench.job().run


def test_sfn_11_after_a_fix_and_a_retry_only_the_part_that_failed_is_paid() -> None:
    bench = Assembly(
        None, any_task(raising(Permanent("no", "BROKEN")), type_="three"), workflow=any_workflow(branches=FIVE)
    )  # fmt: skip
    assert bench.play()["status"] == FAILED
    assert (len(bench.asked), bench.job().cost) == (4, 4 * PAID)
    bench.tasks["three"] = any_task(lambda task_input, ctx: {"said": ctx.model.ask("fixed").text}, type_="three")
    run = reopened(bench)
    assert bench.play(run_=run)["status"] == COMPLETED
    assert (len(bench.asked), bench.asked[-1], bench.job().cost) == (5, "fixed", 5 * PAID)
    assert bench.result(run_=run)["complete"] is True
    assert [bench.part(name).cost for name in FIVE] == [0, 0, PAID, 0, 0]


def test_a_run_that_ended_badly_is_followed_by_one_that_pays_only_what_was_not_done() -> None:
    bench = Assembly(workflow=any_workflow(branches=FIVE))
    for name in FIVE[:3]:
        bench.branch(name)
    assert bench.hear() == "left_to_the_sweep"  # nothing is known of it yet
    bench.executions.standing[WORKFLOW, name_of(bench)] = EndedBadly("timed out")
    assert bench.hear() == "run_again"
    assert bench.branch("four") == "stale"
    bench.store.records[bench.job().id] |= {"status": "PROCESSING", "claim_id": "me"}
    assert bench.start() == "started"
    assert bench.play(run_=1)["status"] == COMPLETED
    assert (len(bench.asked), bench.job().cost) == (5, 5 * PAID)


def name_of(bench: Assembly) -> str:
    return ids.execution_name(bench.job().id, bench.job().run)


# --- a document in pieces ----
def reading(says: Callable[[str], str]) -> Assembly:
    """A branch that reads a document of three pieces; what the model says to each question about one."""

    def read(task_input: Any, ctx: Context) -> Any:
        return {"read": [one.told for one in read_document(LONG, ctx, QUESTION)]}

    def said(request: ModelRequest) -> Reply:
        return any_reply(says(request.prompt))

    script = [said for _ in range(40)]
    return Assembly(
        None, any_task(read, type_="one"), workflow=any_workflow(branches=("one",)), model=FakeModel(*script)
    )


GOOD, BAD = '{"n": 1}', "I cannot."


def pieces_asked_about(bench: Assembly) -> list[str]:
    return [number for prompt in bench.asked for number in "123" if f"piece {number} of 3" in prompt]


def test_cost_01_a_piece_whose_answers_are_never_any_good_costs_no_other_piece_a_question() -> None:
    bench = reading(lambda prompt: BAD if "piece 3" in prompt else GOOD)
    assert bench.play()["status"] == FAILED
    assert pieces_asked_about(bench) == ["1", "2", "3", "3", "3", "3"]
    assert (bench.part("one").error["code"], bench.job().cost) == ("OUTPUT_REJECTED", 6 * PAID)
    bench.play(run_=reopened(bench))
    assert pieces_asked_about(bench)[6:] == ["3"] * 4
    assert bench.job().cost == 10 * PAID


def test_cost_01_a_document_in_pieces_is_at_worst_twice_as_many_questions_and_two_more() -> None:
    bench = reading(lambda prompt: BAD if "piece 3" in prompt or "no good" not in prompt else GOOD)
    assert bench.play()["status"] == FAILED
    assert pieces_asked_about(bench) == ["1", "1", "2", "2", "3", "3", "3", "3"]


def test_n2_answers_about_a_piece_that_are_no_good_are_asked_for_anew_by_the_next_run() -> None:
    bench = reading(lambda prompt: BAD if "piece 3" in prompt and len(bench.asked) <= 6 else GOOD)
    assert bench.play()["status"] == FAILED
    run = reopened(bench)
    assert bench.play(run_=run)["status"] == COMPLETED
    assert pieces_asked_about(bench)[6:] == ["3"]


def test_n2_answers_about_a_piece_that_could_not_be_forgotten_cost_a_try_and_no_more() -> None:
    bench = reading(lambda prompt: BAD if "piece 3" in prompt and len(bench.asked) <= 4 else GOOD)
    bench.answers.troubles.add("forget", Trouble.UNSENT)
    bench.answers.troubles.add("forget", Trouble.UNSENT)
    assert bench.play()["status"] == COMPLETED
    assert pieces_asked_about(bench) == ["1", "2", "3", "3", "3"]
    assert bench.part("one").used == 2


# --- what it costs at worst ------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("said", "calls"),
    [
        (ModelError("transient", "ReadTimeoutError", "cut", maybe_billed=True), TRIES),
        (any_reply(stop_reason="max_tokens"), 2),
        (ModelError("permanent", "ValidationException", "no"), 1),
        (any_reply("no JSON"), 2),
    ],
    ids=["cut", "truncated", "permanent", "rejected"],
)
def test_cost_01_a_question_is_asked_a_few_times_in_one_run_whatever_the_model_does(said: Any, calls: int) -> None:
    out = {"type": "object", "properties": {"said": {"const": "good"}}}
    ask: Callable[[Any, Any], Any] = lambda task_input, ctx: {"said": ctx.model.ask("Q").text}  # noqa: E731
    bench = Assembly(
        None,
        any_task(ask, type_="summary", output=out),
        workflow=any_workflow(branches=("summary",)),
        model=FakeModel(*[said] * 20),
    )
    assert bench.play()["status"] == FAILED
    assert len(bench.asked) == calls


def test_a_model_that_throttles_for_long_costs_nothing_and_is_named_as_the_reason() -> None:
    throttled = ModelError("throttled", "ThrottlingException", "slow down")
    bench = Assembly(
        workflow=any_workflow(branches=("summary",), partial="best_effort"), model=FakeModel(*[throttled] * 30)
    )  # fmt: skip
    assert bench.called_until_it_ends("summary") == "WaitError: MODEL_THROTTLED"
    answer = bench.collect()
    assert "MODEL_THROTTLED" in answer["error"]["message"]
    assert bench.job().cost == 0


# --- kills -----------------------------------------------------------------------------------------
class Killed(BaseException):
    """The platform has ended the function."""


class Reaper(list[str]):
    """Kills whoever makes the n-th call, before or after it had its effect; from then on nothing is heard any more."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at, self.calls = at, 0

    def append(self, name: str) -> None:
        self.calls += 1
        if self.at and self.calls >= self.at:
            raise Killed(name)
        super().append(name)

    def watch(self, bench: Assembly) -> None:
        bench.store.before = bench.executions.before = self.append
        bench.results.order = self
        stock = bench.model._said

        def said(request: Any, heard: Any) -> Any:
            self.append("model")
            return stock(request, heard)

        bench.model._said = said  # type: ignore[method-assign]

    def rest(self) -> None:
        self.at = 0


def call(act: Callable[[], Any]) -> Any:
    try:
        return act()
    except (Killed, TransientError, WaitError):
        return None


@pytest.mark.parametrize("at", range(1, 7))
def test_a_branch_that_is_killed_at_any_call_is_done_by_the_next_and_pays_no_answer_twice(at: int) -> None:
    bench, reaper = Assembly(workflow=any_workflow(branches=("summary",))), Reaper(at)
    reaper.watch(bench)
    call(lambda: bench.branch("summary"))
    reaper.rest()
    assert bench.called_until_it_ends("summary") == "done"
    assert bench.collect()["status"] == COMPLETED
    assert len(bench.model.requests) == 1
    assert bench.job().cost in (0, PAID)  # 0: the kill fell between the answer's row and the record


@pytest.mark.parametrize("at", range(1, 8))
def test_a_collector_that_is_killed_at_any_call_is_followed_by_one_that_completes(at: int) -> None:
    bench, reaper = Assembly(), Reaper(0)
    for name in BRANCHES:
        bench.branch(name)
    reaper.watch(bench)
    reaper.at = at
    call(bench.collect)
    reaper.rest()
    assert bench.collect()["status"] == COMPLETED
    assert bench.result()["complete"] is True


@pytest.mark.parametrize("at", range(1, 5))
def test_a_worker_that_is_killed_at_any_call_of_its_start_leaves_one_execution(at: int) -> None:
    bench, reaper = Assembly(any_record(type=WORKFLOW)), Reaper(at)
    reaper.watch(bench)
    call(bench.handle)
    reaper.rest()
    bench.clock.advance(400)
    bench.handle()
    assert bench.job().status in (PENDING, "PROCESSING")
    assert len(bench.executions.standing) == 1
    assert bench.play()["status"] == COMPLETED


@pytest.mark.parametrize("at", range(1, 4))
def test_whoever_hears_of_an_end_and_is_killed_leaves_it_to_the_next_who_hears_of_it(at: int) -> None:
    bench, reaper = Assembly(), Reaper(at)
    bench.executions.standing[WORKFLOW, name_of(bench)] = EndedBadly("failed")
    reaper.watch(bench)
    call(bench.hear)
    reaper.rest()
    assert bench.hear() in ("run_again", "not_needed")
    assert (bench.job().run, bench.job().runs) == (1, 1)
