"""What `make e2e-ministack` stands on: the fitted template, strict expected failures, processes that are ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.ministack import plugin, processes
from tests.ministack.app import fitted
from tests.ministack.processes import EndedError, eventually, run, running

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_the_template_loses_what_is_refused_and_nothing_else() -> None:
    policy: dict[str, Any] = {"Statement": [{"Action": "sqs:SendMessage"}, {"Action": ["s3:GetObject", "sns:Publish"]}]}
    template = fitted(
        {
            "Outputs": {"A": {"Value": "a"}},
            "Resources": {
                "Query": {"Type": "AWS::Logs::QueryDefinition", "Properties": {}},
                "Simple": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"MetricName": "m"}},
                "Math": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": []}},
                "Policy": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyDocument": policy}},
                "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 1}},
            },
        }
    )
    assert template["Outputs"] == {"A": {"Value": "a"}}
    assert list(template["Resources"]) == ["Simple", "Policy", "Queue"]
    assert template["Resources"]["Queue"]["Properties"] == {"VisibilityTimeout": 1}
    assert [statement["Action"] for statement in policy["Statement"]] == [
        ["sqs:SendMessage", "sqs:SendMessageBatch"],
        ["s3:GetObject", "sns:Publish", "sns:PublishBatch"],
    ]


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.marks: list[Any] = []

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark)


def collect(*items: Item, keyword: str = "") -> None:
    config = SimpleNamespace(getoption=lambda _: keyword)
    plugin.pytest_collection_modifyitems(cast("Any", config), cast("Any", list(items)))


@pytest.fixture(autouse=True)
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "EXPECTED_FAILURES", {"t.py::test_a": "it is so", "t.py::test_b[one]": "and so"})


def test_a_listed_test_must_fail_and_no_other_may() -> None:
    every, one, another = Item("t.py::test_a[x]"), Item("t.py::test_b[one]"), Item("t.py::test_b[two]")
    collect(every, one, another)
    (mark,) = every.marks
    assert (mark.name, mark.kwargs["strict"], mark.kwargs["reason"]) == ("xfail", True, "it is so")
    assert AssertionError in mark.kwargs["raises"]
    assert TimeoutError not in mark.kwargs["raises"]
    assert [len(item.marks) for item in (one, another)] == [1, 0]


def test_a_name_that_no_test_bears_is_an_error_unless_a_part_was_asked_for() -> None:
    with pytest.raises(pytest.UsageError, match=r"test_b\[one\]"):
        collect(Item("t.py::test_a"))
    collect(Item("t.py::test_a"), keyword="a")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for the process in /proc")
def test_what_a_process_has_started_ends_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def child() -> int:
        return int(log.read_text() or 0)

    def interrupted() -> None:
        with running(sys.executable, "-c", PARENT, env=dict(os.environ), cwd=tmp_path, log=log):
            eventually(child, patience_s=60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    eventually(lambda: not is_running(child()), patience_s=60)


def test_a_step_that_fails_says_which_it_was(tmp_path: Path) -> None:
    with pytest.raises(EndedError, match=r"raise SystemExit.* ended with 3"):
        run(sys.executable, "-c", "raise SystemExit(3)", env=dict(os.environ), cwd=tmp_path)


def test_what_never_comes_true_is_given_up_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(pauses), sleep=pauses.append)
    monkeypatch.setattr(processes, "time", clock)
    with pytest.raises(TimeoutError, match="not within 3 s"):
        eventually(lambda: False, patience_s=3)
    assert 3 < sum(pauses) < 4


def is_running(pid: int) -> bool:
    """A process that nobody has waited for yet has ended all the same."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
