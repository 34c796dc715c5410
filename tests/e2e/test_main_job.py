"""From an event to a delivered result, over HTTP; runs against a deployed stack too."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.target import ROOT, Answer, Target

CALLS = sorted((ROOT / "samples" / "calls").glob("*.txt"))
FIELDS = {"summary", "participants", "action_items"}


@pytest.mark.parametrize("call", CALLS, ids=lambda path: path.stem)
def test_a_call_becomes_a_result_with_every_field_of_its_schema(target: Target, call: Any) -> None:
    job_id = target.submit("summarize", {"text": call.read_text("utf-8")})
    assert target.final(job_id)["status"] == "COMPLETED"
    result = target.get(f"/jobs/{job_id}/result")
    assert result.status == 200
    assert result.json().keys() == FIELDS
    assert result.json()["summary"]
    assert result.json()["participants"]


def test_a_form_gets_a_category_and_an_urgency(target: Target, nonce: str) -> None:
    form = {"subject": "We cannot log in", "message": f"Nobody can work, please help now. {nonce}", "seats": 40}
    job_id = target.submit("classify", {"form": "support", "fields": form})
    assert target.final(job_id)["status"] == "COMPLETED"
    assert target.get(f"/jobs/{job_id}/result").json().keys() == {"category", "urgency", "reason"}


def test_a_large_input_goes_by_claim_check(target: Target, nonce: str) -> None:
    text = nonce + "\n" + "".join(path.read_text("utf-8") for path in CALLS) * 10
    assert 150_000 < len(text) < 1_000_000
    job_id = target.submit("summarize", {"text": text})
    assert target.final(job_id)["status"] == "COMPLETED"
    record = target.record(job_id)
    assert "input" not in record
    key = f"inputs/{record['tenant']['S']}/{job_id}/{record['body_sha']['S']}"
    body = target.client("s3").get_object(Bucket=target.outputs["InputsBucketName"], Key=key)["Body"].read()
    assert json.loads(body)["input"]["text"] == text


def test_an_input_above_the_limit_is_refused_with_a_way_out(target: Target) -> None:
    answer = target.post("/jobs", {"type": "summarize", "input": {"text": "x" * 1_120_000}})
    assert answer.status == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert "/uploads" in answer.json()["detail"]


def test_fifty_parallel_posts_with_one_key_are_one_job_and_one_answer(target: Target, nonce: str) -> None:
    body = json.dumps({"type": "summarize", "input": {"text": f"ANN: hello {nonce}"}}).encode()
    headers = {"idempotency-key": nonce, "content-type": "application/json"}
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda _: insisted(target, body, headers), range(50)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body for answer in answers}) == 1
    assert target.final(answers[0].json()["job_id"])["status"] == "COMPLETED"


def insisted(target: Target, body: bytes, headers: dict[str, str]) -> Answer:
    """Sent again, as is, for as long as the gateway itself says that there is no room yet."""
    for _ in range(5):
        answer = target.request("POST", "/jobs", body, headers)
        if answer.status != 503 or answer.json() != {"message": "Service Unavailable"}:
            break
    return answer


def test_a_key_used_for_another_body_is_refused_and_changes_nothing(target: Target, nonce: str) -> None:
    first = target.submit("summarize", {"text": f"ANN: one {nonce}"}, key=nonce)
    answer = target.post("/jobs", {"type": "summarize", "input": {"text": "ANN: two"}}, idempotency_key=nonce)
    assert answer.status == 422
    assert answer.json()["type"].endswith(":key-reused")
    assert target.submit("summarize", {"text": f"ANN: one {nonce}"}, key=nonce) == first


def test_the_order_of_a_bodys_fields_does_not_make_another_event(target: Target, nonce: str) -> None:
    headers = {"idempotency-key": nonce, "content-type": "application/json"}
    one = target.request("POST", "/jobs", f'{{"type":"summarize","input":{{"text":"{nonce}"}}}}'.encode(), headers)
    two = target.request("POST", "/jobs", f'{{"input":{{"text":"{nonce}"}},"type":"summarize"}}'.encode(), headers)
    assert one.body == two.body


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"{", 400, ""),
        (b"\xef\xbb\xbf{}", 400, ""),
        (b'{"type": "summarize", "type": "classify", "input": {}}', 400, ""),
        (b'{"type": "summarize", "input": {"text": NaN}}', 400, ""),
        (b'{"type": "summarize", "input": {"text": "\\ud800"}}', 400, "/input/text"),
        (b"[" * 100_000, 400, ""),
        (b'{"type": "summarize"}', 400, "/input"),
        (b'{"type": "summarize", "input": {"text": "a"}, "reply_to": "https://a.test"}', 400, "/reply_to"),
        (b'{"type": "no-such-task", "input": {}}', 422, "/type"),
        (b'{"type": "summarize", "input": {}}', 422, "/input/text"),
        (b'{"type": "summarize", "input": {"text": ""}}', 422, "/input/text"),
    ],
)
def test_a_bad_body_is_refused_with_the_place_of_what_is_wrong(
    target: Target, body: bytes, status: int, pointer: str
) -> None:
    answer = target.request("POST", "/jobs", body, {"content-type": "application/json"})
    assert answer.status == status
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_waiting_for_a_job_answers_as_soon_as_it_is_final(target: Target, nonce: str) -> None:
    job_id = target.submit("summarize", {"text": f"ANN: waiting {nonce}"})
    waits = (target.get(f"/jobs/{job_id}?wait=20").json()["status"] for _ in range(3))  # 20 s may not be enough
    assert "COMPLETED" in waits


def test_the_timeline_tells_receipt_to_delivery_in_order(target: Target, nonce: str) -> None:
    job_id = target.submit("summarize", {"text": f"ANN: timeline {nonce}"})
    target.final(job_id)
    events = target.get(f"/jobs/{job_id}/events").json()["events"]
    assert [event["what"] for event in events] == ["accepted", "claimed", "completed", "handed_over"]
    assert all(event["at"] for event in events)


def test_a_finished_job_is_told_to_whoever_subscribes(target: Target, nonce: str) -> None:
    with target.subscribed as subscription:
        job_id = target.submit("summarize", {"text": f"ANN: tell {nonce}"})
        (event, *_) = [
            event
            for event in subscription.events(lambda found: any(one["run_id"] == job_id for one in found))
            if event["run_id"] == job_id
        ]
    assert event["event_id"] == f"{job_id}.1.COMPLETED"
    assert event["event_type"] == "job.completed"
    assert event["payload"]["result"]["key"].endswith(f"/{job_id}/1")


def test_the_list_is_newest_first_and_pages_do_not_overlap(target: Target, nonce: str) -> None:
    mine = [target.submit("summarize", {"text": f"ANN: {n} {nonce}"}) for n in range(5)]
    seen: list[str] = []
    path = "/jobs?limit=2"
    while len(seen) < 5:
        page = target.get(path).json()
        seen += [job["job_id"] for job in page["jobs"]]
        path = f"/jobs?limit=2&cursor={page.get('cursor')}"  # none after the last page
    assert seen[:5] == mine[::-1]


def test_what_is_no_job_of_this_tenant_is_not_found(target: Target) -> None:
    for path in ("", "/result", "/events"):
        assert target.get(f"/jobs/{uuid.uuid4().hex}{path}").status == 404


def test_the_health_and_the_contract_are_open_to_everybody(target: Target) -> None:
    assert target.get("/health").json()["status"] == "ok"
    served = target.get("/openapi.json").json()
    assert served == json.loads((ROOT / "lambdas" / "contracts" / "openapi.json").read_text("utf-8"))
