"""The worker and a job whose text is streamed: shown while it is said, and what is shown is the result."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.chunks import DynamoChunks
from lambdas.contracts import names
from lambdas.core import changes
from lambdas.core.job import from_record
from lambdas.core.streaming.ports import Chunk
from tests.integration.cloud import Cloud
from tests.integration.conftest import Load
from tests.integration.records import LIMITS
from tests.integration.worker_bench import Bench, message

LINES = [f"line {n} of the message \U0001f600\n" for n in range(20)]
LONG = ["x" * 2_048, "y" * 2_048, "the rest"]


def text_of(cloud: Cloud, record: dict[str, Any], attempt: int = 1) -> list[str]:
    """What a reader puts together."""
    chunks = DynamoChunks(cloud.client("dynamodb"), cloud.jobs_table).read(record["pk"], attempt, 0, 1_000_000)
    assert [chunk.n for chunk in chunks] == list(range(len(chunks)))
    return [chunk.text for chunk in chunks]


def result_of(cloud: Cloud, record: dict[str, Any]) -> Any:
    return json.loads(cloud.objects(cloud.results_bucket)[cloud.record(record["pk"])["result_key"]])


def due_again(cloud: Cloud, record: dict[str, Any]) -> dict[str, Any]:
    """The record, and it need not wait any longer."""
    return cloud.put({**cloud.record(record["pk"]), "not_before": record["created_at"]})


@pytest.fixture
def by_delta(load_handler: Load, bench: Bench) -> Bench:
    """A worker that makes a chunk of each delta."""
    bench.module = load_handler("worker", CHUNK_BYTES=1)
    return bench


def test_what_is_streamed_of_a_reply_is_its_result_chunk_by_chunk(by_delta: Bench, cloud: Cloud):
    said = [f"{n} \U0001f600" for n in range(200)]
    by_delta.script({"deltas": said})
    job = by_delta.job("reply", stream=True)
    assert by_delta.run(message(job)) == []
    assert text_of(cloud, job) == said
    assert result_of(cloud, job) == {"text": "".join(said)}
    assert [call["operation"] for call in by_delta.model.calls.listed()] == ["ConverseStream"]


def test_a_streamed_job_costs_one_write_more_for_each_chunk(bench: Bench, cloud: Cloud):
    """Those in mid-stream come before the answer is saved, the rest before anything says that there is a result."""
    bench.script({"deltas": LONG})
    job = bench.job("reply", stream=True)
    bench.module.parts()
    cloud.wire.clear()
    bench.run(message(job))
    told = [one.operation for one in cloud.wire.sent]
    assert told == [
        "UpdateItem", "PutItem", "ConverseStream", "PutItem", "PutItem", "UpdateItem", "PutItem", "PutObject",
        "UpdateItem",
    ]  # fmt: skip
    assert text_of(cloud, job) == LONG


def test_a_job_that_does_not_ask_for_it_is_not_streamed(bench: Bench, cloud: Cloud):
    bench.script({"answer": "Hello."})
    job = bench.job("reply")
    bench.run(message(job))
    assert (text_of(cloud, job), result_of(cloud, job)) == ([], {"text": "Hello."})
    assert [call["operation"] for call in bench.model.calls.listed()] == ["Converse"]


def test_an_answer_that_is_there_already_is_shown_without_a_call(bench: Bench, cloud: Cloud):
    bench.script({"deltas": LONG})
    first, second = bench.job("reply"), bench.job("reply", stream=True)
    bench.run(message(first))
    bench.run(message(second))
    assert ("".join(text_of(cloud, second)), bench.calls) == ("".join(LONG), 1)


@pytest.mark.parametrize(
    "rule",
    [
        {"cut_after": 15},
        {"cut_after": 15, "error": "ThrottlingException"},
        {"corrupt": 15},
        {"stop_reason": None},
        {"usage": None},
        {"stop_reason": "max_tokens"},
    ],
    ids="-".join,
)
def test_bed_08_09_10_a_stream_that_breaks_is_never_the_result_and_never_mixed_with_it(
    by_delta: Bench, cloud: Cloud, rule: dict[str, Any]
):
    again = [f"again {n}\n" for n in range(20)]
    by_delta.script({"deltas": LINES, "times": 1, **rule}, {"deltas": again})
    job = by_delta.job("reply", stream=True)
    by_delta.run(message(job))
    record = cloud.record(job["pk"])
    assert (record["status"], record["cost"] > 0, record["tries"]) == (names.PENDING, True, 1)
    assert "".join(LINES).startswith("".join(text_of(cloud, job)))
    by_delta.run(message(due_again(cloud, job)))
    assert by_delta.status(job) == names.COMPLETED
    assert (text_of(cloud, job, 2), result_of(cloud, job)) == (again, {"text": "".join(again)})


def test_chunks_that_cannot_be_written_while_it_is_said_are_written_afterwards(by_delta: Bench, cloud: Cloud):
    by_delta.script({"deltas": LINES[:5]})
    job = by_delta.job("reply", stream=True)
    cloud.wire.refuse("PutItem", "ProvisionedThroughputExceededException", times=1, part="chunk#")
    assert by_delta.run(message(job)) == []
    assert text_of(cloud, job) == [LINES[0], "".join(LINES[1:5])]
    assert by_delta.status(job) == names.COMPLETED
    assert by_delta.lines.of("chunk_put_off")


def test_chunks_that_cannot_be_written_at_all_make_the_job_wait_and_pay_nothing_twice(by_delta: Bench, cloud: Cloud):
    by_delta.script({"deltas": LINES[:5]})
    job = by_delta.job("reply", stream=True)
    cloud.wire.refuse("PutItem", "InternalServerError", status=500, part="chunk#")
    by_delta.run(message(job))
    record = cloud.record(job["pk"])
    assert (record["status"], record["error"]["code"], record["tries"]) == (names.PENDING, "STORE_UNAVAILABLE", 0)
    cloud.wire.mend()
    by_delta.run(message(due_again(cloud, job)))
    assert by_delta.status(job) == names.COMPLETED
    assert ("".join(text_of(cloud, job, 2)), by_delta.calls) == ("".join(LINES[:5]), 1)


def test_a_job_that_is_cancelled_while_its_text_is_said_keeps_the_text(
    by_delta: Bench, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
):
    by_delta.script({"deltas": LINES})
    job = by_delta.job("reply", stream=True)
    append = by_delta.module.parts().worker.chunks.append

    def cancelled_at_the_third(job_id: str, chunk: Chunk, expires_at: int) -> None:
        append(job_id, chunk, expires_at)
        if chunk.n == 2:
            found = from_record(cloud.record(job_id))
            cloud.put(changes.cancel(found, now=clock.now(), limits=LIMITS).applied_to(cloud.record(job_id)))

    monkeypatch.setattr(by_delta.module.parts().worker.chunks, "append", cancelled_at_the_third)
    by_delta.run(message(job))
    assert by_delta.status(job) == names.CANCELLED
    assert text_of(cloud, job)[:3] == LINES[:3]


def test_of_what_is_streamed_nothing_is_logged(by_delta: Bench):
    by_delta.script({"deltas": ["a secret ", "word"]})
    by_delta.run(message(by_delta.job("reply", stream=True)))
    assert "secret" not in by_delta.lines.raw
    assert by_delta.lines.of("streamed")[0]["chunks"] == 2
