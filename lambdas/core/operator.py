"""What an operator asks for, read from requests under /admin: who it is, about which queue, what is to be done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lambdas.contracts.strict_json import Malformed, parse
from lambdas.contracts.validation import body_check
from lambdas.core.letters import letter as letters
from lambdas.core.letters import redrive
from lambdas.core.letters.redrive import Order
from lambdas.core.letters.review import Decision
from lambdas.core.letters.reviews import STATUSES
from lambdas.core.problems import Problem, bad_request, forbidden, unprocessable
from lambdas.core.sweeping import asking

PATCH_CHARS_MAX = 20_000  # a page of reviews must fit into an answer, and one of them into an item


def who(authorizer: Mapping[str, Any]) -> str | Problem:
    """The principal that SigV4 has proved: /admin knows no tokens, whatever else the deployment takes."""
    iam = authorizer.get("iam")
    arn = iam.get("userArn") if isinstance(iam, Mapping) else None
    return arn if isinstance(arn, str) and arn else forbidden("Operators sign their requests (SigV4).")


def queues_of(query: Mapping[str, str], also: tuple[str, ...] = ()) -> tuple[str, ...] | Problem:
    """The queues that a query string asks about: one, or all."""
    unknown = query.keys() - {"queue", *also}
    if unknown:
        return bad_request(f"unknown query parameter {min(unknown)[:40]!r}; known: {', '.join(('queue', *also))}")
    if "queue" in query and query["queue"] not in letters.QUEUES:
        return bad_request(f"queue must be one of {', '.join(letters.QUEUES)}")
    return (query["queue"],) if "queue" in query else letters.QUEUES


def review_page(query: Mapping[str, str]) -> tuple[str | None, str] | Problem:
    """Which reviews: status (None: all) and cursor."""
    unknown = query.keys() - {"status", "cursor"}
    if unknown:
        return bad_request(f"unknown query parameter {min(unknown)[:40]!r}; known: status, cursor")
    if "status" in query and query["status"] not in STATUSES:
        return bad_request(f"status must be one of {', '.join(STATUSES)}")
    cursor = query.get("cursor", "")
    if len(cursor) > 200:
        return bad_request("cursor is not one that this route gave out")
    return query.get("status"), cursor


def redrive_order(raw: bytes, redrive_id: str, by: str) -> Order | Problem:
    request = _body(raw, "RedriveRequest")
    if isinstance(request, Problem):
        return request
    if ("group" in request) == ("ids" in request):
        return bad_request("Name either a `group` or `ids`.", "/group" if "group" in request else "")
    return Order(
        redrive_id=redrive_id,
        by=by,
        group=request.get("group"),
        ids=tuple(request.get("ids", ())),
        queue=request.get("queue"),
        rate=float(request.get("rate", redrive.RATE_DEFAULT)),
        canary=int(request.get("canary", 0)),
        dry_run=request.get("dry_run", False),
    )


def decision(raw: bytes, letter_id: str, by: str, *, repairs: bool) -> Decision | Problem:
    request = _body(raw, "RepairRequest" if repairs else "DiscardRequest")
    if isinstance(request, Problem):
        return request
    if repairs and len(json.dumps(request["patch"])) > PATCH_CHARS_MAX:
        return unprocessable(f"A patch is kept with its review: {PATCH_CHARS_MAX:,} characters at most.", "/patch")
    return Decision(
        letter_id=letter_id,
        who=by,
        why=request["reason"],
        patch=request["patch"] if repairs else None,
        queue=request.get("queue"),
    )


def sweep_order(raw: bytes, sweep_id: str, by: str, known: tuple[str, ...]) -> asking.Order | Problem:
    """`known`: the parts that this deployment has; without `parts`, all of them."""
    request = _body(raw, "SweepRequest") if raw.strip() else {}
    if isinstance(request, Problem):
        return request
    parts = tuple(dict.fromkeys(request.get("parts") or known))
    for position, part in enumerate(request.get("parts", ())):
        if part not in known:
            return unprocessable(f"There is no part {part[:64]!r}; known: {', '.join(known)}.", f"/parts/{position}")
    return asking.Order(sweep_id=sweep_id, parts=parts, dry_run=request.get("dry_run", False), by=by)


def _body(raw: bytes, schema: str) -> Any:
    try:
        found = parse(raw)
    except Malformed as error:
        return bad_request(error.detail, error.pointer)
    wrong = body_check(schema)(found)
    return bad_request(wrong.detail, wrong.pointer) if wrong else found
