"""Safety lines of how a try ended: what is bounded, what is charged, what may have happened all the same."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ACTING = "core/effects.py"
CLIENTS = "adapters/clients.py"
I_FAULTS = "tests/integration/test_adapter_dynamodb_faults.py"
SES = "adapters/ses.py"
U_EFFECTS = "tests/unit/test_effects.py"
U_VERDICTS = "tests/unit/test_verdicts.py"
VERDICTS = "core/verdicts.py"

LINES = (
    SafetyLine(
        name="verdict: answers that are no good are bounded",
        file=VERDICTS,
        line=' or (anew != "" and asked >= limits.max_samples)',
        without="",
        guards="G14: a job asks for at most max_samples answers that its task rejects",
        tests=(
            f"{U_VERDICTS}::test_bed_23_the_model_is_asked_anew_for_one_job_at_most_max_samples_times_whatever_for",
        ),
    ),
    SafetyLine(
        name="verdict: tries are bounded",
        file=VERDICTS,
        line="if final or job.tries >= policy.max_attempts or (",
        without="if final or (",
        guards="G14: a job is charged at most max_attempts times",
        tests=(f"{U_VERDICTS}::test_a_failed_try_is_tried_again_until_the_tries_are_used",),
    ),
    SafetyLine(
        name="verdict: what is final is not tried again",
        file=VERDICTS,
        line="if final or job.tries >= policy.max_attempts",
        without="if job.tries >= policy.max_attempts",
        guards="G14: what cannot succeed is paid for once",
        tests=(f"{U_VERDICTS}::test_cost_03_what_is_final_fails_at_the_first_try",),
    ),
    SafetyLine(
        name="verdict: no job waits past its deadline",
        file=VERDICTS,
        line="""\
    if now >= job.deadline_at:
        return changes.error("DEADLINE_EXCEEDED", last)
""",
        without="",
        guards="G7, hole 9: what waits for ever ends too",
        tests=(f"{U_VERDICTS}::test_5p_no_job_waits_past_its_deadline",),
    ),
    SafetyLine(
        name="verdict: waits that are paid for are bounded",
        file=VERDICTS,
        line="""\
    if not is_free(why, bill) and job.tries >= policy.max_attempts:
        return changes.error("ATTEMPTS_EXHAUSTED", last)
""",
        without="",
        guards="G14, N7: a wait that pays is charged, and counts as a try",
        tests=(f"{U_VERDICTS}::test_n7_waits_that_are_paid_for_are_bounded_by_the_tries",),
    ),
    SafetyLine(
        name="verdict: a wait gives its try back only if nothing was wasted",
        file=VERDICTS,
        line="    return not bill.wasted and not idle\n",
        without="    return not idle\n",
        guards="G13, N7: a wait after something was billed for nothing keeps its try charged",
        tests=(f"{U_VERDICTS}::test_n7_a_wait_after_something_was_billed_for_nothing_keeps_the_try",),
    ),
    SafetyLine(
        name="verdict: running out of time without a new answer is charged",
        file=VERDICTS,
        line="    return not bill.wasted and not idle\n",
        without="    return not bill.wasted\n",
        guards="G14: a job that never gets to its first call ends",
        tests=(f"{U_VERDICTS}::test_running_out_of_time_without_a_new_answer_costs_a_try_and_is_bounded_by_them",),
    ),
    SafetyLine(
        name="verdict: a throttle burns no try",
        file=VERDICTS,
        line="""\
        case "throttled":
            return Wait(why)
""",
        without="""\
        case "throttled":
            return Failed(why)
""",
        guards="G13: waiting burns no try",
        tests=(f"{U_VERDICTS}::test_what_is_not_the_jobs_fault_makes_it_wait",),
    ),
    SafetyLine(
        name="verdict: a store that cannot be reached burns no try",
        file=VERDICTS,
        line='            return Wait(changes.error("STORE_UNAVAILABLE", said))\n',
        without='            return Failed(changes.error("STORE_UNAVAILABLE", said))\n',
        guards="G13: waiting burns no try",
        tests=(f"{U_VERDICTS}::test_what_is_not_the_jobs_fault_makes_it_wait",),
    ),
    SafetyLine(
        name="effect: its payload is recorded before anything happens",
        file=ACTING,
        line='        recorded = json.loads(self._effects.intend("#".join([*self._whose, name]), written))\n',
        without="        recorded = json.loads(written)\n",
        guards="G19, N3: a later try does the same, whatever it is given",
        tests=(f"{U_EFFECTS}::test_idem_24_a_later_try_acts_on_the_recorded_payload_and_under_the_same_key",),
    ),
    SafetyLine(
        name="effect: its key is that of its job, its name and its payload",
        file=ACTING,
        line="        key = sha256_of([*self._whose, name, recorded])\n",
        without="        key = sha256_of([name, recorded])\n",
        guards="G19, N3: one job's effect is not taken for another's",
        tests=(f"{U_EFFECTS}::test_other_jobs_names_and_payloads_have_other_keys",),
    ),
    SafetyLine(
        name="effect: what is declared once is guarded as such",
        file=ACTING,
        line="(self._effects.once if once else self._effects.repeatable)(",
        without="self._effects.repeatable(",
        guards="G19, N3: an effect that is declared once does not happen twice",
        tests=(f"{U_EFFECTS}::test_n3_a_start_without_an_end_is_never_repeated",),
    ),
    SafetyLine(
        name="effect: a name stands for one effect of a try",
        file=ACTING,
        line="if not NAME.fullmatch(name) or name in self._names:",
        without="if not NAME.fullmatch(name):",
        guards="G19, N3: a second effect under the same name is not silently swallowed",
        tests=(f"{U_EFFECTS}::test_a_name_stands_for_one_effect_of_a_try",),
    ),
    SafetyLine(
        name="stores: a repeated write may have happened",
        file=CLIENTS,
        line="return bool(status >= 500 or retries > 0)",
        without="return bool(status >= 500)",
        guards="G3: a throttle after an attempt whose reply was lost is not 'not accepted'",
        tests=(f"{I_FAULTS}::test_a_throttle_after_an_attempt_whose_reply_was_lost_is_unknown",),
    ),
    SafetyLine(
        name="stores: a server's error may have happened",
        file=CLIENTS,
        line="return bool(status >= 500 or retries > 0)",
        without="return bool(retries > 0)",
        guards="G3: a 5xx of the store is not 'not accepted'",
        tests=(f"{I_FAULTS}::test_a_server_error_that_botocore_does_not_repeat_is_unknown_all_the_same",),
    ),
    SafetyLine(
        name="stores: a cut connection may have happened",
        file=CLIENTS,
        line='raise Unavailable(f"{what}: {error}", unknown=True) from error',
        without='raise Unavailable(f"{what}: {error}", unknown=False) from error',
        guards="G3: nobody says 'not accepted' of what may be recorded",
        tests=(f"{I_FAULTS}::test_a_broken_connection_is_unavailable_and_unknown",),
    ),
    SafetyLine(
        name="mail: of a mail whose reply is lost nobody says that it was not sent",
        file=SES,
        line='    return Permanent(str(error), "MAIL_REFUSED") if status < 500 else error\n',
        without='    return Permanent(str(error), "MAIL_REFUSED")\n',
        guards="G19, N3: a server's error says nothing about the mail: OUTCOME_UNKNOWN, not refused",
        tests=("tests/integration/test_adapter_ses.py::test_a_server_error_says_nothing_about_the_mail",),
    ),
)
