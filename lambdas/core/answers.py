"""Reads JSON out of what a model said."""

from __future__ import annotations

import re
from typing import Any

from lambdas.contracts.strict_json import Malformed, parse
from lambdas.core.outcomes import Rejected

_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*?)\n?```\s*\Z", re.DOTALL)


def json_object(text: str) -> dict[str, Any]:
    """The one JSON object of an answer, bare or in a code fence. Rejected when it is anything else: the next try
    asks anew."""
    fenced = _FENCED.match(text)
    try:
        found = parse((fenced[1] if fenced else text.strip()).encode("utf-8", "surrogatepass"))
    except Malformed as error:
        raise Rejected(f"the answer is not JSON: {error.detail}") from error
    if not isinstance(found, dict):
        raise Rejected("the answer is JSON, but no object")
    return found
