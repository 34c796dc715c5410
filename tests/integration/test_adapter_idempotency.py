"""The paid step's guard on DynamoDB and S3: its rows, its costs, and who may save or free a row."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import time_machine

from lambdas.adapters import clock
from lambdas.adapters.fenced_layer import FencedLayer
from lambdas.adapters.idempotency import KEY_PREFIX, PowertoolsAnswers
from lambdas.core import ids
from lambdas.core.canonical import sha256
from lambdas.core.ports import AnswerNotStored, AnswerPending, Unavailable
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import answers_of
from tests.integration.test_adapter_answers import KEY, OTHER, Counting, ask

LARGE = {"text": "x" * 1_000_000}


class Crash(BaseException):
    """The process is gone: nothing after it runs, no `except Exception` sees it."""


@pytest.fixture
def answers(cloud: Cloud) -> PowertoolsAnswers:
    return answers_of(cloud)


@pytest.fixture
def travel(still: time_machine.Traveller) -> time_machine.Traveller:
    return still


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of who waits. They take no time, and pass all the same; so does each look at the clock."""
    made: list[float] = []
    looks: list[float] = []

    def now() -> float:
        looks.append(0.01)
        assert len(looks) < 1_000, "it waits for ever"
        return sum(made) + sum(looks)

    monkeypatch.setattr("lambdas.adapters.idempotency.time", SimpleNamespace(monotonic=now, sleep=made.append))
    return made


def only_row(cloud: Cloud) -> dict[str, Any]:
    (row,) = cloud.answer_rows()
    return row


# --- rows and what they cost ---------------------------------------------------------------------
def test_a_row_is_named_by_a_constant_prefix_and_the_hash_that_powertools_makes(
    cloud: Cloud, answers: PowertoolsAnswers
):
    ask(answers, Counting({"text": "yes"}))
    assert KEY_PREFIX == "model/v1"
    assert only_row(cloud)["id"]["S"] == "model/v1#" + sha256(json.dumps(KEY))


