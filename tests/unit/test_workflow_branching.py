"""One call of a branch: what it reads, what it pays, what it writes, and what it tells Step Functions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, PENDING, WAITING
from lambdas.core import ids
from lambdas.core.canonical import canonical
from lambdas.core.outcomes import ModelError, NotReady, Permanent, Rejected
from lambdas.core.policy import Limits, RetryPolicy
from lambdas.core.ports import AnswerPending
from lambdas.core.tasks import Context
from lambdas.core.workflows.told import TransientError, WaitError
from tests.builders import JOB_ID, TENANT, any_task, later
from tests.fakes import FakeModel, Trouble, any_reply
from tests.fakes_workflows import WORKFLOW, any_workflow
from tests.unit.assembly import TRIES, Assembly, asking, raising, started_record
from tests.unit.bench import PAID

INPUT = {"text": "Houston, we have had a problem."}
SHA = ids.part_sha("summary", "summary", canonical(INPUT))
KEY = ids.part_key(TENANT, JOB_ID, "summary", SHA)


def doing(run: Any, **more: Any) -> Assembly:
    """The branch `summary` does this."""
    return Assembly(None, any_task(run, type_="summary", **more))


# --- the good way ----------------------------------------------------------------------------------
def test_a_branch_stores_its_part_and_writes_that_it_has_begun_and_that_it_is_done() -> None:
    bench = Assembly()
    assert bench.branch("summary", by="me") == "done"
    assert bench.order == ["read", "part", "get", "put", "part"]
    part = bench.part("summary")
    assert (part.state, part.by, part.sha, part.cost, part.at) == ("done", "me", SHA, PAID, bench.clock())
    assert part.bytes == len(bench.results.objects[KEY])
    assert json.loads(bench.results.objects[KEY]) == {"said": "All three are safe."}
    assert (bench.job().cost, bench.job().progress_at) == (PAID, bench.clock())


def test_branches_write_side_by_side_and_none_takes_anothers_part_away() -> None:
    bench = Assembly()
    for name in ("summary", "entities", "flags"):
        bench.branch(name)
    assert {name: bench.part(name).state for name in bench.tasks} == dict.fromkeys(bench.tasks, "done")
    assert (bench.job().cost, len(bench.asked)) == (3 * PAID, 3)


def test_a_branch_runs_for_a_job_that_was_reaped_by_mistake_too() -> None:
    bench = Assembly(started_record(status=PENDING))
    assert bench.branch("summary") == "done"


def test_the_task_gets_its_context_with_the_jobs_ids_and_its_own_time() -> None:
    seen: dict[str, Any] = {}

    def run(task_input: Any, ctx: Context) -> Any:
        seen.update(input=task_input, job=ctx.job_id, tenant=ctx.tenant, left=ctx.remaining_s())
        ctx.log("half-way", done=1)
        return {}

    bench = doing(run)
    bench.branch("summary")
    assert seen == {"input": INPUT, "job": JOB_ID, "tenant": TENANT, "left": 120}
    assert bench.notices.of("task") == {"text": "half-way", "done": 1, "branch": "summary"}


def test_its_end_is_told_with_its_branch_its_cost_and_its_calls() -> None:
    bench = Assembly()
    bench.branch("summary")
    assert bench.notices.of("branch_done") == {
        "branch": "summary", "cost_micros": PAID, "calls": 1, "found": False,
    }  # fmt: skip


# --- nothing to do ---------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [COMPLETED, FAILED, CANCELLED, WAITING])
def test_a_job_that_has_gone_on_is_stale_and_pays_nothing(status: str) -> None:
    bench = Assembly(started_record(status=status))
    assert bench.branch("summary") == "stale"
    assert (bench.asked, bench.order) == ([], ["read"])


@pytest.mark.parametrize("over", [{"run": 1}, {"run": 1, "parts_run": 1}, {"parts_run": None}], ids=str)
def test_a_job_in_another_run_is_stale_and_pays_nothing(over: dict[str, Any]) -> None:
    bench = Assembly(started_record(**over))
    assert bench.branch("summary") == "stale"
    assert bench.asked == []


def test_a_job_that_is_gone_is_stale() -> None:
    deleted, gone = Assembly(started_record(status=DELETED)), Assembly()
    gone.store.records.clear()
    assert [deleted.branch("summary"), gone.branch("summary")] == ["stale", "stale"]


@pytest.mark.parametrize("state", ["done", "failed"])
def test_a_branch_that_is_over_is_not_run_once_more(state: str) -> None:
    bench = Assembly(started_record(parts={"summary": {"state": state, "by": "somebody"}}))
    assert bench.branch("summary") == state
    assert (bench.asked, bench.order) == ([], ["read"])


def test_a_part_of_an_earlier_run_is_found_and_nothing_is_paid() -> None:
    bench = Assembly(started_record(run=1))
    bench.results.objects[KEY] = b'{"said":"before"}'
    assert bench.branch("summary", run_=1) == "done"
    assert (bench.asked, bench.part("summary").cost, bench.part("summary").bytes) == ([], 0, 17)
    assert bench.notices.of("branch_done")["found"] is True


def test_a_part_of_another_question_is_not_taken() -> None:
    bench = Assembly(started_record(input='{"text":"Another one."}'))
    bench.results.objects[KEY] = b'{"said":"before"}'
    assert bench.branch("summary") == "done"
    assert bench.part("summary").sha != SHA
    assert len(bench.asked) == 1


def test_a_call_that_is_repeated_after_its_reply_was_lost_finds_its_own_part() -> None:
    bench = Assembly()
    assert [bench.branch("summary"), bench.branch("summary")] == ["done", "done"]
    assert (len(bench.asked), bench.job().cost) == (1, PAID)


# --- its input ---------------------------------------------------------------------------------------
PIPELINE = any_workflow(stages=["extract", {"task": "report", "input": {"text": "/parts/extract/said"}}])


def test_a_branch_gets_what_an_earlier_one_has_given() -> None:
    bench = Assembly(workflow=PIPELINE)
    bench.branch("extract")
    assert bench.branch("report") == "done"
    assert bench.asked[1] == "report: All three are safe."


def test_a_missing_earlier_part_is_the_branchs_end_without_a_call() -> None:
    bench = Assembly(workflow=PIPELINE)
    assert bench.branch("report") == "failed"
    assert (bench.part("report").error["code"], bench.asked) == ("MISSING_PART", [])


def test_an_earlier_part_whose_object_is_gone_is_missing() -> None:
    bench = Assembly(workflow=PIPELINE)
    bench.branch("extract")
    bench.results.objects.clear()
    assert bench.branch("report") == "failed"
    assert bench.part("report").error["code"] == "MISSING_PART"


def test_an_input_that_the_task_does_not_take_is_the_branchs_end_without_a_call() -> None:
    schema = {"type": "object", "required": ["language"]}
    bench = Assembly(None, any_task(raising(AssertionError()), type_="summary", input_=schema))
    assert bench.branch("summary") == "failed"
    assert bench.part("summary").error["code"] == "INVALID_INPUT"


def test_a_large_input_is_read_from_s3_and_must_be_what_was_accepted() -> None:
    bench = Assembly(started_record(input=None, body_sha="0" * 64))
    assert bench.branch("summary") == "failed"
    assert bench.part("summary").error["code"] == "INPUT_MISSING"
    bench = Assembly(started_record(input=None, body_sha="0" * 64))
    bench.inputs.objects[ids.input_key(TENANT, JOB_ID, "0" * 64)] = b'{"input":{"text":"forged"}}'
    assert bench.branch("summary") == "failed"
    assert bench.part("summary").error["code"] == "INPUT_CHANGED"


@pytest.mark.parametrize(("body", "state"), [(b"A document.", "done"), (b"", "failed")])
def test_an_upload_is_checked_by_the_workflows_own_schema(body: bytes, state: str) -> None:
    bench = Assembly()
    stored = bench.uploads.put("uploads/acme/analyze/1", body, "text/plain")
    upload = {"key": stored.key, "version": stored.version, "etag": stored.etag, "bytes": stored.bytes}
    bench.store.records[JOB_ID] = started_record(input=None, upload=upload)
    text = {"type": "object", "properties": {"text": {"type": "string", "minLength": 1}}}
    bench.workflows[WORKFLOW] = any_workflow()
    object.__setattr__(bench.workflows[WORKFLOW], "input_schema", text)
    assert bench.branch("summary") == state
    assert bench.asked == (["summary: A document."] if state == "done" else [])


# --- how it can fail -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "error",
    [
        Permanent("no", "MY_CODE"),
        ModelError("permanent", "ValidationException", "no"),
        ModelError("permanent", "x", "y"),
    ],
    ids=str,
)
def test_what_cannot_get_better_is_written_down_and_returned(error: Exception) -> None:
    bench = doing(raising(error))
    assert bench.branch("summary") == "failed"
    part = bench.part("summary")
    assert (part.state, bool(part.error["message"])) == ("failed", True)
    assert bench.notices.of("branch_failed")["reason"] == part.error["code"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("Houston: a secret"), "TASK_ERROR"),
        (SystemExit(1), "TASK_ERROR"),
        (ModelError("transient", "ReadTimeoutError", "cut"), "MODEL_TRANSIENT"),
    ],
)
def test_a_try_that_was_used_is_written_down_and_raised_by_its_code_alone(error: BaseException, code: str) -> None:
    bench = doing(raising(error))
    with pytest.raises(TransientError) as raised:
        bench.branch("summary")
    assert str(raised.value) == code
    part = bench.part("summary")
    assert (part.state, part.error["code"]) == ("again", code)
    assert "Houston" not in repr(bench.notices.told)


def test_sfn_08_every_way_a_task_can_end_is_told_by_one_of_two_names() -> None:
    for error in (OSError(), TimeoutError(), KeyError("x"), MemoryError(), RecursionError(), KeyboardInterrupt()):
        with pytest.raises((TransientError, WaitError)):
            doing(raising(error)).branch("summary")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModelError("throttled", "ThrottlingException", ""), "MODEL_THROTTLED"),
        (NotReady("later"), "NOT_READY"),
        (AnswerPending(later(30)), "ANSWER_PENDING"),
    ],
)
def test_a_wait_for_which_nothing_was_paid_is_raised_as_one_and_gives_its_try_back(error: Exception, code: str) -> None:
    bench = doing(raising(error))
    for _ in range(3):
        with pytest.raises(WaitError) as raised:
            bench.branch("summary")
        assert str(raised.value) == code
    assert (bench.part("summary").used, bench.part("summary").error["code"]) == (0, code)


def test_a_wait_whose_reason_cannot_be_written_down_is_a_wait_all_the_same() -> None:
    bench = doing(raising(NotReady("later")))
    bench.store.troubles.add("part", None, Trouble.UNSENT)
    with pytest.raises(WaitError, match="NOT_READY"):
        bench.branch("summary")
    assert bench.part("summary").used == 1  # a run that may have paid is counted


@pytest.mark.parametrize("trouble", [Trouble.UNSENT, Trouble.REFUSED, Trouble.UNHEARD])
def test_a_branch_that_cannot_be_charged_waits_and_asks_nothing(trouble: Trouble) -> None:
    bench = Assembly()
    bench.store.troubles.add("part", trouble)
    with pytest.raises(WaitError, match="STORE_UNAVAILABLE"):
        bench.branch("summary")
    assert bench.asked == []
    assert bench.branch("summary") == "done"
    assert (len(bench.asked), bench.job().cost) == (1, PAID)


def test_a_branch_whose_twin_has_begun_meanwhile_waits_and_asks_nothing() -> None:
    bench = Assembly()
    twin = {"summary": {"state": "open", "by": "the twin", "used": 1}}
    bench.store.before = lambda name: bench.store.records[JOB_ID].update(parts=twin) if name == "part" else None
    with pytest.raises(WaitError, match="OVERTAKEN"):
        bench.branch("summary")
    assert (bench.asked, bench.part("summary").by) == ([], "the twin")


def test_a_charge_whose_reply_was_lost_is_taken_once() -> None:
    bench = doing(raising(NotReady("later")))
    bench.store.troubles.add("part", Trouble.LOST_REPLY)
    with pytest.raises(WaitError, match="NOT_READY"):
        bench.branch("summary")
    assert bench.part("summary").used == 0


def test_a_store_that_cannot_be_read_is_a_wait() -> None:
    bench = Assembly()
    bench.store.troubles.add("read", Trouble.UNSENT)
    with pytest.raises(WaitError, match="STORE_UNAVAILABLE"):
        bench.branch("summary")


@pytest.mark.parametrize("call", ["get", "put"])
def test_a_bucket_that_cannot_be_reached_is_a_wait_and_what_was_paid_is_written_down(call: str) -> None:
    bench = Assembly()
    bench.results.troubles.add(call, Trouble.UNSENT)
    with pytest.raises(WaitError, match="STORE_UNAVAILABLE"):
        bench.branch("summary")
    paid = PAID if call == "put" else 0
    assert (bench.job().cost, bench.part("summary").cost) == (paid, paid)
    assert bench.branch("summary") == "done"
    assert (len(bench.asked), bench.job().cost, bench.part("summary").cost) == (1, PAID, PAID)


@pytest.mark.parametrize("tries", [1, 2])
@pytest.mark.parametrize("error", [ValueError("no"), ModelError("transient", "ReadTimeoutError", "cut")], ids=str)
def test_a_task_with_a_policy_of_its_own_is_tried_no_more_often_in_a_run(error: Exception, tries: int) -> None:
    runs: list[int] = []

    def run(task_input: Any, ctx: Context) -> Any:
        runs.append(1)
        raise error

    bench = doing(run, retry=RetryPolicy(max_attempts=tries))
    assert bench.called_until_it_ends("summary") == "failed"
    part = bench.part("summary")
    assert (len(runs), part.state, bool(part.error["message"])) == (tries, "failed", True)
    assert part.error["code"] != "ATTEMPTS_EXHAUSTED"  # the last one says so itself
    unspoken = doing(run)
    assert unspoken.called_until_it_ends("summary").startswith("TransientError")
    assert len(runs) == tries + TRIES


def test_a_task_with_a_patient_policy_is_called_no_more_often_than_its_state_machine_does() -> None:
    bench = doing(raising(ValueError("no")), retry=RetryPolicy(max_attempts=9))
    assert bench.called_until_it_ends("summary").startswith("TransientError")
    assert (bench.part("summary").state, bench.part("summary").used) == ("again", TRIES)


def test_a_tasks_own_bound_counts_the_tries_that_died() -> None:
    bench = doing(asking("summary"), retry=RetryPolicy(max_attempts=1))
    bench.store.records[JOB_ID]["parts"] = {"summary": {"state": "open", "by": "me.begun", "used": 1}}
    assert bench.branch("summary") == "failed"
    assert (bench.asked, bench.part("summary").error["code"]) == ([], "ATTEMPTS_EXHAUSTED")


def test_waits_that_are_free_are_no_tries_of_its_tasks_policy() -> None:
    bench = doing(raising(NotReady("later")), retry=RetryPolicy(max_attempts=1))
    assert bench.called_until_it_ends("summary") == "WaitError: NOT_READY"


def wasteful(task_input: Any, ctx: Context) -> Any:
    try:
        ctx.model.ask("Q")
    except ModelError as error:
        raise NotReady("again, please") from error


def test_a_wait_that_may_have_been_paid_for_nothing_is_one_of_its_tasks_tries() -> None:
    once = any_task(wasteful, type_="summary", retry=RetryPolicy(max_attempts=1))
    bench = Assembly(None, once, model=FakeModel(any_reply(stop_reason="max_tokens")))
    assert bench.branch("summary") == "failed"
    assert bench.part("summary").error == {"code": "ATTEMPTS_EXHAUSTED", "message": "NOT_READY: again, please"}
    assert (bench.job().cost, bench.part("summary").cost) == (PAID, PAID)


def test_a_wait_that_may_have_been_paid_for_nothing_uses_a_try() -> None:
    cut = FakeModel(any_reply(stop_reason="max_tokens"))
    bench = Assembly(None, any_task(wasteful, type_="summary"), model=cut)
    with pytest.raises(TransientError, match="NOT_READY"):
        bench.branch("summary")
    assert (bench.job().cost, bench.part("summary").cost, bench.part("summary").used) == (PAID, PAID, 1)


def test_too_little_time_for_its_first_call_uses_a_try_and_for_a_further_one_none() -> None:
    bench = Assembly(remaining_s=60)
    with pytest.raises(TransientError, match="OUT_OF_TIME"):
        bench.branch("summary")

    def run(task_input: Any, ctx: Context) -> Any:
        ctx.model.ask("Q1")
        bench.left_s = 60
        return ctx.model.ask("Q2").text

    bench = Assembly(None, any_task(run, type_="summary", output={}))
    with pytest.raises(WaitError, match="OUT_OF_TIME"):
        bench.branch("summary")
    bench.left_s = 120
    bench.tasks["summary"] = any_task(lambda i, ctx: [ctx.model.ask(q).text for q in ("Q1", "Q2")], output={})
    assert bench.branch("summary") == "done"
    assert (bench.asked, bench.job().cost, bench.part("summary").cost) == (["Q1", "Q2"], 2 * PAID, 2 * PAID)


def test_a_task_or_a_workflow_that_is_not_here_yet_is_waited_for() -> None:
    bench = Assembly()
    del bench.tasks["summary"]
    with pytest.raises(WaitError, match="UNKNOWN_TYPE"):
        bench.branch("summary")
    bench = Assembly()
    bench.workflows.clear()
    with pytest.raises(WaitError, match="UNKNOWN_TYPE"):
        bench.branch("summary")


def test_a_branch_that_a_later_version_of_the_workflow_has_no_more_fails() -> None:
    bench = Assembly()
    assert bench.branch("other") == "failed"
    assert bench.part("other").error["code"] == "UNKNOWN_BRANCH"


def test_a_branch_that_a_later_version_of_the_workflow_has_got_finds_its_place() -> None:
    bench = Assembly(started_record("entities"))
    assert bench.branch("summary") == "done"


# --- answers that are no good ------------------------------------------------------------------------
OUT = {"type": "object", "required": ["summary"]}


def rejecting(*script: Any, **more: Any) -> Assembly:
    def run(task_input: Any, ctx: Context) -> Any:
        text = ctx.model.ask("Q").text
        if text == "bad":
            raise Rejected("bad")
        return {"summary": text} if text != "worse" else {}

    return Assembly(None, any_task(run, type_="summary", output=OUT), model=FakeModel(*script), **more)


@pytest.mark.parametrize("said", ["bad", "worse"])
def test_n2_a_rejected_answer_is_asked_for_anew_and_leaves_the_cache_after_the_record_says_so(said: str) -> None:
    bench = rejecting(any_reply(said), any_reply("good"))
    with pytest.raises(TransientError, match="OUTPUT_REJECTED"):
        bench.branch("summary")
    assert bench.order[-2:] == ["part", "forget"]
    assert (bench.part("summary").sample, bench.job().sample, bench.answers.stored) == (1, 0, {})
    assert bench.branch("summary") == "done"
    assert (len(bench.asked), bench.job().cost, bench.part("summary").cost) == (2, 2 * PAID, 2 * PAID)


def test_a_second_answer_that_is_no_good_is_the_branchs_end() -> None:
    bench = rejecting(any_reply("bad"), any_reply("bad"))
    assert bench.called_until_it_ends("summary") == "failed"
    assert (len(bench.asked), bench.part("summary").error["code"]) == (2, "OUTPUT_REJECTED")
    assert len(bench.answers.stored) == 1  # of this job alone: nobody else reads it


def test_another_branchs_answers_stay_as_they_are_when_one_is_rejected() -> None:
    bench = rejecting(any_reply("bad"), any_reply("good"))
    with pytest.raises(TransientError):
        bench.branch("summary")
    bench.branch("entities")
    assert bench.part("entities").sample == 0


@pytest.mark.parametrize(("stop", "code"), [("max_tokens", "MODEL_TRUNCATED"), ("tool_use", "MODEL_UNUSABLE")])
def test_an_answer_that_came_to_no_end_is_asked_for_anew_once_and_no_other_is_paid_again(stop: str, code: str) -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        return [ctx.model.ask("Q1").text, ctx.model.ask("Q2").text]

    cut = any_reply(stop_reason=stop)
    bench = Assembly(None, any_task(run, type_="summary", output={}), model=FakeModel(any_reply(), cut, cut))
    assert bench.called_until_it_ends("summary") == "failed"
    part = bench.part("summary")
    assert (part.unusable, part.sample, part.error["code"]) == (1, 0, code)
    assert bench.asked == ["Q1", "Q2", "Q2"]


def test_an_answer_that_an_earlier_call_has_left_behind_is_looked_for_though_the_job_is_in_its_first_attempt() -> None:
    def run(task_input: Any, ctx: Context) -> Any:
        return [ctx.model.ask("Q1").text]

    cut = ModelError("transient", "ReadTimeoutError", "cut")
    bench = Assembly(None, any_task(run, type_="summary", output={}), model=FakeModel(cut, any_reply()))
    assert bench.called_until_it_ends("summary") == "done"
    assert [asked["look"] for asked in bench.answers.asked] == [False, True]


def test_the_settings_say_how_many_answers_may_be_no_good() -> None:
    bench = rejecting(any_reply("bad"), limits=Limits(max_samples=1))
    assert bench.branch("summary") == "failed"
    assert bench.answers.stored == {}


# --- effects -----------------------------------------------------------------------------------------
def test_effects_of_two_branches_of_one_name_and_payload_are_two() -> None:
    keys: list[str] = []

    def run(task_input: Any, ctx: Context) -> Any:
        return {"at": ctx.effect("mail", {"to": "a"}, lambda payload, key: keys.append(key))}

    tasks = [any_task(run, type_=name) for name in ("summary", "entities")]
    bench = Assembly(None, *tasks)
    bench.branch("summary")
    bench.branch("entities")
    assert len(set(keys)) == 2
    assert set(bench.effects.intents) == {f"{JOB_ID}#summary#mail", f"{JOB_ID}#entities#mail"}


def test_an_effect_of_a_branch_that_is_called_again_is_not_repeated() -> None:
    keys: list[str] = []
    tries: list[Any] = []

    def run(task_input: Any, ctx: Context) -> Any:
        ctx.effect("mail", {"to": "a"}, lambda payload, key: keys.append(key))
        tries.append(task_input)
        if len(tries) == 1:
            raise ValueError("after it")
        return {}

    bench = doing(run)
    assert bench.called_until_it_ends("summary") == "done"
    assert (len(keys), len(tries)) == (1, 2)


# --- its one write -------------------------------------------------------------------------------------
def test_a_cost_is_counted_once_when_the_reply_of_its_write_is_lost() -> None:
    bench = Assembly()
    bench.store.troubles.add("part", Trouble.LOST_REPLY)
    assert bench.branch("summary") == "done"
    assert bench.job().cost == PAID


@pytest.mark.parametrize("trouble", [Trouble.UNSENT, Trouble.REFUSED, Trouble.UNHEARD])
def test_a_part_that_could_not_be_recorded_is_found_by_the_next_call(trouble: Trouble) -> None:
    bench = Assembly()
    bench.store.troubles.add("part", None, trouble)
    with pytest.raises(TransientError, match="PART_NOT_RECORDED"):
        bench.branch("summary")
    assert bench.branch("summary") == "done"
    assert len(bench.asked) == 1
    landed = trouble is Trouble.UNHEARD
    assert bench.job().cost == (PAID if landed else 0)  # else the log has it
    assert bench.notices.of("part_not_recorded")["cost_micros"] == PAID


def _meanwhile(bench: Assembly, **fields: Any) -> None:
    """The record changes while the branch is at work."""
    stock = bench.model.converse

    def converse(request: Any) -> Any:
        bench.store.records[JOB_ID] = {**bench.store.records[JOB_ID], **fields}
        return stock(request)

    bench.model.converse = converse  # type: ignore[method-assign]


@pytest.mark.parametrize("fields", [{"status": CANCELLED}, {"run": 1}, {"run": 1, "parts_run": 1}], ids=str)
def test_what_a_branch_cost_that_comes_too_late_is_kept_once(fields: dict[str, Any]) -> None:
    bench = Assembly()
    _meanwhile(bench, **fields)
    bench.store.troubles.add("late_part", Trouble.LOST_REPLY)
    assert bench.branch("summary") == "stale"
    assert (bench.job().cost, bench.job().late_cost) == (0, PAID)


def test_a_late_cost_that_cannot_be_booked_is_in_the_log() -> None:
    bench = Assembly()
    _meanwhile(bench, status=CANCELLED)
    bench.store.troubles.add("late_part", Trouble.UNSENT)
    assert bench.branch("summary") == "stale"
    assert bench.notices.of("late_cost_not_booked")["cost_micros"] == PAID


def test_who_was_overtaken_by_a_twin_that_is_done_leaves_its_part() -> None:
    bench = doing(lambda i, ctx: raising(Permanent(ctx.model.ask("Q").text))(i, ctx))
    _meanwhile(bench, parts={"summary": {"state": "done", "by": "the twin", "sha": "s", "cost": 1}})
    assert bench.branch("summary") == "done"
    assert bench.part("summary").by == "the twin"


def test_who_is_done_and_was_overtaken_by_one_that_failed_is_done() -> None:
    bench = Assembly()
    twin = {"summary": {"state": "again", "by": "the twin", "error": {"code": "X", "message": "y"}, "cost": 7}}
    _meanwhile(bench, parts=twin)
    assert bench.branch("summary", by="me") == "done"
    part = bench.part("summary")
    assert (part.state, part.by, part.cost, bench.job().cost) == ("done", "me", 7 + PAID, PAID)


def test_who_failed_and_was_overtaken_by_one_that_tries_again_changes_nothing_and_is_called_again() -> None:
    bench = doing(lambda i, ctx: raising(Permanent(ctx.model.ask("Q").text))(i, ctx))
    _meanwhile(bench, parts={"summary": {"state": "again", "by": "the twin"}})
    with pytest.raises(TransientError):
        bench.branch("summary")
    assert (bench.part("summary").by, bench.job().late_cost) == ("the twin", PAID)
