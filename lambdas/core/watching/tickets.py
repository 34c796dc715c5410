"""Tickets: who may read a job gets one, and shows it once to open a connection: browsers can set no headers there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lambdas.contracts.strict_json import Malformed, parse
from lambdas.contracts.validation import body_check
from lambdas.core import times
from lambdas.core.canonical import sha256
from lambdas.core.lookup import job_of
from lambdas.core.ports import JobStore, Now
from lambdas.core.problems import Problem, bad_request
from lambdas.core.watching.ports import Grant, Tickets

TICKET_S = 60
_TICKET = re.compile(r"[A-Za-z0-9_-]{43}")  # 32 bytes


@dataclass(frozen=True)
class Booth:
    """Where tickets are given out. `draw`: 32 random bytes, urlsafe. `url`: where they are shown."""

    store: JobStore
    tickets: Tickets
    url: str
    draw: Callable[[], str]
    now: Now


@dataclass(frozen=True)
class Issued:
    """`answer` has the ticket in it: it is for the client alone, never for a log."""

    answer: dict[str, Any]
    job_ids: tuple[str, ...]


def issue(tenant: str, raw: bytes, booth: Booth) -> Issued | Problem:
    """A ticket for jobs of the tenant's own. Raises Unavailable, UnreadableRecord."""
    try:
        request = parse(raw)
    except Malformed as error:
        return bad_request(error.detail, error.pointer)
    wrong = body_check("TicketRequest")(request)
    if wrong:
        return bad_request(wrong.detail, wrong.pointer)
    job_ids = tuple(request["job_ids"])
    for position, job_id in enumerate(job_ids):
        found = job_of(tenant, job_id, booth.store)
        if isinstance(found, Problem):
            return replace(found, pointer=f"/job_ids/{position}")
    ticket = booth.draw()
    booth.tickets.put(sha256(ticket), Grant(tenant, job_ids), _seconds(booth.now) + TICKET_S)
    answer = {"ticket": ticket, "expires_in": TICKET_S, "url": f"{booth.url}?ticket={ticket}"}
    return Issued(answer, job_ids)


def redeem(ticket: str | None, tickets: Tickets, now: Now) -> Grant | None:
    """What the ticket grants; None for one that is missing, malformed, used, expired or was never given out. Raises
    Unavailable."""
    if ticket is None or not _TICKET.fullmatch(ticket):
        return None
    return tickets.take(sha256(ticket), _seconds(now))


def _seconds(now: Now) -> int:
    return times.milliseconds(now()) // 1000
