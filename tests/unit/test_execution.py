"""One try of a held job, from its input to the write that says how it ended."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING
from lambdas.core import ids
from lambdas.core.canonical import canonical, sha256
from lambdas.core.outcomes import ModelError, NotReady, Permanent, Rejected
from lambdas.core.policy import Limits, RetryPolicy
from lambdas.core.ports import Unavailable
from lambdas.core.tasks import Context
from tests.builders import JOB_ID, TENANT, any_task, held_record, later
from tests.fakes import FakeModel, Trouble, any_reply
from tests.unit.bench import PAID, Bench, held

RESULT = ids.result_key(TENANT, JOB_ID, 1)
ANSWERED = {"summary": "All three are safe."}


def raising(error: BaseException) -> Any:
    def run(task_input: Any, ctx: Context) -> Any:
        raise error

    return any_task(run)


def returning(value: Any, **more: Any) -> Any:
    return any_task(lambda task_input, ctx: value, **more)


# --- the good way ----------------------------------------------------------------------------------
def test_a_job_is_run_its_result_stored_and_its_record_completed() -> None:
    bench = held()
    assert bench.execute() == "completed"
    job = bench.job()
    assert (job.status, job.result_key, job.cost, job.tries) == (COMPLETED, RESULT, PAID, 1)
    assert json.loads(bench.results.objects[RESULT]) == ANSWERED
    assert job.result_bytes == len(bench.results.objects[RESULT])


def test_the_result_is_stored_before_the_record_says_that_it_is() -> None:
    bench = held()
    bench.execute()
    assert bench.order == ["put", "complete"]


def test_the_result_lies_under_the_attempt_that_made_it() -> None:
    bench = held(attempt=7)
    bench.execute()
    assert list(bench.results.objects) == [ids.result_key(TENANT, JOB_ID, 7)]


def test_the_task_gets_the_accepted_input_and_its_own_context() -> None:
    seen: dict[str, Any] = {}

    def run(task_input: Any, ctx: Context) -> Any:
        seen.update(input=task_input, job=ctx.job_id, tenant=ctx.tenant, attempt=ctx.attempt, left=ctx.remaining_s())
        ctx.log("half-way", done=1)
        return {}

    bench = held(any_task(run), attempt=3)
    bench.execute()
    assert seen == {
        "input": {"text": "Houston, we have had a problem."},
        "job": JOB_ID, "tenant": TENANT, "attempt": 3, "left": 120,
    }  # fmt: skip
    assert bench.notices.of("task") == {"text": "half-way", "done": 1}


def test_the_end_of_a_try_is_told_with_its_cost_and_calls() -> None:
    bench = held()
    bench.execute()
    assert bench.notices.of("completed") == {"cost_micros": PAID, "calls": 1, "open_s": 0}
    assert bench.notices.of("stored") == {"key": RESULT, "bytes": len(bench.results.objects[RESULT])}


@pytest.mark.parametrize("age_s", [0, 7, 7_200])
@pytest.mark.parametrize("how", ["completed", "waits", "retried", "failed", "fenced_out"])
def test_the_end_of_a_try_is_told_with_the_time_since_the_job_could_start_however_often_it_waited(
    how: str, age_s: int
) -> None:
    raised = {"waits": NotReady("later"), "retried": ValueError(), "failed": Permanent("no")}
    bench = held(raising(raised[how]) if how in raised else any_task(), waits=7, not_before=later(age_s))
    job = bench.job()
    if how == "fenced_out":
        bench.store.records[JOB_ID] = held_record(attempt=2)
    bench.clock.advance(age_s)
    assert bench.execute(job) == how
    assert bench.notices.of(how)["open_s"] == age_s


def test_the_time_since_a_job_could_start_counts_back_from_its_deadline() -> None:
    bench = Bench(held_record(deadline_at=later(600)), limits=Limits(deadline_s=3_600))
    bench.execute()
    assert bench.notices.of("completed")["open_s"] == 3_000


def test_a_context_object_is_fetched_for_this_tenant_alone() -> None:
    bench = held(any_task(lambda task_input, ctx: {"bytes": len(ctx.fetch("calls/7.txt"))}))
    bench.inputs.objects["context/globex/calls/7.txt"] = b"theirs"
    assert bench.execute() == "waits"
    assert bench.job().error == {"code": "NOT_READY", "message": "calls/7.txt is not in the inputs bucket yet"}
    bench.inputs.objects[f"context/{TENANT}/calls/7.txt"] = b"ours"
    bench.store.records[JOB_ID] = held_record()
    assert bench.execute() == "completed"


@pytest.mark.parametrize(
    "key",
    ["", "/", ".", "..", "/a", "a/", "a//b", "../globex/a", "a/../b", "a/./b", "a/..", "x" * 901, "é" * 451, "a\ud800"],
    ids=lambda key: ascii(key[:12])[1:-1] or "empty",
)
def test_a_key_whose_path_could_be_read_in_two_ways_or_is_too_long_fails_for_good_and_is_not_asked_for(
    key: str,
) -> None:
    bench = held(any_task(lambda task_input, ctx: ctx.fetch(key)))
    asked: list[str] = []
    bench.inputs.get = lambda key: asked.append(key) or b""  # type: ignore[method-assign, func-returns-value]
    assert bench.execute() == "failed"
    assert bench.job().error["code"] == "INVALID_KEY"  # type: ignore[index]
    assert asked == []


@pytest.mark.parametrize("key", ["a", "..a/b../...", "a b", "x" * 900, "é" * 450], ids=lambda key: key[:12])
def test_any_other_key_is_asked_for(key: str) -> None:
    bench = held(any_task(lambda task_input, ctx: len(ctx.fetch(key)), output={}))
    bench.inputs.objects[f"context/{TENANT}/{key}"] = b"ours"
    assert bench.execute() == "completed"


# --- the input -------------------------------------------------------------------------------------
BODY = canonical({"type": "summarize", "input": {"text": "long"}})


def _claim_check(body: bytes | None, **over: Any) -> Bench:
    sha = sha256(BODY)
    bench = held(returning({"ok": True}), input=None, body_sha=sha, **over)
    if body is not None:
        bench.inputs.objects[ids.input_key(TENANT, JOB_ID, sha)] = body
    return bench


def test_a_large_input_is_read_from_s3_and_its_hash_checked() -> None:
    assert _claim_check(BODY.encode()).execute() == "completed"


@pytest.mark.parametrize("body", [BODY.encode() + b" ", b"{}", b"", b"\xff\xfe"])
def test_an_input_that_is_not_what_was_accepted_fails_for_good(body: bytes) -> None:
    bench = _claim_check(body)
    assert bench.execute() == "failed"
    assert bench.job().error is not None
    assert bench.job().error["code"] == "INPUT_CHANGED"  # type: ignore[index]
    assert bench.results.objects == {}


def test_an_input_that_is_gone_fails_for_good() -> None:
    bench = _claim_check(None)
    assert bench.execute() == "failed"
    assert bench.job().error["code"] == "INPUT_MISSING"  # type: ignore[index]


def test_inputs_that_cannot_be_reached_make_the_job_wait() -> None:
    bench = _claim_check(BODY.encode())
    bench.inputs.troubles.add("get", Trouble.UNSENT)
    assert bench.execute() == "waits"
    assert (bench.job().status, bench.job().tries) == (PENDING, 0)


# --- how it can end --------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("error", "how", "status", "code", "tries"),
    [
        (NotReady("later", retry_after=5), "waits", PENDING, "NOT_READY", 0),
        (ModelError("throttled", "ThrottlingException", ""), "waits", PENDING, "MODEL_THROTTLED", 0),
        (Unavailable("S3"), "waits", PENDING, "STORE_UNAVAILABLE", 0),
        (ValueError("oops"), "retried", PENDING, "TASK_ERROR", 1),
        (ModelError("transient", "ReadTimeoutError", ""), "retried", PENDING, "MODEL_TRANSIENT", 1),
        (Rejected("no"), "retried", PENDING, "OUTPUT_REJECTED", 1),
        (Permanent("no"), "failed", FAILED, "PERMANENT", 1),
        (ModelError("permanent", "ValidationException", ""), "failed", FAILED, "MODEL_PERMANENT", 1),
        (SystemExit(1), "retried", PENDING, "TASK_ERROR", 1),
        (asyncio.CancelledError(), "retried", PENDING, "TASK_ERROR", 1),
        (KeyboardInterrupt(), "retried", PENDING, "TASK_ERROR", 1),
        (GeneratorExit(), "retried", PENDING, "TASK_ERROR", 1),
    ],
)
def test_whatever_a_task_raises_is_its_jobs_outcome_alone(
    error: BaseException, how: str, status: str, code: str, tries: int
) -> None:
    bench = held(raising(error))
    assert bench.execute() == how
    job = bench.job()
    assert job.error is not None
    assert (job.status, job.error["code"], job.tries) == (status, code, tries)
    told = bench.notices.of(how)
    said = type(error).__name__ if code == "TASK_ERROR" else job.error["message"]
    assert (told["reason"], told["detail"]) == (code, said)
    assert bench.results.objects == {}


@pytest.mark.parametrize(("tries", "how"), [(1, "retried"), (5, "failed")])
def test_what_a_tasks_own_exception_says_is_kept_on_the_record_and_never_told(tries: int, how: str) -> None:
    bench = held(raising(ValueError("could not convert: 'Houston: a secret'")), tries=tries)
    assert bench.execute() == how
    assert bench.notices.of(how)["detail"] == "ValueError"
    assert "Houston" not in repr(bench.notices.told)
    assert bench.job().error == {"code": "TASK_ERROR", "message": "ValueError: could not convert: 'Houston: a secret'"}


def test_a_task_that_ends_the_process_ends_only_its_own_try() -> None:
    import sys

    bench = held(any_task(lambda task_input, ctx: sys.exit("bye")))
    assert bench.execute() == "retried"


def test_a_permanent_code_that_is_no_text_still_makes_a_letter_that_can_be_sent() -> None:
    bench = held(raising(Permanent("gone", code=404)))  # type: ignore[arg-type]
    bench.execute()
    assert bench.job().error == {"code": "404", "message": "gone"}


OUT = {"type": "object", "required": ["summary"], "properties": {"summary": {"type": "string"}}}


@pytest.mark.parametrize("value", [{}, {"summary": 7}, [], None, "text"])
def test_a_result_that_its_schema_rejects_is_asked_for_anew(value: Any) -> None:
    bench = held(returning(value, output=OUT))
    assert bench.execute() == "retried"
    assert (bench.job().status, bench.job().sample) == (PENDING, 1)
    assert bench.job().error["code"] == "OUTPUT_REJECTED"  # type: ignore[index]
    assert bench.results.objects == {}


DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value",
    [{"a": {1, 2}}, b"x", object(), {"a": float("nan")}, float("inf"), {"a": "\ud800"}, {1: 1, "b": 2}, DEEP],
    ids=["set", "bytes", "object", "NaN", "infinity", "half surrogate", "mixed names", "deep"],
)
def test_a_result_that_is_not_json_fails_for_good(value: Any) -> None:
    bench = held(returning(value, output={}))
    assert bench.execute() == "failed"
    assert bench.job().error["code"] == "INVALID_OUTPUT"  # type: ignore[index]


@pytest.mark.parametrize("value", [None, 0, "", [], {}, {"float": 30.4}, 10**40])
def test_any_json_value_can_be_a_result(value: Any) -> None:
    bench = held(returning(value, output={}))
    assert bench.execute() == "completed"
    assert json.loads(bench.results.objects[RESULT]) == value


def test_results_that_cannot_be_stored_make_the_job_wait_and_its_answer_is_not_paid_again() -> None:
    bench = held()
    bench.results.troubles.add("put", Trouble.UNSENT)
    assert bench.execute() == "waits"
    assert (bench.job().cost, bench.job().tries) == (PAID, 0)
    bench.store.records[JOB_ID] = {**held_record(attempt=2), "cost": PAID}
    assert bench.execute() == "completed"
    assert (len(bench.model.requests), bench.job().cost) == (1, PAID)


def test_an_unknown_type_waits_for_the_deploy_that_brings_it() -> None:
    bench = held(type="not-yet")
    assert bench.execute() == "waits"
    assert (bench.job().tries, bench.job().error["code"]) == (0, "UNKNOWN_TYPE")  # type: ignore[index]


def test_an_unknown_type_does_not_wait_past_its_deadline() -> None:
    bench = held(type="not-yet", deadline_at=later(-1))
    assert bench.execute() == "failed"
    assert bench.job().error["code"] == "DEADLINE_EXCEEDED"  # type: ignore[index]


def test_a_try_beyond_the_tasks_own_bound_is_not_run() -> None:
    bench = held(raising(AssertionError("was run")), tries=3, crashes=2)
    bench.tasks["summarize"] = any_task(retry=RetryPolicy(max_attempts=2))
    assert bench.execute() == "failed"
    assert bench.job().error == {"code": "ATTEMPTS_EXHAUSTED", "message": "2 tries used, 2 crashed"}
    assert bench.model.requests == []


def test_the_last_try_of_the_tasks_own_bound_is_run() -> None:
    bench = held(tries=2)
    bench.tasks["summarize"] = any_task(retry=RetryPolicy(max_attempts=2))
    assert bench.execute() == "completed"


def test_the_tasks_own_policy_bounds_its_tries_and_its_waits() -> None:
    policy = RetryPolicy(max_attempts=9, base_s=100, cap_s=100)
    bench = held(tries=8)
    bench.tasks["summarize"] = any_task(raising(ValueError()).run, retry=policy)
    assert bench.execute() == "retried"
    assert bench.job().backoff_ms == 50_000


def test_too_little_time_for_its_first_call_puts_the_job_back_and_costs_a_try() -> None:
    bench = held()
    bench.left_s = 60
    assert bench.execute() == "waits"
    assert (bench.job().tries, bench.model.requests) == (1, [])
    assert bench.job().not_before == later(1)


def test_a_job_that_never_gets_to_its_first_call_is_failed_when_its_tries_are_used() -> None:
    bench = held(tries=5)
    bench.left_s = 60
    assert bench.execute() == "failed"
    error = bench.job().error
    assert error is not None
    assert error["code"] == "ATTEMPTS_EXHAUSTED"
    assert error["message"].startswith("OUT_OF_TIME: ")


def test_too_little_time_for_a_further_call_gives_the_try_back_as_long_as_each_try_gets_a_new_answer() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        said = []
        for n in range(3):
            said.append(ctx.model.ask(f"Q{n}").text)
            bench.left_s = 60 if len(bench.model.requests) > asked else 120
        return {"said": said}

    bench = held(any_task(run), tries=5)
    for attempt, how in ((1, "waits"), (2, "waits"), (3, "completed")):
        asked, bench.left_s = len(bench.model.requests), 120
        bench.store.records[JOB_ID] = held_record(attempt=attempt, tries=5)
        assert bench.execute() == how
        assert bench.job().tries == (4 if how == "waits" else 5)
    assert [request.prompt for request in bench.model.requests] == ["Q0", "Q1", "Q2"]


def test_an_answer_that_was_there_already_is_no_progress_of_a_try_that_runs_out_of_time() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        ctx.model.ask("Q0")
        bench.left_s = 60
        ctx.model.ask("Q1")

    bench = held(any_task(run))
    assert (bench.execute(), bench.job().tries) == ("waits", 0)
    bench.left_s = 120
    bench.store.records[JOB_ID] = held_record(attempt=2)
    assert (bench.execute(), bench.job().tries) == ("waits", 1)


def test_a_task_that_swallows_a_billed_failure_and_waits_burns_its_try() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        try:
            ctx.model.ask("Q")
        except ModelError as error:
            raise NotReady("again, please") from error

    bench = held(any_task(run), model=FakeModel(any_reply(stop_reason="max_tokens")))
    assert bench.execute() == "waits"
    assert (bench.job().tries, bench.job().cost) == (1, PAID)


def test_a_task_that_swallows_a_billed_failure_and_succeeds_pays_for_both() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        try:
            ctx.model.ask("Q")
        except ModelError:
            return {"summary": ctx.model.ask("Q, briefly").text}

    bench = held(any_task(run), model=FakeModel(any_reply(stop_reason="max_tokens")))
    assert bench.execute() == "completed"
    assert bench.job().cost == 2 * PAID


def test_a_task_may_name_the_fields_of_its_log_lines_as_it_likes() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        ctx.log("half-way", job="7", text="x", step="y")
        return {}

    bench = held(any_task(run))
    assert bench.execute() == "completed"
    assert not isinstance(bench.notices.of("task").get("job"), str)


def test_no_task_can_pass_its_log_lines_off_as_those_of_another_job() -> None:
    ids = ("job_id", "tenant", "trace_id", "attempt", "type", "request_id", "function", "message_id", "xray_trace_id")
    others = dict.fromkeys(ids, "another's")

    def run(task_input: Any, ctx: Context) -> Any:
        ctx.log("half-way", **others, done=1)
        return {}

    bench = held(any_task(run))
    assert bench.execute() == "completed"
    line = bench.notices.of("task")
    assert not [name for name in ids if line.get(name) == "another's"]
    assert [line[f"{name}_"] for name in ids] == ["another's"] * len(ids)
    assert line["done"] == 1
