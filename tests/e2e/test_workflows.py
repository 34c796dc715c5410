"""One document, five analyses side by side, one result: whatever comes twice, fails, hangs, is cancelled or lost."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lambdas.contracts import workflows
from lambdas.contracts.validation import compile_schema
from lambdas.core import ids
from tests.e2e.target import ROOT, Target, eventually
from tests.e2e.test_ops import ops
from tests.e2e.test_streaming import Open, is_end, watcher
from tests.e2e.test_uploads import posted

__all__ = ["watcher"]  # a fixture

TYPE = "analyze-document"
WORKFLOW = workflows.load()[0][TYPE]
BRANCHES = sorted(branch.name for branch in WORKFLOW.branches)
THIRD = WORKFLOW.branches[2].name
LANDING = (ROOT / "samples" / "calls" / "apollo11-landing.txt").read_text("utf-8")
# how each analysis begins to say what it is for: behind the end of a document, one branch's question is told by it
ROLES = {
    "summarize-document": "You summarize documents",
    "extract-entities": "You find the names",
    "classify-document": "You sort documents",
    "score-sentiment": "You judge the sentiment",
    "flag-compliance": "You look through documents",
}
REFUSED = "ValidationException"
STALL_S = 50


def document(nonce: str) -> str:
    return f"{nonce}: the pump of line 4 is broken, says Anna Berg of Acme. We are sorry, says Bob. It ends: {nonce}"


def about(nonce: str, branch: str) -> str:
    """What only this branch's question about `document` contains."""
    return f"ends: {nonce}\n</document>\n{ROLES[branch]}"


def submitted(target: Target, nonce: str) -> str:
    return target.submit(TYPE, {"text": document(nonce)})


