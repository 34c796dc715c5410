"""Safety lines of what is done once: recorded intents, starts and ends of effects."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

EFFECTS = "adapters/effects.py"
I_EFFECTS = "tests/integration/test_adapter_effects.py"

LINES = (
    SafetyLine(
        name="effects: what is recorded first stands",
        file=EFFECTS,
        line='ConditionExpression="attribute_not_exists(#id)",',
        without='ConditionExpression="attribute_not_exists(#id) OR attribute_exists(#id)",',
        guards="G19, N3: a later try acts on the recorded payload, and does not start what was started",
        tests=(f"{I_EFFECTS}::test_the_first_intent_stands_whatever_comes_later",),
    ),
    SafetyLine(
        name="effects: a refused record brings what stands there",
        file=EFFECTS,
        line="""\
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except ClientError as error:
                if code_of(error)""",
        without="""\
                    ReturnValuesOnConditionCheckFailure="NONE",
                )
            except ClientError as error:
                if code_of(error)""",
        guards="G19, N3: a later try knows what was intended, and whether it ended",
        tests=(f"{I_EFFECTS}::test_the_first_intent_stands_whatever_comes_later",),
    ),
    SafetyLine(
        name="effects: a store error is no recorded effect",
        file=EFFECTS,
        line="""\
                if code_of(error) != "ConditionalCheckFailedException":
                    raise
                standing""",
        without="""\
                standing""",
        guards="G19, N3: nothing happens while its start cannot be recorded",
        tests=(f"{I_EFFECTS}::test_nothing_happens_while_its_start_cannot_be_recorded",),
    ),
    SafetyLine(
        name="effects: a start without an end is not repeated",
        file=EFFECTS,
        line='if standing and standing["holder"]["S"] != holder:',
        without='if standing and standing["holder"]["S"] != holder and standing["status"]["S"] == ENDED:',
        guards="G19, N3: an effect that is declared once does not happen twice",
        tests=(f"{I_EFFECTS}::test_n3_an_effect_once_whose_process_died_is_never_repeated",),
    ),
    SafetyLine(
        name="effects: a start of mine whose reply was lost is mine",
        file=EFFECTS,
        line='if standing and standing["holder"]["S"] != holder:',
        without="if standing:",
        guards="G19, N3, hole 2: a lost reply is not taken for a start without an end",
        tests=(f"{I_EFFECTS}::test_a_start_whose_reply_was_lost_does_not_wait_for_itself",),
    ),
    SafetyLine(
        name="effects: what broke may have happened",
        file=EFFECTS,
        line="""\
        except Exception as error:
            raise Permanent(f"it raised {type(error).__name__}; it may have happened", "OUTCOME_UNKNOWN") from error
""",
        without="",
        guards="G19, N3: of an effect that broke half-way the job says OUTCOME_UNKNOWN, and it is not repeated",
        tests=(f"{I_EFFECTS}::test_what_broke_may_be_repeated_unless_it_is_once",),
    ),
    SafetyLine(
        name="effects: what did not happen is withdrawn",
        file=EFFECTS,
        line="""\
        except (NotDone, Permanent):  # both say that it did not happen
            self._withdraw(row, holder)
            raise
""",
        without="""\
        except (NotDone, Permanent):
            raise
""",
        guards="G19, N3: what certainly did not happen may be tried again",
        tests=(f"{I_EFFECTS}::test_what_did_not_happen_is_told_and_may_be_tried_again",),
    ),
    SafetyLine(
        name="effects: a start that may stand there is withdrawn",
        file=EFFECTS,
        line="            self._withdraw(row, holder)  # the start may stand there, but nothing has been started\n",
        without="",
        guards="G19, N3: a start that nobody heard of does not end its job as OUTCOME_UNKNOWN",
        tests=(f"{I_EFFECTS}::test_a_start_that_landed_and_was_not_heard_of_is_withdrawn_and_may_be_tried_again",),
    ),
    SafetyLine(
        name="effects: only its holder ends an effect",
        file=EFFECTS,
        line='ConditionExpression="#holder = :me",',
        without='ConditionExpression="#holder = :me OR attribute_not_exists(#holder) OR attribute_exists(#holder)",',
        guards="G19, N3: a late end does not stand for another's start",
        tests=(f"{I_EFFECTS}::test_who_comes_late_with_an_effect_once_changes_nothing_in_anothers_start",),
    ),
    SafetyLine(
        name="effects: the end of an effect is recorded",
        file=EFFECTS,
        line="        self._end(row, holder, result)\n",
        without="",
        guards="G19, N3: an effect that is declared once gives its result to later tries",
        tests=(f"{I_EFFECTS}::test_an_effect_happens_once_and_its_result_is_given_again",),
    ),
    SafetyLine(
        name="effects: only its holder withdraws an effect",
        file=EFFECTS,
        line='ConditionExpression="attribute_not_exists(#id) OR #holder = :me",',
        without='ConditionExpression="attribute_not_exists(#id) OR #holder = :me OR attribute_exists(#holder)",',
        guards="G19, N3: a late withdrawal does not take away another's start, which then would be repeated",
        tests=(f"{I_EFFECTS}::test_who_comes_late_with_an_effect_once_changes_nothing_in_anothers_start",),
    ),
    SafetyLine(
        name="effects: a row that cannot be freed does not hide what was raised",
        file=EFFECTS,
        line="""\
            if performed.raised:
                raise performed.raised from None  # its row could not be freed; it lapses with this invocation
""",
        without="",
        guards="G14: a failure is judged by what failed",
        tests=(f"{I_EFFECTS}::test_what_an_effect_raised_comes_out_even_when_its_row_cannot_be_freed",),
    ),
    SafetyLine(
        name="effects: an effect whose end is not recorded says so",
        file=EFFECTS,
        line="""\
            if performed.done:
                raise EffectNotRecorded(str(error)) from error
""",
        without="",
        guards="G19, N3, N7: the try is charged when it happened and nobody knows",
        tests=(f"{I_EFFECTS}::test_an_effect_whose_end_cannot_be_recorded_says_so_and_is_repeated",),
    ),
)
