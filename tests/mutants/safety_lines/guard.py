"""Safety lines of what is paid once: the fenced rows of answers."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ANSWERS = "adapters/idempotency.py"
I_ANSWERS = "tests/integration/test_adapter_idempotency.py"
I_PORT = "tests/integration/test_adapter_answers.py"
LAYER = "adapters/fenced_layer.py"

LINES = (
    SafetyLine(
        name="guard: a row in progress is not taken over",
        file=LAYER,
        line="(#status = :open AND #until < :now_ms)",
        without="(#status = :open AND (#until < :now_ms OR attribute_exists(#until)))",
        guards="G12: who asks while a twin's call is under way does not call",
        tests=(f"{I_ANSWERS}::test_idem_01_a_crashed_holder_blocks_until_its_invocation_would_have_ended",),
    ),
    SafetyLine(
        name="guard: a stored answer is not taken over",
        file=LAYER,
        line="(#status = :open AND #until < :now_ms)",
        without="((#status = :open OR attribute_exists(#status)) AND #until < :now_ms)",
        guards="G12: an answer that was stored is not paid for again when its caller's time is over",
        tests=(f"{I_ANSWERS}::test_an_answer_outlives_the_window_of_the_call_that_it_came_from",),
    ),
    SafetyLine(
        name="guard: a row whose holder died is free when its invocation is over",
        file=LAYER,
        line=" OR (#status = :open AND #until < :now_ms)",
        without=" OR (#status = :open AND #until < :now_ms AND #expiration < :now)",
        guards="hole 18: a dead leader does not block its followers for ever",
        tests=(f"{I_ANSWERS}::test_idem_01_a_crashed_holder_blocks_until_its_invocation_would_have_ended",),
    ),
    SafetyLine(
        name="guard: an expired answer is asked for anew",
        file=LAYER,
        line="attribute_not_exists(#id) OR #expiration < :now OR ",
        without="attribute_not_exists(#id) OR (#expiration < :now AND attribute_not_exists(#id)) OR ",
        guards="G12: an answer lives as long as it says, whenever its row is swept away",
        tests=(f"{I_ANSWERS}::test_idem_20_an_expired_answer_that_ttl_has_not_swept_is_asked_for_anew",),
    ),
    SafetyLine(
        name="guard: a question that nobody asked is free",
        file=LAYER,
        line='"attribute_not_exists(#id) OR #expiration < :now',
        without='"(attribute_not_exists(#id) AND attribute_exists(#id)) OR #expiration < :now',
        guards="G12: the first caller calls",
        tests=(f"{I_PORT}::test_the_first_caller_gets_what_its_call_answered",),
    ),
    SafetyLine(
        name="guard: a row that is there is somebody's",
        file=LAYER,
        line="attribute_not_exists(#id) OR #expiration < :now OR (#status = :open AND #until < :now_ms)",
        without="attribute_not_exists(#id) OR #expiration < :now OR (#status = :open AND #until < :now_ms)"
        " OR attribute_exists(#id)",
        guards="G12: the same question of the same tenant is paid for once",
        tests=(f"{I_PORT}::test_the_second_caller_gets_the_same_answer_without_a_call",),
    ),
    SafetyLine(
        name="guard: my own start whose reply was lost is mine",
        file=LAYER,
        line="""if found.get("holder", {}).get("S") != holder:""",
        without="""if True:""",
        guards="N8: a worker does not wait for itself until its own deadline",
        tests=(f"{I_ANSWERS}::test_n8_a_guard_whose_own_put_was_repeated_does_not_wait_for_itself",),
    ),
    SafetyLine(
        name="guard: another's start is not mine",
        file=LAYER,
        line="""if found.get("holder", {}).get("S") != holder:""",
        without="""if False:""",
        guards="G12: who was refused the row does not call",
        tests=(f"{I_PORT}::test_the_second_caller_gets_the_same_answer_without_a_call",),
    ),
    SafetyLine(
        name="guard: a refused start brings the row that refused it",
        file=LAYER,
        line="""\
                    ":open": {"S": IN_PROGRESS},
                },
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ClientError as error:
            found = _found(error)""",
        without="""\
                    ":open": {"S": IN_PROGRESS},
                },
                ReturnValuesOnConditionCheckFailure="NONE",
            )
        except ClientError as error:
            found = _found(error)""",
        guards="N8, G12: one's own lost reply is recognised by the row",
        tests=(f"{I_ANSWERS}::test_n8_a_guard_whose_own_put_was_repeated_does_not_wait_for_itself",),
    ),
    SafetyLine(
        name="guard: whom a takeover replaced is remembered",
        file=LAYER,
        line="(self._taken_over.add if replaced == IN_PROGRESS else self._taken_over.discard)(row_id)",
        without="self._taken_over.discard(row_id)",
        guards="hole 19: a large answer that a dead caller left in S3 is looked for, not paid for again",
        tests=(f"{I_ANSWERS}::test_a_takeover_finds_the_large_answer_that_a_crashed_holder_left",),
    ),
    SafetyLine(
        name="guard: only its holder saves an answer",
        file=LAYER,
        line="""\
                ConditionExpression="#holder = :me",
                ExpressionAttributeNames={
                    "#status": "status",
""",
        without="""\
                ConditionExpression="#holder = :me OR attribute_exists(#holder)",
                ExpressionAttributeNames={
                    "#status": "status",
""",
        guards="G12, hole 15: the answer that somebody built on stays what it is",
        tests=(f"{I_ANSWERS}::test_idem_25_a_late_save_does_not_replace_the_successors_answer",),
    ),
    SafetyLine(
        name="guard: a late save does not stand for the successor's call",
        file=LAYER,
        line="""\
                ConditionExpression="#holder = :me",
                ExpressionAttributeNames={
                    "#status": "status",
""",
        without="""\
                ConditionExpression="#holder = :me OR #status <> :done",
                ExpressionAttributeNames={
                    "#status": "status",
""",
        guards="G12, hole 15: who waits for the successor gets the answer that the successor works with",
        tests=(f"{I_ANSWERS}::test_idem_25_a_late_save_does_not_stand_for_the_successors_call_under_way",),
    ),
    SafetyLine(
        name="guard: only its holder frees a row",
        file=LAYER,
        line="""\
                ConditionExpression="#holder = :me",
                ExpressionAttributeNames={"#holder": "holder"},
""",
        without="""\
                ConditionExpression="#holder = :me OR attribute_exists(#holder)",
                ExpressionAttributeNames={"#holder": "holder"},
""",
        guards="G12, hole 15: a late failure frees neither a successor's call nor its answer",
        tests=(f"{I_ANSWERS}::test_idem_25_a_late_failure_does_not_free_a_successor_in_progress",),
    ),
    SafetyLine(
        name="guard: a save that the store refuses for another reason is told",
        file=LAYER,
        line="            _found(error)  # a refusal is a successor's row, or nobody's: nothing to do either way",
        without="            pass",
        guards="G12, window 2: an answer that was paid and not kept is booked as wasted",
        tests=(f"{I_ANSWERS}::test_a_paid_answer_that_cannot_be_kept_says_so",),
    ),
    SafetyLine(
        name="guard: a row is read consistently",
        file=LAYER,
        line='Key={ANSWER_KEY: {"S": row_id}}, ConsistentRead=True)',
        without='Key={ANSWER_KEY: {"S": row_id}}, ConsistentRead=False)',
        guards="G12: an answer that was just saved is found",
        tests=(f"{I_ANSWERS}::test_what_is_under_way_is_read_consistently",),
    ),
    SafetyLine(
        name="guard: a failed call frees its row",
        file=LAYER,
        line="        self.delete(data_record.idempotency_key, holder)\n",
        without="",
        guards="G14, hole 18: no failure is an answer, and nobody waits for a call that has failed",
        tests=(f"{I_PORT}::test_when_the_leader_fails_a_waiter_calls_itself",),
    ),
    SafetyLine(
        name="guard: a large answer is in S3 before its row says so",
        file=ANSWERS,
        line='        self._objects.put(ids.answer_key(tenant, key), json.dumps({"answer": answer}).encode())\n',
        without="",
        guards="G12: a row never points to an answer that was not kept",
        tests=(f"{I_ANSWERS}::test_idem_14_a_large_answer_lies_in_s3_and_its_row_stays_small",),
    ),
    SafetyLine(
        name="guard: what a dead caller left is looked for",
        file=ANSWERS,
        line="""\
        if not look and not self._layer.has_taken_over(self._row_id(key)):
            return None
""",
        without="        return None\n",
        guards="G12, hole 19: a paid answer whose row was never written is not paid for again",
        tests=(f"{I_ANSWERS}::test_an_object_without_a_row_is_found_by_who_looks",),
    ),
    SafetyLine(
        name="guard: the tenant is in the key of a large answer",
        file=ANSWERS,
        line="json.loads(self._objects.get(ids.answer_key(tenant, key)))[",
        without='json.loads(self._objects.get(ids.answer_key("globex", key)))[',
        guards="G5: no tenant reads another's answer",
        tests=(f"{I_ANSWERS}::test_an_object_without_a_row_is_found_by_who_looks",),
    ),
    SafetyLine(
        name="guard: an answer that could not be kept says so",
        file=ANSWERS,
        line="""\
        if self.done:
            return AnswerNotStored(str(error))
""",
        without="",
        guards="G12, window 2: the try is charged when it was billed and its answer is lost",
        tests=(f"{I_ANSWERS}::test_a_paid_answer_that_cannot_be_kept_says_so",),
    ),
    SafetyLine(
        name="guard: only the rejected answer itself is forgotten",
        file=ANSWERS,
        line="""row.get("holder", {}).get("S") != by or """,
        without="",
        guards="N2: an answer that somebody asked for anew meanwhile stays",
        tests=(f"{I_ANSWERS}::test_somebody_elses_large_answer_is_not_forgotten_and_its_object_stays",),
    ),
    SafetyLine(
        name="guard: a rejected answer leaves the cache",
        file=ANSWERS,
        line="            self._layer.delete(row_id, by)\n",
        without="",
        guards="N2, hole 14: a rejected answer is not served to the tenant's next job",
        tests=(f"{I_PORT}::test_an_answer_forgotten_by_its_own_save_is_asked_for_anew",),
    ),
    SafetyLine(
        name="guard: a row whose object is gone is freed",
        file=ANSWERS,
        line="""\
                self._layer.delete(self._row_id(key), envelope["by"])
            raise _Vanished from None""",
        without="""\
                pass
            raise AnswerPending(__import__("datetime").datetime.now()) from None""",
        guards="G14: a question whose answer somebody deleted can be asked again",
        tests=(f"{I_ANSWERS}::test_a_row_whose_object_is_gone_leads_to_a_new_call",),
    ),
    SafetyLine(
        name="guard: the prefix of rows is constant",
        file=ANSWERS,
        line="            key_prefix=KEY_PREFIX,\n",
        without="",
        guards="hole 16: a renamed function does not pay everything again",
        tests=(f"{I_ANSWERS}::test_a_row_is_named_by_a_constant_prefix_and_the_hash_that_powertools_makes",),
    ),
    SafetyLine(
        name="guard: waiting for another's call has an end",
        file=ANSWERS,
        line="if expires is not None and not patience.wait():",
        without="if expires is not None and not patience.wait() and False:",
        guards="G13: a follower goes back to the queue before its own time is over",
        tests=(f"{I_ANSWERS}::test_who_waits_for_another_gives_up_in_time_and_knows_until_when",),
    ),
)
