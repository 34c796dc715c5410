"""What a function's answer says about each record of its batch."""

from __future__ import annotations

from typing import Any


def failed_items(result: Any, identifiers: list[str]) -> set[str] | None:
    """The identifiers reported as failed; None when the answer is malformed, which fails the whole batch.

    null, {}, [] and an empty or null `batchItemFailures` are a complete success. An entry without `itemIdentifier`,
    with a null, empty or unknown one, a list that is none, or an answer of another kind makes the whole answer void.
    """
    if not result and not isinstance(result, bool | int | float):
        return set()
    if not isinstance(result, dict):
        return None
    failures = result.get("batchItemFailures")
    if failures is None:
        return set()
    if not isinstance(failures, list):
        return None
    known = set(identifiers)
    failed = set()
    for item in failures:
        identifier = item.get("itemIdentifier") if isinstance(item, dict) else None
        if not isinstance(identifier, str) or identifier not in known:
            return None
        failed.add(identifier)
    return failed
