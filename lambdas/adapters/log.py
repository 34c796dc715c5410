"""One canonical JSON line per step, each with its correlation ids: job, tenant, trace, attempt."""

from __future__ import annotations

from collections.abc import Mapping
from logging import makeLogRecord
from typing import Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from lambdas.contracts.names import METRIC_NAMESPACE
from lambdas.core.job import Job


def correlation(job: Job) -> dict[str, Any]:
    return {
        "job_id": job.id,
        "tenant": job.tenant,
        "trace_id": job.trace_id,
        "attempt": job.attempt,
        "type": job.type,
    }


# What a log line has of its own: a field of that name gets an underscore, it must not raise or replace.
_TAKEN = frozenset(vars(makeLogRecord({}))) | {
    "message",
    "asctime",
    "level",
    "location",
    "timestamp",
    "service",
    "step",
}


def _line(step: str, job: Job | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    told = {f"{name}_" if name in _TAKEN else name: value for name, value in fields.items()}
    return {"step": step, **(correlation(job) if job else {}), **told}


class StepLog:
    """The log of one function. Never an input, a prompt, an answer or a header: ids, numbers and reasons."""

    def __init__(self, function: str) -> None:
        self._logger = Logger(location=None, use_rfc3339=True, utc=True)
        self._function = function

    def started(self, context: Any) -> None:
        """Begin an invocation: its request id goes on every line, the last one's keys on none."""
        self._logger.clear_state()
        request_id = getattr(context, "aws_request_id", "")
        self._logger.append_keys(function=self._function, request_id=request_id)

    def notice(self, step: str, /, *, job: Job | None = None, **fields: Any) -> None:
        self._logger.info(step, extra=_line(step, job, fields))

    def trouble(self, step: str, /, *, job: Job | None = None, **fields: Any) -> None:
        self._logger.error(step, extra=_line(step, job, fields))

    def crashed(self, step: str, /, **fields: Any) -> None:
        """With the traceback of the exception that is being handled."""
        self._logger.exception(step, extra=_line(step, None, fields))

    def about(self, job: Job) -> None:
        """From here on every line of this thread's context, a task's own included, is about this job."""
        self._logger.thread_safe_append_keys(**correlation(job))

    def about_message(self, message_id: str) -> None:
        self._logger.thread_safe_clear_keys()
        self._logger.thread_safe_append_keys(message_id=message_id)


def emit_metrics(values: Mapping[str, int], unit: MetricUnit) -> None:
    """Numbers for CloudWatch, through the log (embedded metric format): no call, no dimension per job."""
    metrics = Metrics(namespace=METRIC_NAMESPACE)
    for name, value in values.items():
        metrics.add_metric(name=name, unit=unit, value=value)
    metrics.flush_metrics()
