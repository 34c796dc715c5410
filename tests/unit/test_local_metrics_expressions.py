"""Metric math: what the user guide says of FILL, DIFF, + and /, and that everything else is refused."""

from __future__ import annotations

import pytest

from local.metrics.expressions import Series, parse
from local.stack.errors import TemplateError

N = None


@pytest.mark.parametrize(
    ("text", "values", "found"),
    [
        ("m", [1, N, 3], [1, N, 3]),
        ("FILL(m, 0)", [N, 1, N], [0, 1, 0]),
        ("FILL(m, -1.5)", [N, 1], [-1.5, 1]),
        ("FILL(m, REPEAT)", [N, 1, N, N, 2], [N, 1, 1, 1, 2]),
        ("DIFF(m)", [1, 4, 2], [N, 3, -2]),
        ("DIFF(m)", [1, N, 2], [N, N, 1]),
        ("DIFF(FILL(m, 0))", [N, N, 2], [N, 0, 2]),
        ("DIFF(FILL(m, REPEAT))", [3, N, 2], [N, 0, -1]),
        ("DIFF(FILL(m, REPEAT))", [N, N, N], [N, N, N]),
    ],
)
def test_functions(text: str, values: Series, found: Series) -> None:
    expression = parse(text)
    assert expression.uses == {"m"}
    assert expression.of({"m": values}) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("m + n", [3, N, N, 4]),
        ("FILL(m, 0) + FILL(n, 0)", [3, 5, 2, 4]),
        ("m / n", [0.5, N, N, N]),
        ("n / FILL(m, 0)", [2, N, N, 0]),
    ],
)
def test_what_is_missing_or_divided_by_nothing_has_no_value(text: str, found: Series) -> None:
    expression = parse(text)
    assert expression.uses == {"m", "n"}
    assert expression.of({"m": [1, 5, N, 4], "n": [2, N, 2, 0]}) == found


@pytest.mark.parametrize(
    "text",
    ["RATE(m)", "m + 1", "FILL(m)", "FILL(m, LINEAR)", "FILL(m, n)", "FILL(m, true)", "diff(m)", "DIFF(", "1", "M", ""],
)
def test_what_is_not_known_is_refused_and_not_passed_over(text: str) -> None:
    with pytest.raises(TemplateError):
        parse(text)
