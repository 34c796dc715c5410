"""Safety lines of jobs whose work is an execution: how it is started, followed and collected (rows 13 and 14)."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

CHANGES, STARTING = "core/workflows/changes.py", "core/workflows/starting.py"
FOLLOWING, HEARING, COLLECTING = (
    "core/workflows/following.py",
    "core/workflows/hearing.py",
    "core/workflows/collecting.py",
)
U_CHANGES, U_STARTING, U_COLLECTING, U_HEARING = (
    f"tests/unit/test_workflow_{name}.py" for name in ("changes", "starting", "collecting", "hearing")
)

LINES = (
    SafetyLine(
        name="prepare: a run begins with nothing done",
        file=CHANGES,
        line='        sets={"parts": all_open(branches), "parts_run": job.run, **place},\n',
        without='        sets={"parts": job.parts or all_open(branches), "parts_run": job.run, **place},\n',
        guards="row 13: what an earlier run has come to is not taken for this one's",
        tests=(f"{U_CHANGES}::test_the_next_run_begins_anew_and_keeps_who_came_late_in_the_one_before",),
    ),
    SafetyLine(
        name="prepare: whose cost was booked stays from one run to the next",
        file=CHANGES,
        line='    place: dict[str, Any] = {} if job.booked_by is not None else {"booked_by": {}}\n',
        without='    place: dict[str, Any] = {"booked_by": {}}\n',
        guards="G15: a repeat that comes in the next run books nothing twice",
        tests=(f"{U_CHANGES}::test_the_next_run_begins_anew_and_keeps_who_came_late_in_the_one_before",),
    ),
    SafetyLine(
        name="lease: it ends when Step Functions has ended the execution",
        file=CHANGES,
        line="    return after(since, timeout_s + LEASE_MARGIN_S)\n",
        without="    return after(since, timeout_s)\n",
        guards="hole 36: nobody takes a job whose execution may still run",
        tests=(f"{U_CHANGES}::test_what_is_started_is_held_until_its_own_time_is_over_and_a_minute",),
    ),
    SafetyLine(
        name="adopt: the next look comes with the lease's end",
        file=CHANGES,
        line="""\
            "due_at": times.text(min(lease, job.deadline_at)),
            **history_with(job, *lines),""",
        without="            **history_with(job, *lines),",
        guards="row 13: no sweep looks at an execution that runs as it should, and none too late",
        tests=(f"{U_CHANGES}::test_what_is_started_is_held_until_its_own_time_is_over_and_a_minute",),
    ),
    SafetyLine(
        name="extend: the lease of what runs is prolonged",
        file=CHANGES,
        line="""\
    sets = {"lease_until": times.text(lease), "due_at": times.text(min(lease, job.deadline_at))}
    return Change(RULES["extend"]""",
        without="""\
    sets = {"due_at": times.text(min(lease, job.deadline_at))}
    return Change(RULES["extend"]""",
        guards="N9: no message takes a job from its execution",
        tests=(f"{U_CHANGES}::test_the_sweep_prolongs_the_lease_of_what_it_finds_running",),
    ),
    SafetyLine(
        name="part: a branch writes its own entry alone",
        file=CHANGES,
        line='        sets={"parts.:branch": became.written(), ',
        without='        sets={"parts": {**(job.parts or {}), branch: became.written()}, ',
        guards="row 14: branches that end at once do not write over each other",
        tests=(f"{U_CHANGES}::test_two_branches_that_end_at_once_do_not_write_over_each_other",),
    ),
    SafetyLine(
        name="part: what a branch cost is booked with what became of it",
        file=CHANGES,
        line='"progress_at": times.text(now)},\n        adds=nonzero(cost=cost),\n',
        without='"progress_at": times.text(now)},\n',
        guards="G15: the cost of each branch is on the record",
        tests=(f"{U_CHANGES}::test_a_branch_writes_its_own_entry_its_cost_and_the_time",),
    ),
    SafetyLine(
        name="part: whose cost is booked is told for the runs that follow",
        file=CHANGES,
        line='"booked_by.:branch": became.by, ',
        without="",
        guards="G15: a repeat that comes in the next run books nothing twice",
        tests=(f"{U_CHANGES}::test_a_repeat_of_a_branchs_write_books_nothing_twice_whatever_run_the_job_is_in",),
    ),
    SafetyLine(
        name="late part: what came too late is booked apart",
        file=CHANGES,
        line='        adds={"late_cost": cost},\n',
        without='        adds={"cost": cost},\n',
        guards="row 14: what is booked on a job that has ended is no part of what its opening cost",
        tests=(f"{U_CHANGES}::test_what_came_too_late_has_cost_something_all_the_same",),
    ),
    SafetyLine(
        name="collect: what lacks parts is partial",
        file=CHANGES,
        line='            **({"partial": True} if partial else {}),\n',
        without="",
        guards="SFN: a partial result is never shown as complete",
        tests=(f"{U_CHANGES}::test_what_lacks_parts_is_never_shown_as_complete",),
    ),
    SafetyLine(
        name="collect: the starter takes no collector's write for its own",
        file=CHANGES,
        line='        removes=("error", "claim_id"),\n',
        without='        removes=("error",),\n',
        guards="G6: who has lost its job is fenced out, and says so",
        tests=(f"{U_CHANGES}::test_who_held_the_job_takes_no_such_end_for_its_own",),
    ),
    SafetyLine(
        name="fall short: the starter takes no collector's write for its own",
        file=CHANGES,
        line='{"run": job.run}, sets=_failed(job, now, why, limits), removes=("claim_id",))',
        without='{"run": job.run}, sets=_failed(job, now, why, limits))',
        guards="G6: who has lost its job is fenced out, and says so",
        tests=(f"{U_CHANGES}::test_who_held_the_job_takes_no_such_end_for_its_own",),
    ),
    SafetyLine(
        name="give up: the name of the execution is used",
        file=CHANGES,
        line="""\
        sets=_failed(job, now, why, limits),
        adds={"run": 1, "runs": 1},""",
        without="""\
        sets=_failed(job, now, why, limits),
        adds={"runs": 1},""",
        guards="hole 36: a job that is opened again does not wait for an execution that is over",
        tests=(f"{U_CHANGES}::test_after_the_last_run_the_job_has_failed_and_its_name_is_used_all_the_same",),
    ),
    SafetyLine(
        name="run again: a run that only waited is not counted",
        file=FOLLOWING,
        line="    if job.runs + 1 >= workflow.max_runs and not waits:\n",
        without="    if job.runs + 1 >= workflow.max_runs:\n",
        guards="BED: what waits for the model's capacity waits until the job's deadline",
        tests=(
            "tests/unit/test_workflow_waits.py"
            "::test_an_overload_that_outlasts_every_run_is_waited_for_and_costs_neither_a_run_nor_a_try",
        ),
    ),
    SafetyLine(
        name="waiting: a try that was used is no wait",
        file="core/workflows/parts.py",
        line="    if any(part.used for part in left.values()):\n        return {}\n",
        without="",
        guards="COST-01: no question is paid three times for every execution that there is time for",
        tests=(
            "tests/unit/test_workflow_waits.py"
            "::test_a_run_in_which_a_try_was_used_is_counted_though_it_waits_in_the_end",
        ),
    ),
    SafetyLine(
        name="run again: another execution has another name",
        file=CHANGES,
        line="""\
        adds={"run": 1, "tries": -1, "waits": 1} if waited else {"run": 1, "runs": 1},
        removes=("claim_id",),
    )


def _failed""",
        without="""\
        adds={"tries": -1, "waits": 1} if waited else {"runs": 1},
        removes=("claim_id",),
    )


