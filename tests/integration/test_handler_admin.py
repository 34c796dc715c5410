"""Operators at /admin: what is dead, bringing it back, repairing and discarding, and what was decided."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from lambdas.contracts import names
from lambdas.core.canonical import sha256
from lambdas.core.operator import PATCH_CHARS_MAX
from lambdas.core.ports import Unavailable
from tests.builders import any_delivery_hint_body, any_envelope, any_event_body, unreadable_found
from tests.integration.cloud import Cloud
from tests.integration.conftest import Lines
from tests.integration.events import ACME, IAM
from tests.integration.operators import EVE, Operator, operator
from tests.integration.records import an_id, completed, failed, pending

__all__ = ["operator"]

LIST, ONE = "GET /admin/dead-letters", "GET /admin/dead-letters/{id}"
REPAIR, DISCARD = "POST /admin/dead-letters/{id}/repair", "POST /admin/dead-letters/{id}/discard"
REDRIVE, PROGRESS, REVIEW = "POST /admin/dead-letters/redrive", "GET /admin/redrives/{id}", "GET /admin/review"
BROKEN = json.dumps(any_envelope(payload={"attempt": "none"}))
FIX = [{"op": "replace", "path": "/payload/attempt", "value": 0}]


def broken(operator: Operator, job_id: str, url: str | None = None) -> str:
    """A message about this job that nobody can read, as its letter; the letter's id."""
    body = json.dumps(any_envelope(run_id=job_id, payload={"attempt": "none"}))
    envelope = json.loads(unreadable_found(body, "INVALID_ENVELOPE", "/payload/attempt: must be integer").body)
    operator.bury(envelope, url, event_type="job.unreadable", reason="INVALID_ENVELOPE")
    return str(envelope["event_id"])


# --- who ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("authorizer", [ACME, None, {"iam": {"accountId": "1"}}], ids=["a token", "nobody", "no ARN"])
def test_only_who_signs_is_an_operator(operator: Operator, authorizer: Any) -> None:
    status, answer = operator.ask(LIST, authorizer=authorizer)
    assert (status, answer["status"]) == (403, 403)


# --- what is dead ------------------------------------------------------------------------------------
def test_dead_letters_are_told_in_groups_and_stay_where_they_are(operator: Operator) -> None:
    for _ in range(12):
        operator.die(failed(pk=an_id(), cost=3))
    job = failed()
    operator.die(job)
    operator.cloud.put(completed(pk=job["pk"], attempt=3))
    broken(operator, an_id())
    status, found = operator.ask(LIST)
    assert status == 200
    jobs, unreadable = found["groups"]
    assert (jobs["count"], jobs["reason"], jobs["queue"], jobs["task"]) == (13, "MODEL_PERMANENT", "work", "summarize")
    assert (jobs["stale"], jobs["zero_attempts"], jobs["schema"]) == (1, False, 1)
    assert jobs["cost_micros"] == 39
    assert (unreadable["count"], unreadable["reason"]) == (1, "INVALID_ENVELOPE")
    assert (found["scanned"], found["complete"]) == (14, True)
    assert operator.dead() == 14


def test_a_queue_may_be_asked_alone(operator: Operator) -> None:
    operator.die(failed())
    assert operator.ask(LIST, query={"queue": "inbox"})[1]["groups"] == []
    assert len(operator.ask(LIST, query={"queue": "work"})[1]["groups"]) == 1


@pytest.mark.parametrize("query", [{"queue": "plan"}, {"limit": "5"}])
def test_a_wrong_parameter_is_400(operator: Operator, query: dict[str, str]) -> None:
    assert operator.ask(LIST, query=query)[0] == 400
    assert operator.ask(ONE, id="x", query=query)[0] == 400


def test_one_letter_is_shown_whole_and_stays(operator: Operator) -> None:
    job = operator.die(failed())
    status, found = operator.ask(ONE, id=f"{job['pk']}.1.FAILED")
    assert (status, found["job_id"], found["standing"], found["tries"]) == (200, job["pk"], "due", 1)
    assert found["value"]["payload"]["reason"] == "MODEL_PERMANENT"
    assert (operator.dead(), operator.ask(ONE, id="nothing")[0]) == (1, 404)


