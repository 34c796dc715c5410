"""`branch`, `collect` and `ended` as Step Functions and the bus call them, on the stack's own tables and buckets."""

from __future__ import annotations

import json
from typing import Any

import pytest
import time_machine

from lambdas.contracts import names
from lambdas.core import ids
from lambdas.core.canonical import canonical, sha256
from lambdas.core.workflows.told import TransientError, WaitError
from local.metrics.emf import values
from local.model.server import ModelServer
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.workflow_bench import BRANCHES, TEXT, TYPE, WorkflowBench, ended_event

FIRST = BRANCHES[0]


@pytest.fixture
def bench(
    load_handler: Load, cloud: Cloud, model: ModelServer, lines: Lines, still: time_machine.Traveller
) -> WorkflowBench:
    """No time goes by."""
    model.script.replace([{"answer": "All three are safe."}])
    return WorkflowBench(load_handler, cloud, model, lines)


# --- branch ------------------------------------------------------------------------------------------
def test_branches_and_their_collector_complete_a_job(bench: WorkflowBench):
    job = bench.job()
    assert [bench.branch(job, name) for name in BRANCHES] == ["done"] * len(BRANCHES)
    answer = bench.collect(job)
    record = bench.record(job)
    assert record["status"] == answer["status"] == names.COMPLETED
    said = {name: {"said": "All three are safe."} for name in BRANCHES}
    result = {"complete": True, "parts": said, "missing": []}
    assert bench.result(job) == result
    key = ids.run_result_key("acme", job["pk"], 0, canonical(result))
    assert record["result_key"] == answer["result_key"] == key
    assert bench.calls == len(BRANCHES)
    assert record["cost"] == sum(part["cost"] for part in record["parts"].values()) > 0
    assert {part["state"] for part in record["parts"].values()} == {"done"}


def test_a_branch_costs_three_calls_to_the_record_two_to_the_answers_two_objects_and_one_model_call(
    bench: WorkflowBench, cloud: Cloud
):
    job = bench.job()
    cloud.wire.clear()
    bench.branch(job, FIRST)
    told = [one.operation for one in cloud.wire.sent]
    record = ["GetItem", "UpdateItem"]  # read, and a try taken: before anything can be paid
    assert told == [*record, "GetObject", "PutItem", "Converse", "UpdateItem", "PutObject", "UpdateItem"]


def test_a_branch_that_is_called_again_pays_nothing(bench: WorkflowBench):
    job = bench.job()
    assert [bench.branch(job, FIRST) for _ in range(3)] == ["done"] * 3
    assert bench.calls == 1


def test_the_same_question_in_the_next_run_is_answered_by_the_stored_part(bench: WorkflowBench, cloud: Cloud):
    job = bench.job()
    bench.branch(job, FIRST)
    for row in cloud.answer_rows():
        cloud.client("dynamodb").delete_item(TableName=cloud.answers_table, Key={"id": row["id"]})
    again = bench.job(pk=job["pk"], run=1, parts_run=1)
    assert bench.branch(again, FIRST) == "done"
    assert (bench.calls, bench.record(again)["parts"][FIRST].get("cost", 0)) == (1, 0)


@pytest.mark.parametrize("over", [{"status": names.CANCELLED}, {"run": 4}, {"status": names.DELETED}], ids=str)
def test_a_job_that_has_gone_on_is_not_worked_for(bench: WorkflowBench, over: dict[str, Any]):
    job = {**bench.job(**over), "run": 0}
    assert bench.branch(job, FIRST) == "stale"
    assert (bench.calls, bench.collect(job)) == (0, {"status": "refused"})


@pytest.mark.parametrize(
    ("rule", "error", "code", "calls"),
    [
        ({"error": "ThrottlingException"}, WaitError, "MODEL_THROTTLED", 1),
        ({"error": "ServiceUnavailableException"}, TransientError, "MODEL_TRANSIENT", 1),
    ],
    ids=["throttled", "unavailable"],
)
def test_sfn_08_trouble_of_the_model_has_one_of_two_names(
    bench: WorkflowBench, rule: dict[str, Any], error: type[Exception], code: str, calls: int
):
    bench.model.script.replace([rule])
    job = bench.job()
    with pytest.raises(error) as raised:
        bench.branch(job, FIRST)
    assert (type(raised.value).__name__, str(raised.value)) == (error.__name__, code)
    assert bench.calls == calls
    assert bench.record(job)["parts"][FIRST]["error"]["code"] == code


