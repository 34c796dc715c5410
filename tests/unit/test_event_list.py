"""A page of a source's list: each of its events is read by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.strict_json import DEPTH_MAX, parse
from lambdas.core.inbox.listing import Ask, Page
from lambdas.sources.http_event_list import source
from tests.builders import later

AN_EVENT = {"id": "e-1", "time": "2026-11-29T14:00:00Z", "body": {"text": "An order."}}


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    def read(body: bytes) -> Page:
        monkeypatch.setattr(source, "get", lambda *_, **__: body)
        return source.pages(Ask({"url": "https://shop.test/"}, "", later(days=-30), later(-900), "", 5))

    return read


def around(bad: str) -> bytes:
    """A page with this between two good events."""
    first, last = (json.dumps({**AN_EVENT, "id": name}) for name in ("first", "last"))
    return f'{{"events": [{first}, {bad}, {last}], "cursor": "next"}}'.encode("utf-8", "surrogateescape")


def body_of(written: str) -> str:
    return f'{{"id": "e-1", "time": "2026-11-29T14:00:00Z", "body": {written}}}'


@pytest.mark.parametrize(
    ("bad", "name", "why"),
    [
        (json.dumps({**AN_EVENT, "id": 7}), "7", "id is text"),
        (json.dumps({**AN_EVENT, "id": ""}), "event 2 of its page", "id is text"),
        (json.dumps({**AN_EVENT, "id": "\ud800"}), r"'\ud800'", "surrogates"),
        (json.dumps({**AN_EVENT, "time": None}), "'e-1'", "time is text"),
        (json.dumps({**AN_EVENT, "time": "2026-11-29T14:00:00"}), "'e-1'", "offset"),
        (json.dumps({**AN_EVENT, "time": "yesterday"}), "'e-1'", "isoformat"),
        (json.dumps({"id": "e-1", "time": "2026-11-29T14:00:00Z"}), "'e-1'", "has a body"),
        ("null", "event 2 of its page", "is an object"),
        ("{}", "event 2 of its page", "id is text"),
        ('{"id": "e-1", "id": "e-1"}', "event 2 of its page", "is an object"),
        (body_of('{"a": 1, "a": 2}'), "'e-1'", "twice in one object"),
        (body_of("1" * 5_000), "'e-1'", "digits"),
        (body_of("NaN"), "'e-1'", "JSON compliant"),
        (body_of("1e999"), "'e-1'", "JSON compliant"),
        (body_of(r'"\ud800"'), "'e-1'", "surrogates"),
        (body_of('"\udcff"'), "'e-1'", "surrogates"),
    ],
    ids=lambda value: "" if len(value) > 30 else None,
)
def test_a_bad_event_costs_none_of_the_others(told: Any, bad: str, name: str, why: str) -> None:
    page = told(around(bad))
    assert ([one.id for one in page.events], page.cursor) == (["first", "last"], "next")
    ((named, said),) = page.unusable
    assert named == name
    assert why in said


def test_a_body_as_deep_as_the_door_takes_it_is_told(told: Any) -> None:
    page = told(around(json.dumps({**AN_EVENT, "body": nested(DEPTH_MAX)})))
    assert parse(page.events[1].body) == nested(DEPTH_MAX)
