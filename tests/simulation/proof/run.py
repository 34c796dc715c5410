"""One case under way: its job, who acts on it next, what is to strike it."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from lambdas.adapters.fenced_layer import row_id
from lambdas.adapters.idempotency import KEY_PREFIX
from lambdas.core import ids
from lambdas.core.asking import answer_key
from lambdas.core.job import Job
from lambdas.core.ports import ModelRequest
from local.aws.calls import Call
from tests.simulation.proof import at_the_model
from tests.simulation.proof.acts import Act
from tests.simulation.proof.cases import Blow, Case, parse_blow
from tests.simulation.proof.chronicle import Asked, Began, Chronicle
from tests.simulation.proof.scenarios import Scenario
from tests.simulation.proof.strikes import Strike, strikes
from tests.simulation.stage import Stage
from tests.simulation.tasks.steady.task import MAX_TOKENS, SYSTEM
from tests.simulation.watch import is_settled, poll

TENANTS = ("proof-acme", "proof-globex", "proof-initech")
ANSWERS = 6  # that differ, so that it is seen whose was kept; whoever asks more often gets the last one again
PATIENCE_S = 300.0  # real seconds until nothing moves: many jobs may
CLOCK_S = 0.2  # a process that was stopped is told the time as soon as it runs, on a thread of its own


@dataclass(eq=False)
class Run:
    """A scenario's job on a stage. `alone`: no other moves meanwhile, so that every invocation is about it."""

    case: Case
    scenario: Scenario
    stage: Stage
    chronicle: Chronicle
    tenant: str
    alone: bool = False
    group: Sequence[Run] = ()
    mate_of: Run | None = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    todo: list[Act] = field(default_factory=list)
    sent: list[Future[str]] = field(default_factory=list)
    faults: list[Strike] = field(default_factory=list)
    struck_model: list[Blow] = field(default_factory=list)
    since: int = 0
    until: int = 0
    job_id: str = ""
    place: str = ""
    cancelled: bool = False
    too_late: bool = False
    answers: tuple[str, ...] = ()
    _own: dict[str, list[Began]] = field(default_factory=dict, repr=False)
    _read: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self.job_id = Stage.job_id(self.key, self.tenant)
        self.todo = list(self.scenario.acts)
        self.answers = tuple(f"{number}: {self.scenario.answer}" for number in range(1, ANSWERS + 1))

    @property
    def cut_off(self) -> frozenset[str]:
        """The invocations whose work was ended by what struck it, or struck who may have shared a batch with it."""
        paired = any(run.mate_of for run in self.group)
        return frozenset().union(*(run.ended for run in self.group)) if paired else self.ended

    @property
    def ended(self) -> frozenset[str]:
        """Those that its own blows ended."""
        return frozenset(
            one.request_id
            for blow in (*map(parse_blow, self.scenario.given), *self.case.blows)
            if blow.cuts_off
            for one in self.invocations(blow.boundary.function)[blow.boundary.turn - 1 : blow.boundary.turn]
        )

    # --- what it is called ----------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """What events have in them that are about it."""
        return (self.job_id, self.key)

    @cached_property
    def answer_key(self) -> str:
        """Of the answer that every job with this question gets."""
        model = self.stage.runtime.functions.definition("worker").environment["MODEL_ID"]
        question = str(self.scenario.input(self.key)[self.scenario.question])
        request = ModelRequest(model, "" if self.scenario.question == "prompt" else SYSTEM, question, MAX_TOKENS)
        at = datetime.now(UTC)
        job = Job(self.job_id, self.tenant, self.scenario.task, "PENDING", 0, 0, at, at, at, "")
        return answer_key(job, request, shared=True)

    @cached_property
    def row(self) -> str:
        """Of that answer, in the answers table."""
        return row_id(KEY_PREFIX, self.answer_key)

    @property
    def said_names(self) -> tuple[bytes, ...]:
        """What calls have in them that are about it, its answer or its failure."""
        return tuple(name.encode() for name in (self.job_id, self.key, self.answer_key, self.row))

    @property
    def shards(self) -> tuple[bytes, ...]:
        """Where indexes have it; a query for all that lies there may be about it."""
        return tuple(
            f'{{"S": "{shard}"}}'.encode() for shard in (ids.due_shard(self.job_id), ids.upload_shard(self.job_id))
        )

    def is_about_it(self, call: Call) -> bool:
        if self.alone:
            return call.operation != "Query" or any(shard in call.body for shard in self.shards)
        return any(name in call.body or name.decode() in call.path for name in self.said_names)

    def is_event_about_it(self, role: str, event: Any) -> bool:
        if self.alone:
            return True
        written = self.chronicle.written(event)
        return any(name in written for name in self.names)

    def invocations(self, function: str) -> list[Began]:
        """Those that were about it, in their order."""
        with self._lock:
            for one in self.chronicle.began[self._read :]:
                self._read += 1
                if one.number > self.since and (self.alone or any(name in one.event for name in self.names)):
                    self._own.setdefault(one.function, []).append(one)
            return [one for one in self._own.get(function, ()) if one.number <= (self.until or one.number)]

    def turn(self, function: str, request_id: str) -> int:
        """Which of them it is; 0 for none."""
        ids_ = list(dict.fromkeys(one.request_id for one in self.invocations(function)))
        return ids_.index(request_id) + 1 if request_id in ids_ else 0

    # --- what is done -----------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Have it struck from now on. Blows at the model are struck when it is asked."""
        self.since = self.chronicle.last
        for blow in (*map(parse_blow, self.scenario.given), *self.case.blows):
            if blow.boundary.at_model:
                self.struck_model.append(blow)
            else:
                self.faults += strikes(self, blow)
        for fault in self.faults:
            self.stage.strike(fault)

    def act(self) -> bool:
        """Whoever is next does what he does, if its moment has come."""
        if not self.todo:
            return False
        act = self.todo[0]
        if not act(self):
            return False
        if act in self.todo:
            self.todo.remove(act)
        return True

    def submit(self) -> None:
        sent = dict(self.scenario.input(self.key))
        self.sent.append(self.stage.submit(self.scenario.task, sent, key=self.key, tenant=self.tenant))

    def provide(self) -> None:
        """The object that it looks for."""
        key = ids.context_key(self.tenant, self.key)
        self.stage.s3.put_object(Bucket=self.stage.target.outputs["InputsBucketName"], Key=key, Body=b"here")

    def upload(self) -> None:
        """Its input, as an object of which nobody tells."""
        self.place = f"uploads/{self.tenant}/{self.scenario.task}/{self.key}.json"
        self.stage.runtime.notifications.drop(1, match=self.place)
        bucket = self.stage.target.outputs["UploadsBucketName"]
        body = json.dumps(dict(self.scenario.input(self.key))).encode()
        put = self.stage.s3.put_object(Bucket=bucket, Key=self.place, Body=body, ContentType="application/json")
        self.job_id = ids.object_job_id(bucket, self.place, put["VersionId"])

    # --- the model ----------------------------------------------------------------------------------------------

    @property
    def rules(self) -> list[dict[str, Any]]:
        """What the model says to it: the scenario's own first, then an answer that is another each time."""
        first = [{"times": 1, **rule} for rule in self.scenario.model]
        answers = [{"answer": text, "times": 1} for text in self.answers]
        told: list[Mapping[str, Any]] = [*first, *answers, {"answer": self.answers[-1]}]
        return [{"match": self.key, **{n: v for n, v in rule.items() if v is not None}} for rule in told]

    def on_ask(self, asked: Asked) -> None:
        """It is being asked: now it is cancelled, now its caller is struck."""
        if self.scenario.cancels and not self.cancelled:
            self.cancelled = True
            self._cancel()
        turn = self.turn("worker", asked.request_id)
        for blow in [one for one in self.struck_model if one.boundary.turn == turn]:
            self.struck_model.remove(blow)
            at_the_model.strike(self.stage, self.key, blow, asked)

    def _cancel(self) -> None:
        """Heard before the model answers, unless whoever carries it out stands still."""
        future = self.stage.ask("control", self._insist_on_cancelling)
        poll(lambda: future.done() or self._stands("control"), lambda: "the cancellation goes on and on", PATIENCE_S)

    def _stands(self, function: str) -> bool:
        """Whether one of its invocations stands still."""
        own = {one.request_id for one in self.invocations(function)}
        return any(one.running and one.running.request_id in own for one in self.stage.frozen(function))

    def _insist_on_cancelling(self) -> None:
        for _ in range(10):
            try:
                answer = self.stage.cancel(self.job_id, self.tenant)
            except OSError:
                continue
            if answer.status == 202:
                return
            if answer.status == 409:
                self.too_late = True
                return
            assert answer.status >= 500, answer
        raise AssertionError("it was not cancelled in ten requests")

    # --- how far it is --------------------------------------------------------------------------------------------

    @property
    def record(self) -> dict[str, Any]:
        return self.stage.record(self.job_id)

    @property
    def is_known(self) -> bool:
        return self.stage.jobs.read(self.job_id) is not None

    @property
    def is_settled(self) -> bool:
        found = self.stage.jobs.read(self.job_id)
        return found is not None and is_settled(found)

    @property
    def is_struck(self) -> bool:
        """Whether the (first) blow has met its boundary."""
        met = [blow for blow in self.case.blows if self._has_met(blow)]
        return len(met) == len(self.case.blows) or (len(self.case.blows) > 1 and bool(met))

    def _has_met(self, blow: Blow) -> bool:
        if blow.boundary.at_model:
            return blow not in self.struck_model
        return next(fault for fault in self.faults if fault.blow == blow).spent  # repeats meet the others, if any come

    @property
    def ends(self) -> tuple[str, str]:
        """Status and reason. A cancellation that stood still until the job was done has come too late."""
        held = any(blow.boundary.function == "control" for blow in self.case.blows)
        return ("COMPLETED", "") if self.too_late and held else (self.scenario.ends, self.scenario.reason)

    @property
    def is_over(self) -> bool:
        return not self.todo and self.is_settled
