"""The embedded metric format, as CloudWatch Logs takes it: its specification, and what our functions really write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters.log import emit_metrics
from local.metrics import emf
from local.metrics.store import metric


def line(document: dict[str, Any] | None = None, **directive: Any) -> str:
    head = {"Namespace": "Ours", "Dimensions": [["service"]], "Metrics": [{"Name": "Due"}], **directive}
    body = {"service": "prod", "Due": 3, **(document or {})}
    return json.dumps({"_aws": {"Timestamp": 90_000, "CloudWatchMetrics": [head]}, **body})


def told(text: str) -> list[tuple[str, float]]:
    return [(str(one.about), one.value) for one in emf.values(text)]


def test_a_number_with_its_namespace_dimensions_and_time() -> None:
    (found,) = emf.values(line())
    assert (found.about, found.value, found.at_s) == (metric("Ours", "Due", {"service": "prod"}), 3.0, 90.0)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (line({"Due": [1, 2.5]}), [("Ours Due (service=prod)", 1.0), ("Ours Due (service=prod)", 2.5)]),
        (line(Dimensions=[["service"], []]), [("Ours Due (service=prod)", 3.0), ("Ours Due ()", 3.0)]),
        (line({"Found": 1}, Metrics=[{"Name": "Due"}, {"Name": "Found"}]),
         [("Ours Due (service=prod)", 3.0), ("Ours Found (service=prod)", 1.0)]),
        (line(Metrics=[{"Name": "NotThere"}]), []),
        (line({"Due": "3"}), []),
        (line({"Due": True}), []),
        (line({"service": 7}), []),
        (line(Dimensions=[["other"]]), []),
        (line(Namespace=None), []),
        ("[INFO] " + line(), []),
        ('{"message": "_aws is only talked about"}', []),
        ('{"_aws": 1}', []),
        ('{"_aws": {"Timestamp": "now", "CloudWatchMetrics": []}}', []),
        ('["_aws"]', []),
    ],
)  # fmt: skip
def test_what_is_a_metric_and_what_is_a_line_of_log(text: str, found: list[tuple[str, float]]) -> None:
    assert told(text) == found


def test_what_our_functions_write(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "neverdrop-dev")
    emit_metrics({"DueJobs": 2, "SweepRepaired": 0}, MetricUnit.Count)
    assert told(capsys.readouterr().out.strip()) == [
        ("Neverdrop DueJobs (service=neverdrop-dev)", 2.0),
        ("Neverdrop SweepRepaired (service=neverdrop-dev)", 0.0),
    ]
