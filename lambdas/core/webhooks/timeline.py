"""What happened to a job's deliveries, as lines of its timeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lambdas.contracts.names import DELIVERY_SK
from lambdas.core.job import UnreadableRecord
from lambdas.core.webhooks.delivery import Delivery, read

LINES_MAX = 200  # in one answer: a job that is started again and again has deliveries of each of its ends


def lines(beside: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """In their order, each with its endpoint, and how many are left out: of too many the latest are told. `beside`: the
    records of a job's partition."""
    deliveries = list(_deliveries(beside))
    found = [
        {**line, "what": f"delivery.{line['what']}", "endpoint": one.endpoint}
        for one in deliveries
        for line in one.history
    ]
    found.sort(key=lambda line: str(line["at"]))
    hidden = max(0, len(found) - LINES_MAX)
    return found[hidden:], hidden + sum(one.history_left_out for one in deliveries)


def _deliveries(beside: Sequence[Mapping[str, Any]]) -> Iterator[Delivery]:
    """One that is broken hides nothing of the others, nor of the job."""
    for record in beside:
        if str(record.get("sk", "")).startswith(DELIVERY_SK):
            with suppress(UnreadableRecord):
                yield read(record)
