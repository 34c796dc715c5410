"""Tickets: for jobs of one's own, kept as a digest, good once and for a minute."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import DELETED
from lambdas.core.problems import Problem
from lambdas.core.watching.ports import Grant
from lambdas.core.watching.tickets import TICKET_S, Booth, Issued, issue, redeem
from tests.audience import FakeTickets
from tests.builders import JOB_ID, TENANT, any_record
from tests.fakes import FakeClock, FakeJobStore

OTHER = "fedcba9876543210fedcba9876543210"
TICKET = "T" * 43


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def booth(clock: FakeClock) -> Booth:
    return Booth(FakeJobStore(any_record()), FakeTickets(), "wss://live.test/live", lambda: TICKET, clock)


def asked(booth: Booth, *job_ids: Any, tenant: str = TENANT) -> Issued | Problem:
    return issue(tenant, json.dumps({"job_ids": job_ids}).encode(), booth)


def tickets(booth: Booth) -> FakeTickets:
    assert isinstance(booth.tickets, FakeTickets)
    return booth.tickets


def test_a_ticket_says_where_it_is_shown_and_is_kept_as_a_digest_alone(booth: Booth) -> None:
    issued = asked(booth, JOB_ID)
    assert isinstance(issued, Issued)
    assert issued.answer == {
        "ticket": TICKET, "expires_in": 60, "url": f"wss://live.test/live?ticket={TICKET}",
    }  # fmt: skip
    assert tickets(booth).has(TICKET)
    assert TICKET not in str(tickets(booth).stored)


def test_a_ticket_is_good_once(booth: Booth, clock: FakeClock) -> None:
    asked(booth, JOB_ID)
    assert redeem(TICKET, booth.tickets, clock) == Grant(TENANT, (JOB_ID,))
    assert redeem(TICKET, booth.tickets, clock) is None


@pytest.mark.parametrize(("after_s", "good"), [(0, True), (TICKET_S - 1, True), (TICKET_S, False), (3_600, False)])
def test_a_ticket_is_good_for_a_minute(booth: Booth, clock: FakeClock, after_s: int, good: bool) -> None:
    asked(booth, JOB_ID)
    clock.advance(after_s)
    assert (redeem(TICKET, booth.tickets, clock) is not None) is good


@pytest.mark.parametrize("ticket", [None, "", "T", "T" * 42, "T" * 44, "T" * 42 + "=", "T" * 42 + "\n", "é" * 43])
def test_what_is_no_ticket_is_not_looked_for(booth: Booth, clock: FakeClock, ticket: str | None) -> None:
    tickets(booth).take = None  # type: ignore[method-assign, assignment]
    assert redeem(ticket, booth.tickets, clock) is None


def test_a_ticket_that_was_never_given_out_is_none(booth: Booth, clock: FakeClock) -> None:
    assert redeem("x" * 43, booth.tickets, clock) is None


@pytest.mark.parametrize(("other", "status"), [(None, 404), ({"tenant": "eve"}, 404), ({"status": DELETED}, 410)])
def test_every_job_must_be_there_and_the_tenant_s_own(booth: Booth, other: dict[str, Any] | None, status: int) -> None:
    assert isinstance(booth.store, FakeJobStore)
    if other:
        booth.store.records[OTHER] = any_record(pk=OTHER, **other)
    problem = asked(booth, JOB_ID, OTHER)
    assert isinstance(problem, Problem)
    assert (problem.status, problem.pointer) == (status, "/job_ids/1")
    assert tickets(booth).stored == {}


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"[]", b"{}", b'{"job_ids": []}', b'{"job_ids": "x"}', b'{"job_ids": [1]}', b'{"job_ids": [""]}',
        b'{"job_ids": ["x", "x"]}', b'{"job_ids": ["x"], "tenant": "eve"}', b"\xef\xbb\xbf{}", b"[" * 100_000,
        json.dumps({"job_ids": [f"{n}" for n in range(21)]}).encode(),
        json.dumps({"job_ids": ["x" * 129]}).encode(),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(booth: Booth, raw: bytes) -> None:
    problem = issue(TENANT, raw, booth)
    assert isinstance(problem, Problem)
    assert problem.status == 400
