"""What a test can check of the documents: links, commands, tests that prove promises, alarms, the protocol's table."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from local.stack.template import load
from local.synthesis import synthesize
from tests.protocol_table import table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PROOF = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def text_of(page: Path) -> str:
    return page.read_text("utf-8")


def without_code(page: Path) -> str:
    return CODE.sub("", text_of(page))


def sections(page: Path, level: int) -> dict[str, str]:
    """Headings of a level, and what stands below each."""
    parts = re.split(rf"^{'#' * level} (.+)$", text_of(page), flags=re.MULTILINE)
    return {
        title: re.split(r"^#", body, flags=re.MULTILINE)[0]
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    titles = re.findall(r"^#+ (.+)$", text_of(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


# --- links and commands --------------------------------------------------------------------------------------------


def links(page: Path) -> Iterator[str]:
    for found in LINK.findall(without_code(page)):
        if not re.match(r"[a-z]+:", found):
            yield found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_page_and_a_heading_that_exist(page: Path) -> None:
    broken = []
    for link in links(page):
        place, _, anchor = link.partition("#")
        to = (page.parent / place).resolve() if place else page
        if not to.exists() or (anchor and anchor not in anchors(to)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    known = set(re.findall(r"^([a-z][a-z0-9-]*):", text_of(ROOT / "Makefile"), flags=re.MULTILINE))
    code = "\n".join(CODE.findall(text_of(page)))
    named = set(re.findall(r"(?:^|[`\s])make ([a-z][a-z0-9-]*)", code, flags=re.MULTILINE))
    assert named <= known


def test_the_readme_leads_to_every_document() -> None:
    names = {page.name for page in DOCS.glob("*.md")}
    linked = {Path(link.partition("#")[0]).name for link in links(ROOT / "README.md")}
    assert names <= linked


def test_the_smoke_target_finds_the_portable_tests_and_no_others() -> None:
    """Its command as it is, with this interpreter in place of .venv, and nothing run."""
    where = ["VENV=.venv", f"BIN={Path(sys.executable).parent}", "--old-file=.venv/.ready"]
    order = ["smoke", "URL=http://127.0.0.1:1", "ARGS=--collect-only -q -p no:cacheprovider"]
    command = ["make", "--silent", *where, *order]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert (run.returncode, run.stderr) == (0, "")
    assert "tests/e2e/test_main_job.py::" in run.stdout
    assert "deselected" in run.stdout


# --- guarantees ------------------------------------------------------------------------------------------------------

GUARANTEES = sections(DOCS / "guarantees.md", 3)


@cache
def functions_of(path: str) -> set[str]:
    """Names of the test functions of a file, without running it."""
    tree = ast.parse(text_of(ROOT / path))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_guarantees_are_numbered_without_a_gap() -> None:
    numbers = [title.partition(" · ")[0] for title in GUARANTEES]
    assert numbers == [f"G{number}" for number in range(1, len(numbers) + 1)]


@pytest.mark.parametrize("title", GUARANTEES)
def test_a_guarantee_says_under_which_faults_and_within_which_time_and_names_tests_that_exist(title: str) -> None:
    told = GUARANTEES[title]
    assert re.findall(r"^\* \*\*(\w+)\*\*:", told, flags=re.MULTILINE) == ["Under", "Within", "Proof"]
    proofs = PROOF.findall(told)
    assert proofs
    assert [f"{path}::{name}" for path, name in proofs if not _exists(path, name)] == []


def _exists(path: str, name: str) -> bool:
    return (ROOT / path).exists() and name in functions_of(path)


# --- operations ------------------------------------------------------------------------------------------------------


def alarms_of_the_template() -> set[str]:
    """By the names of their constructs: a logical id is the path of constructs and eight letters."""
    resources = load(synthesize({})).resources
    ids = [name for name, resource in resources.items() if resource["Type"] == "AWS::CloudWatch::Alarm"]
    return {name.removeprefix("Monitoring")[:-8] for name in ids}


def test_every_alarm_has_its_section_and_every_section_its_alarm() -> None:
    told = sections(DOCS / "operations.md", 3)
    named = [name for title in told for name in title.split(", ")]
    assert sorted(named) == sorted(alarms_of_the_template())
    for title, body in told.items():
        labels = re.findall(r"^\* \*\*(\w+)\*\*:", body, flags=re.MULTILINE)
        assert (title, labels) == (title, ["Means", "Urgency", "Look", "Do", "Clears"])


def test_the_console_links_that_are_named_are_outputs_of_the_stack() -> None:
    outputs = load(synthesize({})).outputs
    named = set(re.findall(r"`(\w+Console)`", text_of(DOCS / "operations.md")))
    assert named
    assert named <= outputs.keys()


# --- the protocol ----------------------------------------------------------------------------------------------------


def test_the_table_of_the_protocol_is_made_from_its_rules() -> None:
    """`python -m tests.protocol_table` prints what belongs there."""
    _, _, behind = text_of(DOCS / "architecture.md").partition("<!-- protocol:begin -->\n")
    written, end, _ = behind.partition("<!-- protocol:end -->")
    assert end
    assert written == table()
