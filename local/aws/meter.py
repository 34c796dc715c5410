"""Counts what our functions ask of AWS, and what DynamoDB would have charged for it."""

from __future__ import annotations

import json
import threading
import zlib
from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from local.aws import connections_api
from local.aws.calls import Call, Response
from local.aws.consumption import READS, WRITES, Consumed, Target, of_read, of_write, reported, targets

KEPT = 100_000


@dataclass(frozen=True)
class MeteredCall:
    """One call that one of our functions made and that was carried out."""

    function: str
    request_id: str
    service: str
    operation: str
    write_units: float = 0.0
    read_units: float = 0.0
    table: str | None = None
    subject: str | None = None
    """What it was about: the partition key of the item (of the first, in a batch), the object's path, or the id of a
    WebSocket connection."""
    error: str | None = None
    """The error code of a call that failed; a failed condition consumes units too."""


class Meter:
    """Records every call of a registered caller; corrects `ConsumedCapacity` for everybody."""

    exclusive = True  # the item before and after the call, with nothing in between

    def __init__(self, kept: int = KEPT) -> None:
        """Remembers the last `kept` calls."""
        self._calls: deque[MeteredCall] = deque(maxlen=kept)
        self._before: dict[int, list[Target]] = {}
        self._lock = threading.Lock()

    def calls(self) -> list[MeteredCall]:
        """What was recorded since the last reset, oldest first."""
        with self._lock:
            return list(self._calls)

    def reset(self) -> None:
        """Forget what was recorded."""
        with self._lock:
            self._calls.clear()

    def before(self, call: Call) -> None:
        """Look at the items that a write may change; refuses nothing."""
        if call.service == "dynamodb" and call.operation in WRITES:
            self._before[id(call)] = targets(call)

    def after(self, call: Call, response: Response) -> Response:
        """Record the call, and put the true units into the answer."""
        before = self._before.pop(id(call), [])
        if not response.carried_out:
            return response
        answer = _json(response.body) if call.service == "dynamodb" else {}
        consumed = _consumed(call, before, response, answer)
        self._record(call, response, answer, consumed)
        if call.operation in WRITES | READS and call.service == "dynamodb" and response.status == 200:
            return _with_capacity(response, answer, reported(consumed, call))
        return response

    def _record(self, call: Call, response: Response, answer: dict[str, Any], consumed: list[Consumed]) -> None:
        if call.caller is None:
            return
        metered = MeteredCall(
            function=call.caller.function,
            request_id=call.caller.request_id,
            service=call.service,
            operation=call.operation,
            write_units=sum((used.write for used in consumed), 0.0),
            read_units=sum((used.read for used in consumed), 0.0),
            table=consumed[0].table if consumed else None,
            subject=_subject(call),
            error=None if response.status < 400 else _error(response, answer),
        )
        with self._lock:
            self._calls.append(metered)


def _consumed(call: Call, before: list[Target], response: Response, answer: dict[str, Any]) -> list[Consumed]:
    if call.service != "dynamodb":
        return []
    succeeded = response.status == 200
    failed_condition = answer.get("__type", "").endswith(
        ("ConditionalCheckFailedException", "TransactionCanceledException")
    )
    if call.operation in WRITES and (succeeded or failed_condition):
        return of_write(call, before, succeeded)
    if call.operation in READS and succeeded:
        return of_read(call, answer)
    return []


def _subject(call: Call) -> str | None:
    if call.service == "s3":
        return call.path
    if call.service == connections_api.SERVICE:
        target = connections_api.target_of(call)
        return None if target is None else target.connection_id
    source = call.parameters.get("Key") or call.parameters.get("Item") or {}
    for value in source.values():
        if isinstance(value, dict) and "S" in value:
            return str(value["S"])
    return None


def _error(response: Response, answer: dict[str, Any]) -> str:
    told = map(response.headers.get, ("x-amzn-query-error", "x-amzn-errortype"))
    code = answer.get("__type") or next(filter(None, told), None) or response.status
    return str(code).rpartition("#")[2].partition(";")[0]


def _json(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body or b"{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _with_capacity(response: Response, answer: dict[str, Any], capacity: Any) -> Response:
    if capacity is None and "ConsumedCapacity" not in answer:
        return response
    corrected = {name: value for name, value in answer.items() if name != "ConsumedCapacity"}
    if capacity is not None:
        corrected["ConsumedCapacity"] = capacity
    body = json.dumps(corrected).encode()
    headers = {**response.headers, "content-length": str(len(body))}
    if "x-amz-crc32" in headers:  # botocore repeats a call whose answer does not match it
        headers["x-amz-crc32"] = str(zlib.crc32(body) & 0xFFFFFFFF)
    return replace(response, headers=headers, body=body)