def progress(target: Target, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = target.job(job_id).get("progress", {"done": [], "failed": [], "total": 0})
    return found


def result(target: Target, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = target.get(f"/jobs/{job_id}/result").json()
    return found


# --- one result of all parts ---------------------------------------------------------------------------------------
def test_a_landing_on_the_moon_is_one_result_with_all_five_parts(target: Target) -> None:
    job = target.final(target.submit(TYPE, {"text": LANDING}))
    assert (job["status"], job["progress"]) == ("COMPLETED", {"done": BRANCHES, "failed": [], "total": 5})
    assert "partial" not in job
    found = result(target, job["job_id"])
    assert (found["complete"], found["missing"], sorted(found["parts"])) == (True, [], BRANCHES)
    for name, part in found["parts"].items():
        schema = json.loads((ROOT / "lambdas" / "tasks" / name.replace("-", "_") / "schema.json").read_text("utf-8"))
        assert compile_schema(schema["output"])(part) is None, name
        assert part["pieces"] == 1
    assert found["parts"]["extract-entities"]["entities"]
    assert len(target.get(f"/jobs/{job['job_id']}/result").body) == job["result_bytes"]


def test_the_timeline_tells_each_branch(target: Target, nonce: str) -> None:
    job_id = submitted(target, nonce)
    target.final(job_id)
    events = target.get(f"/jobs/{job_id}/events").json()["events"]
    whats = [event["what"] for event in events]
    assert whats == ["accepted", "claimed", "started", *["branch_done"] * 5, "completed", "handed_over"]
    assert sorted(event["note"] for event in events if event["what"] == "branch_done") == BRANCHES


def test_who_watches_is_told_how_far_it_is(target: Target, watcher: Open, nonce: str) -> None:
    if target.is_local:  # one after the other, so that none is told with the next
        target.script(*({"match": about(nonce, name), "delay_s": 10 * n} for n, name in enumerate(ROLES, 1)))
    job_id = submitted(target, nonce)
    if target.is_local:  # it has begun when she comes: else she is told so, and perhaps once more
        eventually(lambda: len(target.model_calls(nonce)), lambda count: count == len(ROLES))
    anna = watcher(job_id)
    assert anna.watch(job_id)["type"] == "watching"
    if target.is_local:
        while not is_end(frame := anna.frames[-1], job_id) and len(frame.get("done", ())) < len(ROLES):
            target.answer_after(10, "branch")
            anna.until(lambda frame: frame["type"] in ("progress", "final"))
    final = anna.final(job_id)
    frames = [frame for frame in anna.frames if frame["type"] == "progress"]
    settled = [len(frame["done"]) for frame in frames]
    assert settled == sorted(set(settled))
    assert len(settled) > 1
    assert {(frame["total"], *frame["failed"]) for frame in frames} == {(5,)}
    assert set(frames[-1]["done"]) <= set(BRANCHES)
    assert final["job"]["progress"] == {"done": BRANCHES, "failed": [], "total": 5}  # the last may come with the end
    assert final["result"]["complete"] is True
    shown = ops(target, "status", job_id)
    assert shown.returncode == 0
    assert "5 of 5 done" in shown.stdout


@pytest.mark.local_only
def test_branches_are_at_work_side_by_side(target: Target, nonce: str) -> None:
    """All questions are asked before the first is answered."""
    job_id = at_work(target, nonce)
    assert [call["status"] for call in target.model_calls(nonce)] == [None] * 5
    target.answer_after(STALL_S, "branch")
    assert target.final(job_id)["status"] == "COMPLETED"
    assert len(target.model_calls(nonce)) == 5


@pytest.mark.local_only
def test_a_document_of_1_1_mb_is_uploaded_read_in_pieces_and_says_so(target: Target, nonce: str) -> None:
    page = f"\n\n{nonce}: Anna Berg of Acme says that the pump of line 4 is broken. We will refund 40 EUR, says Bob."
    text = (page * (1_100_000 // len(page) + 1))[:1_100_000]
    grant = target.post("/uploads", {"type": TYPE, "content_type": "text/plain"}).json()
    before = len(target.model_calls())
    assert posted(target, grant["url"], grant["fields"], text.encode()).status in (200, 201, 204)
    job_id = grant["job_id"]
    eventually(lambda: target.get(f"/jobs/{job_id}").status, lambda status: status == 200)
    job = target.final(job_id)
    assert job["status"] == "COMPLETED", job
    pieces = {part["pieces"] for part in result(target, job_id)["parts"].values()}
    assert pieces == {24}
    assert len(target.model_calls()) - before == 5 * 24 + 1  # and one that sums up the summaries


# --- a branch that fails -------------------------------------------------------------------------------------------
@pytest.mark.local_only
def test_where_all_parts_are_wanted_one_that_fails_fails_the_job_and_a_retry_pays_for_it_alone(
    target: Target, nonce: str
) -> None:
    target.script({"match": about(nonce, THIRD), "error": REFUSED})
    job_id = submitted(target, nonce)
    job = target.final(job_id)
    assert (job["status"], job["error"]["code"]) == ("FAILED", "PARTS_MISSING")
    others = [name for name in BRANCHES if name != THIRD]
    assert job["progress"] == {"done": others, "failed": [THIRD], "total": 5}
    assert THIRD in job["error"]["message"]
    assert target.letter_about(job_id)["reason"] == "PARTS_MISSING"
    assert len(kept(target, job_id)) == 4
    paid = job["cost_micros"]
    assert len(target.model_calls(nonce)) == 5
    target.script()
    assert target.request("POST", f"/jobs/{job_id}/retry").status == 202
    job = eventually(lambda: target.job(job_id), lambda job: job["status"] in ("COMPLETED", "FAILED"))
    assert (job["status"], job["progress"]["done"]) == ("COMPLETED", BRANCHES)
    assert len(target.model_calls(nonce)) == 6
    assert job["cost_micros"] > paid
    assert result(target, job_id)["complete"] is True
    assert [one["status"] for one in executions(target, job_id)] == ["SUCCEEDED", "SUCCEEDED"]


def kept(target: Target, job_id: str) -> list[str]:
    """Names of the branches whose parts are stored."""
    prefix = f"results/{target.record(job_id)['tenant']['S']}/{job_id}/parts/"
    found = target.client("s3").list_objects_v2(Bucket=target.outputs["ResultsBucketName"], Prefix=prefix)
    return [entry["Key"].removeprefix(prefix).partition("/")[0] for entry in found.get("Contents", [])]


# --- whatever is delivered, ended or lost --------------------------------------------------------------------------
def executions(target: Target, job_id: str) -> list[dict[str, Any]]:
    """Of a job, in their order."""
    found = target.control("GET", "executions")["executions"]
    return [one for one in found if json.loads(one["input"])["job"] == job_id]


def calls_of(target: Target, execution: dict[str, Any]) -> Counter[str]:
    """How often each branch of an execution was called."""
    history = target.control("POST", "executions/history", {"name": execution["name"]})["events"]
    inputs = [json.loads(one["lambdaFunctionScheduledEventDetails"]["input"]) for one in history
              if one["type"] == "LambdaFunctionScheduled"]  # fmt: skip
    return Counter(one.get("branch", "collect") for one in inputs)


@pytest.mark.local_only
def test_a_job_that_is_delivered_five_times_is_one_execution_and_five_calls_of_branches(
    target: Target, nonce: str
) -> None:
    target.control("POST", "mappings/disable", {"function": "worker"})
    job_id = submitted(target, nonce)
    queue = target.outputs["WorkQueueUrl"]

    def lying() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = target.sqs.receive_message(
            QueueUrl=queue, VisibilityTimeout=0, MessageAttributeNames=["All"], MaxNumberOfMessages=10
        ).get("Messages", [])
        return [message for message in found if job_id in message["Body"]]

    (message, *_) = eventually(lying, bool)
    for _ in range(4):
        target.sqs.send_message(QueueUrl=queue, MessageBody=message["Body"], MessageGroupId="duplicates")
    target.control("POST", "mappings/enable", {"function": "worker"})
    assert target.final(job_id)["status"] == "COMPLETED"
    (execution,) = executions(target, job_id)
    assert calls_of(target, execution) == Counter([*BRANCHES, "collect"])
    assert execution["transitions"] == 5 + 3
    assert len(target.model_calls(nonce)) == 5


def at_work(target: Target, nonce: str) -> str:
    """A job whose branches all wait for the model's answer, until the clock is moved on."""
    target.script({"match": nonce, "delay_s": STALL_S})
    job_id = submitted(target, nonce)
    eventually(lambda: len(target.model_calls(nonce)), lambda count: count == 5)
    return job_id


@pytest.mark.local_only
def test_a_job_that_is_cancelled_stops_its_execution_and_what_was_under_way_is_booked(
    target: Target, nonce: str, tenant: str
) -> None:
    job_id = at_work(target, nonce)
    assert target.request("POST", f"/jobs/{job_id}/cancel").status == 202
    assert target.final(job_id)["status"] == "CANCELLED"
    eventually(lambda: executions(target, job_id)[0]["status"], lambda status: status == "ABORTED")
    target.answer_after(STALL_S, "branch")
    eventually(lambda: target.control("GET", "invocations")["running"]["branch"], lambda running: not running)
    job = target.job(job_id)
    assert (job["status"], len(executions(target, job_id)), len(target.model_calls(nonce))) == ("CANCELLED", 1, 5)
    target.script()
    others = target.submit(TYPE, {"text": document(nonce)}, tenant=tenant)
    assert target.final(others, tenant)["cost_micros"] == job["cost_micros"] > 0


def run_again(target: Target, job_id: str, nonce: str, *, runs: int = 1) -> None:
    """What became of a job whose first execution ended badly: a second one, and nothing is paid twice. `runs`: how many
    are counted as such."""

    def ended() -> bool:
        if target.job(job_id)["status"] == "PENDING":
            target.leap(60)
        return bool(target.job(job_id).get("handed_over"))

    eventually(ended, bool)
    assert target.job(job_id)["status"] == "COMPLETED"
    first, second = executions(target, job_id)
    record = target.record(job_id)
    assert [first["name"], second["name"]] == [ids.execution_name(job_id, run) for run in range(2)]
    assert (second["status"], record["run"]["N"]) == ("SUCCEEDED", "1")
    assert record.get("runs", {"N": "0"})["N"] == str(runs)
    paid = [call["sha256"] for call in target.model_calls(nonce) if call["status"] == 200]
    assert len(paid) == len(set(paid)) == 5


@pytest.mark.local_only
def test_an_execution_that_is_aborted_by_hand_is_followed_by_one_that_pays_nothing_twice(
    target: Target, nonce: str
) -> None:
    """Its branches are at work all the same, and what they bring is found."""
    job_id = at_work(target, nonce)
    (execution,) = executions(target, job_id)
    target.client("stepfunctions").stop_execution(executionArn=execution["executionArn"])
    target.answer_after(STALL_S, "branch")
    run_again(target, job_id, nonce)
    assert executions(target, job_id)[0]["status"] == "ABORTED"


@pytest.mark.local_only
def test_an_execution_whose_time_is_over_is_followed_by_one_that_pays_for_what_is_missing_alone(
    target: Target, nonce: str
) -> None:
    """It had only waited, for a model that was throttled: nothing of that is counted."""
    target.script({"match": about(nonce, THIRD), "error": "ThrottlingException"})
    job_id = submitted(target, nonce)
    eventually(lambda: len(progress(target, job_id)["done"]), lambda count: count == 4)
    eventually(lambda: target.control("GET", "invocations")["running"]["branch"], lambda running: not running)
    target.leap(WORKFLOW.timeout_s + 1)
    target.script()
    run_again(target, job_id, nonce, runs=0)
    assert executions(target, job_id)[0]["status"] == "TIMED_OUT"
    assert target.job(job_id)["tries"] == 1


@pytest.mark.local_only
def test_an_end_that_nobody_was_told_of_the_sweep_finds(target: Target, nonce: str) -> None:
    job_id = at_work(target, nonce)
    (execution,) = executions(target, job_id)
    target.control("POST", "executions/events", {"match": execution["name"]})
    target.control("POST", "executions/stop", {"name": execution["name"]})
    eventually(lambda: target.control("GET", "executions/events")["lost"], bool)
    target.control("DELETE", "executions/events")
    target.answer_after(STALL_S, "branch")
    eventually(lambda: target.control("GET", "invocations")["running"]["branch"], lambda running: not running)
    assert target.job(job_id)["status"] == "PROCESSING"
    target.leap(WORKFLOW.timeout_s + 120)
    target.control("POST", "schedules/run", {"function": "sweep", "schedule": "stuck"})
    run_again(target, job_id, nonce)


@pytest.mark.local_only
def test_three_documents_at_once_are_three_results(target: Target, nonce: str) -> None:
    with ThreadPoolExecutor(3) as threads:
        jobs = list(threads.map(lambda n: target.submit(TYPE, {"text": f"{nonce} {n}: {LANDING}"}), range(3)))
    assert {job["status"] for job in target.finals(jobs)} == {"COMPLETED"}
    assert len(target.model_calls(nonce)) == 15
