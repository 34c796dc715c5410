"""Safety lines of a branch of an execution: paid once, written down once, told to Step Functions by the right name."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

BRANCHING, RECORDING, PRODUCING = (
    "core/workflows/branching.py",
    "core/workflows/recording.py",
    "core/workflows/producing.py",
)
U_BRANCHING = "tests/unit/test_workflow_branching.py"

LINES = (
    SafetyLine(
        name="branch: a job that has gone on is not worked for",
        file=BRANCHING,
        line="    return job if is_of_run and job.status in (PENDING, PROCESSING) else None\n",
        without="    return job if is_of_run else None\n",
        guards="COST: nothing is paid for a job that was cancelled",
        tests=(f"{U_BRANCHING}::test_a_job_that_has_gone_on_is_stale_and_pays_nothing",),
    ),
    SafetyLine(
        name="branch: a job in another run is not worked for",
        file=BRANCHING,
        line="    is_of_run = job.run == ask.run == job.parts_run\n",
        without="    is_of_run = True\n",
        guards="hole 36: nothing is paid for an execution that was given up",
        tests=(f"{U_BRANCHING}::test_a_job_in_another_run_is_stale_and_pays_nothing",),
    ),
    SafetyLine(
        name="branch: what has come to its end is not run once more",
        file=BRANCHING,
        line="    if part.state in (DONE, FAILED):\n",
        without="    if part.state in ():\n",
        guards="row 14: a call that is repeated finds what it has done",
        tests=(f"{U_BRANCHING}::test_a_branch_that_is_over_is_not_run_once_more",),
    ),
    SafetyLine(
        name="branch: what a later version has no more fails",
        file=BRANCHING,
        line='has no branch {name!r} (any more)"), final=True)',
        without='has no branch {name!r} (any more)"))',
        guards="SFN: what no repeat makes better is written down, not tried again",
        tests=(f"{U_BRANCHING}::test_a_branch_that_a_later_version_of_the_workflow_has_no_more_fails",),
    ),
    SafetyLine(
        name="branch: answers that are no good are bounded",
        file=BRANCHING,
        line=' or (verdict.anew != "" and asked >= one.attempt.worker.limits.max_samples)\n',
        without="\n",
        guards="G14: a branch asks anew only so often",
        tests=(f"{U_BRANCHING}::test_a_second_answer_that_is_no_good_is_the_branchs_end",),
    ),
    SafetyLine(
        name="branch: a task's own tries are bounded by its policy",
        file=BRANCHING,
        line="    return verdict.final or one.is_last or (",
        without="    return verdict.final or (",
        guards="COST-01: a task that says it is tried once is tried once, as a job and in a workflow",
        tests=(f"{U_BRANCHING}::test_a_task_with_a_policy_of_its_own_is_tried_no_more_often_in_a_run",),
    ),
    SafetyLine(
        name="branch: waits that are paid for are tries of its policy, too",
        file=BRANCHING,
        line="        if one.is_last:\n",
        without="        if False:\n",
        guards="COST-01, N7: what is paid for nothing is bounded by the task's own tries",
        tests=(f"{U_BRANCHING}::test_a_wait_that_may_have_been_paid_for_nothing_is_one_of_its_tasks_tries",),
    ),
    SafetyLine(
        name="branch: a wait that may have been paid for uses a try",
        file=BRANCHING,
        line="    if not is_free(verdict.why, one.attempt.bill):\n",
        without="    if False:\n",
        guards="N7: what is paid for nothing is bounded by the tries",
        tests=(f"{U_BRANCHING}::test_a_wait_that_may_have_been_paid_for_nothing_uses_a_try",),
    ),
    SafetyLine(
        name="branch: a wait that may have been paid for is counted as used",
        file=BRANCHING,
        line="        return _written(one, replace(again, used=one.part.used + 1), verdict)\n",
        without="        return _written(one, again, verdict)\n",
        guards="COST-01: such a run is no run that only waited",
        tests=(f"{U_BRANCHING}::test_a_wait_that_may_have_been_paid_for_nothing_uses_a_try",),
    ),
    SafetyLine(
        name="branch: who has failed having paid has used a try",
        file=BRANCHING,
        line="            state = _written(one, one.now(FAILED, error=why, used=used), verdict)\n",
        without="            state = _written(one, one.now(FAILED, error=why), verdict)\n",
        guards="COST-01: no question is paid anew for every execution that there is time for",
        tests=(
            "tests/unit/test_workflow_waits.py"
            "::test_a_run_in_which_a_branch_has_failed_having_paid_is_counted_though_another_waits",
        ),
    ),
    SafetyLine(
        name="branch: the charge is written",
        file=BRANCHING,
        line="        outcome = worker.store.apply(job.id, changes.part(job, branch, charge, cost=0, now=now))\n",
        without="        outcome: Any = Applied({})\n",
        guards="COST-01: a run in which a branch died having paid is no run that only waited",
        tests=(
            "tests/unit/test_workflow_waits.py"
            "::test_a_run_in_which_a_branch_was_killed_is_counted_whatever_it_waited_for_before_and_after",
        ),
    ),
    SafetyLine(
        name="branch: who has no tries left is not called",
        file=BRANCHING,
        line="    if one.tries is None or one.part.used < one.tries:\n        return None\n",
        without="    if one.tries is None or one.part.used < one.tries or True:\n        return None\n",
        guards="COST-01: a task is tried as often as it says, those of its tries included that died",
        tests=(f"{U_BRANCHING}::test_a_tasks_own_bound_counts_the_tries_that_died",),
    ),
    SafetyLine(
        name="branch: a try is taken before anything can be paid",
        file=BRANCHING,
        line="    job = _charged(job, ask.branch, by, part, desk.worker)\n",
        without="",
        guards="COST-01: a run in which a branch died having paid is no run that only waited",
        tests=(
            "tests/unit/test_workflow_waits.py"
            "::test_a_run_in_which_a_branch_was_killed_is_counted_whatever_it_waited_for_before_and_after",
        ),
    ),
    SafetyLine(
        name="branch: a rejected answer leaves the cache",
        file=BRANCHING,
        line="        forget(attempt, verdict)\n",
        without="        pass\n",
        guards="N2: a rejected answer is no negative cache",
        tests=(
            f"{U_BRANCHING}::test_n2_a_rejected_answer_is_asked_for_anew_and_leaves_the_cache_after_the_record_says_so",
        ),
    ),
    SafetyLine(
        name="part: what is stored is not paid for again",
        file=PRODUCING,
        line="        return Given(sha, len(worker.results.get(key)), found=True)\n",
        without="        raise Missing(key)\n",
        guards="row 14: a part is paid once, in whichever run",
        tests=(f"{U_BRANCHING}::test_a_part_of_an_earlier_run_is_found_and_nothing_is_paid",),
    ),
    SafetyLine(
        name="part: it is stored before it is said to be done",
        file=PRODUCING,
        line="    worker.results.put(key, body)\n",
        without="",
        guards="G13: whoever reads that a part is done finds it",
        tests=(f"{U_BRANCHING}::test_a_branch_stores_its_part_and_writes_that_it_has_begun_and_that_it_is_done",),
    ),
    SafetyLine(
        name="record: one that was overtaken by another end is not said to be written",
        file=RECORDING,
        line="        if standing is None or part.state != DONE or _part(standing, branch).state == DONE:\n",
        without="        if standing is None or _part(standing, branch).state == DONE:\n",
        guards="row 14: who has failed changes nothing that another try has come to",
        tests=(
            f"{U_BRANCHING}::test_who_failed_and_was_overtaken_by_one_that_tries_again_changes_nothing_and_is_called_again",
        ),
    ),
    SafetyLine(
        name="record: what a branch cost that comes too late is booked",
        file=RECORDING,
        line="            outcome = store.apply(job_id, change)\n",
        without="            return\n            outcome = store.apply(job_id, change)\n",
        guards="G15: no cost is lost when a job goes on without its branch",
        tests=(f"{U_BRANCHING}::test_what_a_branch_cost_that_comes_too_late_is_kept_once",),
    ),
)
