"""What the settings must keep: bounds of AWS, and the inequalities without which nothing is promised."""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator
from dataclasses import fields

from infra import declarations, sources, subscriptions, tenants
from infra.settings import Settings

DAY_S = 86_400
UPLOAD_COPIES = 4  # of an upload in the worker's memory: as bytes, as text, as a value, and again for the model
_MONTHS = (30, 60, 90, 120, 150, 180, 365, 400, 545)
_YEARS = (731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
LOG_DAYS = (1, 3, 5, 7, 14, *_MONTHS, *_YEARS)  # CloudWatch knows no other retention


def problems(settings: Settings, priced: Container[str] | None = None) -> list[str]:
    """Everything that is wrong with these settings, each with what to do; empty if they can be deployed.

    `priced` has the models whose price is known; None leaves that open.
    """
    bounds = list(_bounds(settings))
    if bounds:
        return bounds  # an inequality between impossible numbers would only confuse
    return [
        *_choices(settings),
        *_identities(settings),
        *_sources(settings),
        *subscriptions.problems(settings.subscriptions),
        *_memory(settings),
        *_models(settings, priced),
        *_inequalities(settings),
        *declarations.problems(settings),
        *_retentions(settings),
    ]


def _bounds(settings: Settings) -> Iterator[str]:
    for one in fields(settings):
        value = getattr(settings, one.name)
        low, high, pattern, meaning = (one.metadata.get(key) for key in ("low", "high", "pattern", "meaning"))
        if low is not None and not low <= value <= high:
            yield f"{one.name} is {value}, but must be between {low} and {high}: {meaning}"
        words = (value,) if isinstance(value, str) else value if isinstance(value, tuple) else ()
        for word in words:
            if pattern is not None and not re.fullmatch(pattern, word):
                yield f"{one.name} has {word!r}, which does not look like one: {meaning}"


def _choices(s: Settings) -> Iterator[str]:
    if s.log_days not in LOG_DAYS:
        nearest = min(LOG_DAYS, key=lambda days: abs(days - s.log_days))
        yield f"log_days is {s.log_days}, which CloudWatch does not offer: take {nearest}"
    for name in ("sweep_period_s", "source_sweep_period_s", "drift_sweep_period_s"):
        if getattr(s, name) % 60:
            yield f"{name} is {getattr(s, name)}, but the Scheduler counts minutes: take a multiple of 60"
    if "*" in s.cors_origins and len(s.cors_origins) > 1:
        yield "cors_origins has '*' beside other origins: name the origins, or leave '*' alone"


def _identities(s: Settings) -> Iterator[str]:
    if bool(s.jwt_issuer) != bool(s.jwt_audience):
        yield "jwt_issuer and jwt_audience belong together: set both, or neither for SigV4"
    if s.jwt_issuer and s.tenants:
        yield "tenants maps IAM principals, but with jwt_issuer a token names its tenant: remove one"
    yield from tenants.problems(s.tenants)


def _sources(s: Settings) -> Iterator[str]:
    wrong = list(sources.problems(s.sources))
    yield from wrong
    if wrong:
        return
    binary = sources.binary(s.event_sources)
    # accept has both in its environment
    size = len(tenants.environment(s.tenants).encode()) + len(sources.environment(binary).encode())
    if binary and size > tenants.MAX_BYTES:
        yield (
            f"tenants and the binary ones of sources take {size} bytes together, and accept has room for "
            f"{tenants.MAX_BYTES} of them: use tokens (jwt_issuer), or fewer binary sources"
        )
    # the sweep has these
    size = len(sources.environment(s.event_sources).encode()) + declarations.environment_bytes(declarations.read())
    if size > sources.MAX_BYTES:
        yield (
            f"sources and lambdas/workflows take {size} bytes together, and the sweep has room for {sources.MAX_BYTES} "
            "of them: shorten names, or deploy a second environment for some of them"
        )


def _memory(s: Settings) -> Iterator[str]:
    needed = math.ceil(UPLOAD_COPIES * s.batch_size * s.upload_max_bytes / 1_000_000)
    if needed > s.worker_memory_mb:
        yield (
            f"worker_memory_mb ({s.worker_memory_mb}) must be at least {needed} for {s.batch_size} uploads of "
            f"upload_max_bytes ({s.upload_max_bytes}) at once: raise it, or lower batch_size or upload_max_bytes"
        )


def _models(s: Settings, priced: Container[str] | None) -> Iterator[str]:
    try:
        routes = s.model_routes
    except ValueError as error:
        yield str(error)
        return
    if len({route.model_id for route in routes}) < len(routes):
        yield "models names a model twice: name each once"
    for route in routes:
        if priced is not None and route.foundation_model not in priced:
            yield f"no price is known for {route.foundation_model!r}: add it to lambdas/core/prices.py"


def _inequalities(s: Settings) -> Iterator[str]:
    """Times within one job's life, in seconds: section 2 of the protocol, and what it takes for granted."""
    repair_s = s.lease_s + s.sweep_period_s
    rules = (
        (
            s.lease_s < s.visibility_s <= 43_200,
            "a message must return ({visibility_s} s) after its lease ended ({lease_s} s) within 12 hours: "
            "lower worker_timeout_s or batch_window_s",
        ),
        (
            s.model_timeout_s + 10 + 15 <= s.worker_timeout_s,
            "model_timeout_s ({model_timeout_s}) must leave 25 seconds of worker_timeout_s ({worker_timeout_s}): "
            "15 go by before a model is asked (start-up, claim, input), and no job is begun unless a whole call and "
            "10 seconds to save its answer are left, so that no job would ever be tried",
        ),
        (
            s.model_timeout_s + 10 + 15 <= s.branch_timeout_s,
            "model_timeout_s ({model_timeout_s}) must leave 25 seconds of branch_timeout_s ({branch_timeout_s}), as of "
            "the worker's, or no branch of a workflow would ever ask",
        ),
        (
            s.dispatch_timeout_s < s.due_grace_s,
            "due_grace_s ({due_grace_s}) must exceed dispatch_timeout_s ({dispatch_timeout_s}), "
            "or the sweep sends what dispatch is about to send",
        ),
        (
            s.due_grace_s <= s.lease_s,
            "due_grace_s ({due_grace_s}) must be at most worker_timeout_s + 10 ({lease_s}), "
            "or a crashed job waits longer than promised",
        ),
        (
            s.stream_age_s < DAY_S,
            "stream_age_s ({stream_age_s}) must be below the 24 hours that the stream remembers",
        ),
        (
            s.deadline_s > repair_s,
            "deadline_s ({deadline_s}) must exceed a lease and a sweep ({repair_s}), or no crash is repaired",
        ),
        (
            s.retry_base_s <= s.retry_cap_s < s.deadline_s,
            "retry_base_s ({retry_base_s}) must be at most retry_cap_s ({retry_cap_s}), "
            "and that below deadline_s ({deadline_s})",
        ),
        (
            s.webhook_timeout_s + 5 + 15 <= s.deliver_timeout_s,
            "webhook_timeout_s ({webhook_timeout_s}) must leave 20 seconds of deliver_timeout_s ({deliver_timeout_s}): "
            "15 go by before an endpoint is called, and no attempt is begun unless a whole one and 5 seconds to note "
            "what came of it are left",
        ),
        (
            s.webhook_concurrency < s.deliver_concurrency,
            "webhook_concurrency ({webhook_concurrency}) must be below deliver_concurrency ({deliver_concurrency}), "
            "or one slow endpoint holds up the deliveries to all others",
        ),
        (
            s.wait_max <= s.query_timeout_s - 4,
            "wait_max ({wait_max}) must leave four seconds of query_timeout_s ({query_timeout_s}) to answer",
        ),
        (
            s.sweep_timeout_s + 10 <= s.sweep_period_s,
            "sweep_timeout_s ({sweep_timeout_s}) must be at least ten seconds below sweep_period_s ({sweep_period_s}), "
            "or a sweep that died still holds its lease when the next one comes",
        ),
        (
            s.sweep_period_s <= s.source_sweep_period_s <= s.drift_sweep_period_s,
            "sweep_period_s ({sweep_period_s}), source_sweep_period_s ({source_sweep_period_s}) and "
            "drift_sweep_period_s ({drift_sweep_period_s}) must not fall: each is dearer than the one before",
        ),
    )
    seen = {**vars(s), "lease_s": s.lease_s, "visibility_s": s.visibility_s, "repair_s": repair_s}
    yield from (message.format_map(seen) for holds, message in rules if not holds)


def _retentions(s: Settings) -> Iterator[str]:
    """What is kept must outlive what points to it, in days."""
    moved = s.work_days + math.ceil(s.deadline_s / DAY_S)
    redriven = moved + s.dlq_days  # the last day on which a letter may reopen its job
    answered = s.record_days + redriven
    stored = max(s.answer_days, answered + s.not_before_max_days)
    rules = (
        (
            s.dlq_days >= moved,
            "work_days and the deadline ({moved}) must be at most the {dlq_days} days that dead letters are kept: "
            "moving a message to the dead letters does not restart its clock",
        ),
        (
            s.record_days >= redriven,
            "record_days ({record_days}) must be at least work_days, the deadline and the {dlq_days} days of a letter "
            "({redriven}), or a letter comes back to no record",
        ),
        (
            s.sweep_window_days < s.record_days,
            "sweep_window_days ({sweep_window_days}) must be below record_days ({record_days}), "
            "or an old event whose record has expired is taken for a lost one, and paid for again",
        ),
        (
            s.answer_days >= answered,
            "answer_days ({answer_days}) must be at least record_days, work_days, the deadline and the {dlq_days} days "
            "of a letter ({answered}), or a known answer is paid for again",
        ),
        (
            s.object_days >= stored,
            "object_days ({object_days}) must cover answer_days, and record_days, work_days, the deadline, "
            "the {dlq_days} days of a letter and not_before_max_days ({stored}), or a record points to nothing",
        ),
    )
    seen = {
        **vars(s),
        "dlq_days": s.dlq_days,
        "moved": moved,
        "redriven": redriven,
        "answered": answered,
        "stored": stored,
    }
    yield from (message.format_map(seen) for holds, message in rules if not holds)
