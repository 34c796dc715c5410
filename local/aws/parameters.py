"""The parameters of a call by their API names, whichever protocol carried them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from moto.core.parse import PROTOCOL_PARSERS
from moto.core.utils import get_service_model


def parse(service: str, operation: str, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """JSON and query bodies as one shape; {} for anything else, and for what is no valid body."""
    kind = headers.get("content-type", "")
    if kind.startswith("application/x-amz-json") or (service == "ses" and body[:1] == b"{"):
        return _json(body)
    if kind.startswith("application/x-www-form-urlencoded") and service != "s3":
        return _query(service, operation, body)
    return {}


def form(body: bytes) -> dict[str, str]:
    """A form body, the first value of each name."""
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}


def _json(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body or b"{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _query(service: str, operation: str, body: bytes) -> dict[str, Any]:
    parser = _query_parser(service, operation)
    if parser is None:
        return {}
    request = {"method": "POST", "values": form(body), "headers": {}, "body": body, "url_path": "/", "url_params": {}}
    return dict(parser.parse(request))


@lru_cache(maxsize=256)
def _query_parser(service: str, operation: str) -> Any:
    try:
        return PROTOCOL_PARSERS["query"](get_service_model(service).operation_model(operation), map_type=dict)
    except Exception:  # an unknown operation is moto's to refuse
        return None
