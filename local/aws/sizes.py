"""How large DynamoDB counts an item, and what reading or writing it costs, by the rules AWS publishes.

Rules: "DynamoDB item sizes and formats" and "Read/write unit consumption" in the developer guide. Values come in
DynamoDB's JSON form: {"S": "text"}.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

Attributes = Mapping[str, Mapping[str, Any]]

ITEM_LIMIT = 400 * 1024
READ_UNIT = 4 * 1024
WRITE_UNIT = 1024


def item_size(item: Attributes) -> int:
    """Bytes of an item: its attribute names in UTF-8 and their values."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: Mapping[str, Any]) -> int:
    """Bytes of one attribute value."""
    kind, content = next(iter(value.items()))
    if kind in ("NULL", "BOOL"):
        return 1
    if kind.endswith("S") and kind != "S":
        return sum(_scalar_size(kind[0], element) for element in content)
    if kind == "L":
        return 3 + sum(1 + value_size(element) for element in content)
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + value_size(element) for name, element in content.items())
    return _scalar_size(kind, content)


def _scalar_size(kind: str, content: Any) -> int:
    if kind == "S":
        return len(str(content).encode("utf-8", "surrogatepass"))
    if kind == "B":
        return len(content) if isinstance(content, bytes) else len(base64.b64decode(content))
    return number_size(str(content))


def significant_digits(number: str) -> int:
    """Digits that count: zeros at either end do not, whatever the notation."""
    mantissa = number.lower().partition("e")[0].lstrip("+-")
    return len(mantissa.replace(".", "").strip("0"))


def number_size(number: str) -> int:
    """About one byte per two significant digits, plus one, plus one for a sign; never more than 21."""
    return min(21, math.ceil(significant_digits(number) / 2) + 1 + number.startswith("-"))


def write_units(*sizes: int, transactional: bool = False) -> float:
    """Units of a write that found and left items of these sizes: the largest counts, at least one."""
    units = max(1, math.ceil(max(sizes, default=0) / WRITE_UNIT))
    return float(units * 2 if transactional else units)


def read_units(size: int, *, consistent: bool = False, transactional: bool = False) -> float:
    """Units of a read of `size` bytes in all; a read that finds nothing costs the same as a small one."""
    units = max(1, math.ceil(size / READ_UNIT))
    if transactional:
        return units * 2.0
    return float(units) if consistent else units / 2


def index_write_units(old: Attributes | None, new: Attributes | None, transactional: bool = False) -> float:
    """Units of bringing one index up to date; `old` and `new` are its projected entries, None where there is none.

    A moved entry (other key) is one deletion and one put: pass it in as two calls.
    """
    if old == new:
        return 0.0
    return write_units(*(item_size(entry) for entry in (old, new) if entry is not None), transactional=transactional)
