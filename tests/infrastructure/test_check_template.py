"""`ops.check_template`: what it prints, for people and for programs, and the exit code that scripts rely on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from infra.delivery.contract import RULES
from ops.check_template import run
from tests.infrastructure.conftest import ROOT

FOREIGN = Path(__file__).with_name("foreign.yaml")
BROKEN = """
Resources:
  Letters:
    Type: AWS::SQS::Queue
    Metadata: { "aws:cdk:path": Shop/Letters/Resource }
  Orders:
    Type: AWS::SQS::Queue
    Properties: { RedrivePolicy: { deadLetterTargetArn: !GetAtt Letters.Arn, maxReceiveCount: 5 } }
  Nested: { Type: AWS::CloudFormation::Stack }
"""


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "template.yaml"
    path.write_text(BROKEN, encoding="utf-8")
    return path


def test_a_template_that_keeps_the_contract_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(FOREIGN)) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "0 to fix, 0 not checked\n")


def test_a_template_that_breaks_it_is_1_with_one_line_for_each_finding(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(broken) == 1
    printed = capsys.readouterr()
    kept, told, nested = printed.out.splitlines()
    assert kept.startswith("letters-retention: Letters (Shop/Letters/Resource): ")
    assert told.startswith("letters-alarm: Letters (Shop/Letters/Resource): nobody is told")
    assert nested.startswith("not checked: not-looked-into: Nested: ")
    assert printed.err == "2 to fix, 1 not checked\n"


def test_people_at_a_terminal_see_a_table(
    broken: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run(broken) == 1
    first, *rows = capsys.readouterr().out.splitlines()
    assert all(column in first for column in ("rule", "resource", "what is wrong", "what to do"))
    assert any(row.startswith("letters-alarm") and "Letters" in row for row in rows)


def test_programs_read_json(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(broken, as_json=True) == 1
    printed = json.loads(capsys.readouterr().out)
    assert [(one["rule"], one["resource"], one["path"]) for one in printed["findings"]] == [
        ("letters-retention", "Letters", "Shop/Letters/Resource"),
        ("letters-alarm", "Letters", "Shop/Letters/Resource"),
    ]
    assert all(one["message"] and one["fix"] for one in printed["findings"])
    assert [one["resource"] for one in printed["notes"]] == ["Nested"]


def test_json_is_read_with_and_without_a_byte_order_mark(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig"):
        path = tmp_path / encoding
        path.write_text(json.dumps({"Resources": {"Q": {"Type": "AWS::SQS::Queue"}}}), encoding=encoding)
        assert run(path) == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        (b"\xff\xfe\x00", "it is no text in UTF-8"),
        (b'{"Resources": ', "line 2: did not find expected node content"),
        (b"a: [", "line 2: did not find expected node content"),
        (b"", "it has no Resources"),
        (b"- 1", "it has no Resources"),
        (b"a: 1\na: 2", "line 1: Duplicate found 'a'"),
    ],
)
def test_what_cannot_be_read_is_2_with_the_reason(
    tmp_path: Path, content: bytes | None, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "template"
    if content is not None:
        path.write_bytes(content)
    assert run(path) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {path}: ")
    assert why in printed.err


def test_the_documented_table_has_every_rule_that_finds_something() -> None:
    page = (ROOT / "docs/deploying.md").read_text(encoding="utf-8")
    table = page.partition("## Checking any template")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    assert documented == list(dict.fromkeys(rule.name for rule in RULES if rule.name != "letters-within-reach"))
