"""The worker on batches of SQS: each message is settled by itself, and the record says what happens next."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lambdas.contracts import names
from lambdas.core import ids
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines
from tests.integration.events import sqs, sqs_record, stream, stream_record
from tests.integration.records import cancelled, completed, failed, pending, processing
from tests.integration.worker_bench import ANSWER, Bench, doing, hint, message, returned_letter, soon


# --- the main way --------------------------------------------------------------------------------
def test_a_job_is_run_stored_completed_and_acknowledged(bench: Bench, cloud: Cloud):
    job = bench.job()
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["attempt"], record["tries"]) == (names.COMPLETED, 1, 1)
    assert record["cost"] > 0
    assert record["result_key"] == ids.result_key("acme", job["pk"], 1)
    assert json.loads(cloud.objects(cloud.results_bucket)[record["result_key"]]) == ANSWER
    assert bench.calls == 1


def test_a_job_costs_four_calls_to_dynamodb_one_object_and_one_model_call(bench: Bench, cloud: Cloud):
    """The budget: claim, guard, save, complete."""
    job = bench.job()
    bench.module.parts()
    cloud.wire.clear()
    bench.run(message(job))
    told = [one.operation for one in cloud.wire.sent]
    assert told == ["UpdateItem", "PutItem", "Converse", "UpdateItem", "PutObject", "UpdateItem"]


def test_the_paid_steps_window_is_this_invocations_own(bench: Bench, cloud: Cloud, monkeypatch: pytest.MonkeyPatch):
    """IDEM-01, IDEM-02: the context is registered before the first message, in every invocation."""
    model, windows = bench.module.parts().worker.model, list[float]()
    stock = model.converse

    def converse(request: Any) -> Any:
        (row,) = [row for row in cloud.answer_rows() if row["status"]["S"] == "INPROGRESS"]
        windows.append(int(row["in_progress_expiration"]["N"]) / 1000 - time.time())
        return stock(request)

    monkeypatch.setattr(model, "converse", converse)
    bench.run(message(bench.job(text="one")), context=Context(115))
    bench.run(message(bench.job(text="two")), context=Context(90))
    assert windows == [pytest.approx(115, abs=0.1), pytest.approx(90, abs=0.1)]


def test_the_lease_ends_ten_seconds_after_the_invocation(bench: Bench, cloud: Cloud):
    leases: list[str] = []
    bench.task("look", doing(lambda ctx: leases.append(cloud.record(ctx.job_id)["lease_until"])))
    bench.run(message(bench.job("look")), context=Context(100))
    assert soon(109.9) <= leases[0] <= soon(110)


def test_idem_22_jobs_with_one_input_share_one_call(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lambdas.core.asking.PATIENCE_S", 60)  # with whoever makes the call, on a slow machine
    jobs = [bench.job() for _ in range(6)]
    assert bench.run(*map(message, jobs)) == []
    assert [bench.status(job) for job in jobs] == [names.COMPLETED] * 6
    assert bench.calls == 1


def test_idem_23_another_tenant_with_that_input_makes_its_own_call(bench: Bench, cloud: Cloud):
    mine, theirs = bench.job(), bench.job(tenant="globex")
    assert bench.run(message(mine), message(theirs)) == []
    assert bench.calls == 2
    assert set(cloud.objects(cloud.results_bucket)) == {
        ids.result_key("acme", mine["pk"], 1), ids.result_key("globex", theirs["pk"], 1),
    }  # fmt: skip


def test_two_messages_of_one_job_in_one_batch_run_it_once(bench: Bench, cloud: Cloud):
    job = bench.job()
    assert bench.run(message(job), message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["attempt"], bench.calls) == (names.COMPLETED, 1, 1)


def test_the_tenant_and_the_type_come_from_the_record_and_not_from_the_message(bench: Bench, cloud: Cloud):
    """Hole 40."""
    job = bench.job()
    assert bench.run(message(job, tenant_id="globex")) == []
    assert cloud.record(job["pk"])["result_key"].startswith("results/acme/")


def test_a_large_input_is_read_from_s3(bench: Bench, cloud: Cloud):
    request = {"type": "summarize", "input": {"text": "ANNA: hello. " * 2_000}}
    job = cloud.put(pending(request=request))
    assert "input" not in job
    body = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    key = ids.input_key("acme", job["pk"], job["body_sha"])
    cloud.client("s3").put_object(Bucket=cloud.inputs_bucket, Key=key, Body=body)
    bench.run(message(job))
    assert bench.status(job) == names.COMPLETED
    cloud.client("s3").put_object(Bucket=cloud.inputs_bucket, Key=key, Body=body + b" ")
    again = cloud.put({**job, "status": names.PENDING})
    bench.run(message(again))
    assert cloud.record(job["pk"])["error"]["code"] == "INPUT_CHANGED"


def test_an_input_that_is_gone_is_the_jobs_end(bench: Bench, cloud: Cloud):
    job = cloud.put(pending(request={"type": "summarize", "input": {"text": "x" * 5_000}}))
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["error"]["code"], bench.calls) == (names.FAILED, "INPUT_MISSING", 0)


# --- messages that are none ----------------------------------------------------------------------
UNREADABLE = {
    "cut": ('{"schema":1,"run_id":', "MALFORMED_MESSAGE"),
    "empty": ("", "MALFORMED_MESSAGE"),
    "no JSON": ("hello", "MALFORMED_MESSAGE"),
    "half a surrogate": ('"\\ud800"', "MALFORMED_MESSAGE"),
    "a list": ("[]", "INVALID_ENVELOPE"),
    "an empty object": ("{}", "INVALID_ENVELOPE"),
    "an old schema": (hint(pending(), schema=0), "UNSUPPORTED_SCHEMA"),
    "an unknown field": (hint(pending(), priority=1), "INVALID_ENVELOPE"),
    "no attempt": (hint(pending(), payload={}), "INVALID_ENVELOPE"),
    "an S3 test event": ('{"Service":"Amazon S3","Event":"s3:TestEvent"}', "INVALID_ENVELOPE"),
    "a fact": (hint(pending(), event_type="job.completed"), "FOREIGN_EVENT"),
    "a job that is not there": (hint(pending()), "UNKNOWN_JOB"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_batch_01_what_cannot_be_read_becomes_a_letter_and_harms_no_batch_mate(bench: Bench, name: str):
    body, reason = UNREADABLE[name]
    before, after = bench.job(text="one"), bench.job(text="two")
    assert bench.run(message(before), sqs_record(body), message(after)) == []
    (letter,) = bench.letters()
    assert (letter["event_type"], letter["payload"]["reason"]) == ("job.unreadable", reason)
    assert letter["payload"]["body"] == body
    assert [bench.status(before), bench.status(after)] == [names.COMPLETED] * 2


def test_env_09_what_cannot_be_read_makes_no_model_call(bench: Bench):
    bench.run(*(sqs_record(body) for body, _ in UNREADABLE.values()))
    assert (bench.calls, len(bench.letters())) == (0, len(UNREADABLE))


def test_a_letter_about_the_same_message_has_the_same_id(bench: Bench):
    bench.run(sqs_record("hello"), sqs_record("hello"))
    assert len({letter["event_id"] for letter in bench.letters()}) == 1


def test_a_message_whose_letter_cannot_be_sent_stays_on_the_queue(bench: Bench, cloud: Cloud):
    bad, good = sqs_record("hello"), bench.job()
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403)
    assert bench.run(bad, message(good)) == [bad["messageId"]]
    assert bench.status(good) == names.COMPLETED


def test_a_message_of_a_newer_version_is_left_for_the_code_that_reads_it(bench: Bench):
    job = bench.job()
    newer = message(job, schema=2)
    assert bench.run(newer) == [newer["messageId"]]
    assert (bench.letters(), bench.status(job), bench.calls) == ([], names.PENDING, 0)


@pytest.mark.parametrize("event", [{}, {"foo": 1}, {"Records": []}, {"Records": "x"}, {"Records": None}], ids=str)
def test_batch_02_what_is_no_sqs_event_raises(bench: Bench, event: dict[str, Any]):
    with pytest.raises(ValueError, match="SQS"):
        bench.module.handler(event, Context())


def test_batch_02_a_batch_of_another_source_raises(bench: Bench):
    mixed = sqs(message(bench.job()), stream_record(pending()))
    for event in (stream(stream_record(pending())), mixed):
        with pytest.raises(ValueError, match="SQS"):
            bench.module.handler(event, Context())
    assert bench.calls == 0


# --- messages whose job needs nothing ------------------------------------------------------------
STATES: dict[str, Callable[[], dict[str, Any]]] = {
    "completed": completed,
    "failed": failed,
    "cancelled": cancelled,
    "held": processing,
    "waiting": lambda: pending(status=names.WAITING),
    "deleted": lambda: {**pending(), "status": names.DELETED},
    "early, of a newer attempt": lambda: pending(attempt=3, not_before=soon(500)),
}


@pytest.mark.parametrize("state", STATES)
def test_a_message_that_is_not_needed_is_acknowledged_and_changes_nothing(bench: Bench, cloud: Cloud, state: str):
    record = cloud.put(STATES[state]())
    assert bench.run(message(pending(record["pk"]))) == []
    assert cloud.record(record["pk"]) == record
    assert (bench.calls, bench.letters()) == (0, [])


def test_a_message_of_a_tombstone_is_acknowledged_without_a_letter(bench: Bench, cloud: Cloud):
    tombstone = cloud.put({"pk": "f" * 32, "sk": "job", "tenant": "acme", "status": names.DELETED, "attempt": 1})
    assert bench.run(message(pending(tombstone["pk"]))) == []
    assert bench.letters() == []


def test_a_job_whose_holder_was_killed_is_taken_over(bench: Bench, cloud: Cloud):
    record = cloud.put(processing(lease_s=-5))
    assert bench.run(message(record)) == []
    after = cloud.record(record["pk"])
    assert (after["status"], after["attempt"], after["tries"]) == (names.COMPLETED, 2, 2)


def test_hole_22_an_ordinary_message_never_reopens_a_failed_job(bench: Bench, cloud: Cloud):
    record = cloud.put(failed())
    assert bench.run(message(record, receives=2)) == []
    assert cloud.record(record["pk"]) == record


def test_a_letter_reopens_the_job_that_failed_at_its_attempt(bench: Bench, cloud: Cloud):
    record = cloud.put(failed())
    assert bench.run(returned_letter(record)) == []
    after = cloud.record(record["pk"])
    assert (after["status"], after["attempt"], after["tries"], after["run"]) == (names.PENDING, 2, 0, 1)
    assert "expires_at" not in after
    assert bench.calls == 0


def test_a_second_copy_of_a_letter_and_a_letter_of_an_older_attempt_do_nothing(bench: Bench, cloud: Cloud):
    record = cloud.put(failed())
    assert bench.run(returned_letter(record), returned_letter(record)) == []
    after = cloud.record(record["pk"])
    assert after["attempt"] == 2
    again = cloud.put(failed(pk=record["pk"], attempt=5))
    assert bench.run(returned_letter(record)) == []
    assert cloud.record(record["pk"]) == again


def test_a_letter_of_a_job_that_is_not_there_becomes_a_letter(bench: Bench):
    assert bench.run(returned_letter(failed())) == []
    assert [letter["payload"]["reason"] for letter in bench.letters()] == ["UNKNOWN_JOB"]


def test_a_job_that_used_up_its_tries_fails_without_another_call(bench: Bench, cloud: Cloud):
    record = cloud.put(pending(tries=5, attempt=5))
    assert bench.run(message(record)) == []
    after = cloud.record(record["pk"])
    assert (after["status"], after["error"]["code"], bench.calls) == (names.FAILED, "ATTEMPTS_EXHAUSTED", 0)


def test_a_job_past_its_deadline_fails_without_another_call(bench: Bench, cloud: Cloud):
    record = cloud.put(pending(deadline_at=soon(-1)))
    assert bench.run(message(record)) == []
    after = cloud.record(record["pk"])
    assert (after["status"], after["error"]["code"], bench.calls) == (names.FAILED, "DEADLINE_EXCEEDED", 0)


# --- early messages ------------------------------------------------------------------------------
def received(cloud: Cloud, body: str) -> dict[str, Any]:
    """The body as a real message of the work queue, with a receipt that is good."""
    sqs_client = cloud.client("sqs")
    sqs_client.send_message(QueueUrl=cloud.work_url, MessageBody=body)
    (found,) = sqs_client.receive_message(QueueUrl=cloud.work_url)["Messages"]
    return sqs_record(body, message_id=found["MessageId"], receipt=found["ReceiptHandle"])


def test_an_early_message_is_hidden_until_its_time_and_reported(bench: Bench, cloud: Cloud):
    job = cloud.put(pending(not_before=soon(40)))
    early = received(cloud, hint(job))
    cloud.wire.clear()
    assert bench.run(early) == [early["messageId"]]
    (hiding,) = [one for one in cloud.wire.sent if one.operation == "ChangeMessageVisibility"]
    assert json.loads(hiding.body)["VisibilityTimeout"] == 41  # a second more, for clocks that differ
    assert cloud.record(job["pk"]) == job
    assert bench.calls == 0


def test_an_early_message_that_cannot_be_hidden_is_reported_all_the_same(bench: Bench, cloud: Cloud):
    early, other = message(cloud.put(pending(not_before=soon(40)))), bench.job()
    assert bench.run(early, message(other)) == [early["messageId"]]  # its receipt is no good
    assert bench.status(other) == names.COMPLETED


# --- trouble -------------------------------------------------------------------------------------
def test_batch_12_one_that_cannot_be_claimed_is_reported_and_the_others_are_done(bench: Bench, cloud: Cloud):
    jobs = [bench.job(text=f"call {number}") for number in range(5)]
    messages = [message(job) for job in jobs]
    cloud.wire.refuse("UpdateItem", "AccessDeniedException", part=jobs[2]["pk"])
    assert bench.run(*messages) == [messages[2]["messageId"]]
    assert [bench.status(job) for job in jobs] == [
        names.COMPLETED, names.COMPLETED, names.PENDING, names.COMPLETED, names.COMPLETED,
    ]  # fmt: skip


def test_batch_12_a_suspect_that_cannot_be_claimed_is_reported_like_a_fresh_one(bench: Bench, cloud: Cloud):
    jobs = [bench.job(text=f"call {number}") for number in range(3)]
    messages = [message(job, receives=2) for job in jobs]
    cloud.wire.refuse("UpdateItem", "AccessDeniedException", part=jobs[1]["pk"])
    assert bench.run(*messages) == [messages[1]["messageId"]]
    assert [bench.status(job) for job in jobs] == [names.COMPLETED, names.PENDING, names.COMPLETED]


def test_batch_04_when_all_fail_all_are_reported_and_nothing_is_raised(bench: Bench, cloud: Cloud):
    messages = [message(bench.job()) for _ in range(3)]
    cloud.wire.refuse("UpdateItem", "AccessDeniedException")
    assert bench.run(*messages) == [one["messageId"] for one in messages]


def test_an_error_of_ours_costs_its_own_message_only(bench: Bench, monkeypatch: pytest.MonkeyPatch, lines: Lines):
    stock, bad, good = bench.module.handle, message(bench.job(text="bad")), bench.job(text="good")

    def handle(delivery: Any, *rest: Any, **more: Any) -> Any:
        if delivery.message_id == bad["messageId"]:
            raise RuntimeError("a bug")
        return stock(delivery, *rest, **more)

    monkeypatch.setattr(bench.module, "handle", handle)
    assert bench.run(bad, message(good)) == [bad["messageId"]]
    assert bench.status(good) == names.COMPLETED
    assert "a bug" in lines.of("worker_error")[0]["exception"]


@pytest.mark.parametrize("lost", [1, 2])
def test_ddb_05_a_job_whose_claim_or_end_lost_its_reply_is_run_once(bench: Bench, cloud: Cloud, lost: int):
    job = bench.job()
    cloud.wire.lose("UpdateItem", times=1, part=job["pk"])
    if lost == 2:
        cloud.wire.lose("UpdateItem", times=1, part="COMPLETED")
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["attempt"], bench.calls) == (names.COMPLETED, 1, 1)


def test_idem_17_an_answer_that_was_paid_for_is_not_paid_again_when_its_result_could_not_be_stored(
    bench: Bench, cloud: Cloud
):
    job = bench.job()
    cloud.wire.refuse("PutObject", "AccessDenied", 403)
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["error"]["code"]) == (names.PENDING, "STORE_UNAVAILABLE")
    cloud.wire.mend()
    cloud.put({**record, "not_before": soon(-1)})
    assert bench.run(message(record)) == []
    assert (bench.status(job), bench.calls) == (names.COMPLETED, 1)


def test_hole_19_a_later_attempt_looks_for_the_large_answer_that_an_earlier_one_left_in_s3(bench: Bench, cloud: Cloud):
    """It was paid for, and its holder ended between the object and the row."""
    bench.script({"answer": {**ANSWER, "action_items": ["x" * 490] * 20}})
    job = bench.job()
    cloud.wire.refuse("UpdateItem", "AccessDeniedException", part=cloud.answers_table)
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["error"]["code"]) == (names.PENDING, "ANSWER_NOT_STORED")
    cloud.wire.mend()
    (row,) = cloud.answer_rows()
    cloud.client("dynamodb").delete_item(TableName=cloud.answers_table, Key={"id": row["id"]})
    cloud.put({**record, "not_before": soon(-1)})
    assert bench.run(message(record)) == []
    assert (bench.status(job), bench.calls) == (names.COMPLETED, 1)


def test_a_cancelled_jobs_answer_is_booked_and_changes_nothing_else(bench: Bench, cloud: Cloud):
    """Hole 7: never CANCELLED → COMPLETED."""

    def cancel_meanwhile(task_input: Any, ctx: Any) -> dict[str, Any]:
        ctx.model.ask(task_input["text"])
        cloud.put({**cloud.record(ctx.job_id), "status": names.CANCELLED, "finished_at": soon(0)})
        return {}

    bench.task("slow", cancel_meanwhile)
    job = bench.job("slow")
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert record["status"] == names.CANCELLED
    assert record["late_cost"] > 0
    assert "result_key" not in record


# --- how tries end -------------------------------------------------------------------------------
def test_bed_03_a_permanent_error_fails_after_one_call(bench: Bench, cloud: Cloud):
    bench.script({"error": "ValidationException"})
    job = bench.job()
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["error"]["code"], bench.calls) == (names.FAILED, "MODEL_PERMANENT", 1)
    assert record["expires_at"] > time.time() + 80 * 86_400


def test_a_throttle_burns_no_try(bench: Bench, cloud: Cloud):
    bench.script({"error": "ThrottlingException"})
    job = bench.job()
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["attempt"], record["tries"], record["waits"]) == (names.PENDING, 1, 0, 1)
    assert cloud.answer_rows() == []  # a failure is never a kept answer


def test_a_transient_error_burns_one(bench: Bench, cloud: Cloud):
    bench.script({"error": "InternalServerException"})
    job = bench.job()
    bench.run(message(job))
    record = cloud.record(job["pk"])
    assert (record["status"], record["tries"], record.get("waits", 0)) == (names.PENDING, 1, 0)


def test_hole_14_a_rejected_answer_leaves_the_cache_and_the_next_try_asks_anew(bench: Bench, cloud: Cloud):
    bench.script({"answer": "I cannot do that.", "times": 1}, {"answer": ANSWER})
    job = bench.job()
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["sample"], record["error"]["code"]) == (names.PENDING, 1, "OUTPUT_REJECTED")
    assert cloud.answer_rows() == []
    cloud.put({**record, "not_before": soon(-1)})
    bench.run(message(record))
    assert (bench.status(job), bench.calls) == (names.COMPLETED, 2)


def test_bed_23_answers_are_rejected_at_most_so_often(bench: Bench, cloud: Cloud):
    bench.script({"answer": "no"})
    record = bench.job()
    for _ in range(4):
        bench.run(message(record))
        record = cloud.record(record["pk"])
        record = cloud.put({**record, "not_before": soon(-1)})
    assert (record["status"], bench.calls) == (names.FAILED, 2)


def test_a_task_that_raises_charges_its_own_job_only(bench: Bench, cloud: Cloud):
    def broken(task_input: Any, ctx: Any) -> Any:
        raise SystemExit("out of here")

    bench.task("broken", broken)
    bad, good = bench.job("broken"), bench.job()
    assert bench.run(message(bad), message(good)) == []
    assert (bench.status(bad), bench.status(good)) == (names.PENDING, names.COMPLETED)
    assert cloud.record(bad["pk"])["tries"] == 1


def test_a_type_that_this_code_does_not_know_waits_for_the_deploy(bench: Bench, cloud: Cloud):
    job = bench.job("not-yet")
    assert bench.run(message(job)) == []
    record = cloud.record(job["pk"])
    assert (record["status"], record["tries"], record["error"]["code"]) == (names.PENDING, 0, "UNKNOWN_TYPE")


def test_the_deployments_own_number_of_tries_is_kept(load_handler: Any, bench: Bench, cloud: Cloud):
    bench.module = load_handler("worker", MAX_ATTEMPTS=2)
    bench.script({"error": "InternalServerException"})
    record = bench.job()
    for _ in range(4):
        bench.run(message(record))
        record = cloud.put({**cloud.record(record["pk"]), "not_before": soon(-1)})
    assert (record["status"], bench.calls) == (names.FAILED, 2)


# --- what is logged ------------------------------------------------------------------------------
def test_every_step_of_a_job_has_its_ids_and_nothing_of_what_was_said(bench: Bench, lines: Lines):
    jobs = [bench.job(text=f"ANNA: secret-{number}") for number in range(4)]
    bench.run(*map(message, jobs))
    told = [line for line in lines.all() if line.get("step") in ("claimed", "model_called", "stored", "completed")]
    assert len(told) == 16
    for job in jobs:
        own = [line for line in told if line["job_id"] == job["pk"]]
        assert {line["step"] for line in own} == {"claimed", "model_called", "stored", "completed"}
        assert {(line["tenant"], line["trace_id"], line["attempt"]) for line in own} == {("acme", job["trace_id"], 1)}
    assert "secret-" not in lines.raw
    assert "The pump broke." not in lines.raw


def test_otel_04_the_next_invocation_has_no_ids_of_the_last(bench: Bench, lines: Lines):
    first = bench.job()
    bench.run(message(first, receives=2))
    seen = len(lines.all())
    bench.run(sqs_record("hello"))
    for line in lines.all()[seen:]:
        assert line.get("job_id") != first["pk"]


def test_a_task_may_log(bench: Bench, lines: Lines):
    def chatty(task_input: Any, ctx: Any) -> dict[str, Any]:
        ctx.log("looked it up", name="a name", count=3)
        return {}

    bench.task("chatty", chatty)
    job = bench.job("chatty")
    bench.run(message(job))
    assert bench.status(job) == names.COMPLETED
    assert any("looked it up" in json.dumps(line) and line.get("job_id") == job["pk"] for line in lines.all())


def test_no_thread_is_left_when_the_handler_returns(bench: Bench):
    before = set(threading.enumerate())
    bench.run(*(message(bench.job(text=f"call {number}")) for number in range(6)))
    left = [one for one in threading.enumerate() if one not in before and "worker" in one.name.lower()]
    assert left == []
    assert not [one for one in threading.enumerate() if one.name.startswith("ThreadPoolExecutor")]
