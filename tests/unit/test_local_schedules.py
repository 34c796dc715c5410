"""What switching a schedule off and on makes of the moments at which it was due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from local.events.schedules import Schedule, Schedules

START = datetime(2026, 11, 30, 12, tzinfo=UTC)
PERIOD = timedelta(minutes=5)


def late_by(late: timedelta) -> tuple[Schedules, Schedule]:
    """One schedule of every five minutes, so long after its start; nobody has fired it."""
    target = {"Arn": "a function", "RoleArn": "a role", "Input": "{}"}
    schedule = Schedule("Often", {"ScheduleExpression": "rate(5 minutes)", "Target": target}, START)
    functions: Any = SimpleNamespace(role=lambda arn: "sweep")
    bell: Any = SimpleNamespace(now=(START + late).timestamp, ring=lambda: None)
    nobody: Any = None
    return Schedules([schedule], functions, nobody, bell, deliver=nobody, exercise=nobody), schedule


def test_enabling_what_is_enabled_loses_no_moment_that_is_due() -> None:
    schedules, schedule = late_by(PERIOD + timedelta(seconds=1))
    schedules.switch("sweep", on=True)
    assert (schedule.enabled, schedule.due) == (True, START + PERIOD)


def test_enabling_what_was_disabled_begins_with_the_next_moment() -> None:
    schedules, schedule = late_by(PERIOD + timedelta(seconds=1))
    schedules.switch("sweep", on=False)
    schedules.switch("sweep", on=True)
    assert (schedule.enabled, schedule.due) == (True, START + 2 * PERIOD)
