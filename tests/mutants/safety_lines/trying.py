"""Safety lines of one try: its input, its result, and the write that says how it ended."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

EXECUTION, VERDICTS = "core/execution.py", "core/verdicts.py"
ASKING, IDS = "core/asking.py", "core/ids.py"
U_EXECUTION = "tests/unit/test_execution.py"
U_FENCE = "tests/unit/test_execution_fence.py"

LINES = (
    SafetyLine(
        name="try: the result is stored before the record says so",
        file=EXECUTION,
        line="    worker.results.put(key, body)\n",
        without="",
        guards="row 4: a COMPLETED job has its result",
        tests=(f"{U_EXECUTION}::test_the_result_is_stored_before_the_record_says_that_it_is",),
    ),
    SafetyLine(
        name="try: a result lies under its attempt",
        file=IDS,
        line='    return f"{job_objects(tenant, job_id)}{attempt}"',
        without='    return f"{job_objects(tenant, job_id)}0"',
        guards="hole 20: a late holder does not put its bytes in place of the result that the record points to",
        tests=(
            f"{U_EXECUTION}::test_the_result_lies_under_the_attempt_that_made_it",
            "tests/unit/test_ids.py::test_object_keys_name_tenant_job_and_what_must_not_be_overwritten",
        ),
    ),
    SafetyLine(
        name="try: a large input is the one that was accepted",
        file="core/accepted_input.py",
        line="    if hashlib.sha256(body).hexdigest() != job.body_sha:\n",
        without="    if False:\n",
        guards="hole 1: no job runs on another request's input",
        tests=(f"{U_EXECUTION}::test_an_input_that_is_not_what_was_accepted_fails_for_good",),
    ),
    SafetyLine(
        name="try: a task reads the context of its own tenant",
        file=EXECUTION,
        line="fetch=lambda key: _fetch(worker.inputs, job.tenant, key),",
        without='fetch=lambda key: _fetch(worker.inputs, "globex", key),',
        guards="G5: another tenant's context is not there",
        tests=(f"{U_EXECUTION}::test_a_context_object_is_fetched_for_this_tenant_alone",),
    ),
    SafetyLine(
        name="try: a context key leads nowhere else",
        file=EXECUTION,
        line="""\
    if not fits or set(key.split("/")) & {"", ".", ".."}:""",
        without="""\
    if not fits:""",
        guards="G5: a key with steps in it does not leave the tenant's own folder",
        tests=(
            f"{U_EXECUTION}::test_a_key_whose_path_could_be_read_in_two_ways_or_is_too_long_fails_for_good_and_is_not_asked_for",
        ),
    ),
    SafetyLine(
        name="try: whatever is raised ends its own job alone",
        file=EXECUTION,
        line="""\
    except BaseException as raised:
        return judge(raised""",
        without="""\
    except ArithmeticError as raised:
        return judge(raised""",
        guards="G16: what a task raises, SystemExit included, is the outcome of its own job",
        tests=(f"{U_EXECUTION}::test_a_task_that_ends_the_process_ends_only_its_own_try",),
    ),
    SafetyLine(
        name="try: beyond the task's own bound nothing is run",
        file=EXECUTION,
        line="    if job.tries > most:\n",
        without="    if False:\n",
        guards="G14: a job is tried at most as often as its task says",
        tests=(f"{U_EXECUTION}::test_a_try_beyond_the_tasks_own_bound_is_not_run",),
    ),
    SafetyLine(
        name="try: a task that is not here yet is waited for",
        file=EXECUTION,
        line='        return Wait(changes.error("UNKNOWN_TYPE",',
        without='        return Failed(final=True, why=changes.error("UNKNOWN_TYPE",',
        guards="G17, hole 42: a deploy that is under way fails no job",
        tests=(f"{U_EXECUTION}::test_an_unknown_type_waits_for_the_deploy_that_brings_it",),
    ),
    SafetyLine(
        name="try: an output that its schema rejects is none",
        file=EXECUTION,
        line='    if wrong:\n        return Failed(changes.error("OUTPUT_REJECTED"',
        without='    if False:\n        return Failed(changes.error("OUTPUT_REJECTED"',
        guards="G14: no answer that its task rejects completes a job",
        tests=(f"{U_EXECUTION}::test_a_result_that_its_schema_rejects_is_asked_for_anew",),
    ),
    SafetyLine(
        name="try: a rejected answer leaves the cache",
        file=EXECUTION,
        line="            forget(attempt, verdict)\n",
        without="            pass\n",
        guards="N2, hole 14: a rejected answer is not served to the tenant's next job",
        tests=(f"{U_FENCE}::test_n2_the_record_says_rejected_before_the_answer_leaves_the_cache",),
    ),
    SafetyLine(
        name="try: an answer is forgotten only by who wrote its rejection",
        file=EXECUTION,
        line="""\
        case Refused(record):
            name = "fenced_out"
            _book_late(attempt, record)
        case Applied():
            forget""",
        without="""\
        case Refused(record) if not isinstance(verdict, Failed):
            name = "fenced_out"
            _book_late(attempt, record)
        case _:
            forget""",
        guards="N2: who has lost its job takes no answer out of the cache",
        tests=(f"{U_FENCE}::test_n2_an_answer_stays_in_the_cache_when_the_writer_was_fenced_out",),
    ),
    SafetyLine(
        name="try: only answers of sample 0 are forgotten",
        file=EXECUTION,
        line='    if verdict.anew == "sample":\n        return attempt.bill.used if attempt.job.sample == 0 else ()\n',
        without="    if verdict.anew:\n        return attempt.bill.used\n",
        guards="N2: an unusable answer was never stored, so no other answer is forgotten or paid again",
        tests=(
            f"{U_FENCE}::test_an_unusable_answer_is_asked_for_anew_and_the_tasks_other_answers_are_neither_forgotten_nor_paid_again",
        ),
    ),
    SafetyLine(
        name="try: answers that the task has named leave the cache",
        file=EXECUTION,
        line="    return verdict.no_good\n",
        without="    return ()\n",
        guards="N2: a bad answer about one piece does not stay for whoever asks next",
        tests=(f"{U_FENCE}::test_n2_answers_that_are_named_leave_the_cache_alone_and_are_asked_for_anew",),
    ),
    SafetyLine(
        name="try: what another try has left behind is not counted as asked anew",
        file=VERDICTS,
        line='anew="unusable" if is_new else "", no_good',
        without='anew="unusable", no_good',
        guards="N2: no failure is served from the cache",
        tests=(f"{U_FENCE}::test_n2_bad_answers_that_a_try_left_behind_when_it_died_do_not_end_the_job",),
    ),
    SafetyLine(
        name="try: an answer that this very try has paid is counted, however often it asks the same",
        file=ASKING,
        line="        is_reused = kept.reused and key not in self._bill.paid\n",
        without="        is_reused = kept.reused\n",
        guards="G14: answers that are no good are paid at most max_samples times",
        tests=(f"{U_FENCE}::test_n2_an_answer_that_this_try_has_paid_is_new_however_often_it_asks_the_same",),
    ),
    SafetyLine(
        name="try: whatever is raised is judged",
        file=VERDICTS,
        line="    except BaseException:\n        return _task_error(raised, said)\n",
        without="    except ArithmeticError:\n        return _task_error(raised, said)\n",
        guards="G16: what a task raises is the outcome of its own job, whatever it lacks",
        tests=(
            "tests/unit/test_verdicts.py::test_a_subclass_that_does_not_call_its_kinds_init_is_of_that_kind_as_far_as_it_can_be",
        ),
    ),
    SafetyLine(
        name="try: a mistake of the task may pass",
        file=VERDICTS,
        line='    return Failed(changes.error("TASK_ERROR", f"{type(raised).__name__}: {said}"))\n',
        without='    return Failed(changes.error("TASK_ERROR", f"{type(raised).__name__}: {said}"), final=True)\n',
        guards="row 5: a job whose task has raised once is tried again",
        tests=("tests/unit/test_verdicts.py::test_what_went_wrong_fails_the_try",),
    ),
    SafetyLine(
        name="try: what is named as no good is a stored answer",
        file="core/outcomes.py",
        line="        for one in answers:\n            stored_as(one)\n",
        without="",
        guards="N2: a bad answer is not kept because something else was named",
        tests=("tests/unit/test_verdicts.py::test_what_is_no_stored_answer_cannot_be_named_as_no_good",),
    ),
    SafetyLine(
        name="try: what a cancelled job's call cost is booked",
        file=EXECUTION,
        line="        attempt.worker.store.apply(attempt.job.id, changes.book_late(attempt.job, attempt.bill.cost))\n",
        without="        pass\n",
        guards="G15, hole 21: a cancelled job's record has what its call cost after all",
        tests=(f"{U_FENCE}::test_the_late_answer_of_a_cancelled_job_is_booked_apart",),
    ),
    SafetyLine(
        name="try: a message need not come again for a late cost",
        file=EXECUTION,
        line="""\
    except Unavailable as trouble:
        attempt.notice("late_cost_not_booked", cost_micros=attempt.bill.cost, detail=str(trouble))
""",
        without="""\
    finally:
        pass
""",
        guards="row 9: a message that comes again would find nobody who knows the cost; the log has it",
        tests=(f"{U_FENCE}::test_a_late_cost_that_cannot_be_booked_is_in_the_log_and_its_message_need_not_come_again",),
    ),
)
