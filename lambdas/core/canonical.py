"""One byte form for equal JSON values, so that a hash of it can stand for the value."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """Sorted keys, no spaces, no NaN. TypeError or ValueError when the value is not JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256(written: str) -> str:
    """64 hex digits. Texts are hashed as UTF-8; a list of parts is hashed as its canonical JSON, never joined."""
    return hashlib.sha256(written.encode()).hexdigest()


def sha256_of(value: Any) -> str:
    return sha256(canonical(value))
