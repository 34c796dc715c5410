"""The rules by which CloudWatch evaluates alarms, as its user guide tells them: "Using Amazon CloudWatch alarms"."""

from __future__ import annotations

import pytest

from local.metrics.verdict import (
    ALARM,
    BREACHING,
    COMPARISONS,
    IGNORE,
    INSUFFICIENT,
    MISSING,
    NOT_BREACHING,
    OK,
    Rule,
    verdict,
)

BEFORE = "as it was"


def series(text: str) -> list[float | None]:
    """In the guide's letters: 0 does not breach, X does, - is missing; the oldest first."""
    return [{"0": 0.0, "X": 1.0, "-": None}[one] for one in text.split()]


def judged(text: str, to_alarm: int, missing: str, periods: int = 3) -> str:
    return verdict(Rule("GreaterThanThreshold", 0, periods, to_alarm, missing), series(text), BEFORE)


# "How alarm state is evaluated when data is missing": Evaluation Periods 3, evaluation range 5
THREE_OF_THREE = {
    "0 - X - X": (OK, OK, OK, OK),
    "0 - - - -": (OK, OK, OK, OK),
    "- - - - -": (INSUFFICIENT, BEFORE, ALARM, OK),
    "0 X X - X": (ALARM, ALARM, ALARM, ALARM),
    "- - - - X": (INSUFFICIENT, BEFORE, ALARM, OK),
    "X - - - -": (ALARM, BEFORE, ALARM, OK),
}
TWO_OF_THREE = {
    "0 - X - X": (ALARM, ALARM, ALARM, ALARM),
    "0 0 X 0 X": (ALARM, ALARM, ALARM, ALARM),
    "0 - X - -": (OK, OK, ALARM, OK),
    "- - - - 0": (OK, OK, ALARM, OK),
    "- - - - X": (INSUFFICIENT, BEFORE, ALARM, OK),
}
ROWS = [(3, *row) for row in THREE_OF_THREE.items()] + [(2, *row) for row in TWO_OF_THREE.items()]


@pytest.mark.parametrize(("to_alarm", "text", "states"), ROWS, ids=str)
def test_the_tables_of_the_user_guide(to_alarm: int, text: str, states: tuple[str, ...]) -> None:
    found = tuple(judged(text, to_alarm, missing) for missing in (MISSING, IGNORE, BREACHING, NOT_BREACHING))
    assert found == states


def test_the_example_of_the_guide_looks_at_five_datapoints_for_three_periods() -> None:
    assert Rule("GreaterThanThreshold", 0, periods=3).looks_at == 5


@pytest.mark.parametrize("missing", [MISSING, IGNORE, BREACHING, NOT_BREACHING])
def test_where_there_are_enough_real_datapoints_missing_ones_do_not_count(missing: str) -> None:
    """ "CloudWatch evaluates the alarm state based on the most recent real data points"."""
    assert judged("X 0 - 0 -", 1, missing, periods=2) == OK
    assert judged("0 X - - -", 1, missing, periods=2) == ALARM


def test_one_old_datapoint_holds_a_silence_back_for_as_long_as_it_is_in_the_range() -> None:
    """Why the template's alarms on silence fill in what is missing by themselves."""
    rule = Rule("LessThanThreshold", 1, 2, 2, BREACHING)
    assert verdict(rule, [1.0, None, None, None], OK) == OK
    assert verdict(rule, [None, None, None, None], OK) == ALARM
    assert verdict(rule, [1.0, 1.0, 0.0, 0.0], OK) == ALARM


@pytest.mark.parametrize(
    ("compare", "below", "at", "above"),
    [
        ("GreaterThanOrEqualToThreshold", False, True, True),
        ("GreaterThanThreshold", False, False, True),
        ("LessThanThreshold", True, False, False),
        ("LessThanOrEqualToThreshold", True, True, False),
    ],
)
def test_comparisons(compare: str, below: bool, at: bool, above: bool) -> None:
    rule = Rule(compare, 5)
    assert [rule.breaches(value) for value in (4, 5, 6)] == [below, at, above]
    assert compare in COMPARISONS
