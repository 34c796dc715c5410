"""A value is checked against a schema that checks what it says, and the very field that is wrong is pointed at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fastjsonschema
import pytest

from lambdas.contracts.validation import (
    FORMATS,
    UnknownFormat,
    compile_schema,
    envelope_check,
    job_request_check,
    load,
)
from tests.builders import any_envelope, any_request

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["a"],
    "properties": {
        "a": {"type": "integer", "minimum": 1},
        "at": {"type": "string", "format": "date-time"},
        "list": {
            "type": "array",
            "items": {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}},
        },
    },
}


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({}, "/a"),
        ({"a": 0}, "/a"),
        ({"a": "1"}, "/a"),
        ({"a": True}, "/a"),
        ({"a": 1, "b": 2}, "/b"),
        ({"a": 1, "b/c": 2}, "/b~1c"),
        ({"a": 1, "list": [{"x": "ok"}, {}]}, "/list/1/x"),
        ({"a": 1, "list": [{"x": 7}]}, "/list/0/x"),
        ([], ""),
        (None, ""),
    ],
)
def test_the_violation_points_at_the_field_that_is_wrong_or_missing(value: Any, pointer: str) -> None:
    wrong = compile_schema(SCHEMA)(value)
    assert wrong is not None
    assert wrong.pointer == pointer
    assert wrong.detail


def test_a_value_that_fits_has_no_violation() -> None:
    assert compile_schema(SCHEMA)({"a": 1, "list": [{"x": ""}]}) is None


def test_pointers_begin_where_the_value_stands() -> None:
    wrong = compile_schema(SCHEMA, "/input")({"a": 0})
    assert wrong is not None
    assert wrong.pointer == "/input/a"


def test_checking_leaves_the_value_as_it_is() -> None:
    value: dict[str, Any] = {}
    assert compile_schema({"type": "object", "properties": {"a": {"default": 1}}})(value) is None
    assert value == {}


GOOD_AND_BAD = {
    "date-time": (
        ["2026-11-29T15:30:44Z", "2026-11-29t15:30:44.5+01:00", "2026-11-29T15:30:44.123456z"],
        [
            "yesterday",
            "2026-11-29",
            "2026-11-29T15:30:44",
            "2026-02-30T00:00:00Z",
            "9999-12-31T23:59:59-01:00",
            "",
            "2026-W49-1T15:30:44Z",
            "20261129T153044Z",
            "2026-11-29T15:30:44,5Z",
            "2026-11-29T15:30:44.Z",
            "2026-11-29T15:30:44+01:00:30",
            "2026-11-29T15:30:44+0100",
            "2026-11-29T15:30:44+01",
            "2026-11-29T15Z",
            "2026-11-29T15:30Z",
            "2026-11-29 15:30:44Z",
            "2026-11-29T15:30:44Z\n",
            "2026-11-29T25:30:44Z",
            "٢٠٢٦-11-29T15:30:44Z",
        ],
    ),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000"], ["not-a-uuid", "123e4567-e89b-12d3-a456-426614174000\n"]),
    "email": (
        ["a@x.test", "a.b+c@mail.x.test"],
        [
            "a",
            "a@b",
            "a b@x.test",
            "a@x.test\n",
            "a,c@x.test",
            "a;c@x.test",
            "a@x.test,b@y.test",
            "a@x,y.test",
            "a@x.test;",
            "<a@x.test>",
            "Mia<a@x.test",
            '"a"@x.test',
            'a@"x".test',
            "a@x.test.",
            "a@x..test",
            "a@.x.test",
            "a@x.test..",
        ],
    ),
    "uri": (
        [
            "https://x.test/a",
            "https://a:b@x.test:8443/p;q?r=%C3%BC&s[]=1#t",
            "https://[::1]:8443/",
            "urn:isbn:0451450523",
            "mailto:a@x.test",
            "file:///a",
            "s3://bucket/key",
        ],
        [
            "x.test",
            "https:// x",
            "",
            "https://",
            "https:///a",
            "https://[::1",
            "https://x.test:port/",
            "https://x.test:99999/",
            "https://x.test/ü",
            "https://x.test/%zz",
            "https://x.test/a\n",
            'https://x.test/"',
            "a:",
            "1a:b",
        ],
    ),
    "date": (
        ["2026-11-29", "2028-02-29"],
        [
            "2026-13-01",
            "2026-11-32",
            "29.11.2026",
            "2026-11-29\n",
            "2026-02-31",
            "2026-02-29",
            "0000-01-01",
            "\uff12\uff10\uff12\uff16-11-29",
            "20261129",
            "2026-W48-7",
        ],
    ),
}


def test_each_known_format_has_its_examples_here() -> None:
    assert GOOD_AND_BAD.keys() == FORMATS.keys()


@pytest.mark.parametrize("format_", GOOD_AND_BAD)
def test_env_01_a_format_is_really_checked(format_: str) -> None:
    check = compile_schema({"type": "string", "format": format_})
    good, bad = GOOD_AND_BAD[format_]
    assert [text for text in good if check(text)] == []
    assert [text for text in bad if not check(text)] == []


def test_a_format_that_nothing_checks_is_refused_however_deep_it_stands() -> None:
    schema = {"properties": {"a": {"items": [{"anyOf": [{"format": "ipv7"}]}]}}}
    with pytest.raises(UnknownFormat, match="ipv7"):
        compile_schema(schema)


def test_a_property_named_format_is_no_format() -> None:
    assert compile_schema({"properties": {"format": {"type": "string"}}})({"format": "ipv7"}) is None


def test_a_schema_that_is_no_schema_is_refused_when_it_is_compiled() -> None:
    with pytest.raises(fastjsonschema.JsonSchemaDefinitionException):
        compile_schema({"type": "no-such-type"})


def test_a_value_nested_too_deep_for_a_recursive_schema_is_a_violation() -> None:
    schema = {"$ref": "#/definitions/node", "definitions": {"node": {"items": {"$ref": "#/definitions/node"}}}}
    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    wrong = compile_schema(schema)(deep)
    assert wrong is not None
    assert "deep" in wrong.detail


def test_a_pattern_does_not_let_a_line_break_in_at_the_end() -> None:
    assert compile_schema({"pattern": "^[a-z]+$"})("abc\n") is not None


@pytest.mark.parametrize("name", sorted(any_envelope().keys()))
def test_env_07_each_field_of_the_envelope_is_required(name: str) -> None:
    envelope = any_envelope()
    del envelope[name]
    wrong = envelope_check()(envelope)
    assert wrong is not None
    assert wrong.pointer == f"/{name}"


@pytest.mark.parametrize(
    "over",
    [
        {"extra": 1},
        {"schema": 0},
        {"schema": True},
        {"event_type": "Job.Done"},
        {"event_type": "job.done\n"},
        {"run_id": ""},
        {"tenant_id": "a b"},
        {"tenant_id": "a\n"},
        {"timestamp": "yesterday"},
        {"step_index": -1},
        {"payload": []},
        {"payload": {"attempt": -1}},
        {"payload": {"attempt": True}},
        {"payload": {"crashes": "0"}},
        {"event_type": "job.dead_lettered"},
    ],
)
def test_env_07_an_envelope_with_a_wrong_or_unknown_field_is_refused(over: dict[str, Any]) -> None:
    assert envelope_check()(any_envelope()) is None
    assert envelope_check()(any_envelope(**over)) is not None


@pytest.mark.parametrize(
    "over",
    [
        lambda n: {"step_index": n},
        lambda n: {"payload": {"attempt": n}},
        lambda n: {"payload": {"crashes": n}},
        lambda n: {"event_type": "job.dead_lettered", "payload": {"attempt": n, "reason": "X"}},
    ],
)
def test_a_number_of_an_envelope_that_no_record_could_hold_is_refused(over: Callable[[int], dict[str, Any]]) -> None:
    assert envelope_check()(any_envelope(**over(1_000_000_000))) is None
    for number in (1_000_000_001, 10**100):
        assert envelope_check()(any_envelope(**over(number))) is not None


def test_the_request_is_checked_by_the_schema_of_the_published_contract() -> None:
    assert job_request_check()(any_request()) is None
    assert job_request_check()(any_request(fresh=1)) is not None
    assert "JobRequest" in load("openapi.json")["components"]["schemas"]
