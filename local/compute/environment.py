"""One execution environment: a child process that serves one invocation after another of one function."""

from __future__ import annotations

import secrets
import signal
import string
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.aws.calls import Caller
from local.compute import invocation as ended
from local.compute.boundaries import Boundary
from local.compute.definition import Definition
from local.compute.invocation import Invocation, Order
from local.compute.process import Process
from local.compute.surroundings import Surroundings, variables

_INIT_LIMIT_S = 120.0  # Lambda allows 10 s on hardware of its own
_CLOCK_LIMIT_S = 60.0  # real seconds
_MEMORY_CHECK_S = 0.05
_MEMORY_FACTOR = 2  # resident memory above this multiple of MemorySize ends the process
_ADDRESS_SPACE_BYTES = 4 << 30  # on top of four times MemorySize: thread stacks and arenas reserve, but do not use
_LINUX = sys.platform == "linux"  # elsewhere the limit is not kept, or cannot be set
_REPOSITORY = str(Path(__file__).resolve().parents[2])


@dataclass(eq=False)
class Running:
    """An invocation under way."""

    request_id: str
    deadline_s: float
    started_at: str
    started: float
    boundary: Boundary
    logs: list[str] = field(default_factory=list)
    reason: str = ""
    outlives: bool = False
    outcome: Invocation | None = None
    done: threading.Event = field(default_factory=threading.Event)


