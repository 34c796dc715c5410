"""What an operator decides about a dead letter: repaired and sent back, or discarded. Recorded before it is done.

A decision that a crash has interrupted is finished by repeating the same request."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.json_patch import BadPatch
from lambdas.contracts.json_patch import apply as patched
from lambdas.contracts.names import INBOX_REVIEW, REVIEW_PK, REVIEWED
from lambdas.contracts.strict_json import Malformed, parse
from lambdas.core import changes, envelope, times
from lambdas.core.canonical import sha256, sha256_of
from lambdas.core.letters import dead_letters
from lambdas.core.letters import letter as letters
from lambdas.core.letters.dead_letters import Boxes, Held, InTime, NotFound
from lambdas.core.letters.letter import Letter, message_of
from lambdas.core.lookup import is_id
from lambdas.core.policy import DAY_S
from lambdas.core.ports import Applied, JobStore, Ledger, Message, Now, Sender
from lambdas.core.problems import Problem, unprocessable
from lambdas.core.times import Instant, seconds_between
from lambdas.core.webhooks import messages

REPAIRED, DISCARDED = "repaired", "discarded"
UNDER_WAY_S = 300  # so long nobody else decides about a letter whose decision is not finished
EARLIER_MAX = 10
TELLINGS = 3
FIXED = ("tenant_id", "run_id")  # hole 40: a repair does not make it another tenant's message, or another job's

Review = Mapping[str, Any]


@dataclass(frozen=True)
class Decision:
    """By whom, why, and what: a patch repairs, none discards."""

    letter_id: str
    who: str
    why: str
    patch: Sequence[Any] | None = None
    queue: str | None = None

    @property
    def status(self) -> str:
        return REPAIRED if self.patch is not None else DISCARDED

    @property
    def digest(self) -> str:
        return sha256_of([self.status, self.patch])


@dataclass(frozen=True)
class Desk:
    """What reviewing works with. `fits`: what is wrong with a body for the inbox under these attributes, None if
    nothing is."""

    ledger: Ledger
    store: JobStore
    boxes: Boxes
    queues: Mapping[str, Sender]
    fits: Callable[[str, Mapping[str, str]], str | None]
    now: Now
    in_time: InTime
    keep_days: int


def decide(decision: Decision, desk: Desk) -> Review | Problem:
    """Carries it out: the record of it, the job's history, the repaired message, the letter's end, and done. Raises
    Unavailable: then the same request goes on where this one stopped."""
    if not is_id(decision.letter_id):  # no key of the ledger either, which a store may refuse for its length
        return no_such_letter(NotFound(0, True))
    boxes = {name: box for name, box in desk.boxes.items() if decision.queue in (None, name)}
    found = dead_letters.take(decision.letter_id, boxes, desk.in_time)
    if isinstance(found, NotFound):
        return _finished(decision, found, desk)
    try:
        outcome = _carried_out(decision, found, desk)
    except BaseException:
        found.show()
        raise
    if isinstance(outcome, Problem):
        found.show()
    return outcome


def _carried_out(decision: Decision, held: Held, desk: Desk) -> Review | Problem:
    letter = held.letter
    body = repaired_body(letter, decision.patch, desk) if decision.patch is not None else None
    if isinstance(body, Problem):
        return body
    review = _recorded(decision, letter, body, desk)
    if isinstance(review, Problem):
        return review
    _tell_job(review, desk)
    if body is not None and desk.queues[letter.queue].send([_message(letter, body)]):
        return _repeat("The repaired message could not be sent.")
    if not held.remove():
        return _repeat("The letter could not be removed from its queue.")
    return _done(review, desk)


def _message(letter: Letter, body: str) -> Message:
    message = message_of(letter)
    review = {INBOX_REVIEW: letter.id} if letter.queue == letters.INBOX else {}
    return Message(body, {**message.attributes, **review}, message.group)


# --- the repaired body -----------------------------------------------------------------------------
def repaired_body(letter: Letter, patch: Sequence[Any], desk: Desk) -> str | Problem:
    """The patched message, if it is one that its queue can take. What is no JSON is patched as one text."""
    if not letter.is_malformed:
        return _conflict("It is a letter about a job, and well formed: redrive it, or discard it.")
    before, is_json = _document(letter.body)
    try:
        after = patched(before, patch)
    except BadPatch as bad:
        return unprocessable(bad.detail, "/patch" if bad.position is None else f"/patch/{bad.position}")
    if isinstance(before, dict):
        changed = [name for name in FIXED if name in before and _field(after, name) != before[name]]
        if changed:
            return unprocessable(f"a repair may not change `{changed[0]}`", "/patch")
    body = after if isinstance(after, str) and not is_json else _written(after)
    if body == letter.body or (is_json and _written(after) == _written(before)):  # 1.0 and 1 are equal, not the same
        return unprocessable("the patch changes nothing: redrive the letter, or discard it", "/patch")
    wrong = _unfit(letter, body, desk)
    return unprocessable(f"the repaired message is still no good: {wrong}", "/patch") if wrong else body


def _document(body: str) -> tuple[Any, bool]:
    try:
        return parse(body.encode("utf-8", "surrogatepass")), True
    except Malformed:
        return body, False


def _written(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"))


def _field(document: Any, name: str) -> Any:
    return document.get(name) if isinstance(document, dict) else None


def _unfit(letter: Letter, body: str, desk: Desk) -> str | None:
    if letter.queue == letters.INBOX:
        return desk.fits(body, letter.attributes)
    if envelope.original(body) != body:
        return "it is a letter about another message, which could name another job"
    match messages.read(body) if letter.queue == letters.DELIVERIES else envelope.read(body):
        case envelope.Newer(schema):
            return f"schema {schema} is newer than this code"
        case envelope.Unreadable(reason, detail):
            return f"{reason}: {detail}"
        case _:
            return None


# --- the record of it ------------------------------------------------------------------------------
def _recorded(decision: Decision, letter: Letter, body: str | None, desk: Desk) -> Review | Problem:
    """The review, before anything is done. One that stands is gone on with if it is this very decision, and replaced
    if it is done: the same message was sent again, and has died again."""
    now = desk.now()
    review = _review(decision, letter, body, now, desk)
    if desk.ledger.create(REVIEW_PK, letter.id, review):
        return {**review, "sk": letter.id}
    standing = desk.ledger.read(REVIEW_PK, letter.id)
    if standing is None:
        return _repeat("The review could not be read.")
    if not standing["done"]:
        if standing["digest"] == decision.digest:
            return standing
        if seconds_between(times.instant(standing["at"]), now) < UNDER_WAY_S:
            return _conflict(f"Another decision is under way: {standing['status']} by {standing['who']}.")
    kept = {name: standing[name] for name in ("status", "done", "who", "why", "at", "digest")}
    review["earlier"] = [*standing.get("earlier", []), kept][-EARLIER_MAX:]
    same = {"at": standing["at"], "digest": standing["digest"], "done": standing["done"]}
    if not desk.ledger.save(REVIEW_PK, letter.id, review, same):
        return _conflict("Somebody else has decided about it at this moment.")
    return {**review, "sk": letter.id}


def _review(decision: Decision, letter: Letter, body: str | None, now: Instant, desk: Desk) -> dict[str, Any]:
    named = letter.job_id if letter.queue != letters.INBOX else None
    return {
        "status": decision.status,
        "done": False,
        "queue": letter.queue,
        "who": decision.who,
        "why": decision.why,
        "at": times.text(now),
        "digest": decision.digest,
        "reason": letter.reason,
        "detail": letter.detail[:1_000],
        "before_sha": sha256(letter.body.encode("utf-8", "replace").decode()),
        "job_id": named or "",
        "patch": json.dumps(decision.patch) if decision.patch is not None else "",
        "body_sha": sha256(body.encode("utf-8", "replace").decode()) if body is not None else "",
        **_origin(letter),
        "expires_at": int(now.timestamp()) + desk.keep_days * DAY_S,
    }


def _origin(letter: Letter) -> dict[str, str]:
    """What else ingest holds a repaired event against: its signature is not checked again."""
    if letter.queue != letters.INBOX:
        return {}
    return {name: message_of(letter).attributes.get(name, "") for name in REVIEWED}


def _finished(decision: Decision, not_found: NotFound, desk: Desk) -> Review | Problem:
    """The letter is gone: this very decision was carried out before, perhaps but for its last writes."""
    standing = desk.ledger.read(REVIEW_PK, decision.letter_id)
    if standing is not None and standing["digest"] == decision.digest:
        return _done(standing, desk) if not standing["done"] else standing
    return no_such_letter(not_found)


def _done(review: Review, desk: Desk) -> Review:
    done = {**review, "done": True}
    desk.ledger.save(REVIEW_PK, review["sk"], {"done": True}, {"digest": review["digest"], "at": review["at"]})
    return done


def _tell_job(review: Review, desk: Desk) -> None:
    """A line in the history of the job that it names, once, if there is one. Before the message is sent: whoever then
    claims the job takes the line along. A holder of now may still write over it; the review stays."""
    at = times.instant(review["at"])
    for _ in range(TELLINGS):
        job = letters.job_of(letters.record_of(review["job_id"], desk.store))
        if job is None or any((line["what"], line["at"]) == (review["status"], review["at"]) for line in job.history):
            return
        line = changes.note(job, review["status"], f"by {review['who']}: {review['why']}", at=at)
        if isinstance(desk.store.apply(job.id, line), Applied):
            return


def no_such_letter(not_found: NotFound) -> Problem:
    if not_found.complete:
        return Problem(404, "no-such-letter", "No such letter", "There is no dead letter with this id.")
    detail = f"It is not among the {not_found.scanned} dead letters that were read; there are more. Ask again."
    return Problem(503, "not-found-yet", "Not found yet", detail)


def _conflict(detail: str) -> Problem:
    return Problem(409, "conflict", "Not now, or not for this letter", detail)


def _repeat(what: str) -> Problem:
    return Problem(503, "unfinished", "Not finished", f"{what} The decision is recorded: repeat the same request.")
