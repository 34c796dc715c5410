"""The commands of operators: dead letters, redrives, reviews and sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.command_line import CommandLine
from tests.integration.scripted_api import Reply, ScriptedApi, problem

GROUP = {
    "group": "g1",
    "queue": "work",
    "reason": "MODEL_PERMANENT",
    "error": "AccessDenied",
    "task": "summarize",
    "schema": 1,
    "count": 12,
    "first_seen": "2026-11-29T15:00:00.000Z",
    "last_seen": "2026-11-29T15:30:00.000Z",
    "cost_micros": 1_500_000,
    "zero_attempts": True,
    "stale": 3,
    "ids": ["l1", "l2"],
}
PATCH = '[{"op": "replace", "path": "/schema", "value": 1.0}]'


def letters(*groups: dict[str, Any], complete: bool = True) -> dict[str, Any]:
    return {"groups": list(groups), "scanned": 12, "total": 40, "complete": complete}


# --- dead letters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("dead-letters",), ("dead-letters", "list")])
def test_dead_letters_alone_lists_the_groups(api: ScriptedApi, ops: CommandLine, words: tuple[str, ...]) -> None:
    api.on("GET /admin/dead-letters", letters(GROUP, complete=False))
    ended = ops(*words)
    heading, row = ended.out.splitlines()
    assert heading.split()[:3] == ["GROUP", "QUEUE", "COUNT"]
    for told in ("g1", "12", "MODEL_PERMANENT", "never attempted, 3 stale", "$1.500000", "l1 l2"):
        assert told in row
    assert "12 of about 40" in ended.err
    assert ops(*words, "--json").json() == letters(GROUP, complete=False)


def test_dead_letters_takes_its_options_without_a_verb(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /admin/dead-letters", letters())
    ended = ops("dead-letters", "--queue", "inbox")
    assert (ended.code, ended.out, ended.err) == (0, "", "no dead letters\n")
    assert api.requests[0].query == {"queue": "inbox"}
    assert ops("dead-letters", "--queue", "other").code == 2
    assert ops("dead-letters", "--help").code == 0


def test_a_letter_is_shown_whole(api: ScriptedApi, ops: CommandLine) -> None:
    letter = {"letter_id": "l1", "body": {"payload": {"detail": "bad"}}, "copies": [{"at": 1}, {"at": 2}], "none": None}
    api.on("GET /admin/dead-letters/l1", letter)
    assert ops("dead-letters", "show", "l1", "--json").json() == letter
    shown = {" ".join(line.split()) for line in ops("dead-letters", "show", "l1", "--queue", "work").out.splitlines()}
    assert shown == {"letter_id l1", "body.payload.detail bad", "copies[0].at 1", "copies[1].at 2", "none"}
    assert [seen.query for seen in api.requests] == [{}, {"queue": "work"}]
    api.on("GET /admin/dead-letters/l1", problem(404, "no such letter"))
    assert ops("dead-letters", "show", "l1").code == 3


def test_discarding_wants_a_reason(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /admin/dead-letters/l1/discard", {"letter_id": "l1", "status": "discarded"})
    assert ops("dead-letters", "discard", "l1").code == 2
    assert api.requests == []
    ended = ops("dead-letters", "discard", "l1", "--reason", "a test", "--queue", "inbox", "--json")
    assert ended.json()["status"] == "discarded"
    assert api.requests[0].json() == {"reason": "a test", "queue": "inbox"}


@pytest.mark.parametrize("from_file", [True, False])
def test_repair_sends_the_patch_as_it_is_written(
    api: ScriptedApi, ops: CommandLine, tmp_path: Path, from_file: bool
) -> None:
    (tmp_path / "patch.json").write_text(PATCH)
    api.on("POST /admin/dead-letters/l1/repair", {"letter_id": "l1", "status": "repaired"})
    patch = str(tmp_path / "patch.json") if from_file else PATCH
    assert ops("repair", "l1", "--patch", patch, "--reason", 'the "old" schema').code == 0
    assert api.requests[0].json() == {
        "patch": [{"op": "replace", "path": "/schema", "value": 1.0}],
        "reason": 'the "old" schema',
    }
    assert PATCH.encode() in api.requests[0].body


def test_a_patch_that_does_not_fit_says_where(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /admin/dead-letters/l1/repair", problem(422, "no such member", "/patch/0"))
    ended = ops("repair", "l1", "--patch", PATCH, "--reason", "r")
    assert (ended.code, ended.err) == (2, "error: no such member (at /patch/0)\n")


def test_review_turns_pages(api: ScriptedApi, ops: CommandLine) -> None:
    one = {"letter_id": "l1", "queue": "work", "status": "repaired", "who": "arn:x", "why": "old", "at": "t"}
    api.on("GET /admin/review", {"reviews": [one], "cursor": "c"}, {"reviews": [{**one, "letter_id": "l2"}]})
    ended = ops("review", "--status", "repaired", "--json")
    assert [line["letter_id"] for line in ended.lines()] == ["l1", "l2"]
    assert [seen.query for seen in api.requests] == [{"status": "repaired"}, {"status": "repaired", "cursor": "c"}]
    api.on("GET /admin/review", {"reviews": [one]})
    assert "arn:x" in ops("review").out


# --- redrive -----------------------------------------------------------------------------------------------------

STARTED = Reply(202, {"redrive_id": "r1", "state": "RUNNING", "links": {"self": "/admin/redrives/r1"}})


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ({"state": "DONE", "moved": 2, "failed": 0}, 0),
        ({"state": "DONE", "moved": 1, "failed": 1}, 1),
        ({"state": "STOPPED", "why": "canary"}, 1),
        ({"state": "FAILED"}, 1),
        ({"state": "RUNNING", "stalled": True}, 1),
        ({"state": "DONE", "moved": 1, "skipped": 1}, 1),
        ({"state": "DONE", "moved": 1, "ids": ["l1", "l2"]}, 1),
        ({"state": "DONE", "moved": 1, "stale": 1, "ids": ["l1", "l2"]}, 0),
        ({"state": "DONE", "moved": 0, "stale": 0}, 3),
        ({"state": "DONE", "would_move": 4}, 0),
    ],
)
def test_redrive_waits_for_its_end_and_ends_alike(
    api: ScriptedApi, ops: CommandLine, pauses: list[float], *, end: dict[str, Any], code: int
) -> None:
    api.on("POST /admin/dead-letters/redrive", STARTED)
    api.on("GET /admin/redrives/r1", {"state": "RUNNING", "moved": 1}, {"state": "RUNNING"}, end)
    ended = ops("redrive", "l1", "l2", "--rate", "5", "--canary", "1", "--json")
    assert (ended.code, ended.json()) == (code, end)
    assert api.requests[0].json() == {"ids": ["l1", "l2"], "rate": 5.0, "canary": 1}
    assert len(pauses) == 2


def test_redrive_of_a_group_need_not_be_waited_for(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /admin/dead-letters/redrive", STARTED)
    ended = ops("redrive", "--group", "g1", "--queue", "urgent", "--dry-run", "--no-wait")
    assert (ended.code, ended.out) == (0, "r1\n")
    assert [seen.json() for seen in api.requests] == [{"group": "g1", "queue": "urgent", "dry_run": True}]


@pytest.mark.parametrize("words", [(), ("l1", "--group", "g1"), ("l1", "--rate", "0"), ("l1", "--canary", "0")])
def test_a_redrive_that_names_nothing_or_too_much_is_refused(
    api: ScriptedApi, ops: CommandLine, words: tuple[str, ...]
) -> None:
    assert ops("redrive", *words).code == 2
    assert api.requests == []


# --- sweep -------------------------------------------------------------------------------------------------------

SWEEPING = Reply(202, {"sweep_id": "s1", "links": {"self": "/admin/sweeps/s1"}})


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ({"status": "DONE", "repaired": 37, "parts": {"uploads": {"state": "DONE", "failed": 3}}}, 0),
        ({"status": "FAILED", "parts": {}}, 1),
        ({"status": "DONE", "parts": {"drift": {"state": "FAILED"}}}, 1),
    ],
)
def test_sweep_waits_for_its_certificate_and_prints_it(
    api: ScriptedApi, ops: CommandLine, end: dict[str, Any], code: int
) -> None:
    api.on("POST /admin/sweeps", SWEEPING)
    api.on("GET /admin/sweeps/s1", {"status": "RUNNING", "parts": {"uploads": {"state": "RUNNING"}}}, end)
    ended = ops("sweep", "--json")
    assert (ended.code, ended.json(), ended.err) == (code, end, "sweep s1\n")
    assert api.requests[0].json() == {}
    assert len(api.of("GET /admin/sweeps/s1")) == 2


def test_sweep_of_some_parts_for_show(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /admin/sweeps", SWEEPING)
    assert ops("sweep", "--part", "uploads", "--part", "drift", "--dry-run", "--no-wait").out == "s1\n"
    assert [seen.json() for seen in api.requests] == [{"parts": ["uploads", "drift"], "dry_run": True}]


def test_a_certificate_has_a_row_for_each_part_and_what_was_repaired(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /admin/sweeps", SWEEPING)
    uploads = {
        "state": "DONE",
        "source": 12,
        "completed": 10,
        "open": 0,
        "balanced": False,
        "repaired": 2,
        "repaired_ids": ["a", "b"],
        "troubles": 1,
    }
    parts = {"uploads": uploads, "drift": {"state": "ABSENT", "why": "another sweep"}}
    api.on("GET /admin/sweeps/s1", {"sweep_id": "s1", "status": "DONE", "repaired": 2, "parts": parts})
    lines = [" ".join(line.split()) for line in ops("sweep").out.splitlines()]
    assert lines == [
        "sweep_id s1",
        "status DONE",
        "repaired 2",
        "",
        "PART STATE REPAIRED TROUBLES COUNTS WHY",
        "uploads DONE 2 1 NOT BALANCED source 12, completed 10",
        "drift ABSENT another sweep",
        "uploads repaired a",
        "uploads repaired b",
    ]
