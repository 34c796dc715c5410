"""The one lock around moto, which has none of its own: two writers would both win one conditional put."""

from __future__ import annotations

import threading

MOTO = threading.RLock()
"""Held by whoever reads or changes moto's state."""

MESSAGES = threading.Condition(MOTO)
"""Waiting on it (long polling) lets the lock go; notified when messages arrive, time skips or the server stops."""


def wake_receivers() -> None:
    """Let long-polling receives look again, because something changed that no new message announces."""
    with MESSAGES:
        MESSAGES.notify_all()