def _failed""",
        guards="hole 36: the next run does not find the execution that ended badly",
        tests=(f"{U_CHANGES}::test_another_run_has_another_name_and_is_counted",),
    ),
    SafetyLine(
        name="end: the look is pulled in from the lease's end",
        file=CHANGES,
        line='    return {"due_at": times.text(min(after(now, limits.grace_s), job.deadline_at)), ',
        without="    return {",
        guards="G9: a lost stream record delays the hand-over by no more than a sweep",
        tests=(f"{U_CHANGES}::test_an_end_is_looked_after_within_the_grace_and_not_when_the_lease_would_end",),
    ),
    SafetyLine(
        name="start: nothing is started that could not be prepared",
        file=STARTING,
        line="""\
    return isinstance(attempt.worker.store.apply(job.id, changes.prepare(job, names)), Applied)
""",
        without="""\
    attempt.worker.store.apply(job.id, changes.prepare(job, names))
    return True
""",
        guards="row 13: nothing is started for a job that was cancelled",
        tests=(f"{U_STARTING}::test_a_job_that_was_cancelled_before_it_was_prepared_is_not_started",),
    ),
    SafetyLine(
        name="start: an execution is named by job and run",
        file=STARTING,
        line="    job, name = attempt.job, ids.execution_name(attempt.job.id, attempt.job.run)\n",
        without="    job, name = attempt.job, ids.execution_name(attempt.job.id, attempt.job.attempt)\n",
        guards="hole 36: whoever starts a run of a job again finds the execution that there is",
        tests=(f"{U_STARTING}::test_its_execution_is_named_by_job_and_run_and_given_a_pointer_in_one_byte_form",),
    ),
    SafetyLine(
        name="start: one that exists is asked what became of it",
        file=STARTING,
        line="""\
        except AlreadyExists:
            return executions.describe(job.type, name)
