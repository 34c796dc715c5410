"""What an event says, once it is known to be its source's: its id, and what its task gets."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import INBOX_ENCODING
from lambdas.contracts.sources import TEXT, Source, header_in
from lambdas.contracts.strict_json import Malformed, at, parse
from lambdas.contracts.validation import Check
from lambdas.core.canonical import canonical
from lambdas.core.inbox.message import Refusal
from lambdas.core.policy import Limits

ID_BYTES = 512


@dataclass(frozen=True)
class Event:
    """An event whose body is as it came: exact bytes. `attributes`: of its message in the inbox."""

    source: Source
    attributes: Mapping[str, str]
    body: bytes
    value: Any  # of a JSON body; None when nobody needs to read it

    def at(self, place: str) -> Any:
        """What stands at a declared place. LookupError when nothing does."""
        if not header_in(place):
            return at(self.value, place)
        return self.attributes["event_id" if place == self.source.id else "timestamp"]


def bytes_of(body: str, attributes: Mapping[str, str]) -> bytes:
    """What was sent to the door. Raises Refusal."""
    if attributes.get(INBOX_ENCODING) != "base64":
        return body.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal("MALFORMED_BODY", "the message says that its body is base64, and it is not") from error


def event_of(source: Source, attributes: Mapping[str, str], body: bytes) -> Event:
    """Raises Refusal."""
    places = (source.id, source.time) if source.time else (source.id,)
    read = source.input != TEXT or not all(map(header_in, places))
    return Event(source, attributes, body, parsed(body) if read else None)


def parsed(body: bytes) -> Any:
    """The value of a JSON body. Raises Refusal."""
    try:
        return parse(body)
    except Malformed as error:
        raise Refusal("MALFORMED_BODY", f"{error.pointer or '/'}: {error.detail}") from error


def id_of(event: Event) -> str:
    """Raises Refusal."""
    try:
        said = event.at(event.source.id)
    except LookupError:
        said = None
    found = str(said) if isinstance(said, int) and not isinstance(said, bool) else said
    if not isinstance(found, str) or not 0 < len(found.encode()) <= ID_BYTES:
        raise Refusal("NO_EVENT_ID", f"no text or whole number of 1 to {ID_BYTES} bytes at {event.source.id!r}")
    return found


def listed_input(source: Source, body: bytes, types: Mapping[str, Check], limits: Limits) -> Any:
    """That of an event of which nothing but its body is asked. Raises Refusal."""
    return input_of(Event(source, {}, body, None if source.input == TEXT else parsed(body)), types, limits)


def input_of(event: Event, types: Mapping[str, Check], limits: Limits) -> Any:
    """What the task gets, checked as at the door. Raises Refusal."""
    check = types.get(event.source.task)
    if check is None:
        raise Refusal("UNKNOWN_TYPE", f"there is no task {event.source.task!r} here (yet)")
    found = _part(event)
    size, most = len(canonical(found).encode()), limits.input_bytes
    if size > most:
        raise Refusal("INPUT_TOO_LARGE", f"an input may have {most:,} bytes, this one has {size:,}")
    wrong = check(found)
    if wrong:
        raise Refusal("INVALID_INPUT", f"{wrong.pointer or '/'}: {wrong.detail}")
    return found


def _part(event: Event) -> Any:
    place = event.source.input
    try:
        return {"text": event.body.decode("utf-8")} if place == TEXT else at(event.value, place)
    except UnicodeDecodeError as error:
        raise Refusal("INVALID_INPUT", f"the body is no text in UTF-8: byte {error.start}") from error
    except LookupError as error:
        raise Refusal("INVALID_INPUT", f"nothing is at {place!r} in the body") from error
