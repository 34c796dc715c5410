"""The one place that reads the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> datetime:
    """UTC, whole milliseconds: the precision in which times are written and compared."""
    return datetime.fromtimestamp(int(time.time() * 1000) / 1000, UTC)
