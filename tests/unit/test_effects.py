"""A side effect acts on its recorded intent, under one key, and what is declared `once` is never repeated blindly."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import FAILED, PENDING
from lambdas.core.canonical import sha256_of
from lambdas.core.effects import Acting
from lambdas.core.outcomes import NotDone, Permanent
from lambdas.core.ports import EffectNotRecorded, Unavailable
from lambdas.core.tasks import Context
from tests.builders import JOB_ID, any_task, held_job, held_record
from tests.fakes import FakeEffects, FakeMailer, Notices, Trouble
from tests.unit.bench import held

PAYLOAD = {"to": "a@x.test", "text": "Hello"}


class Acted:
    """What a side effect was called with; raises what it is told to, one thing a call."""

    def __init__(self, *script: BaseException | None, result: Any = "sent") -> None:
        self.calls: list[tuple[Any, str]] = []
        self._script, self._result = list(script), result

    def __call__(self, payload: Any, key: str) -> Any:
        self.calls.append((payload, key))
        trouble = self._script.pop(0) if self._script else None
        if trouble:
            raise trouble
        return self._result


def a_try(effects: FakeEffects, **over: Any) -> Acting:
    return Acting(held_job(**over), effects, Notices())


def test_an_effect_gets_its_payload_and_a_key_and_gives_its_result() -> None:
    act = Acted()
    assert a_try(FakeEffects()).effect("mail", PAYLOAD, act) == "sent"
    assert act.calls == [(PAYLOAD, sha256_of([JOB_ID, "mail", PAYLOAD]))]


def test_the_intent_is_recorded_before_anything_happens() -> None:
    effects = FakeEffects()

    def act(payload: Any, key: str) -> Any:
        assert effects.intents == {f"{JOB_ID}#mail": '{"text":"Hello","to":"a@x.test"}'}

    a_try(effects).effect("mail", PAYLOAD, act)


def test_nothing_happens_when_the_intent_cannot_be_recorded() -> None:
    effects, act = FakeEffects(), Acted()
    effects.troubles.add("intend", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        a_try(effects).effect("mail", PAYLOAD, act)
    assert act.calls == []


@pytest.mark.parametrize("once", [False, True])
def test_a_later_try_gets_the_recorded_result_and_acts_no_more(once: bool) -> None:
    effects, act = FakeEffects(), Acted()
    for attempt in (1, 2):
        assert a_try(effects, attempt=attempt).effect("mail", PAYLOAD, act, once=once) == "sent"
    assert len(act.calls) == 1


def test_idem_24_a_later_try_acts_on_the_recorded_payload_and_under_the_same_key() -> None:
    effects, act = FakeEffects(), Acted(ValueError("cut"))
    with pytest.raises(ValueError, match="cut"):
        a_try(effects).effect("mail", PAYLOAD, act)
    a_try(effects, attempt=2).effect("mail", {"to": "a@x.test", "text": "Hi"}, act)
    assert act.calls[0] == act.calls[1]
    assert act.calls[1][0] == PAYLOAD


def test_an_effect_whose_end_was_not_recorded_is_repeated_under_the_same_key() -> None:
    effects, act = FakeEffects(), Acted()
    effects.troubles.add("end", Trouble.UNSENT)
    with pytest.raises(EffectNotRecorded):
        a_try(effects).effect("mail", PAYLOAD, act)
    a_try(effects, attempt=2).effect("mail", PAYLOAD, act)
    assert len({key for _, key in act.calls}) == 1
    assert len(act.calls) == 2


def test_other_jobs_names_and_payloads_have_other_keys() -> None:
    act = Acted()
    for pk, name, payload in (("a", "mail", 1), ("b", "mail", 1), ("a", "crm", 1), ("c", "mail", 2)):
        a_try(FakeEffects(), pk=pk).effect(name, payload, act)
    assert len({key for _, key in act.calls}) == 4


# --- once ------------------------------------------------------------------------------------------
def test_n3_a_start_without_an_end_is_never_repeated() -> None:
    effects, act = FakeEffects(), Acted()
    effects.troubles.add("end", Trouble.UNSENT)
    assert a_try(effects).effect("mail", PAYLOAD, act, once=True) == "sent"
    with pytest.raises(Permanent) as unknown:
        a_try(effects, attempt=2).effect("mail", PAYLOAD, act, once=True)
    assert unknown.value.code == "OUTCOME_UNKNOWN"
    assert len(act.calls) == 1


def test_what_certainly_did_not_happen_may_be_tried_again() -> None:
    effects, act = FakeEffects(), Acted(NotDone("throttled"))
    with pytest.raises(NotDone):
        a_try(effects).effect("mail", PAYLOAD, act, once=True)
    assert a_try(effects, attempt=2).effect("mail", PAYLOAD, act, once=True) == "sent"


# --- what is no effect -----------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["", "a b", "a#b", "é", "x" * 65, "a\n"])
def test_an_effect_needs_a_plain_name(name: str) -> None:
    act = Acted()
    with pytest.raises(Permanent) as wrong:
        a_try(FakeEffects()).effect(name, PAYLOAD, act)
    assert (wrong.value.code, act.calls) == ("INVALID_EFFECT", [])


def test_a_name_stands_for_one_effect_of_a_try() -> None:
    acting, act = a_try(FakeEffects()), Acted()
    acting.effect("mail", 1, act)
    with pytest.raises(Permanent):
        acting.effect("mail", 2, act)
    assert len(act.calls) == 1


@pytest.mark.parametrize("payload", [{1, 2}, float("nan"), "\ud800", {"x": "y" * 100_000}])
def test_a_payload_that_cannot_be_recorded_is_refused_and_nothing_happens(payload: Any) -> None:
    effects, act = FakeEffects(), Acted()
    with pytest.raises(Permanent) as wrong:
        a_try(effects).effect("mail", payload, act)
    assert (wrong.value.code, act.calls, effects.intents) == ("INVALID_EFFECT", [], {})


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("result", [{1, 2}, object(), "\ud800", "x" * 8_192])
def test_an_effect_that_happened_is_not_repeated_because_its_result_cannot_be_kept(result: Any, once: bool) -> None:
    effects, act = FakeEffects(), Acted(result=result)
    for attempt in (1, 2):
        with pytest.raises(Permanent) as wrong:
            a_try(effects, attempt=attempt).effect("mail", PAYLOAD, act, once=once)
        assert wrong.value.code == "INVALID_EFFECT"
    assert len(act.calls) == 1


# --- in a task -------------------------------------------------------------------------------------
def _mailing(task_input: Any, ctx: Context) -> Any:
    def send(payload: Any, key: str) -> str:
        return ctx.mail.send(to=payload["to"], subject="S", text=payload["text"], key=key)

    return {"mail": ctx.effect("mail", PAYLOAD, send, once=True)}


def test_a_task_sends_its_mail_once_though_its_job_is_tried_again() -> None:
    bench = held(any_task(_mailing))
    bench.results.troubles.add("put", Trouble.UNSENT)
    assert bench.execute() == "waits"
    bench.store.records[JOB_ID] = held_record(attempt=2)
    assert bench.execute() == "completed"
    assert [mail["key"] for mail in bench.mailer.sent] == [sha256_of([JOB_ID, "mail", PAYLOAD])]


def test_a_mail_that_was_certainly_not_sent_is_tried_again() -> None:
    bench = held(any_task(_mailing))
    bench.mailer = FakeMailer(NotDone("throttled"))
    assert bench.execute() == "retried"
    assert (bench.job().status, bench.job().error["code"]) == (PENDING, "EFFECT_NOT_DONE")  # type: ignore[index]


@pytest.mark.parametrize(
    ("trouble", "code"),
    [(TimeoutError("no answer"), "OUTCOME_UNKNOWN"), (Permanent("no sender", "MAIL_OFF"), "MAIL_OFF")],
)
def test_a_mail_of_which_nobody_knows_or_that_never_will_be_sent_ends_the_job_with_its_reason(
    trouble: Exception, code: str
) -> None:
    bench = held(any_task(_mailing))
    bench.mailer = FakeMailer(trouble)
    assert bench.execute() == "failed"
    assert (bench.job().status, bench.job().error["code"]) == (FAILED, code)  # type: ignore[index]
