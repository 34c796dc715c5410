"""What a user types: the local stack and the demo, as processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tests.e2e.target import ROOT, LocalStack, Target

pytestmark = pytest.mark.local_only


def test_the_local_stack_says_when_it_is_ready_and_ends_cleanly_on_sigterm() -> None:
    local = LocalStack()
    target = local.ready()
    assert target.get("/health").status == 200
    assert target.outputs["ApiUrl"] == target.api
    assert local.end() == 0


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = subprocess.run(
            [sys.executable, "-m", "local", "run", "--port", str(taken.getsockname()[1])],
            cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "error:" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_demo_tells_its_whole_story_and_exits_0() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "local", "demo"], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
        env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for step in ("accepted", "dispatched", "claimed", "model called", "stored", "completed", "handed over"):
        assert step in ended.stdout
    assert "the second one cost 0" in ended.stdout
    assert "Together they are the stored result" in ended.stdout
    assert "signature verified" in ended.stdout
    assert "5 of 5" in ended.stdout
    assert "from the first question to the last answer" in ended.stdout
    assert "MODEL_PERMANENT" in ended.stdout
    assert "\x1b" not in ended.stdout  # plain when it is not a terminal


def test_any_aws_client_sees_the_dead_letters(target: Target, nonce: str) -> None:
    target.script({"match": nonce, "error": "AccessDeniedException"})
    job_id = target.submit("summarize", {"text": f"ANN: {nonce}"})
    target.final(job_id)
    assert target.letter_about(job_id)
