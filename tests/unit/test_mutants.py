"""The list of safety lines is true to the sources: nothing that must be guarded is missing from it.

That each line is caught is shown by `make prove-mutants`."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from lambdas.core.protocol import RULES
from tests.mutants.catalogue import ALL, WRITTEN
from tests.mutants.clauses import clauses
from tests.mutants.meanings import MEANINGS
from tests.mutants.safety_line import BadAnchor, SafetyLine
from tests.mutants.sites import sites
from tests.mutants.workshop import ROOT, Seen, judged

# what looks like a site, and acknowledges nothing
NONE_AT_ALL = {
    ("lambdas/handlers/query.py", "_get_result", "202"): "says that there is no result yet",
    ("lambdas/tasks/notify_by_email/task.py", "_send", "mail.send"): "is the effect itself; ctx.effect guards it",
}


@cache
def source_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def functions_in(path: str) -> frozenset[str]:
    return frozenset(node.name for node in ast.walk(ast.parse(source_of(path))) if isinstance(node, ast.FunctionDef))


def test_every_line_stands_once_in_its_file_and_what_is_left_is_a_program() -> None:
    for line in ALL:
        compile(line.taken_from(source_of(line.path)), line.name, "exec")


def test_no_mutant_names_what_is_not_there(tmp_path: Path) -> None:
    """It would be caught for being no program."""
    for number, line in enumerate(WRITTEN):
        (tmp_path / f"mutant_{number}.py").write_text(line.taken_from(source_of(line.path)), encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F821,F823", str(tmp_path)]
    told = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout


def test_no_two_lines_have_one_name_and_no_two_mutants_are_one() -> None:
    assert [name for name, times in Counter(line.name for line in ALL).items() if times > 1] == []
    assert [
        one for one, times in Counter((line.path, line.line, line.without) for line in ALL).items() if times > 1
    ] == []


def test_every_line_says_what_it_guards_and_by_whom() -> None:
    assert [line.name for line in ALL if not (line.guards and line.tests)] == []


def test_every_test_that_is_named_exists() -> None:
    named = {test for line in ALL for test in line.tests}
    missing = []
    for test in named:
        path, _, function = test.partition("::")
        if not (ROOT / path).is_file() or (function and function not in functions_in(path)):
            missing.append(test)
    assert missing == []


def test_every_clause_of_every_rule_is_taken_away_and_said_the_meaning_of() -> None:
    keys = [clause.key for clause in clauses()]
    assert {key.partition(" ")[0] for key in keys} == RULES.keys()
    assert sorted(keys) == sorted(MEANINGS)


def test_every_conditional_write_and_every_acknowledgement_has_its_mutant() -> None:
    """By the function that it stands in: who adds one without a mutant turns this red."""
    spans: dict[str, list[range]] = {}
    for line in ALL:
        spans.setdefault(line.path, []).append(line.span_in(source_of(line.path)))
    bare = {
        (site.path, site.function, site.what)
        for site in sites(ROOT)
        if not any(set(span) & set(site.lines) for span in spans.get(site.path, []))
    }
    assert bare == NONE_AT_ALL.keys()


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f(self):\n self._client.put_item(ConditionExpression='x')", "ConditionExpression"),
        ("def f(self):\n arguments = {'ConditionExpression': 'x'}", "ConditionExpression"),
        ("def f(self):\n self._client.put_object(IfNoneMatch='*')", "IfNoneMatch"),
        ("def f(own):\n own.store.apply('job', change)", "store.apply"),
        ("def f(desk):\n desk.ledger.create('a', 'b', {})", "ledger.create"),
        ("def f():\n return Change(RULES['x'], {})", "Change"),
        ("def f():\n return {'batchItemFailures': []}", "batchItemFailures"),
        ("def f():\n return http.answer(202, {})", "202"),
        ("def f():\n return 202, {}", "202"),
        ("def f(self):\n self.box.remove([])", "box.remove"),
        ("def f(outbox):\n outbox.send_work([])", "outbox.send_work"),
        ("def f():\n return claiming.Acknowledge('why')", "Acknowledge"),
        ("def f(report):\n report.cursor = 1", "cursor"),
    ],
)
def test_such_a_site_is_found_wherever_it_is_written(tmp_path: Path, code: str, found: str) -> None:
    (tmp_path / "lambdas").mkdir()
    (tmp_path / "lambdas" / "new.py").write_text(code, encoding="utf-8")
    assert [(site.function, site.what) for site in sites(tmp_path)] == [("f", found)]


# --- what counts as caught --------------------------------------------------------------------------
LINE = SafetyLine("a line", "core/x.py", "if held:\n", "if True:\n", "something", ("tests/unit/test_x.py",))
PATH = Path("/copy/lambdas/core/x.py")


def red(when: str = "call", error: str = "AssertionError", said: str = "assert 1 == 2") -> dict[str, str]:
    return {"test": "tests/unit/test_x.py::test_y", "when": when, "error": error, "said": said}


UNUSED = "An error occurred (ValidationException) when calling the PutItem operation: Value provided in … unused"


@pytest.mark.parametrize(
    ("seen", "fate"),
    [
        (Seen([red()], mark="a line", file=str(PATH)), "caught"),
        (Seen([red(error="Failed")], mark="a line", file=str(PATH)), "caught"),
        (Seen(passed=3, mark="a line", file=str(PATH)), "SURVIVED"),
        (Seen(mark="a line", file=str(PATH)), "broken"),  # no test was run
        (Seen([red()], mark="another line", file=str(PATH)), "broken"),
        (Seen([red()], mark=None, file=str(PATH)), "broken"),  # the text before it was imported
        (Seen([red()], mark="a line", file="/elsewhere/lambdas/core/x.py"), "broken"),
        (Seen([red(error="NameError")], mark="a line", file=str(PATH)), "broken"),
        (Seen([red(error="Unavailable", said=UNUSED)], mark="a line", file=str(PATH)), "broken"),
        (Seen([red("setup")], mark="a line", file=str(PATH)), "broken"),
        (Seen([], ["test_x.py: ImportError"], mark="a line", file=str(PATH)), "broken"),
        (Seen(trouble="the session ended with -14"), "broken"),
    ],
)
def test_a_mutant_is_caught_only_by_a_test_that_ran_on_it_and_failed_for_what_it_does(seen: Seen, fate: str) -> None:
    assert judged(LINE, seen, PATH)[0] == fate


def test_a_line_that_does_not_stand_exactly_once_is_told() -> None:
    for source in ("", "if held:\n    if held:\n"):
        with pytest.raises(BadAnchor):
            LINE.taken_from(source)
