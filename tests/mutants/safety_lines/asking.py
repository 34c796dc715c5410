"""Safety lines of one question: its key, its price, and what is booked of it."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ASKING = "core/asking.py"
BEDROCK = "adapters/bedrock.py"
CLIENTS = "adapters/clients.py"
I_BEDROCK = "tests/integration/test_adapter_bedrock.py"
U_ASKING = "tests/unit/test_asking.py"

LINES = (
    SafetyLine(
        name="asking: the tenant is in the key",
        file=ASKING,
        line="    parts: list[Any] = [job.tenant, PROMPT_VERSION, asdict(request)]\n",
        without="    parts: list[Any] = [PROMPT_VERSION, asdict(request)]\n",
        guards="G5, hole 16: another tenant's answer is paid for anew",
        tests=(f"{U_ASKING}::test_idem_23_another_tenant_has_another_key",),
    ),
    SafetyLine(
        name="asking: the whole request is in the key",
        file=ASKING,
        line="    parts: list[Any] = [job.tenant, PROMPT_VERSION, asdict(request)]\n",
        without="    parts: list[Any] = [job.tenant, PROMPT_VERSION, request.prompt]\n",
        guards="G12: only the same question has the same answer",
        tests=(f"{U_ASKING}::test_whatever_is_asked_otherwise_has_another_key",),
    ),
    SafetyLine(
        name="asking: the sample is in the key",
        file=ASKING,
        line="        parts += [job.run, job.sample]\n",
        without="        parts += [job.run]\n",
        guards="G14, hole 14: a rejected answer is not served again",
        tests=(f"{U_ASKING}::test_n2_a_further_sample_belongs_to_one_job_and_one_opening",),
    ),
    SafetyLine(
        name="asking: a further sample belongs to one opening",
        file=ASKING,
        line="        parts += [job.run, job.sample]\n",
        without="        parts += [job.sample]\n",
        guards="N2: a job that was opened again does not read the answer that was rejected before",
        tests=(f"{U_ASKING}::test_n2_a_further_sample_belongs_to_one_job_and_one_opening",),
    ),
    SafetyLine(
        name="asking: a further sample belongs to one job",
        file=ASKING,
        line="    if not shared or job.sample > 0:\n",
        without="    if not shared:\n",
        guards="N2: rejected answers are no negative cache for the tenant's other jobs",
        tests=(f"{U_ASKING}::test_n2_a_further_sample_belongs_to_one_job_and_one_opening",),
    ),
    SafetyLine(
        name="asking: a fresh answer is nobody else's",
        file=ASKING,
        line='        self._shared = reuse == "tenant" and not job.fresh\n',
        without='        self._shared = reuse == "tenant"\n',
        guards="G12, window 5: who says fresh shares with no other job",
        tests=(f"{U_ASKING}::test_a_task_or_a_request_can_keep_its_answers_to_itself",),
    ),
    SafetyLine(
        name="asking: a task's own answers are nobody else's",
        file=ASKING,
        line='        self._shared = reuse == "tenant" and not job.fresh\n',
        without="        self._shared = not job.fresh\n",
        guards="G12, window 5: a task that says reuse=job shares with no other job",
        tests=(f"{U_ASKING}::test_a_task_or_a_request_can_keep_its_answers_to_itself",),
    ),
    SafetyLine(
        name="asking: a later attempt looks for what a dead one left",
        file=ASKING,
        line="        look = self._again or self._job.attempt > 1\n",
        without="        look = False\n",
        guards="G12, hole 19: a paid answer whose row was never written is not paid for again",
        tests=(f"{U_ASKING}::test_what_a_dead_caller_left_is_looked_for_only_after_the_first_attempt",),
    ),
    SafetyLine(
        name="asking: an answer that was not kept was billed for nothing",
        file=ASKING,
        line="            self._bill.wasted = True\n",
        without="            pass\n",
        guards="G13, N7: a wait after that keeps its try charged",
        tests=(f"{U_ASKING}::test_an_answer_that_could_not_be_kept_is_booked_and_wasted",),
    ),
    SafetyLine(
        name="asking: no call is begun that cannot end in time",
        file=ASKING,
        line="        if self._remaining_s() < self._limits.call_s:\n",
        without="        if False:\n",
        guards="G12, window 1: an answer is not lost because its invocation was over",
        tests=(f"{U_ASKING}::test_no_call_is_started_that_cannot_end_in_time",),
    ),
    SafetyLine(
        name="asking: a model without a price is never called",
        file=ASKING,
        line="            price_of(request.model)\n",
        without="            pass\n",
        guards="G15: nothing is paid whose cost nobody can book",
        tests=(f"{U_ASKING}::test_a_model_without_a_price_is_never_called",),
    ),
    SafetyLine(
        name="asking: a call that broke is booked at what it can have cost",
        file=ASKING,
        line="                error.cost = _estimate(request)\n",
        without="                pass\n",
        guards="G15: what was billed for nothing is on the record",
        tests=(f"{U_ASKING}::test_bed_21_a_call_that_broke_is_booked_at_what_it_can_have_cost",),
    ),
    SafetyLine(
        name="asking: a failed call is booked",
        file=ASKING,
        line="""\
            self._book_wasted(error.cost)
            raise
