"""Step Functions' limits on data, and the measure that they are in."""

from __future__ import annotations

import json
from typing import Any

DATA_BYTES = 262_144
"""Of an execution's input, of what a state is given or gives, and of a function's answer: UTF-8, as compact JSON."""
CAUSE_CHARACTERS = 32_768
EVENTS = 25_000
"""Of an execution's history: the last of them is its end."""


def written(value: Any) -> str:
    """As it goes from state to state."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def fits(value: Any) -> bool:
    return len(written(value).encode("utf-8", "surrogatepass")) <= DATA_BYTES
