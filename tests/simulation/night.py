"""A stack whose schedules run, its clock, and its alarms: what an operator is woken up by, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from moto.sqs.models import sqs_backends

from local.aws.calls import Call, Refusal, Response
from local.aws.lock import MOTO
from local.aws.patches.sqs_depth import ready
from local.events import queues, streams
from local.events.queues import QueueMapping
from local.events.schedules import Schedule
from local.metrics.verdict import ALARM, OK
from local.runtime import Runtime
from local.stack.place import ACCOUNT, REGION
from tests.simulation.resting import moving
from tests.simulation.stage import Stage
from tests.simulation.watch import poll

MINUTE_S, HOUR_S = 60, 3_600
LETTERS = ("Work", "Urgent", "Inbox", "Deliveries", "Dispatch", "Ended", "Sweep", "Redrive")


class Night(Stage):
    """Everything sweeps by itself. Time passes in steps, and after each of them everybody finishes what is to be done:
    a step is a time in which nobody worked."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.schedules = {one.logical_id: one for one in runtime.sources.schedules.schedules}
        self.names = {alarm.logical_id: short(alarm.logical_id) for alarm in runtime.metrics.alarms.alarms}
        self.fired: set[str] = set()
        """Every alarm that a test has waited for, and seen."""
        for schedule in self.schedules.values():
            self.create(schedule)

    # --- time ------------------------------------------------------------------------------------------------

    def pass_time(self, seconds: float = HOUR_S, step_s: float = MINUTE_S) -> None:
        """In steps; before and after each nobody is at work: the clock is not moved under somebody who is."""
        self.settle()
        end = self.now() + seconds
        while self.now() < end:
            self._step(min(step_s, end - self.now()))

    def _step(self, seconds: float) -> None:
        """Who tries again and again is kept from it for the moment, and tries once more after it."""
        if self.stubborn:
            self.disable(self.stubborn)
        self.advance(seconds)
        if self.stubborn:
            tried = self._tries()
            self.enable(self.stubborn)
            poll(lambda: self._tries() > tried, lambda: f"{self.stubborn} does not try again")
        self.settle()

    def _tries(self) -> int:
        return sum(outcome.function == self.stubborn for outcome in list(self.runtime.functions.history))

    def settle(self) -> None:
        """Until nothing moves any more."""
        poll(self._is_settled, lambda: f"still at work: {self._at_work()}")
        self.check_answers()

    def _is_settled(self) -> bool:
        """As `_is_quiet`."""
        ended = self.last_ended()
        return not self._at_work() and not self._at_work() and self.last_ended() is ended

    def _at_work(self) -> list[str]:
        now = self.runtime.clock.now()
        queued = self._queued()
        due = [one.logical_id for one in self.schedules.values() if one.enabled and one.due and one.due <= now]
        running = [one.definition.role for one in self.environments() if one.definition.role != self.stubborn]
        records = [one for one in self._busy_stream() if one.rpartition(" ")[2] != self.stubborn]
        return queued or due or running or self._handed_over() or self._called() or records or self._moving()

    def _moving(self) -> list[str]:
        return list(moving(self.runtime))

    def _called(self) -> list[str]:
        """By Step Functions, though perhaps their environments are only being started."""
        return [role for role in ("branch", "collect") if self.runtime.functions._pools[role]._taken]

    def _handed_over(self) -> list[str]:
        """Asynchronous invocations; those that wait for their next try wait for time."""
        batches = [mapping.role for mapping in self.queue_mappings if mapping._invoking]
        waiting = [thread.name.removeprefix("async-") for thread in list(self.runtime.sources.invoker._threads)]
        begun = [role for role in waiting if self.runtime.functions._pools[role]._taken]
        return batches or begun or [role for role in waiting if role not in self.patient]

    patient: frozenset[str] = frozenset()
    """Roles whose asynchronous invocations wait between two tries."""
    stubborn: str = ""
    """Whose source of events hands him the same again and again, whatever he says."""

    def _queued(self) -> list[str]:
        """Without asking over HTTP: this is asked a hundred times a night."""
        return [mapping.role for mapping in self.queue_mappings if mapping.enabled and self._has_messages(mapping)]

    @staticmethod
    def _has_messages(mapping: QueueMapping) -> bool:
        if not mapping._between_looks.acquire(timeout=1):  # it may just have received some
            return True
        try:
            with MOTO:
                return bool(ready(sqs_backends[ACCOUNT][REGION].queues[mapping._url.rpartition("/")[2]]))
        finally:
            mapping._between_looks.release()

    # --- alarms ----------------------------------------------------------------------------------------------

    def states(self) -> dict[str, str]:
        found = self.runtime.metrics.look().states()
        return {self.names[logical_id]: state for logical_id, state in found.items()}

    def ringing(self) -> set[str]:
        return {name for name, state in self.states().items() if state == ALARM}

    def rung(self, since_s: float, until_s: float = float("inf")) -> dict[str, float]:
        """Which have come to ALARM in that time, and how many seconds after its beginning."""
        alarms = self.runtime.metrics.look()
        found: dict[str, float] = {}
        for logical_id, name in self.names.items():
            for one in alarms.transitions(logical_id):
                if one.state == ALARM and since_s < one.at_s <= until_s:
                    found.setdefault(name, one.at_s - since_s)
        return found

    def wait_for(self, *names: str, since_s: float, most_s: float, step_s: float = MINUTE_S) -> dict[str, float]:
        """Until all of these ring; after how many seconds each did. They are noted as proven."""
        while not set(names) <= self.rung(since_s).keys():
            passed = self.now() - since_s
            assert passed < most_s, f"after {passed} s there rang only {self.rung(since_s)}, not {names}"
            self.pass_time(step_s, step_s)
        found = self.rung(since_s)
        self.fired |= set(names)
        return {name: found[name] for name in names}

    def calm(self, most_s: float = 2 * HOUR_S, step_s: float = 5 * MINUTE_S) -> float:
        """Until no alarm rings; the time then."""
        end = self.now() + most_s
        while ringing := self.ringing():
            assert self.now() < end, f"still {ringing}"
            self.pass_time(step_s, step_s)
        assert set(self.states().values()) == {OK}
        return self.now()

    def midway(self) -> float:
        """Half a period after a sweep of what is stuck; the time then."""
        sweep = self.schedule("stuck")
        first = _due_s(sweep)
        self.pass_time(first - self.now() + 1, HOUR_S)
        self.pass_time((_due_s(sweep) - first) / 2, HOUR_S)
        return self.now()

    # --- stepping in -----------------------------------------------------------------------------------------

    def schedule(self, part: str) -> Schedule:
        """The schedule that sweeps this part."""
        (found,) = (one for one in self.schedules.values() if part in one.target["Input"])
        return found

    def heal(self) -> None:
        """No fault, no letter, everything switched on and everybody content: what rings has no reason to any more."""
        self.runtime.faults.clear()
        self.script()
        self.stubborn, self.patient = "", frozenset()
        for role in ("dispatch", "push", "worker", "ingest", "deliver"):
            self.enable(role)
        for schedule in self.schedules.values():
            if not schedule.enabled:
                self.create(schedule)
        urls = [self.target.outputs[f"{name}DlqUrl"] for name in (*LETTERS, "Push")]
        for url in urls:
            if self._depth(url, "all"):  # SQS purges once a minute
                self.sqs.purge_queue(QueueUrl=url)

    def create(self, schedule: Schedule) -> None:
        """Its first period begins now."""
        schedule.skip_to(self.runtime.clock.now())
        schedule.enabled = True

    @contextmanager
    def refusing(self, function: str, service: str, operations: set[str]) -> Iterator[None]:
        """As if a permission had been taken from the function."""
        gate = _Refusing(function, service, operations)
        self.runtime._aws.gates.insert(0, gate)
        try:
            yield
        finally:
            self.runtime._aws.gates.remove(gate)


