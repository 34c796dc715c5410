"""Templates broken on purpose: a copy, one change, and what the delivery contract says that it did not say before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from infra.delivery.contract import check
from infra.delivery.findings import Finding
from tests.infrastructure.templates import Resource, Template

DAY_S = 86_400

Body = dict[str, Any]
Change = Callable[[Body], None]
Found = set[tuple[str, str]]


def findings(body: Body) -> list[Finding]:
    return check(body).findings


def new_findings(body: Body, change: Change) -> list[Finding]:
    """Those of the changed copy that the original does not have."""
    broken = deepcopy(body)
    change(broken)
    known = findings(body)
    return [one for one in findings(broken) if one not in known]


def found(body: Body, change: Change) -> Found:
    """Rules that the change breaks, and where."""
    return {(one.rule, one.resource) for one in new_findings(body, change)}


def notes(body: Body, change: Change) -> Found:
    broken = deepcopy(body)
    change(broken)
    return {(one.rule, one.resource) for one in check(broken).notes}


def put(resource: str, *names: Any, to: Any) -> Change:
    """Set one property of a resource, however deep."""

    def change(body: Body) -> None:
        place = body["Resources"][resource].setdefault("Properties", {})
        for name in names[:-1]:
            place = place[name]
        place[names[-1]] = to

    return change


def remove(resource: str, *names: Any) -> Change:
    """Take out one property, or the resource if no property is named."""

    def change(body: Body) -> None:
        if not names:
            del body["Resources"][resource]
            return
        place = body["Resources"][resource]["Properties"]
        for name in names[:-1]:
            place = place[name]
        del place[names[-1]]

    return change


def rewrite(machine: str, old: str, new: str) -> Change:
    """Change the text of a state machine's definition."""

    def change(body: Body) -> None:
        properties = body["Resources"][machine]["Properties"]
        assert old in properties["DefinitionString"]
        properties["DefinitionString"] = properties["DefinitionString"].replace(old, new)

    return change


def add(name: str, kind: str, **properties: Any) -> Change:
    def change(body: Body) -> None:
        body["Resources"][name] = {"Type": f"AWS::{kind}", "Properties": properties}

    return change


def both(*changes: Change) -> Change:
    def change(body: Body) -> None:
        for one in changes:
            one(body)

    return change


def queues(template: Template) -> dict[str, Resource]:
    """The queues that have dead letters, by logical id."""
    return {name: one for name, one in template.of_type("SQS::Queue").items() if "RedrivePolicy" in one["Properties"]}


def letters(template: Template) -> set[str]:
    return set(template.of_type("SQS::Queue")) - set(queues(template))


def mappings(template: Template, kind: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Mappings from queues or streams: their id, their properties, and the id of what they read from."""
    for name, one in template.of_type("Lambda::EventSourceMapping").items():
        source, attribute = one["Properties"]["EventSourceArn"]["Fn::GetAtt"]
        if (attribute == "StreamArn") == (kind == "stream"):
            yield name, one["Properties"], source