""",
        without="""\
        except AlreadyExists:
            return Running(attempt.worker.now())
""",
        guards="hole 36: nobody waits for an execution that is over",
        tests=(
            f"{U_STARTING}::test_an_execution_that_has_succeeded_gives_its_result",
            f"{U_STARTING}::test_an_execution_that_ended_badly_is_followed_by_another_run_up_to_the_workflows_bound",
        ),
    ),
    SafetyLine(
        name="start: what was not heard of may have happened",
        file=STARTING,
        line='        return Wait(error("EXECUTION_NOT_STARTED", str(trouble)))\n',
        without='        return Failed(error("EXECUTION_NOT_STARTED", str(trouble)), final=True)\n',
        guards="SFN-01: a start whose reply was lost is found by the next",
        tests=(f"{U_STARTING}::test_a_start_that_nobody_heard_of_makes_the_job_wait_and_is_found_by_the_next",),
    ),
    SafetyLine(
        name="start: what Step Functions refuses for good ends the job",
        file=STARTING,
        line="        return Failed(error(trouble.code, str(trouble)), final=True)\n",
        without="        return Wait(error(trouble.code, str(trouble)))\n",
        guards="SFN-03: nobody waits for a day for a start that no repeat makes better",
        tests=(f"{U_STARTING}::test_a_start_that_is_refused_for_good_is_the_jobs_end",),
    ),
    SafetyLine(
        name="start: whose tries are used up is not started",
        file=STARTING,
        line="    return attempt.job.tries > attempt.worker.limits.retry.max_attempts\n",
        without="    return False\n",
        guards="G14: a job is started no more often than its policy says",
        tests=(f"{U_STARTING}::test_a_job_whose_tries_are_used_up_and_for_which_nothing_runs_fails",),
    ),
    SafetyLine(
        name="start: whose tries are used up fails",
        file=STARTING,
        line='    return Failed(error("ATTEMPTS_EXHAUSTED", f"{most} tries used, {crashes} crashed"), final=True)\n',
        without='    return Wait(error("ATTEMPTS_EXHAUSTED", f"{most} tries used, {crashes} crashed"))\n',
        guards="G14: what is used up is not put back",
        tests=(f"{U_STARTING}::test_a_job_whose_tries_are_used_up_and_for_which_nothing_runs_fails",),
    ),
    SafetyLine(
        name="start: a refused write is told as one",
        file=STARTING,
        line="""\
            word = "fenced_out"
            attempt.notice(word, status""",
        without="""\
            attempt.notice(word, status""",
        guards="G6: who has lost its job says so",
        tests=(
            f"{U_STARTING}::test_a_job_that_was_cancelled_while_it_was_started_stays_so_and_its_branches_pay_nothing",
        ),
    ),
    SafetyLine(
        name="claim: a job whose execution may run is left to the sweep",
        file="core/claiming.py",
        line="        if job.parts_run == job.run:",
        without="        if False:",
        guards="N9: no message fails a job while its execution runs",
        tests=(f"{U_STARTING}::test_n9_a_message_does_not_fail_a_job_whose_execution_may_be_running",),
    ),
    SafetyLine(
        name="follow: after the last run the job fails",
        file=FOLLOWING,
        line="    if job.runs + 1 >= workflow.max_runs and not waits:\n",
        without="    if job.runs + 1 > workflow.max_runs and not waits:\n",
        guards="COST: executions are bounded by what the workflow says",
        tests=(
            f"{U_STARTING}::test_an_execution_that_ended_badly_is_followed_by_another_run_up_to_the_workflows_bound",
            f"{U_STARTING}::test_a_workflow_of_one_run_fails_with_it",
        ),
    ),
    SafetyLine(
        name="follow: what is partial stays so, whoever finds it",
        file=FOLLOWING,
        line='more.get("partial") is True\n',
        without="False\n",
        guards="SFN: a partial result is never shown as complete",
        tests=(f"{U_STARTING}::test_an_execution_that_has_succeeded_gives_its_result",),
    ),
    SafetyLine(
        name="hear: an execution of another run is nobody's end",
        file=HEARING,
        line=' or record.get("run") != ask.run:\n',
        without=":\n",
        guards="hole 36: a late event of one run does not touch the next",
        tests=(f"{U_HEARING}::test_an_event_of_an_earlier_run_is_not_needed",),
    ),
    SafetyLine(
        name="hear: what runs is not ended",
        file=HEARING,
        line="    if found is None or isinstance(found, Running):\n",
        without="    if found is None:\n",
        guards="row 14b: what Step Functions says now counts, not what its event said",
        tests=(f"{U_HEARING}::test_what_step_functions_does_not_say_is_left_to_the_sweep",),
    ),
    SafetyLine(
        name="hear: what Step Functions is behind with is told again",
        file=HEARING,
        line='            raise StillRunning(f"run {job.run} has ended, says its event")\n',
        without="            pass\n",
        guards="G40: an end is found a moment later, not when the lease is over",
        tests=(f"{U_HEARING}::test_an_execution_that_is_still_said_to_run_is_to_be_told_of_again",),
    ),
    SafetyLine(
        name="hear: what was redriven runs",
        file=HEARING,
        line=" and found.since <= stopped\n",
        without="\n",
        guards="row 14b: an execution that was redriven is not waited for, and alarms nobody",
        tests=(f"{U_HEARING}::test_an_execution_that_was_redriven_since_its_event_is_left_alone",),
    ),
    SafetyLine(
        name="hear: an event is told again only so long",
        file=HEARING,
        line=" and desk.now() < times.after(stopped, HEARD_AGAIN_S):\n",
        without=":\n",
        guards="G11: what nobody need look at is no dead letter",
        tests=(f"{U_HEARING}::test_an_event_that_was_told_a_third_time_in_vain_is_no_dead_letter",),
    ),
    SafetyLine(
        name="hear: a refused write is no end that was written",
        file=HEARING,
        line='    if not isinstance(desk.store.apply(job.id, change), Applied):\n        return "not_needed", {}\n',
        without="    desk.store.apply(job.id, change)\n",
        guards="G6: who changed nothing says so",
        tests=(f"{U_HEARING}::test_a_write_that_is_refused_is_no_trouble",),
    ),
    SafetyLine(
        name="collect: another run's parts are nobody's",
        file=COLLECTING,
        line="    if job.run != ask.run or job.parts_run != ask.run:\n        return _refused(ask, desk, record)\n",
        without="",
        guards="row 14: a late collector does not end the next run",
        tests=(f"{U_COLLECTING}::test_n9_a_refused_write_is_a_success_for_the_state_machine",),
    ),
    SafetyLine(
        name="collect: the result is stored before the job is completed",
        file=COLLECTING,
        line="        desk.results.put(key, body)\n",
        without="",
        guards="G13: who reads COMPLETED finds the result",
        tests=(f"{U_COLLECTING}::test_all_parts_make_one_result_and_the_job_is_completed_after_it_is_stored",),
    ),
    SafetyLine(
        name="collect: a part that is declared no more is collected",
        file=COLLECTING,
        line="    for name in (*declared, *sorted(parts.keys() - set(declared))):\n",
        without="    for name in declared:\n",
        guards="SFN: what a run was started with is never left out without a word, whatever a deploy has changed",
        tests=(
            f"{U_COLLECTING}::test_what_was_paid_is_in_the_result_though_a_deploy_has_taken_its_branch",
            f"{U_COLLECTING}::test_a_branch_that_a_deploy_renamed_before_it_was_done_is_missing_and_never_left_unsaid",
        ),
    ),
    SafetyLine(
        name="collect: a part that is declared no more counts",
        file=COLLECTING,
        line="    counted = collected.called - {branch.name for branch in workflow.branches if branch.may_fail}\n",
        without="    counted = collected.called & {*workflow.counted}\n",
        guards="SFN: a result without it is not taken for one with all parts",
        tests=(
            f"{U_COLLECTING}::test_a_branch_that_a_deploy_renamed_before_it_was_done_is_missing_and_never_left_unsaid",
        ),
    ),
    SafetyLine(
        name="collect: a refused write is told as one",
        file=COLLECTING,
        line="""\
    if not isinstance(desk.store.apply(job.id, change), Applied):
        word, answer = "collect_refused", told.refused()
""",
        without="    desk.store.apply(job.id, change)\n",
        guards="N9: nobody finishes a job from the output of a collector that was refused",
        tests=(f"{U_COLLECTING}::test_n9_a_refused_write_is_a_success_for_the_state_machine",),
    ),
    SafetyLine(
        name="collect: each result has a name of its own",
        file=COLLECTING,
        line="ids.run_result_key(job.tenant, job.id, job.run, written, partial=partial), written.encode()\n",
        without='ids.run_result_key(job.tenant, job.id, job.run, ""), written.encode()\n',
        guards="row 14: a collector that comes late writes over no result that the record has",
        tests=(f"{U_COLLECTING}::test_a_collector_that_saw_fewer_parts_and_comes_last_does_not_write_over_the_result",),
    ),
    SafetyLine(
        name="collect: what is missing makes it partial",
        file=COLLECTING,
        line="canonical(_result(workflow, collected)), bool(collected.missing)\n",
        without="canonical(_result(workflow, collected)), False\n",
        guards="SFN: a partial result is never shown as complete",
        tests=(
            f"{U_COLLECTING}::test_a_workflow_survives_what_it_says_and_a_partial_result_is_never_told_as_complete",
        ),
    ),
)
