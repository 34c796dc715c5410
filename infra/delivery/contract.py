"""The whole contract, asked of one template: of every shape that its conditions can give it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from infra.delivery import alarms, idempotency, invoked, invokes, letters, machines, mappings, queues, reach, streams
from infra.delivery.conditions import MOST, shapes
from infra.delivery.findings import Finding, Note, Report, Rule
from infra.delivery.template import CannotTell, Resource, Template

RULES: tuple[Rule, ...] = (
    *queues.RULES,
    *letters.RULES,
    *alarms.RULES,
    *mappings.RULES,
    *streams.RULES,
    *invokes.RULES,
    *invoked.RULES,
    *reach.RULES,
    *machines.RULES,
    *idempotency.RULES,
)
NOT_LOOKED_INTO = "not-looked-into"
_OUTSIDE = {
    "AWS::Serverless::": "SAM writes queues and mappings only when it deploys: check what "
    "`aws cloudformation get-template --template-stage Processed --query TemplateBody` gives",
    "AWS::CloudFormation::Stack": "check the template of this nested stack, too",
    "AWS::CloudFormation::Macro": "check the template that the macro makes",
    "AWS::Pipes::Pipe": "pipes are not looked into",
}


class NoTemplateError(ValueError):
    """This is no CloudFormation template; the text says why."""


def check(body: Any) -> Report:
    """Everything that breaks the contract, and everything that could not be checked. Raises NoTemplateError."""
    if not isinstance(body, Mapping) or not isinstance(body.get("Resources"), Mapping):
        raise NoTemplateError("it has no Resources")
    found: dict[Finding, list[str]] = {}
    notes: dict[Note, None] = dict.fromkeys(_outside(body))
    made = 0
    for when, shape in shapes(body):
        made += 1
        if made > MOST:
            notes[Note("conditions", "", f"its conditions have more outcomes than the {MOST} that were checked")] = None
            break
        for one in _ask(Template(shape)):
            if isinstance(one, Note):
                notes[one] = None
            else:
                found.setdefault(one, []).append(when)
    findings = [_told(one, whens if len(whens) < made else []) for one, whens in found.items()]
    return Report(findings, list(notes))


def _ask(template: Template) -> Iterator[Finding | Note]:
    for rule in RULES:
        for resource in template.of(*rule.kinds):
            yield from _findings(rule, template, resource)


def _findings(rule: Rule, template: Template, resource: Resource) -> Iterator[Finding | Note]:
    template.assumed.clear()
    try:
        for problem in rule.check(template, resource):
            where = problem.resource
            yield Finding(rule.name, where.id, problem.message, problem.fix, where.path)
    except CannotTell as why:
        yield Note(rule.name, resource.id, str(why))
        return
    if template.assumed:
        yield Note(rule.name, resource.id, f"checked for {', '.join(sorted(template.assumed))} alone")


def _outside(body: Mapping[str, Any]) -> Iterator[Note]:
    """What changes or adds resources where nobody can look."""
    if body.get("Transform"):
        yield Note(NOT_LOOKED_INTO, "", "it has a Transform, which is applied only when it is deployed")
    for name, one in body["Resources"].items():
        kind = str(one.get("Type", "")) if isinstance(one, Mapping) else ""
        why = next((why for prefix, why in _OUTSIDE.items() if kind.startswith(prefix)), "")
        if why or not kind:
            yield Note(NOT_LOOKED_INTO, str(name), why or "it is no resource that can be read")


def _told(finding: Finding, whens: list[str]) -> Finding:
    when = whens[0] if whens else ""
    return Finding(finding.rule, finding.resource, finding.message, finding.fix, finding.path, when)
