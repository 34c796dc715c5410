"""What docs/operations.md says of the command line is what it can do."""

from __future__ import annotations

import re
from pathlib import Path

from ops.commands.assembly import ABOUT_JOBS, ABOUT_LETTERS, ABOUT_WEBHOOKS, OF_OPERATORS, WITHOUT_API
from ops.exits import MEANINGS, Exit

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text("utf-8")
SECTION = PAGE.partition("## The command line\n")[2].partition("\n## ")[0]


def test_every_command_is_in_the_table_and_no_other() -> None:
    told = re.findall(r"^\| `([a-z-]+)[ `]", SECTION, flags=re.MULTILINE)
    assert sorted(told) == sorted([*ABOUT_JOBS, *OF_OPERATORS, *WITHOUT_API, "dead-letters", "webhooks"])
    for verb in set(ABOUT_LETTERS) - {"list"}:
        assert f"`dead-letters {verb} " in SECTION
    (row,) = re.findall(r"^\| `webhooks`.*", SECTION, flags=re.MULTILINE)
    assert set(ABOUT_WEBHOOKS) - {"list"} == set(re.findall(r"`(?:webhooks )?([a-z]+)(?: URL)?`", row)) - {"webhooks"}


def test_every_exit_code_is_told() -> None:
    told = [int(code) for code in re.findall(r"^\| (\d+) \|", SECTION, flags=re.MULTILINE)]
    assert told == [int(code) for code in Exit] == [int(code) for code in MEANINGS]
