"""An event whose bytes API Gateway would not bring into a queue unharmed: `accept` sends them on, as they are."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from lambdas.contracts.names import INBOX_ENCODING, INBOX_RECEIVED, INBOX_REQUEST, INBOX_SOURCE
from lambdas.contracts.sources import Source
from lambdas.core.ports import Message
from lambdas.core.problems import Problem, bad_request

MESSAGE_BYTES = 1_000_000  # SQS takes 1 MiB, attributes included
HEADERS_BYTES = 10_240  # all that API Gateway lets through


@dataclass(frozen=True)
class Request:
    """As it came. `header`: a header by name, None when absent; `received_ms`: since the epoch, at the gateway."""

    body: bytes
    header: Callable[[str], str | None]
    request_id: str
    received_ms: int


def message(name: str, source: Source, request: Request) -> Message | Problem:
    """What ingest gets: the bytes, and the attributes that API Gateway writes for other sources."""
    headers = {attribute: request.header(header) for attribute, header in source.headers.items()}
    missing = [source.headers[attribute] for attribute, value in headers.items() if not value]
    if missing:
        return bad_request(f"The header {missing[0]} is missing: events of this source are signed.")
    if not request.body:
        return bad_request("The body is empty.")
    body = base64.b64encode(request.body).decode()
    if len(body) > MESSAGE_BYTES - HEADERS_BYTES:
        most = 3 * (MESSAGE_BYTES - HEADERS_BYTES) // 4
        return Problem(413, "event-too-large", "The event is too large", f"An event may have {most:,} bytes.")
    attributes = {
        INBOX_SOURCE: name,
        INBOX_REQUEST: request.request_id,
        INBOX_RECEIVED: str(request.received_ms),
        INBOX_ENCODING: "base64",
        **{attribute: value for attribute, value in headers.items() if value},
    }
    return Message(body, attributes, source.tenant)
