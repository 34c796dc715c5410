"""A tenant cancels, starts again and deletes its job, over HTTP; runs against a deployed stack too."""

from __future__ import annotations

from datetime import timedelta

from tests.e2e.target import Target


def tomorrow(target: Target) -> str:
    return (target.now + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_job_is_cancelled_started_again_completed_and_deleted_and_its_key_stays_taken(
    target: Target, nonce: str
) -> None:
    request = {"type": "summarize", "input": {"text": f"ANN: {nonce}"}, "not_before": tomorrow(target), "urgent": True}
    accepted = target.post("/jobs", request, idempotency_key=nonce)
    job_id, links = accepted.json()["job_id"], accepted.json()["links"]

    assert target.request("POST", links["cancel"]).json()["status"] == "CANCELLED"
    ended = target.final(job_id)
    assert (ended["status"], ended["cost_micros"], ended["urgent"]) == ("CANCELLED", 0, True)
    assert target.get(links["result"]).status == 409

    assert target.request("POST", ended["links"]["retry"]).json()["status"] == "PENDING"
    assert target.final(job_id)["status"] == "COMPLETED"  # at once: it was asked for now
    assert target.get(links["result"]).status == 200
    told = [line["what"] for line in target.get(links["events"]).json()["events"]]
    assert told == ["accepted", "cancelled", "reopened", "claimed", "completed", "handed_over"]

    for _ in range(2):
        assert target.request("DELETE", links["self"]).status == 204
    assert {target.get(links[name]).status for name in ("self", "result", "events")} == {410}
    assert target.post("/jobs", request, idempotency_key=nonce).status == 410
    assert job_id not in [job["job_id"] for job in target.get("/jobs").json()["jobs"]]
