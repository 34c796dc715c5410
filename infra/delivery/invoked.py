"""Functions that are invoked asynchronously: Lambda drops an event after its retries, unless told where to put it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from infra.delivery.callers import CALLING_KINDS, callers, granted, targets_in_question
from infra.delivery.findings import Problem, Rule
from infra.delivery.letters import INVOKE_CONFIG, failures_of
from infra.delivery.template import FUNCTION, CannotTell, Resource, Template, names_in, text_of

_ALIASES = ("AWS::Lambda::Alias", "AWS::Lambda::Version")


def asynchronous(template: Template, function: Resource) -> Iterator[Problem]:
    """Invoked by a service, or by itself, which is always meant to go on without waiting."""
    who = [caller.id for caller, target in callers(template).get(function.id, ()) if not _kept(template, target)]
    plain = {"Ref": function.id}
    others = [] if _kept(template, plain) else list(granted(template, function))
    if function in others:
        who.append("itself")
    if who:
        yield Problem(
            function,
            f"invoked without waiting by {', '.join(dict.fromkeys(who))}: what fails is dropped after its retries",
            f"add an {INVOKE_CONFIG} with DestinationConfig.OnFailure",
        )
    elif others:
        names = ", ".join(one.id for one in others)
        raise CannotTell(f"{names} may invoke it; if without waiting, it needs a destination for failures")


def within_reach(template: Template, caller: Resource) -> Iterator[Problem]:
    """Finds nothing: raises CannotTell for functions that another template has to keep."""
    told = list(targets_in_question(template, caller))
    if told:
        raise CannotTell(f"{', '.join(told)}, which it starts, is not in this template")
    yield from ()


def _kept(template: Template, target: Any) -> bool:
    """Whether what fails at this function, under the name it is called by, goes somewhere."""
    function = template.function(target)
    if function.get("DeadLetterConfig", "TargetArn") is not None:
        return True
    alias = template.follow(target)
    return any(
        template.means(config.get("FunctionName"), function)
        and failures_of(config) is not None
        and _is_for(template, config, alias)
        for config in template.of(INVOKE_CONFIG)
    )


def _is_for(template: Template, config: Resource, alias: Resource) -> bool:
    """A configuration holds for one alias or version, or for calls that name none."""
    qualifier = config.get("Qualifier")
    if alias.kind not in _ALIASES:
        return not isinstance(qualifier, str) or qualifier == "$LATEST"
    return alias.id in names_in(qualifier) or text_of(qualifier) == text_of(alias.get("Name"))


RULES = (
    Rule("invoke-letters", (FUNCTION,), asynchronous),
    Rule("invoke-letters", CALLING_KINDS, within_reach),
)