def test_a_queue_that_does_not_answer_is_503(operator: Operator, cloud: Cloud) -> None:
    cloud.wire.refuse("ReceiveMessage", "AccessDenied", 403)
    assert operator.ask(LIST)[0] == 503


# --- redrive -----------------------------------------------------------------------------------------
def test_a_group_is_brought_back(operator: Operator, cloud: Cloud) -> None:
    jobs = [operator.die(failed(pk=an_id())) for _ in range(12)]
    (group,) = operator.ask(LIST)[1]["groups"]
    status, started = operator.ask(REDRIVE, {"group": group["group"], "rate": 1_000})
    assert (status, started["state"], operator.dead()) == (202, "RUNNING", 12)
    operator.run()
    status, progress = operator.ask(PROGRESS, id=started["redrive_id"])
    assert (status, progress["state"], progress["moved"], progress["by"]) == (200, "DONE", 12, EVE)
    sent = cloud.receive(cloud.work_url)
    assert {json.loads(one["Body"])["run_id"] for one in sent} == {job["pk"] for job in jobs}
    assert {one["MessageAttributes"]["reason"]["StringValue"] for one in sent} == {"MODEL_PERMANENT"}
    assert operator.dead() == 0


def test_letters_are_brought_back_to_the_queue_that_they_belong_to(operator: Operator, cloud: Cloud) -> None:
    outputs = cloud.stack.outputs
    envelope = json.loads(unreadable_found('{"id": 1}').body)
    envelope["payload"]["attributes"] = {"source": "crm", "received_ms": "1795966244123"}
    operator.bury(envelope, outputs["InboxDlqUrl"], event_type="job.unreadable", reason="BAD_SIGNATURE")
    operator.ask(REDRIVE, {"ids": [envelope["event_id"]]})
    assert operator.run()["moved"] == 1
    (event,) = cloud.receive(outputs["InboxQueueUrl"])
    assert event["Body"] == '{"id": 1}'
    assert {name: one["StringValue"] for name, one in event["MessageAttributes"].items()} == {
        "source": "crm", "received_ms": "1795966244123",
    }  # fmt: skip
    assert (operator.dead(outputs["InboxDlqUrl"]), cloud.receive(cloud.work_url)) == (0, [])


def test_what_was_to_be_delivered_is_listed_with_its_reason_and_goes_back_to_deliveries(
    operator: Operator, cloud: Cloud
) -> None:
    queue, dead = (cloud.stack.outputs[name] for name in ("DeliveriesQueueUrl", "DeliveriesDlqUrl"))
    for body in (any_event_body(), any_delivery_hint_body()):
        operator.bury(body, dead, tenant="acme")
    operator.bury(unreadable_found("no event of ours").body, dead, event_type="job.unreadable")
    groups = operator.ask(LIST, query={"queue": "deliveries"})[1]["groups"]
    assert sorted((one["reason"], one["task"]) for one in groups if one["task"]) == [
        ("SENT_HERE", "delivery.dispatched"), ("SENT_HERE", "job.completed"),
    ]  # fmt: skip
    assert {one["reason"] for one in groups} == {"SENT_HERE", "MALFORMED_MESSAGE"}
    (group,) = [one["group"] for one in groups if one["task"] == "job.completed"]
    operator.ask(REDRIVE, {"group": group})
    assert operator.run()["moved"] == 1
    (event,) = cloud.receive(queue)
    assert event["Body"] == any_event_body()
    assert event["MessageAttributes"]["tenant"]["StringValue"] == "acme"
    (broken,) = [one["ids"][0] for one in groups if one["reason"] == "MALFORMED_MESSAGE"]
    patch = [{"op": "replace", "path": "", "value": any_delivery_hint_body()}]
    assert operator.ask(REPAIR, {"patch": patch, "reason": "it was cut"}, id=broken)[0] == 200
    assert [one["Body"] for one in cloud.receive(queue)] == [any_delivery_hint_body()]
    assert operator.dead(dead) == 1


