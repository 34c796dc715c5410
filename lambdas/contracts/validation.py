"""Checks a value against a JSON Schema and says where it is wrong; schemas are compiled once, at start."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

import fastjsonschema

from lambdas.contracts.strict_json import pointer

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _is_date_time(text: str) -> bool:
    """RFC 3339; `fromisoformat` alone would take week dates, commas and more of ISO 8601."""
    try:
        datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return _RFC_3339.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    """A day that there is; `fromisoformat` alone would take week dates and days without hyphens."""
    if _DAY.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_uri(text: str) -> bool:
    """With a scheme, and with a host that can be read where one is announced by `//`; a file may be without."""
    if _URI.fullmatch(text) is None:
        return False
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) or parts.scheme == "file" or not text.partition(":")[2].startswith("//")


# RFC 3986: of what is beyond ASCII, and of what it calls unsafe, a URI has only the percent-encoded form
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
# The formats that our schemas may use. The library knows more, checks some of them loosely and ignores unknown ones.
FORMATS: Mapping[str, str | Callable[[str], bool]] = {
    "date-time": _is_date_time,
    "uuid": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z",
    "email": r"^[^@\s,;<>\"]+@([^@\s,;<>\".]+\.)+[^@\s,;<>\".]+\Z",
    "uri": _is_uri,
    "date": _is_date,
}


@dataclass(frozen=True)
class Violation:
    """What is wrong, and where: a JSON pointer into the checked value."""

    detail: str
    pointer: str


Check = Callable[[Any], Violation | None]


class UnknownFormat(ValueError):
    """A schema uses a `format` that nothing checks: it would pass everything."""


def compile_schema(schema: Mapping[str, Any], at: str = "") -> Check:
    """The check for one schema (JSON Schema draft 7). `at` is put before the pointers. UnknownFormat, or
    fastjsonschema's own error, when the schema is no good."""
    unknown = _formats(schema) - FORMATS.keys()
    if unknown:
        raise UnknownFormat(f"no checker for the format {', '.join(sorted(unknown))}; known: {', '.join(FORMATS)}")
    validate = fastjsonschema.compile(dict(schema), formats=dict(FORMATS), use_default=False)

    def check(value: Any) -> Violation | None:
        try:
            validate(value)
        except fastjsonschema.JsonSchemaValueException as wrong:
            return _violation(wrong, at)
        except RecursionError:
            return Violation("nested too deep to be checked", at)
        return None

    return check


def _violation(wrong: fastjsonschema.JsonSchemaValueException, at: str) -> Violation:
    """The library's finding in our words, pointing at the very field that lacks or should not be there."""
    place = at + pointer(wrong.path[1:])
    known, value = wrong.definition or {}, wrong.value
    if isinstance(value, Mapping) and wrong.rule == "required":
        name = next(str(name) for name in known["required"] if name not in value)
        return Violation(f"`{name}` is missing", f"{place}{pointer([name])}")
    if isinstance(value, Mapping) and wrong.rule == "additionalProperties":
        name = next((str(name) for name in value if name not in known.get("properties", {})), "?")
        return Violation(f"`{name[:64]}` is not a known field", f"{place}{pointer([name])}")
    detail = wrong.message.replace(wrong.name, "this", 1) if wrong.name else wrong.message
    return Violation(detail[:300], place)


def load(name: str) -> Any:
    """A JSON file of this package."""
    return json.loads(resources.files("lambdas.contracts").joinpath(name).read_text("utf-8"))


@cache
def envelope_check() -> Check:
    return compile_schema(load("schemas/envelope.json"))


@cache
def job_request_check() -> Check:
    return compile_schema(load("openapi.json")["components"]["schemas"]["JobRequest"])


@cache
def upload_request_check() -> Check:
    return compile_schema(load("openapi.json")["components"]["schemas"]["UploadRequest"])


@cache
def body_check(name: str) -> Check:
    """Of a body that the contract describes under this name."""
    return compile_schema(load("openapi.json")["components"]["schemas"][name])


def _formats(schema: Any) -> set[str]:
    if isinstance(schema, Mapping):
        own = {schema["format"]} if isinstance(schema.get("format"), str) else set()
        return own.union(*(_formats(part) for part in schema.values()))
    if isinstance(schema, list):
        return set().union(*(_formats(part) for part in schema))
    return set()
