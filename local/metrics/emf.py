"""CloudWatch's embedded metric format: numbers that a function writes into its log, as CloudWatch Logs takes them out.

A line that is no such document, or a wrong one, is a log line and nothing else: CloudWatch does not complain either.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from local.metrics.store import Metric, metric

_MARK = '"_aws"'
_MOST_DIMENSIONS = 30
_MOST_VALUES = 100


@dataclass(frozen=True)
class Value:
    """One number that a line tells."""

    about: Metric
    value: float
    at_s: float


def values(line: str) -> list[Value]:
    """Every number in a line of log; mostly none."""
    if _MARK not in line:
        return []
    try:
        document = json.loads(line)
    except ValueError:
        return []
    head = document.get("_aws") if isinstance(document, dict) else None
    if not isinstance(head, dict) or not _is_number(head.get("Timestamp")):
        return []
    directives = head.get("CloudWatchMetrics")
    if not isinstance(directives, list):
        return []
    return [one for directive in directives for one in _of(directive, document, head["Timestamp"] / 1000)]


def _of(directive: Any, document: dict[str, Any], at_s: float) -> Iterator[Value]:
    if not isinstance(directive, dict) or not isinstance(directive.get("Namespace"), str):
        return
    for dimensions in _dimension_sets(directive.get("Dimensions", [[]]), document):
        for definition in directive.get("Metrics", []):
            name = definition.get("Name") if isinstance(definition, dict) else None
            told = document.get(name) if isinstance(name, str) else None
            for value in (told if isinstance(told, list) else [told])[:_MOST_VALUES]:
                if value is not None and _is_number(value):
                    yield Value(metric(directive["Namespace"], str(name), dimensions), float(value), at_s)


def _dimension_sets(names: Any, document: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Each set is a metric of its own; one with a dimension that the line does not tell, in words, is none."""
    for chosen in names if isinstance(names, list) else []:
        if not isinstance(chosen, list) or len(chosen) > _MOST_DIMENSIONS:
            continue
        found = {name: document.get(name) for name in chosen}
        if all(isinstance(value, str) and value for value in found.values()):
            yield {name: str(value) for name, value in found.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
