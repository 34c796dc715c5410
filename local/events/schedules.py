"""EventBridge Scheduler: fires in virtual time; after a skip of the clock each schedule fires once."""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from local.compute.environments import Functions
from local.compute.invocation import Invocation
from local.events.asynchronous import AsyncInvoker
from local.events.bells import Bell
from local.events.cron import next_after

_log = logging.getLogger(__name__)


class Schedule:
    """One schedule with a Lambda target."""

    def __init__(self, logical_id: str, properties: dict[str, Any], now: datetime) -> None:
        self.logical_id = logical_id
        self.target: dict[str, Any] = properties["Target"]
        self.enabled = properties.get("State", "ENABLED") == "ENABLED"
        zone = properties.get("ScheduleExpressionTimezone", "UTC")
        self._starts = _moment(properties.get("StartDate")) or now
        self._ends = _moment(properties.get("EndDate"))
        self._next = next_after(properties["ScheduleExpression"], self._starts, zone)
        self.due = self._following(max(now, self._starts))
        self._arn = properties.get("Arn", logical_id)

    def skip_to(self, now: datetime) -> None:
        """Whatever was due until now is done with."""
        self.due = self._following(now)

    def event(self, moment: datetime) -> Any:
        """What the target gets, with the Scheduler's own words filled in."""
        words = {
            "<aws.scheduler.schedule-arn>": self._arn,
            "<aws.scheduler.scheduled-time>": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
            "<aws.scheduler.execution-id>": uuid.uuid4().hex,
            "<aws.scheduler.attempt-number>": "1",
        }
        text = self.target.get("Input", "{}")
        for word, value in words.items():
            text = text.replace(word, value)
        return json.loads(text)

    def _following(self, after: datetime) -> datetime | None:
        moment = self._next(after)
        return None if moment is None or (self._ends is not None and moment > self._ends) else moment


class Schedules:
    """All schedules of a stack, on one thread."""

    def __init__(
        self,
        schedules: list[Schedule],
        functions: Functions,
        invoker: AsyncInvoker,
        bell: Bell,
        *,
        deliver: Callable[[str, str, str], None],
        exercise: Callable[[str, str, str], object],
    ) -> None:
        """`deliver(queue ARN, message, role ARN)` is for events whose target cannot be invoked. `exercise` hears what
        is done in the name of a schedule's role: an action, and the resource."""
        self.schedules = schedules
        self._functions = functions
        self._invoker = invoker
        self._bell = bell
        self._deliver = deliver
        self._exercise = exercise
        self._stopping = threading.Event()
        self._firing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)

    def start(self) -> None:
        """Begin to watch the clock."""
        self._thread.start()

    def stop(self) -> None:
        """Fire no more."""
        self._stopping.set()
        self._bell.ring()
        if self._thread.is_alive():
            self._thread.join(timeout=60)

    def run(self, role: str, wanted: str = "") -> Invocation:
        """Fire the schedules of this function now, one after the other: those that `wanted` names (by the logical id,
        or by a part of the Input), or all. The first outcome that is no success, else the first; see `run_each`."""
        outcomes = [outcome for _, outcome in self.run_each(role, wanted)]
        return next((outcome for outcome in outcomes if not outcome.ok), outcomes[0])

    def run_each(self, role: str, wanted: str = "") -> list[tuple[str, Invocation]]:
        """The same, with each schedule's logical id and outcome. LookupError if there is none."""
        return [(one.logical_id, self._invoke_now(role, one)) for one in self._chosen(role, wanted)]

    def switch(self, role: str, wanted: str = "", *, on: bool) -> None:
        """Their State from now on; what would have fired while they were disabled never does. Chosen as by `run`."""
        chosen = self._chosen(role, wanted)
        with self._firing:
            for schedule in chosen:
                if on and not schedule.enabled:
                    schedule.skip_to(self._now())
                schedule.enabled = on
        self._bell.ring()

    def _chosen(self, role: str, wanted: str) -> list[Schedule]:
        own = [schedule for schedule in self.schedules if self._role(schedule) == role]
        chosen = [one for one in own if wanted in (one.logical_id, "") or wanted in one.target.get("Input", "")]
        if not chosen:
            named = f" is called {wanted}, or has that in its Input" if wanted else ""
            known = [one.logical_id for one in own]
            raise LookupError(f"no schedule with the target {role}{named}; there are {known}")
        return chosen

    def _invoke_now(self, role: str, schedule: Schedule) -> Invocation:
        self._asks_to_invoke(schedule)
        return self._functions.invoke(role, schedule.event(self._now()))

    def _asks_to_invoke(self, schedule: Schedule) -> None:
        self._exercise(schedule.target["RoleArn"], "lambda:InvokeFunction", schedule.target["Arn"])

    def describe(self) -> list[dict[str, Any]]:
        """For the controls."""
        return [
            {
                "schedule": one.logical_id,
                "function": self._role(one),
                "input": one.target.get("Input", "{}"),
                "enabled": one.enabled,
                "due": None if one.due is None else one.due.isoformat(),
            }
            for one in self.schedules
        ]

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._firing:
                self._fire_all(self._now())
            moments = [schedule.due for schedule in self.schedules if schedule.enabled and schedule.due is not None]
            wait_s = (min(moments) - self._now()).total_seconds() if moments else 60.0
            self._bell.wait(max(0.0, min(wait_s, 60.0)))

    def _fire_all(self, now: datetime) -> None:
        for schedule in self.schedules:
            if schedule.enabled and schedule.due is not None and schedule.due <= now:
                self._fire(schedule, schedule.due)
                schedule.skip_to(now)

    def _fire(self, schedule: Schedule, moment: datetime) -> None:
        event = schedule.event(moment)
        role = self._role(schedule)
        if role is not None:
            self._asks_to_invoke(schedule)
            self._invoker.submit(role, event)
            return
        _log.warning("%s: there is no function %s", schedule.logical_id, schedule.target["Arn"])
        queue = schedule.target.get("DeadLetterConfig", {}).get("Arn")
        if queue:
            self._deliver(queue, json.dumps(event), schedule.target["RoleArn"])

    def _role(self, schedule: Schedule) -> str | None:
        try:
            return self._functions.role(schedule.target["Arn"])
        except KeyError:
            return None

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._bell.now(), UTC)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
