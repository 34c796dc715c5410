"""Dead letters in the hands of operators: brought back each way, repaired, discarded; and no other message does it."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING
from tests.builders import any_envelope, any_hint_body
from tests.e2e.target import ROOT, eventually
from tests.simulation.own_tasks import LiveStack, Record, running

SOURCE = {
    "tenant": "local", "task": "ask", "scheme": "hmac-sha256", "secret": "crm", "header": "x-signature",
    "id": "/id", "input": "/call",
}  # fmt: skip
QUEUES = {"work": "WorkQueueUrl", "urgent": "UrgentQueueUrl", "inbox": "InboxQueueUrl"}
BOXES = {"work": "WorkDlqUrl", "urgent": "UrgentDlqUrl", "inbox": "InboxDlqUrl"}
RECEIVES = 5


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    sources = f"sources={json.dumps({'crm': SOURCE})}"
    with running(tmp_path_factory.mktemp("code"), "deadline_s=3600", sources) as live:
        live.client("secretsmanager").create_secret(Name="crm", SecretString="a secret of the test")
        yield live


@pytest.fixture
def live(house: LiveStack) -> Iterator[LiveStack]:
    """The same, with no letters lying about."""
    house.purge(*BOXES.values(), *QUEUES.values())
    yield house
    house.calm()


def put(live: LiveStack, queue: str, *bodies: str, **attributes: str) -> None:
    told = {name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()}
    for body in bodies:
        live.sqs.send_message(
            QueueUrl=live.outputs[queue], MessageBody=body, MessageGroupId="anybody", MessageAttributes=told
        )


def quiet(live: LiveStack) -> None:
    eventually(
        lambda: [live.depth(queue) for queue in QUEUES.values()],
        lambda depths: all(depth["visible"] + depth["in_flight"] == 0 for depth in depths),
    )


def admin(live: LiveStack, method: str, path: str, body: Any = None) -> Any:
    raw = None if body is None else json.dumps(body).encode()
    answer = eventually(  # a letter that somebody else has in hand is a 503 that asks to come again
        lambda: live.request(method, f"/admin/{path}", raw, {"content-type": "application/json"}),
        lambda answer: answer.status != 503,
    )
    assert answer.status in (200, 202), answer
    return answer.json()


def groups(live: LiveStack, queue: str = "work") -> list[dict[str, Any]]:
    """All of them: what a sweep looks at is hidden from a listing, which says that it is not complete."""
    seen = eventually(lambda: admin(live, "GET", f"dead-letters?queue={queue}"), lambda seen: seen["complete"])
    found: list[dict[str, Any]] = seen["groups"]
    return found


def redriven(live: LiveStack, **what: Any) -> dict[str, Any]:
    """A redrive, from its order to its end. Whatever a canary needs happens meanwhile, by itself."""
    started = admin(live, "POST", "dead-letters/redrive", what)
    progress: dict[str, Any] = eventually(
        lambda: admin(live, "GET", f"redrives/{started['redrive_id']}"), lambda seen: seen["state"] != "RUNNING"
    )
    return progress


# --- a job that fails until its attempts are used up -------------------------------------------------------------
def dead_jobs(live: LiveStack, nonce: str, number: int = 1, **more: Any) -> list[Record]:
    """FAILED, each with its letter; what they miss is at `mend`."""
    job_ids = [live.submit("mended", {"prompt": f"{nonce} {n}", "key": nonce}, **more) for n in range(number)]
    jobs = live.settle(*job_ids)
    assert {(job["status"], job["tries"]) for job in jobs} == {(FAILED, 2)}
    assert len(live.model_calls(nonce)) == number, "the second try has used the answer of the first"
    return jobs


def mend(live: LiveStack, nonce: str, tenant: str = "local") -> None:
    live.client("s3").put_object(Bucket=live.outputs["InputsBucketName"], Key=f"context/{tenant}/{nonce}", Body=b"here")


def completed(live: LiveStack, nonce: str, jobs: Sequence[Record]) -> None:
    """All of them, in their second opening, without another call of the model."""
    done = live.pass_time([job["pk"] for job in jobs], lambda job: job["run"] == 1 and "handed_over_at" in job)
    assert {(job["status"], job["tries"]) for job in done} == {(COMPLETED, 1)}
    assert {job["cost"] for job in done} == {job["cost"] for job in jobs}
    assert len(live.model_calls(nonce)) == len(jobs)


@pytest.mark.parametrize("urgent", [False, True])
def test_it_completes_when_it_was_fixed_and_redriven_by_the_api(live: LiveStack, nonce: str, urgent: bool) -> None:
    jobs = dead_jobs(live, nonce, 3, **({"urgent": True} if urgent else {}))
    (group,) = groups(live, "urgent" if urgent else "work")
    assert (group["count"], group["reason"], group["task"]) == (3, "TASK_ERROR", "mended")
    assert group["cost_micros"] == sum(job["cost"] for job in jobs) > 0
    mend(live, nonce)
    progress = redriven(live, group=group["group"])
    assert (progress["state"], progress["moved"]) == ("DONE", 3)
    completed(live, nonce, jobs)
    assert groups(live, group["queue"]) == []


def test_it_completes_when_it_was_fixed_and_redriven_by_the_command_line(live: LiveStack, nonce: str) -> None:
    jobs = dead_jobs(live, nonce)
    mend(live, nonce)
    letter = f"{jobs[0]['pk']}.{jobs[0]['attempt']}.FAILED"
    command = [sys.executable, "-m", "ops", "redrive", letter, "--url", live.api, "--json"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["moved"] == 1
    completed(live, nonce, jobs)


def test_it_completes_when_its_letter_is_moved_back_with_the_api_of_aws(live: LiveStack, nonce: str) -> None:
    jobs = dead_jobs(live, nonce)
    source = live.arn("WorkDlqUrl")
    live.sqs.start_message_move_task(SourceArn=source)
    (task,) = live.sqs.list_message_move_tasks(SourceArn=source)["Results"]
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    mend(live, nonce)
    live.sqs.start_message_move_task(SourceArn=source, DestinationArn=live.arn("WorkQueueUrl"))
    completed(live, nonce, jobs)


def test_no_duplicate_and_no_letter_of_an_earlier_attempt_reopens_it(live: LiveStack, nonce: str) -> None:
    """Neither by themselves nor in a redrive: there they are counted as stale, and go."""
    (first,) = dead_jobs(live, nonce)
    (old,) = live.empty("WorkDlqUrl")
    put(live, "WorkQueueUrl", old["Body"])  # the second opening, which fails as the first did
    (second,) = live.pass_time([first["pk"]], lambda job: job["run"] == 1 and "handed_over_at" in job)
    assert second["status"] == FAILED
    put(live, "WorkQueueUrl", old["Body"], *(any_hint_body(first["pk"], attempt=n) for n in range(5)))
    quiet(live)
    assert live.found(first["pk"]) == second
    put(live, "WorkDlqUrl", old["Body"])
    (group,) = groups(live)
    assert (group["count"], group["stale"]) == (2, 1)
    mend(live, nonce)
    progress = redriven(live, group=group["group"])
    assert (progress["moved"], progress["stale"]) == (1, 1)
    (done,) = live.pass_time([first["pk"]], lambda job: job["run"] == 2 and "handed_over_at" in job)
    assert (done["status"], len(live.model_calls(nonce))) == (COMPLETED, 1)
    quiet(live)
    assert live.found(first["pk"]) == done


def test_the_canary_stops_a_redrive_of_what_was_not_fixed(live: LiveStack, nonce: str) -> None:
    jobs = dead_jobs(live, nonce, 4)
    (group,) = groups(live)
    started = admin(live, "POST", "dead-letters/redrive", {"group": group["group"], "canary": 1})
    (canary,) = eventually(
        lambda: [job for job in jobs if live.found(job["pk"])["run"] == 1], lambda found: len(found) == 1
    )
    live.pass_time([canary["pk"]], lambda job: job["status"] == FAILED and "handed_over_at" in job)
    progress = eventually(
        lambda: admin(live, "GET", f"redrives/{started['redrive_id']}"), lambda seen: seen["state"] != "RUNNING"
    )
    assert (progress["state"], progress["moved"]) == ("STOPPED", 1)
    assert f"job {canary['pk']} is FAILED: TASK_ERROR" in progress["why"]
    assert [live.found(job["pk"])["run"] for job in jobs if job["pk"] != canary["pk"]] == [0, 0, 0]


def test_the_canary_lets_the_rest_go_when_it_completes(live: LiveStack, nonce: str) -> None:
    jobs = dead_jobs(live, nonce, 4)
    (group,) = groups(live)
    mend(live, nonce)
    progress = redriven(live, group=group["group"], canary=1)
    assert (progress["state"], progress["moved"], len(progress["canaries"])) == ("DONE", 4, 1)
    completed(live, nonce, jobs)


@pytest.mark.parametrize("operation", ["SendMessageBatch", "DeleteMessageBatch", "UpdateItem"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_redrive_that_is_killed_goes_on_and_every_job_completes_once(
    live: LiveStack, nonce: str, operation: str, when: str
) -> None:
    jobs = dead_jobs(live, nonce, 3)
    (group,) = groups(live)
    mend(live, nonce)
    fault = {"function": "redrive", "kind": "crash", "when": when, "operation": operation, "nth": 1}
    live.control("POST", "faults", fault)
    started = admin(live, "POST", "dead-letters/redrive", {"group": group["group"]})
    eventually(lambda: live.control("GET", "faults")["faults"], lambda faults: faults[0]["fired"] == 1)
    live.control("DELETE", "faults")
    for _ in range(5):  # Lambda's pause before it repeats, and until what was hidden is visible again
        live.leap(181)
    progress = eventually(
        lambda: admin(live, "GET", f"redrives/{started['redrive_id']}"), lambda seen: seen["state"] != "RUNNING"
    )
    assert progress["state"] == "DONE"
    if groups(live):  # they were hidden while it went on: asked for once more
        redriven(live, group=group["group"])
    completed(live, nonce, jobs)
    assert groups(live) == []


# --- what is malformed ---------------------------------------------------------------------------------------------
def test_a_malformed_message_is_shown_repaired_and_sent_back(live: LiveStack, nonce: str) -> None:
    live.control("POST", "pause", {"function": "worker"})
    job_id = live.submit("ask", {"prompt": nonce})
    eventually(live.depth, lambda depth: depth["visible"] == 1)
    live.empty("WorkQueueUrl")  # its own message is lost
    put(live, "WorkQueueUrl", json.dumps(any_envelope(run_id=job_id, tenant_id="local", payload={"attempt": "none"})))
    live.control("POST", "resume", {"function": "worker"})
    (waiting,) = eventually(lambda: admin(live, "GET", "review?status=open")["reviews"], bool)
    letter = admin(live, "GET", f"dead-letters/{waiting['letter_id']}")
    assert (letter["reason"], letter["value"]["run_id"]) == ("INVALID_ENVELOPE", job_id)
    bad = [{"op": "replace", "path": "/tenant_id", "value": "globex"}]
    raw = json.dumps({"patch": bad, "reason": "no"}).encode()
    assert live.request("POST", f"/admin/dead-letters/{waiting['letter_id']}/repair", raw).status == 422
    patch = [{"op": "replace", "path": "/payload/attempt", "value": 0}]
    told = admin(
        live, "POST", f"dead-letters/{waiting['letter_id']}/repair", {"patch": patch, "reason": "a typing error"}
    )
    assert (told["status"], told["done"]) == ("repaired", True)
    (job,) = live.settle(job_id)
    assert (job["status"], job["tries"]) == (COMPLETED, 1)
    assert "repaired" in [line["what"] for line in job["history"]]
    (review,) = [one for one in admin(live, "GET", "review?status=repaired")["reviews"] if one.get("job_id") == job_id]
    assert (review["why"], review["who"]) == ("a typing error", told["who"])
    assert admin(live, "GET", "review?status=open")["reviews"] == []


def test_an_event_that_was_refused_becomes_a_job_when_it_is_repaired(live: LiveStack, nonce: str) -> None:
    """By its review, not by its signature, which is that of another body."""
    event = {"id": nonce, "call": {"text": "the wrong field"}}
    put(live, "InboxQueueUrl", json.dumps(event), source="crm", signature="not ours", request_id=nonce)
    (waiting,) = eventually(lambda: admin(live, "GET", "review?status=open")["reviews"], bool)
    assert (waiting["queue"], waiting["reason"]) == ("inbox", "BAD_SIGNATURE")
    path = f"dead-letters/{waiting['letter_id']}/repair"
    patch = [{"op": "remove", "path": "/call/text"}, {"op": "add", "path": "/call/prompt", "value": nonce}]
    admin(live, "POST", path, {"patch": patch, "reason": "their old form, signed by their old key"})
    (found,) = eventually(
        lambda: [
            job
            for job in live.get("/jobs?type=ask").json()["jobs"]
            if job.get("source") == "crm" and live.model_calls(nonce)
        ],
        bool,
    )[:1]
    (job,) = live.settle(found["job_id"])
    assert (job["status"], job["source"]) == (COMPLETED, "crm")
    quiet(live)
    assert groups(live, "inbox") == []


def test_a_letter_is_discarded_with_a_reason_and_does_not_come_back(live: LiveStack, nonce: str) -> None:
    (job,) = dead_jobs(live, nonce)
    letter = f"{job['pk']}.{job['attempt']}.FAILED"
    told = admin(live, "POST", f"dead-letters/{letter}/discard", {"reason": "a test call"})
    assert (told["status"], told["job_id"]) == ("discarded", job["pk"])
    live.leap(181)
    assert (groups(live), live.found(job["pk"])["status"]) == ([], FAILED)
    (review,) = [one for one in admin(live, "GET", "review?status=discarded")["reviews"] if one["letter_id"] == letter]
    assert review["why"] == "a test call"


# --- what died without one real attempt ------------------------------------------------------------------------------
def die_of_receives(live: LiveStack, queue: str) -> None:
    """As throttled workers let messages die: received, and never seen by any code."""
    for _ in range(RECEIVES + 1):
        live.sqs.receive_message(QueueUrl=live.outputs[queue], MaxNumberOfMessages=10, VisibilityTimeout=0)


def swept(live: LiveStack, *parts: str) -> dict[str, Any]:
    started = admin(live, "POST", "sweeps", {"parts": list(parts)})
    certificate: dict[str, Any] = eventually(
        lambda: admin(live, "GET", f"sweeps/{started['sweep_id']}"), lambda seen: seen["state"] != "RUNNING"
    )
    return certificate


def test_a_job_that_no_worker_ever_saw_is_sent_again_by_the_sweep(live: LiveStack, nonce: str) -> None:
    """SQS-03."""
    live.control("POST", "pause", {"function": "worker"})
    job_id = live.submit("ask", {"prompt": nonce})
    eventually(live.depth, lambda depth: depth["visible"] == 1)
    die_of_receives(live, "WorkQueueUrl")
    (group,) = groups(live)
    assert (group["count"], group["zero_attempts"], live.found(job_id)["status"]) == (1, True, PENDING)
    assert swept(live, "letters")["state"] == "DONE"
    assert (groups(live), live.depth()["visible"]) == ([], 1)
    live.control("POST", "resume", {"function": "worker"})
    (job,) = live.settle(job_id)
    assert (job["status"], job["tries"], len(live.model_calls(nonce))) == (COMPLETED, 1, 1)


def test_an_event_that_ingest_never_saw_is_put_back_by_the_sweep(live: LiveStack) -> None:
    live.control("POST", "pause", {"function": "ingest"})
    put(live, "InboxQueueUrl", json.dumps({"id": uuid.uuid4().hex}), source="crm", signature="x")
    die_of_receives(live, "InboxQueueUrl")
    (group,) = groups(live, "inbox")
    assert (group["count"], group["zero_attempts"]) == (1, True)
    swept(live, "letters")
    assert groups(live, "inbox") == []
    live.control("POST", "resume", {"function": "ingest"})
    (judged,) = eventually(lambda: groups(live, "inbox"), bool)
    assert judged["reason"] == "BAD_SIGNATURE"


def test_letters_whose_job_has_gone_on_go_with_a_sweep(live: LiveStack, nonce: str) -> None:
    (job,) = dead_jobs(live, nonce)
    mend(live, nonce)
    assert live.post(f"/jobs/{job['pk']}/retry", {}).status == 202
    completed(live, nonce, [job])
    swept(live, "letters")
    assert [group["stale"] for group in groups(live)] == [1]
    live.leap(timedelta(hours=2).total_seconds())
    swept(live, "letters")
    assert groups(live) == []