""",
        without="            raise\n",
        guards="G15, N7: a wait after something was billed for nothing keeps its try charged",
        tests=(f"{U_ASKING}::test_bed_21_a_call_that_broke_is_booked_at_what_it_can_have_cost",),
    ),
    SafetyLine(
        name="asking: an answer that did not come to its end is not kept",
        file=ASKING,
        line="            raise unusable\n",
        without="            pass\n",
        guards="G14: no answer that is cut, refused or of an unknown end completes a job, or is served from the cache",
        tests=(f"{U_ASKING}::test_bed_09_an_answer_that_did_not_come_to_its_end_is_paid_but_never_kept",),
    ),
    SafetyLine(
        name="asking: an end that nobody has heard of is paid no more often than one that was cut",
        file=ASKING,
        line='    return ModelError("unusable", stop_reason or',
        without='    return ModelError("transient", stop_reason or',
        guards="G14: answers that came whole and are no good are asked for `max_samples` times in all",
        tests=("tests/unit/test_lifetimes.py::test_cost_01_the_calls_of_a_job_that_never_succeeds_are_bounded",),
    ),
    SafetyLine(
        name="asking: an answer that did not come to its end is booked",
        file=ASKING,
        line="""\
            self._book_wasted(cost)
            unusable.cost = cost
""",
        without="            unusable.cost = cost\n",
        guards="G15: what was billed for nothing is on the record",
        tests=(f"{U_ASKING}::test_bed_09_an_answer_that_did_not_come_to_its_end_is_paid_but_never_kept",),
    ),
    SafetyLine(
        name="asking: an answer is booked when it is paid",
        file=ASKING,
        line="""\
        self._bill.cost += cost
        return {**asdict(reply), "cost": cost}
""",
        without='        return {**asdict(reply), "cost": cost}\n',
        guards="G15: what a job's calls cost is on its record",
        tests=(f"{U_ASKING}::test_an_answer_is_paid_booked_and_kept",),
    ),
    SafetyLine(
        name="model: the SDK sends a prompt once",
        file=CLIENTS,
        line='retries={"total_max_attempts": 1})',
        without='retries={"total_max_attempts": 3})',
        guards="G12: a call whose reply is lost is not paid for twice behind our back",
        tests=(
            f"{I_BEDROCK}::test_bed_03_an_error_is_told_by_its_code_and_sent_once",
            f"{I_BEDROCK}::test_bed_01_a_read_timeout_sends_the_prompt_exactly_once",
        ),
    ),
    SafetyLine(
        name="model: a call that broke may have been billed",
        file=BEDROCK,
        line='raise ModelError("transient", type(error).__name__, str(error), maybe_billed=True) from error',
        without='raise ModelError("transient", type(error).__name__, str(error)) from error',
        guards="G15: a call that was cut off is booked at what it can have cost",
        tests=(f"{I_BEDROCK}::test_a_cut_connection_is_transient_maybe_billed_and_sent_once",),
    ),
)
