"""What the task of an upload gets, and how a job ends whose object is gone, too large, or no input."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.core.policy import Limits
from tests.builders import any_task, held_record
from tests.fakes import Trouble
from tests.unit.bench import Bench

KEY = "uploads/acme/summarize/call"
INPUT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}


def uploaded(body: bytes, content_type: str = "application/json", *, most: int = 10_000, **over: Any) -> Bench:
    """A held job whose input is this object; its result is what the task was given."""
    bench = Bench(None, any_task(lambda found, ctx: {"got": found}, input_=INPUT), limits=Limits(upload_bytes=most))
    stored = bench.uploads.put(KEY, body, content_type)
    upload = {"key": KEY, "version": stored.version, "etag": stored.etag, "bytes": len(body), **over}
    record = held_record(input=None, upload=upload)
    bench.store.records[record["pk"]] = record
    return bench


def ended(bench: Bench) -> str:
    """The code of its error."""
    bench.execute()
    job = bench.job()
    assert job.status == "FAILED"
    assert job.error is not None
    return job.error["code"]


@pytest.mark.parametrize(
    ("body", "content_type", "found"),
    [
        (b'{"text":"x","n":1.0}', "application/json", b'{"got":{"n":1.0,"text":"x"}}'),
        (b'{"text":"x"}', "application/json; charset=utf-8", b'{"got":{"text":"x"}}'),
        ("é\r\n".encode(), "text/plain", '{"got":{"text":"é\\r\\n"}}'.encode()),
        (b'{"text":1}', "text/markdown; charset=utf-8", b'{"got":{"text":"{\\"text\\":1}"}}'),
        (b"\xef\xbb\xbfx", "text/plain", b'{"got":{"text":"x"}}'),
    ],
)
def test_the_task_gets_json_as_it_is_and_text_as_its_field(body: bytes, content_type: str, found: bytes) -> None:
    bench = uploaded(body, content_type)
    assert bench.execute() == "completed"
    assert list(bench.results.objects.values()) == [found]


def test_s3_04_the_very_version_is_read_that_became_the_job() -> None:
    bench = uploaded(b'{"text":"first"}')
    bench.uploads.put(KEY, b'{"text":"second"}')
    assert bench.execute() == "completed"
    assert list(bench.results.objects.values()) == [b'{"got":{"text":"first"}}']


def test_an_upload_that_was_overwritten_before_it_could_be_read_fails_visibly() -> None:
    bench = uploaded(b'{"text":"x"}', version="gone")
    assert ended(bench) == "OVERWRITTEN"
    error = bench.job().error
    assert error is not None
    assert "overwritten or deleted before it could be read" in error["message"]


@pytest.mark.parametrize("content_type", ["application/octet-stream", "binary/octet-stream", "application/pdf", "",
     "text/plain; charset=utf-16", "application/json;charset=latin-1"])  # fmt: skip
def test_an_object_of_another_type_fails_visibly(content_type: str) -> None:
    assert ended(uploaded(b'{"text":"x"}', content_type)) == "UNSUPPORTED_CONTENT_TYPE"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"txt":"x"}', "application/json"),
        (b"[]", "application/json"),
        (b"{", "application/json"),
        (b'{"text":"x","text":"y"}', "application/json"),
        (b"\xef\xbb\xbf{}", "application/json"),
        (b'{"text":"\xff"}', "application/json"),
        (b"\xff", "text/plain"),
        (b"", "text/plain"),
        (b"", "application/json"),
    ],
)
def test_an_object_that_the_tasks_schema_refuses_fails_visibly(body: bytes, content_type: str) -> None:
    bench = uploaded(body, content_type)
    assert ended(bench) == "INVALID_INPUT"
    assert bench.model.requests == []


def test_a_large_object_fails_before_it_is_read() -> None:
    bench = uploaded(b'{"text":"x"}', bytes=10_001)
    bench.uploads.troubles.add("read", Trouble.REFUSED)  # it would be felt
    assert ended(bench) == "INPUT_TOO_LARGE"


def test_an_object_that_is_larger_than_was_said_fails_too() -> None:
    assert ended(uploaded(b'{"text":"xx"}', most=12, bytes=12)) == "INPUT_TOO_LARGE"


def test_while_the_bucket_cannot_be_reached_the_job_waits() -> None:
    bench = uploaded(b'{"text":"x"}')
    bench.uploads.troubles.add("read", Trouble.REFUSED)
    assert bench.execute() == "waits"
    assert bench.job().tries == 0
