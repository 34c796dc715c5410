"""From a hint to an attempt, and what comes of it: rows 3 to 7 for a delivery, line by line."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED, PENDING, PROCESSING
from lambdas.core import times
from lambdas.core.batch import Done, Early, Failed
from lambdas.core.ports import Unavailable
from lambdas.core.webhooks import delivery_changes as changes
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import secrets
from lambdas.core.webhooks.calling import SPREAD_S
from lambdas.core.webhooks.delivery import read
from lambdas.core.webhooks.expiring import expire
from lambdas.core.webhooks.judging import DELIVERED, GIVEN_UP, MOOT, OUTLIVED, RETRIED, WAITS
from lambdas.core.webhooks.schedule import REFUSALS_MAX, TRIES_MAX, WAITS_S
from tests.builders import JOB_ID, NOW, TENANT, later
from tests.fakes import Trouble
from tests.fakes_webhooks import (
    ENDPOINT,
    EVENT_ID,
    LIMITS,
    URL,
    FakeDeliveries,
    FakePoster,
    answered,
    any_delivery_record,
    any_endpoint,
    final_delivery_record,
    held_delivery_record,
    no_answer,
    registered,
)
from tests.unit.webhook_office import KEY, Office

PING_KEY = ("ping#1", f"delivery#{ENDPOINT}#{EVENT_ID}")
CALLBACK = "callback-0123456789abcdef"


def office(record: dict[str, Any] | None = None, *script: Any, **over: Any) -> Office:
    store = FakeDeliveries(record or any_delivery_record())
    return Office(store=store, poster=FakePoster.saying(*script or (200,)), **over)


# --- row 3: the claim ------------------------------------------------------------------------------
def test_a_delivery_is_claimed_sent_and_done() -> None:
    own = office()
    assert own.hint() == Done(DELIVERED)
    found = own.found()
    assert (found.status, found.attempt, found.tries) == (COMPLETED, 1, 1)
    assert found.history[-1]["status"] == 200
    assert own.store.calls == ["claim", "complete"]


def test_what_is_sent_is_the_body_of_the_record_signed_as_it_is() -> None:
    body = '{"b":1.0,"a":"Gr\\u00fc\\u00dfe"}'
    own = office(any_delivery_record(body=body))
    own.hint()
    (sent,) = own.poster.posted
    secret = secrets.secret("master", TENANT, ENDPOINT, 1)
    stamp = int(NOW.timestamp())
    assert (sent.url, sent.body, sent.timeout_s) == (URL, body.encode(), 5.0)
    assert sent.headers == {
        "content-type": "application/json",
        "webhook-id": EVENT_ID,
        "webhook-timestamp": str(stamp),
        "webhook-signature": f"v1,{secret}|{EVENT_ID}|{stamp}|{len(body)}",
    }


def test_wh_12_each_try_has_the_same_id_and_body_and_its_own_time() -> None:
    own = office(None, 500, 503, 200)
    own.try_until_over()
    first, *others = own.poster.posted
    assert len(others) == 2
    assert {(one.headers["webhook-id"], one.body) for one in others} == {(EVENT_ID, first.body)}
    assert len({one.headers["webhook-timestamp"] for one in own.poster.posted}) == 3


def test_after_a_rotation_both_secrets_sign() -> None:
    own = office()
    own.endpoints = registered(any_endpoint(secret_version=5, previous_until=later(60)))
    own.hint()
    signatures = own.poster.posted[0].headers["webhook-signature"].split(" ")
    assert [one.split(",")[1].split("|")[0] for one in signatures] == [
        secrets.secret("master", TENANT, ENDPOINT, version) for version in (5, 4)
    ]


@pytest.mark.parametrize("record", [final_delivery_record(), final_delivery_record(FAILED), held_delivery_record()])
def test_what_has_ended_or_is_held_is_not_sent_again(record: dict[str, Any]) -> None:
    own = office(record)
    assert isinstance(own.hint(1), Done)
    assert (own.poster.posted, own.store.images) == ([], [])


def test_a_delivery_that_was_deleted_with_its_job_is_acknowledged_without_a_letter() -> None:
    own = office()
    own.store.records.clear()
    assert own.hint() == Done("no such delivery")
    assert (own.letters.sent, own.store.records) == ([], {})


def test_a_lapsed_holder_is_replaced_and_its_try_stays_charged() -> None:
    own = office(held_delivery_record(lease_until=later(-1)))
    assert own.hint(1) == Done(DELIVERED)
    assert (own.found().attempt, own.found().tries) == (2, 2)


@pytest.mark.parametrize(("attempt", "outcome"), [(3, Early(60)), (2, Done("early, and of an older attempt"))])
def test_a_hint_before_its_time_is_hidden_and_one_of_an_older_attempt_is_not_needed(
    attempt: int, outcome: Done | Early
) -> None:
    own = office(any_delivery_record(attempt=3, not_before=later(60)))
    assert own.hint(attempt) == outcome
    assert own.poster.posted == []


@pytest.mark.parametrize("over", [{"tries": TRIES_MAX}, {"deadline_at": NOW}])
def test_one_that_is_used_up_is_given_up(over: dict[str, Any]) -> None:
    own = office(any_delivery_record(**over))
    assert own.hint() == Done(GIVEN_UP)
    assert (own.found().status, own.found().due_at, own.poster.posted) == (FAILED, None, [])


def test_what_was_delivered_meanwhile_is_not_told_as_given_up() -> None:
    own = office(final_delivery_record())
    used_up = read(held_delivery_record(lease_until=later(-1), tries=TRIES_MAX))
    told = expire(used_up, now=NOW, store=own.store, limits=LIMITS, notice=own.notices)
    assert (told, own.notices.steps, own.found().status) == (OUTLIVED, [], COMPLETED)


def test_the_lost_reply_of_a_claim_is_a_claim() -> None:
    own = office()
    own.store.troubles.add("claim", Trouble.LOST_REPLY)
    assert own.hint() == Done(DELIVERED)
    assert own.found().tries == 1


@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.UNSENT, Trouble.UNHEARD])
def test_a_claim_that_nobody_heard_of_leaves_the_message_where_it_is(trouble: Trouble) -> None:
    own = office()
    own.store.troubles.add("claim", trouble)
    assert isinstance(own.hint(), Failed)
    assert own.poster.posted == []


def test_without_time_for_an_attempt_none_is_started() -> None:
    own = office(invocation_s=LIMITS.start_s - 0.1)
    assert own.hint() == Done("no time left to start it here")
    assert (own.found().status, own.found().not_before, own.poster.posted) == (PENDING, later(1), [])
    assert own.store.images, "the stream sends a fresh hint"


def test_without_time_and_before_its_time_it_is_hidden() -> None:
    own = office(any_delivery_record(not_before=later(30)), invocation_s=1)
    assert own.hint() == Early(30)
    assert own.store.images == []


def test_the_endpoint_gets_no_more_time_than_leaves_some_for_the_write() -> None:
    own = office(invocation_s=LIMITS.start_s)
    entered = own.circuits.enter

    def slowly(*args: Any, **kwargs: Any) -> Any:
        own.clock.advance(2)
        return entered(*args, **kwargs)

    own.circuits.enter = slowly  # type: ignore[method-assign]
    own.hint()
    assert own.poster.posted[0].timeout_s == LIMITS.timeout_s - 2


def test_when_the_stores_took_all_the_time_it_waits_and_keeps_its_try() -> None:
    own = office(invocation_s=LIMITS.start_s)
    entered = own.circuits.enter

    def slowly(*args: Any, **kwargs: Any) -> Any:
        own.clock.advance(8)
        return entered(*args, **kwargs)

    own.circuits.enter = slowly  # type: ignore[method-assign]
    assert own.hint() == Done(WAITS)
    assert (own.poster.posted, own.found().tries, own.found().status) == ([], 0, PENDING)
    row = own.circuits.rows.records["tenant#acme", f"circuit#{ENDPOINT}"]
    assert not any(name.startswith("place_") or name == "failures" for name in row)  # nothing was tried in it


def test_a_look_that_lies_far_ahead_is_pulled_in() -> None:
    own = office(any_delivery_record(due_at=later(40_000)), 200)
    looked: list[object] = []
    own.poster.during = lambda: looked.append(own.found().due_at)
    own.hint()
    assert looked == [later(70)]
    assert own.store.calls == ["claim", "pull_due", "complete"]


# --- rows 4 to 6: what comes of it -----------------------------------------------------------------
def test_a_receiver_that_is_down_is_tried_by_the_whole_schedule_and_then_given_up() -> None:
    own = office(None, 500)
    waits = own.try_until_over()
    assert waits == [0, *WAITS_S]
    found = own.found()
    assert (found.status, found.tries, len(own.poster.posted)) == (FAILED, TRIES_MAX, TRIES_MAX)
    assert found.error is not None
    assert found.error["code"] == "HTTP_500"
    assert [line["what"] for line in found.history][-1] == GIVEN_UP
    assert own.notices.steps.count(GIVEN_UP) == 1


@pytest.mark.parametrize("said", [
    408, 425, 429, 500, 502, 503, 504,
    *(no_answer(why) for why in ("lookup", "connect", "tls", "timeout", "cut", "malformed")),
])  # fmt: skip
def test_wh_09_what_may_pass_is_tried_again(said: Any) -> None:
    own = office(None, said, 204)
    assert own.hint() == Done(RETRIED)
    found = own.found()
    assert (found.status, found.not_before, found.refusals) == (PENDING, later(5), 0)
    own.at(later(5))
    assert own.hint(1) == Done(DELIVERED)


@pytest.mark.parametrize(
    "said", [400, 401, 403, 404, 405, 413, 301, 302, 307, 308, 101, no_answer("address", "inside")]
)
def test_wh_09_what_is_not_wanted_is_tried_a_few_times_and_then_given_up(said: Any) -> None:
    own = office(None, said)
    assert own.try_until_over() == [0, *WAITS_S[: REFUSALS_MAX - 1]]
    found = own.found()
    assert (found.status, found.tries, len(own.poster.posted)) == (FAILED, REFUSALS_MAX, REFUSALS_MAX)


def test_other_troubles_are_not_counted_as_not_wanted() -> None:
    own = office(None, 404, 500, 500, 404, 500, 404, 200)
    own.try_until_over()
    assert (own.found().status, own.found().refusals) == (COMPLETED, 3)


def test_wh_09_gone_disables_the_endpoint_and_ends_the_delivery() -> None:
    own = office(None, 410)
    assert own.hint() == Done(GIVEN_UP)
    assert own.found().status == FAILED
    stands = own.endpoints.records[TENANT, ENDPOINT]
    assert (stands["enabled"], stands["disabled_reason"]) == (False, "it answered 410 Gone")


def test_gone_does_not_disable_an_endpoint_that_was_registered_anew_meanwhile() -> None:
    own = office(None, 410)

    def anew() -> None:
        own.endpoints.remove(TENANT, ENDPOINT)
        own.endpoints.create(endpoints.record_of(any_endpoint(created_at=NOW)))

    own.poster.during = anew
    own.hint()
    assert own.endpoints.records[TENANT, ENDPOINT]["enabled"]


def test_gone_that_cannot_be_written_is_told_by_its_next_answer() -> None:
    own = office(None, 410)
    own.endpoints.troubles.add("save", Trouble.REFUSED)
    assert own.hint() == Done(GIVEN_UP)
    assert own.endpoints.records[TENANT, ENDPOINT]["enabled"]


@pytest.mark.parametrize(("header", "wait_s"), [
    ("900", 900), ("Sun, 29 Nov 2026 16:30:45 GMT", 3_600.877), ("1", 5), ("nonsense", 5), ("-7", 5),
    ("9" * 99, 86_400),
])  # fmt: skip
def test_retry_after_is_honoured_in_both_forms(header: str, wait_s: float) -> None:
    own = office(None, answered(429, retry_after=header))
    own.hint()
    assert own.found().not_before == later(wait_s)


def test_retry_after_never_leads_beyond_the_last_chance() -> None:
    own = office(any_delivery_record(deadline_at=later(hours=2)), answered(503, retry_after="86400"), 200)
    own.hint()
    assert own.found().not_before == later(hours=2, minutes=-10)
    assert own.try_until_over() == [6_600]
    assert own.found().status == COMPLETED


def test_jitter_shortens_a_wait() -> None:
    own = office(None, 500, drawn=0.5)
    own.hint()
    assert own.found().not_before == later(4.75)


@pytest.mark.parametrize("rule", ["complete", "retry", "fail"])
def test_an_outcome_that_could_not_be_written_leaves_the_message_and_the_lease(rule: str) -> None:
    own = office(None, {"complete": 200, "retry": 500, "fail": 410}[rule])
    own.store.troubles.add(rule, Trouble.UNSENT)
    assert isinstance(own.hint(), Failed)
    assert own.found().status == PROCESSING
    assert own.hint(request_id="another") == Done("held by somebody else")
    own.at(later(71))
    own.poster.script = FakePoster.saying(200).script
    assert own.hint(1, request_id="a third") == Done(DELIVERED)


@pytest.mark.parametrize("rule", ["complete", "retry", "fail"])
def test_the_lost_reply_of_an_outcome_is_an_outcome(rule: str) -> None:
    own = office(None, {"complete": 200, "retry": 500, "fail": 410}[rule])
    own.store.troubles.add(rule, Trouble.LOST_REPLY)
    assert own.hint() == Done({"complete": DELIVERED, "retry": RETRIED, "fail": GIVEN_UP}[rule])


def test_who_outlived_its_lease_writes_nothing() -> None:
    own = office(None, 500)

    def somebody_else() -> None:
        own.at(later(600))
        own.store.apply(KEY, changes.reap(own.found(), now=own.clock(), limits=LIMITS))
        own.store.apply(KEY, changes.claim(claim_id="other", now=own.clock(), invocation_ends=later(660)))

    own.poster.during = somebody_else
    assert own.hint() == Done(OUTLIVED)
    assert (own.found().claim_id, own.found().status) == ("other", PROCESSING)


def test_no_url_and_nothing_of_an_answer_is_in_the_log() -> None:
    own = office(None, answered(500, excerpt="classified"))
    own.endpoints = registered(any_endpoint(url=f"{URL}?key=classified"))
    own.hint()
    assert "classified" not in repr(own.notices.told)


# --- what its owner reads of it --------------------------------------------------------------------
def why(own: Office, key: tuple[str, str] = KEY) -> str:
    """By its last receipt."""
    found = own.found(key)
    code, _, note = str(found.history[-1]["note"]).partition(": ")
    assert found.error is not None
    assert (found.error["code"], note.startswith(found.error["message"])) == (code, True)
    return note


@pytest.mark.parametrize(("said", "meaning"), [
    (500, "not now: again, by the schedule"), (429, "not now: again, by the schedule"),
    (302, "not like this: again, a few times at most"),
])  # fmt: skip
def test_an_answer_is_told_with_what_follows_while_something_follows(said: int, meaning: str) -> None:
    own = office(None, said)
    own.hint()
    assert why(own) == f"its endpoint answered {said}: {meaning}"
    own.try_until_over()
    assert why(own) == f"its endpoint answered {said}"


def test_what_is_told_at_the_deadline_has_the_last_answer_and_nothing_of_another_try() -> None:
    own = office(any_delivery_record(deadline_at=later(hours=1)), 503)
    own.hint()
    own.at(later(hours=1))
    assert own.hint(1) == Done(GIVEN_UP)
    assert why(own) == f"not taken by {times.text(later(hours=1))}. Last: HTTP_503: its endpoint answered 503"


@pytest.mark.parametrize("said", [302, 404, 429, 500])
def test_of_a_ping_no_other_try_is_told(said: int) -> None:
    own = ping_office(said)
    own.hint(key=PING_KEY)
    assert why(own, PING_KEY) == f"its endpoint answered {said}"


def test_gone_is_told_with_what_it_does_to_whoever_said_so() -> None:
    own, called_back, pinged = office(None, 410), callback_office(410), ping_office(410)
    own.hint()
    called_back.hint(key=CALLBACK_KEY)
    pinged.hint(key=PING_KEY)
    assert why(own) == why(pinged, PING_KEY) == "its endpoint answered 410: never again, and it is disabled"
    assert why(called_back, CALLBACK_KEY) == "its endpoint answered 410: never again"
    assert not pinged.endpoints.records[TENANT, ENDPOINT]["enabled"]


# --- where it goes ---------------------------------------------------------------------------------
@pytest.mark.parametrize(("stands", "code"), [
    ((), "ENDPOINT_DELETED"), ((any_endpoint(enabled=False, disabled_reason="by the tenant"),), "ENDPOINT_DISABLED"),
    ((any_endpoint(tenant="other"),), "ENDPOINT_DELETED"),
])  # fmt: skip
def test_an_endpoint_that_was_removed_or_disabled_meanwhile_ends_its_deliveries(stands: Any, code: str) -> None:
    own = office(endpoints=registered(*stands))
    assert own.hint() == Done(MOOT)
    found = own.found()
    assert found.error is not None
    assert (found.status, found.error["code"], own.poster.posted) == (FAILED, code, [])
    assert own.circuits.rows.records == {}


def test_what_was_for_an_endpoint_that_was_removed_is_not_for_the_one_registered_anew() -> None:
    """Under the same URL, and so under the same id."""
    own = office(any_delivery_record(registration=any_endpoint().registration), 503, 200)
    own.hint()
    own.endpoints = registered(any_endpoint(created_at=later(1)))
    own.at(later(5))
    assert own.hint(1) == Done(MOOT)
    found = own.found()
    assert found.error is not None
    assert (found.status, found.error["code"], len(own.poster.posted)) == (FAILED, "ENDPOINT_DELETED", 1)


@pytest.mark.parametrize("registration", [any_endpoint().registration, None])
def test_what_waits_while_its_endpoint_is_disabled_and_enabled_goes_on(registration: str | None) -> None:
    own = office(any_delivery_record(registration=registration), 503, 200)
    own.hint()
    for fields in (endpoints.disabled("by the tenant"), endpoints.enabled()):
        own.endpoints.save(TENANT, ENDPOINT, fields, {})
    own.at(later(5))
    assert own.hint(1) == Done(DELIVERED)


def test_it_goes_where_its_endpoint_leads_now() -> None:
    own = office(endpoints=registered(any_endpoint(url="https://new.example.com/x")))
    own.hint()
    assert own.poster.posted[0].url == "https://new.example.com/x"


def test_a_url_that_is_not_called_any_more_ends_its_deliveries() -> None:
    own = office(endpoints=registered(any_endpoint(url="http://127.0.0.1:8123/")))
    assert own.hint() == Done(GIVEN_UP)
    assert own.poster.posted == []
    local = office(endpoints=registered(any_endpoint(url="http://127.0.0.1:8123/")), local=True)
    assert local.hint() == Done(DELIVERED)


def callback_office(*script: Any) -> Office:
    record = any_delivery_record(endpoint=CALLBACK, url="https://hooks.example.com/cb?job=1")
    return office(record, *script, endpoints=registered())


CALLBACK_KEY = (JOB_ID, f"delivery#{CALLBACK}#{EVENT_ID}")


def test_a_callback_goes_to_its_url_with_the_secret_of_all_callbacks() -> None:
    own = callback_office()
    assert own.hint(key=CALLBACK_KEY) == Done(DELIVERED)
    (sent,) = own.poster.posted
    assert sent.url == "https://hooks.example.com/cb?job=1"
    assert secrets.secret("master", TENANT, "callback", 1) in sent.headers["webhook-signature"]


def test_a_callback_that_is_gone_disables_nothing() -> None:
    own = callback_office(410)
    assert own.hint(key=CALLBACK_KEY) == Done(GIVEN_UP)
    assert own.endpoints.calls == ["read"]


# --- before it goes --------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["endpoints", "masters", "circuits"])
def test_what_could_not_be_asked_is_no_failure_of_the_endpoint(where: str) -> None:
    own = office()
    if where == "endpoints":
        own.endpoints.troubles.add("read", Trouble.REFUSED)
    elif where == "masters":
        own.masters = Unavailable("Secrets Manager is away")
    else:
        own.circuits.rows.troubles.add("enter", Trouble.UNSENT)
    assert own.hint() == Done(WAITS)
    found = own.found()
    assert (found.status, found.tries, found.waits, found.not_before) == (PENDING, 0, 1, later(5))
    assert own.poster.posted == []
    assert own.notices.of("not_asked")["detail"] not in str(found.history), "its words are for our log"


def test_when_all_places_are_taken_it_waits_longer_each_time_and_keeps_its_tries() -> None:
    own = office()
    for holder in "ab":
        own.circuits.enter(TENANT, ENDPOINT, holder=holder, now=NOW, until=later(days=1))
    waits = []
    for attempt in range(8):
        before = own.clock()
        assert own.hint(attempt) == Done(WAITS)
        waits.append((own.found().not_before - before).total_seconds())
        own.at(own.found().not_before)
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]
    assert (own.found().tries, own.poster.posted) == (0, [])


def test_five_failures_in_a_row_open_the_circuit_and_the_others_wait_without_a_call() -> None:
    own = Office(store=FakeDeliveries(*(any_delivery_record(pk=f"job-{n}") for n in range(7))))
    own.poster = FakePoster.saying(no_answer())
    keys = sorted(own.store.records)
    for key in keys:
        own.hint(key=key)
    assert len(own.poster.posted) == 5
    waiting = [own.found(key) for key in keys[5:]]
    assert {(one.status, one.tries, one.not_before) for one in waiting} == {(PENDING, 0, later(60))}


def test_those_that_wait_for_a_circuit_do_not_all_come_back_at_once() -> None:
    own = Office(store=FakeDeliveries(*(any_delivery_record(pk=f"job-{n}") for n in range(6))), drawn=0.5)
    own.poster = FakePoster.saying(no_answer())
    keys = sorted(own.store.records)
    for key in keys:
        own.hint(key=key)
    assert own.found(keys[5]).not_before == later(60 + SPREAD_S / 2)


def test_half_open_one_probe_decides() -> None:
    own = Office(store=FakeDeliveries(*(any_delivery_record(pk=f"job-{n}") for n in range(8))))
    own.poster = FakePoster.saying(*[no_answer()] * 5, no_answer(), 200)
    keys = sorted(own.store.records)
    for key in keys[:5]:
        own.hint(key=key)
    own.at(later(60))
    assert own.hint(key=keys[5]) == Done(RETRIED)  # the probe
    assert own.hint(key=keys[6]) == Done(WAITS)
    assert own.found(keys[6]).not_before == later(60 + 120), "twice as long"
    own.at(later(180))
    assert own.hint(key=keys[6], attempt=1) == Done(DELIVERED)
    assert own.hint(key=keys[7]) == Done(DELIVERED)


def test_the_place_is_free_again_when_the_outcome_is_written() -> None:
    own = office(None, 500, 200)
    own.try_until_over()
    row = own.circuits.rows.records["tenant#acme", f"circuit#{ENDPOINT}"]
    assert not any(name.startswith("place_") for name in row)
    assert (row["failures"], row["note"]) == (0, "HTTP 200")


def test_a_place_that_could_not_be_given_back_lapses_with_the_lease() -> None:
    own = office(None, 200)
    own.circuits.rows.troubles.add("leave_well", Trouble.UNSENT)
    assert own.hint() == Done(DELIVERED)
    row = own.circuits.rows.records["tenant#acme", f"circuit#{ENDPOINT}"]
    assert row["place_0_until"] == times.text(later(70))


def test_endpoints_and_tenants_have_circuits_of_their_own() -> None:
    own = Office(store=FakeDeliveries(any_delivery_record(), any_delivery_record(tenant="other", pk="job-2")))
    own.endpoints = registered(any_endpoint(), any_endpoint(tenant="other"))
    for key in sorted(own.store.records):
        own.hint(key=key)
    assert {key[0] for key in own.circuits.rows.records} == {"tenant#acme", "tenant#other"}


# --- a test of an endpoint -------------------------------------------------------------------------
def ping_office(*script: Any) -> Office:
    return office(any_delivery_record(pk="ping#1"), *script)


@pytest.mark.parametrize("said", [500, 404, no_answer("address")])
def test_a_ping_is_one_try_and_its_failure_wakes_nobody(said: Any) -> None:
    own = ping_office(said)
    assert own.hint(key=PING_KEY) == Done(MOOT)
    assert own.found(PING_KEY).status == FAILED


def test_a_ping_goes_out_while_the_circuit_is_open_and_closes_it_when_it_is_taken() -> None:
    own = ping_office(*[500] * 5, 200)
    for number in range(5):
        own.store.records.update(FakeDeliveries(any_delivery_record(pk=f"job-{number}")).records)
        own.hint(key=(f"job-{number}", KEY[1]))
    assert own.hint(key=PING_KEY) == Done(DELIVERED)
    assert own.circuits.read(TENANT, ENDPOINT).state(NOW) == "closed"


def test_a_ping_that_is_not_taken_leaves_the_circuit_open() -> None:
    own = ping_office(500)
    for number in range(6):
        own.store.records.update(FakeDeliveries(any_delivery_record(pk=f"job-{number}")).records)
        own.hint(key=(f"job-{number}", KEY[1]))
    assert own.hint(key=PING_KEY) == Done(MOOT)
    assert own.circuits.read(TENANT, ENDPOINT).state(NOW) == "open"


# --- redelivery ------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [COMPLETED, FAILED])
def test_reopened_it_is_sent_again_under_the_same_id(status: str) -> None:
    own = office(final_delivery_record(status))
    reopened = changes.reopen(own.found(), now=NOW, limits=LIMITS)
    own.store.apply(KEY, reopened)
    assert own.hint(2) == Done(DELIVERED)
    assert own.poster.posted[0].headers["webhook-id"] == EVENT_ID
    assert read(own.store.records[KEY]).attempt == 3
