"""What a model call costs, and that it is paid once: on this machine, where the model's side can be seen."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest

from tests.e2e.target import Target, eventually

pytestmark = pytest.mark.local_only


def finish_with_time(target: Target, job_ids: list[str], tenant: str | None = None, step_s: float = 60) -> None:
    """Let time pass until all are handed over: waits, delays and sweeps take their course."""

    def open_ones(_: object = None) -> list[str]:
        return [job_id for job_id in job_ids if not target.job(job_id, tenant).get("handed_over")]

    for _ in range(200):
        settle = time.monotonic() + 1.5
        while time.monotonic() < settle:
            if not open_ones():
                return
            time.sleep(0.1)
        if not target.control("GET", "invocations")["running"]["worker"]:
            target.leap(step_s)
    raise AssertionError(f"still open: {open_ones()}")


def test_fifty_identical_jobs_are_fifty_results_and_one_model_call(target: Target, nonce: str, tenant: str) -> None:
    jobs = [target.submit("summarize", {"text": f"ANN: identical {nonce}"}, tenant=tenant) for _ in range(50)]
    finish_with_time(target, jobs, tenant)
    assert {target.job(job_id, tenant)["status"] for job_id in jobs} == {"COMPLETED"}
    results = {target.get(f"/jobs/{job_id}/result", tenant).body for job_id in jobs}
    assert len(results) == 1
    assert len(target.model_calls(nonce)) == 1
    assert sum(target.job(job_id, tenant)["cost_micros"] > 0 for job_id in jobs) == 1


def test_another_tenant_pays_for_its_own_answer_and_sees_no_foreign_job(target: Target, nonce: str) -> None:
    task_input = {"text": f"ANN: shared words {nonce}"}
    first = target.submit("summarize", task_input, tenant="alpha")
    target.final(first, "alpha")
    second = target.submit("summarize", task_input, tenant="beta")
    assert target.final(second, "beta")["cost_micros"] > 0
    assert len(target.model_calls(nonce)) == 2
    for path in ("", "/result", "/events"):
        assert target.get(f"/jobs/{first}{path}", "beta").status == 404
    assert first not in {job["job_id"] for job in target.get("/jobs?limit=100", "beta").json()["jobs"]}


def test_one_key_of_two_tenants_is_two_jobs(target: Target, nonce: str) -> None:
    one = target.submit("summarize", {"text": nonce}, key=nonce, tenant="alpha")
    assert target.submit("summarize", {"text": nonce}, key=nonce, tenant="beta") != one


def test_fresh_asks_the_model_anew(target: Target, nonce: str) -> None:
    task_input = {"text": f"ANN: fresh {nonce}"}
    target.final(target.submit("summarize", task_input))
    target.final(target.submit("summarize", task_input, fresh=True))
    assert len(target.model_calls(nonce)) == 2


def test_a_permanent_error_is_one_call_and_a_letter_that_says_why(target: Target, nonce: str, tenant: str) -> None:
    target.script({"match": nonce, "error": "ValidationException"})
    job_id = target.submit("summarize", {"text": f"ANN: poison {nonce}"}, tenant=tenant)
    job = target.final(job_id, tenant)
    assert (job["status"], job["tries"], job["error"]["code"]) == ("FAILED", 1, "MODEL_PERMANENT")
    assert len(target.model_calls(nonce)) == 1
    letter = target.letter_about(job_id)
    assert letter["reason"] == "MODEL_PERMANENT"
    assert (letter["attempt"], letter["tries"], letter["cost_micros"]) == ("1", "1", "0")
    assert letter["tenant"] == tenant
    assert letter["body"]["payload"]["detail"].startswith("ValidationException")
    answer = target.get(f"/jobs/{job_id}/result", tenant)
    assert answer.status == 409
    assert "MODEL_PERMANENT" in answer.json()["detail"]


def test_five_throttles_burn_no_try(target: Target, nonce: str) -> None:
    target.script({"match": nonce, "error": "ThrottlingException", "times": 5})
    job_id = target.submit("summarize", {"text": f"ANN: throttled {nonce}"})
    finish_with_time(target, [job_id])
    job = target.job(job_id)
    assert (job["status"], job["tries"], job["waits"]) == ("COMPLETED", 1, 5)
    assert len(target.model_calls(nonce)) == 6


def test_an_error_that_passes_is_retried_by_the_policy_and_then_given_up(target: Target, nonce: str) -> None:
    target.script({"match": nonce, "error": "InternalServerException"})
    job_id = target.submit("summarize", {"text": f"ANN: broken {nonce}"})
    finish_with_time(target, [job_id])
    job = target.job(job_id)
    assert (job["status"], job["tries"], job["error"]["code"]) == ("FAILED", 5, "MODEL_TRANSIENT")
    assert len(target.model_calls(nonce)) == 5
    retried = [event for event in target.get(f"/jobs/{job_id}/events").json()["events"] if event["what"] == "retried"]
    assert retried


def test_a_first_answer_that_breaks_the_schema_is_asked_for_once_more(target: Target, nonce: str) -> None:
    target.script({"match": nonce, "answer": {"summary": "no participants"}, "times": 1})
    job_id = target.submit("summarize", {"text": f"ANN: schema {nonce}"})
    finish_with_time(target, [job_id])
    assert target.job(job_id)["status"] == "COMPLETED"
    assert target.job(job_id)["sample"] == 1
    assert len(target.model_calls(nonce)) == 2


def test_answers_that_always_break_the_schema_end_the_job_after_max_samples(target: Target, nonce: str) -> None:
    target.script({"match": nonce, "answer": "this is no JSON"})
    first = target.submit("summarize", {"text": f"ANN: always {nonce}"})
    finish_with_time(target, [first])
    assert target.job(first)["error"]["code"] == "OUTPUT_REJECTED"
    assert len(target.model_calls(nonce)) == 2
    second = target.submit("summarize", {"text": f"ANN: always {nonce}"})
    finish_with_time(target, [second])
    assert len(target.model_calls(nonce)) == 4  # a rejected answer is not served from the cache


@pytest.mark.parametrize("rule", [{"stop_reason": "max_tokens"}, {"stop_reason": "content_filtered"}])
def test_an_answer_that_is_not_whole_never_completes_a_job(target: Target, nonce: str, rule: dict[str, str]) -> None:
    target.script({"match": nonce, **rule})
    job_id = target.submit("summarize", {"text": f"ANN: cut {nonce}"})
    finish_with_time(target, [job_id])
    job = target.job(job_id)
    assert job["status"] == "FAILED"
    assert job["cost_micros"] > 0  # what was billed is on the record, though no answer is stored


def test_a_large_answer_is_stored_by_pointer(target: Target, nonce: str) -> None:
    answer = {"summary": "s" * 1_900, "participants": ["P" * 100] * 50, "action_items": ["a" * 490] * 19}
    target.script({"match": nonce, "answer": answer})
    jobs = [target.submit("summarize", {"text": f"ANN: large {nonce}"}) for _ in range(2)]
    finish_with_time(target, jobs)
    assert [target.get(f"/jobs/{job_id}/result").json() for job_id in jobs] == [answer, answer]
    assert len(target.model_calls(nonce)) == 1
    rows = target.client("dynamodb").scan(TableName=target.outputs["AnswersTableName"])["Items"]
    assert all(len(str(row)) < 12_000 for row in rows)


def test_a_job_runs_no_earlier_than_it_may(target: Target, nonce: str) -> None:
    now = target.control("GET", "clock")["now"]
    start = datetime.fromisoformat(now) + timedelta(days=3)
    job_id = target.submit("summarize", {"text": f"ANN: later {nonce}"}, not_before=start.isoformat())
    time.sleep(1)
    assert target.job(job_id)["status"] == "PENDING"
    target.leap(3 * 86_400 + 1)
    target.control("POST", "schedules/run", {"function": "sweep", "schedule": "stuck"})
    job = eventually(lambda: target.job(job_id), lambda job: job["status"] == "COMPLETED")
    assert job["tries"] == 1
