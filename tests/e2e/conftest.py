"""One stack for all of these tests: the deployed one that NEVERDROP_URL names, else one on this machine."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from tests.e2e.sources import SETTING
from tests.e2e.target import LocalStack, Target, deployed


@pytest.fixture(scope="package")
def stack() -> Iterator[Target]:
    """It ends with the last of them: idle, it would take a twentieth of a core from those that come after."""
    url = os.environ.get("NEVERDROP_URL")
    if url:
        yield deployed(url, os.environ.get("NEVERDROP_STACK"))
        return
    # every piece that the model says is a chunk; no receiver is so slow, on whatever machine, but one that means to be
    local = LocalStack("--settings", SETTING, "chunk_bytes=1", "webhook_timeout_s=16")
    try:
        yield local.ready()
    finally:
        local.end()


@pytest.fixture
def target(stack: Target) -> Iterator[Target]:
    """The stack, with nothing left of the test before."""
    yield stack
    if stack.is_local:
        stack.script()
        stack.control("DELETE", "faults")
        stack.control("DELETE", "executions/events")
        for function in ("accept", "query", "control", "webhooks", "dispatch", "worker", "sweep"):
            stack.control("POST", "resume", {"function": function})
        stack.control("POST", "concurrency", {"function": "worker", "maximum": 5})


@pytest.fixture
def nonce() -> str:
    """A word that no other test's input has: inputs that are equal share their answers."""
    return uuid.uuid4().hex


@pytest.fixture
def tenant() -> str:
    """A tenant of this test's own (local only: deployed, a tenant is who signs)."""
    return f"tenant-{uuid.uuid4().hex[:8]}"