def test_sfn_13_what_cannot_get_better_is_returned_and_the_job_fails_with_the_other_parts_kept(
    bench: WorkflowBench, cloud: Cloud
):
    bench.model.script.replace([{"match": BRANCHES[2], "error": "ValidationException"}, {"answer": "Good."}])
    job = bench.job()
    states = [bench.branch(job, name) for name in BRANCHES]
    assert states == ["failed" if name == BRANCHES[2] else "done" for name in BRANCHES]
    answer = bench.collect(job)
    assert (answer["status"], answer["error"]["code"]) == ("FAILED", "PARTS_MISSING")
    kept = [key for key in cloud.objects(cloud.results_bucket) if "/parts/" in key]
    assert (len(kept), bench.record(job)["status"]) == (len(BRANCHES) - 1, names.FAILED)


def test_a_large_input_and_a_large_output_go_by_s3(bench: WorkflowBench, cloud: Cloud):
    bench.task(FIRST, lambda task_input, ctx: {"said": task_input["text"] * 3})
    request = {"type": TYPE, "input": {"text": TEXT * 20_000}}
    body = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    sha = sha256(body.decode())
    job = bench.job(input="", body_sha=sha)
    item = cloud.record(job["pk"])
    item.pop("input")
    cloud.put(item)
    key = ids.input_key("acme", job["pk"], sha)
    cloud.client("s3").put_object(Bucket=cloud.inputs_bucket, Key=key, Body=body)
    assert bench.branch(job, FIRST) == "done"
    assert bench.record(job)["parts"][FIRST]["bytes"] > 1_000_000


def test_an_uploaded_document_is_read_by_its_version_and_one_that_is_gone_is_told(bench: WorkflowBench, cloud: Cloud):
    s3, key = cloud.client("s3"), f"uploads/acme/{TYPE}/a.txt"
    body = TEXT.encode() * 45_000  # 1.1 MB
    put = s3.put_object(Bucket=cloud.uploads_bucket, Key=key, Body=body, ContentType="text/plain")
    upload = {"key": key, "version": put["VersionId"], "etag": put["ETag"].strip('"'), "bytes": len(body)}
    job = bench.job()
    record = cloud.put({**{name: v for name, v in job.items() if name != "input"}, "upload": upload})
    bench.task(FIRST, lambda task_input, ctx: {"length": len(task_input["text"])})
    assert bench.branch(record, FIRST) == "done"
    s3.delete_object(Bucket=cloud.uploads_bucket, Key=key, VersionId=put["VersionId"])
    assert bench.branch(record, BRANCHES[1]) == "failed"
    assert bench.record(job)["parts"][BRANCHES[1]]["error"]["code"] == "OVERWRITTEN"


def test_a_branch_reads_the_context_of_its_tenant_and_waits_for_what_is_not_there(bench: WorkflowBench, cloud: Cloud):
    bench.task(FIRST, lambda task_input, ctx: {"bytes": len(ctx.fetch("glossary.txt"))})
    job = bench.job()
    with pytest.raises(WaitError, match="NOT_READY"):
        bench.branch(job, FIRST)
    cloud.client("s3").put_object(Bucket=cloud.inputs_bucket, Key="context/acme/glossary.txt", Body=b"words")
    assert bench.branch(job, FIRST) == "done"


def test_a_large_answer_lies_in_s3_and_is_found_by_the_next_try(bench: WorkflowBench):
    tries: list[int] = []

    def run(task_input: Any, ctx: Any) -> Any:
        said = ctx.model.ask("Q").text
        tries.append(len(said))
        if len(tries) == 1:
            raise ValueError("after it was kept")
        return {"said": said}

    bench.model.script.replace([{"answer": "long " * 3_000}])
    bench.task(FIRST, run)
    job = bench.job()
    with pytest.raises(TransientError, match="TASK_ERROR"):
        bench.branch(job, FIRST)
    assert bench.branch(job, FIRST) == "done"
    assert (bench.calls, tries) == (1, [15_000, 15_000])


