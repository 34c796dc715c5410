"""The Effects port: intents that stay as recorded, effects that are repeated under one key, starts that never are."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

from lambdas.adapters.clients import client
from lambdas.adapters.effects import DynamoEffects
from lambdas.core.canonical import sha256
from lambdas.core.outcomes import NotDone, Permanent
from lambdas.core.ports import AnswerPending, EffectNotRecorded, Effects, Unavailable
from tests.fakes import FakeEffects
from tests.integration.cloud import Cloud, Context

KEY, OTHER = sha256("an effect"), sha256("another effect")


class Crash(BaseException):
    """The process is gone."""


class Act:
    """An effect that counts how often it happened; `outcomes` in turn, the last one for ever."""

    def __init__(self, *outcomes: dict[str, Any] | BaseException) -> None:
        self.outcomes, self.count = list(outcomes), 0

    def __call__(self) -> dict[str, Any]:
        self.count += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def effects_of(cloud: Cloud, remaining_s: float = 120) -> DynamoEffects:
    """The adapter as one execution environment has it."""
    effects = DynamoEffects(client("dynamodb"), cloud.answers_table, keep_days=30)
    effects.invocation_started(Context(remaining_s))
    return effects


@pytest.fixture(params=["dynamodb", "fake"])
def any_effects(request: pytest.FixtureRequest) -> Any:
    return FakeEffects() if request.param == "fake" else effects_of(request.getfixturevalue("cloud"))


@pytest.fixture
def effects(cloud: Cloud) -> DynamoEffects:
    return effects_of(cloud)


Way = Callable[[Effects, str, Act], dict[str, Any]]
WAYS = [lambda port, key, act: port.repeatable(key, act), lambda port, key, act: port.once(key, act)]
each_way = pytest.mark.parametrize("way", WAYS, ids=["repeatable", "once"])


# --- what the port promises ----------------------------------------------------------------------
def test_idem_24_a_later_try_acts_on_the_payload_that_was_recorded(any_effects: Effects):
    assert any_effects.intend("job#mail", '{"text":"Hello"}') == '{"text":"Hello"}'
    assert any_effects.intend("job#mail", '{"text":"Hi"}') == '{"text":"Hello"}'
    assert any_effects.intend("job#call", '{"text":"Hi"}') == '{"text":"Hi"}'


@each_way
def test_an_effect_happens_once_and_later_tries_get_its_result(any_effects: Effects, way: Way):
    act = Act({"result": "m-1"}, {"result": "m-2"})
    assert way(any_effects, KEY, act) == {"result": "m-1"}
    assert way(any_effects, KEY, act) == {"result": "m-1"}
    assert act.count == 1


@each_way
def test_two_effects_are_two(any_effects: Effects, way: Way):
    act = Act({"result": "m-1"}, {"result": "m-2"})
    assert [way(any_effects, key, act) for key in (KEY, OTHER)] == [{"result": "m-1"}, {"result": "m-2"}]


@each_way
@pytest.mark.parametrize("result", [None, "", 0, False, [], {}])
def test_an_effect_without_a_result_is_not_repeated_for_it(any_effects: Effects, way: Way, result: Any):
    act = Act({"result": result})
    assert [way(any_effects, KEY, act) for _ in range(2)] == [{"result": result}] * 2
    assert act.count == 1


@each_way
@pytest.mark.parametrize("refusal", [NotDone("busy"), Permanent("no such address", "MAIL_REFUSED")])
def test_an_effect_that_says_it_did_not_happen_may_be_tried_again(any_effects: Effects, way: Way, refusal: Exception):
    act = Act(refusal, {"result": "m-1"})
    with pytest.raises(type(refusal), match=str(refusal)):
        way(any_effects, KEY, act)
    assert way(any_effects, KEY, act) == {"result": "m-1"}


def test_a_repeatable_effect_that_raised_is_tried_again(any_effects: Effects):
    act = Act(ConnectionError("cut"), {"result": "m-1"})
    with pytest.raises(ConnectionError):
        any_effects.repeatable(KEY, act)
    assert any_effects.repeatable(KEY, act) == {"result": "m-1"}


def test_n3_an_effect_once_that_raised_is_never_tried_again(any_effects: Effects):
    act = Act(ConnectionError("cut"), {"result": "m-1"})
    for _ in range(3):
        with pytest.raises(Permanent) as unknown:
            any_effects.once(KEY, act)
        assert unknown.value.code == "OUTCOME_UNKNOWN"
    assert act.count == 1


# --- what DynamoDB adds --------------------------------------------------------------------------
def test_n3_an_effect_once_whose_process_died_is_never_repeated(cloud: Cloud):
    act = Act(Crash())
    with pytest.raises(Crash):
        effects_of(cloud).once(KEY, act)
    with pytest.raises(Permanent) as unknown:
        effects_of(cloud).once(KEY, act)
    assert (unknown.value.code, act.count) == ("OUTCOME_UNKNOWN", 1)


def test_a_repeatable_effect_whose_process_died_is_repeated_when_that_invocation_is_over(cloud: Cloud):
    act = Act(Crash(), {"result": "m-2"})
    with time_machine.travel(datetime.now(UTC), tick=True) as traveller:
        with pytest.raises(Crash):
            effects_of(cloud).repeatable(KEY, act)
        with pytest.raises(AnswerPending) as pending:
            effects_of(cloud).repeatable(KEY, act)
        assert pending.value.until.timestamp() == pytest.approx(time.time() + 120, abs=3)
        traveller.shift(121)
        assert effects_of(cloud).repeatable(KEY, act) == {"result": "m-2"}


def test_an_effect_once_whose_start_was_recorded_twice_by_the_sdk_happens(cloud: Cloud, effects: DynamoEffects):
    """Its own lost reply is no earlier start."""
    cloud.wire.lose("PutItem")
    act = Act({"result": "m-1"})
    assert effects.once(KEY, act) == {"result": "m-1"}
    assert (act.count, cloud.wire.count("PutItem")) == (1, 2)


def test_a_repeatable_effect_whose_start_lost_its_reply_does_not_wait_for_itself(cloud: Cloud, effects: DynamoEffects):
    cloud.wire.lose("PutItem")
    assert effects.repeatable(KEY, Act({"result": "m-1"})) == {"result": "m-1"}


@pytest.mark.parametrize("way", WAYS, ids=["repeatable", "once"])
def test_an_end_whose_reply_was_lost_is_recorded(cloud: Cloud, effects: DynamoEffects, way: Way):
    cloud.wire.lose("UpdateItem")
    act = Act({"result": "m-1"}, {"result": "m-2"})
    assert way(effects, KEY, act) == {"result": "m-1"}
    assert way(effects_of(cloud), KEY, act) == {"result": "m-1"}


@each_way
def test_no_effect_happens_when_its_start_cannot_be_recorded(cloud: Cloud, effects: DynamoEffects, way: Way):
    cloud.wire.refuse("PutItem", "AccessDeniedException")
    act = Act({"result": "m-1"})
    with pytest.raises(Unavailable):
        way(effects, KEY, act)
    assert act.count == 0


def test_an_intent_that_cannot_be_recorded_is_unavailable(cloud: Cloud, effects: DynamoEffects):
    cloud.wire.refuse("PutItem", "AccessDeniedException")
    with pytest.raises(Unavailable):
        effects.intend("job#mail", "{}")


def test_an_intent_whose_reply_was_lost_is_its_own(cloud: Cloud, effects: DynamoEffects):
    cloud.wire.lose("PutItem")
    assert effects.intend("job#mail", '{"a":1}') == '{"a":1}'


def test_a_repeatable_effect_whose_end_cannot_be_recorded_says_so(cloud: Cloud, effects: DynamoEffects):
    cloud.wire.refuse("UpdateItem", "AccessDeniedException")
    with pytest.raises(EffectNotRecorded):
        effects.repeatable(KEY, Act({"result": "m-1"}))


def test_an_effect_once_whose_end_cannot_be_recorded_counts_now_and_is_not_repeated_later(
    cloud: Cloud, effects: DynamoEffects
):
    cloud.wire.refuse("UpdateItem", "AccessDeniedException")
    act = Act({"result": "m-1"})
    assert effects.once(KEY, act) == {"result": "m-1"}
    cloud.wire.mend()
    with pytest.raises(Permanent) as unknown:
        effects_of(cloud).once(KEY, act)
    assert (unknown.value.code, act.count) == ("OUTCOME_UNKNOWN", 1)


@each_way
@pytest.mark.parametrize("refusal", [NotDone("busy"), Permanent("no such address", "MAIL_REFUSED")])
def test_what_an_effect_raised_comes_out_even_when_its_start_cannot_be_withdrawn(
    cloud: Cloud, effects: DynamoEffects, way: Way, refusal: Exception
):
    cloud.wire.refuse("DeleteItem", "ThrottlingException")
    with pytest.raises(type(refusal), match=str(refusal)):
        way(effects, KEY, Act(refusal))


def test_an_answer_and_an_effect_of_one_key_are_two_rows(cloud: Cloud, effects: DynamoEffects):
    effects.intend("job#mail", "{}")
    effects.repeatable(KEY, Act({"result": 1}))
    effects.once(KEY, Act({"result": 2}))
    assert sorted(row["id"]["S"].split("#")[0] for row in cloud.answer_rows()) == ["effect/v1", "intent/v1", "once/v1"]
    for row in cloud.answer_rows():
        assert int(row["expiration"]["N"]) == pytest.approx(time.time() + 30 * 86_400, abs=5)
