"""Queues: long enough hidden, often enough delivered, and each with dead letters of its own."""

from __future__ import annotations

from collections.abc import Iterator

from infra.delivery.findings import Problem, Rule
from infra.delivery.letters import FOUR_DAYS_S, TWO_WEEKS_S, letters, redrive_of
from infra.delivery.sources import MAPPING, QUEUE, queue_of
from infra.delivery.template import CannotTell, Resource, Template

FEWEST_RECEIVES = 5


def visibility(template: Template, mapping: Resource) -> Iterator[Problem]:
    """AWS asks for six timeouts and the window: throttled batches are retried while their messages are hidden."""
    queue = queue_of(template, mapping)
    if queue is None:
        return
    timeout = template.number(template.function(mapping.get("FunctionName")).get("Timeout"), 3)
    window = template.number(mapping.get("MaximumBatchingWindowInSeconds"), 0)
    hidden = _visibility(template, queue)
    least = 6 * timeout + window
    if hidden < least:
        yield Problem(
            queue,
            f"its messages come back after {hidden} s, while a batch of {mapping.id} may still be worked on "
            f"(six times its timeout of {timeout} s, and {window} s of its window)",
            f"set VisibilityTimeout to {least} or more, or lower the function's Timeout",
        )


def receive_count(template: Template, queue: Resource) -> Iterator[Problem]:
    """A throttled delivery counts as one: few receives send messages away that no code has seen."""
    if not _redrives(queue):
        return
    count = template.number(queue.get("RedrivePolicy", "maxReceiveCount"), 0)
    if count < FEWEST_RECEIVES:
        yield Problem(
            queue,
            f"{count} deliveries, throttled ones included, make a message a dead letter",
            f"set RedrivePolicy.maxReceiveCount to {FEWEST_RECEIVES} or more",
        )
    kept = template.number(queue.get("MessageRetentionPeriod"), FOUR_DAYS_S)
    needed = count * _visibility(template, queue)
    if needed >= kept:
        yield Problem(
            queue,
            f"a message that fails each time expires ({kept} s) before its last delivery ({needed} s): it is lost",
            "raise MessageRetentionPeriod, or lower maxReceiveCount or VisibilityTimeout",
        )


def dead_letters(template: Template, queue: Resource) -> Iterator[Problem]:
    """Every queue has dead letters, except those that hold them."""
    if not _redrives(queue):
        if queue.id not in letters(template) and not _is_inbox(template, queue):
            yield Problem(
                queue,
                "it has no dead-letter queue: what cannot be done comes back until it expires",
                "set RedrivePolicy to a queue of its own",
            )
    elif template.follow(redrive_of(queue)) is queue:
        yield Problem(queue, "it is its own dead-letter queue", "set RedrivePolicy to another queue")


def own_dead_letters(template: Template, queue: Resource) -> Iterator[Problem]:
    """A redrive sends letters back to where they came from: with two sources somebody has to sort them."""
    sources = [owner.id for owner in letters(template).get(queue.id, ()) if owner.kind == QUEUE]
    if len(sources) > 1:
        yield Problem(
            queue,
            f"it holds the dead letters of {len(sources)} queues: {', '.join(sources)}",
            "give each of them a dead-letter queue of its own",
        )


def kind_of_letters(template: Template, queue: Resource) -> Iterator[Problem]:
    """AWS refuses dead letters of the other kind when it deploys, or, for services, drops them."""
    fifo = is_fifo(template, queue)
    for owner in letters(template).get(queue.id, ()):
        wanted = _wanted_kind(template, owner)
        if wanted != fifo:
            kinds = {True: "FIFO", False: "standard"}
            yield Problem(
                queue,
                f"it is a {kinds[fifo]} queue, but {owner.id} can only send dead letters to a {kinds[wanted]} one",
                f"{'remove' if fifo else 'set'} FifoQueue",
            )


def is_fifo(template: Template, resource: Resource) -> bool:
    """Whether a queue is FIFO. Raises CannotTell."""
    return template.flag(resource.get("FifoQueue"))


def _wanted_kind(template: Template, owner: Resource) -> bool:
    """Whether the letters of a resource have to be FIFO: only those of FIFO queues and topics."""
    if owner.kind == QUEUE:
        return is_fifo(template, owner)
    if owner.kind == "AWS::SNS::Subscription":
        try:
            return template.flag(template.follow(owner.get("TopicArn")).get("FifoTopic"))
        except CannotTell:
            return template.text(owner.get("TopicArn")).endswith(".fifo")
    return False


def _redrives(queue: Resource) -> bool:
    return redrive_of(queue) is not None


def _is_inbox(template: Template, queue: Resource) -> bool:
    """Letters of other templates or of code: said so, or nobody reads it here and it is kept for as long as can be."""
    if queue.get("RedriveAllowPolicy") is not None:
        return True
    read = any(template.means(mapping.get("EventSourceArn"), queue) for mapping in template.of(MAPPING))
    return not read and template.number(queue.get("MessageRetentionPeriod"), FOUR_DAYS_S) == TWO_WEEKS_S


def _visibility(template: Template, queue: Resource) -> int:
    return template.number(queue.get("VisibilityTimeout"), 30)


RULES = (
    Rule("visibility", (MAPPING,), visibility),
    Rule("receive-count", (QUEUE,), receive_count),
    Rule("dead-letters", (QUEUE,), dead_letters),
    Rule("own-dead-letters", (QUEUE,), own_dead_letters),
    Rule("kind-of-letters", (QUEUE,), kind_of_letters),
)
