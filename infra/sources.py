"""The setting `sources`: where events come from, checked before anything is deployed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from infra.tenants import TENANT
from lambdas.contracts import names, sources
from lambdas.contracts.sources import Source

MAX_BYTES = 2200  # of the 4 KB that Lambda gives a function's whole environment: the sweep's has most beside them
ATTRIBUTES_MAX = 512  # characters that API Gateway takes for one parameter of an integration
DOOR = "Door"  # the construct that all routes of sources share
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_URLS = ("http_event_list",)  # plug-ins that ask at a `url`
_PLUGINS = Path(__file__).resolve().parents[1] / "lambdas" / "sources"
NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")

_HEADER = r"[a-z0-9][a-z0-9-]{0,63}"
_POINTER = r"(/([^~/]|~[01])*)+"
_KINDS: Mapping[str, type] = {"str": str, "int": int, "bool": bool, "Mapping[str, Any] | None": dict}
_PATTERNS: Mapping[str, tuple[str, str]] = {
    "tenant": (TENANT.pattern, "a tenant id"),
    "task": (r"[a-z][a-z0-9-]{0,63}", "the name of a task or a workflow, like summarize"),
    "scheme": ("|".join(sources.SCHEMES), " or ".join(sources.SCHEMES)),
    "secret": (r"[A-Za-z0-9/_+=.@-]{1,200}", "the name of a secret in Secrets Manager"),
    "header": (_HEADER, "a header's name in lower case"),
    "id": (rf"header:{_HEADER}|{_POINTER}", "header:<name> or a JSON pointer like /id"),
    "time": (rf"(header:{_HEADER}|{_POINTER})?", "header:<name> or a JSON pointer like /created"),
    "input": (rf"({_POINTER}|text)?", "a JSON pointer like /data, or text"),
}
_BOUNDS: Mapping[str, tuple[int, int]] = {"tolerance_s": (1, 86_400), "rate": (1, 10_000), "burst": (1, 5_000)}

Declared = Mapping[str, Mapping[str, Any]]


def read(declared: Declared) -> dict[str, Source]:
    """The sources by name; `declared` has no problems."""
    return {name: sources.source_of(one) for name, one in declared.items()}


def attributes(name: str, source: Source) -> str:
    """The message attributes, as the text that API Gateway fills in. What a sender writes comes first: a header that
    breaks out of its quotes can say something twice, and what is said last counts."""
    filled = {
        **{attribute: f"${{request.header.{header}}}" for attribute, header in source.headers.items()},
        names.INBOX_SOURCE: name,
        names.INBOX_REQUEST: "${context.requestId}",
        names.INBOX_RECEIVED: "${context.requestTimeEpoch}",
    }
    told = {attribute: {"DataType": "String", "StringValue": value} for attribute, value in filled.items()}
    return json.dumps(told, separators=(",", ":"))


def environment(declared: Mapping[str, Source]) -> str:
    return sources.written(declared)


def binary(declared: Mapping[str, Source]) -> dict[str, Source]:
    """Those whose events go through `accept`."""
    return {name: source for name, source in declared.items() if source.binary}


def route_id(name: str) -> str:
    """`crm` as its route is named among the constructs, and so in the stack: a deployed one keeps its name."""
    return "".join(part.capitalize() for part in name.split("-"))


def integration_id(name: str) -> str:
    return f"{route_id(name)}Inbox"


def problems(declared: Declared) -> Iterator[str]:
    """What is wrong with the declarations, each with what to do."""
    wrong = [f"sources.{name}{said}" for name, one in declared.items() for said in _wrong(name, one)]
    wrong = wrong or list(_clashes(read(declared)))
    yield from wrong
    if wrong:
        return
    size = len(environment(read(declared)).encode())
    if size > MAX_BYTES:
        yield (
            f"sources takes {size} bytes, and a function's environment has room for {MAX_BYTES} of them: "
            "shorten names, or deploy a second environment for some of them"
        )


def _clashes(declared: Mapping[str, Source]) -> Iterator[str]:
    """Those that the stack could not tell apart. What goes through `accept` has constructs of another kind."""
    named = {DOOR: "what all sources share"}
    for name in (name for name, source in declared.items() if not source.binary):
        for construct in (route_id(name), integration_id(name)):
            other = named.setdefault(construct, f"sources.{name}")
            if other != f"sources.{name}":
                yield f"sources.{name} and {other} would both be named {construct} in the stack: name one otherwise"


def _wrong(name: str, one: Any) -> Iterator[str]:
    if not NAME.fullmatch(name) or name == names.UPLOADS:
        yield f": a source is named {NAME.pattern}, and not {names.UPLOADS}: it is part of a path"
    elif name in names.SWEEP_PARTS:
        parts = ", ".join(names.SWEEP_PARTS)
        yield f": no source may be named as a part of every sweep is ({parts}): name it otherwise"
    if not isinstance(one, Mapping):
        yield " must be an object: tenant, task, scheme, secret, …"
        return
    first = list(_shape(one))
    yield from first or _together(one)


def _shape(one: Mapping[str, Any]) -> Iterator[str]:
    """Fields that are unknown, missing, or not of their kind."""
    known = {field.name: field for field in fields(Source)}
    for name in one.keys() - known.keys():
        yield f" has the unknown field {name!r}; known: {', '.join(known)}"
    for name, field in known.items():
        if name not in one:
            if field.default is MISSING:
                yield f" has no {name}: {_PATTERNS[name][1]}"
        elif type(one[name]) is not _KINDS[str(field.type)]:
            yield f".{name} must be {_JSON[_KINDS[str(field.type)]]}"
        else:
            yield from _value(name, one[name])


_JSON: Mapping[type, str] = {str: "text", int: "a whole number", bool: "true or false", dict: "an object"}


def _value(name: str, value: Any) -> Iterator[str]:
    if name in _PATTERNS and not re.fullmatch(_PATTERNS[name][0], value):
        yield f".{name} is {value!r}, but must be {_PATTERNS[name][1]}"
    if name in _BOUNDS and not _BOUNDS[name][0] <= value <= _BOUNDS[name][1]:
        yield f".{name} is {value}, but must be between {_BOUNDS[name][0]} and {_BOUNDS[name][1]}"
    if name == "list":
        yield from _list(value)


def _list(value: Mapping[str, Any]) -> Iterator[str]:
    """The plug-in knows the rest; the token is a secret that the sweep is permitted to read."""
    if value.get("plugin") in _URLS and not _is_asked(value.get("url")):
        yield f".list.url is {value.get('url')!r}, but must be the list's address, https://…"
    if value.get("plugin") not in _plugins():
        yield f'.list must name its plugin: {{"plugin": …}}, one of {", ".join(_plugins()) or "none"} (lambdas/sources)'
    pattern, meaning = _PATTERNS["secret"]
    if "token" in value and not re.fullmatch(pattern, str(value["token"])):
        yield f".list.token is {value['token']!r}, but must be {meaning}"


def _is_asked(url: Any) -> bool:
    """As lambdas/sources/fetching.py asks: encrypted, or this very machine."""
    if not isinstance(url, str) or not re.fullmatch(r"[!-~]+", url):
        return False
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK))


def _plugins() -> list[str]:
    return sorted(place.parent.name for place in _PLUGINS.glob("*/source.py"))


def _together(one: Mapping[str, Any]) -> Iterator[str]:
    """What is only wrong beside something else."""
    source = sources.source_of(one)
    if not source.header:
        yield f" has no header: the one that carries the signature ({source.scheme} does not say which)"
    if not source.id:
        yield f" has no id: {_PATTERNS['id'][1]}; it makes an event that is sent again the same job"
    if source.input == sources.TEXT and source.binary:
        for field in ("id", "time"):
            if getattr(source, field).startswith("/"):
                yield f".{field} points into the body, which is binary: it can only come in a header"
    size = len(attributes("x" * 32, source))
    if size > ATTRIBUTES_MAX and not source.binary:
        yield f": its headers are too long for API Gateway ({size} of {ATTRIBUTES_MAX} characters): make it binary"
    rule = _RULES[source.scheme](source)
    if rule:
        yield rule


def _rule_of_standard_webhooks(source: Source) -> str:
    signed = (source.id, source.time)
    if all(map(sources.header_in, signed)):
        return ""
    return (
        ": id and time are headers in standard-webhooks, both part of what is signed; leave them out for its own names"
    )


def _rule_of_timestamped(source: Source) -> str:
    return ".time stands in the signature itself (t=…): leave it out" if source.time else ""


def _rule_of_hmac(source: Source) -> str:
    if sources.header_in(source.time):
        return ".time is a header, which hmac-sha256 does not sign: name one in the body, or leave it out"
    return ""


_RULES: Mapping[str, Callable[[Source], str]] = {
    sources.STANDARD_WEBHOOKS: _rule_of_standard_webhooks,
    sources.TIMESTAMPED: _rule_of_timestamped,
    sources.HMAC_SHA256: _rule_of_hmac,
}
