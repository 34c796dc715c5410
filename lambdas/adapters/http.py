"""HTTP API events (payload format 2.0) in, answers out."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any

from lambdas.core.problems import Problem

JSON, PROBLEM = "application/json", "application/problem+json"


def body_of(event: Mapping[str, Any]) -> bytes:
    """The exact bytes. API Gateway hands a body without a known text type over as base64."""
    body = event.get("body") or ""
    if event.get("isBase64Encoded"):
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            return b""
    return str(body).encode("utf-8", "surrogatepass")


def header(event: Mapping[str, Any], name: str) -> str | None:
    """By any spelling of its name; None when absent."""
    for found, value in (event.get("headers") or {}).items():
        if found.lower() == name.lower():
            return str(value)
    return None


def path_parameter(event: Mapping[str, Any], name: str) -> str:
    """Empty when the route has none."""
    return str((event.get("pathParameters") or {}).get(name, ""))


def authorizer_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    found = (event.get("requestContext") or {}).get("authorizer") or {}
    return found if isinstance(found, Mapping) else {}


def answer(status: int, body: Mapping[str, Any], **headers: str) -> dict[str, Any]:
    return _response(status, json.dumps(body), JSON, headers)


def nothing(status: int) -> dict[str, Any]:
    """An answer without a body."""
    return {"statusCode": status, "headers": {"cache-control": "no-store"}, "body": "", "isBase64Encoded": False}


def problem(found: Problem, **headers: str) -> dict[str, Any]:
    return _response(found.status, json.dumps(found.body()), PROBLEM, headers)


def raw(status: int, body: str, **headers: str) -> dict[str, Any]:
    """A body that is JSON text already."""
    return _response(status, body, JSON, headers)


def _response(status: int, body: str, content_type: str, headers: Mapping[str, str]) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {
        "statusCode": status,
        "headers": {"content-type": content_type, "cache-control": "no-store", **named},
        "body": body,
        "isBase64Encoded": False,
    }
