"""Who listens to job events: what is missing stays missing until it is back, or a day is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lambdas.core.ports import Unavailable
from lambdas.core.sweeping.listeners import NAME, missing
from tests.fakes import FakeLedger

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def told(*reports: tuple[float, int], ledger: FakeLedger | None = None) -> list[int | None]:
    """What each of these sweeps tells: when it looks, in hours, and how many it finds."""
    ledger = ledger or FakeLedger()
    found = []
    for number, (hours, count) in enumerate(reports):
        now = NOON + timedelta(hours=hours)
        found.append(missing(ledger, lambda count=count: count, lambda now=now: now, f"sweep {number}"))  # type: ignore[misc]
    return found


@pytest.mark.parametrize(
    ("reports", "lost"),
    [
        pytest.param([(0, 0), (1, 0)], [0, 0], id="nobody has ever listened"),
        pytest.param([(0, 1), (1, 2), (2, 2)], [0, 0, 0], id="more of them"),
        pytest.param([(0, 2), (1, 1), (2, 1), (3, 0)], [0, 1, 1, 2], id="red while it is gone"),
        pytest.param([(0, 2), (9, 1)], [0, 1], id="across a gap in the reports"),
        pytest.param([(0, 2), (1, 1), (2, 2), (3, 1)], [0, 1, 0, 1], id="back and gone again"),
        pytest.param([(0, 3), (1, 1), (2, 2), (3, 3)], [0, 2, 1, 0], id="back one by one"),
        pytest.param([(0, 2), (1, 1), (24.9, 1), (25, 1), (26, 1)], [0, 1, 1, 0, 0], id="accepted after a day"),
        pytest.param([(0, 3), (1, 2), (24, 1), (26, 1), (48, 1)], [0, 1, 2, 2, 0], id="a further loss has its own day"),
        pytest.param([(0, 3), (1, 1), (2, 2), (25, 2)], [0, 2, 1, 0], id="one that is back begins no new day"),
        pytest.param([(0, 2), (1, 1), (25, 1), (26, 0)], [0, 1, 0, 1], id="a loss after an accepted one"),
    ],
)
def test_what_is_missing(reports: list[tuple[float, int]], lost: list[int]) -> None:
    assert told(*reports) == lost


def test_of_two_sweeps_at_once_one_tells() -> None:
    ledger = FakeLedger()
    ledger.take(NAME, "another", NOON, NOON + timedelta(minutes=1))
    assert told((0, 2), ledger=ledger) == [None]


def test_one_that_could_not_ask_leaves_what_is_known() -> None:
    ledger = FakeLedger()

    def refuse() -> int:
        raise Unavailable("no")

    told((0, 2), ledger=ledger)
    with pytest.raises(Unavailable):
        missing(ledger, refuse, lambda: NOON, "a sweep that fails")
    assert told((1, 1), ledger=ledger) == [1]
