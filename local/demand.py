"""What the demo demands of itself."""

from __future__ import annotations


class DemoError(Exception):
    """Something did not happen as it should have; the message says what."""


def demand(condition: bool, otherwise: str) -> None:
    """Raises DemoError."""
    if not condition:
        raise DemoError(otherwise)
