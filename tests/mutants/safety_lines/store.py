"""Safety lines of the table of jobs: conditional writes, their own lost replies, consistent reads."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

I_FAULTS = "tests/integration/test_adapter_dynamodb_faults.py"
I_JOBS = "tests/integration/test_adapter_dynamodb.py"
JOBS = "adapters/dynamodb.py"
EXPRESSIONS = "adapters/expressions.py"
RECORDS = "adapters/records.py"

LINES = (
    SafetyLine(
        name="store: a job is created only where none stands",
        file=RECORDS,
        line="ConditionExpression=condition,",
        without='ConditionExpression=f"({condition} OR attribute_exists(#pk))",',
        guards="G2, row 1: the same key never makes a second job, nor overwrites the first",
        tests=(f"{I_JOBS}::test_create_answers_the_standing_record_and_leaves_it_as_it_is",),
    ),
    SafetyLine(
        name="store: a refused create brings the record that stands there",
        file=RECORDS,
        line="""\
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
""",
        without="""\
                    ConditionExpression=condition,
                    ReturnValuesOnConditionCheckFailure="NONE",
""",
        guards="G2, hole 2: a repeat is answered by what stands there: the same 202, a 422, a 410",
        tests=(f"{I_JOBS}::test_create_answers_the_standing_record_and_leaves_it_as_it_is",),
    ),
    SafetyLine(
        name="store: a refused create is told",
        file=RECORDS,
        line="                return _standing(error)\n",
        without="                _standing(error)\n",
        guards="G2: another body under the same key is a 422, not a new job",
        tests=(f"{I_JOBS}::test_create_answers_the_standing_record_and_leaves_it_as_it_is",),
    ),
    SafetyLine(
        name="store: every change carries its rule's condition",
        file=RECORDS,
        line='"ConditionExpression": expression.condition(change.rule.condition, change.params),',
        without='"ConditionExpression": f"({expression.condition(change.rule.condition, change.params)}'
        ' OR attribute_exists(pk))",',
        guards="G6: who lost its job, or read a record that has changed since, changes nothing",
        tests=(f"{I_JOBS}::test_a_change_of_another_holder_is_refused_with_the_record_as_it_stands",),
    ),
    SafetyLine(
        name="store: a refused change brings the record that refused it",
        file=RECORDS,
        line="""\
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **arguments,
""",
        without="""\
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="NONE",
                    **arguments,
""",
        guards="hole 2, row 3a: a refusal is judged by the record itself, its own effect first",
        tests=(f"{I_JOBS}::test_a_change_of_another_holder_is_refused_with_the_record_as_it_stands",),
    ),
    SafetyLine(
        name="store: a change recognises its own lost reply",
        file=RECORDS,
        line="return Applied(found) if found and change.is_own_effect(found) else Refused(found)",
        without="return Refused(found)",
        guards="hole 2: the SDK's repeat of a write that landed counts as success",
        tests=(f"{I_FAULTS}::test_ddb_05_a_write_whose_reply_was_lost_is_recognised_as_its_own",),
    ),
    SafetyLine(
        name="store: a foreign write is not taken for one's own",
        file=RECORDS,
        line="if found and change.is_own_effect(found) else Refused(found)",
        without="if found else Refused(found)",
        guards="G6, row 3a: who was refused does not believe to hold the job",
        tests=(f"{I_JOBS}::test_a_change_of_another_holder_is_refused_with_the_record_as_it_stands",),
    ),
    SafetyLine(
        name="store: only a refused condition is a refusal",
        file=RECORDS,
        line="""\
    if code_of(error) != "ConditionalCheckFailedException":
        raise error
    return record_in(error.response.get("Item", {}))""",
        without="""\
    return record_in(error.response.get("Item", {}))""",
        guards="G1, row 3a: a store error is not 'no such job', which would bury or acknowledge its message",
        tests=(f"{I_FAULTS}::test_a_refusal_of_the_first_attempt_is_unavailable_and_known",),
    ),
    SafetyLine(
        name="store: who decides reads consistently",
        file=RECORDS,
        line="Key=item_key(key), ConsistentRead=True)",
        without="Key=item_key(key), ConsistentRead=False)",
        guards="G3, row 15: the door's second look and the sweep decide by what is, not by what was",
        tests=(f"{I_FAULTS}::test_the_record_is_read_consistently_before_anybody_decides",),
    ),
    SafetyLine(
        name="store: all clauses of a condition hold together",
        file=EXPRESSIONS,
        line="""return "(" + " AND ".join(""",
        without="""return "(" + " OR ".join(""",
        guards="G6: what is sent to DynamoDB is the very condition of the table",
        tests=(f"{I_JOBS}::test_a_change_of_another_holder_is_refused_with_the_record_as_it_stands",),
    ),
    SafetyLine(
        name="store: an alternative of a condition is one",
        file=EXPRESSIONS,
        line="""return "(" + " OR ".join(""",
        without="""return "(" + " AND ".join(""",
        guards="G8: a lapsed job may be claimed as well as a pending one",
        tests=(f"{I_JOBS}::test_a_change_is_applied_as_the_protocol_computes_it",),
    ),
    SafetyLine(
        name="store: keys that were kept back are asked for again",
        file=JOBS,
        line='keys = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])',
        without="keys = []",
        guards="G31: a record that DynamoDB kept back is not taken for missing",
        tests=(f"{I_FAULTS}::test_keys_that_the_table_kept_back_are_asked_for_again",),
    ),
    SafetyLine(
        name="store: a table that keeps keys back makes no short list",
        file=JOBS,
        line='raise Unavailable("reading jobs: the table keeps back what was asked", unknown=False, throttled=True)',
        without="return items",
        guards="G31: a record that DynamoDB kept back is not taken for missing",
        tests=(f"{I_FAULTS}::test_a_table_that_keeps_back_for_ever_is_busy_and_not_a_short_list",),
    ),
    SafetyLine(
        name="store: a write of many tells which were not written",
        file=JOBS,
        line="""\
                return str(error)
            return None
""",
        without="""\
                pass
            return None
""",
        guards="G11: a look that could not be put off is counted and told",
        tests=(f"{I_FAULTS}::test_of_many_writes_those_that_were_not_written_are_told_and_the_others_stand",),
    ),
)