def test_the_log_says_who_has_started_which_redrive(operator: Operator, lines: Lines) -> None:
    _, started = operator.ask(REDRIVE, {"ids": ["nothing"]})
    (line,) = lines.of("operated")
    assert (line["who"], line["about"]) == (EVE, started["redrive_id"])


def test_it_goes_on_in_another_invocation_when_its_time_is_over(operator: Operator, cloud: Cloud) -> None:
    for _ in range(3):
        operator.die(failed(pk=an_id()))
    (group,) = operator.ask(LIST)[1]["groups"]
    _, started = operator.ask(REDRIVE, {"group": group["group"], "rate": 2, "canary": 1})
    assert operator.redrive.handler(operator.started.pop()[1], _context(20.5))["state"] == "RUNNING"
    assert [payload["round"] for _, payload in operator.started] == [2]
    (name, payload) = operator.started[0]
    assert (name, payload["redrive_id"]) == ("redrive-function", started["redrive_id"])


def test_sqs_14_what_could_not_be_sent_stays_a_letter(operator: Operator, cloud: Cloud, pauses: list[float]) -> None:
    operator.die(failed())
    (group,) = operator.ask(LIST)[1]["groups"]
    operator.ask(REDRIVE, {"group": group["group"]})
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403)
    answer = operator.run()
    assert (answer["state"], answer["failed"], answer["moved"]) == ("FAILED", 1, 0)
    assert operator.dead() == 1


def test_a_dry_run_moves_nothing(operator: Operator) -> None:
    job = operator.die(failed())
    operator.ask(REDRIVE, {"ids": [f"{job['pk']}.1.FAILED"], "dry_run": True})
    answer = operator.run()
    assert (answer["state"], answer["would_move"], operator.dead()) == ("DONE", 1, 1)


WRONG: list[Any] = [
    "no JSON", {}, {"group": "0" * 16, "ids": ["a"]}, {"group": "x"}, {"ids": []}, {"ids": ["a/b"]},
    {"ids": ["a"] * 101},
    {"group": "0" * 16, "rate": 0}, {"group": "0" * 16, "rate": "1"}, {"group": "0" * 16, "canary": 0},
    {"group": "0" * 16, "queue": "plan"}, {"group": "0" * 16, "speed": 1}, {"group": "0" * 16, "dry_run": "yes"}, [],
]  # fmt: skip


@pytest.mark.parametrize("body", WRONG, ids=repr)
def test_what_is_no_request_for_a_redrive_is_400_and_starts_nothing(operator: Operator, body: Any) -> None:
    status, answer = operator.ask(REDRIVE, body)
    assert (status, operator.started) == (400, [])
    assert "detail" in answer


@pytest.mark.parametrize("redrive_id", ["0" * 32, "x", "../work"])
def test_an_unknown_redrive_is_404(operator: Operator, redrive_id: str) -> None:
    assert operator.ask(PROGRESS, id=redrive_id)[0] == 404


def test_a_redrive_that_cannot_be_started_is_503_and_says_so_afterwards(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, cloud: Cloud
) -> None:
    def unable(*_: Any) -> None:
        raise Unavailable("no")

    monkeypatch.setattr("lambdas.adapters.functions.LambdaFunctions.start", unable)
    assert operator.ask(REDRIVE, {"ids": ["a"]})[0] == 503
    items = cloud.client("dynamodb").scan(TableName=cloud.jobs_table)["Items"]
    assert [item["state"]["S"] for item in items] == ["FAILED"]


def test_a_redrive_whose_record_somebody_spoilt_is_said_to_be_unreadable(
    operator: Operator, cloud: Cloud, lines: Lines
) -> None:
    _, started = operator.ask(REDRIVE, {"ids": ["a"]})
    cloud.client("dynamodb").update_item(
        TableName=cloud.jobs_table,
        Key={"pk": {"S": f"redrive#{started['redrive_id']}"}, "sk": {"S": names.REDRIVE_SK}},
        UpdateExpression="SET odd = :null",
        ExpressionAttributeValues={":null": {"NULL": True}},
    )
    status, answer = operator.ask(PROGRESS, id=started["redrive_id"])
    assert (status, answer["title"]) == (503, "A record cannot be read")
    assert started["redrive_id"] in lines.of("unreadable_record")[0]["detail"]


