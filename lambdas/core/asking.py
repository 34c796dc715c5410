"""`ctx.model`: asks a model once per question. Metered, deduplicated, bounded in time; every answer is kept first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from lambdas.core.canonical import sha256_of
from lambdas.core.job import Job
from lambdas.core.outcomes import ModelError, OutOfTime, Permanent
from lambdas.core.policy import Limits
from lambdas.core.ports import AnswerNotStored, Answers, Kept, ModelRequest, Notice, Reply
from lambdas.core.prices import UnknownModel, cost_micros, estimate_tokens, price_of
from lambdas.core.streaming.ports import Heard, StreamingModel
from lambdas.core.streaming.recorder import Recorder

Reuse = Literal["tenant", "job"]
PROMPT_VERSION = "1"  # raise it when the meaning of a request changes without its words
PATIENCE_S = 15.0  # how long a second caller waits in its thread before its job goes back to the queue

COMPLETE = ("end_turn", "stop_sequence")
CUT = {
    "max_tokens": "the answer was cut at max_tokens; allow more, or ask for less",
    "model_context_window_exceeded": "question and answer are more than the model can hold; ask with less, or for less",
}
REFUSING = ("content_filtered", "guardrail_intervened")


@dataclass(frozen=True)
class Answer:
    """A model's complete answer. `cost` in micro-dollars is what this asking paid: 0 when it was there already.
    `reused`: another try or another job has paid it. `stored`: under which key, and by whom."""

    text: str
    model: str
    input_tokens: int
    output_tokens: int
    cost: int
    reused: bool
    stored: tuple[str, str] = ("", "")


@dataclass
class Bill:
    """What one try spent and used. `wasted`: something may have been billed whose answer is not stored. `paid`: the
    keys of the usable answers that it was billed for."""

    cost: int = 0
    calls: int = 0
    wasted: bool = False
    used: list[tuple[str, str]] = field(default_factory=list)  # (answer key, saved by)
    paid: set[str] = field(default_factory=set)


class AskingModel:
    """The model as one try of one job sees it. With a recorder its answers are shown while they are said."""

    def __init__(
        self,
        job: Job,
        *,
        model: StreamingModel,
        model_id: str,
        answers: Answers,
        remaining_s: Callable[[], float],
        reuse: Reuse,
        limits: Limits,
        notice: Notice,
        bill: Bill,
        recorder: Recorder | None = None,
        again: bool = False,
    ) -> None:
        self._job, self._model, self._model_id, self._answers = job, model, model_id, answers
        self._recorder, self._again = recorder, again
        self._remaining_s, self._limits, self._notice, self._bill = remaining_s, limits, notice, bill
        self._shared = reuse == "tenant" and not job.fresh

    def ask(
        self,
        prompt: str,
        *,
        system: str = "",
        max_tokens: int = 1_000,
        temperature: float | None = None,
        show: bool = True,
    ) -> Answer:
        """Ask; the same question of the same tenant is paid for once. Where the job's text is streamed, this answer is
        a part of it, unless `show` is false.

        Raises ModelError, AnswerPending, OutOfTime: let them pass, they become waits, retries and reasons."""
        request = ModelRequest(self._model_id, system, prompt, max_tokens, temperature)
        key = answer_key(self._job, request, shared=self._shared)
        kept = self._shown(key, request, self._recorder) if self._recorder and show else self._kept(key, request)
        value = kept.value
        stored = (key, kept.by)
        self._bill.used.append(stored)
        cost = 0 if kept.reused else int(value["cost"])
        if kept.reused:
            self._notice("answer_reused", model=self._model_id, answer=key)
        tokens = (value["input_tokens"], value["output_tokens"])
        is_reused = kept.reused and key not in self._bill.paid
        return Answer(value["text"], self._model_id, *tokens, cost, is_reused, stored)

    def _shown(self, key: str, request: ModelRequest, recorder: Recorder) -> Kept:
        """Paid once comes first: only an answer that is stored is awaited by nobody but the text that shows it."""
        recorder.begin()
        try:
            kept = self._kept(key, request, recorder.heard)
        except Exception:
            recorder.broke()
            raise
        recorder.said(kept.value["text"])
        return kept

    def _kept(self, key: str, request: ModelRequest, heard: Heard | None = None) -> Kept:
        def call() -> Mapping[str, Any]:
            value = self._call(request, heard)
            self._bill.paid.add(key)  # before it is stored, and so before another thread of this try finds it
            return value

        patience = min(PATIENCE_S, self._remaining_s() - self._limits.settle_s)
        look = self._again or self._job.attempt > 1
        try:
            return self._answers.once(key, self._job.tenant, call, patience_s=patience, look=look)
        except AnswerNotStored:
            self._bill.wasted = True
            raise

    def _call(self, request: ModelRequest, heard: Heard | None) -> Mapping[str, Any]:
        if self._remaining_s() < self._limits.call_s:
            raise OutOfTime(f"{self._remaining_s():.0f} s left, a call needs {self._limits.call_s} s")
        try:
            price_of(request.model)
        except UnknownModel as error:
            raise Permanent(str(error.args[0]), "UNKNOWN_MODEL") from error  # before it is paid, not after
        self._bill.calls += 1
        self._notice("model_called", model=request.model, max_tokens=request.max_tokens)
        before = self._remaining_s()
        try:
            reply = self._model.converse_stream(request, heard) if heard else self._model.converse(request)
        except ModelError as error:
            if error.maybe_billed:
                error.cost = _estimate(request)
            self._book_wasted(error.cost)
            raise
        return self._usable(request, reply, ms=int((before - self._remaining_s()) * 1000))

    def _usable(self, request: ModelRequest, reply: Reply, ms: int) -> Mapping[str, Any]:
        cost = cost_micros(request.model, reply.input_tokens, reply.output_tokens)
        self._notice(
            "model_answered", model=request.model, stop_reason=reply.stop_reason, cost_micros=cost,
            input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, ms=ms,
        )  # fmt: skip
        unusable = _unusable(reply.stop_reason)
        if unusable:
            self._book_wasted(cost)
            unusable.cost = cost
            raise unusable
        self._bill.cost += cost
        return {**asdict(reply), "cost": cost}

    def _book_wasted(self, cost: int) -> None:
        self._bill.cost += cost
        self._bill.wasted = self._bill.wasted or cost > 0


def answer_key(job: Job, request: ModelRequest, *, shared: bool) -> str:
    """64 hex digits. Sample 0 is shared by the tenant's jobs; further samples belong to this job and this opening."""
    parts: list[Any] = [job.tenant, PROMPT_VERSION, asdict(request)]
    if not shared or job.sample > 0:
        parts += [job.id]
    if job.sample > 0:
        parts += [job.run, job.sample]
    return sha256_of(parts)


def _unusable(stop_reason: str) -> ModelError | None:
    """It came whole and is paid, whatever it ended with: an end that nobody has heard of is not paid for as often as
    a call that broke. No tools are offered, so that an answer which asks for one is none."""
    if stop_reason in COMPLETE:
        return None
    if stop_reason in CUT:
        return ModelError("truncated", stop_reason, CUT[stop_reason])
    if stop_reason in REFUSING:
        return ModelError("refused", stop_reason, "the model or a guardrail refused to answer")
    return ModelError("unusable", stop_reason or "no_stop_reason", "the answer did not come to an end")


def _estimate(request: ModelRequest) -> int:
    """The most that a call which broke half-way can have cost, but for its input's exact count."""
    sent = estimate_tokens(request.system) + estimate_tokens(request.prompt)
    return cost_micros(request.model, sent, request.max_tokens)
