"""Idempotency that outlives every redelivery: a letter may come back weeks after its work was done."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infra.delivery.findings import Problem, Rule
from infra.delivery.letters import FOUR_DAYS_S, TWO_WEEKS_S, redrive_of
from infra.delivery.sources import MAPPING, queue_of
from infra.delivery.template import FUNCTION, CannotTell, Resource, Template, is_intrinsic

# How long answers are remembered is decided in code; what a template can show is the variable that tells the code.
# Ours are ANSWER_DAYS and RECORD_DAYS, others write IDEMPOTENCY_TTL_SECONDS, IDEMPOTENCY_EXPIRES_AFTER_S, DEDUP_HOURS.
_LIFETIME = re.compile(r"(?:ANSWER|RECORD|(?:IDEMPOTEN\w*|DEDUP\w*?)(?:_\w+)?)_(DAYS|HOURS|MINUTES|SECONDS|S)")
_SECONDS = {"D": 86_400, "H": 3600, "M": 60, "S": 1}


def lifetime(template: Template, function: Resource) -> Iterator[Problem]:
    """What a function remembers against what its queues may bring back."""
    horizon = _horizon_s(template, function)
    if horizon == 0:
        return
    told = _lifetimes(template, function)
    if not told and not any(_lifetimes(template, one) for one in template.of(FUNCTION)):
        raise CannotTell(f"no variable says how long it remembers what is done: it must be longer than {horizon} s")
    for name, remembered in told.items():
        if remembered <= horizon:
            yield Problem(
                function,
                f"{name} remembers for {remembered} s what is done, but a letter may come back after {horizon} s",
                f"raise it above {horizon} s, or lower the retention of its queues",
            )


def _lifetimes(template: Template, function: Resource) -> dict[str, int]:
    """The variables of a function that say how long it remembers, in seconds. Raises CannotTell."""
    variables = function.get("Environment", "Variables")
    if is_intrinsic(variables) or not isinstance(variables, dict | None):
        raise CannotTell(f"the variables of {function.id} are known only when deployed")
    units = {name: unit[1][0] for name in variables or () if (unit := _LIFETIME.fullmatch(name))}
    return {name: template.number((variables or {})[name], 0) * _SECONDS[unit] for name, unit in units.items()}


def _horizon_s(template: Template, function: Resource) -> int:
    """Longest time from a message's first delivery to its last: kept as a letter, sent back, delivered once more."""
    longest = 0
    for mapping in template.of(MAPPING):
        try:
            queue = queue_of(template, mapping)
        except CannotTell:
            continue
        if queue is None or not template.means(mapping.get("FunctionName"), function):
            continue
        kept = template.number(queue.get("MessageRetentionPeriod"), FOUR_DAYS_S)
        hidden = template.number(queue.get("VisibilityTimeout"), 30)
        longest = max(longest, kept + hidden + _letters_s(template, queue))
    return longest


def _letters_s(template: Template, queue: Resource) -> int:
    """How long its letters are kept; for a queue that lies elsewhere, the longest there is."""
    if redrive_of(queue) is None:
        return 0
    try:
        return template.number(template.follow(redrive_of(queue)).get("MessageRetentionPeriod"), FOUR_DAYS_S)
    except CannotTell:
        return TWO_WEEKS_S


RULES = (Rule("idempotency", (FUNCTION,), lifetime),)
