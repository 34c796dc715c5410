"""Records against lists: each way in which they can disagree is found, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.permissions import __main__ as proof
from tests.permissions import record, review
from tests.permissions.record import Permission, Record
from tests.permissions.review import Finding, Reviewed

READ = Permission("worker", "dynamodb:GetItem", "{StorageJobs}")
WRITE = Permission("worker", "dynamodb:PutItem", "{StorageJobs}")
LIST = Permission("query", "s3:ListBucket", "{StorageResults}")

RECORD = Record(granted=frozenset({READ, WRITE, LIST}), used=frozenset({READ, WRITE}), refused=frozenset())
REVIEWED = Reviewed(unused={LIST: "a result that is gone is 404"})


def kinds(written: Record = RECORD, reviewed: Reviewed = REVIEWED) -> list[tuple[Permission, str]]:
    return [(one.permission, one.kind) for one in review.findings(written, reviewed)]


def changed(**parts: frozenset[Permission]) -> Record:
    return Record(**{"granted": RECORD.granted, "used": RECORD.used, "refused": RECORD.refused, **parts})


def test_everything_used_or_explained_is_no_finding():
    assert kinds() == []


def test_a_permission_that_nobody_uses_is_found():
    assert kinds(changed(used=frozenset({READ}))) == [(WRITE, review.NEVER_USED)]


def test_use_that_no_statement_names_is_found():
    other = Permission("worker", "dynamodb:Scan", "{StorageJobs}")
    assert kinds(changed(unnamed=frozenset({other}))) == [(other, review.NO_STATEMENT)]
    assert kinds(changed(used=RECORD.used | {other})) == [(other, review.NO_STATEMENT)]


def test_a_refusal_that_no_test_expects_is_found():
    refused = frozenset({Permission("query", "dynamodb:PutItem", "{StorageJobs}")})
    (one,) = refused
    assert kinds(changed(refused=refused)) == [(one, review.NOT_EXPECTED)]
    assert kinds(changed(refused=refused), Reviewed(REVIEWED.unused, {one: "test_x asks for it"})) == []


def test_an_entry_that_is_used_after_all_is_found():
    assert kinds(changed(used=RECORD.granted)) == [(LIST, review.USED_AFTER_ALL)]


def test_an_entry_that_is_used_sometimes_may_be_used_or_not(tmp_path):
    place, nothing = tmp_path / "unused.json", tmp_path / "refused.json"
    place.write_text(json.dumps([{**vars(LIST), "reason": "only when late", "sometimes": True}]))
    nothing.write_text("[]")
    for used in (RECORD.used, RECORD.granted):
        assert kinds(changed(used=used), review.load(place, nothing)) == []


def test_an_entry_that_the_template_has_no_more_is_found():
    assert kinds(changed(granted=RECORD.used)) == [(LIST, review.NOT_GRANTED)]


def test_an_expected_refusal_that_never_comes_is_found():
    assert kinds(reviewed=Reviewed(REVIEWED.unused, {WRITE: "test_x"})) == [(WRITE, review.NEVER_REFUSED)]


@pytest.mark.parametrize("reason", ["", " ", review.PLACEHOLDER])
def test_an_entry_without_a_reason_is_found(reason):
    assert kinds(reviewed=Reviewed({LIST: reason})) == [(LIST, review.NO_REASON)]


def test_what_is_told_can_be_pasted_into_the_lists(tmp_path):
    refused = Permission("query", "s3:PutObject", "{StorageResults}/results/…")
    said = review.told(review.findings(changed(used=frozenset({READ}), refused=frozenset({refused})), REVIEWED))
    entries = [line for line in said.splitlines() if line.lstrip().startswith("{")]
    pasted = tmp_path / "list.json"
    pasted.write_text("[" + "".join(line.removesuffix(",") + "," for line in entries)[:-1] + "]")
    reviewed = review.load(pasted, pasted)
    assert set(reviewed.unused) == {WRITE, refused}
    assert {one.kind for one in review.findings(RECORD, reviewed)} >= {review.NO_REASON}


def test_a_list_that_names_something_twice_is_refused(tmp_path):
    entry = {"role": "a", "action": "b:C", "resource": "*", "reason": "so"}
    (tmp_path / "list.json").write_text(json.dumps([entry, entry]))
    with pytest.raises(ValueError, match="names twice: a: b:C on"):
        review.load(tmp_path / "list.json", tmp_path / "list.json")


def test_the_lists_that_are_kept_have_a_reason_for_each_entry():
    reviewed = review.load()
    reasons = [*reviewed.unused.values(), *reviewed.refused.values()]
    assert all(len(reason) > len(review.PLACEHOLDER) for reason in reasons)


def test_records_of_many_processes_are_read_as_one(tmp_path):
    (tmp_path / "one.jsonl").write_text(_line("granted", READ) + _line("used", READ))
    (tmp_path / "two.jsonl").write_text(_line("granted", READ) + _line("granted", LIST) + _line("used", LIST)[:-20])
    written = record.read(tmp_path)
    assert (written.granted, written.used) == (frozenset({READ, LIST}), frozenset({READ}))
    record.write(written, tmp_path / "all" / "together.jsonl")
    assert record.read(tmp_path / "all" / "together.jsonl") == written


def test_a_line_of_something_else_is_refused(tmp_path):
    (tmp_path / "one.jsonl").write_text('{"kind": "guessed"}\n')
    with pytest.raises(ValueError, match="is none of granted, used, refused, unnamed"):
        record.read(tmp_path)


def _line(kind: str, permission: Permission) -> str:
    return json.dumps({"kind": kind, **vars(permission)}) + "\n"


def test_the_table_shows_each_role_and_answers_whether_something_is_left(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(review, "load", lambda: REVIEWED)
    place = tmp_path / "record.jsonl"
    record.write(RECORD, place)
    assert proof.main([str(place)]) == 0
    shown = capsys.readouterr().out
    assert "worker: 2 of 2 used" in shown
    assert "(a result that is gone is 404)" in shown
    record.write(changed(used=frozenset({READ})), place)
    assert proof.main([str(place)]) == 1
    assert "NOT REVIEWED" in capsys.readouterr().out
    assert proof.main([str(tmp_path / "none")]) == 2


def test_findings_say_where_an_entry_would_go():
    places: dict[str, Path | None] = {
        one.kind: one.entry_of
        for one in review.findings(
            changed(used=frozenset(), unnamed=frozenset({READ}), refused=frozenset({LIST})), REVIEWED
        )
    }
    assert places[review.NEVER_USED] == review.UNUSED
    assert places[review.NOT_EXPECTED] == review.REFUSED
    assert places[review.NO_STATEMENT] is None
    assert str(Finding(READ, "is odd")) == "worker: dynamodb:GetItem on {StorageJobs}: is odd"
