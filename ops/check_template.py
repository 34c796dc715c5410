"""Checks any CloudFormation template against the delivery contract: what must be set for no message to be lost."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from infra.delivery.contract import NoTemplateError, check
from infra.delivery.findings import Report
from ops.output import Output


class UnreadableError(Exception):
    """The file holds no template; the text says why."""


def run(path: str | Path, as_json: bool = False) -> int:
    """Print what breaks the contract in this file, JSON or YAML. 0: nothing, 1: something, 2: it cannot be read."""
    output = Output(as_json=as_json)
    try:
        report = check(read(Path(path)))
    except (UnreadableError, NoTemplateError) as error:
        output.note(f"error: {path}: {error}")
        return 2
    if as_json:
        output.json(asdict(report))
    elif sys.stdout.isatty():
        output.table(("rule", "resource", "what is wrong", "what to do"), list(_rows(report)))
    else:
        for line in _lines(report):
            output.line(line)
    output.note(f"{len(report.findings)} to fix, {len(report.notes)} not checked")
    return 1 if report.findings else 0


def read(path: Path) -> Any:
    """The template in a file. Raises UnreadableError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(getattr(error, "strerror", None) or "it is no text in UTF-8") from None
    try:
        return json.loads(text)
    except ValueError:
        return _yaml(text)


def _yaml(text: str) -> Any:
    """YAML with the short forms of CloudFormation, `!GetAtt` and the like, as plain data."""
    from cfnlint.decode import decode_str  # noqa: PLC0415  half a second that JSON does not need

    template, complaints = decode_str(text)
    if complaints:
        first = complaints[0]
        raise UnreadableError(f"line {first.linenumber}: {first.message}")
    return json.loads(json.dumps(template, default=str))


def _lines(report: Report) -> Iterator[str]:
    yield from map(str, report.findings)
    for note in report.notes:
        yield f"not checked: {note.rule}: {note.resource or 'the template'}: {note.why}"


def _rows(report: Report) -> Iterator[tuple[str, str, str, str]]:
    for one in report.findings:
        when = f" [when {one.when}]" if one.when else ""
        yield one.rule, f"{one.resource} {one.path}".strip(), one.message + when, one.fix
    for note in report.notes:
        yield note.rule, note.resource, f"not checked: {note.why}", ""
