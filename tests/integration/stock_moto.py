"""Shows what moto does without one of our patches, so that a patch that is no longer needed is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local.aws.patches import PATCHES


@contextmanager
def stock(*names: str) -> Iterator[None]:
    """moto's own `Owner.attribute` for these names, while the server goes on with all other patches."""
    chosen = [patch for patch in PATCHES if f"{_name(patch.owner)}.{patch.name}" in names]
    assert len(chosen) == len(names), f"no patch for one of {names}"
    for patch in chosen:
        patch.remove()
    try:
        yield
    finally:
        for patch in chosen:
            patch.install()


def _name(owner: Any) -> str:
    return str(getattr(owner, "__name__", owner)).rsplit(".", 1)[-1]