class _Refusing:
    """A gate of the AWS server."""

    def __init__(self, function: str, service: str, operations: set[str]) -> None:
        self._wanted = function, service, operations

    def before(self, call: Call) -> Refusal | None:
        function, service, operations = self._wanted
        if call.caller is None or call.caller.function != function or call.service != service:
            return None
        denied = call.operation in operations
        return Refusal("AccessDeniedException", f"{function} may not do that any more") if denied else None

    def after(self, call: Call, response: Response) -> Response:
        return response


def _due_s(schedule: Schedule) -> float:
    assert schedule.due is not None
    return schedule.due.timestamp()


def short(logical_id: str) -> str:
    """The alarm's name in docs/operations.md: the construct's, without CDK's eight letters."""
    return logical_id.removeprefix("Monitoring")[:-8]


@contextmanager
def lazy() -> Iterator[None]:
    """Event sources look when somebody rings, as who sends or skips time does, and not all the time besides."""
    with patch.object(queues, "_IDLE_S", 2.0), patch.object(streams, "_IDLE_S", 2.0):
        yield


@contextmanager
def night(settings: Mapping[str, Any] | None = None) -> Iterator[Night]:
    """A stack of this repository, from the moment at which each of its schedules has run once."""
    with lazy(), Runtime(settings, write_log=lambda *_: None) as runtime:
        found = Night(runtime)
        try:
            found.settle()
            for schedule in found.schedules.values():
                runtime.sources.schedules.run("sweep", schedule.logical_id)
            yield found
        finally:
            found.close()
    found.threads.shutdown(cancel_futures=True)
