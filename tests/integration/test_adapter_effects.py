"""The Effects port: kept by the adapter and by the fake alike; and the adapter's rows, crashes and lost replies."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from lambdas.adapters import clients
from lambdas.adapters.effects import DynamoEffects
from lambdas.core.canonical import sha256
from lambdas.core.outcomes import NotDone, Permanent
from lambdas.core.ports import AnswerPending, EffectNotRecorded, Effects, Unavailable
from tests.fakes import FakeEffects
from tests.integration.cloud import Cloud, Context

KEY, OTHER = sha256("an effect"), sha256("another effect")
INTENT = '{"text":"Hello","to":"a@x.test"}'
WAYS = ("repeatable", "once")


class Crash(BaseException):
    """The process is gone: nothing after it runs, no `except Exception` sees it."""


class Acting:
    """An effect that says how often it happened; `script` in turn, the last one for ever."""

    def __init__(self, *script: dict[str, Any] | BaseException) -> None:
        self.script, self.times = list(script or ({"result": "sent"},)), 0

    def __call__(self) -> dict[str, Any]:
        self.times += 1
        outcome = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def effects_of(cloud: Cloud, *, remaining_s: float = 120.0, keep_days: int = 30) -> DynamoEffects:
    """The adapter as one execution environment has it, in an invocation with that much time left."""
    effects = DynamoEffects(clients.client("dynamodb"), cloud.answers_table, keep_days=keep_days)
    effects.invocation_started(Context(remaining_s))
    return effects


@pytest.fixture
def effects(cloud: Cloud) -> DynamoEffects:
    return effects_of(cloud)


@pytest.fixture(params=["dynamodb", "fake"])
def any_effects(request: pytest.FixtureRequest) -> Effects:
    """The port twice: the adapter on moto, and the fake that the unit tests trust."""
    return FakeEffects() if request.param == "fake" else effects_of(request.getfixturevalue("cloud"))


@pytest.fixture
def travel(still: time_machine.Traveller) -> time_machine.Traveller:
    return still


def perform(effects: Effects, way: str, act: Acting, key: str = KEY) -> dict[str, Any]:
    kept: dict[str, Any] = getattr(effects, way)(key, act)
    return kept


# --- what the port promises --------------------------------------------------------------------------------------
def test_the_first_intent_stands_whatever_comes_later(any_effects: Effects):
    assert any_effects.intend("job#mail", INTENT) == INTENT
    assert any_effects.intend("job#mail", '{"text":"Hi"}') == INTENT
    assert any_effects.intend("job#crm", "1") == "1"
    assert any_effects.intend("other#mail", "2") == "2"


@pytest.mark.parametrize("intent", ["null", '""', "{}", '"\\u0000 é \N{GRINNING FACE}"', "9" * 100_000])
def test_an_intent_comes_back_as_it_was_written(any_effects: Effects, intent: str):
    assert [any_effects.intend("job#mail", text) for text in (intent, "other")] == [intent, intent]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("result", [None, "", 0, False, [], {}, {"id": "é"}, [1, 2.5]])
def test_an_effect_happens_once_and_its_result_is_given_again(any_effects: Effects, way: str, result: Any):
    act = Acting({"result": result})
    assert [perform(any_effects, way, act) for _ in range(3)] == [{"result": result}] * 3
    assert act.times == 1


@pytest.mark.parametrize("way", WAYS)
def test_two_effects_have_two_results(any_effects: Effects, way: str):
    assert perform(any_effects, way, Acting({"result": 1})) == {"result": 1}
    assert perform(any_effects, way, Acting({"result": 2}), OTHER) == {"result": 2}
    assert perform(any_effects, way, Acting({"result": 3})) == {"result": 1}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [NotDone("closed"), Permanent("no", "THEY_SAID_NO")])
def test_what_did_not_happen_is_told_and_may_be_tried_again(any_effects: Effects, way: str, error: Exception):
    act = Acting(error, {"result": "sent"})
    with pytest.raises(type(error), match=str(error)):
        perform(any_effects, way, act)
    assert perform(any_effects, way, act) == {"result": "sent"}


def test_what_broke_may_be_repeated_unless_it_is_once(any_effects: Effects):
    act = Acting(ConnectionError("cut"), {"result": "sent"})
    with pytest.raises(ConnectionError, match="cut"):
        perform(any_effects, "repeatable", act)
    assert perform(any_effects, "repeatable", act) == {"result": "sent"}

    act = Acting(ConnectionError("cut"), {"result": "sent"})
    for _ in range(2):
        with pytest.raises(Permanent) as unknown:
            perform(any_effects, "once", act, OTHER)
        assert unknown.value.code == "OUTCOME_UNKNOWN"
    assert act.times == 1


# --- crashes -----------------------------------------------------------------------------------------------------
def test_an_effect_whose_process_died_is_repeated_when_its_invocation_is_over(cloud: Cloud, travel: Any):
    act = Acting(Crash(), {"result": "sent"})
    with pytest.raises(Crash):
        crashed(effects_of(cloud, remaining_s=60), "repeatable", act)
    with pytest.raises(AnswerPending) as pending:
        perform(effects_of(cloud), "repeatable", act)
    left_s = (pending.value.until - datetime.now(UTC)).total_seconds()
    assert left_s == pytest.approx(60, abs=0.01)
    travel.shift(timedelta(seconds=62))
    assert perform(effects_of(cloud), "repeatable", act) == {"result": "sent"}
    assert act.times == 2


def test_n3_an_effect_once_whose_process_died_is_never_repeated(cloud: Cloud, travel: Any):
    act = Acting(Crash(), {"result": "sent"})
    with pytest.raises(Crash):
        crashed(effects_of(cloud), "once", act)
    for days in (0, 1, 29):
        travel.shift(timedelta(days=days))
        with pytest.raises(Permanent) as unknown:
            perform(effects_of(cloud), "once", act)
        assert unknown.value.code == "OUTCOME_UNKNOWN"
    assert act.times == 1


def crashed(effects: DynamoEffects, way: str, act: Acting) -> None:
    """Not even Powertools' own tidying up happens in a process that is gone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effects._layer, "delete_record", lambda *_args, **_more: None)
        perform(effects, way, act)


