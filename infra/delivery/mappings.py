"""Event source mappings: what failed is reported one by one, and nobody is given more than may run."""

from __future__ import annotations

from collections.abc import Iterator

from infra.delivery.findings import Problem, Rule
from infra.delivery.queues import is_fifo
from infra.delivery.sources import MAPPING, QUEUE, queue_of, source_of
from infra.delivery.template import FUNCTION, CannotTell, Resource, Template, listed

MOST_CONCURRENCY = 1000
MOST_AT_ONCE = 10
MOST_IN_A_WINDOW = 10_000


def batch_failures(template: Template, mapping: Resource) -> Iterator[Problem]:
    """Without it one message that fails brings its whole batch back."""
    if source_of(template, mapping) == "other":
        return
    reported = [template.text(one) for one in listed(mapping.get("FunctionResponseTypes"))]
    if "ReportBatchItemFailures" not in reported:
        yield Problem(
            mapping,
            "one item that fails brings back its whole batch, also what was done",
            "set FunctionResponseTypes to [ReportBatchItemFailures], and let the function name what failed",
        )


def batch_size(template: Template, mapping: Resource) -> Iterator[Problem]:
    """What AWS accepts of a queue: more than ten messages have to be gathered, and FIFO queues gather none."""
    size = template.number(mapping.get("BatchSize"), MOST_AT_ONCE)
    queue = queue_of(template, mapping) if size > MOST_AT_ONCE else None
    if queue is None:
        return
    gathers = template.number(mapping.get("MaximumBatchingWindowInSeconds"), 0) > 0 and not is_fifo(template, queue)
    most = MOST_IN_A_WINDOW if gathers else MOST_AT_ONCE
    if size > most:
        yield Problem(
            mapping,
            f"BatchSize is {size}, which AWS refuses here",
            f"set it to {most} or less, or, above {MOST_AT_ONCE} and for a standard queue, "
            "MaximumBatchingWindowInSeconds to 1 or more",
        )


def enabled(template: Template, mapping: Resource) -> Iterator[Problem]:
    """A mapping is enabled unless it says otherwise."""
    if mapping.get("Enabled") is not None and not template.flag(mapping.get("Enabled")):
        yield Problem(
            mapping,
            "it is disabled: what it is to read lies there until it expires",
            "remove Enabled, or set it to true",
        )


def one_reader(template: Template, queue: Resource) -> Iterator[Problem]:
    """Each message goes to one of the readers, by chance; one that filters it away deletes it."""
    readers = [one for one in template.of(MAPPING) if template.means(one.get("EventSourceArn"), queue)]
    functions = dict.fromkeys(template.function(one.get("FunctionName")).id for one in readers if len(readers) > 1)
    if len(functions) > 1:
        yield Problem(
            queue,
            f"{', '.join(functions)} read from it, and each message goes to one of them by chance",
            "give each function a queue of its own, behind a topic",
        )


def concurrency(template: Template, mapping: Resource) -> Iterator[Problem]:
    """What AWS accepts; deployed with a token, nobody else has looked at it."""
    most = _limit(template, mapping)
    if most is not None and not 2 <= most <= MOST_CONCURRENCY:
        yield Problem(
            mapping,
            f"MaximumConcurrency is {most}, which AWS refuses",
            f"set it between 2 and {MOST_CONCURRENCY}",
        )


def reserved(template: Template, function: Resource) -> Iterator[Problem]:
    """More pollers than may run at once are throttled, and every throttled delivery counts as a receive."""
    room = function.get("ReservedConcurrentExecutions")
    mappings = _queue_mappings(template, function)
    if room is None or not mappings:
        return
    room = template.number(room, 0)
    if room < 2:
        yield Problem(
            function,
            f"{room} reserved executions, but SQS polls with two at least: messages are stranded in flight",
            "reserve 2 or more",
        )
        return
    limits = {one.id: _limit(template, one) for one in mappings}
    unlimited = [name for name, limit in limits.items() if limit is None]
    taken = sum(limit or 0 for limit in limits.values())
    if unlimited:
        yield Problem(
            function,
            f"{', '.join(unlimited)} may take more than the {room} executions reserved: the rest is throttled "
            "until its messages are dead letters that nobody has looked at",
            "set ScalingConfig.MaximumConcurrency there, together at most what is reserved",
        )
    elif taken > room:
        yield Problem(
            function,
            f"{', '.join(limits)} may take {taken} executions, but {room} are reserved",
            f"lower MaximumConcurrency to {room} together, or reserve {taken}",
        )


def _queue_mappings(template: Template, function: Resource) -> list[Resource]:
    """The mappings from queues to a function, as far as they can be followed."""
    return [
        mapping
        for mapping in template.of(MAPPING)
        if source_of(template, mapping) == "queue" and template.means(mapping.get("FunctionName"), function)
    ]


def _limit(template: Template, mapping: Resource) -> int | None:
    if mapping.get("ProvisionedPollerConfig") is not None:
        raise CannotTell(f"the pollers of {mapping.id} are provisioned, which sets no limit to its concurrency")
    limit = mapping.get("ScalingConfig", "MaximumConcurrency")
    return None if limit is None else template.number(limit, 0)


RULES = (
    Rule("batch-failures", (MAPPING,), batch_failures),
    Rule("batch-size", (MAPPING,), batch_size),
    Rule("mapping-enabled", (MAPPING,), enabled),
    Rule("one-reader", (QUEUE,), one_reader),
    Rule("concurrency", (MAPPING,), concurrency),
    Rule("reserved-concurrency", (FUNCTION,), reserved),
)
