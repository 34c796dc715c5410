"""One execution on moto's interpreter. Importing this takes a second: only where there is a state machine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from moto.stepfunctions.parser.api import HistoryEventType, StateMachineType
from moto.stepfunctions.parser.asl.component.component import Component
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.eval.environment import Environment
from moto.stepfunctions.parser.asl.eval.evaluation_details import AWSExecutionDetails
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventHistoryContext, EventManager
from moto.stepfunctions.parser.asl.eval.program_state import ProgramEnded, ProgramError
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser, ASLParserException
from moto.stepfunctions.parser.utils import TMP_THREADS

from local.aws.patches import stepfunctions
from local.aws.patches.stepfunctions import Abandoned, Going, NobodyWaitsError
from local.executions.calls import Caller
from local.executions.limits import EVENTS
from local.executions.timekeeping import Timekeeper, Waiting
from local.stack.errors import TemplateError

install, remove = stepfunctions.install, stepfunctions.remove

SUCCEEDED, FAILED, TIMED_OUT = "SUCCEEDED", "FAILED", "TIMED_OUT"
_ENDS = ("ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut")
_KILLED_WITHIN_S = 60.0  # real seconds, until the end of a function whose deadline has passed is known
_GLANCE_S = 0.2


@dataclass(frozen=True)
class Facts:
    """What a state machine may ask about its execution."""

    arn: str
    name: str
    input: Any
    role_arn: str
    machine_arn: str
    machine_name: str
    started_at: str
    """ISO 8601."""

    def context(self) -> Any:
        """The context object, `$$`, before the first state."""
        return {
            "Execution": {
                "Id": self.arn,
                "Input": self.input,
                "Name": self.name,
                "RoleArn": self.role_arn,
                "StartTime": self.started_at,
            },
            "StateMachine": {"Id": self.machine_arn, "Name": self.machine_name},
        }


class Ending(Protocol):
    """Told how the states have ended; not told of what was ended from outside."""

    def __call__(self, status: str, *, output: Any = None, error: str | None = None, cause: str | None = None) -> Any:
        """At once, and once."""


@lru_cache(maxsize=256)
def parse(definition: str) -> Program:
    """The program, the same for every execution: what they remember lies in their environments.

    TemplateError for what moto's grammar does not know.
    """
    try:
        parsed, _ = AmazonStateLanguageParser.parse(definition)
    except (ASLParserException, ValueError, RuntimeError) as error:
        raise TemplateError(f"the definition is not understood: {error}") from error
    _name_components(parsed)
    program: Program = parsed  # type: ignore[assignment]
    return program


def _name_components(program: EvalComponent) -> None:
    """Stock names them when they are first asked, which two threads may do at once: then attempts would be lost count
    of."""
    ahead: list[Any] = [program]
    seen: set[int] = set()
    while ahead:
        one = ahead.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, EvalComponent):
            _ = one.heap_key
        if isinstance(one, Component):
            ahead.extend(vars(one).values())
        elif isinstance(one, dict):
            ahead.extend(one.values())
        elif isinstance(one, list | tuple):
            ahead.extend(one)


class History(EventManager):
    """What has happened, as GetExecutionHistory tells it. The ends of executions are written by those who end them."""

    def __init__(self, play: Play, now_s: Callable[[], float]) -> None:
        super().__init__()
        self.play = play
        self.transitions = 1
        """As they are billed: the start, each state that is entered, each retry."""
        self._now_s = now_s
        self._sealed = False

    def add_event(
        self,
        context: EventHistoryContext,
        event_type: HistoryEventType,
        event_details: Any = None,
        timestamp: Any = None,
        update_source_event_id: bool = True,
    ) -> int:
        """One more, unless it has ended."""
        with self._mutex:
            if self._sealed or event_type.value in _ENDS:
                return 0
            number = self._add(event_type.value, context.source_event_id, event_details or {})
            context.last_published_event_id = number
            if update_source_event_id:
                context.source_event_id = number
            self.transitions += event_type.value.endswith("StateEntered")
        if number >= EVENTS - 1:
            self.play.too_long()
        return number

    def retried(self) -> None:
        with self._mutex:
            self.transitions += not self._sealed

    def seal(self, event_type: str, details: dict[str, Any]) -> None:
        """The last event."""
        with self._mutex:
            if not self._sealed:
                key = event_type[0].lower() + event_type[1:] + "EventDetails"
                self._add(event_type, len(self._history_event_list), {key: details})
                self._sealed = True

    def moment_of(self, number: int) -> float:
        """When that event was, in epoch seconds of virtual time."""
        with self._mutex:
            return float(self._history_event_list[number - 1]["timestamp"])  # type: ignore[arg-type]

    def events(self) -> list[dict[str, Any]]:
        with self._mutex:
            return [dict(event) for event in self._history_event_list]

    def _add(self, kind: str, previous: int, details: Any) -> int:
        number = len(self._history_event_list) + 1
        moment = round(self._now_s(), 3)
        event: Any = {"id": number, "previousEventId": previous, "type": kind, "timestamp": moment, **details}
        self._history_event_list.append(event)
        return number


class Play:
    """The threads that go through the states of one execution."""

    def __init__(
        self, definition: str, facts: Facts, deadline_s: float, *, keeper: Timekeeper, caller: Caller, over: Ending
    ) -> None:
        """`deadline_s`: when the whole execution times out. `over` is told of its end."""
        self.history = History(self, keeper.now)
        self._program = parse(definition)
        self._facts = facts
        self._deadline_s = deadline_s
        self._keeper = keeper
        self._caller = caller
        self._over = over
        self._waiting = Waiting(keeper)
        self._calls: dict[int, tuple[float, Callable[[], bool]]] = {}
        """Invocations of whose end no state has heard yet, by their threads: until when each may take, and what tells
        whether it outlives that."""
        self._env = self._environment()

    def begin(self) -> None:
        """From now on it may be ended."""
        details = {"input": json.dumps(self._facts.input), "inputDetails": {"truncated": False}}
        self.history.add_event(
            self._env.event_history_context,
            HistoryEventType.ExecutionStarted,
            {"executionStartedEventDetails": {**details, "roleArn": self._facts.role_arn}},
            update_source_event_id=False,
        )
        self._keeper.enter(self)

    def run(self) -> None:
        """Go through the states, on this thread and on others."""
        TMP_THREADS[:] = [thread for thread in list(TMP_THREADS) if thread.is_alive()]  # stock never forgets one
        self._program.eval(self._env)
        if self._keeper.stopping or self._is_late():
            return
        state = self._env.program_state()
        if isinstance(state, ProgramEnded):
            self._over(SUCCEEDED, output=self._env.states.get_input())
        elif isinstance(state, ProgramError):
            told: dict[str, Any] = dict(state.error or {})
            self._over(FAILED, error=told.get("error"), cause=told.get("cause"))

    def end(self) -> None:
        """No state begins any more. Functions that run go on, and nobody hears their answers."""
        self._env.set_stop(stop_date=datetime.now(UTC), cause=None, error=None)
        self._keeper.leave(self)
        self.ring()

    # --- stepfunctions.Play ------------------------------------------------------------------------------------

    def pause(self, seconds: float, going: Going, after: int) -> None:
        """Before a retry, which is a transition like any other."""
        self.rest(seconds, going, after)
        self.history.retried()

    def rest(self, seconds: float, going: Going, after: int) -> None:
        """So many virtual seconds after that event: whoever has seen it may skip the clock at once."""
        self.wait(lambda: False, self.history.moment_of(after) + seconds, going)

    def now(self) -> float:
        """Virtual time, in epoch seconds."""
        return self._keeper.now()

    def wait(self, done: Callable[[], bool], moment_s: float, going: Going) -> bool:
        """Until it is done, or that moment has come; the execution's own end comes first."""

        def ready() -> bool:
            return done() or not self._goes_on(going)

        if not self._waiting.until(min(moment_s, self._deadline_s), ready):
            self._let_functions_end(ready)
        if not self._goes_on(going):
            raise Abandoned
        if self._is_late():
            raise Abandoned
        return done()

    def call(self, function: str, payload: Any, going: Going) -> Any:
        """In the name of the state machine's role."""
        if self._is_late():
            raise NobodyWaitsError

        def begins(timeout_s: float, outlives: Callable[[], bool]) -> bool:
            """Asked when there is room for it."""
            self._calls[threading.get_ident()] = self._keeper.now() + timeout_s, outlives
            return self._goes_on(going)

        answer = self._caller.call(self._facts.role_arn, function, payload, begins)
        if not self._goes_on(going):
            raise NobodyWaitsError
        return answer

    def told(self) -> None:
        """What this thread has called for has come to its end, and its state can see it."""
        self._calls.pop(threading.get_ident(), None)
        self.ring()

    def ring(self) -> None:
        """Let all that wait in this execution look again."""
        self._waiting.ring()

    def too_long(self) -> None:
        """Events without end."""
        cause = f"The execution reached the maximum number of history events ({EVENTS})."
        self._over(FAILED, error="States.Runtime", cause=cause)

    # -----------------------------------------------------------------------------------------------------------

    def _goes_on(self, going: Going) -> bool:
        return going() and not self._keeper.stopping

    def _is_late(self) -> bool:
        """Whether the execution's time is over; whoever notices first says so."""
        if self._keeper.now() < self._deadline_s:
            return False
        self._over(TIMED_OUT)
        return True

    def _let_functions_end(self, ready: Callable[[], bool]) -> None:
        """Whose deadline has passed, in a skip of the clock maybe, they end now: before a state's own time is over.
        One that is frozen does not, and nobody waits for it again."""
        now_s = self._keeper.now()
        overdue = {key: outlives for key, (deadline_s, outlives) in list(self._calls.items()) if deadline_s <= now_s}

        def over() -> bool:
            return ready() or not any(key in self._calls and not outlives() for key, outlives in overdue.items())

        end = time.monotonic() + _KILLED_WITHIN_S
        while not over() and time.monotonic() < end:
            self._waiting.briefly(_GLANCE_S, over)
        for key in overdue:
            self._calls.pop(key, None)

    def _environment(self) -> Environment:
        facts = self._facts
        account, region = facts.machine_arn.split(":")[4], facts.machine_arn.split(":")[3]
        env = Environment(
            aws_execution_details=AWSExecutionDetails(account=account, region=region, role_arn=facts.role_arn),
            execution_type=StateMachineType.STANDARD,
            context=facts.context(),
            event_history_context=EventHistoryContext.of_program_start(),
            cloud_watch_logging_session=None,
            activity_store={},
        )
        env.event_manager = self.history
        env.next_state_name = self._program.start_at.start_at_name
        return env


def join(timeout_s: float) -> list[str]:
    """Wait for the threads of all plays that were ended; the names of those that are still there."""
    for thread in list(TMP_THREADS):
        thread.join(timeout_s)
    left = [thread.name for thread in TMP_THREADS if thread.is_alive()]
    TMP_THREADS.clear()
    return left