def test_an_answer_that_a_twin_is_getting_is_waited_for(bench: WorkflowBench):
    job, model = bench.job(), bench.branches.parts().working.worker.model
    stock, twins = model.converse, list[str]()

    def converse(request: Any) -> Any:
        model.converse = stock
        with pytest.raises(WaitError) as raised:
            bench.branch(job, FIRST, remaining_s=10.5)  # no time to wait for it here
        twins.append(str(raised.value))
        return stock(request)

    model.converse = converse
    assert bench.branch(job, FIRST) == "done"
    assert (twins, bench.calls) == (["ANSWER_PENDING"], 1)


def test_idem_01_a_calls_window_is_this_invocations_own(bench: WorkflowBench, cloud: Cloud):
    """A branch that dies in its call blocks the next try no longer than its own time."""
    context, windows = Context(90), list[float]()
    stock = bench.branches.parts().working.worker.model.converse

    def converse(request: Any) -> Any:
        (row,) = [row for row in cloud.answer_rows() if row["status"]["S"] == "INPROGRESS"]
        windows.append(int(row["in_progress_expiration"]["N"]) / 1000)
        return stock(request)

    bench.branches.parts().working.worker.model.converse = converse
    job = bench.job()
    bench.branches.handler({"job": job["pk"], "run": 0, "branch": FIRST}, context)
    assert windows == [pytest.approx(context.ends, abs=0.1)]


def test_ddb_05_the_sdks_own_repeat_of_its_write_counts_its_cost_once(bench: WorkflowBench, cloud: Cloud):
    job = bench.job()
    cloud.wire.lose("UpdateItem", part="progress_at")
    assert bench.branch(job, FIRST) == "done"
    record = bench.record(job)
    assert record["cost"] == record["parts"][FIRST]["cost"] > 0


def test_what_a_cancelled_job_paid_is_kept_once(bench: WorkflowBench, cloud: Cloud):
    job = bench.job()

    def run(task_input: Any, ctx: Any) -> Any:
        said = ctx.model.ask("Q").text
        cloud.put({**cloud.record(job["pk"]), "status": names.CANCELLED})
        return {"said": said}

    bench.task(FIRST, run)
    cloud.wire.lose("UpdateItem", part="late_cost")
    assert bench.branch(job, FIRST) == "stale"
    record = bench.record(job)
    assert (record["cost"], record["late_cost"] > 0) == (0, True)


def test_an_error_of_ours_is_logged_whole_and_told_by_its_code(bench: WorkflowBench, lines: Lines):
    job = bench.job(tenant=7)
    with pytest.raises(TransientError, match=r"^BRANCH_ERROR$"):
        bench.branch(job, FIRST)
    with pytest.raises(TransientError, match=r"^COLLECT_ERROR$"):
        bench.collect(job)
    assert {"branch_error", "collect_error"} <= set(lines.steps())


@pytest.mark.parametrize(
    "event", [{}, {"job": "x"}, {"job": "x", "run": "0", "branch": "b"}, {"job": 1, "run": 0}], ids=str
)
def test_what_no_state_machine_sends_is_not_tried_again(bench: WorkflowBench, event: dict[str, Any]):
    for module in (bench.branches, bench.collector):
        with pytest.raises(ValueError, match="expected the job"):
            module.handler(event, Context())


def test_no_line_has_an_input_or_an_answer(bench: WorkflowBench, lines: Lines):
    job = bench.job()
    for name in BRANCHES:
        bench.branch(job, name)
    bench.collect(job)
    assert "pump" not in lines.raw
    assert "All three" not in lines.raw
    done = lines.of("branch_done")
    assert [line["branch"] for line in done] == BRANCHES
    assert {line["job_id"] for line in done} == {job["pk"]}


def test_a_line_of_one_call_has_nothing_of_the_call_before(bench: WorkflowBench, lines: Lines):
    bench.branch(bench.job(), FIRST)
    gone = bench.job(status=names.CANCELLED)
    bench.branch(gone, FIRST)
    bench.collect(gone)
    (stale,), (refused,) = lines.of("branch_stale"), lines.of("collect_refused")
    assert (stale["job_id"], stale.get("trace_id")) == (gone["pk"], None)
    assert refused["job_id"] == gone["pk"]


