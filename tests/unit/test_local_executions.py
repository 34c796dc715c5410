"""What EventBridge is told of an execution, and who hears of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.events.rules import Rule, Rules, Target
from local.executions.execution import ABORTED, SUCCEEDED, Execution, Machine
from local.executions.limits import DATA_BYTES, fits
from local.executions.status_change import LARGEST_BYTES, status_change

MACHINE = Machine("M", "arn:aws:states:us-east-1:123456789012:stateMachine:m", "m", "arn:role", "{}", float("inf"))


def execution(**changes: Any) -> Execution:
    return Execution(MACHINE, "e", **{"input": "{}", "started_s": 1_800_000_000.25, **changes})


def test_an_execution_that_runs_has_no_end_yet():
    event = status_change(execution())
    assert event["resources"] == ["arn:aws:states:us-east-1:123456789012:execution:m:e"]
    assert event["time"] == "2027-01-15T08:00:00Z"
    detail = event["detail"]
    assert (detail["status"], detail["startDate"], detail["stopDate"]) == ("RUNNING", 1_800_000_000_250, None)
    assert (detail["output"], detail["outputDetails"], detail["inputDetails"]) == (None, None, {"included": True})


@pytest.mark.parametrize(
    ("input_bytes", "output_bytes", "included"),
    [
        (LARGEST_BYTES // 2, LARGEST_BYTES // 2 - 8, (True, True)),
        (LARGEST_BYTES // 2, LARGEST_BYTES // 2, (False, True)),
        (10, LARGEST_BYTES + 1, (False, False)),
    ],
)
def test_what_is_too_large_for_an_event_is_left_out(input_bytes: int, output_bytes: int, included: tuple[bool, bool]):
    ended = execution(input="x" * input_bytes, output="y" * output_bytes, status=SUCCEEDED, stopped_s=1_800_000_001.0)
    detail = status_change(ended)["detail"]
    assert (detail["inputDetails"]["included"], detail["outputDetails"]["included"]) == included
    assert (detail["input"] is not None, detail["output"] is not None) == included


def test_an_execution_is_described_without_what_it_does_not_have():
    described = execution(status=ABORTED, stopped_s=1_800_000_001.0, error="E").describe()
    assert (described["status"], described["error"]) == ("ABORTED", "E")
    assert not {"cause", "output", "outputDetails"} & described.keys()


def test_the_measure_of_data_is_compact_utf_8():
    assert fits(["é" * ((DATA_BYTES - 4) // 2)])
    assert not fits(["é" * ((DATA_BYTES - 2) // 2)])


class Bus:
    """Two rules, the second of which is off."""

    def __init__(self) -> None:
        self.invoked: list[dict[str, Any]] = []
        bad = {"source": ["aws.states"], "detail": {"status": ["FAILED", "ABORTED"], "name": [{"prefix": "e"}]}}
        target = Target("arn:aws:lambda:us-east-1:123456789012:function:f", None)
        rules = [Rule("On", "arn:on", bad, (target,)), Rule("Off", "arn:off", {}, (target, target), enabled=False)]
        self.rules = Rules(rules, self._invoke, lambda: None)

    def _invoke(self, arn: str, event: dict[str, Any]) -> bool:
        self.invoked.append(event)
        return True

    def tell(self, **changes: Any) -> dict[str, Any]:
        event = status_change(execution(**changes))
        self.rules.take(event)
        return event


def test_a_rule_takes_what_matches_its_pattern():
    bus = Bus()
    bus.tell()
    aborted = bus.tell(status=ABORTED, stopped_s=1_800_000_001.0)
    assert bus.invoked == [aborted]
    assert json.loads(json.dumps(aborted)) == aborted


def test_only_events_that_a_rule_waits_for_count_as_lost():
    bus = Bus()
    bus.rules.lose(1, "")
    bus.tell()
    lost = bus.tell(status=ABORTED)
    heard = bus.tell(status=ABORTED)
    assert (bus.rules.lost, bus.invoked) == ([lost], [heard])


def test_all_events_are_lost_until_they_are_heeded_again():
    bus = Bus()
    bus.rules.lose(None, "")
    for _ in range(3):
        bus.tell(status=ABORTED)
    bus.rules.heed()
    heard = bus.tell(status=ABORTED)
    assert (len(bus.rules.lost), bus.invoked) == (3, [heard])


def test_events_of_other_executions_are_not_lost():
    bus = Bus()
    bus.rules.lose(None, "another")
    heard = bus.tell(status=ABORTED)
    assert (bus.rules.lost, bus.invoked) == ([], [heard])
