"""The log: one JSON line a step, each with its own job's ids and nobody else's."""

from __future__ import annotations

import contextvars
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters.log import StepLog, emit_metrics
from lambdas.contracts import names
from lambdas.core.execution import _own_fields
from tests.builders import any_job, held_job
from tests.integration.cloud import Context
from tests.integration.conftest import Lines

IDS = ("job_id", "tenant", "trace_id", "attempt", "type")


@pytest.fixture
def log(lines: Lines) -> StepLog:
    return StepLog("worker")


def test_a_step_is_one_line_of_json_with_its_fields(log: StepLog, lines: Lines):
    log.notice("stored", key="results/acme/1/1", bytes=12)
    (line,) = lines.all()
    assert (line["step"], line["message"], line["key"], line["bytes"]) == ("stored", "stored", "results/acme/1/1", 12)
    assert line["level"] == "INFO"


def test_a_text_with_line_breaks_stays_one_line(log: StepLog, lines: Lines):
    log.notice("failed", detail="one\ntwo\u2028three")
    assert len(lines.raw.splitlines()) == 1 or len(lines.raw.rstrip("\n").split("\n")) == 1
    assert json.loads(lines.raw)["detail"] == "one\ntwo\u2028three"


def test_every_line_of_an_invocation_has_its_request_id_and_function(log: StepLog, lines: Lines):
    log.started(Context(request_id="first"))
    log.notice("one")
    log.started(Context(request_id="second"))
    log.notice("two")
    assert [(line["request_id"], line["function"]) for line in lines.all()] == [
        ("first", "worker"),
        ("second", "worker"),
    ]


def test_a_step_about_a_job_carries_its_ids(log: StepLog, lines: Lines):
    job = held_job()
    log.notice("dispatched", job=job)
    log.trouble("not_sent", job=job)
    for line in lines.all():
        assert {name: line[name] for name in IDS} == {
            "job_id": job.id, "tenant": job.tenant, "trace_id": job.trace_id, "attempt": 1, "type": "summarize",
        }  # fmt: skip
    assert [line["level"] for line in lines.all()] == ["INFO", "ERROR"]


def test_otel_04_concurrent_records_keep_their_ids_apart(log: StepLog, lines: Lines):
    """Platform fact 9: `append_keys` is shared by all threads."""
    jobs = [any_job(pk=f"{number:032x}", tenant=f"tenant-{number}") for number in range(8)]
    barrier = threading.Barrier(8)

    def work(number: int) -> None:
        log.about_message(f"message-{number}")
        barrier.wait()
        log.about(jobs[number])
        barrier.wait()
        for turn in range(5):
            log.notice("turn", expected=jobs[number].id, turn=turn)

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(contextvars.copy_context().run, work, number) for number in range(8)]
    for one in running:
        one.result()
    turns = lines.of("turn")
    assert len(turns) == 40
    assert all(line["job_id"] == line["expected"] for line in turns)
    numbers = {line["job_id"]: (line["tenant"], line["message_id"]) for line in turns}
    assert numbers == {job.id: (f"tenant-{n}", f"message-{n}") for n, job in enumerate(jobs)}


def test_otel_04_the_next_message_in_the_same_thread_has_no_id_of_the_last(log: StepLog, lines: Lines):
    log.about_message("message-1")
    log.about(any_job())
    log.notice("one")
    log.about_message("message-2")
    log.notice("two")
    one, two = lines.all()
    assert set(IDS) <= one.keys()
    assert not set(IDS) & two.keys()
    assert two["message_id"] == "message-2"


def test_otel_04_the_next_invocation_has_no_id_of_the_last(log: StepLog, lines: Lines):
    log.started(Context(request_id="first"))
    log.about_message("message-1")
    log.about(any_job())
    log.started(Context(request_id="second"))
    log.notice("begins")
    (line,) = lines.all()
    assert not {*IDS, "message_id"} & line.keys()
    assert line["request_id"] == "second"


@pytest.mark.parametrize("name", ["message", "name", "args", "module", "msg", "level", "created", "exc_info", "step"])
def test_a_field_of_any_name_may_be_told(log: StepLog, lines: Lines, name: str):
    """`ctx.log("found", name="ANNA")`: Python's own logging raises KeyError for the names of its record's parts."""
    fields: dict[str, Any] = {name: "a value"}
    log.notice("task", **fields)
    assert "a value" in lines.raw


def test_no_field_of_a_task_replaces_what_says_whose_line_it_is(
    log: StepLog, lines: Lines, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793")
    log.started(Context(request_id="first"))
    log.about_message("message-1")
    log.about(held_job())
    log.notice("task", **_own_fields("half-way", {}))
    (own,) = lines.all()
    log.notice("task", **_own_fields("half-way", dict.fromkeys(own, "another's")))
    told = lines.all()[-1]
    assert {*IDS, "request_id", "function", "message_id", "xray_trace_id"} <= own.keys()
    assert {name for name in own if told[name] != own[name]} <= {"timestamp"}
    assert "another's" not in [told[name] for name in own]


def test_a_crash_is_told_with_its_traceback(log: StepLog, lines: Lines):
    try:
        raise LookupError("what it was")
    except LookupError:
        log.crashed("worker_error")
    (line,) = lines.of("worker_error")
    assert line["level"] == "ERROR"
    assert "LookupError: what it was" in line["exception"]


def test_a_metric_is_one_line_in_embedded_format_without_a_dimension_per_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "neverdrop-prod")
    emit_metrics({names.OLDEST_OPEN_JOB: 71}, MetricUnit.Seconds)
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    (metrics,) = told["_aws"]["CloudWatchMetrics"]
    assert metrics["Namespace"] == names.METRIC_NAMESPACE
    assert metrics["Dimensions"] == [[names.METRIC_DIMENSION]]
    assert told[names.METRIC_DIMENSION] == "neverdrop-prod"
    assert told[names.OLDEST_OPEN_JOB] in (71, [71])


def test_metrics_of_two_invocations_are_not_added_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Platform fact 9: Powertools keeps its metrics in class attributes."""
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "neverdrop-prod")
    for seconds in (71, 0):
        emit_metrics({names.OLDEST_OPEN_JOB: seconds}, MetricUnit.Seconds)
    told = [json.loads(line)[names.OLDEST_OPEN_JOB] for line in capsys.readouterr().out.splitlines()]
    assert told in ([71, 0], [[71], [0]])
