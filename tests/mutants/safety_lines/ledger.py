"""Safety lines of the ledger: leases, and the records of sweeps, redrives and reviews."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

I_LEDGER = "tests/integration/test_adapter_ledger.py"
I_LETTERS = "tests/integration/test_adapter_letters.py"
LEDGER = "adapters/ledger.py"

LINES = (
    SafetyLine(
        name="ledger: a lease that somebody holds is not taken",
        file=LEDGER,
        line='"attribute_not_exists(#until) OR #until < :now OR #holder = :me",',
        without='"attribute_not_exists(#until) OR #until < :now OR #holder = :me OR attribute_exists(pk)",',
        guards="G32: a second sweep, or redrive, does not do the first one's work at the same time",
        tests=(f"{I_LETTERS}::test_a_lease_is_held_by_one_until_its_time_is_over",),
    ),
    SafetyLine(
        name="ledger: a lease whose time is over may be taken",
        file=LEDGER,
        line="attribute_not_exists(#until) OR #until < :now OR #holder = :me",
        without="attribute_not_exists(#until) OR #until < :now AND #holder = :me OR #holder = :me",
        guards="G32: a holder that was killed blocks nobody for ever",
        tests=(f"{I_LEDGER}::test_a_lease_ends_with_its_time_to_the_millisecond",),
    ),
    SafetyLine(
        name="ledger: a lease of mine is mine again",
        file=LEDGER,
        line=" OR #until < :now OR #holder = :me",
        without=" OR #until < :now OR (#holder = :me AND #until < :now)",
        guards="hole 2: the lost reply of taking a lease does not lock its taker out",
        tests=(f"{I_LEDGER}::test_the_lost_reply_of_taking_and_keeping_is_ones_own_lease",),
    ),
    SafetyLine(
        name="ledger: a lease that was never taken is free",
        file=LEDGER,
        line='"attribute_not_exists(#until) OR #until < :now',
        without='"#until < :now',
        guards="G32: the first sweep of all, and the one after a lease was given back, can begin",
        tests=(f"{I_LEDGER}::test_a_lease_that_was_given_back_is_free_at_once_and_its_state_stays",),
    ),
    SafetyLine(
        name="ledger: only its holder keeps a lease",
        file=LEDGER,
        line='"SET #until = :until, #state = :state", "#holder = :me", values)',
        without='"SET #until = :until, #state = :state", "#holder = :me OR attribute_exists(pk)", values)',
        guards="G32: who has lost its part does not write its cursor over the successor's",
        tests=(f"{I_LEDGER}::test_who_has_lost_its_lease_writes_nothing",),
    ),
    SafetyLine(
        name="ledger: only its holder gives a lease back",
        file=LEDGER,
        line='"SET #state = :state REMOVE #until", "#holder = :me", values)',
        without='"SET #state = :state REMOVE #until", "#holder = :me OR attribute_exists(pk)", values)',
        guards="G32: who has lost its part does not free the successor's lease",
        tests=(f"{I_LEDGER}::test_who_has_lost_its_lease_writes_nothing",),
    ),
    SafetyLine(
        name="ledger: a lease that was refused is told",
        file=LEDGER,
        line="""\
                if code_of(error) != "ConditionalCheckFailedException":
                    raise
                return None
        return from_item(answer["Attributes"])""",
        without="""\
                if code_of(error) != "ConditionalCheckFailedException":
                    raise
                return {}
        return from_item(answer["Attributes"])""",
        guards="G32: who was refused a lease does not work under it",
        tests=(f"{I_LETTERS}::test_a_lease_is_held_by_one_until_its_time_is_over",),
    ),
    SafetyLine(
        name="ledger: an item is created only once",
        file=LEDGER,
        line='ConditionExpression="attribute_not_exists(pk)",',
        without='ConditionExpression="attribute_not_exists(pk) OR attribute_exists(pk)",',
        guards="G29: a review, a redrive or a sweep that stands is not begun anew",
        tests=(f"{I_LETTERS}::test_an_item_is_created_once_and_saved_under_a_condition",),
    ),
    SafetyLine(
        name="ledger: an item is saved only where it stands",
        file=LEDGER,
        line='["attribute_exists(pk)", *(',
        without='["(attribute_exists(pk) OR attribute_not_exists(pk))", *(',
        guards="G29: a record that has ended is not made again, half of it",
        tests=(f"{I_LETTERS}::test_an_item_is_created_once_and_saved_under_a_condition",),
    ),
    SafetyLine(
        name="ledger: an item is saved only as it was read",
        file=LEDGER,
        line='*(f"#w{n} = :w{n}" for n in range(len(asked)))]',
        without='*(f"(#w{n} = :w{n} OR attribute_exists(pk))" for n in range(len(asked)))]',
        guards="G29: two operators, or two invocations of a redrive, do not overwrite one another",
        tests=(f"{I_LETTERS}::test_an_item_is_created_once_and_saved_under_a_condition",),
    ),
    SafetyLine(
        name="ledger: a write recognises its own lost reply",
        file=LEDGER,
        line="return bool(standing) and all(",
        without="return False and all(",
        guards="hole 2: the SDK's repeat of a write that landed counts as done",
        tests=(f"{I_LEDGER}::test_a_repeated_write_finds_its_own_effect_and_counts_as_done",),
    ),
    SafetyLine(
        name="ledger: a foreign item is not taken for one's own",
        file=LEDGER,
        line="and all(standing.get(name) == value for name, value in fields.items())",
        without="",
        guards="G29: a refused decision is not believed to stand",
        tests=(f"{I_LETTERS}::test_an_item_is_created_once_and_saved_under_a_condition",),
    ),
    SafetyLine(
        name="ledger: a refused create brings what stands there",
        file=LEDGER,
        line="""\
                    ConditionExpression="attribute_not_exists(pk)",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
""",
        without="""\
                    ConditionExpression="attribute_not_exists(pk)",
                    ReturnValuesOnConditionCheckFailure="NONE",
""",
        guards="hole 2: without what stands there, one's own lost reply cannot be recognised",
        tests=(f"{I_LEDGER}::test_a_repeated_write_finds_its_own_effect_and_counts_as_done",),
    ),
    SafetyLine(
        name="ledger: a refused save brings what stands there",
        file=LEDGER,
        line="""\
                    ExpressionAttributeValues=to_item({**values, **expected}),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
""",
        without="""\
                    ExpressionAttributeValues=to_item({**values, **expected}),
                    ReturnValuesOnConditionCheckFailure="NONE",
""",
        guards="hole 2: without what stands there, one's own lost reply cannot be recognised",
        tests=(f"{I_LEDGER}::test_a_repeated_write_finds_its_own_effect_and_counts_as_done",),
    ),
    SafetyLine(
        name="ledger: who decides reads consistently",
        file=LEDGER,
        line='Key=to_item({"pk": pk, "sk": sk}), ConsistentRead=True',
        without='Key=to_item({"pk": pk, "sk": sk}), ConsistentRead=False',
        guards="G29: a review that was just recorded is found by ingest and by the repeated request",
        tests=(f"{I_LEDGER}::test_an_item_is_read_consistently_before_anybody_decides",),
    ),
)
