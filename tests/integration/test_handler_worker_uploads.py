"""Jobs that are uploads: the worker reads the very version that became the job."""

from __future__ import annotations

from typing import Any

from lambdas.core import ids
from tests.integration.cloud import Cloud
from tests.integration.records import pending
from tests.integration.worker_bench import Bench, message

TEXT = "ANNA: The pump is broken.\nBEN: I will send somebody today."


def uploaded(cloud: Cloud, body: bytes, content_type: str = "text/plain", **over: Any) -> dict[str, Any]:
    """A PENDING job whose input is this object."""
    key = "uploads/acme/summarize/call"
    put = cloud.client("s3").put_object(Bucket=cloud.uploads_bucket, Key=key, Body=body, ContentType=content_type)
    upload = {"key": key, "version": put["VersionId"], "etag": put["ETag"].strip('"'), "bytes": len(body), **over}
    record = pending(upload=upload, source="uploads")
    del record["input"]
    return cloud.put(record)


def error_of(cloud: Cloud, record: dict[str, Any]) -> str:
    found = cloud.record(record["pk"])
    assert found["status"] == "FAILED"
    return str(found["error"]["code"])


def test_an_upload_is_done_like_any_job(cloud: Cloud, bench: Bench):
    record = uploaded(cloud, TEXT.encode())
    assert bench.run(message(record)) == []
    assert bench.status(record) == "COMPLETED"
    (call,) = bench.model.calls.listed()
    assert "The pump is broken." in str(call)
    assert ids.result_key("acme", record["pk"], 1) in cloud.objects(cloud.results_bucket)


def test_two_versions_of_a_key_are_two_jobs_with_each_its_own_text(cloud: Cloud, bench: Bench):
    first, second = uploaded(cloud, b"ANNA: first"), uploaded(cloud, b"BEN: second")
    assert bench.run(message(first), message(second)) == []
    assert [bench.status(one) for one in (first, second)] == ["COMPLETED", "COMPLETED"]
    assert sorted("first" in str(call) for call in bench.model.calls.listed()) == [False, True]


def test_s3_04_an_upload_that_was_overwritten_before_it_was_read_fails_visibly(cloud: Cloud, bench: Bench):
    record = uploaded(cloud, TEXT.encode())
    cloud.client("s3").delete_object(
        Bucket=cloud.uploads_bucket, Key=record["upload"]["key"], VersionId=record["upload"]["version"]
    )
    uploaded(cloud, b"another")
    assert bench.run(message(record)) == []
    assert error_of(cloud, record) == "OVERWRITTEN"
    assert bench.calls == 0


def test_an_upload_that_its_task_cannot_take_fails_before_the_model_is_asked(cloud: Cloud, bench: Bench):
    records = {
        "INVALID_INPUT": uploaded(cloud, b'{"txt":1}', "application/json"),
        "UNSUPPORTED_CONTENT_TYPE": uploaded(cloud, b"%PDF-", "application/pdf"),
        "INPUT_TOO_LARGE": uploaded(cloud, b"x", bytes=10_000_001),
    }
    assert bench.run(*map(message, records.values())) == []
    assert [error_of(cloud, one) for one in records.values()] == list(records)
    assert bench.calls == 0


def test_while_the_bucket_refuses_the_job_waits(cloud: Cloud, bench: Bench):
    record = uploaded(cloud, TEXT.encode())
    cloud.wire.refuse("GetObject", code="SlowDown", status=503, times=3)
    assert bench.run(message(record)) == []
    found = cloud.record(record["pk"])
    assert (found["status"], found["tries"]) == ("PENDING", 0)
