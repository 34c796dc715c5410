"""Everything that can be set, with its default, its bounds and what it means: one typed place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from infra import sources
from infra.addresses import MAILBOX
from infra.models import Route, default_model, route
from lambdas.contracts.sources import Source


def number(default: int, low: int, high: int, meaning: str) -> int:
    value: int = field(default=default, metadata={"low": low, "high": high, "meaning": meaning})
    return value


def text(default: str, meaning: str, pattern: str = ".*") -> str:
    value: str = field(default=default, metadata={"pattern": pattern, "meaning": meaning})
    return value


def texts(meaning: str, pattern: str) -> tuple[str, ...]:
    value: tuple[str, ...] = field(default=(), metadata={"pattern": pattern, "meaning": meaning})
    return value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one deployment. Names end in their unit where they have one."""

    # where, and for whom
    env: str = text("prod", "name of the environment: picks its settings from cdk.json", r"[a-z][a-z0-9-]{0,19}")
    region: str = text(
        "", "region; empty means the one of your credentials, else us-east-1", r"([a-z]{2}(-[a-z]+)+-\d)?"
    )
    keep_data: bool = field(
        default=True, metadata={"meaning": "tables, buckets, dead letters and logs survive `cdk destroy`"}
    )
    alert_email: str = text("", "who gets the alarms; confirm the mail that AWS sends", rf"({MAILBOX})?")
    log_level: str = text("INFO", "of every function", "DEBUG|INFO|WARNING|ERROR")

    # the door
    jwt_issuer: str = text("", "an OIDC issuer: tokens instead of SigV4", r"(https://\S+)?")
    jwt_audience: tuple[str, ...] = texts("accepted audiences of those tokens", r"\S+")
    tenants: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}),
        metadata={"meaning": "with SigV4: principal ARN → tenant; who is not named is its account"},
    )
    cors_origins: tuple[str, ...] = texts("web origins that may call the API", r"\*|https?://[^/\s]+")
    throttle_rate: int = number(50, 1, 10_000, "requests per second, all routes together")
    throttle_burst: int = number(100, 1, 5_000, "requests at once")
    wait_max: int = number(20, 0, 20, "seconds that `?wait=` may hold an answer; 0 for small accounts")
    accept_timeout_s: int = number(10, 3, 29, "timeout of accept")
    control_timeout_s: int = number(29, 3, 29, "timeout of control, which cancels, retries and deletes")
    query_timeout_s: int = number(29, 3, 29, "timeout of query; an HTTP API waits 30 s at most")
    memory_mb: int = number(512, 128, 10_240, "memory of every function but worker, branch and collect")

    # the model
    models: tuple[str, ...] = texts(
        "Bedrock models or inference profiles the worker may call, the first by default; "
        "empty means Nova Lite of the region's geography",
        r"\S+",
    )
    model_regions: tuple[str, ...] = texts(
        "regions that those profiles route to, where infra/models.py does not know", r"[a-z]{2}(-[a-z]+)+-\d"
    )
    model_timeout_s: int = number(60, 5, 875, "longest wait for one model call")

    # the work
    worker_timeout_s: int = number(120, 30, 900, "timeout of the worker")
    worker_memory_mb: int = number(1024, 128, 10_240, "memory of worker, branch and collect")
    batch_size: int = number(10, 1, 10, "messages per invocation, and threads in it")
    batch_window_s: int = number(0, 0, 300, "seconds to wait for a fuller batch")
    max_concurrency: int = number(5, 2, 1000, "workers at once (MaximumConcurrency of the queue's mapping)")
    urgent_concurrency: int = number(2, 2, 1000, "workers at once for urgent jobs, beside max_concurrency")
    max_receive_count: int = number(5, 5, 1000, "deliveries before SQS itself moves a message to the dead letters")
    max_attempts: int = number(5, 1, 100, "tries of a job, unless its task says otherwise")
    retry_base_s: int = number(2, 1, 900, "first wait between tries")
    retry_cap_s: int = number(900, 1, 43_200, "longest wait between tries")
    jitter: str = text("full", "full, equal or decorrelated", "full|equal|decorrelated")
    max_samples: int = number(2, 1, 10, "answers asked for when the task rejects them")
    deadline_s: int = number(86_400, 300, 1_209_600, "a job not final by then is FAILED")
    not_before_max_days: int = number(30, 1, 365, "how far ahead `not_before` may lie")
    branch_timeout_s: int = number(300, 30, 900, "timeout of branch, which runs one task of a workflow")
    collect_timeout_s: int = number(60, 10, 900, "timeout of collect, which makes one result of what branches gave")
    ended_timeout_s: int = number(30, 15, 900, "timeout of ended, which hears of executions that ended badly")
    mail_from: str = text(
        "",
        "sender of tasks' e-mails, verified with SES; empty means that none are sent",
        rf"({MAILBOX})?",
    )

    # streaming
    chunk_ms: int = number(200, 10, 5_000, "streamed text is stored when the oldest of it has waited so long")
    chunk_bytes: int = number(2_048, 1, 16_384, "or when there is so much of it, bytes")
    socket_timeout_s: int = number(29, 5, 29, "timeout of socket, which answers what comes over a WebSocket")
    push_timeout_s: int = number(30, 10, 300, "timeout of push, which sends to whoever watches")

    # webhooks
    webhook_timeout_s: int = number(5, 1, 30, "longest wait for one attempt at an endpoint, answer included")
    webhook_hours: int = number(72, 1, 168, "how long a delivery is tried")
    webhook_concurrency: int = number(2, 1, 8, "attempts at once to one endpoint; the others wait their turn")
    deliver_timeout_s: int = number(60, 30, 300, "timeout of deliver")
    deliver_concurrency: int = number(
        5, 2, 1000, "delivers at once; each endpoint may hold webhook_concurrency of them"
    )
    subscriptions: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({}),
        metadata={"meaning": "who else hears of job events (e-mail, HTTPS, SQS): docs/delivery.md"},
    )

    # events from outside
    sources: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({}),
        metadata={"meaning": "declared sources of events (webhooks): docs/event-sources.md"},
    )
    ingest_timeout_s: int = number(30, 10, 900, "timeout of ingest, which turns events in the inbox into jobs")
    ingest_concurrency: int = number(2, 2, 1000, "ingests at once")
    upload_max_bytes: int = number(10_000_000, 1_000, 100_000_000, "largest upload through `POST /uploads`, bytes")

    # dispatch and repair
    dispatch_timeout_s: int = number(30, 5, 900, "timeout of dispatch; also what a stream record may lag")
    stream_batch_size: int = number(100, 1, 1000, "stream records per invocation")
    stream_age_s: int = number(3600, 60, 86_399, "age at which an undeliverable stream record is given up")
    due_grace_s: int = number(120, 10, 900, "how long after its time a job is left alone by the sweep")
    sweep_period_s: int = number(300, 60, 3600, "time between sweeps, whole minutes")
    sweep_timeout_s: int = number(120, 30, 890, "timeout of sweep; it keeps its last seconds to end in order")
    source_sweep_period_s: int = number(3600, 300, 86_400, "time between comparisons with sources, whole minutes")
    drift_sweep_period_s: int = number(  # no more than the period of an alarm
        86_400, 3600, 86_400, "time between looks for results that are gone, whole minutes"
    )
    sweep_window_days: int = number(30, 1, 365, "how far back sources are compared with the records")
    source_grace_s: int = number(900, 60, 86_400, "events of a source younger than that may still be on their way")
    sweep_width: int = number(8, 1, 32, "what a sweep does at once")
    sweep_rate: int = number(200, 1, 5_000, "what it does in a second, at most")
    sweep_page: int = number(1_000, 10, 1_000, "objects or records it lists at once")

    admin_timeout_s: int = number(29, 15, 29, "timeout of admin, which looks through dead letters for operators")
    redrive_timeout_s: int = number(300, 60, 900, "timeout of redrive; it goes on in another invocation")

    # what is kept, and for how long
    record_days: int = number(90, 30, 3650, "records, after their end")
    answer_days: int = number(120, 30, 3650, "paid answers: so long none is paid for twice")
    object_days: int = number(150, 30, 3650, "inputs, results and large answers in S3")
    work_days: int = number(4, 1, 13, "messages in the work queue")
    log_days: int = number(30, 1, 3653, "logs")

    # when to wake somebody
    oldest_message_alarm_s: int = number(900, 60, 86_400, "age of the oldest work message")
    oldest_urgent_alarm_s: int = number(300, 60, 86_400, "age of the oldest urgent message")
    oldest_job_alarm_s: int = number(3600, 60, 1_209_600, "how long the oldest open job is overdue")

    @property
    def visibility_s(self) -> int:
        """Visibility timeout of the work queue: six times the worker's timeout, and its window."""
        return 6 * self.worker_timeout_s + self.batch_window_s

    @property
    def inbox_visibility_s(self) -> int:
        """Visibility timeout of the inbox: six times the timeout of ingest."""
        return 6 * self.ingest_timeout_s

    @property
    def deliveries_visibility_s(self) -> int:
        """Visibility timeout of the deliveries queue: six times the timeout of deliver."""
        return 6 * self.deliver_timeout_s

    @property
    def dlq_days(self) -> int:
        """Dead letters are kept for as long as SQS offers: the delivery contract asks for no less."""
        return 14

    @property
    def event_sources(self) -> dict[str, Source]:
        """The declared sources, by name."""
        return sources.read(self.sources)

    @property
    def lease_s(self) -> int:
        """A lease ends ten seconds after the platform killed its holder."""
        return self.worker_timeout_s + 10

    @property
    def model_routes(self) -> tuple[Route, ...]:
        """Every model that the worker may call, its default first."""
        names = self.models or (default_model(self.region),)
        return tuple(route(name, self.region, self.model_regions) for name in names)
