"""A list of events over HTTP: `GET <url>?since=&until=&cursor=`, a page at a time.

The answer is JSON, `{"events": [{"id", "time", "body"}], "cursor"}`: the id that the webhook has, an RFC 3339 time, the
body as text (or as the JSON that it is), and what to ask for next; no cursor behind the last page. In the declaration:
`"list": {"plugin": "http_event_list", "url": "https://…", "token": "<name of a secret>"}`; the token is sent as
`Authorization: Bearer`."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from lambdas.contracts.strict_json import Malformed, parse
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
        return _page(parse(body))
    except (Malformed, LookupError, TypeError, ValueError, AttributeError) as error:
        raise Unavailable(f"its page is not as agreed: {type(error).__name__}: {error}", unknown=False) from error


def _page(found: Any) -> Page:
    cursor = found.get("cursor") or ""
    if not isinstance(cursor, str) or len(cursor) > CURSOR_CHARACTERS:
        raise ValueError(f"a cursor is text of at most {CURSOR_CHARACTERS} characters")
    return Page([_event(one) for one in found["events"]], cursor)


def _event(told: Any) -> Event:
    if not isinstance(told["id"], str) or not told["id"]:
        raise ValueError("an event's id is text")
    body = told["body"]
    text = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return Event(told["id"], times.instant(told["time"]), text.encode("utf-8", "surrogatepass"))
