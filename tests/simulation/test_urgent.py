"""Urgent jobs go by a queue of their own, which has its own share of the workers, whatever becomes of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from local.faults import Fault
from tests.builders import any_hint_body
from tests.simulation import plays
from tests.simulation.plays import TENANT
from tests.simulation.stage import LEASE_S, Stage
from tests.simulation.watch import poll

BATCH, WORKERS, URGENT_WORKERS = 10, 5, 2  # of the default settings
BACKLOG = BATCH * WORKERS + 60
CALL_S = 50
URGENT, URGENT_LETTERS = "UrgentQueueUrl", "UrgentDlqUrl"


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """With empty queues: messages of workers that died stay hidden for a while."""
    stage.skip(61)  # as SQS wants it between two purges
    for queue in (URGENT, "WorkQueueUrl"):
        stage.sqs.purge_queue(QueueUrl=stage.target.outputs[queue])
    return stage


def submit(stage: Stage, key: str, **more: Any) -> str:
    stage.submit("steady", {"text": key}, key=key, tenant=TENANT, **more)
    return stage.job_id(key, TENANT)


def test_an_urgent_job_behind_a_backlog_starts_within_one_batch(stage: Stage, nonce: str) -> None:
    """Every worker of the ordinary queue is busy, as many jobs again wait there, and no time passes."""
    stage.reset()
    stage.script({"match": f"{nonce}-ordinary", "delay_s": CALL_S})
    stage.runtime.functions.pause("worker")
    ordinary = [submit(stage, f"{nonce}-ordinary-{number}") for number in range(BACKLOG)]
    poll(lambda: stage.depth() == BACKLOG, lambda: f"{stage.depth()} messages of {BACKLOG}")
    stage.runtime.functions.resume("worker")
    begun = BATCH * WORKERS
    poll(lambda: len(stage.model_calls(nonce)) == begun, lambda: f"{len(stage.model_calls(nonce))} calls")

    urgent = submit(stage, f"{nonce}-urgent", urgent=True)
    poll(lambda: stage.all_handed_over([urgent]), lambda: "the urgent job waits")
    assert stage.record(urgent)["status"] == "COMPLETED"
    assert len(stage.model_calls(f"{nonce}-ordinary")) == begun, "its share is its own: none was taken from the others"
    assert stage.get(f"/jobs/{urgent}", TENANT).json()["urgent"] is True

    stage.script()
    stage.alone("worker")
    stage.advance(CALL_S)
    stage.pass_time_until(lambda: stage.all_handed_over(ordinary))
    plays.empty_queues(stage)


def test_a_flood_of_urgent_jobs_leaves_the_ordinary_ones_their_workers(stage: Stage, nonce: str) -> None:
    stage.reset()
    stage.script({"match": f"{nonce}-urgent", "delay_s": CALL_S})
    stage.runtime.functions.pause("worker")
    flood = [submit(stage, f"{nonce}-urgent-{number}", urgent=True) for number in range(BATCH * URGENT_WORKERS + 10)]
    poll(lambda: stage.depth(queue=URGENT) == len(flood), lambda: "not all are in the queue")
    stage.runtime.functions.resume("worker")
    begun = BATCH * URGENT_WORKERS
    poll(lambda: len(stage.model_calls(nonce)) == begun, lambda: f"{len(stage.model_calls(nonce))} calls")
    ordinary = submit(stage, f"{nonce}-ordinary")
    poll(lambda: stage.all_handed_over([ordinary]), lambda: "the ordinary job waits")
    assert len(stage.model_calls(f"{nonce}-urgent")) == begun
    stage.script()
    stage.alone("worker")
    stage.advance(CALL_S)
    stage.pass_time_until(lambda: stage.all_handed_over(flood))
    plays.empty_queues(stage)


def only_in_the_urgent_queue(stage: Stage) -> bool:
    return (stage.depth(queue=URGENT), stage.depth()) == (1, 0)


def test_the_next_try_of_an_urgent_job_is_urgent(stage: Stage, nonce: str) -> None:
    plays.begin(stage)
    stage.script({"match": nonce, "error": "ServiceUnavailableException", "delay_s": CALL_S, "times": 1})
    job_id = submit(stage, nonce, urgent=True)
    stage.calling(nonce)
    stage.runtime.functions.pause("worker")  # else the next try may have begun when one looks
    stage.alone("worker")
    stage.advance(CALL_S)
    stage.quiet()
    assert (stage.record(job_id)["status"], stage.record(job_id)["tries"]) == ("PENDING", 1)
    assert only_in_the_urgent_queue(stage)
    stage.runtime.functions.resume("worker")
    stage.pass_time_until(lambda: stage.all_handed_over([job_id]))
    assert stage.record(job_id)["status"] == "COMPLETED"


@pytest.mark.parametrize("stream", [True, False])
def test_an_urgent_job_whose_worker_died_is_sent_again_as_urgent_by_the_sweep(
    stage: Stage, nonce: str, stream: bool
) -> None:
    plays.begin(stage)
    job_id = stage.job_id(nonce, TENANT)
    stage.strike(Fault("worker", "crash", "after", operation="UpdateItem", job_id=job_id))
    submit(stage, nonce, urgent=True)
    stage.quiet()
    if not stream:
        stage.disable("dispatch")
    stage.runtime.functions.pause("worker")
    before = stage.depth(queue=URGENT)
    stage.skip(LEASE_S + 1)
    stage.sweep()
    stage.quiet()
    assert stage.record(job_id)["crashes"] == 1
    assert stage.depth(queue=URGENT) == before + 1 + stream  # the sweep's own message, and the stream's
    assert stage.depth() == 0
    stage.runtime.functions.resume("worker")
    stage.enable("dispatch")
    stage.pass_time_until(lambda: stage.all_handed_over([job_id]))
    assert stage.record(job_id)["status"] == "COMPLETED"


@pytest.mark.parametrize("destination", [URGENT, "WorkQueueUrl"])
def test_the_letter_of_an_urgent_job_lies_with_the_urgent_ones_and_reopens_it_from_either_queue(
    stage: Stage, nonce: str, destination: str
) -> None:
    plays.begin(stage)
    stage.script({"match": nonce, "error": "ValidationException", "times": 1})
    job_id = submit(stage, nonce, urgent=True)
    stage.pass_time_until(lambda: stage.all_handed_over([job_id]))
    assert stage.record(job_id)["status"] == "FAILED"
    assert (stage.depth(queue=URGENT_LETTERS), stage.depth(queue="WorkDlqUrl")) == (1, 0)

    source, to = (
        stage.sqs.get_queue_attributes(QueueUrl=stage.target.outputs[name], AttributeNames=["QueueArn"])
        for name in (URGENT_LETTERS, destination)
    )
    stage.sqs.start_message_move_task(
        SourceArn=source["Attributes"]["QueueArn"], DestinationArn=to["Attributes"]["QueueArn"]
    )
    stage.pass_time_until(lambda: stage.record(job_id)["status"] == "COMPLETED")
    assert (stage.record(job_id)["run"], stage.record(job_id)["urgent"]) == (1, True)
    stage.pass_time_until(lambda: stage.all_handed_over([job_id]))
    plays.empty_queues(stage)


def test_what_nobody_can_read_in_the_urgent_queue_is_buried_beside_it(stage: Stage) -> None:
    plays.begin(stage)
    stage.sqs.send_message(QueueUrl=stage.target.outputs[URGENT], MessageBody="{", MessageGroupId="anybody")
    poll(lambda: stage.depth(queue=URGENT_LETTERS) == 1, lambda: "no letter")
    stage.quiet()
    assert (stage.depth(queue=URGENT), stage.depth(queue="WorkDlqUrl")) == (0, 0)
    (letter,) = stage.take_all(stage.target.outputs[URGENT_LETTERS])
    assert json.loads(letter["Body"])["payload"]["reason"] == "MALFORMED_MESSAGE"


def test_an_urgent_message_that_comes_early_is_hidden_in_its_own_queue(stage: Stage, nonce: str) -> None:
    """As the dispatcher's, but without its delay."""
    plays.begin(stage)
    start = datetime.fromtimestamp(stage.now() + 600, UTC)
    job_id = submit(stage, nonce, urgent=True, not_before=start.isoformat())
    stage.quiet()
    assert only_in_the_urgent_queue(stage)
    body = any_hint_body(job_id, tenant_id=TENANT)
    stage.sqs.send_message(QueueUrl=stage.target.outputs[URGENT], MessageBody=body, MessageGroupId=TENANT)
    stage.quiet()
    assert stage.depth(queue=URGENT) == 2
    waiting = stage.record(job_id)
    assert (waiting["status"], waiting["attempt"]) == ("PENDING", 0)
    stage.pass_time_until(lambda: stage.all_handed_over([job_id]))
    assert stage.record(job_id)["status"] == "COMPLETED"
    stage.pass_time_until(lambda: stage.depth(queue=URGENT) == 0)
