"""What refuses and fails: exit codes, what is asked again and what never, and that the way out is told."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from ops import access
from tests.integration.command_line import CommandLine, job, timeline
from tests.integration.scripted_api import Reply, ScriptedApi, gateway, problem

ROOT = Path(__file__).resolve().parents[2]
REDRIVE = "POST /admin/dead-letters/redrive"
PATIENCE_S = 120  # for a process that was expected to end


@pytest.mark.parametrize(
    ("reply", "code", "told"),
    [
        (problem(400, "limit is wrong"), 2, "limit is wrong"),
        (problem(422, "must be string", "/input/text"), 2, "must be string (at /input/text)"),
        (problem(413, "too large"), 2, "python -m ops upload"),
        (problem(404, "There is no job"), 3, "There is no job"),
        (problem(410, "Its data is gone"), 3, "Its data is gone"),
        (problem(409, "It is COMPLETED"), 4, "It is COMPLETED"),
        (gateway(401, "Unauthorized"), 6, "NEVERDROP_TOKEN"),
        (gateway(403, "Forbidden"), 6, "credentials"),
        (gateway(404, "Not Found"), 5, "no such route"),
        (Reply(200, b"<html>a proxy</html>"), 5, "without JSON"),
        (Reply(200, ["a list"]), 5, "is it one of Neverdrop"),
        (Reply(200, {"status": "ok"}), 5, "JSON without 'job_id'"),
        (Reply(418, b""), 2, "I'm a Teapot"),
        (Reply(400, b"[" * 100_000), 2, "[[["),
    ],
)
def test_each_refusal_has_its_exit_code_and_one_line(
    api: ScriptedApi, ops: CommandLine, reply: Reply, code: int, told: str
) -> None:
    api.on("GET /jobs/j1", reply)
    ended = ops("status", "j1")
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)
    assert told in ended.err
    assert len(ended.err) < 500
    assert len(api.requests) == 1


@pytest.mark.parametrize("trouble", [gateway(500, "dead"), gateway(503, "throttled"), Reply(is_cut=True)])
def test_what_passes_is_waited_for_longer_each_time(
    api: ScriptedApi, ops: CommandLine, pauses: list[float], trouble: Reply
) -> None:
    api.on("GET /jobs/j1", trouble, trouble, trouble, job())
    assert ops("status", "j1").code == 0
    assert pauses == sorted(pauses)
    assert pauses[-1] > 2 * pauses[0]


def test_what_does_not_pass_is_given_up_and_told(api: ScriptedApi, ops: CommandLine, pauses: list[float]) -> None:
    api.on("GET /jobs/j1", problem(503, "The store cannot be read", Retry_After="7"))
    ended = ops("status", "j1")
    assert (ended.code, pauses) == (5, [7.0] * 4)
    assert ended.err.splitlines()[-1] == "error: the API answered 503: The store cannot be read"


def test_no_pause_is_longer_than_half_a_minute(api: ScriptedApi, ops: CommandLine, pauses: list[float]) -> None:
    api.on("GET /jobs/j1", gateway(429, "slow down", Retry_After="86400"), job())
    assert ops("status", "j1").code == 0
    assert pauses == [30.0]


@pytest.mark.parametrize("trouble", [gateway(500, "dead"), gateway(503, "timeout"), Reply(is_cut=True)])
def test_what_may_have_been_done_is_not_done_again(api: ScriptedApi, ops: CommandLine, trouble: Reply) -> None:
    api.on(REDRIVE, trouble)
    ended = ops("redrive", "l1")
    assert ended.code == 5
    assert "not known: look before you repeat" in ended.err
    assert len(api.requests) == 1


@pytest.mark.parametrize("trouble", [gateway(429, "slow"), problem(503, "once more is harmless", Retry_After="2")])
def test_what_was_not_done_or_may_be_asked_once_more_is(api: ScriptedApi, ops: CommandLine, trouble: Reply) -> None:
    api.on(REDRIVE, trouble, Reply(202, {"redrive_id": "r1"}))
    assert ops("redrive", "l1", "--no-wait").out == "r1\n"


def test_a_refusal_after_a_repetition_says_that_it_may_be_its_own_doing(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /jobs/j1/retry", problem(503, "unknown", Retry_After="1"), problem(409, "It is PENDING"))
    ended = ops("retry", "j1")
    assert ended.code == 4
    assert "It is PENDING; it was asked for more than once" in ended.err


def test_an_api_that_is_not_there_is_5(ops: CommandLine) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        ended = ops("list", "--url", f"http://127.0.0.1:{nobody.getsockname()[1]}")
    assert (ended.code, ended.out) == (5, "")


@pytest.mark.parametrize("health", [Reply(200, {"status": "ok"}), Reply(200, ["other"]), Reply(404, b"x"), None])
def test_without_a_url_it_is_the_local_runtime_or_a_word_what_to_do(
    api: ScriptedApi, ops: CommandLine, monkeypatch: pytest.MonkeyPatch, health: Reply | None
) -> None:
    monkeypatch.delenv("NEVERDROP_URL")
    monkeypatch.setattr(access, "LOCAL_RUNTIME", api.url if health else "http://127.0.0.1:1")
    monkeypatch.setattr(access, "LOOK", httpx.Timeout(PATIENCE_S))
    api.on("GET /jobs", {"jobs": [job()]})
    if health:
        api.on("GET /health", health)
    ended = ops("list", "--tenant", "alpha")
    if health and health.body == {"status": "ok"}:
        assert ended.code == 0
        assert api.of("GET /jobs")[0].headers["x-local-tenant"] == "alpha"
    else:
        assert ended.code == 5
        assert "make run" in ended.err
        assert "NEVERDROP_URL" in ended.err


@pytest.mark.parametrize("words", [(), ("lisst",), ("status",), ("status", "a", "b"), ("list", "--limit", "x")])
def test_what_is_no_command_is_2(ops: CommandLine, words: tuple[str, ...]) -> None:
    assert ops(*words).code == 2


def test_help_lists_the_exit_codes(ops: CommandLine) -> None:
    ended = ops("--help")
    assert ended.code == 0
    for code in (*range(7), 130, 141):
        assert f"{code} " in ended.out


# --- processes ---------------------------------------------------------------------------------------------------


@contextmanager
def started(api: ScriptedApi, *words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "ops", *words]
    environ = {**os.environ, "NEVERDROP_URL": api.url, **environment}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        preexec_fn=_hear_ctrl_c,  # noqa: PLW1509 - it takes no lock
    ) as process:
        try:
            yield process
        finally:
            process.kill()  # whatever it waits for: nobody waits for it


def _hear_ctrl_c() -> None:
    """Whoever started the tests in the background has told them to ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("words", [("list",), ("list", "--json"), ("status", "j1"), ("result", "j1"), ("follow", "j1")])
