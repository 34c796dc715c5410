"""The JobStore port: what it promises, kept by DynamoDB's adapter and by the fake alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.core import changes, ids, times
from lambdas.core.job import from_record
from lambdas.core.ports import Applied, JobStore, Refused
from lambdas.core.protocol import RULES
from tests.integration.records import LIMITS, an_id, every_change, failed, pending, processing

CHANGED = sorted(RULES.keys() - {"accept"})


def test_every_rule_has_a_change_in_these_tests():
    assert sorted(every_change(clock.now())) == CHANGED


def test_create_answers_none_and_the_record_can_be_read(job_store: JobStore):
    record = pending()
    assert job_store.create(record) is None
    assert job_store.read(record["pk"]) == record


def test_create_answers_the_standing_record_and_leaves_it_as_it_is(job_store: JobStore):
    first = pending()
    job_store.create(first)
    assert job_store.create({**first, "tenant": "other", "body_sha": "f" * 64}) == first
    assert job_store.read(first["pk"]) == first


def test_read_answers_none_for_a_job_that_is_not_there(job_store: JobStore):
    assert job_store.read(an_id()) is None


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_is_applied_as_the_protocol_computes_it(job_store: JobStore, name: str):
    record, change = every_change(clock.now())[name]
    job_store.create(record)
    assert job_store.apply(record["pk"], change) == Applied(change.applied_to(record))
    assert job_store.read(record["pk"]) == change.applied_to(record)


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_sent_twice_is_applied_once_and_both_times_a_success(job_store: JobStore, name: str):
    record, change = every_change(clock.now())[name]
    job_store.create(record)
    job_store.apply(record["pk"], change)
    assert job_store.apply(record["pk"], change) == Applied(change.applied_to(record))
    assert job_store.read(record["pk"]) == change.applied_to(record)


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_of_another_holder_is_refused_with_the_record_as_it_stands(job_store: JobStore, name: str):
    record, change = every_change(clock.now())[name]
    moved_on = {**record, "attempt": 40, "tries": 40, "claim_id": "somebody", "status": "WAITING"}
    moved_on |= {"booked_by": {"key-facts": "somebody"}}
    job_store.create(moved_on)
    assert job_store.apply(record["pk"], change) == Refused(moved_on)
    assert job_store.read(record["pk"]) == moved_on


@pytest.mark.parametrize("name", CHANGED)
def test_a_change_of_a_job_that_is_not_there_is_refused_and_makes_none(job_store: JobStore, name: str):
    record, change = every_change(clock.now())[name]
    assert job_store.apply(record["pk"], change) == Refused(None)
    assert job_store.read(record["pk"]) is None


def test_only_one_of_two_claims_is_applied(job_store: JobStore):
    record, now = pending(), clock.now()
    job_store.create(record)
    ends = times.after(now, 100)
    mine = changes.claim(claim_id="mine", max_tries=5, now=now, invocation_ends=ends)
    theirs = changes.claim(claim_id="theirs", max_tries=5, now=now, invocation_ends=ends)
    assert isinstance(job_store.apply(record["pk"], mine), Applied)
    refused = job_store.apply(record["pk"], theirs)
    assert isinstance(refused, Refused)
    assert refused.record is not None
    assert refused.record["claim_id"] == "mine"


def test_a_claim_of_a_cancelled_job_is_not_taken_for_my_own(job_store: JobStore):
    """N10: my `claim_id` counts only while the job is PROCESSING."""
    record = processing(claim_id="me", status="CANCELLED")
    job_store.create(record)
    now = clock.now()
    change = changes.claim(claim_id="me", max_tries=5, now=now, invocation_ends=times.after(now, 60))
    assert job_store.apply(record["pk"], change) == Refused(record)


def test_a_letter_of_an_older_attempt_reopens_nothing(job_store: JobStore):
    record = failed()
    job_store.create(record)
    older = from_record({**record, "attempt": record["attempt"] - 1})
    assert job_store.apply(record["pk"], changes.reopen(older, now=clock.now(), limits=LIMITS)) == Refused(record)


def test_a_float_in_a_record_is_a_mistake_and_is_not_written(job_store: JobStore):
    record = pending()
    with pytest.raises(TypeError):
        job_store.create({**record, "cost": 0.5})
    assert job_store.read(record["pk"]) is None


def test_read_many_keeps_the_order_asked_and_leaves_out_what_is_not_there(job_store: JobStore):
    records = [pending() for _ in range(4)]
    for record in records:
        job_store.create(record)
    asked = [records[2]["pk"], an_id(), records[0]["pk"], records[3]["pk"]]
    assert job_store.read_many(asked) == [records[2], records[0], records[3]]


def test_read_many_of_nothing_is_nothing(job_store: JobStore):
    assert job_store.read_many([]) == []


def test_read_many_takes_more_than_the_hundred_of_one_request(job_store: JobStore):
    records = [pending() for _ in range(203)]
    for record in records:
        job_store.create(record)
    assert job_store.read_many([record["pk"] for record in records]) == records


def _due(job_store: JobStore, seconds: list[int], shard: str = "3") -> list[str]:
    """Jobs whose `due_at` lies that many seconds from now, created in this order."""
    now, made = clock.now(), []
    for offset in seconds:
        record = pending(due_at=times.text(times.after(now, offset)), due_shard=shard)
        job_store.create(record)
        made.append(record["pk"])
    return made


def _found(job_store: JobStore, limit: int, shard: str = "3") -> list[str]:
    return [job_id for _, job_id in job_store.due(shard, clock.now(), None, limit)]


def test_due_lists_the_oldest_first_and_not_what_comes_later(job_store: JobStore):
    late, early, future, middle = _due(job_store, [-10, -500, 6_000, -100])
    assert _found(job_store, 100) == [early, middle, late]
    assert future not in _found(job_store, 100)


def test_due_goes_on_behind_any_of_its_rows(job_store: JobStore):
    _due(job_store, [-50, -40, -40, -40, -30])
    whole = job_store.due("3", clock.now(), None, 100)
    paged, after = [], None
    while page := job_store.due("3", clock.now(), after, 2):
        paged += page
        after = page[-1]
    assert paged == whole
    assert len(whole) == 5


def test_due_does_not_list_what_is_due_at_that_very_instant(job_store: JobStore):
    at = clock.now()
    record = pending(due_at=times.text(at), due_shard="3")
    job_store.create(record)
    assert job_store.due("3", at, None, 10) == []
    assert job_store.due("3", times.after(at, 0.001), None, 10) == [(times.text(at), record["pk"])]


def test_due_lists_one_shard_and_at_most_the_limit(job_store: JobStore):
    made = _due(job_store, [-50, -40, -30])
    _due(job_store, [-60], shard="4")
    assert _found(job_store, 2) == made[:2]


def test_a_job_that_was_handed_over_is_not_due_any_more(job_store: JobStore):
    record, change = every_change(clock.now())["hand_over"]
    job_store.create({**record, "due_at": times.text(times.after(clock.now(), -5))})
    shard = record["due_shard"]
    assert _found(job_store, 10, shard) == [record["pk"]]
    job_store.apply(record["pk"], change)
    assert _found(job_store, 10, shard) == []


def _of_tenant(job_store: JobStore, count: int, shard: str = "acme#1") -> list[tuple[str, str]]:
    """(created_at, id) of so many jobs, oldest first; each two share their millisecond."""
    now, made = clock.now(), []
    for number in range(count):
        created = times.text(times.after(now, number // 2))
        record: Mapping[str, Any] = pending(tenant_shard=shard, created_at=created)
        job_store.create(record)
        made.append((created, record["pk"]))
    return made


def test_of_tenant_lists_the_newest_first_and_one_shard_only(job_store: JobStore):
    made = _of_tenant(job_store, 6)
    _of_tenant(job_store, 1, shard="globex#1")
    listed = job_store.of_tenant("acme#1", None, 10)
    assert [created for created, _ in listed] == [created for created, _ in reversed(made)]
    assert sorted(listed) == sorted(made)


@pytest.mark.parametrize("page", [1, 2, 3, 5])
def test_of_tenant_pages_give_each_job_once_whatever_their_size(job_store: JobStore, page: int):
    made, listed = _of_tenant(job_store, 5), []
    before = None
    while rows := job_store.of_tenant("acme#1", before, page):
        assert len(rows) <= page
        listed += rows
        before = rows[-1]
    assert len(listed) == len(made)
    assert sorted(listed) == sorted(made)


def test_of_tenant_lists_jobs_in_every_state(job_store: JobStore):
    shard = ids.tenant_shard("acme", "x")
    for name, (record, change) in every_change(clock.now()).items():
        job_store.create({**record, "tenant_shard": shard})
        assert isinstance(job_store.apply(record["pk"], change), Applied), name
    assert len(job_store.of_tenant(shard, None, 50)) == len(CHANGED) - 1  # a tombstone is in no list
