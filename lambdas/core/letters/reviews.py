"""Lists what waits for a human among the dead letters, and what humans decided, by whom and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambdas.contracts.names import REVIEW_PK
from lambdas.core import times
from lambdas.core.letters import dead_letters
from lambdas.core.letters.dead_letters import Boxes, InTime
from lambdas.core.letters.letter import Letter
from lambdas.core.letters.review import DISCARDED, REPAIRED, Review
from lambdas.core.ports import Ledger

OPEN = "open"
STATUSES = (OPEN, REPAIRED, DISCARDED)
PAGE = 50
PAGES_MAX = 10


def shown(review: Review) -> dict[str, Any]:
    """`done` is false between the record of a decision and its last write: repeat the request to finish it."""
    told = {
        "letter_id": review["sk"],
        **{name: review[name] for name in ("queue", "status", "done", "who", "why", "at", "reason", "detail")},
    }
    if review["job_id"]:
        told["job_id"] = review["job_id"]
    if review["patch"]:
        told["patch"] = review["patch"]
    if review.get("earlier"):
        told["earlier"] = [dict(one) for one in review["earlier"]]
    return told


def open_(boxes: Boxes, ledger: Ledger, in_time: InTime) -> dict[str, Any]:
    """Malformed letters that lie there: nobody has decided, or what was decided is not done, or they came again. Raises
    Unavailable."""
    found: dict[str, dict[str, Any]] = {}  # as they are told: whole letters would fill the memory
    complete = True
    for queue, box in boxes.items():
        with dead_letters.Looking(queue, box, in_time) as looking:
            for page in looking.pages():
                new = [letter for letter in page if letter.is_malformed and letter.id not in found]
                found |= {letter.id: _waiting(letter, ledger) for letter in new}
        complete = complete and looking.complete
    oldest = sorted(found.values(), key=lambda told: (told["at"], told["letter_id"]))
    return {"reviews": oldest, "complete": complete}


def _waiting(letter: Letter, ledger: Ledger) -> dict[str, Any]:
    told: dict[str, Any] = {
        "letter_id": letter.id,
        "queue": letter.queue,
        "status": OPEN,
        "done": False,
        "at": times.text(letter.at),
        "reason": letter.reason,
        "detail": letter.detail,
    }
    review = ledger.read(REVIEW_PK, letter.id)
    if review is not None:
        told |= {"who": review["who"], "why": review["why"]}
    return told | ({"job_id": letter.job_id} if letter.job_id else {})


def decided(status: str | None, after: str, ledger: Ledger) -> dict[str, Any]:
    """A page of decisions, in the order of letter ids; `cursor` when there may be more. Raises Unavailable."""
    reviews: list[Mapping[str, Any]] = []
    for _ in range(PAGES_MAX):
        page = ledger.page(REVIEW_PK, after, PAGE)
        reviews += [one for one in page if status in (None, one["status"])]
        if len(page) < PAGE:
            return {"reviews": [shown(one) for one in reviews]}
        after = page[-1]["sk"]
        if len(reviews) >= PAGE:
            break
    return {"reviews": [shown(one) for one in reviews], "cursor": after}