def test_a_row_is_the_same_in_a_function_of_another_name(cloud: Cloud, monkeypatch: pytest.MonkeyPatch):
    """A renamed Lambda must not pay again (platform fact 5)."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "the-old-name")
    ask(answers_of(cloud), Counting({"text": "yes"}))
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "the-new-name")
    assert ask(answers_of(cloud), Counting({"text": "no"})).reused


@pytest.mark.usefixtures("still")
def test_a_row_ends_with_its_days_in_whole_seconds(cloud: Cloud):
    """DDB-09: milliseconds would never expire."""
    ask(answers_of(cloud, keep_days=30), Counting({"text": "yes"}))
    assert int(only_row(cloud)["expiration"]["N"]) == int(time.time()) + 30 * 86_400


def test_a_fresh_answer_costs_two_calls_and_a_reused_one_a_single_call(cloud: Cloud, answers: PowertoolsAnswers):
    ask(answers, Counting({"text": "yes"}))
    assert [one.operation for one in cloud.wire.sent] == ["PutItem", "UpdateItem"]
    cloud.wire.clear()
    ask(answers, Counting({"text": "no"}))
    assert [one.operation for one in cloud.wire.sent] == ["PutItem"]


@pytest.mark.usefixtures("still")
def test_idem_01_a_row_in_progress_ends_with_the_invocation(cloud: Cloud):
    """Without the registered context it would end never, and a crash would stop this question for ever."""
    answers, seen = answers_of(cloud, remaining_s=77), []

    def call() -> dict[str, Any]:
        seen.append(only_row(cloud))
        return {"text": "yes"}

    ask(answers, call)
    assert seen[0]["status"]["S"] == "INPROGRESS"
    assert int(seen[0]["in_progress_expiration"]["N"]) / 1000 == pytest.approx(time.time() + 77, abs=0.01)


@pytest.mark.usefixtures("still")
def test_idem_02_each_invocation_has_its_own_window(cloud: Cloud):
    answers, ends = answers_of(cloud, remaining_s=10), []
    for remaining_s, key in ((100, KEY), (50, OTHER)):
        answers.invocation_started(Context(remaining_s))

        def call() -> dict[str, Any]:
            found = [row for row in cloud.answer_rows() if row["status"]["S"] == "INPROGRESS"]
            ends.append(int(found[0]["in_progress_expiration"]["N"]) / 1000 - time.time())
            return {"text": "yes"}

        ask(answers, call, key)
    assert ends == [pytest.approx(100, abs=0.01), pytest.approx(50, abs=0.01)]


def test_idem_01_without_a_registered_context_nothing_is_called(cloud: Cloud):
    answers = answers_of(cloud)
    answers._config.register_lambda_context(None)  # type: ignore[arg-type]
    call = Counting({"text": "yes"})
    with pytest.raises(Unavailable):
        ask(answers, call)
    assert call.calls == 0


def test_two_guards_in_threads_do_not_mix_their_keys(cloud: Cloud):
    """Platform fact 1: a layer takes its prefix from whoever configured it last."""
    pair = [answers_of(cloud), answers_of(cloud)]
    questions = [sha256(f"question {number}") for number in range(12)]

    def one(number: int) -> Any:
        return ask(pair[number % 2], Counting({"text": questions[number]}), questions[number]).value

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(one, range(12))) == [{"text": question} for question in questions]
    assert len(cloud.answer_rows()) == 12
    for number, question in enumerate(questions):
        assert ask(pair[(number + 1) % 2], Counting({"text": "?"}), question).value == {"text": question}


# --- large answers -------------------------------------------------------------------------------
def test_idem_14_a_large_answer_lies_in_s3_and_its_row_stays_small(cloud: Cloud, answers: PowertoolsAnswers):
    kept = ask(answers, Counting(LARGE))
    again = ask(answers, Counting({"text": "?"}))
    assert (kept.value, kept.reused, again.value, again.reused) == (LARGE, False, LARGE, True)
    assert again.by == kept.by
    assert list(cloud.objects(cloud.results_bucket)) == [ids.answer_key("acme", KEY)]
    assert len(json.dumps(only_row(cloud))) < 1_000


def test_an_answer_of_ordinary_size_touches_no_bucket(cloud: Cloud, answers: PowertoolsAnswers):
    ask(answers, Counting({"text": "x" * 4_000}))
    ask(answers, Counting({"text": "?"}))
    assert cloud.wire.count(service="s3") == 0


@pytest.mark.parametrize("length", [20_000, 390_000])
def test_an_answer_that_a_row_could_hold_at_a_price_lies_in_s3_all_the_same(
    cloud: Cloud, answers: PowertoolsAnswers, length: int
):
    """A row of 390 KB is 390 write units, and near the limit of an item."""
    value = {"text": "x" * length}
    ask(answers, Counting(value))
    assert ask(answers, Counting({"text": "?"})).value == value
    assert len(json.dumps(only_row(cloud))) < 1_000


def test_an_answer_is_measured_in_bytes_and_not_in_characters(cloud: Cloud, answers: PowertoolsAnswers):
    ask(answers, Counting({"text": "\u4e16" * 300_000}))  # 300,000 characters would fit into no row
    assert len(json.dumps(only_row(cloud))) < 1_000


def test_forgetting_a_large_answer_deletes_its_object_too(cloud: Cloud, answers: PowertoolsAnswers):
    kept = ask(answers, Counting(LARGE))
    answers.forget(KEY, "acme", kept.by)
    assert cloud.answer_rows() == []
    assert cloud.objects(cloud.results_bucket) == {}


def test_somebody_elses_large_answer_is_not_forgotten_and_its_object_stays(cloud: Cloud, answers: PowertoolsAnswers):
    ask(answers, Counting(LARGE))
    answers.forget(KEY, "acme", "somebody")
    call = Counting({"text": "?"})
    assert (ask(answers, call).value, call.calls) == (LARGE, 0)


def test_a_row_whose_object_is_gone_leads_to_a_new_call(cloud: Cloud, answers: PowertoolsAnswers):
    ask(answers, Counting(LARGE))
    cloud.client("s3").delete_object(Bucket=cloud.results_bucket, Key=ids.answer_key("acme", KEY))
    kept = ask(answers, Counting({"text": "again"}))
    assert (kept.value, kept.reused) == ({"text": "again"}, False)


def test_a_row_that_cannot_be_freed_when_its_object_is_gone_is_unavailable(cloud: Cloud, answers: PowertoolsAnswers):
    ask(answers, Counting(LARGE))
    cloud.client("s3").delete_object(Bucket=cloud.results_bucket, Key=ids.answer_key("acme", KEY))
    cloud.wire.refuse("DeleteItem", "ThrottlingException")
    with pytest.raises(Unavailable):
        ask(answers, Counting({"text": "again"}))


def test_an_object_that_cannot_be_read_is_unavailable_and_not_paid_for_again(cloud: Cloud, answers: PowertoolsAnswers):
    ask(answers, Counting(LARGE))
    cloud.wire.refuse("GetObject", "SlowDown", 503)
    call = Counting({"text": "again"})
    with pytest.raises(Unavailable):
        ask(answers, call)
    assert call.calls == 0


# --- crashes and takeovers -----------------------------------------------------------------------
def crash_before_the_row(cloud: Cloud, patch: pytest.MonkeyPatch, value: dict[str, Any]) -> None:
    """A holder that dies after its object was put and before its row was saved."""

    def die(*_: object, **__: object) -> None:
        raise Crash

    with patch.context() as only_here:
        only_here.setattr(FencedLayer, "_update_record", die)
        with pytest.raises(Crash):
            ask(answers_of(cloud), Counting(value))
    assert only_row(cloud)["status"]["S"] == "INPROGRESS"


def test_idem_01_a_crashed_holder_blocks_until_its_invocation_would_have_ended(
    cloud: Cloud, travel: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
):
    crash_before_the_row(cloud, monkeypatch, {"text": "lost"})
    travel.shift(110)
    with pytest.raises(AnswerPending):
        ask(answers_of(cloud), Counting({"text": "?"}), patience_s=0)
    travel.shift(11)
    kept = ask(answers_of(cloud), Counting({"text": "again"}))
    assert (kept.value, kept.reused) == ({"text": "again"}, False)


def test_a_takeover_finds_the_large_answer_that_a_crashed_holder_left(
    cloud: Cloud, travel: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
):
    """Hole 19: it was paid for."""
    crash_before_the_row(cloud, monkeypatch, LARGE)
    travel.shift(121)
    call = Counting({"text": "?"})
    kept = ask(answers_of(cloud), call)
    assert (kept.value, kept.reused, call.calls) == (LARGE, True, 0)
    again = ask(answers_of(cloud), call)
    assert (again.value, again.by, again.reused) == (LARGE, kept.by, True)


def test_a_takeover_whose_own_reply_was_lost_finds_it_too(
    cloud: Cloud, travel: time_machine.Traveller, monkeypatch: pytest.MonkeyPatch
):
    crash_before_the_row(cloud, monkeypatch, LARGE)
    travel.shift(121)
    cloud.wire.lose("PutItem")
    call = Counting({"text": "?"})
    assert ask(answers_of(cloud), call).value == LARGE
    assert call.calls == 0


@pytest.mark.parametrize(("look", "calls"), [(True, 0), (False, 1)])
def test_an_object_without_a_row_is_found_by_who_looks(
    cloud: Cloud, answers: PowertoolsAnswers, look: bool, calls: int
):
    body = json.dumps({"answer": LARGE}).encode()
    cloud.client("s3").put_object(Bucket=cloud.results_bucket, Key=ids.answer_key("acme", KEY), Body=body)
    call = Counting({"text": "?"})
    kept = answers.once(KEY, "acme", call, patience_s=1, look=look)
    assert (call.calls, kept.reused) == (calls, look)


def test_who_looks_and_finds_nothing_calls(answers: PowertoolsAnswers):
    call = Counting({"text": "yes"})
    assert answers.once(KEY, "acme", call, patience_s=1, look=True).reused is False
    assert call.calls == 1


def test_another_tenants_object_is_not_looked_at(cloud: Cloud, answers: PowertoolsAnswers):
    body = json.dumps({"answer": LARGE}).encode()
    cloud.client("s3").put_object(Bucket=cloud.results_bucket, Key=ids.answer_key("globex", KEY), Body=body)
    call = Counting({"text": "mine"})
    assert answers.once(KEY, "acme", call, patience_s=1, look=True).value == {"text": "mine"}


@pytest.mark.parametrize("value", [{"text": "old"}, LARGE], ids=["small", "large"])
def test_idem_20_an_expired_answer_that_ttl_has_not_swept_is_asked_for_anew(
    cloud: Cloud, travel: time_machine.Traveller, value: dict[str, Any]
):
    ask(answers_of(cloud, keep_days=1), Counting(value))
    travel.shift(timedelta(days=1, seconds=2))
    kept = ask(answers_of(cloud, keep_days=1), Counting({"text": "new"}))
    assert (kept.value, kept.reused) == ({"text": "new"}, False)


# --- lost replies and old holders ----------------------------------------------------------------
def test_n8_a_guard_whose_own_put_was_repeated_does_not_wait_for_itself(cloud: Cloud, answers: PowertoolsAnswers):
    cloud.wire.lose("PutItem")
    call = Counting({"text": "yes"})
    kept = ask(answers, call, patience_s=0)
    assert (kept.reused, call.calls, cloud.wire.count("PutItem")) == (False, 1, 2)


def test_n8_a_guard_whose_own_save_was_repeated_has_saved(cloud: Cloud, answers: PowertoolsAnswers):
    cloud.wire.lose("UpdateItem")
    kept = ask(answers, Counting({"text": "yes"}))
    again = ask(answers, Counting({"text": "?"}))
    assert (kept.value, again.value, again.by, again.reused) == ({"text": "yes"}, {"text": "yes"}, kept.by, True)


def _overtaken(cloud: Cloud, travel: time_machine.Traveller, successor: Any) -> Any:
    """An old holder whose call lasts longer than its window; `successor` acts meanwhile, in another environment."""

    def call() -> dict[str, Any]:
        travel.shift(121)
        successor(answers_of(cloud))
        return {"text": "late"}

    return call


def test_idem_25_a_late_save_does_not_replace_the_successors_answer(cloud: Cloud, travel: time_machine.Traveller):
    kept = []
    call = _overtaken(cloud, travel, lambda other: kept.append(ask(other, Counting({"text": "new"}))))
    late = ask(answers_of(cloud), call)
    assert late.value == {"text": "late"}  # it paid for it, and may use it
    again = ask(answers_of(cloud), Counting({"text": "?"}))
    assert (again.value, again.by) == ({"text": "new"}, kept[0].by)


def test_idem_25_a_late_failure_does_not_free_the_successors_answer(cloud: Cloud, travel: time_machine.Traveller):
    """Hole 15: a third caller would pay."""

    def fail(other: PowertoolsAnswers) -> None:
        ask(other, Counting({"text": "new"}))
        raise RuntimeError("late")

    with pytest.raises(RuntimeError, match="late"):
        ask(answers_of(cloud), _overtaken(cloud, travel, fail))
    assert ask(answers_of(cloud), Counting({"text": "?"})).value == {"text": "new"}


def test_idem_25_a_late_failure_does_not_free_a_successor_in_progress(cloud: Cloud, travel: time_machine.Traveller):
    def die(other: PowertoolsAnswers) -> None:
        def crash() -> dict[str, Any]:
            raise Crash

        with pytest.raises(Crash):
            ask(other, crash)
        raise RuntimeError("late")

    with pytest.raises(RuntimeError, match="late"):
        ask(answers_of(cloud), _overtaken(cloud, travel, die))
    assert only_row(cloud)["status"]["S"] == "INPROGRESS"
    with pytest.raises(AnswerPending):
        ask(answers_of(cloud), Counting({"text": "?"}), patience_s=0)


def test_idem_25_a_late_save_does_not_stand_for_the_successors_call_under_way(
    cloud: Cloud, travel: time_machine.Traveller
):
    """Else who waits for the successor would get another answer than the one that the successor works with."""

    def die(other: PowertoolsAnswers) -> None:
        def crash() -> dict[str, Any]:
            raise Crash

        with pytest.raises(Crash):
            ask(other, crash)

    assert ask(answers_of(cloud), _overtaken(cloud, travel, die)).value == {"text": "late"}
    assert only_row(cloud)["status"]["S"] == "INPROGRESS"


def test_an_answer_outlives_the_window_of_the_call_that_it_came_from(cloud: Cloud, travel: time_machine.Traveller):
    ask(answers_of(cloud), Counting({"text": "yes"}))
    travel.shift(121)
    call = Counting({"text": "?"})
    assert (ask(answers_of(cloud), call).value, call.calls) == ({"text": "yes"}, 0)


@pytest.mark.usefixtures("still")
def test_what_is_under_way_is_read_consistently(cloud: Cloud):
    def crash() -> dict[str, Any]:
        raise Crash

    with pytest.raises(Crash):
        ask(answers_of(cloud), crash)
    with pytest.raises(AnswerPending):
        ask(answers_of(cloud), Counting({"text": "?"}), patience_s=0)
    assert [
        one.body for one in cloud.wire.sent if one.operation == "GetItem" and '"ConsistentRead": true' not in one.body
    ] == []
    assert cloud.wire.count("GetItem") > 0


# --- trouble with the store ----------------------------------------------------------------------
@pytest.mark.parametrize("how", ["refused", "cut", "no table"])
def test_idem_21_no_call_is_made_when_the_store_is_down(cloud: Cloud, answers: PowertoolsAnswers, how: str):
    if how == "refused":
        cloud.wire.refuse("PutItem", "AccessDeniedException")
    elif how == "cut":
        cloud.wire.cut("PutItem", times=3)
    else:
        cloud.wire.refuse("PutItem", "ResourceNotFoundException")
    call = Counting({"text": "yes"})
    with pytest.raises(Unavailable):
        ask(answers, call)
    assert call.calls == 0


@pytest.mark.parametrize("trouble", ["UpdateItem", "PutObject"])
def test_a_paid_answer_that_cannot_be_kept_says_so(cloud: Cloud, answers: PowertoolsAnswers, trouble: str):
    cloud.wire.refuse(trouble, "AccessDenied")
    call = Counting(LARGE)
    with pytest.raises(AnswerNotStored):
        ask(answers, call)
    assert call.calls == 1


def test_a_save_that_landed_unheard_is_found_by_the_next_caller(cloud: Cloud, answers: PowertoolsAnswers):
    cloud.wire.lose("UpdateItem", times=3)
    with pytest.raises(AnswerNotStored):
        ask(answers, Counting({"text": "yes"}))
    assert ask(answers, Counting({"text": "?"})).value == {"text": "yes"}


def test_what_the_call_raised_comes_out_even_when_its_row_cannot_be_freed(cloud: Cloud, answers: PowertoolsAnswers):
    """A permanent refusal that turned into Unavailable would be waited for, and asked again."""
    cloud.wire.refuse("DeleteItem", "ThrottlingException")
    with pytest.raises(PermissionError, match="no such model"):
        ask(answers, Counting(PermissionError("no such model")))


def test_forgetting_while_the_store_is_down_is_unavailable(cloud: Cloud, answers: PowertoolsAnswers):
    kept = ask(answers, Counting({"text": "yes"}))
    cloud.wire.refuse("GetItem", "AccessDeniedException")
    with pytest.raises(Unavailable):
        answers.forget(KEY, "acme", kept.by)


# --- waiting -------------------------------------------------------------------------------------
@pytest.mark.usefixtures("still")
@pytest.mark.parametrize(
    ("patience_s", "pauses"), [(-5, []), (0, []), (0.7, [0.2, 0.4])], ids=["no-time", "none", "some"]
)
def test_who_waits_for_another_gives_up_in_time_and_knows_until_when(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, slept: list[float], patience_s: float, pauses: list[float]
):
    crash_before_the_row(cloud, monkeypatch, {"text": "lost"})
    until = int(only_row(cloud)["in_progress_expiration"]["N"]) / 1000
    with pytest.raises(AnswerPending) as pending:
        ask(answers_of(cloud), Counting({"text": "?"}), patience_s=patience_s)
    assert pending.value.until == datetime.fromtimestamp(until, UTC)
    assert slept == pauses
    assert pending.value.until > clock.now()


@pytest.mark.usefixtures("still", "slept")
def test_who_waits_does_not_ask_the_store_in_a_hot_loop(cloud: Cloud, monkeypatch: pytest.MonkeyPatch):
    crash_before_the_row(cloud, monkeypatch, {"text": "lost"})
    cloud.wire.clear()
    with pytest.raises(AnswerPending):
        ask(answers_of(cloud), Counting({"text": "?"}), patience_s=0.7)
    assert cloud.wire.count(service="dynamodb") <= 6


@pytest.mark.usefixtures("still")
def test_who_finds_the_row_free_again_calls_at_once_even_without_patience(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
):
    """Its holder failed between my refused put and my look at the row."""
    crash_before_the_row(cloud, monkeypatch, {"text": "lost"})
    stock = FencedLayer.row

    def freed(layer: FencedLayer, row_id: str) -> Any:
        cloud.client("dynamodb").delete_item(TableName=cloud.answers_table, Key={"id": {"S": row_id}})
        return stock(layer, row_id)

    monkeypatch.setattr(FencedLayer, "row", freed)
    assert ask(answers_of(cloud), Counting({"text": "mine"}), patience_s=0).value == {"text": "mine"}
