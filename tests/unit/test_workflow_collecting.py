"""The collector: what is a result, what is not, and the one write that ends the job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import CANCELLED, COMPLETED, DELETED, FAILED, PENDING
from lambdas.core import ids
from lambdas.core.canonical import canonical
from lambdas.core.workflows.told import WaitError
from tests.builders import JOB_ID, TENANT, later
from tests.fakes import Trouble
from tests.fakes_workflows import BRANCHES, any_workflow
from tests.unit.assembly import Assembly, started_record

SAID = {"said": "All three are safe."}
ALL_SAID = {"complete": True, "parts": dict.fromkeys(BRANCHES, SAID), "missing": []}
KEY = ids.run_result_key(TENANT, JOB_ID, 0, canonical(ALL_SAID))
FAILED_PART = {"state": "failed", "by": "b", "error": {"code": "MODEL_PERMANENT", "message": "no such model"}}


def finished(*done: str, workflow: Any = None, **missing: dict[str, Any]) -> Assembly:
    """The branches named in `done` are; the others are as told, or open."""
    bench = Assembly(workflow=workflow)
    for name in done:
        bench.branch(name)
    record = bench.store.records[JOB_ID]
    record["parts"] = {**record["parts"], **missing}
    bench.order.clear()
    return bench


def test_all_parts_make_one_result_and_the_job_is_completed_after_it_is_stored() -> None:
    bench = finished(*BRANCHES)
    answer = bench.collect()
    assert bench.order == ["read", "get", "get", "get", "put", "collect"]
    assert bench.result() == ALL_SAID
    size = len(bench.results.objects[KEY])
    assert answer == {"status": "COMPLETED", "result_key": KEY, "result_bytes": size}
    job = bench.job()
    assert (job.status, job.result_key, job.result_bytes, job.partial) == (COMPLETED, KEY, size, False)
    assert job.due_at == later(120)
    assert bench.lost == []


def test_the_result_does_not_depend_on_which_branch_was_first() -> None:
    one, other = finished(*BRANCHES), finished(*reversed(BRANCHES))
    one.collect()
    other.collect()
    assert one.results.objects[KEY] == other.results.objects[KEY]


def test_a_job_that_was_reaped_by_mistake_is_completed_all_the_same() -> None:
    bench = finished(*BRANCHES)
    bench.store.records[JOB_ID]["status"] = PENDING
    assert bench.collect()["status"] == COMPLETED


# --- what is missing ---------------------------------------------------------------------------------
def test_sfn_11_all_fails_with_a_part_missing_and_keeps_those_that_are_done() -> None:
    bench = finished("summary", "entities", flags=FAILED_PART)
    kept = dict(bench.results.objects)
    answer = bench.collect()
    assert (answer["status"], answer["error"]["code"]) == ("FAILED", "PARTS_MISSING")
    job = bench.job()
    assert (job.status, job.error) == (FAILED, answer["error"])
    assert "flags (MODEL_PERMANENT)" in answer["error"]["message"]
    assert (bench.results.objects, job.result_key) == (kept, None)
    assert bench.part("summary").state == "done"


@pytest.mark.parametrize(
    ("partial", "done", "status"),
    [
        ({"quorum": 2}, 2, COMPLETED), ({"quorum": 2}, 1, FAILED), ({"quorum": 3}, 2, FAILED),
        ("best_effort", 1, COMPLETED), ("best_effort", 0, FAILED), ("all", 2, FAILED), ("all", 3, COMPLETED),
    ],
)  # fmt: skip
def test_a_workflow_survives_what_it_says_and_a_partial_result_is_never_told_as_complete(
    partial: Any, done: int, status: str
) -> None:
    missing = dict.fromkeys(BRANCHES[done:], FAILED_PART)
    bench = finished(*BRANCHES[:done], workflow=any_workflow(partial=partial), **missing)
    answer = bench.collect()
    assert (answer["status"], bench.job().status) == (status, status)
    if status == COMPLETED:
        is_whole = done == len(BRANCHES)
        assert (bench.job().partial, answer.get("partial", False)) == (not is_whole, not is_whole)
        result = bench.result()
        assert (result["complete"], [*result["parts"]]) == (is_whole, sorted(BRANCHES[:done]))
        assert result["missing"] == [
            {"part": name, "code": "MODEL_PERMANENT", "message": "no such model"} for name in BRANCHES[done:]
        ]


def test_a_branch_that_may_fail_never_counts_and_is_named_as_missing() -> None:
    stages = [["summary", {"task": "entities", "may_fail": True}]]
    bench = finished("summary", workflow=any_workflow(stages=stages), entities=FAILED_PART)
    assert bench.collect()["status"] == COMPLETED
    assert (bench.job().partial, bench.result()["complete"]) == (True, False)
    only = finished("entities", workflow=any_workflow(stages=stages, partial="best_effort"), summary=FAILED_PART)
    assert only.collect()["status"] == FAILED


@pytest.mark.parametrize(
    ("part", "code", "lost"),
    [
        ({"state": "open"}, "CRASHED", 1),
        ({"state": "again", "by": "b", "error": {"code": "MODEL_THROTTLED", "message": "slow"}}, "MODEL_THROTTLED", 0),
        ({"state": "again", "by": "b"}, "CRASHED", 0),
        ({"state": "done", "by": "b", "sha": "0" * 32}, "PART_LOST", 0),
    ],
)
def test_a_part_that_never_came_says_why(part: Any, code: str, lost: int) -> None:
    bench = finished("summary", "entities", workflow=any_workflow(partial="best_effort"), flags=part)
    assert bench.collect()["status"] == COMPLETED
    assert [(one["part"], one["code"]) for one in bench.result()["missing"]] == [("flags", code)]
    assert sum(bench.lost) == lost


@pytest.mark.parametrize("partial", ["all", {"quorum": 4}, "best_effort"], ids=str)
def test_an_execution_ends_with_the_branches_that_it_was_started_with(partial: Any) -> None:
    bench = finished(*BRANCHES)
    later_version = any_workflow(branches=(*BRANCHES, "added-since"), partial=partial)
    bench.workflows[later_version.type] = later_version
    assert bench.collect()["status"] == COMPLETED
    assert (bench.result()["complete"], bench.job().partial) == (True, False)


@pytest.mark.parametrize("branches", [BRANCHES[:1], ("renamed", "renamed-too")], ids=["removed", "renamed"])
@pytest.mark.parametrize("partial", ["all", {"quorum": 1}, "best_effort"], ids=str)
def test_what_was_paid_is_in_the_result_though_a_deploy_has_taken_its_branch(partial: Any, branches: Any) -> None:
    bench = finished(*BRANCHES)
    bench.workflows["analyze"] = any_workflow(branches=branches, partial=partial)
    assert bench.collect()["status"] == COMPLETED
    assert (bench.result(), bench.job().partial) == (ALL_SAID, False)


@pytest.mark.parametrize(
    ("partial", "status"),
    [("all", FAILED), ({"quorum": 3}, FAILED), ({"quorum": 2}, COMPLETED), ("best_effort", COMPLETED)],
    ids=str,
)
def test_a_branch_that_a_deploy_renamed_before_it_was_done_is_missing_and_never_left_unsaid(
    partial: Any, status: str
) -> None:
    bench = finished(*BRANCHES[:2])
    bench.workflows["analyze"] = any_workflow(branches=(*BRANCHES[:2], "warnings"), partial=partial)
    assert bench.branch("flags") == "failed"
    assert bench.collect()["status"] == status
    if status == FAILED:
        assert (bench.job().error or {})["message"] == "2 parts done, 3 needed; missing: flags (UNKNOWN_BRANCH)"
        return
    assert (bench.result()["complete"], bench.job().partial) == (False, True)
    assert [(one["part"], one["code"]) for one in bench.result()["missing"]] == [("flags", "UNKNOWN_BRANCH")]


def test_parts_that_are_not_declared_any_more_come_last_and_by_name() -> None:
    """The record's map has no order of its own."""
    bench = finished(workflow=any_workflow(partial="best_effort"), **dict.fromkeys(BRANCHES[:2], FAILED_PART))
    bench.branch("flags")
    bench.workflows["analyze"] = any_workflow(branches=("flags",), partial="best_effort")
    record = bench.store.records[JOB_ID]
    record["parts"] = dict(sorted(record["parts"].items(), reverse=True))
    bench.collect()
    assert [one["part"] for one in bench.result()["missing"]] == ["entities", "summary"]


