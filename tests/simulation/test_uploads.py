"""Uploads from end to end: a form, a browser's POST, S3's notification, ingest, and the worker that reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.runtime import Runtime
from tests.simulation.outside import SETTINGS, Outside, a_word
from tests.simulation.watch import poll

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "calls" / "apollo13-problem.txt"


@pytest.fixture(scope="module")
def stack() -> Iterator[Outside]:
    with Runtime(SETTINGS, write_log=lambda *_: None) as runtime:
        outside = Outside(runtime)
        yield outside
        outside.close()


@pytest.fixture
def outside(stack: Outside) -> Iterator[Outside]:
    yield stack
    stack.runtime.functions.resume("worker")
    stack.runtime.notifications.clear()
    stack.quiet()
    stack.letters()


def call(word: str) -> bytes:
    return f"ANN: {word} is broken. BOB: I will send a new one today.".encode()


def test_an_upload_becomes_the_job_that_its_form_named(outside: Outside) -> None:
    form, word = outside.form(), a_word()
    assert outside.get(f"/jobs/{form['job_id']}", "acme").status == 404
    assert outside.fill(form, call(word)).status == 204
    job = outside.final(form["job_id"])
    assert (job["status"], job["type"]) == ("COMPLETED", "summarize")
    assert word in outside.model_calls(word)[0]["prompt"]
    events = outside.get(f"/jobs/{form['job_id']}/events", "acme").json()["events"]
    assert [event["what"] for event in events][:2] == ["received", "accepted"]
    assert outside.get(f"/jobs/{form['job_id']}", "globex").status == 404


def test_a_call_of_more_than_a_megabyte_goes_this_way(outside: Outside) -> None:
    """POST /jobs takes a million bytes; this one has the size of the longest sample."""
    word = a_word()
    text = SAMPLE.read_bytes()
    whole = (call(word) + b"\n" + text * (1_120_513 // len(text) + 1))[:1_120_513]
    refused = outside.target.post(
        "/jobs", {"type": "summarize", "input": {"text": whole.decode()}}, x_local_tenant="acme"
    )
    assert refused.status == 413
    assert "POST /uploads" in refused.json()["detail"]
    form = outside.form()
    assert outside.fill(form, whole).status == 204
    assert outside.final(form["job_id"])["status"] == "COMPLETED"
    result = outside.get(f"/jobs/{form['job_id']}/result", "acme").json()
    assert result["summary"]


def test_json_is_the_input_itself(outside: Outside) -> None:
    form, word = outside.form(content_type="application/json"), a_word()
    outside.fill(form, json.dumps({"text": call(word).decode()}).encode())
    assert outside.final(form["job_id"])["status"] == "COMPLETED"
    bad = outside.form(content_type="application/json")
    outside.fill(bad, b'{"txt": 1}')
    failed = outside.final(bad["job_id"])
    assert (failed["status"], failed["error"]["code"]) == ("FAILED", "INVALID_INPUT")


def test_a_second_upload_under_a_form_changes_nothing(outside: Outside) -> None:
    form, first, second = outside.form(), a_word(), a_word()
    outside.fill(form, call(first))
    before = outside.final(form["job_id"])
    outside.fill(form, call(second))
    outside.quiet()
    assert outside.final(form["job_id"]) == before
    assert outside.model_calls(second) == []
    assert outside.letters() == []


def test_the_first_upload_counts_even_if_s3_tells_of_the_second_first(outside: Outside) -> None:
    form, first, second = outside.form(), a_word(), a_word()
    outside.runtime.notifications.reorder(2)
    outside.fill(form, call(first))
    outside.fill(form, call(second))
    assert outside.runtime.notifications.release() == 2
    assert outside.final(form["job_id"])["status"] == "COMPLETED"
    outside.quiet()
    assert (len(outside.model_calls(first)), outside.model_calls(second)) == (1, [])


@pytest.mark.parametrize(
    "change",
    [
        {"key": "uploads/globex/summarize/x"},
        {"key": "results/x"},
        {"Content-Type": "text/html"},
        {"x-amz-meta-more": "1"},
    ],
)
def test_a_form_allows_nothing_but_what_it_was_given_for(outside: Outside, change: dict[str, str]) -> None:
    assert outside.fill(outside.form(), b"x", **change).status == 403


def test_a_form_bounds_the_size_and_its_time(outside: Outside) -> None:
    form = outside.form()
    assert outside.fill(form, b"").status == 400
    assert outside.fill(form, b"x" * 5_000_001).status == 400
    outside.skip(901)
    assert outside.fill(form, b"x").status == 403
    assert not outside.exists(form["job_id"])


def test_objects_that_others_put_there_are_jobs_each_version_one(outside: Outside) -> None:
    first, second = a_word(), a_word()
    key = "uploads/acme/summarize/2026/Anna & Ben +1 100%25 é.txt"
    outside.runtime.notifications.reorder(2)
    jobs = [outside.put(key, call(word)) for word in (first, second)]
    outside.runtime.notifications.release()
    assert [outside.final(job_id)["status"] for job_id in jobs] == ["COMPLETED", "COMPLETED"]
    assert (len(outside.model_calls(first)), len(outside.model_calls(second))) == (1, 1)


def test_a_notification_that_comes_twice_is_one_job(outside: Outside) -> None:
    word = a_word()
    outside.runtime.notifications.duplicate()
    job_id = outside.put("uploads/acme/summarize/twice.txt", call(word))
    assert outside.final(job_id)["status"] == "COMPLETED"
    outside.quiet()
    assert len(outside.model_calls(word)) == 1
    assert outside.letters() == []


def test_an_upload_that_is_gone_before_it_could_be_read_ends_visibly(outside: Outside) -> None:
    outside.runtime.functions.pause("worker")
    key = "uploads/acme/summarize/gone.txt"
    job_id = outside.put(key, call(a_word()))
    poll(lambda: outside.exists(job_id), lambda: "the upload is no job yet")
    bucket = outside.target.outputs["UploadsBucketName"]
    version = outside.record(job_id)["upload"]["version"]
    outside.s3.delete_object(Bucket=bucket, Key=key, VersionId=version)
    outside.runtime.functions.resume("worker")
    job = outside.final(job_id)
    assert (job["status"], job["error"]["code"]) == ("FAILED", "OVERWRITTEN")


def test_what_lies_in_the_wrong_place_is_a_letter_and_what_is_no_input_fails_visibly(outside: Outside) -> None:
    outside.put("uploads/acme/call.txt", b"x")
    outside.put("uploads/acme/unknown/call.txt", b"x")
    outside.put("uploads/acme/summarize/", b"")
    pdf = outside.put("uploads/acme/summarize/call.pdf", b"%PDF-", "application/pdf")
    large = outside.put("uploads/acme/summarize/large.txt", b"x" * 5_000_001)
    assert outside.final(pdf)["error"]["code"] == "UNSUPPORTED_CONTENT_TYPE"
    assert outside.final(large)["error"]["code"] == "INPUT_TOO_LARGE"
    outside.quiet()
    assert outside.reasons() == ["INVALID_KEY", "UNKNOWN_TYPE"]
