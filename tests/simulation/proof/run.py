"""One case under way: its job, who acts on it next, what is to strike it."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.adapters.fenced_layer import row_id
from lambdas.adapters.idempotency import KEY_PREFIX
from lambdas.core import ids
from lambdas.core.asking import answer_key
from lambdas.core.job import Job
from lambdas.core.ports import ModelRequest
from local.aws.calls import Call
from tests.simulation.proof import at_the_model
from tests.simulation.proof.acts import Act
from tests.simulation.proof.boundaries import SERIAL, TURNLESS
from tests.simulation.proof.cases import KILLS, Blow, Case, parse_blow
from tests.simulation.proof.chronicle import Asked, Became, Began, Came, Chronicle
from tests.simulation.proof.receivers import Receivers
from tests.simulation.proof.scenarios import PIECE, Scenario
from tests.simulation.proof.strikes import Strike, strikes
from tests.simulation.proof.watchers import Watcher
from tests.simulation.stage import Stage
from tests.simulation.tasks.steady.task import MAX_TOKENS, SYSTEM
from tests.simulation.watch import is_settled, poll

TENANTS = ("proof-acme", "proof-globex", "proof-initech")
ANSWERS = 6  # that differ, so that it is seen whose was kept; whoever asks more often gets the last one again
PATIENCE_S = 300.0  # real seconds until nothing moves: many jobs may
PIECE_S, FRAME_S = 5.0, 2.0  # real seconds that a piece of text may take to its watchers, and a frame
SURE_S = 120.0  # the same of a piece that nothing has befallen
CLOCK_S = 0.2  # a process that was stopped is told the time as soon as it runs, on a thread of its own


@dataclass(eq=False)
class Run:
    """A scenario's job on a stage. `alone`: no other moves meanwhile, so that every invocation is about it."""

    case: Case
    scenario: Scenario
    stage: Stage
    chronicle: Chronicle
    tenant: str
    receivers: Receivers
    alone: bool = False
    group: Sequence[Run] = ()
    mate_of: Run | None = None
    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    todo: list[Act] = field(default_factory=list)
    sent: list[Future[str]] = field(default_factory=list)
    faults: list[Strike] = field(default_factory=list)
    struck_outside: list[Blow] = field(default_factory=list)
    watchers: tuple[Watcher, ...] = ()
    watched_since: int = 0
    midway: bool = False
    since: int = 0
    until: int = 0
    job_id: str = ""
    place: str = ""
    url: str = ""
    cancelled: bool = False
    too_late: bool = False
    answers: tuple[str, ...] = ()
    _own: dict[str, list[Began]] = field(default_factory=dict, repr=False)
    _read: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        if self.scenario.delivered:  # one of its own: those of one tenant share what is known of their endpoint
            self.tenant = f"proof-{self.key}"
            self.url = self.receivers.place(self.key)
        self.job_id = Stage.job_id(self.key, self.tenant)
        self.todo = list(self.scenario.acts)
        self.answers = tuple(self._answer(number) for number in range(1, ANSWERS + 1))

    def _answer(self, number: int) -> str:
        """In a stream it comes in pieces, each of which tells whose it is."""
        if not self.scenario.told:
            return f"{number}: {self.scenario.answer}"
        return "".join(f"{number}: piece {piece} · ".ljust(PIECE, ".") for piece in range(3))

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
        own = ids.due_shard(self.job_id), ids.upload_shard(self.job_id)
        deliveries = {ids.delivery_shard(one.job_id, one.record["sk"]) for one in self.delivery_states}
        return tuple(f'{{"S": "{shard}"}}'.encode() for shard in (*own, *deliveries))

    def is_about_it(self, call: Call) -> bool:
        if self.alone and call.caller is not None and call.caller.function in SERIAL:
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
        """Have it struck from now on. Blows outside are struck when the model, or the receiver, is asked."""
        self.since = self.chronicle.last
        for blow in (*map(parse_blow, self.scenario.given), *self.case.blows):
            if blow.boundary.is_outside:
                self.struck_outside.append(blow)
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
        more = {"stream": True} if self.scenario.told else {"callback_url": self.url} if self.url else {}
        self.sent.append(self.stage.submit(self.scenario.task, sent, key=self.key, tenant=self.tenant, **more))

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
        how = {"delta_chars": PIECE} if self.scenario.told else {}
        answers = [{"answer": text, "times": 1, **how} for text in self.answers]
        told: list[Mapping[str, Any]] = [*first, *answers, {"answer": self.answers[-1], **how}]
        return [{"match": self.key, **{n: v for n, v in rule.items() if v is not None}} for rule in told]

    def on_ask(self, asked: Asked) -> None:
        """It is being asked: now it is watched, now it is cancelled, now its caller is struck."""
        if self.scenario.told:
            self._watch()
        elif self.scenario.cancels and not self.cancelled:
            self.cancelled = True
            self._cancel()
        for blow in self._blows_outside("worker", asked.request_id):
            at_the_model.strike(self.stage, self.key, blow, asked)

    def on_part(self, asked: Asked, part: int) -> None:
        """The model is about to say this much more. It waits for its first piece to be heard by everybody: one watcher
        leaves then, and it is cancelled in the midst of its text if it is to be."""
        if not self.scenario.told or part != at_the_model.MIDWAY or self.midway:
            return
        self.midway = True
        self._await_first_piece(asked)
        if self._is_gone(asked):
            self.midway = False  # it is said once more, to somebody else
        elif self.scenario.cancels:
            self._cancel()

    def on_come(self, came: Came) -> bool:
        """Its receiver is called: now the caller is struck. False if he hears no answer."""
        blows = self._blows_outside("deliver", came.request_id)
        kills = [blow for blow in blows if blow.kind.kind in KILLS]
        alive = all(at_the_model.strike_holder(self.stage, blow, came.request_id) for blow in kills)
        return alive and len(kills) == len(blows)

    def _blows_outside(self, function: str, request_id: str) -> list[Blow]:
        """Those whose moment has come; it comes once."""
        turn = self.turn(function, request_id)
        found = [
            blow for blow in self.struck_outside if (blow.boundary.function, blow.boundary.turn) == (function, turn)
        ]
        for blow in found:
            self.struck_outside.remove(blow)
        return found

    def _is_gone(self, asked: Asked) -> bool:
        return self.stage.runtime.functions.environment_of(asked.request_id) is None

    def _await_first_piece(self, asked: Asked) -> None:
        """To be stored, and to be heard; for a while: who is struck stores and hears nothing."""
        struck = [blow.boundary for blow in self.case.blows]
        stores = all((one.function, one.operation) != ("worker", "PutItem") for one in struck)
        tells = stores and not any(one.function in TURNLESS for one in struck)
        self._await(lambda: bool(self.stage.chunks(self.job_id)), asked, SURE_S if stores else PIECE_S)
        self._await(lambda: all(one.heard.texts for one in self.watchers), asked, SURE_S if tells else PIECE_S)

    def _await(self, done: Callable[[], bool], asked: Asked, patience_s: float) -> None:
        ends = time.monotonic() + patience_s
        while time.monotonic() < ends and not done():
            if self._stands("push") or self._stands("worker") or self._is_gone(asked):
                return
            time.sleep(0.01)

    def _cancel(self) -> None:
        """Heard before the model goes on, unless whoever carries it out stands still."""
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

    # --- watchers ----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Before the first word is said: one who stays, and one who leaves in the midst of it."""
        with self._lock:
            if self.watchers:
                return
            self.watchers = tuple(
                Watcher(self.stage, self.job_id, self.tenant, leaves=leaves) for leaves in (False, True)
            )
        for one in self.watchers:
            one.come()
        self.watched_since = self.chronicle.last

    def is_watched(self, function: str) -> bool:
        """Whether push meets somebody; it is about the job before that, too, for nothing."""
        return function != "push" or not self.scenario.told or self.watched_since > 0

    def is_watched_at(self, invocation: Began) -> bool:
        return invocation.function != "push" or invocation.number > self.watched_since

    def come_back(self) -> None:
        for one in self.watchers[1:]:
            self.stage.ask("socket", one.come_back)

    def look(self) -> None:
        """Time has passed: watchers ask for what they may have missed."""
        for one in self.watchers:
            if not one.is_done and not one.away:
                self.stage.ask("socket", one.look)

    def leave(self) -> None:
        for one in self.watchers:
            one.close()

    def _has_told(self) -> bool:
        """Whether its watchers have heard the end; the last frames may be on their way."""
        ends = time.monotonic() + FRAME_S
        while not all(one.is_done for one in self.watchers) and time.monotonic() < ends:
            time.sleep(0.01)
        return all(one.is_done for one in self.watchers)

    # --- deliveries --------------------------------------------------------------------------------------------------

    @property
    def delivery_states(self) -> list[Became]:
        """After each write."""
        return [one for one in list(self.chronicle.deliveries) if one.job_id == self.job_id]

    @property
    def deliveries(self) -> list[dict[str, Any]]:
        """As they stand."""
        store = DynamoDeliveries(self.stage.dynamodb, self.stage.target.outputs["JobsTableName"])
        return [dict(one) for one in store.beside(self.job_id)]

    def _has_delivered(self) -> bool:
        found = self.deliveries
        return bool(found) and all(one["status"] in ("COMPLETED", "FAILED") for one in found)

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
        if blow.boundary.is_outside:
            return blow not in self.struck_outside
        return next(fault for fault in self.faults if fault.blow == blow).spent  # repeats meet the others, if any come

    @property
    def ends(self) -> tuple[str, str]:
        """Status and reason. A cancellation that stood still until the job was done has come too late."""
        held = any(blow.boundary.function == "control" for blow in self.case.blows)
        return ("COMPLETED", "") if self.too_late and held else (self.scenario.ends, self.scenario.reason)

    @property
    def is_over(self) -> bool:
        if self.todo or not self.is_settled:
            return False
        return self._has_told() and (not self.scenario.delivered or self._has_delivered())