# --- collect -----------------------------------------------------------------------------------------
def test_a_part_whose_object_is_gone_is_named(bench: WorkflowBench, cloud: Cloud):
    job = bench.job()
    for name in BRANCHES:
        bench.branch(job, name)
    lost = next(key for key in cloud.objects(cloud.results_bucket) if f"/{FIRST}/" in key)
    cloud.client("s3").delete_object(Bucket=cloud.results_bucket, Key=lost)
    answer = bench.collect(job)
    assert answer["error"]["message"].endswith(f"missing: {FIRST} (PART_LOST)")


def test_parts_that_ended_without_a_word_are_counted_for_an_alarm(
    bench: WorkflowBench, capsys: pytest.CaptureFixture[str]
):
    job = bench.job()
    for name in BRANCHES[2:]:
        bench.branch(job, name)
    assert "CRASHED" in bench.collect(job)["error"]["message"]
    told = [found for line in capsys.readouterr().out.splitlines() for found in values(line)]
    assert [(one.about.name, one.value) for one in told] == [(names.PARTS_LOST, 2.0)]


def test_a_collector_that_is_repeated_answers_the_same(bench: WorkflowBench, cloud: Cloud):
    job = bench.job()
    for name in BRANCHES:
        bench.branch(job, name)
    cloud.wire.lose("UpdateItem")
    first = bench.collect(job)
    assert first["status"] == names.COMPLETED
    assert bench.collect(job) == first


@pytest.mark.parametrize("operation", ["GetItem", "GetObject", "PutObject", "UpdateItem"])
def test_a_store_that_is_out_is_raised_and_the_next_call_completes(bench: WorkflowBench, cloud: Cloud, operation: str):
    job = bench.job()
    for name in BRANCHES:
        bench.branch(job, name)
    cloud.wire.cut(operation, times=3)
    with pytest.raises(WaitError, match="STORE_UNAVAILABLE"):
        bench.collect(job)
    assert bench.collect(job)["status"] == names.COMPLETED


# --- ended -------------------------------------------------------------------------------------------
@pytest.fixture
def ended(load_handler: Load) -> Any:
    return load_handler("ended")


def aborted(bench: WorkflowBench, cloud: Cloud, **over: Any) -> dict[str, Any]:
    """A job whose execution was ended by hand."""
    job = bench.job(**over)
    machine = json.loads(cloud.environment("worker")[names.WORKFLOWS])[TYPE]
    states = cloud.client("stepfunctions")
    name = ids.execution_name(job["pk"], job["run"])
    arn = states.start_execution(
        stateMachineArn=machine, name=name, input=json.dumps({"job": job["pk"], "run": job["run"]})
    )["executionArn"]  # fmt: skip
    states.stop_execution(executionArn=arn, error="Stopped", cause="by hand")
    return job


def test_an_execution_that_was_aborted_is_followed_by_another_run(bench: WorkflowBench, cloud: Cloud, ended: Any):
    job = aborted(bench, cloud)
    assert ended.handler(ended_event(job, "ABORTED"), Context()) == {"what": "run_again"}
    record = bench.record(job)
    assert (record["status"], record["run"], record["runs"]) == (names.PENDING, 1, 1)
    assert record["error"]["code"] == "EXECUTION_ABORTED"
    assert ended.handler(ended_event(job, "ABORTED"), Context()) == {"what": "not_needed"}


def test_the_last_run_that_was_aborted_ends_the_job(bench: WorkflowBench, cloud: Cloud, ended: Any):
    job = aborted(bench, cloud, runs=1)
    assert ended.handler(ended_event(job, "ABORTED"), Context()) == {"what": "failed"}
    assert bench.record(job)["status"] == names.FAILED


@pytest.mark.parametrize("event", [{}, {"detail": {"input": "no JSON"}}, {"detail": None}], ids=str)
def test_an_event_of_somebody_else_is_told_and_left(ended: Any, event: dict[str, Any], lines: Lines):
    assert ended.handler(event, Context()) == {"what": "foreign_event"}
    assert lines.of("foreign_event")


def test_what_cannot_be_described_is_left_to_its_dead_letters_and_the_sweep(
    bench: WorkflowBench, cloud: Cloud, ended: Any
):
    job = aborted(bench, cloud)
    cloud.wire.cut("DescribeExecution", times=9)
    with pytest.raises(Exception, match="describing"):
        ended.handler(ended_event(job), Context())
    assert bench.record(job)["status"] == names.PROCESSING