def test_a_part_whose_object_is_no_json_is_lost() -> None:
    bench = finished(*BRANCHES, workflow=any_workflow(partial="best_effort"))
    key = next(key for key in bench.results.objects if "/flags/" in key)
    bench.results.objects[key] = b"{"
    bench.collect()
    assert [(one["part"], one["code"]) for one in bench.result()["missing"]] == [("flags", "PART_LOST")]


LAST = any_workflow(stages=[["a", "b"], {"task": "report", "input": "/parts"}], result="last", partial="best_effort")


def test_the_last_branch_may_make_the_result() -> None:
    bench = Assembly(workflow=LAST)
    bench.tasks["report"].__dict__["run"] = lambda task_input, ctx: {"of": sorted(task_input)}
    assert bench.play()["status"] == COMPLETED
    assert (bench.result(), bench.job().partial) == ({"of": ["a", "b"]}, False)


def test_without_the_branch_that_makes_the_result_there_is_none() -> None:
    bench = finished("a", "b", workflow=LAST, report=FAILED_PART)
    answer = bench.collect()
    assert (answer["status"], answer["error"]["code"]) == ("FAILED", "PARTS_MISSING")
    assert answer["error"]["message"] == "no report, which makes the result; missing: report (MODEL_PERMANENT)"


def test_a_branch_that_makes_the_result_by_another_name_than_at_the_start_is_told_with_what_to_do() -> None:
    bench = finished("a", "b", workflow=LAST)
    bench.tasks["report"].__dict__["run"] = lambda task_input, ctx: {"of": sorted(task_input)}
    bench.branch("report")
    stages = [["a", "b"], {"name": "letter", "task": "report", "input": "/parts"}]
    bench.workflows["analyze"] = any_workflow(stages=stages, result="last", partial="best_effort")
    error = bench.collect()["error"]
    assert (error["code"], bench.job().status) == ("PARTS_MISSING", FAILED)
    assert error["message"] == (
        "the workflow was changed while it ran: letter, which makes the result now, was not called; retry the job"
    )
    assert bench.part("report").state == "done"


