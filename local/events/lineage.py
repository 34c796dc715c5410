"""Counts how often a function has caused itself, through queues and invocations: Lambda cuts such a loop after 16
rounds, unless the function's `RecursiveLoop` allows it.

Lambda and SQS carry the count in the trace header: the SDK copies it from the function's environment into its calls.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping

from local.aws.calls import Call, Refusal, Response

LIMIT = 16
_KEPT = 20_000
_LINEAGE = re.compile(r"Lineage=([0-9a-f:|]+)")


class Lineages:
    """A gate of the AWS server that remembers with what history each queue message was sent."""

    def __init__(self, allowed: frozenset[str] = frozenset()) -> None:
        """`allowed`: the ARNs of functions that may cause themselves as often as they like."""
        self._allowed = allowed
        self._of_message: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def before(self, call: Call) -> Refusal | None:
        """Let everything pass."""
        return None

    def after(self, call: Call, response: Response) -> Response:
        """Note the history of what was sent."""
        if call.service == "sqs" and call.operation in ("SendMessage", "SendMessageBatch") and response.status == 200:
            history = carried(call.headers)
            if history:
                self._remember(history, response.body)
        return response

    def cuts(self, lineage: str, function_arn: str) -> bool:
        """Whether a function with this history is not invoked any more."""
        return function_arn not in self._allowed and rounds(lineage, function_arn) >= LIMIT

    def of(self, message_ids: list[str]) -> str:
        """The merged history of a batch: for each function the highest count among its messages."""
        with self._lock:
            found = [self._of_message.get(message_id, "") for message_id in message_ids]
        merged: dict[str, int] = {}
        for lineage in found:
            for name, count in _counts(lineage).items():
                merged[name] = max(count, merged.get(name, 0))
        return _text(merged)

    def _remember(self, lineage: str, body: bytes) -> None:
        try:
            answer = json.loads(body)
        except ValueError:  # the query protocol's XML: our SDK does not speak it
            return
        sent = answer.get("Successful") or [answer]
        with self._lock:
            for message in sent:
                self._of_message[message.get("MessageId", "")] = lineage
            while len(self._of_message) > _KEPT:
                self._of_message.popitem(last=False)


def carried(headers: Mapping[str, str]) -> str:
    """The history that a call brings along, or nothing."""
    found = _LINEAGE.search(headers.get("x-amzn-trace-id", "").replace("%3A", ":").replace("%7C", "|"))
    return found[1] if found else ""


def rounds(lineage: str, function_arn: str) -> int:
    """How often the function stands in this history."""
    return _counts(lineage).get(_name(function_arn), 0)


def extended(lineage: str, function_arn: str) -> str:
    """The history of what an invocation of this function will send."""
    counts = _counts(lineage)
    name = _name(function_arn)
    counts[name] = counts.get(name, 0) + 1
    return _text(counts)


def _name(function_arn: str) -> str:
    return hashlib.sha256(function_arn.encode()).hexdigest()[:8]


def _counts(lineage: str) -> dict[str, int]:
    pairs = (part.split(":") for part in lineage.split("|") if part)
    return {name: int(count) for name, count in pairs}


def _text(counts: dict[str, int]) -> str:
    return "|".join(f"{name}:{count}" for name, count in counts.items())
