"""Events of declared sources, from request to result or dead letter; runs against a deployed stack too."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest

from tests.e2e.sources import DECLARED, SECRET, SECRET_NAME, TENANT, signed
from tests.e2e.target import Answer, Target, eventually


@pytest.fixture(scope="module", params=DECLARED)
def source(request: pytest.FixtureRequest, stack: Target) -> str:
    """A source that the stack has, and its secret where it looks for it."""
    name = str(request.param)
    if stack.post(f"/events/{name}", {}).status == 404:
        pytest.skip(f"this deployment has not declared the source {name} (tests/e2e/sources.py)")
    secrets = stack.client("secretsmanager")
    with suppress(secrets.exceptions.ResourceExistsException):
        secrets.create_secret(Name=SECRET_NAME, SecretString=SECRET)
    return name


def send(target: Target, source: str, event_id: str, body: bytes, **changed: str) -> Answer:
    return target.request("POST", f"/events/{source}", body, {**signed(event_id, body, target.now), **changed})


def test_an_event_becomes_one_job_however_often_it_is_sent(target: Target, nonce: str, source: str) -> None:
    body = json.dumps({"text": f"ANN: Grüße von {nonce}"}, ensure_ascii=False).encode()
    for _ in range(2):
        assert send(target, source, nonce, body).status == 202
    (job_id,) = eventually(lambda: listed(target, nonce), bool)
    assert target.final(job_id, TENANT)["status"] == "COMPLETED"
    assert target.get(f"/jobs/{job_id}/result", TENANT).status == 200
    assert listed(target, nonce) == [job_id]


def test_an_event_that_nobody_signed_is_a_dead_letter_and_no_job(target: Target, nonce: str, source: str) -> None:
    body = json.dumps({"text": f"ANN: {nonce}"}).encode()
    assert send(target, source, nonce, body + b" ", **signed(nonce, body, target.now)).status == 202
    (letter,) = eventually(lambda: letters_of(target, nonce), bool)
    assert letter["reason"] == "BAD_SIGNATURE"
    assert listed(target, nonce) == []


def listed(target: Target, nonce: str) -> list[str]:
    """The latest jobs whose input has the word in it."""
    jobs = [job["job_id"] for job in target.get("/jobs?limit=20", TENANT).json()["jobs"]]
    return [job_id for job_id in jobs if nonce in json.dumps(target.record(job_id), default=str)]


def letters_of(target: Target, nonce: str) -> list[dict[str, object]]:
    return [letter for letter in target.letters("InboxDlqUrl") if nonce in json.dumps(letter)]