def test_a_reader_that_has_gone_is_no_trouble(api: ScriptedApi, words: tuple[str, ...]) -> None:
    api.on("GET /jobs", {"jobs": [job()]})
    api.on("GET /jobs/j1", job())
    api.on("GET /jobs/j1/result", {"a": 1})
    api.on("GET /jobs/j1/events", timeline("COMPLETED", "accepted", "handed_over"))
    with started(api, *words) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 141
        assert process.stderr.read() == b""


def test_ctrl_c_ends_a_command_without_a_word(api: ScriptedApi) -> None:
    api.on("GET /jobs/j1", job(status="PENDING"))
    api.on("GET /jobs/j1/events", timeline("PENDING", "accepted"))
    with started(api, "follow", "j1") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"accepted" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr.read() == b""


def test_a_narrow_locale_gets_escapes_for_people_and_the_same_json_as_others(api: ScriptedApi) -> None:
    api.on("GET /jobs/j1/result", {"text": "Grüße 🚀"})
    api.on("GET /jobs/j1", job(error={"code": "ü", "message": "🚀"}))
    narrow: dict[str, Any] = {"PYTHONIOENCODING": "ascii"}
    said = {}
    for words in (("result", "j1"), ("result", "j1", "--json"), ("status", "j1")):
        with started(api, *words, **narrow) as process:
            said[words], _ = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0
    assert b'"Gr\\u00fc\\u00dfe \\ud83d\\ude80"' in said["result", "j1"]
    assert b'"Gr\\u00fc\\u00dfe \\ud83d\\ude80"' in said["result", "j1", "--json"]
    assert b"\\U0001f680" in said["status", "j1"]


def test_the_doctor_answers_before_anything_is_installed(ops: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.__main__.NEEDED", ("a_package_that_is_not_there",))
    monkeypatch.setattr("ops.doctor.run", lambda: 0)
    assert ops("doctor").code == 0
    ended = ops("list")
    assert (ended.code, ended.out) == (1, "")
    assert "make setup" in ended.err


def test_a_name_that_is_no_task_is_1(ops: CommandLine) -> None:
    ended = ops("new-task", "Not A Task")
    assert (ended.code, ended.out) == (1, "")
    assert "lower-case words" in ended.err


def test_check_template_ends_as_the_check_does(
    ops: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Any] = []

    def run(path: Path, as_json: bool) -> int:
        asked.append((path, as_json))
        return 1

    monkeypatch.setattr("ops.check_template.run", run)
    (tmp_path / "t.json").write_text("{}")
    assert ops("check-template", str(tmp_path / "t.json"), "--json").code == 1
    assert asked == [(tmp_path / "t.json", True)]
    assert ops("check-template", str(tmp_path / "none.json")).code == 2
