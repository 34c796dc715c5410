"""The commands about jobs: what they ask of the API, what they print where, and how they end."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.integration.command_line import CommandLine, job, timeline
from tests.integration.scripted_api import Reply, ScriptedApi, problem

ACCEPTED = Reply(202, {"job_id": "j1", "status": "PENDING", "links": {"self": "/jobs/j1"}})


# --- submit ------------------------------------------------------------------------------------------------------


def test_submit_prints_the_id_alone_and_tells_the_key_that_it_made_up(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /jobs", ACCEPTED)
    ended = ops("submit", "summarize", "--input", '{"text": "hällo"}')
    assert (ended.code, ended.out) == (0, "j1\n")
    (seen,) = api.requests
    key = seen.headers["idempotency-key"]
    assert len(key) == 36
    assert f"--key {key}" in ended.err
    assert seen.json() == {"type": "summarize", "input": {"text": "hällo"}}


def test_a_key_of_the_users_own_is_used_and_not_told(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /jobs", ACCEPTED)
    ended = ops("submit", "summarize", "--key", "call 4711", "--json")
    assert ended.json() == {**ACCEPTED.body, "idempotency_key": "call 4711"}
    assert (api.requests[0].headers["idempotency-key"], ended.err) == ("call 4711", "")
    assert api.requests[0].json()["input"] == {}


def test_every_repetition_of_a_submit_has_the_same_key(api: ScriptedApi, ops: CommandLine, pauses: list[float]) -> None:
    api.on("POST /jobs", Reply(is_cut=True), problem(503, "unknown", Retry_After="2"), ACCEPTED)
    assert ops("submit", "summarize").out == "j1\n"
    assert len(api.requests) == 3
    assert len({seen.headers["idempotency-key"] for seen in api.requests}) == 1
    assert pauses[1] == 2.0


@pytest.mark.parametrize("key", ["", "tab\there", "ümlaut", "x" * 256, " led"])
def test_a_key_that_no_header_can_carry_is_refused_here(api: ScriptedApi, ops: CommandLine, key: str) -> None:
    assert ops("submit", "summarize", "--key", key).code == 2
    assert api.requests == []


def test_wishes_are_sent_only_when_they_are_made(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /jobs", ACCEPTED)
    ops("submit", "t", "--urgent", "--fresh", "--not-before", "2026-12-01T00:00:00Z")
    ops("submit", "t")
    first, second = (seen.json() for seen in api.requests)
    assert first == {"type": "t", "urgent": True, "fresh": True, "not_before": "2026-12-01T00:00:00Z", "input": {}}
    assert second == {"type": "t", "input": {}}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_input_is_sent_as_it_is_written(api: ScriptedApi, ops: CommandLine, tmp_path: Path, encoding: str) -> None:
    """No number is rounded, and what is written twice is for the API to refuse."""
    api.on("POST /jobs", ACCEPTED)
    written = '{"price": 1.10, "id": 12345678901234567890, "a": 1, "a": 2, "ü": "🚀"}'
    (tmp_path / "in.json").write_text(written, encoding)
    assert ops("submit", "t", "--input", str(tmp_path / "in.json")).code == 0
    assert written.encode() in api.requests[0].body


def test_an_input_comes_from_stdin(api: ScriptedApi, ops: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    api.on("POST /jobs", ACCEPTED)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b'{"a": 1}')))
    ops("submit", "t", "--input", "-")
    assert api.requests[0].json()["input"] == {"a": 1}


def test_a_text_file_becomes_the_field_text(api: ScriptedApi, ops: CommandLine, tmp_path: Path) -> None:
    api.on("POST /jobs", ACCEPTED)
    (tmp_path / "call.txt").write_text('ANN: "no"\nBOB: ü', "utf-8-sig")
    ops("submit", "t", "--text", str(tmp_path / "call.txt"))
    assert api.requests[0].json()["input"] == {"text": 'ANN: "no"\nBOB: ü'}


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--input", '{"a": 1,}'), "line 1, column"),
        (("--input", '{"a": 1}, "type": "other"'), "no JSON"),
        (("--input", "not-there.json"), "No such file"),
        (("--input", '"\udc80"'), "no JSON that can be sent"),
        (("--text", "latin.txt"), "not UTF-8"),
        (("--input", "latin.txt"), "no text"),
        (("--input", "{}", "--text", "latin.txt"), "not both"),
    ],
)
def test_an_input_that_cannot_be_meant_is_refused_before_anything_is_sent(
    api: ScriptedApi, ops: CommandLine, in_folder: Path, words: tuple[str, ...], told: str
) -> None:
    (in_folder / "latin.txt").write_bytes("hällo".encode("latin-1"))
    ended = ops("submit", "t", *words)
    assert (ended.code, ended.out, api.requests) == (2, "", [])
    assert told in ended.err


@pytest.mark.parametrize(("status", "code"), [("COMPLETED", 0), ("FAILED", 1), ("CANCELLED", 1)])
def test_submit_wait_ends_as_the_job_does(api: ScriptedApi, ops: CommandLine, status: str, code: int) -> None:
    api.on("POST /jobs", ACCEPTED)
    api.on("GET /jobs/j1/events", timeline(status, "accepted", "handed_over"))
    api.on("GET /jobs/j1", job(status=status))
    ended = ops("submit", "t", "--wait", "--json")
    assert (ended.code, ended.json()) == (code, job(status=status))
    assert "handed_over" in ended.err


# --- looking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "code"), [("PENDING", 0), ("COMPLETED", 0), ("FAILED", 1), ("CANCELLED", 1)])
def test_status_ends_as_the_job_has(api: ScriptedApi, ops: CommandLine, status: str, code: int) -> None:
    api.on("GET /jobs/j1", job(status=status, error={"code": "X", "message": "Grüße"}))
    ended = ops("status", "j1", "--json")
    assert ended.code == code
    assert ended.json()["status"] == status
    assert ended.out.isascii()
    assert ended.out.count("\n") == 1
    shown = ops("status", "j1").out
    assert "error.message  Grüße" in shown
    assert "$0.000018" in shown


def test_follow_tells_each_event_once_until_the_job_is_handed_over(
    api: ScriptedApi, ops: CommandLine, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder's claim stands in the timeline only while it works, and stays as a line of the history."""
    monkeypatch.setattr("ops.watching.time", SimpleNamespace(sleep=pauses.append, monotonic=lambda: 1.0))
    api.on(
        "GET /jobs/j1/events",
        timeline("PENDING", "accepted"),
        timeline("PROCESSING", "accepted", "claimed"),
        timeline("COMPLETED", "accepted", "claimed", "completed"),
        timeline("COMPLETED", "accepted", "claimed", "completed", "handed_over"),
    )
    api.on("GET /jobs/j1", job(status="PENDING"), job(status="PROCESSING"), job())
    ended = ops("follow", "j1", "--json")
    assert [line["what"] for line in ended.lines()] == ["accepted", "claimed", "completed", "handed_over"]
    assert (ended.code, ended.err) == (0, "COMPLETED\n")
    assert api.of("GET /jobs/j1")[0].query == {"wait": "1"}
    assert pauses == [1.0, 1.0, 0.5]  # where the API does not hold its answer, follow does


