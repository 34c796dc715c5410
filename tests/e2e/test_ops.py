"""`python -m ops` as a process, against the stack itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.target import ROOT, Target, eventually


def ops(target: Target, *words: str, tenant: str | None = None) -> subprocess.CompletedProcess[str]:
    who = ("--tenant", tenant) if tenant and target.is_local else ()
    return subprocess.run(
        [sys.executable, "-m", "ops", *words, *who], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "NEVERDROP_URL": target.api},
    )  # fmt: skip


def test_an_event_is_submitted_and_followed_to_its_result(target: Target, nonce: str, tmp_path: Path) -> None:
    (tmp_path / "call.txt").write_text(f"ANN: Grüße, {nonce}. BOB: I will call back.", "utf-8")
    submitted = ops(target, "submit", "summarize", "--text", str(tmp_path / "call.txt"), "--key", nonce)
    assert submitted.returncode == 0, submitted.stderr
    job_id = submitted.stdout.strip()
    followed = ops(target, "follow", job_id, "--json")
    assert followed.returncode == 0, followed.stderr
    whats = [json.loads(line)["what"] for line in followed.stdout.splitlines()]
    assert (whats[0], whats[-1]) == ("accepted", "handed_over")
    status = ops(target, "status", job_id, "--json")
    assert (status.returncode, json.loads(status.stdout)["status"]) == (0, "COMPLETED")
    assert set(json.loads(ops(target, "result", job_id).stdout)) == {"summary", "participants", "action_items"}
    again = ops(target, "submit", "summarize", "--text", str(tmp_path / "call.txt"), "--key", nonce)
    assert again.stdout == submitted.stdout


def test_a_text_is_shown_while_it_comes_and_told_once_more(target: Target, nonce: str) -> None:
    task_input = json.dumps({"text": f"ANN: {nonce}. BOB: I will call back."})
    live = ops(target, "submit", "reply", "--input", task_input, "--stream")
    assert (live.returncode, live.stderr.splitlines()[-1]) == (0, "COMPLETED"), live.stderr
    job_id = live.stderr.splitlines()[-2].removeprefix("job ")
    said = live.stdout.rstrip("\n")
    assert said == json.loads(ops(target, "result", job_id, "--json").stdout)["text"].rstrip("\n")
    events = [json.loads(line) for line in ops(target, "watch", job_id, "--json").stdout.splitlines()]
    assert "".join(event["text"] for event in events[:-1]).rstrip("\n") == said
    assert (events[-1]["event"], events[-1]["job"]["status"]) == ("final", "COMPLETED")


def test_what_the_api_refuses_has_its_exit_code(target: Target, nonce: str) -> None:
    wrong = ops(target, "submit", "summarize", "--input", '{"text": 3}')
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "/input/text" in wrong.stderr
    assert ops(target, "status", nonce).returncode == 3
    assert ops(target, "follow", nonce).returncode == 3


@pytest.mark.local_only
def test_a_job_that_fails_ends_the_commands_that_wait_for_it_with_1(target: Target, nonce: str) -> None:
    target.script({"match": nonce, "error": "ValidationException"})
    waited = ops(target, "submit", "summarize", "--input", json.dumps({"text": f"ANN: {nonce}"}), "--wait", "--json")
    job = json.loads(waited.stdout)
    assert (waited.returncode, job["status"], job["error"]["code"]) == (1, "FAILED", "MODEL_PERMANENT")
    assert ops(target, "status", job["job_id"]).returncode == 1
    assert ops(target, "result", job["job_id"]).returncode == 4


@pytest.mark.local_only
def test_a_tenants_jobs_are_listed_page_by_page(target: Target, nonce: str, tenant: str) -> None:
    jobs = {target.submit("classify", {"fields": {"word": nonce}}, tenant=tenant) for _ in range(105)}

    def listed() -> list[str]:
        return ops(target, "list", "--limit", "0", "--json", tenant=tenant).stdout.splitlines()

    lines = eventually(listed, lambda lines: len(lines) == len(jobs))
    assert {json.loads(line)["job_id"] for line in lines} == jobs
    assert len(ops(target, "list", "--limit", "3", tenant=tenant).stdout.splitlines()) == 1 + 3
    assert ops(target, "list", "--type", "summarize", tenant=tenant).stdout == ""
    assert ops(target, "list", tenant=f"{tenant}-other").stdout == ""


@pytest.mark.local_only
def test_dead_letters_are_brought_back_when_their_canary_lives(target: Target, nonce: str) -> None:
    target.script({"match": nonce, "error": "ValidationException"})
    jobs = [target.submit("summarize", {"text": f"ANN: {nonce} {number}"}) for number in range(2)]
    target.finals(jobs)
    letters = {f"{job_id}.{target.job(job_id)['attempt']}.FAILED" for job_id in jobs}
    stopped = ops(target, "redrive", *letters, "--canary", "1", "--json")
    assert (stopped.returncode, json.loads(stopped.stdout)["state"]) == (1, "STOPPED")
    target.script()
    (again,) = letters - set(json.loads(stopped.stdout)["first"])
    assert ops(target, "redrive", again, "--canary", "1").returncode == 0
    assert target.final(again.split(".")[0])["status"] == "COMPLETED"


def test_a_job_is_uploaded_swept_past_and_deleted(target: Target, nonce: str, tmp_path: Path) -> None:
    (tmp_path / "call.txt").write_text(f"ANN: {nonce}", "utf-8")
    uploaded = ops(target, "upload", str(tmp_path / "call.txt"), "--type", "summarize", "--wait", "--json")
    assert uploaded.returncode == 0, uploaded.stderr
    job_id = json.loads(uploaded.stdout)["job_id"]
    swept = ops(target, "sweep", "--part", "uploads", "--dry-run", "--json")
    assert (swept.returncode, json.loads(swept.stdout)["status"]) == (0, "DONE")
    assert ops(target, "cancel", job_id).returncode == 4
    assert ops(target, "retry", job_id).returncode == 4
    assert ops(target, "delete", job_id).returncode == 0
    assert ops(target, "status", job_id).returncode == 3
