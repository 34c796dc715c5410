"""The functions of the stack, ready to be invoked: each with its pool of execution environments."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from local.aws.server import AwsServer
from local.clock import VirtualClock
from local.compute.boundaries import Boundaries, OpenBoundaries
from local.compute.definition import ACCOUNT_LIMIT, Definition, definitions
from local.compute.environment import Environment
from local.compute.invocation import Invocation, Order, throttled
from local.compute.pool import Pool, Slot
from local.compute.processes import Processes, StoppingError
from local.compute.settling import Settling
from local.compute.surroundings import Surroundings
from local.stack.place import ACCOUNT
from local.stack.stack import Stack

__all__ = ["Functions", "Invocation"]

REPOSITORY = Path(__file__).resolve().parents[2]
_KEPT = 5000
WriteLog = Callable[[str, str, str], None]
Exercise = Callable[[str, str, str], object]
"""(role ARN, action, resource)"""


class Functions:
    """Every function of a stack. All methods may be called from any thread."""

    def __init__(
        self,
        stack: Stack,
        aws: AwsServer,
        clock: VirtualClock,
        model_url: str,
        *,
        code: Path = REPOSITORY,
        write_log: WriteLog | None = None,
        exercise: Exercise = lambda role_arn, action, resource: None,
    ) -> None:
        """`code` is the folder that the handlers are imported from. `exercise` hears what Lambda does in the name of a
        function's role: it begins a log, and writes at least when an invocation starts and ends."""
        self.history: deque[Invocation] = deque(maxlen=_KEPT)
        """The latest, without what is long in them."""
        self.logs: deque[tuple[str, str, str]] = deque(maxlen=_KEPT)
        self.boundaries: Boundaries = OpenBoundaries()
        """Who steps in where invocations begin and end."""
        self.ended: Callable[[Invocation], object] = lambda outcome: None
        """Hears of each invocation that is over, and of each that was refused."""
        self._write_log = write_log or to_stderr
        self._exercise = exercise
        self._log_groups = f"arn:aws:logs:{stack.region}:{ACCOUNT}:log-group"
        self._processes = Processes(self._tick)
        self._clock = clock
        self._surroundings = Surroundings(
            self._processes, aws.callers, clock, aws.url, model_url, code.resolve(), stack.region, self._keep_log,
            lambda outcome: self.history.append(outcome.brief()),
        )  # fmt: skip
        limits = _limits(stack)
        self._pools: dict[str, Pool] = {}
        self._limits: dict[str, int] = {}
        self._set_by_hand: set[str] = set()
        self._resting = threading.Lock()
        self._settling = Settling()
        self._names: dict[str, str] = {}
        for function in definitions(stack):
            limit = function.reserved_concurrency or limits.get(function.arn) or ACCOUNT_LIMIT
            self._limits[function.role] = limit
            self._pools[function.role] = Pool(function, limit, self._create)
            for name in (function.role, function.logical_id, function.name, function.arn):
                self._names[name] = function.role

    def start(self) -> None:
        """Make it possible to start environments."""
        self._processes.start()
        self._clock.on_advance(self._on_advance)

    def stop(self) -> None:
        """End every process; invocations under way end as crashed."""
        for pool in self._pools.values():
            pool.close()
        self._processes.stop()

    # --- which functions there are -----------------------------------------------------------------------

    @property
    def roles(self) -> list[str]:
        """The roles of all functions."""
        return list(self._pools)

    def role(self, name: str) -> str:
        """The role of the function with this role, name, logical id or ARN. KeyError if there is none."""
        return self._names[name.removesuffix(":$LATEST")]

    def definition(self, role: str) -> Definition:
        """What the template says about the function."""
        return self._pools[role].definition

    # --- invoking ------------------------------------------------------------------------------------------

    def invoke(
        self,
        role: str,
        event: Any,
        *,
        wait_s: float = 30.0,
        trace_id: str = "",
        request_id: str = "",
        wanted: Callable[[], bool] = lambda: True,
    ) -> Invocation:
        """Run the function on `event`; throttled when it is paused, or busy for longer than `wait_s`. `request_id`: of
        an invocation that is repeated. `wanted` is asked when there is room: whoever waited may be gone."""
        pool = self._pools[role]
        slot = None if pool.paused else pool.acquire(wait_s, begun=self._settling.is_mine)
        if slot is None:
            return self._refuse(role, "paused" if pool.paused else f"{pool.limit} invocations at once are allowed")
        if not wanted():
            slot.release()
            return throttled(role, "nobody waits for it any more")
        return self.use(slot, event, trace_id, request_id)

    def acquire(self, role: str, timeout_s: float) -> Slot | None:
        """Room for one invocation, to be used with `use`: for event sources, who look for room before they look
        for work. None when there was none in time, or the function is paused."""
        return self._pools[role].acquire(timeout_s)

    def use(self, slot: Slot, event: Any, trace_id: str = "", request_id: str = "") -> Invocation:
        """Run the function that `slot` was acquired for."""
        trace_id = trace_id or new_trace_id()
        order = Order(event, trace_id, request_id, self.boundaries.at(slot.role, event, trace_id))
        if order.boundary.refused:
            slot.release()
            return self._refuse(slot.role, "a fault was asked for")
        try:
            outcome = slot.invoke(order)
        except StoppingError:
            return throttled(slot.role, "the runtime is stopping")
        self.ended(outcome)
        order.boundary.over()
        return outcome

    def settling(self) -> AbstractContextManager[None]:
        """For a source that has more to do when its invocation has ended: it is not at rest until then."""
        return self._settling.going_on()

    def _refuse(self, role: str, why: str) -> Invocation:
        refused = throttled(role, why)
        self.ended(refused)
        return refused

    def warm(self, roles: Iterable[str] | None = None) -> None:
        """Start one environment of each function in the background, so that the first event meets one."""
        chosen = [self._pools[role] for role in (roles or self.roles)]

        def start() -> None:
            for pool in chosen:
                try:
                    pool.warm()
                except StoppingError:
                    return

        threading.Thread(target=start, name="warm", daemon=True).start()

    # --- stepping in -----------------------------------------------------------------------------------------

    def pause(self, role: str) -> None:
        """Let no invocation of the function begin; when this returns, none is about to."""
        self._pools[role].pause()

    def resume(self, role: str) -> None:
        """Undo `pause`."""
        self._pools[role].resume()

    @contextmanager
    def at_rest(self, patience_s: float) -> Iterator[bool]:
        """Within it no invocation begins: who would waits; and what queues have delivered is deleted, or was not worked
        on. False: some were still under way when patience ended."""
        with self._resting:
            pools = list(self._pools.values())
            for pool in pools:
                pool.hold()
            try:
                end = time.monotonic() + patience_s
                yield all(pool.wait_until_empty(end) for pool in pools) and self._settling.wait_until_over(end)
            finally:
                for pool in pools:
                    pool.let_go()

    def paused(self, role: str) -> bool:
        """Whether the function is paused."""
        return self._pools[role].paused

    def set_concurrency(self, role: str, maximum: int | None) -> None:
        """Allow so many invocations of the function at once, whichever source they come from; None: as the template
        says."""
        if maximum is None:
            self._set_by_hand.discard(role)
        else:
            self._set_by_hand.add(role)
        self._pools[role].set_limit(self._limits[role] if maximum is None else maximum)

    def share(self, role: str, maximum: int | None) -> int | None:
        """How many invocations a source may have running at once, of which the template says `maximum`."""
        return None if role in self._set_by_hand else maximum

    def concurrency(self, role: str) -> int:
        """How many invocations of the function are allowed at once."""
        return self._pools[role].limit

    def reload(self) -> None:
        """Have changed code imported: idle environments go at once, busy ones when they have answered."""
        for pool in self._pools.values():
            pool.reload()

    def running(self, role: str | None = None) -> list[str]:
        """Request ids of the invocations under way."""
        environments = self._environments(role)
        return [running.request_id for running in (item.running for item in environments) if running is not None]

    def environment_of(self, request_id: str) -> Environment | None:
        """The environment that is busy with the invocation: to kill, freeze or thaw it."""
        for environment in self._environments():
            running = environment.running
            if running is not None and running.request_id == request_id:
                return environment
        return None

    # -----------------------------------------------------------------------------------------------------------

    def _environments(self, role: str | None = None) -> list[Environment]:
        pools = self._pools.values() if role is None else [self._pools[role]]
        return [environment for pool in pools for environment in pool.environments()]

    def _create(self, definition: Definition, generation: int) -> Environment:
        for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
            self._exercise(definition.execution_role_arn, action, f"{self._log_groups}:{definition.log_group}:*")
        return Environment(definition, self._surroundings, generation)

    def _keep_log(self, function: str, request_id: str, line: str) -> None:
        self.logs.append((function, request_id, line))
        self._write_log(function, request_id, line)

    def _on_advance(self, offset_s: float) -> None:
        for environment in self._environments():
            environment.tell_time(offset_s)
        self._processes.wake()

    def _tick(self) -> float:
        now = self._clock.now().timestamp()
        return min((environment.check(now) for environment in self._environments()), default=5.0)


def to_stderr(function: str, request_id: str, line: str) -> None:
    """The default log: the line as it is (JSON stays JSON), behind the function that wrote it."""
    sys.stderr.write(f"{function:<8} | {line}\n")


def new_trace_id(lineage: str = "") -> str:
    """What Lambda sets as _X_AMZN_TRACE_ID when tracing is off."""
    root = f"Root=1-{secrets.token_hex(4)}-{secrets.token_hex(12)};Parent={secrets.token_hex(8)};Sampled=0"
    return f"{root};Lineage={lineage}" if lineage else root


def _limits(stack: Stack) -> dict[str, int]:
    """MaximumConcurrency of the queue mappings, by function: all that its queues may have running together."""
    limits: dict[str, int] = {}
    for mapping in stack.of_type("AWS::Lambda::EventSourceMapping"):
        maximum = mapping.properties.get("ScalingConfig", {}).get("MaximumConcurrency")
        if maximum is not None:
            name = mapping.properties["FunctionName"]
            for function in stack.of_type("AWS::Lambda::Function"):
                if name in (function.ref, function.attributes.get("Arn")):
                    key = function.attributes.get("Arn") or function.ref
                    limits[key] = limits.get(key, 0) + int(maximum)
    return limits