class Environment:
    """A child process, its access key, and the invocation that it is busy with."""

    def __init__(self, definition: Definition, surroundings: Surroundings, generation: int) -> None:
        self.definition = definition
        self.generation = generation
        self.log_stream = f"{surroundings.clock.now():%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}"
        self.access_key_id = "ASIA" + "".join(secrets.choice(string.ascii_uppercase + "234567") for _ in range(16))
        self.running: Running | None = None
        self.dead = False
        self.frozen = False
        self.gone = threading.Event()
        self._told = threading.Condition()
        self._offset_s = surroundings.clock.offset_s  # of the process's own clock, as far as known
        self._moves = threading.Event()  # neither frozen nor waited for: it was thawed, or is gone
        self._surroundings = surroundings
        self._init_error: dict[str, Any] | None = None
        self._settled = threading.Event()  # ready, or never will be
        self._born = time.monotonic()
        self._reason = ""
        self._status = 0
        self._memory_checked = 0.0
        self._lock = threading.Lock()
        self._announce()
        self._process: Process = surroundings.processes.spawn(self)
        self._process.send(self._start_message())

    @property
    def condemned(self) -> bool:
        """Whether somebody has decided that this process ends."""
        return bool(self._reason)

    # --- for the thread that invokes -----------------------------------------------------------------

    def invoke(self, order: Order) -> Invocation:
        """Run the handler; returns when it has answered or its process is gone."""
        self._settled.wait()
        clock = self._surroundings.clock
        now = clock.now()
        deadline = now.timestamp() + self.definition.timeout_s
        request_id = order.request_id or str(uuid.uuid4())
        started_at = now.isoformat(timespec="milliseconds")
        running = Running(request_id, deadline, started_at, time.monotonic(), order.boundary)
        with self._lock:
            if self.dead:
                return self._stillborn(running)
            self.running = running
        self._announce(request_id)
        self._surroundings.processes.wake()  # its deadline counts from now on
        if order.boundary.opens(self):
            self._process.send(self._message(order, running))
        running.done.wait()
        assert running.outcome is not None
        return running.outcome

    # --- for whoever steps in ------------------------------------------------------------------------

    def kill(self, reason: str) -> None:
        """End the process at once: from here on none of its AWS calls has an effect, and no `finally` runs."""
        self._reason = self._reason or reason
        running = self.running
        if running is not None:
            running.reason = running.reason or reason
        self._surroundings.callers.revoke(self.access_key_id)
        self._surroundings.processes.signal(self._process, signal.SIGKILL)

    def freeze(self, outlives: bool) -> None:
        """Stop the process in the middle of what it does; with `outlives` its deadline does not kill it any more."""
        with self._lock:
            if not self.dead:
                self._moves.clear()
        if self.running is not None and outlives:
            self.running.outlives = True
        self._surroundings.processes.signal(self._process, signal.SIGSTOP)
        self.frozen = True  # not before: whoever sees it may thaw at once, and a later stop would be for good

    def thaw(self) -> None:
        """Let a frozen process go on."""
        self.frozen = False
        self._surroundings.processes.signal(self._process, signal.SIGCONT)
        self._moves.set()

    def stand_still(self) -> bool:
        """Freeze the process beyond its deadline and wait; True when it was thawed, False when it is gone."""
        self.freeze(outlives=True)
        self._moves.wait()
        return not self.dead

    def tell_time(self, offset_s: float) -> None:
        """Pass a skip of the clock on."""
        self._process.send({"type": "clock", "offset_s": offset_s})

    def wait_for_its_clock(self) -> None:
        """Until the process shows the time of now, or is gone: one that stood still has to hear of every skip first."""
        offset_s = self._surroundings.clock.offset_s
        self.tell_time(offset_s)
        with self._told:
            self._told.wait_for(lambda: self.dead or self._offset_s >= offset_s, _CLOCK_LIMIT_S)

    def check(self, now_s: float) -> float:
        """Enforce deadline and memory; returns the seconds for which it need not be called again."""
        running = self.running
        if not self._settled.is_set():
            if time.monotonic() - self._born > _INIT_LIMIT_S:
                self.kill("init timeout")
            return 1.0
        if running is None or running.done.is_set():
            return 5.0
        if now_s >= running.deadline_s and not running.outlives:
            self.kill("timeout")
        elif self._too_fat():
            self.kill("memory")
        return _MEMORY_CHECK_S

    # --- what the child says (on the reading thread) -------------------------------------------------

    def on_message(self, message: dict[str, Any]) -> None:
        """Ready, a failed start, how far its clock is ahead, or the answer to the invocation."""
        if message["type"] == "ready":
            self._settled.set()
        elif message["type"] == "init_error":
            self._init_error = message["error"]
        elif message["type"] == "clock":
            with self._told:
                self._offset_s = message["offset_s"]
                self._told.notify_all()
        else:
            self._on_answer(message)

    def on_output(self, stream: str, line: str) -> None:
        """A line of log; it belongs to the invocation under way, if there is one."""
        running = self.running
        if running is not None:
            running.logs.append(line)
        self._surroundings.write_log(self.definition.role, running.request_id if running else "", line)

    def on_exit(self, status: int) -> None:
        """The process is gone, and with it what it was busy with."""
        with self._lock:
            self.dead = True
            self._status = status
            running = self.running
        self._surroundings.callers.revoke(self.access_key_id)
        self._settled.set()
        self.gone.set()
        self._moves.set()
        with self._told:
            self._told.notify_all()
        if running is not None and not running.done.is_set():
            self._finish(
                running,
                error=ended.obituary(running.request_id, running.reason, self.definition.timeout_s, status),
                crashed=running.reason != "timeout",
            )

    # -------------------------------------------------------------------------------------------------

    def _on_answer(self, message: dict[str, Any]) -> None:
        running = self.running
        if running is None or running.request_id != message["request_id"] or running.reason:
            return
        running.boundary.closes(self, lambda: self._hear(running, message))

    def _hear(self, running: Running, message: dict[str, Any]) -> None:
        if running.reason:
            return  # killed in the same moment: what is dead does not answer
        error = message.get("error")
        if message["threads"]:
            names = ", ".join(message["threads"])
            error = {
                "errorType": ended.LIVE_THREAD,
                "errorMessage": f"the handler returned while threads of its own were alive: {names}",
            }
            self.kill("live thread")
        self._finish(running, error=error, result=None if error else message["result"])

    def _finish(self, running: Running, *, error: Any = None, result: Any = None, crashed: bool = False) -> None:
        if error is not None and "stackTrace" not in error:  # what the handler could not log itself
            line = f"[ERROR] {error['errorType']}: {error['errorMessage']}"
            self._surroundings.write_log(self.definition.role, running.request_id, line)
        running.outcome = Invocation(
            function=self.definition.role,
            request_id=running.request_id,
            result=result,
            error=error,
            started_at=running.started_at,
            duration_s=round(time.monotonic() - running.started, 3),
            ended_s=self._surroundings.clock.now().timestamp(),
            timed_out=running.reason == "timeout",
            crashed=crashed,
            logs=tuple(running.logs),
            environment=self.log_stream,
            reason=running.reason,
        )
        self._surroundings.record(running.outcome)
        self.running = None
        running.done.set()

    def _stillborn(self, running: Running) -> Invocation:
        """The invocation that met an environment whose start failed: it is the one that reports it."""
        self.running = running
        running.reason = self._reason
        self._finish(
            running,
            error=self._init_error
            or ended.obituary(running.request_id, self._reason, self.definition.timeout_s, self._status),
            crashed=not self._init_error,
        )
        assert running.outcome is not None
        return running.outcome

    def _too_fat(self) -> bool:
        now = time.monotonic()
        if now - self._memory_checked < _MEMORY_CHECK_S:
            return False
        self._memory_checked = now
        return self._process.resident_bytes() > self.definition.memory_mb * _MEMORY_FACTOR << 20

    def _announce(self, request_id: str = "") -> None:
        caller = Caller(self.definition.role, self.definition.execution_role_arn, request_id)
        try:
            self._surroundings.callers.register(self.access_key_id, caller)
        except ValueError:  # killed a moment ago: on_exit follows
            return

    def _start_message(self) -> dict[str, Any]:
        return {
            "handler": self.definition.handler,
            "code": str(self._surroundings.code),
            "forget_path": _REPOSITORY,
            "environment": variables(self.definition, self._surroundings, self.access_key_id, self.log_stream),
            "offset_s": self._surroundings.clock.offset_s,
            "address_space_bytes": (self.definition.memory_mb * 4 << 20) + _ADDRESS_SPACE_BYTES if _LINUX else 0,
        }

    def _message(self, order: Order, running: Running) -> dict[str, Any]:
        function = self.definition
        return {
            "type": "invoke",
            "request_id": running.request_id,
            "deadline_s": running.deadline_s,
            "offset_s": self._surroundings.clock.offset_s,
            "trace_id": order.trace_id,
            "event": order.event,
            "function": {
                "name": function.name,
                "arn": function.arn,
                "memory_mb": function.memory_mb,
                "log_group": function.log_group,
                "log_stream": self.log_stream,
            },
        }
