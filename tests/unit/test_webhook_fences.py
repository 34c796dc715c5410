"""A delivery's conditional writes: what each does, and that none undoes what somebody else has written since."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, DUE_SHARD, FAILED, PENDING, PROCESSING
from lambdas.core import ids, times
from lambdas.core.job import HISTORY_HEAD, HISTORY_TAIL, UnreadableRecord
from lambdas.core.ports import Applied, Refused
from lambdas.core.protocol import Change
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks.delivery import Delivery, read
from lambdas.core.webhooks.ports import Key
from lambdas.core.webhooks.schedule import TRIES_MAX
from tests.builders import JOB_ID, NOW, TENANT, later
from tests.fakes_webhooks import (
    ENDPOINT,
    EVENT_ID,
    LIMITS,
    FakeDeliveries,
    answered,
    any_delivery,
    any_delivery_record,
    final_delivery,
    final_delivery_record,
    held_delivery,
)
from tests.fakes_webhooks import held_delivery_record as held

Record = dict[str, Any]
OTHER, WHY = "claim-of-another", {"code": "HTTP_500", "message": "its endpoint answered 500"}
KEY: Key = (JOB_ID, f"delivery#{ENDPOINT}#{EVENT_ID}")


def complete(one: Delivery) -> Change:
    return changes.complete(one, now=NOW, receipt=changes.receipt(answered(200)), limits=LIMITS)


def retry(one: Delivery, *, refused: bool = False, at: float = 300) -> Change:
    return changes.retry(one, now=NOW, at=later(at), why=WHY, refused=refused, limits=LIMITS, receipt={})


def park(one: Delivery) -> Change:
    return changes.park(one, now=NOW, until=later(60), why={"code": "BUSY", "message": "x"}, limits=LIMITS)


def fail(one: Delivery) -> Change:
    return changes.fail(one, now=NOW, why=WHY, limits=LIMITS, receipt=changes.receipt(answered(404)))


def claim() -> Change:
    return changes.claim(claim_id="mine", now=NOW, invocation_ends=later(60))


def expire(one: Delivery) -> Change:
    return changes.expire(one, now=NOW, limits=LIMITS)


def reopen(one: Delivery) -> Change:
    return changes.reopen(one, now=NOW, limits=LIMITS)


def hasten(one: Delivery) -> Change:
    return changes.hasten(one, now=NOW, limits=LIMITS)


def reap(one: Delivery) -> Change:
    return changes.reap(one, now=NOW, limits=LIMITS)


def lapsed(**over: Any) -> Record:
    return held(**{"lease_until": later(-1), "claimed_at": later(-71), **over})


def lapsed_delivery() -> Delivery:
    return read(lapsed())


HOLDERS = {"pull_due": changes.pull_due, "complete": complete, "retry": retry, "park": park, "fail": fail}
LATE: dict[str, tuple[Change, Record]] = {
    **{f"{name}: it was reaped, and waits again": (write(held_delivery()), any_delivery_record(attempt=1))
       for name, write in HOLDERS.items()},
    **{f"{name}: the holder has it again, at the next attempt": (write(held_delivery()), held(attempt=2))
       for name, write in HOLDERS.items()},
    **{f"{name}: it was reaped, opened anew and claimed by another": (write(held_delivery()), held(claim_id=OTHER))
       for name, write in HOLDERS.items()},
    **{f"{name}: another has delivered it": (write(held_delivery()), final_delivery_record(attempt=2, claim_id=OTHER))
       for name, write in HOLDERS.items()},
    "claim: it was taken": (claim(), final_delivery_record(lease_until=later(-1))),
    "claim: it was given up": (claim(), final_delivery_record(FAILED, lease_until=later(-1))),
    "claim: it may not be tried yet": (claim(), any_delivery_record(not_before=later(60))),
    "claim: somebody is trying it": (claim(), held(claim_id=OTHER)),
    "claim: its tries are used": (claim(), any_delivery_record(tries=TRIES_MAX)),
    "claim: its deadline has come": (claim(), any_delivery_record(deadline_at=NOW)),
    "leave: it has been opened again": (changes.leave(attempt=0, now=NOW), any_delivery_record(attempt=1)),
    "leave: somebody is trying it": (changes.leave(attempt=1, now=NOW), held()),
    "leave: it waits already": (changes.leave(attempt=0, now=NOW), any_delivery_record(not_before=later(60))),
    "expire: its late holder has delivered it": (
        expire(lapsed_delivery()), final_delivery_record(lease_until=later(-1))
    ),
    "expire: it has lapsed once more": (expire(lapsed_delivery()), lapsed(attempt=2, claim_id=OTHER)),
    "expire: it is held": (expire(lapsed_delivery()), held()),
    "expire: it was claimed, and has waited": (expire(any_delivery()), any_delivery_record(attempt=1)),
    "reopen: it was opened, and has failed again": (
        reopen(final_delivery(FAILED)), final_delivery_record(FAILED, attempt=3)
    ),
    "reopen: it failed, was opened and delivered": (reopen(final_delivery(FAILED)), final_delivery_record(attempt=3)),
    "reopen: it was given up by its sweep": (reopen(final_delivery()), final_delivery_record(FAILED)),
    "push_due: somebody is trying it": (changes.push_due(any_delivery(), later(600)), held()),
    "push_due: it was tried, and waits": (changes.push_due(any_delivery(), later(600)), any_delivery_record(attempt=1)),
    "push_due: hastened, but somebody is trying it": (hasten(any_delivery(not_before=later(900))), held()),
    "reap: its late holder has delivered it": (reap(lapsed_delivery()), final_delivery_record(lease_until=later(-1))),
    "reap: its late holder has parked it": (reap(lapsed_delivery()), any_delivery_record(attempt=1)),
    "reap: somebody else has it": (reap(lapsed_delivery()), held(attempt=2, claim_id=OTHER)),
    "reap: it is held": (reap(lapsed_delivery()), held()),
}  # fmt: skip


@pytest.mark.parametrize("story", LATE)
def test_a_write_that_comes_too_late_changes_nothing(story: str) -> None:
    change, standing = LATE[story]
    store = FakeDeliveries(standing)
    outcome = store.apply(KEY, change)
    assert isinstance(outcome, Refused) or change.is_own_effect(standing)
    assert (story.partition(":")[0], store.images) == (change.rule.name, [])


OWN: dict[str, tuple[Change, Record]] = {
    "claim": (claim(), any_delivery_record()),
    "claim of a lapsed one": (claim(), lapsed()),
    "complete": (complete(held_delivery()), held()),
    "retry": (retry(held_delivery()), held()),
    "park": (park(held_delivery()), held()),
    "fail": (fail(held_delivery()), held()),
    "expire": (expire(any_delivery()), any_delivery_record()),
    "reopen": (reopen(final_delivery(FAILED)), final_delivery_record(FAILED)),
    "reopen one that was taken": (reopen(final_delivery()), final_delivery_record()),
    "reap": (reap(lapsed_delivery()), lapsed()),
}


@pytest.mark.parametrize("name", OWN)
def test_a_write_whose_reply_was_lost_is_recognised_and_made_once(name: str) -> None:
    change, standing = OWN[name]
    store = FakeDeliveries(standing)
    first, again = store.apply(KEY, change), store.apply(KEY, change)
    assert isinstance(first, Applied)
    assert again == first
    assert len(store.images) == 1


# --- what each of them does -----------------------------------------------------------------------
def after(change: Change, record: Record) -> Delivery:
    applied = FakeDeliveries(record).apply(KEY, change)
    assert isinstance(applied, Applied)
    return read(applied.record)


def test_a_new_one_waits_for_its_first_try_in_a_shard_of_its_own() -> None:
    record = any_delivery_record()
    found = read(record)
    assert (found.status, found.attempt, found.tries, found.not_before) == (PENDING, 0, 0, NOW)
    assert (found.due_at, found.deadline_at) == (later(120), later(hours=72))
    assert record[DUE_SHARD] in ids.delivery_shards()
    assert not set(ids.delivery_shards()) & set(ids.due_shards())
    assert "expires_at" not in record


def test_a_claim_holds_it_until_the_platform_has_surely_ended_its_invocation() -> None:
    found = after(claim(), any_delivery_record())
    assert (found.status, found.attempt, found.tries) == (PROCESSING, 1, 1)
    assert (found.claim_id, found.claimed_at, found.lease_until) == ("mine", NOW, later(70))


@pytest.mark.parametrize("change", [complete(held_delivery()), fail(held_delivery()), expire(lapsed_delivery())])
def test_nobody_need_look_again_at_one_that_has_ended(change: Change) -> None:
    record = lapsed() if change.rule.name == "expire" else held()
    applied = FakeDeliveries(record).apply(KEY, change)
    assert isinstance(applied, Applied)
    assert {"due_at", "due_shard"} & applied.record.keys() == set()
    assert read(applied.record).expires_at == int(later(days=90).timestamp())


def test_a_receipt_says_when_what_and_how_fast() -> None:
    found = after(complete(held_delivery()), held(error=WHY))
    assert (found.status, found.error) == (COMPLETED, None)
    assert found.history[-1] == {"at": times.text(NOW), "what": "delivered", "attempt": 1, "status": 200, "ms": 31}


def test_what_an_endpoint_says_is_kept_short_and_without_what_moves_a_cursor() -> None:
    said = answered(500, excerpt="\x1b[31mno\x00\r\nSet-Cookie\u202e " + "x" * 500)
    line = after(changes.fail(held_delivery(), now=NOW, why=WHY, limits=LIMITS, receipt=changes.receipt(said)), held())
    note = line.history[-1]["note"]
    assert note.startswith("HTTP_500: its endpoint answered 500; [31mno Set-Cookie ")
    assert len(note.encode()) <= 200
    assert note.isprintable()


def test_a_retry_waits_and_counts_what_was_not_wanted() -> None:
    found = after(retry(held_delivery(), refused=True), held(refusals=2))
    assert (found.status, found.tries, found.refusals, found.not_before) == (PENDING, 1, 3, later(300))
    assert found.error == WHY
    assert found.due_at == later(420)


def test_a_long_wait_is_left_to_the_sweep_which_looks_when_it_is_over() -> None:
    assert after(retry(held_delivery(), at=3_600), held()).due_at == later(3_600)


def test_a_park_gives_the_try_back_and_keeps_what_its_last_try_came_to() -> None:
    found = after(park(held_delivery(tries=3)), held(tries=3, error=WHY))
    assert (found.status, found.tries, found.waits, found.not_before) == (PENDING, 2, 1, later(60))
    assert found.error == WHY


def test_waits_do_not_push_the_receipts_out_of_the_history() -> None:
    store = FakeDeliveries(held())
    store.apply(KEY, retry(held_delivery(), at=0))
    for _ in range(20):
        claimed = store.apply(KEY, claim())
        assert isinstance(claimed, Applied)
        waiting = changes.park(read(claimed.record), now=NOW, until=NOW, why=WHY, limits=LIMITS)
        assert isinstance(store.apply(KEY, waiting), Applied)
    found = read(store.records[KEY])
    assert [line["what"] for line in found.history] == ["planned", "retried", "waits"]
    assert (found.history[-1]["attempt"], found.waits, found.tries, found.history_left_out) == (21, 20, 1, 0)


def test_the_history_is_capped_and_says_how_much_is_left_out() -> None:
    lines = [{"at": times.text(NOW), "what": "retried", "attempt": n} for n in range(HISTORY_HEAD + HISTORY_TAIL)]
    found = after(complete(held_delivery(history=lines)), held(history=lines))
    assert len(found.history) == HISTORY_HEAD + HISTORY_TAIL
    assert (found.history_left_out, found.history[-1]["what"]) == (1, "delivered")


def test_expired_says_whether_its_tries_or_its_time_are_used_up() -> None:
    used, late = any_delivery(tries=TRIES_MAX, error=WHY), any_delivery(deadline_at=NOW)
    assert changes.expire(used, now=NOW, limits=LIMITS).sets["error"]["code"] == "ATTEMPTS_EXHAUSTED"
    assert "HTTP_500" in changes.expire(used, now=NOW, limits=LIMITS).sets["error"]["message"]
    assert changes.expire(late, now=NOW, limits=LIMITS).sets["error"]["code"] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("status", [COMPLETED, FAILED])
def test_reopened_it_has_all_its_tries_and_days_again_under_the_same_event_id(status: str) -> None:
    standing = final_delivery_record(status, tries=9, waits=4, refusals=4, crashes=2, deadline_at=later(-60))
    found = after(reopen(read(standing)), standing)
    assert (found.status, found.attempt, found.opening) == (PENDING, 2, 1)
    assert (found.tries, found.waits, found.refusals, found.crashes) == (0, 0, 0, 0)
    assert (found.event_id, found.deadline_at, found.not_before) == (EVENT_ID, later(hours=72), NOW)
    assert found.due_at == later(120)
    assert (found.claim_id, found.expires_at, found.finished_at) == (None, None, None)


def test_reopened_is_in_the_index_again() -> None:
    store = FakeDeliveries(final_delivery_record(FAILED))
    store.apply(KEY, reopen(final_delivery(FAILED)))
    assert store.records[KEY][DUE_SHARD] == any_delivery_record()[DUE_SHARD]


def test_no_look_is_put_off_beyond_the_deadline() -> None:
    standing = any_delivery_record(deadline_at=later(60))
    assert after(changes.push_due(read(standing), later(600)), standing).due_at == later(60)


def test_hastened_one_that_waits_is_due_now() -> None:
    standing = any_delivery_record(attempt=3, not_before=later(40_000), due_at=later(40_000))
    found = after(hasten(read(standing)), standing)
    assert (found.attempt, found.not_before, found.due_at) == (3, NOW, later(120))


def test_reaped_it_is_tried_again_at_once_and_the_crash_is_counted() -> None:
    found = after(reap(lapsed_delivery()), lapsed())
    assert (found.status, found.crashes, found.tries, found.not_before) == (PENDING, 1, 1, NOW)
    assert found.claim_id is None


# --- the record -----------------------------------------------------------------------------------
@pytest.mark.parametrize("broken", [
    {"sk": "job"}, {"sk": "delivery#other#x"}, {"status": "WAITING"}, {"status": "CANCELLED"}, {"body": None},
    {"attempt": "1"}, {"attempt": True}, {"tenant": 7}, {"not_before": "soon"}, {"deadline_at": None},
    {"error": "no"}, {"pk": None}, {"tries": None}, {"status": PROCESSING},
])  # fmt: skip
def test_a_broken_record_is_never_guessed_at(broken: Record) -> None:
    record = {name: value for name, value in {**any_delivery_record(), **broken}.items() if value is not None}
    with pytest.raises(UnreadableRecord):
        read(record)


def test_a_callbacks_secret_is_that_of_all_callbacks() -> None:
    named = "callback-0123456789abcdef"
    found = any_delivery(endpoint=named, sk=f"delivery#{named}#{EVENT_ID}", url="https://hooks.example.com/x")
    assert (found.signer, found.tenant, any_delivery().signer) == ("callback", TENANT, ENDPOINT)


def test_a_log_line_has_no_url() -> None:
    assert "url" not in deliveries.correlation(any_delivery(url="https://hooks.example.com/?key=secret"))
