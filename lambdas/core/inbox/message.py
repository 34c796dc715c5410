"""What lies in the inbox: events from outside, S3's notifications, letters that came back; and what becomes of each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lambdas.contracts.names import INBOX_RECEIVED, INBOX_RETURNS, INBOX_SOURCE, UPLOADS
from lambdas.contracts.strict_json import Malformed, parse
from lambdas.core import times
from lambdas.core.envelope import UNREADABLE, Unreadable, letter_about_message, written
from lambdas.core.intake import Accepted
from lambdas.core.job import cut
from lambdas.core.policy import DAY_S
from lambdas.core.ports import MESSAGE_BYTES, Message, Unavailable
from lambdas.core.problems import Problem
from lambdas.core.times import Instant, after

QUEUE = "inbox"
OLDEST_S = 30 * DAY_S  # two queues keep a message for less; what claims to be older was not at our door then
SKEW_S = 60
DETAIL_BYTES = 500  # a stranger's body may be named in it
_PASSING = (INBOX_RETURNS, "reason", "detail")  # of earlier stays among the dead letters
_MILLISECONDS = re.compile(r"[0-9]{13}")


@dataclass(frozen=True)
class Incoming:
    """A message as SQS handed it over, or the original that a letter holds. `attributes`: the message's own, all text.
    `sent_at`: SQS's clock.

    With an attribute `source` it is an event, whatever its body says: API Gateway and `accept` always write one, and
    nothing that a sender writes can take it away. Without one it comes from S3 or from our own roles, which alone may
    send to the inbox otherwise; only such a body is read as a notification or as a letter."""

    body: str
    attributes: Mapping[str, str]
    sent_at: Instant

    @property
    def source(self) -> str:
        """The declared source of an event; "" for what S3 or an operator sent."""
        return self.attributes.get(INBOX_SOURCE, "")

    @property
    def received_at(self) -> Instant:
        """When it was at the door: an event must not grow old in our own queues."""
        said = self.attributes.get(INBOX_RECEIVED, "")
        if not _MILLISECONDS.fullmatch(said):
            return self.sent_at
        received = times.of_milliseconds(int(said))
        believable = after(self.sent_at, -OLDEST_S) <= received <= after(self.sent_at, SKEW_S)
        return received if believable else self.sent_at


@dataclass(frozen=True)
class Ignored:
    """Nothing to do, and nothing wrong: to be acknowledged."""

    why: str
    job_id: str = ""


@dataclass(frozen=True)
class Buried:
    """It cannot become a job as it is: to be sent to the dead letters, with its reason."""

    reason: str
    detail: str
    tenant: str = ""
    type: str = ""


Outcome = Accepted | Ignored | Buried


class Refusal(Exception):
    """Ends the way of a message that cannot become a job."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, cut(detail, DETAIL_BYTES)


def unless_refused(take: Callable[[], Outcome], tenant: str = "", type_: str = "") -> Outcome:
    """What `take` answers, or the letter that its refusal asks for."""
    try:
        return take()
    except Refusal as refused:
        return Buried(refused.reason, refused.detail, tenant, type_)


def on_record(found: Accepted | Problem) -> Outcome:
    """What the door's answer means where nobody waits for it. Raises Unavailable."""
    match found:
        case Accepted():
            return found
        case Problem(status=410):
            return Ignored("its job was deleted", found.job_id or "")
        case Problem(status=422):
            return Ignored("the same id as before, with another body", found.job_id or "")
    raise Unavailable(found.cause or found.detail)


def unwrapped(incoming: Incoming) -> Incoming:
    """The message that a returned letter is about, as it came at first; any other message as it is."""
    if incoming.source:
        return incoming
    try:
        found = parse(incoming.body.encode("utf-8", "surrogatepass"))
    except Malformed:
        return incoming
    payload = found.get("payload") if isinstance(found, dict) and found.get("event_type") == UNREADABLE else None
    if not isinstance(payload, dict) or not isinstance(payload.get("body"), str):
        return incoming
    kept = payload.get("attributes")
    attributes = {str(name): str(value) for name, value in kept.items()} if isinstance(kept, dict) else {}
    return replace(incoming, body=payload["body"], attributes=attributes)


def letter(incoming: Incoming, why: Buried, now: Instant) -> Message:
    """All there is of the message, to be repaired and sent back: there is no other copy.

    Its own attributes do not have `source`: a letter that is moved back to the inbox is no event. One that would be
    too large goes as the very message it is about, and what is wrong with it goes beside."""
    attributes = {
        "event_type": UNREADABLE,
        "reason": why.reason,
        "tenant": why.tenant,
        "type": why.type,
        "origin": incoming.source or UPLOADS,
    }
    group = why.tenant or "unreadable"
    kept = {name: value for name, value in incoming.attributes.items() if name not in _PASSING}
    if incoming.source:
        kept[INBOX_RECEIVED] = str(times.milliseconds(incoming.received_at))
    about: dict[str, Any] = {"queue": QUEUE, "attributes": kept}
    envelope = letter_about_message(
        incoming.body, Unreadable(why.reason, why.detail), now, tenant=why.tenant or "unknown", about=about
    )
    if envelope["payload"]["body"] == incoming.body:
        return Message(written(envelope), attributes, group)
    return _as_it_is(Message(incoming.body, kept, group), why)


def _as_it_is(original: Message, why: Buried) -> Message:
    """With as much beside it of what is wrong as SQS takes. An event as large as that has no letter with its reason;
    but one there is: refused again and again, it would be read for nothing and then lie there all the same."""
    beside = {"reason": why.reason, "detail": _printable(cut(why.detail, 200))}
    for names in (("reason", "detail"), ("reason",)):
        told = replace(original, attributes={**original.attributes, **{name: beside[name] for name in names}})
        if told.size <= MESSAGE_BYTES:
            return told
    return original


def _printable(text: str) -> str:
    """As an attribute may be: SQS refuses a whole message for a control character."""
    return "".join(one if one.isprintable() else "?" for one in text)
