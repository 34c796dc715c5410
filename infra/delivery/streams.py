"""Stream mappings: a bad record neither blocks its shard for ever nor goes without a trace, and none is skipped."""

from __future__ import annotations

from collections.abc import Iterator

from infra.delivery.findings import Problem, Rule
from infra.delivery.letters import failures_of
from infra.delivery.sources import MAPPING, TABLES, source_of
from infra.delivery.template import CannotTell, Resource, Template, text_of

_ENDLESS = -1  # what AWS takes for unset


def caps(template: Template, mapping: Resource) -> Iterator[Problem]:
    """Unless told, Lambda repeats a batch until the stream forgets it, and everything behind it waits."""
    if source_of(template, mapping) != "stream":
        return
    for name in ("MaximumRetryAttempts", "MaximumRecordAgeInSeconds"):
        if template.number(mapping.get(name), _ENDLESS) == _ENDLESS:
            yield Problem(mapping, f"{name} is not set: one bad record blocks its shard", f"set {name}")


def age(template: Template, mapping: Resource) -> Iterator[Problem]:
    """A record that the stream has forgotten goes to no destination."""
    oldest = template.number(mapping.get("MaximumRecordAgeInSeconds"), _ENDLESS)
    if source_of(template, mapping) != "stream" or oldest == _ENDLESS:
        return
    remembered = 3600 * _remembered_h(template, mapping)
    if oldest >= remembered:
        yield Problem(
            mapping,
            f"records are given up at {oldest} s, but the stream forgets them at {remembered} s, without a letter",
            f"set MaximumRecordAgeInSeconds below {remembered}",
        )


def bisect(template: Template, mapping: Resource) -> Iterator[Problem]:
    """Otherwise the good records of a batch are given up with the bad one."""
    if source_of(template, mapping) == "stream" and not template.flag(mapping.get("BisectBatchOnFunctionError")):
        yield Problem(
            mapping,
            "good records are given up together with the bad one of their batch",
            "set BisectBatchOnFunctionError to true",
        )


def start(template: Template, mapping: Resource) -> Iterator[Problem]:
    """LATEST skips what is written while the mapping is made."""
    if source_of(template, mapping) != "stream":
        return
    position = template.text(mapping.get("StartingPosition")) or "not set"
    if position != "TRIM_HORIZON":
        yield Problem(
            mapping,
            f"StartingPosition is {position}: records written before the mapping reads are skipped",
            "set StartingPosition to TRIM_HORIZON (a change replaces the mapping)",
        )


def on_failure(template: Template, mapping: Resource) -> Iterator[Problem]:
    """What is given up leaves a letter."""
    if source_of(template, mapping) == "stream" and failures_of(mapping) is None:
        yield Problem(
            mapping,
            "records that are given up leave no trace",
            "set DestinationConfig.OnFailure.Destination to a queue",
        )


def _remembered_h(template: Template, mapping: Resource) -> int:
    """How long the stream keeps its records: DynamoDB a day, Kinesis a day unless told."""
    arn = mapping.get("EventSourceArn")
    try:
        stream = template.follow(arn)
        if stream.kind == "AWS::Kinesis::StreamConsumer":
            stream = template.follow(stream.get("StreamARN"))
    except CannotTell:
        if ":dynamodb:" in text_of(arn):
            return 24
        raise
    return 24 if stream.kind in TABLES else template.number(stream.get("RetentionPeriodHours"), 24)


RULES = (
    Rule("stream-caps", (MAPPING,), caps),
    Rule("stream-age", (MAPPING,), age),
    Rule("stream-bisect", (MAPPING,), bisect),
    Rule("stream-start", (MAPPING,), start),
    Rule("stream-letters", (MAPPING,), on_failure),
)