def test_a_result_of_the_last_branch_with_another_part_missing_is_partial() -> None:
    bench = finished("a", workflow=LAST, b=FAILED_PART)
    bench.tasks["report"].__dict__["run"] = lambda task_input, ctx: {"of": sorted(task_input)}
    bench.branch("report")
    bench.collect()
    assert (bench.result(), bench.job().partial) == ({"of": ["a"]}, True)


def test_of_forty_names_of_what_is_missing_those_that_fit_are_whole_and_the_others_counted() -> None:
    names = tuple(f"branch-{'x' * 30}-{n}" for n in range(40))
    bench = Assembly(workflow=any_workflow(branches=names))
    assert bench.collect()["status"] == FAILED
    message = (bench.job().error or {})["message"]
    assert message == (
        f"0 parts done, 40 needed; missing: {names[0]} (CRASHED), {names[1]} (CRASHED), {names[2]} (CRASHED)"
        " and 37 more"
    )
    assert len(message.encode()) <= 200


def test_the_branch_that_makes_the_result_is_named_before_forty_others_that_are_missing() -> None:
    maker, others = "m" * 40, [f"branch-{'x' * 30}-{n}" for n in range(39)]
    stages = [others, {"name": maker, "task": "report", "input": "/parts"}]
    why = {"state": "failed", "by": "b", "error": {"code": "C" * 64, "message": "no"}}
    bench = finished(
        others[0],
        workflow=any_workflow(stages=stages, result="last", partial="best_effort"),
        **dict.fromkeys([*others[1:], maker], why),
    )
    bench.collect()
    message = (bench.job().error or {})["message"]
    assert message == f"no {maker}, which makes the result; missing: {maker} ({'C' * 64}) and 38 more"


# --- once more -------------------------------------------------------------------------------------
def test_a_collector_that_is_called_again_after_its_answer_was_lost_answers_the_same() -> None:
    bench = finished(*BRANCHES[:2], workflow=any_workflow(partial={"quorum": 2}))
    assert bench.collect() == bench.collect()
    assert bench.order.count("put") == 1
    failing = finished(*BRANCHES[:2])
    assert failing.collect() == failing.collect()


@pytest.mark.parametrize("rule", ["collect", "fall_short"])
def test_a_lost_reply_of_its_own_write_is_no_refusal(rule: str) -> None:
    bench = finished(*(BRANCHES if rule == "collect" else BRANCHES[:2]))
    bench.store.troubles.add(rule, Trouble.LOST_REPLY)
    assert bench.collect()["status"] in (COMPLETED, FAILED)