# --- replies that are lost, and stores that refuse ---------------------------------------------------------------
def test_an_intent_whose_reply_was_lost_is_recorded_once(cloud: Cloud, effects: DynamoEffects):
    cloud.wire.lose("PutItem")
    assert effects.intend("job#mail", INTENT) == INTENT
    assert effects.intend("job#mail", "other") == INTENT


@pytest.mark.parametrize("way", WAYS)
def test_a_start_whose_reply_was_lost_does_not_wait_for_itself(cloud: Cloud, effects: DynamoEffects, way: str):
    act = Acting()
    cloud.wire.lose("PutItem")
    assert perform(effects, way, act) == {"result": "sent"}
    assert act.times == 1


@pytest.mark.parametrize("way", WAYS)
def test_an_end_whose_reply_was_lost_is_recorded(cloud: Cloud, effects: DynamoEffects, way: str):
    act = Acting()
    cloud.wire.lose("UpdateItem")
    assert [perform(effects, way, act) for _ in range(2)] == [{"result": "sent"}] * 2
    assert act.times == 1


def test_a_withdrawal_whose_reply_was_lost_withdraws(cloud: Cloud, effects: DynamoEffects):
    act = Acting(NotDone("closed"), {"result": "sent"})
    cloud.wire.lose("DeleteItem")
    with pytest.raises(NotDone):
        perform(effects, "once", act)
    assert perform(effects, "once", act) == {"result": "sent"}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_happens_while_its_start_cannot_be_recorded(cloud: Cloud, effects: DynamoEffects, way: str):
    act = Acting()
    cloud.wire.refuse("PutItem", "ProvisionedThroughputExceededException")
    with pytest.raises(Unavailable):
        effects.intend("job#mail", INTENT)
    with pytest.raises(Unavailable):
        perform(effects, way, act)
    assert act.times == 0
    cloud.wire.mend()
    assert perform(effects, way, act) == {"result": "sent"}


