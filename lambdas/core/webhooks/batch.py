"""What one message on the deliveries queue leads to: buried, planned, attempted, put off, or left on the queue."""

from __future__ import annotations

from dataclasses import dataclass

from lambdas.core import batch, ids
from lambdas.core.batch import Done, Early, Failed, Letters
from lambdas.core.envelope import Newer, Unreadable, letter_about_message, original, written
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Message, Notice, Unavailable
from lambdas.core.times import Instant
from lambdas.core.webhooks.attempting import attempt
from lambdas.core.webhooks.calling import Courier
from lambdas.core.webhooks.messages import Event, Hint, read
from lambdas.core.webhooks.planning import Planner, plan


@dataclass(frozen=True)
class Desk:
    """What a batch is worked on with. `ends`: when the platform ends this invocation."""

    planner: Planner
    courier: Courier
    letters: Letters
    ends: Instant


def is_suspect(message: batch.Delivery) -> bool:
    """It was received before, or an attempt of it crashed: it may be what kills invocations, and runs alone."""
    meaning = read(message.body)
    return message.receives > 1 or (isinstance(meaning, Hint) and meaning.crashes > 0)


def handle(message: batch.Delivery, desk: Desk, *, notice: Notice) -> Done | Early | Failed:
    """The whole way of one message. Raises nothing that its batch-mates could feel. Of a delivery that was given up
    for good `Done.how` is `judging.GIVEN_UP`: the caller counts those."""
    try:
        match read(message.body):
            case Unreadable() as why:
                return _bury(message, why, desk, notice)
            case Newer(schema):
                return Failed(f"schema {schema} is newer than this code: a deploy is under way")
            case Event() as event:
                planned = plan(event, desk.planner, notice=notice)
                return _bury(message, planned, desk, notice) if isinstance(planned, Unreadable) else Done("planned")
            case Hint() as hint:
                claim_id = ids.claim_id(message.request_id, message.message_id)
                return attempt(hint, claim_id=claim_id, ends=desk.ends, courier=desk.courier, notice=notice)
    except Unavailable as trouble:
        return Failed(str(trouble))
    except UnreadableRecord as broken:
        return _bury(message, Unreadable("UNREADABLE_RECORD", str(broken)), desk, notice)


def _bury(message: batch.Delivery, why: Unreadable, desk: Desk, notice: Notice) -> Done | Failed:
    """Sent first, acknowledged then; the letter's id is the body's hash, so that a crash in between shows as one."""
    letter = letter_about_message(original(message.body), why, desk.courier.now())
    attributes = {"event_type": letter["event_type"], "reason": why.reason}
    if desk.letters.send([Message(written(letter), attributes, "unreadable")]):
        return Failed(f"its letter could not be sent: {why.reason}")
    notice("buried", reason=why.reason, detail=why.detail)
    return Done("buried")
