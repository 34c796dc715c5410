"""A list of events over HTTP: `GET <url>?since=&until=&cursor=`, a page at a time.

The answer is JSON, `{"events": [{"id", "time", "body"}], "cursor"}`: the id that the webhook has, an RFC 3339 time, the
body as text (or as the JSON that it is), and what to ask for next; no cursor behind the last page. An event that is not
so is told by itself, and the others of its page count. In the declaration:
`"list": {"plugin": "http_event_list", "url": "https://…", "token": "<name of a secret>"}`; the token is sent as
`Authorization: Bearer`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit, urlunsplit

from lambdas.contracts.strict_json import DIGITS_MAX
from lambdas.core import times
from lambdas.core.inbox.listing import Ask, Event, Page
from lambdas.core.ports import Unavailable
from lambdas.sources.fetching import get

PAGE_BYTES = 10_000_000
CURSOR_CHARACTERS = 4_000


def pages(ask: Ask) -> Page:
    url = urlsplit(str(ask.config["url"]))
    asked = {"since": times.text(ask.since), "until": times.text(ask.until)}
    query = urlencode({**asked, **({"cursor": ask.cursor} if ask.cursor else {})})
    headers = {"Accept": "application/json", **({"Authorization": f"Bearer {ask.token}"} if ask.token else {})}
    whole = urlunsplit(url._replace(query=f"{url.query}&{query}" if url.query else query, fragment=""))
    body = get(whole, headers, seconds=ask.seconds, most=PAGE_BYTES)
    try:
        return _page(_read(body))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Unavailable(f"its page is not as agreed: {type(error).__name__}: {error}", unknown=False) from error


@dataclass(frozen=True)
class _Unreadable:
    """Stands where an event has what nobody can read; whoever writes that event's body meets it."""

    why: str


def _read(body: bytes) -> Any:
    """As loosely as it goes: what is wrong within one event must not cost the others. Its body is read strictly where
    it becomes a job, as a webhook's is."""
    written = body.decode("utf-8", "surrogateescape")
    return json.loads(written, object_pairs_hook=_object, parse_int=_number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | _Unreadable:
    found = dict(pairs)
    return found if len(found) == len(pairs) else _Unreadable("a name stands twice in one object")


def _number(written: str) -> int | _Unreadable:
    return int(written) if len(written) <= DIGITS_MAX else _Unreadable(f"a number of more than {DIGITS_MAX} digits")


def _page(found: Any) -> Page:
    cursor = found.get("cursor") or ""
    if not isinstance(cursor, str) or len(cursor) > CURSOR_CHARACTERS:
        raise ValueError(f"a cursor is text of at most {CURSOR_CHARACTERS} characters")
    if not isinstance(found["events"], list):
        raise ValueError("its events are no list")
    events, unusable = [], []
    for number, told in enumerate(found["events"], 1):
        try:
            events.append(_event(told))
        except (ValueError, RecursionError) as error:
            unusable.append((_name(told, number), str(error)))
    return Page(events, cursor, tuple(unusable))


def _event(told: Any) -> Event:
    if not isinstance(told, dict):
        raise ValueError("an event is an object")
    if not isinstance(told.get("id"), str) or not told["id"]:
        raise ValueError("an event's id is text")
    told["id"].encode()  # half a surrogate pair could be no job's key
    if not isinstance(told.get("time"), str):
        raise ValueError("an event's time is text")
    if "body" not in told:
        raise ValueError("an event has a body")
    return Event(told["id"], times.instant(told["time"]), _written(told["body"]))


def _written(body: Any) -> bytes:
    if isinstance(body, str):
        return body.encode()
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_refuse).encode()


def _refuse(found: _Unreadable) -> NoReturn:
    raise ValueError(found.why)


def _name(told: Any, number: int) -> str:
    """What to look for at the source."""
    given = told.get("id") if isinstance(told, dict) else None
    return ascii(given) if isinstance(given, str | int) and given else f"event {number} of its page"
