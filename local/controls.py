"""`/_local/*`: what a test or a curious developer may do to the runtime. Loopback only, and no part of what ships."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from local import faults
from local.aws.mailbox import Mailbox
from local.aws.meter import Meter
from local.clock import VirtualClock
from local.compute.environments import Functions
from local.events.http import Answer, Request
from local.events.sources import EventSources
from local.executions.controls import ExecutionControls
from local.executions.executions import Executions
from local.faults import BadRequestError, Faults
from local.metrics.cloudwatch import CloudWatch
from local.sockets.connections import Connections
from local.sockets.controls import SocketControls

Body = dict[str, Any]
T = TypeVar("T")


class Controls:
    """Called with each request under /_local/."""

    def __init__(
        self,
        clock: VirtualClock,
        functions: Functions,
        sources: EventSources,
        fault_gate: Faults,
        meter: Meter,
        *,
        mailbox: Mailbox,
        metrics: CloudWatch,
        connections: Connections,
        executions: Executions,
    ) -> None:
        self._clock = clock
        self._functions = functions
        self._sources = sources
        self._faults = fault_gate
        self._meter = meter
        self._mailbox = mailbox
        self._metrics = metrics
        self._known: dict[str, Callable[[Body], Any]] = {
            "GET clock": self._time,
            "POST clock": self._advance,
            "POST pause": self._pause,
            "POST resume": self._resume,
            "POST concurrency": self._concurrency,
            "GET invocations": self._invocations,
            "DELETE invocations": self._forget_invocations,
            "GET calls": self._calls,
            "DELETE calls": self._forget_calls,
            "GET mails": lambda _: {"mails": self._mailbox.mails()},
            "DELETE mails": self._forget_mails,
            "GET faults": lambda _: {"faults": self._faults.describe()},
            "POST faults": self._add_fault,
            "DELETE faults": self._clear_faults,
            "POST faults/haunt": lambda _: {"haunted": self._faults.haunt()},
            "POST faults/late": lambda _: {"delivered": self._faults.deliver_late()},
            "GET alarms": self._alarms,
            "GET notifications": lambda _: self._sources.notifications.describe(),
            "POST notifications": self._sources.notifications.command,
            "DELETE notifications": self._forget_notifications,
            "POST secrets": self._put_secret,
            "GET mappings": lambda _: {"mappings": [mapping.describe() for mapping in self._sources.mappings]},
            "POST mappings/enable": lambda body: self._switch(body, on=True),
            "POST mappings/disable": lambda body: self._switch(body, on=False),
            "GET schedules": lambda _: {"schedules": self._sources.schedules.describe()},
            "POST schedules/run": self._run_schedules,
            "POST schedules/enable": lambda body: self._switch_schedules(body, on=True),
            "POST schedules/disable": lambda body: self._switch_schedules(body, on=False),
            "POST kill": self._kill,
            "POST freeze": self._freeze,
            "POST thaw": self._thaw,
            "POST reload": self._reload,
            **SocketControls(connections).known,
            **ExecutionControls(executions).known,
        }

    def __call__(self, request: Request) -> Answer:
        """Answer a request; 400 says what would have been right."""
        if not _is_local(request):
            return _json(403, {"message": "the controls answer programs on this machine, not web pages"})
        control = self._known.get(f"{request.method} {request.raw_path.removeprefix('/_local/')}")
        if control is None:
            return _json(404, {"message": "no such control", "controls": sorted(self._known)})
        try:
            return _json(200, control(_body(request)))
        except BadRequestError as error:
            return _json(400, {"message": str(error)})

    # --- time ------------------------------------------------------------------------------------------------

    def _time(self, _: Body) -> Any:
        return {"now": self._clock.now().isoformat(), "offset_s": self._clock.offset_s}

    def _advance(self, body: Body) -> Any:
        seconds = body.get("advance_seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e9:
            raise BadRequestError('advance_seconds must be a number from 0 on: {"advance_seconds": 300}')
        if "patience_s" not in body:
            self._clock.advance(float(seconds))
            return self._time(body)
        with self._functions.at_rest(faults.whole_number(body, "patience_s", None)) as at_rest:
            self._clock.advance(float(seconds))
        return {**self._time(body), "at_rest": at_rest}

    # --- functions -------------------------------------------------------------------------------------------

    def _pause(self, body: Body) -> Any:
        role = self._role(body)
        self._functions.pause(role)
        return {"function": role, "paused": True}

    def _resume(self, body: Body) -> Any:
        role = self._role(body)
        self._functions.resume(role)
        return {"function": role, "paused": False}

    def _concurrency(self, body: Body) -> Any:
        role, maximum = self._role(body), faults.whole_number(body, "maximum", None)
        self._functions.set_concurrency(role, maximum)
        return {"function": role, "maximum": maximum}

    def _invocations(self, _: Body) -> Any:
        done = [vars(outcome) | {"ok": outcome.ok} for outcome in list(self._functions.history)]
        return {"invocations": done, "running": {role: self._functions.running(role) for role in self._functions.roles}}

    def _forget_invocations(self, _: Body) -> Any:
        self._functions.history.clear()
        return {}

    def _kill(self, body: Body) -> Any:
        environments = self._busy(body)
        for environment in environments:
            environment.kill("crash")
        return {"killed": len(environments)}

    def _freeze(self, body: Body) -> Any:
        environments = self._busy(body)
        for environment in environments:
            environment.freeze(outlives=body.get("outlives", True) is True)
        return {"frozen": len(environments)}

    def _thaw(self, body: Body) -> Any:
        environments = self._busy(body)
        for environment in environments:
            environment.thaw()
        return {"thawed": len(environments)}

    def _reload(self, _: Body) -> Any:
        self._functions.reload()
        return {}

    def _busy(self, body: Body) -> list[Any]:
        wanted = body.get("request_id")
        ids = [wanted] if wanted else self._functions.running(self._role(body))
        found = [self._functions.environment_of(request_id) for request_id in ids]
        if wanted and found == [None]:
            raise BadRequestError(f"no invocation {wanted} is under way")
        return [environment for environment in found if environment is not None]

    # --- calls and faults --------------------------------------------------------------------------------------

    def _calls(self, _: Body) -> Any:
        return {"calls": [asdict(call) for call in self._meter.calls()]}

    def _forget_calls(self, _: Body) -> Any:
        self._meter.reset()
        return {}

    def _alarms(self, _: Body) -> Any:
        alarms = self._metrics.look()
        return {"alarms": alarms.describe(), "never_reported": alarms.never_fed()}

    def _forget_mails(self, _: Body) -> Any:
        self._mailbox.empty()
        return {}

    def _add_fault(self, body: Body) -> Any:
        fault = faults.read(body, self._role(body))
        streams = [mapping.role for mapping in self._sources.mappings if mapping.kind == "dynamodb"]
        if fault.kind == "drop" and fault.function not in streams:
            raise BadRequestError(
                f"a drop loses records of a stream, and {fault.function} is served by none: {streams} are"
            )
        self._faults.add(fault)
        return fault.describe()

    def _clear_faults(self, _: Body) -> Any:
        self._faults.clear()
        return {}

    # --- event sources -------------------------------------------------------------------------------------------

    def _forget_notifications(self, _: Body) -> Any:
        self._sources.notifications.clear()
        return {}

    def _put_secret(self, body: Body) -> Any:
        name, value = body.get("name"), body.get("value")
        if not isinstance(name, str) or not isinstance(value, str) or not (name and value):
            raise BadRequestError('name and value must be texts: {"name": "n", "value": "v"}')
        return {"name": name, "arn": self._sources.put_secret(name, value)}

    def _switch(self, body: Body, *, on: bool) -> Any:
        role = self._role(body)
        mappings = [mapping for mapping in self._sources.mappings if mapping.role == role]
        if not mappings:
            raise BadRequestError(f"{role} has no event source mapping")
        for mapping in mappings:
            mapping.enable() if on else mapping.disable()
        return {"mappings": [mapping.describe() for mapping in mappings]}

    def _run_schedules(self, body: Body) -> Any:
        runs = self._with_schedules(body, self._sources.schedules.run_each)
        shown = [{"schedule": schedule, **vars(outcome), "ok": outcome.ok} for schedule, outcome in runs]
        first = next((one for one in shown if not one["ok"]), shown[0])
        return first if len(shown) == 1 else {**first, "runs": shown}

    def _switch_schedules(self, body: Body, *, on: bool) -> Any:
        self._with_schedules(body, partial(self._sources.schedules.switch, on=on))
        return {"schedules": self._sources.schedules.describe()}

    def _with_schedules(self, body: Body, do: Callable[[str, str], T]) -> T:
        wanted = body.get("schedule", "")
        if not isinstance(wanted, str):
            raise BadRequestError(f"schedule must be a logical id, or a part of an Input, not {wanted!r}")
        try:
            return do(self._role(body), wanted)
        except LookupError as error:
            raise BadRequestError(str(error)) from error

    def _role(self, body: Body) -> str:
        name = body.get("function")
        try:
            return self._functions.role(str(name))
        except KeyError:
            raise BadRequestError(f"function must be one of {self._functions.roles}, not {name!r}") from None


def _body(request: Request) -> Body:
    if not request.body:
        return {}
    try:
        body = json.loads(request.body)
    except ValueError as error:
        raise BadRequestError(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body must be a JSON object")
    return body


def _is_local(request: Request) -> bool:
    """A web page may send requests to this machine, too; its browser says where it comes from."""
    hosts = {"127.0.0.1", "localhost", "::1", None}
    origin = request.headers.get("origin")
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname
    return host in hosts and (origin is None or urlsplit(origin).hostname in hosts - {None})


def _json(status: int, answer: Any) -> Answer:
    return Answer(status, [("content-type", "application/json")], json.dumps(answer).encode() + b"\n")
