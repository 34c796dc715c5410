"""What SQS demands of a message's attribute: its name, which SNS demands, too, its type and its value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from local.aws.sizes import significant_digits

ATTRIBUTE_NAME = re.compile(r"(?!(?i:aws\.|amazon\.))(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_LONGEST_TYPE = 256
_MOST_DIGITS = 38
_SMALLEST, _LARGEST = Decimal("1e-128"), Decimal("1e126")


def attribute_problem(name: str, attribute: Mapping[str, Any]) -> str | None:
    """Why SQS takes no such attribute, or None."""
    kind = str(attribute.get("DataType") or "")
    if not ATTRIBUTE_NAME.fullmatch(name):
        return f"Message (user) attribute name [{name}] is invalid."
    if not kind:
        return f"The message attribute '{name}' must contain non-empty message attribute type."
    if len(kind) > _LONGEST_TYPE:
        return f"Length of message attribute '{name}' type must be less than {_LONGEST_TYPE} bytes."
    if not attribute.get("StringValue") and not attribute.get("BinaryValue"):
        return f"Message (user) attribute '{name}' must contain a non-empty value of type 'String'."
    if kind.startswith("Number") and not _is_number(attribute.get("StringValue") or ""):
        return f"Can't cast the value of message (user) attribute '{name}' to a number."
    return None


def _is_number(value: str) -> bool:
    if _NUMBER.fullmatch(value) is None or significant_digits(value) > _MOST_DIGITS:
        return False
    size = abs(Decimal(value))
    return not size or _SMALLEST <= size <= _LARGEST