@pytest.mark.parametrize("over", [{"status": CANCELLED}, {"status": DELETED}, {"run": 1}, {"parts_run": 7}], ids=str)
def test_n9_a_refused_write_is_a_success_for_the_state_machine(over: dict[str, Any]) -> None:
    early, late = finished(*BRANCHES), finished(*BRANCHES)
    early.store.records[JOB_ID].update(over)
    assert early.collect() == {"status": "refused"}
    assert "put" not in early.order
    if "parts_run" in over:
        return
    late.store.before = lambda name: late.store.records[JOB_ID].update(over) if name == "collect" else None
    assert late.collect() == {"status": "refused"}
    assert late.store.records[JOB_ID].get("result_key") is None


def test_a_collector_that_saw_fewer_parts_and_comes_last_does_not_write_over_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lambda may still be at work on what Step Functions has called again."""
    bench = finished(*BRANCHES[:-1], workflow=any_workflow(partial="best_effort"))
    put = bench.results.put

    def after_the_other(key: str, body: bytes) -> None:
        monkeypatch.setattr(bench.results, "put", put)
        bench.branch(BRANCHES[-1])
        assert "partial" not in bench.collect()
        put(key, body)

    monkeypatch.setattr(bench.results, "put", after_the_other)
    assert bench.collect() == {"status": "refused"}
    job = bench.job()
    assert (job.status, job.partial) == (COMPLETED, False)
    assert json.loads(bench.results.objects[job.result_key or ""])["complete"] is True


def test_a_job_that_is_gone_is_refused() -> None:
    bench = Assembly()
    bench.store.records.clear()
    assert bench.collect() == {"status": "refused"}


@pytest.mark.parametrize(
    ("store", "call"), [("store", "read"), ("results", "get"), ("results", "put"), ("store", "collect")]
)
@pytest.mark.parametrize("trouble", [Trouble.UNSENT, Trouble.REFUSED])
def test_what_cannot_be_reached_is_raised_and_the_next_call_completes(store: str, call: str, trouble: Trouble) -> None:
    bench = finished(*BRANCHES)
    getattr(bench, store).troubles.add(call, trouble)
    with pytest.raises(WaitError, match="STORE_UNAVAILABLE"):
        bench.collect()
    assert bench.collect()["status"] == COMPLETED


def test_a_write_that_landed_unheard_is_found_by_the_next_call() -> None:
    bench = finished(*BRANCHES)
    bench.store.troubles.add("collect", Trouble.UNHEARD)
    with pytest.raises(WaitError):
        bench.collect()
    assert bench.collect()["result_key"] == KEY


def test_a_workflow_that_is_unknown_here_is_waited_for() -> None:
    bench = finished(*BRANCHES)
    bench.workflows.clear()
    with pytest.raises(WaitError, match="UNKNOWN_TYPE"):
        bench.collect()


def test_its_end_is_told_with_what_is_missing() -> None:
    bench = finished("summary", "entities", flags=FAILED_PART)
    bench.collect()
    told = bench.notices.of("failed")
    assert (told["reason"], told["missing"], told["done"]) == ("PARTS_MISSING", ["flags"], 2)


def test_sfn_15_a_branch_that_reports_twice_counts_once() -> None:
    bench = finished("summary", "summary", "entities", workflow=any_workflow(partial={"quorum": 3}))
    assert bench.collect()["status"] == FAILED


def test_sfn_06_forty_parts_of_ten_kilobytes_make_one_result_and_step_functions_sees_pointers_alone() -> None:
    names = tuple(f"b{n}" for n in range(40))
    bench = Assembly(workflow=any_workflow(branches=names))
    for task in bench.tasks.values():
        task.__dict__["run"] = lambda task_input, ctx: {"text": "x" * 10_000}
    answer = bench.play()
    assert (len(bench.result()["parts"]), answer["result_bytes"] > 400_000) == (40, True)
    assert len(json.dumps(answer)) < 400
    assert len(json.dumps(bench.store.records[JOB_ID])) < 40_000


# --- the record of a started job is what is written --------------------------------------------------
def test_started_record_is_as_prepare_leaves_it() -> None:
    bench = Assembly({**started_record(), "parts_run": -1})
    bench.start()
    assert bench.job().parts == started_record()["parts"]
