"""What a source can tell of its own events: the promise that a plug-in in lambdas/sources/ keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lambdas.core.times import Instant


@dataclass(frozen=True)
class Event:
    """An event as its source lists it. `id`: the very id that its webhook would have had; `body`: its exact bytes."""

    id: str
    at: Instant
    body: bytes


@dataclass(frozen=True)
class Page:
    """`cursor`: what to ask for next, empty behind the last page. `unusable`: which of its events could not be read,
    and why, each by itself."""

    events: Sequence[Event]
    cursor: str
    unusable: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Ask:
    """One page of what a source has from `since` to `until`. `config`: the declaration's `list`, without its secret,
    which is `token`. `seconds`: within which it must be answered."""

    config: Mapping[str, Any]
    token: str
    since: Instant
    until: Instant
    cursor: str
    seconds: float


Pages = Callable[[Ask], Page]
"""`pages(ask)`. Raises Unavailable when the source does not answer, or not as agreed; `throttled` when it said that it
was asked too much."""
