"""Plays cases on one stack: side by side where each call is about one job, in pairs, or one by one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any

from local.compute.environment import Environment
from local.compute.invocation import Invocation
from tests.receivers import Came as Delivered
from tests.simulation.proof.cases import Case
from tests.simulation.proof.chronicle import Asked, Chronicle
from tests.simulation.proof.evidence import Evidence, collect
from tests.simulation.proof.leftovers import QUEUES, Mail
from tests.simulation.proof.receivers import STRANGER, Receivers
from tests.simulation.proof.run import CLOCK_S, PATIENCE_S, TENANTS, Run
from tests.simulation.proof.scenarios import SCENARIOS, Scenario
from tests.simulation.stage import LEASE_S, SWEEP_LEASE_S, VISIBILITY_S, Stage
from tests.simulation.watch import poll

ROUND_S = LEASE_S + 20
TOGETHER_S = 20.0  # deadlines so close to one another are waited for at once
AT_ONCE = {"worker": 16, "deliver": 40, "socket": 40}  # of which some stand frozen, and must not hold up the others
CLEAR_UPS = 10


class StuckError(AssertionError):
    """Some job never came to its end; says which, and how they stand."""


class Player:
    """A stage, its chronicle, and the jobs that are under way. After `rounds` (and two for each job) it gives up."""

    rounds = 20

    def __init__(self, stage: Stage, receivers: Receivers) -> None:
        self.stage = stage
        self.receivers = receivers
        receivers.on_come = self._on_come
        self.chronicle = Chronicle(stage.runtime, self._on_ask, self._on_part).attach()
        self.runs: list[Run] = []
        self._tenants = cycle(TENANTS)
        self._known: set[str] = set()
        self._has_stranger = False

    def play(self, cases: Sequence[Case], *, mates: bool = False, alone: bool = False) -> list[Evidence]:
        """All of one scenario. `mates`: each with an innocent one beside it, two to a batch. `alone`: each by itself
        until it is over."""
        scenario = SCENARIOS[cases[0].scenario]
        self._begin(scenario)
        self.runs = self._runs(cases, scenario, mates, alone)
        self.stage.script(*(rule for run in self.runs for rule in run.rules))
        mail = Mail()
        if alone:
            for run in self.runs:
                self._start(run)
                self._drain([run])
                mail.gather(self.stage)
        elif mates:
            self._in_pairs()
        else:
            for run in self.runs:
                self._start(run)
            self._drain(self.runs)
        self._clear_up()
        self._known |= {run.job_id for run in self.runs}
        for run in self.runs:
            run.leave()
        self._quiet()
        evidence = collect(self.stage, self.chronicle, self.runs, mail, self._known)
        self._listen_again()
        return evidence

    # --- the beginning -----------------------------------------------------------------------------------------

    def _begin(self, scenario: Scenario) -> None:
        stage = self.stage
        self._known |= {run.job_id for run in self.runs}  # of a group that broke off, too
        stage.reset()
        self._quiet()
        stage.runtime.notifications.clear()
        stage.batches_of(1, 1)
        for role, limit in AT_ONCE.items():
            stage.runtime.functions.set_concurrency(role, limit)
        self.chronicle.clear()
        for url in (stage.inbox, *stage.dead_letter_queues.values()):
            stage.take_all(url)
        if not scenario.stream:
            stage.disable("dispatch")
        if scenario.delivered and not self._has_stranger:
            self._has_stranger = True
            url = self.receivers.place(STRANGER)
            answer = stage.target.post("/webhooks", {"url": url}, x_local_tenant="proof-stranger")
            assert answer.status == 201, answer

    def _runs(self, cases: Sequence[Case], scenario: Scenario, mates: bool, alone: bool) -> list[Run]:
        runs: list[Run] = []
        for case in cases:
            run = self._run(case, scenario, alone=alone, group=runs)
            runs.append(run)
            if mates:
                runs.append(self._run(Case(case.scenario, ()), scenario, group=runs, mate_of=run))
        return runs

    def _run(self, case: Case, scenario: Scenario, **more: Any) -> Run:
        return Run(case, scenario, self.stage, self.chronicle, next(self._tenants), self.receivers, **more)

    def _start(self, run: Run) -> None:
        run.arm()
        run.act()

    def _on_ask(self, asked: Asked) -> None:
        for run in self.runs:
            if run.key in asked.request.prompt:
                run.on_ask(asked)

    def _on_part(self, asked: Asked, part: int) -> None:
        for run in self.runs:
            if run.key in asked.request.prompt:
                run.on_part(asked, part)

    def _on_come(self, place: str, delivered: Delivered) -> bool:
        run = next((one for one in self.runs if one.key == place), None)
        made = run.invocations("deliver") if run else []
        came = self.chronicle.comes(made[-1].request_id if made else "", place, delivered)
        return run is None or run.on_come(came)

    # --- two to a batch ------------------------------------------------------------------------------------------

    def _in_pairs(self) -> None:
        """Stream and queue are served in turns, so that what is to be in one batch lies there when it is made."""
        stage = self.stage
        stage.runtime.functions.set_concurrency("worker", 1)
        stage.batches_of(2, 2)
        stage.disable("dispatch")
        stage.runtime.functions.pause("worker")
        for run in self.runs:
            self._start(run)
            self._quiet()
        idle = 0
        for _ in range(40):
            self._serve("dispatch")
            self._serve("worker")
            if all(run.is_struck for run in self.runs):
                break
            if sum(run.act() for run in self.runs) or self._has_news():
                continue
            idle += 1
            if idle % 2 and not self.stage.frozen():
                self.stage.advance(ROUND_S)  # what is delayed comes before a sweep would send it again
            else:
                self._pass_time()
        stage.runtime.functions.resume("worker")
        if self.runs[0].scenario.stream:
            stage.enable("dispatch")
        self._drain(self.runs)

    def _has_news(self) -> bool:
        """Whether the stream has records that the dispatcher has not seen."""
        mapping = self.stage.stream_mapping
        return self.runs[0].scenario.stream and bool(mapping._reader.read(mapping.done_up_to, 1))

    def _serve(self, role: str) -> None:
        if role == "worker":
            self.stage.runtime.functions.resume(role)
            self._quiet()
            self.stage.runtime.functions.pause(role)
        elif self.runs[0].scenario.stream:
            self.stage.enable(role)
            self._quiet()
            self.stage.disable(role)

    # --- until nothing moves any more ----------------------------------------------------------------------------

    def _drain(self, runs: Sequence[Run]) -> None:
        for _ in range(self.rounds + 2 * len(runs)):
            self._quiet()
            if sum(run.act() for run in runs) or self._come_late():
                continue
            if all(run.is_over for run in runs) and not self.stage.frozen():
                for run in runs:
                    run.until = self.chronicle.last
                return
            self._pass_time()
        left = [f"{run.case}: {self.stage.jobs.read(run.job_id)}" for run in runs if not run.is_over]
        raise StuckError("\n".join(left))

    def _come_late(self) -> bool:
        """What was to come late comes at the first standstill."""
        return bool(self.stage.runtime.faults.haunt() + self.stage.runtime.faults.deliver_late())

    def _quiet(self) -> None:
        self.stage.quiet(PATIENCE_S)

    def _pass_time(self) -> None:
        """To the next deadline of one that stands still; else on, with sweeps, and whoever outlived his lease is
        thawed."""
        frozen = self.stage.frozen()
        outlived = [one for one in frozen if self._is_outlived(one)]
        doomed = [one.running.deadline_s for one in frozen if one.running and not one.running.outlives]
        if outlived:
            self._thaw(outlived)
        elif doomed:
            near = max(moment for moment in doomed if moment < min(doomed) + TOGETHER_S)
            self.stage.advance(max(0.0, near - self.stage.now()) + 0.1)
            self._quiet()
            if any(one.definition.role == "sweep" for one in frozen):
                self.stage.advance(11)  # what is left of its lease
        else:
            self.stage.advance(ROUND_S)
            self._quiet()
            self._sweep()
        self._quiet()
        for run in self.runs:
            run.look()
        self._quiet()

    def _is_outlived(self, environment: Environment) -> bool:
        """It stands since before its lease ended, and others have had the time to go on in its place."""
        running = environment.running
        return running is not None and running.outlives and running.deadline_s + ROUND_S < self.stage.now()

    def _thaw(self, environments: Sequence[Environment]) -> None:
        for one in environments:
            one.thaw()
        time.sleep(2 * CLOCK_S)

    def _sweep(self) -> None:
        """The sweeps of the scenario; one that died is followed by the next as soon as its lease is over."""
        for part in self.runs[0].scenario.sweeps:
            while (outcome := self._sweep_part(part)) is not None and not outcome.ok:
                self._quiet()
                self.stage.advance(SWEEP_LEASE_S)

    def _sweep_part(self, part: str) -> Invocation | None:
        invoke = self.stage.runtime.functions.invoke
        future = self.stage.ask("sweep", lambda: invoke("sweep", {"parts": [part]}))
        poll(lambda: future.done() or bool(self.stage.frozen("sweep")), lambda: f"the sweep of {part} goes on and on")
        return future.result() if future.done() else None

    def _clear_up(self) -> None:
        """Until every message has come back and gone for good."""
        for _ in range(CLEAR_UPS):
            if self.stage.frozen():
                self._pass_time()
            elif any(self.stage.depth("all", queue) for queue in QUEUES):
                self.stage.advance(VISIBILITY_S)
                self._quiet()
            else:
                break
        self.stage.runtime.faults.clear()
        self.stage.advance(SWEEP_LEASE_S)
        self._sweep()
        self._quiet()

    def _listen_again(self) -> None:
        """The dispatcher has a lot to say about what was long done; nobody needs it."""
        self.stage.enable("dispatch")
        self._quiet()