def test_an_effect_whose_end_cannot_be_recorded_says_so_and_is_repeated(cloud: Cloud, travel: Any):
    act = Acting()
    cloud.wire.refuse("UpdateItem", "InternalServerError", 500)
    with pytest.raises(EffectNotRecorded):
        perform(effects_of(cloud), "repeatable", act)
    cloud.wire.mend()
    travel.shift(timedelta(seconds=121))
    assert perform(effects_of(cloud), "repeatable", act) == {"result": "sent"}
    assert act.times == 2


def test_an_effect_once_whose_end_cannot_be_recorded_is_known_to_this_try_alone(cloud: Cloud, effects: DynamoEffects):
    act = Acting()
    cloud.wire.refuse("UpdateItem", "InternalServerError", 500)
    assert perform(effects, "once", act) == {"result": "sent"}
    cloud.wire.mend()
    with pytest.raises(Permanent) as unknown:
        perform(effects, "once", act)
    assert (unknown.value.code, act.times) == ("OUTCOME_UNKNOWN", 1)


def test_a_start_that_landed_and_was_not_heard_of_is_withdrawn_and_may_be_tried_again(
    cloud: Cloud, effects: DynamoEffects
):
    act = Acting()
    cloud.wire.lose("PutItem", times=3)  # botocore's repeats too
    with pytest.raises(Unavailable):
        perform(effects, "once", act)
    assert act.times == 0
    assert perform(effects, "once", act) == {"result": "sent"}


def test_what_an_effect_raised_comes_out_even_when_its_row_cannot_be_freed(cloud: Cloud, effects: DynamoEffects):
    cloud.wire.refuse("DeleteItem", "InternalServerError", 500)
    with pytest.raises(ValueError, match="no such address"):
        perform(effects, "repeatable", Acting(ValueError("no such address")))


@pytest.mark.parametrize("happened", [True, False])
def test_who_comes_late_with_an_effect_once_changes_nothing_in_anothers_start(
    cloud: Cloud, effects: DynamoEffects, happened: bool
):
    def act() -> dict[str, Any]:
        (mine,) = cloud.answer_rows()
        cloud.client("dynamodb").put_item(TableName=cloud.answers_table, Item={**mine, "holder": {"S": "another"}})
        if happened:
            return {"result": "late"}
        raise NotDone("it was refused")

    with suppress(NotDone):
        effects.once(KEY, act)
    assert [(row["status"]["S"], row["holder"]["S"]) for row in cloud.answer_rows()] == [("STARTED", "another")]


def test_a_late_holder_of_a_repeatable_effect_replaces_no_result(cloud: Cloud, travel: Any):
    late = effects_of(cloud, remaining_s=60)

    def act() -> dict[str, Any]:
        travel.shift(timedelta(seconds=90))  # frozen until after its invocation's end
        assert perform(effects_of(cloud), "repeatable", Acting({"result": "second"})) == {"result": "second"}
        return {"result": "first"}

    late.repeatable(KEY, act)
    assert perform(effects_of(cloud), "repeatable", Acting()) == {"result": "second"}


# --- rows --------------------------------------------------------------------------------------------------------
@pytest.mark.usefixtures("still")
def test_rows_are_told_apart_by_their_kind_and_end_with_their_days(cloud: Cloud):
    effects = effects_of(cloud, keep_days=45)
    effects.intend("job#mail", INTENT)
    perform(effects, "once", Acting())
    perform(effects, "repeatable", Acting())
    rows = {row["id"]["S"]: row for row in cloud.answer_rows()}
    assert rows.keys() == {"intent/v1#job#mail", f"once/v1#{KEY}", f"effect/v1#{sha256(json.dumps(KEY))}"}
    ends = [int(row["expiration"]["N"]) for row in rows.values()]
    assert ends == [int(time.time()) + 45 * 86_400] * 3


def test_an_effect_costs_an_intent_a_start_and_an_end(cloud: Cloud, effects: DynamoEffects):
    for way in WAYS:
        cloud.wire.clear()
        effects.intend(f"job#{way}", INTENT)
        perform(effects, way, Acting())
        assert [one.operation for one in cloud.wire.sent] == ["PutItem", "PutItem", "UpdateItem"]
