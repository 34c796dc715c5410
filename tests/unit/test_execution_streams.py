"""A job whose text is streamed: paid once, kept first, and shown as exactly what is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from lambdas.core import ids
from lambdas.core.outcomes import ModelError
from lambdas.core.policy import Limits
from lambdas.core.prices import cost_micros
from lambdas.core.tasks import Context
from tests.builders import JOB_ID, TENANT, any_task, held_record
from tests.fakes import Cut, FakeModel, Trouble, any_reply
from tests.unit.bench import MODEL_ID, PAID, Bench

TEXT = "All three are safe."
BROKEN = ModelError("transient", "ModelStreamErrorException", "half-way", maybe_billed=True)


class Streams(Bench):
    """A held job whose text is streamed, in chunks of three bytes."""

    def __init__(self, *script: Any, stream: bool = True, run: Callable[[Any, Context], Any] | None = None) -> None:
        record = held_record(stream=stream or None)
        tasks = [any_task(run)] if run else []
        super().__init__(record, *tasks, model=FakeModel(*script), limits=Limits(chunk_bytes=3))

    def text(self, attempt: int = 1) -> str:
        return self.chunks.text_of(JOB_ID, attempt)

    def result(self, attempt: int) -> Any:
        return json.loads(self.results.objects[ids.result_key(TENANT, JOB_ID, attempt)])

    def again(self) -> str:
        """The next try of the same job, which streams."""
        self.store.records[JOB_ID] = held_record(stream=True, attempt=2, tries=2)
        return self.execute()


def test_a_jobs_text_is_its_answer() -> None:
    bench = Streams()
    assert bench.execute() == "completed"
    assert (bench.text(), bench.model.streamed, bench.job().cost) == (TEXT, 1, PAID)
    assert len(bench.chunks.taken) == 7
    assert bench.notices.of("streamed") == {"chunks": 7}


def test_a_job_that_is_not_streamed_asks_as_ever_and_has_no_text() -> None:
    bench = Streams(stream=False)
    assert bench.execute() == "completed"
    assert (bench.chunks.items, bench.model.streamed) == ({}, 0)


def test_all_of_the_text_is_stored_before_the_job_is_complete() -> None:
    bench = Streams()
    seen: list[str] = []
    bench.store.before = lambda name: seen.append(bench.text())
    bench.execute()
    assert seen == [TEXT]


def test_paid_once_comes_first_what_is_missing_is_stored_after_the_answer() -> None:
    bench = Streams()
    bench.chunks.troubles.add("append", Trouble.UNSENT)
    answers_then: list[int] = []
    bench.chunks.before = lambda name: answers_then.append(len(bench.answers.stored))
    assert bench.execute() == "completed"
    assert (bench.text(), answers_then) == (TEXT, [0, 1, 1])


def test_text_that_cannot_be_stored_costs_a_wait_and_no_second_call() -> None:
    bench = Streams()
    bench.chunks.troubles.add("append", *[Trouble.UNSENT] * 4)
    assert bench.execute() == "waits"
    assert bench.again() == "completed"
    assert (len(bench.model.requests), bench.text(2), bench.result(2)) == (1, TEXT, {"summary": TEXT})


def test_an_answer_that_was_there_already_comes_as_text_too() -> None:
    bench = Streams(stream=False)
    bench.execute()
    assert bench.again() == "completed"
    assert (bench.text(2), len(bench.model.requests), len(bench.chunks.taken)) == (TEXT, 1, 1)


def test_bed_08_text_of_a_stream_that_broke_stays_with_its_own_attempt() -> None:
    bench = Streams(Cut(BROKEN, ("All th",)), any_reply("None is safe."))
    assert bench.execute() == "retried"
    assert bench.again() == "completed"
    assert (bench.text(1), bench.text(2), bench.result(2)) == ("All th", "None is safe.", {"summary": "None is safe."})


def test_bed_21_a_stream_that_broke_is_booked_at_what_it_can_have_cost() -> None:
    bench = Streams(Cut(BROKEN, ("All",)))
    bench.execute()
    assert bench.job().cost >= cost_micros(MODEL_ID, 1, 1_000)


def test_bed_08_a_throttle_in_the_midst_of_an_answer_keeps_its_try_charged() -> None:
    bench = Streams(Cut(ModelError("throttled", "ThrottlingException", "slow", maybe_billed=True), ("All",)))
    assert bench.execute() == "waits"
    assert (bench.job().tries, bench.job().cost > 0) == (1, True)


def test_a_throttle_before_any_answer_is_free() -> None:
    bench = Streams(ModelError("throttled", "ThrottlingException", "slow"))
    assert bench.execute() == "waits"
    assert (bench.job().tries, bench.job().cost, bench.chunks.items) == (0, 0, {})


def test_an_answer_that_did_not_come_to_its_end_is_shown_and_never_kept() -> None:
    bench = Streams(any_reply(stop_reason="max_tokens"))
    assert bench.execute() == "retried"
    assert (bench.text(), bench.answers.stored) == (TEXT, {})


def test_an_answer_that_could_not_be_kept_is_said_again_in_another_attempt() -> None:
    bench = Streams()
    bench.answers.troubles.add("save", Trouble.UNSENT)
    assert bench.execute() == "retried"
    assert bench.again() == "completed"
    assert bench.text(2) == TEXT


# --- tasks that ask more than once -------------------------------------------------------------------
def test_all_that_a_task_asks_is_one_text_but_for_what_it_does_not_show() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        plan = ctx.model.ask("Plan it.", show=False).text
        return {"text": "".join(ctx.model.ask(f"{plan}: {part}").text for part in ("first", "second"))}

    bench = Streams(*map(any_reply, ("a plan", "One. ", "Two.")), run=run)
    assert bench.execute() == "completed"
    assert (bench.text(), bench.result(1)) == ("One. Two.", {"text": "One. Two."})
    assert (bench.model.streamed, len(bench.model.requests)) == (2, 3)


def test_a_task_that_passes_over_a_broken_stream_does_not_mix_two_texts() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        try:
            return {"text": ctx.model.ask("Ask.").text}
        except ModelError:
            return {"text": ctx.model.ask("Ask otherwise.").text}

    bench = Streams(Cut(BROKEN, ("All th",)), run=run)
    assert bench.execute() == "waits"
    assert (bench.text(), len(bench.model.requests)) == ("All th", 1)


def test_a_task_may_ask_again_when_nothing_was_said() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        try:
            return {"text": ctx.model.ask("Ask.").text}
        except ModelError:
            return {"text": ctx.model.ask("Ask otherwise.").text}

    bench = Streams(ModelError("throttled", "ThrottlingException", "slow"), run=run)
    assert bench.execute() == "completed"
    assert bench.text() == TEXT