def test_events_that_are_alike_are_told_as_often_as_they_happened(api: ScriptedApi, ops: CommandLine) -> None:
    twice = timeline("FAILED", "accepted", "handed_over")
    twice["events"] *= 2
    api.on("GET /jobs/j1/events", twice)
    api.on("GET /jobs/j1", job(status="FAILED", error={"code": "TASK_ERROR", "message": "boom"}))
    ended = ops("follow", "j1", "--json")
    assert len(ended.lines()) == 4
    assert (ended.code, ended.err) == (1, "FAILED: TASK_ERROR: boom\n")


def test_follow_does_not_wait_long_for_a_hand_over(
    api: ScriptedApi, ops: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ops.watching.HAND_OVER_S", 0)
    api.on("GET /jobs/j1/events", timeline("COMPLETED", "accepted", "completed"))
    api.on("GET /jobs/j1", job())
    assert ops("follow", "j1").code == 0


def test_list_turns_pages_also_empty_ones_until_the_last(api: ScriptedApi, ops: CommandLine) -> None:
    api.on(
        "GET /jobs",
        {"jobs": [job("a")], "cursor": "c1"},
        {"jobs": [], "cursor": "c2"},
        {"jobs": [job("b", status="FAILED", error={"code": "TASK_ERROR", "message": "m"})]},
    )
    ended = ops("list", "--limit", "0", "--status", "FAILED", "--type", "a b", "--json")
    assert [line["job_id"] for line in ended.lines()] == ["a", "b"]
    assert [seen.query.get("cursor") for seen in api.requests] == [None, "c1", "c2"]
    assert api.requests[2].query == {"status": "FAILED", "type": "a b", "limit": "100", "cursor": "c2"}


def test_list_asks_for_no_more_than_it_shows(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /jobs", {"jobs": [job("a"), job("b")], "cursor": "c1"})
    shown = ops("list", "--limit", "2").out.splitlines()
    assert [line.split()[0] for line in shown] == ["JOB", "a", "b"]
    assert [seen.query["limit"] for seen in api.requests] == ["2"]


def test_an_empty_list_is_no_output(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /jobs", {"jobs": []})
    assert (ops("list").out, ops("list", "--json").out) == ("", "")


def test_what_comes_from_elsewhere_cannot_steer_a_terminal(api: ScriptedApi, ops: CommandLine) -> None:
    evil = "\x1b[2J\x9b31m\u202e[red]\nnext"
    api.on("GET /jobs/j1", job(status="FAILED", error={"code": evil, "message": evil}))
    api.on("GET /jobs", {"jobs": [job(error={"code": evil})]})
    api.on("GET /jobs/j1/result", {"text": evil})
    for words in (("status", "j1"), ("list",), ("result", "j1"), ("follow", "gone")):
        ended = ops(*words)
        assert not set(ended.out + ended.err) & {"\x1b", "\x9b", "\u202e"}
    assert r"\x1b[2J\x9b31m\u202e[red]\nnext" in ops("status", "j1").out
    assert ops("result", "j1").json() == {"text": evil}  # still JSON


# --- results -----------------------------------------------------------------------------------------------------


def test_a_result_is_printed_for_people_and_for_programs(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /jobs/j1/result", {"summary": "Grüße"})
    assert ops("result", "j1").out == '{\n  "summary": "Grüße"\n}\n'
    assert ops("result", "j1", "--json").out == '{"summary": "Gr\\u00fc\\u00dfe"}\n'


def test_a_large_result_is_fetched_without_an_identity(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /jobs/j1/result", Reply(303, {}, {"Location": f"{api.url}/bucket/key?X-Amz-Signature=abc"}))
    api.on("GET /bucket/key", {"large": True})
    assert ops("result", "j1", "--tenant", "alpha").json() == {"large": True}
    (fetched,) = api.of("GET /bucket/key")
    assert fetched.query == {"X-Amz-Signature": "abc"}
    assert "x-local-tenant" not in fetched.headers


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply(202, {"job_id": "j1", "status": "WAITING"}), "no result yet: it is WAITING"),
        (problem(409, "There is no result; the job failed: X"), "the job failed: X"),
    ],
)
def test_no_result_is_a_refusal_with_its_reason(api: ScriptedApi, ops: CommandLine, reply: Reply, told: str) -> None:
    api.on("GET /jobs/j1/result", reply)
    ended = ops("result", "j1")
    assert (ended.code, ended.out) == (4, "")
    assert told in ended.err


# --- changing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "route", "reply", "out"),
    [
        ("cancel", "POST /jobs/j1/cancel", Reply(202, {"job_id": "j1", "status": "CANCELLED"}), "CANCELLED\n"),
        ("retry", "POST /jobs/j1/retry", Reply(202, {"job_id": "j1", "status": "PENDING"}), "PENDING\n"),
        ("delete", "DELETE /jobs/j1", Reply(204), "DELETED\n"),
    ],
)
def test_a_change_is_asked_for_and_told(
    api: ScriptedApi, ops: CommandLine, *, command: str, route: str, reply: Reply, out: str
) -> None:
    api.on(route, reply)
    assert ops(command, "j1").out == out
    assert ops(command, "j1", "--json").json()["status"] == out.strip()
    api.on(route, problem(409, "It is PROCESSING."))
    refused = ops(command, "j1")
    assert (refused.code, refused.out, refused.err) == (4, "", "error: It is PROCESSING.\n")


def test_an_id_cannot_leave_its_place_in_the_path(api: ScriptedApi, ops: CommandLine) -> None:
    ops("cancel", "../x?y#z ü")
    assert [seen.path for seen in api.requests] == ["/jobs/..%2Fx%3Fy%23z%20%C3%BC/cancel"]
    for none in ("..", ".", "", "x" * 300):
        assert ops("status", none).code == 2
    assert len(api.requests) == 1


# --- uploads -----------------------------------------------------------------------------------------------------


def grant(api: ScriptedApi) -> dict[str, object]:
    fields = {"key": "uploads/t/s/j1", "Content-Type": "text/plain", "X-Amz-Signature": "s3cret"}
    return {"job_id": "j1", "url": f"{api.url}/bucket", "fields": fields, "links": {"self": "/jobs/j1"}}


@pytest.fixture
def call(tmp_path: Path) -> str:
    (tmp_path / "call.txt").write_text("ANN: hällo", "utf-8")
    return str(tmp_path / "call.txt")


def test_upload_sends_the_file_by_the_form_that_it_was_granted(api: ScriptedApi, ops: CommandLine, call: str) -> None:
    api.on("POST /uploads", Reply(201, grant(api)))
    api.on("POST /bucket", Reply(is_cut=True), Reply(204))
    ended = ops("upload", call, "--type", "summarize", "--tenant", "alpha", "--json")
    assert (ended.code, ended.json()) == (0, {"job_id": "j1", "links": {"self": "/jobs/j1"}})
    assert "s3cret" not in ended.out + ended.err
    assert api.requests[0].json() == {"type": "summarize", "content_type": "text/plain"}
    first, second = api.of("POST /bucket")
    assert first.body.count(b"hello") == 0
    assert "x-local-tenant" not in second.headers
    parts = second.body.split(b"Content-Disposition: form-data; name=")
    assert [part.split(b'"')[1] for part in parts[1:]] == [b"key", b"Content-Type", b"X-Amz-Signature", b"file"]
    assert "ANN: hällo".encode() in parts[-1]


@pytest.mark.parametrize(("name", "kind"), [("a.JSON", "application/json"), ("a.md", "text/plain")])
def test_the_kind_of_a_file_follows_its_name(
    api: ScriptedApi, ops: CommandLine, tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / name).write_text("{}")
    api.on("POST /uploads", problem(422, "no such task"))
    assert ops("upload", str(tmp_path / name), "--type", "t").code == 2
    assert api.requests[0].json()["content_type"] == kind


@pytest.mark.parametrize(("status", "code"), [(400, 2), (403, 6)])
def test_what_s3_refuses_is_told_without_the_form(
    api: ScriptedApi, ops: CommandLine, call: str, status: int, code: int
) -> None:
    api.on("POST /uploads", Reply(201, grant(api)))
    api.on("POST /bucket", Reply(status, b"<Error><Code>EntityTooLarge</Code><Message>s3cret</Message></Error>"))
    ended = ops("upload", call, "--type", "t")
    assert (ended.code, ended.err) == (code, f"error: S3 answered {status} EntityTooLarge\n")
    assert len(api.of("POST /bucket")) == 1


def test_upload_wait_gives_the_upload_time_to_become_a_job(
    api: ScriptedApi, ops: CommandLine, call: str, pauses: list[float]
) -> None:
    api.on("POST /uploads", Reply(201, grant(api)))
    api.on("POST /bucket", Reply(204))
    api.on("GET /jobs/j1", problem(404, "no such job"), problem(404, "no such job"), job())
    api.on("GET /jobs/j1/events", timeline("COMPLETED", "accepted", "handed_over"))
    ended = ops("upload", call, "--type", "t", "--wait", "--json")
    assert (ended.code, ended.json()["status"]) == (0, "COMPLETED")
    assert len(pauses) == 2


def test_upload_refuses_what_is_no_file(api: ScriptedApi, ops: CommandLine, tmp_path: Path) -> None:
    assert ops("upload", str(tmp_path), "--type", "t").code == 2
    assert ops("upload", str(tmp_path / "none"), "--type", "t").code == 2
    assert api.requests == []


def test_json_of_a_list_is_one_object_a_line(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /jobs", {"jobs": [job("a"), job("b")]})
    out = ops("list", "--json").out
    assert [json.loads(line)["job_id"] for line in out.splitlines()] == ["a", "b"]
