"""Objects in the uploads bucket become jobs, or dead letters that say why not; runs against a deployed stack too."""

from __future__ import annotations

import json

from tests.e2e.target import Answer, Target, eventually


def test_what_a_form_brings_is_the_job_that_was_promised(target: Target, nonce: str) -> None:
    granted = target.post("/uploads", {"type": "summarize", "content_type": "text/plain"})
    assert granted.status == 201
    grant = granted.json()
    job_id = grant["job_id"]
    assert target.get(f"/jobs/{job_id}").status == 404  # the object is the event
    assert posted(target, grant["url"], grant["fields"], f"ANN: Grüße, {nonce}".encode()).status in (200, 201, 204)
    eventually(lambda: target.get(f"/jobs/{job_id}").status, lambda status: status == 200)
    assert target.final(job_id)["status"] == "COMPLETED"
    assert target.get(f"/jobs/{job_id}/result").status == 200
    assert target.request("DELETE", f"/jobs/{job_id}").status == 204
    versions = target.client("s3").list_object_versions(
        Bucket=target.outputs["UploadsBucketName"], Prefix=grant["fields"]["key"]
    )
    assert "Versions" not in versions


def test_a_form_takes_no_other_key(target: Target, nonce: str) -> None:
    grant = target.post("/uploads", {"type": "summarize", "content_type": "text/plain"}).json()
    other = grant["fields"] | {"key": f"{grant['fields']['key']}{nonce}"}
    assert posted(target, grant["url"], other, b"ANN: hello").status == 403


def test_what_its_task_cannot_take_is_a_job_that_failed_and_a_dead_letter(target: Target, nonce: str) -> None:
    grant = target.post("/uploads", {"type": "summarize", "content_type": "application/json"}).json()
    content = json.dumps({"text": 3, "nonce": nonce}).encode()
    assert posted(target, grant["url"], grant["fields"], content).status in (200, 201, 204)
    job_id = grant["job_id"]
    eventually(lambda: target.get(f"/jobs/{job_id}").status, lambda status: status == 200)
    job = target.final(job_id)
    assert (job["status"], job["error"]["code"], job["cost_micros"]) == ("FAILED", "INVALID_INPUT", 0)
    letter = target.letter_about(job_id)
    assert letter["reason"] == "INVALID_INPUT"


def test_an_object_where_nothing_becomes_a_job_is_a_dead_letter(target: Target, nonce: str) -> None:
    put(target, f"uploads/{nonce}", b"ANN: hello", "text/plain")
    (letter,) = eventually(lambda: letters_of(target, nonce), bool)
    assert letter["reason"] == "INVALID_KEY"


def put(target: Target, key: str, body: bytes, content_type: str) -> None:
    bucket = target.outputs["UploadsBucketName"]
    target.client("s3").put_object(Bucket=bucket, Key=key, Body=body, ContentType=content_type)


def letters_of(target: Target, nonce: str) -> list[dict[str, object]]:
    return [letter for letter in target.letters("InboxDlqUrl") if nonce in json.dumps(letter)]


def posted(target: Target, url: str, fields: dict[str, str], content: bytes) -> Answer:
    """A form as a browser sends it, the file last. S3 knows it by its policy: nobody signs it."""
    boundary = "----the-end-of-a-part"
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    file = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="file"\r\n\r\n'.encode()
    body = b"".join([*parts, file, content, f"\r\n--{boundary}--\r\n".encode()])
    return target.unsigned("POST", url, body, {"content-type": f"multipart/form-data; boundary={boundary}"})