# --- repair and discard --------------------------------------------------------------------------------
def test_a_message_is_repaired_sent_back_and_the_review_says_by_whom_and_why(
    operator: Operator, cloud: Cloud, lines: Lines
) -> None:
    job = cloud.put(pending())
    letter = broken(operator, job["pk"])
    status, answer = operator.ask(REPAIR, {"patch": FIX, "reason": "the sender was fixed"}, id=letter)
    assert (status, answer["status"], answer["done"], answer["who"]) == (200, "repaired", True, EVE)
    (sent,) = cloud.bodies(cloud.work_url)
    assert (sent["run_id"], sent["payload"]["attempt"]) == (job["pk"], 0)
    assert operator.dead() == 0
    line = cloud.record(job["pk"])["history"][-1]
    assert (line["what"], line["note"]) == ("repaired", f"by {EVE}: the sender was fixed")
    (review,) = operator.ask(REVIEW, query={"status": "repaired"})[1]["reviews"]
    assert (review["letter_id"], review["who"], review["why"]) == (letter, EVE, "the sender was fixed")
    assert json.loads(review["patch"]) == FIX
    assert operator.ask(REPAIR, {"patch": FIX, "reason": "the sender was fixed"}, id=letter)[0] == 200
    assert cloud.bodies(cloud.work_url) == []
    assert lines.of("operated")[0]["who"] == EVE


def test_a_review_leaves_the_stream_and_the_status_alone(operator: Operator, cloud: Cloud) -> None:
    job = cloud.put(pending())
    operator.ask(REPAIR, {"patch": FIX, "reason": "why"}, id=broken(operator, job["pk"]))
    after = cloud.record(job["pk"])
    assert {name for name in after if after[name] != job.get(name)} == {"history"}


def test_an_event_is_sent_back_with_the_review_that_ingest_looks_for(operator: Operator, cloud: Cloud) -> None:
    outputs = cloud.stack.outputs
    operator.bury("{cut", outputs["InboxDlqUrl"], source="crm", signature="s")
    (waiting,) = operator.ask(REVIEW, query={"status": "open"})[1]["reviews"]
    patch = [{"op": "replace", "path": "", "value": {"id": 1}}]
    assert operator.ask(REPAIR, {"patch": patch, "reason": "cut"}, id=waiting["letter_id"])[0] == 200
    (event,) = cloud.receive(outputs["InboxQueueUrl"])
    review_id = event["MessageAttributes"][names.INBOX_REVIEW]["StringValue"]
    key = {"pk": {"S": names.REVIEW_PK}, "sk": {"S": review_id}}
    item = cloud.client("dynamodb").get_item(TableName=cloud.jobs_table, Key=key)["Item"]
    assert (item["status"]["S"], item["body_sha"]["S"]) == ("repaired", sha256(event["Body"]))
    assert int(item["expires_at"]["N"]) > time.time() + 80 * 86_400


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        ([{"op": "replace", "path": "/tenant_id", "value": "globex"}, *FIX], 422),
        ([{"op": "replace", "path": "/payload/attempt", "value": "x"}], 422),
        ([{"op": "explode"}], 422),
        ([{"op": "add", "path": "/payload/x", "value": "x" * PATCH_CHARS_MAX}], 422),
        ([], 400),
        ("x", 400),
        (["x"], 400),
    ],
)
def test_a_repair_that_does_not_do_changes_nothing(operator: Operator, cloud: Cloud, patch: Any, status: int) -> None:
    letter = broken(operator, an_id())
    assert operator.ask(REPAIR, {"patch": patch, "reason": "why"}, id=letter)[0] == status
    assert (operator.dead(), cloud.bodies(cloud.work_url)) == (1, [])
    assert operator.ask(REVIEW, query={"status": "repaired"})[1]["reviews"] == []


def test_a_letter_is_discarded_with_a_reason_and_its_job_stays_failed(operator: Operator, cloud: Cloud) -> None:
    job = operator.die(failed())
    letter = f"{job['pk']}.1.FAILED"
    for wrong in ({}, {"reason": ""}, {"reason": "  "}, {"reason": "x", "patch": FIX}):
        assert operator.ask(DISCARD, wrong, id=letter)[0] == 400
    assert operator.ask(REPAIR, {"patch": FIX, "reason": "why"}, id=letter)[0] == 409
    status, answer = operator.ask(DISCARD, {"reason": "a test call"}, id=letter)
    assert (status, answer["status"], answer["job_id"]) == (200, "discarded", job["pk"])
    assert (operator.dead(), cloud.record(job["pk"])["status"]) == (0, names.FAILED)
    (review,) = operator.ask(REVIEW, query={"status": "discarded"})[1]["reviews"]
    assert (review["why"], review["reason"]) == ("a test call", "MODEL_PERMANENT")
    assert operator.ask(DISCARD, {"reason": "why"}, id="nothing")[0] == 404


def test_a_crash_between_sending_and_its_end_is_finished_by_the_same_request(operator: Operator, cloud: Cloud) -> None:
    job = cloud.put(pending())
    letter, request = broken(operator, job["pk"]), {"patch": FIX, "reason": "why"}
    cloud.wire.refuse("DeleteMessageBatch", "AccessDenied", 403)
    assert operator.ask(REPAIR, request, id=letter)[0] == 503
    (waiting,) = operator.ask(REVIEW, query={"status": "open"})[1]["reviews"]
    assert (waiting["letter_id"], waiting["who"]) == (letter, EVE)
    other = {"iam": {**IAM["iam"], "userArn": "arn:aws:iam::111122223333:user/bob"}}
    assert operator.ask(DISCARD, {"reason": "why"}, id=letter, authorizer=other)[0] == 409
    cloud.wire.mend()
    assert operator.ask(REPAIR, request, id=letter)[1]["done"]
    assert operator.dead() == 0


def test_reviews_are_listed_together_without_a_status(operator: Operator) -> None:
    job = operator.die(failed())
    operator.ask(DISCARD, {"reason": "why"}, id=f"{job['pk']}.1.FAILED")
    broken(operator, an_id())
    _, found = operator.ask(REVIEW)
    assert [one["status"] for one in found["reviews"]] == ["open", "discarded"]
    assert operator.ask(REVIEW, query={"status": "closed"})[0] == 400


# --- sweeps --------------------------------------------------------------------------------------------
SWEEP, CERTIFICATE = "POST /admin/sweeps", "GET /admin/sweeps/{id}"


def test_a_sweep_is_recorded_and_started_and_its_certificate_can_be_asked_for(operator: Operator) -> None:
    status, started = operator.ask(SWEEP, {"parts": ["stuck", "letters"], "dry_run": True})
    assert status == 202
    ((_, event),) = operator.started
    assert (event["parts"], event["dry_run"], event["by"]) == (["stuck", "letters"], True, EVE)
    status, certificate = operator.ask(CERTIFICATE, id=started["sweep_id"])
    assert (status, certificate["state"], certificate["by"]) == (200, "RUNNING", EVE)
    assert operator.ask(CERTIFICATE, id="0" * 32)[0] == 404


@pytest.mark.parametrize("body", [None, "", {}])
def test_a_sweep_without_parts_is_of_all(operator: Operator, body: Any) -> None:
    assert operator.ask(SWEEP, body)[0] == 202
    ((_, event),) = operator.started
    assert event["parts"] == ["stuck", "deliveries", "letters", "uploads", "drift"]


@pytest.mark.parametrize(("body", "status"), [({"parts": ["moon"]}, 422), ({"parts": []}, 400), ({"part": 1}, 400)])
def test_a_sweep_of_what_is_not_there_is_refused(operator: Operator, body: Any, status: int) -> None:
    assert (operator.ask(SWEEP, body)[0], operator.started) == (status, [])


def _context(seconds: float) -> Any:
    from tests.integration.cloud import Context

    context = Context(seconds)
    context.function_name = "redrive-function"
    return context
