"""Which statement of which role's policies was used, and what was refused: the proof that every permission is needed.

Lines of JSON in a folder that `NEVERDROP_USES` names, each the first time only and at once: a runtime that is killed
has told what it knew. Resources stand there as the template has them, `{StorageJobs}/index/due`, for every run alike.
"""

from __future__ import annotations

import json
import os
import re
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from local.aws.policies import Document, allowing, grants
from local.stack.stack import Resource, Stack

VARIABLE = "NEVERDROP_USES"
GRANTED, USED, REFUSED, UNNAMED = "granted", "used", "refused", "unnamed"


class Uses(Protocol):
    """What hears of every permission that was asked for."""

    def record(
        self, role_arn: str, action: str, resource: str, context: Mapping[str, str], documents: Iterable[Document]
    ) -> None:
        """Something was allowed by `documents`."""

    def refuse(self, role_arn: str, action: str, resource: str) -> None:
        """Something was refused."""


class NoUses:
    """When nobody wants to know."""

    def record(self, *_: Any) -> None: ...
    def refuse(self, *_: Any) -> None: ...


class RecordedUses:
    """Of one stack, in one file of `folder`. May be called from any thread."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        """Begins with what the template grants."""
        self._names = Names(stack)
        self._place = folder / f"{stack.name}-{os.getpid()}-{uuid.uuid4().hex[:8]}.jsonl"
        self._known: set[tuple[str, str, str, str]] = set()
        self._asked: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()
        for role in stack.of_type("AWS::IAM::Role"):
            arn = role.attributes["Arn"]
            self._write(GRANTED, arn, grants(stack.role_policies(arn)))

    def record(
        self, role_arn: str, action: str, resource: str, context: Mapping[str, str], documents: Iterable[Document]
    ) -> None:
        """Each statement that allows it counts as used. Allowed, and by none of them: a hole in the check itself."""
        if (role_arn, action, resource) in self._asked:
            return
        by = allowing(documents, action, resource, context)
        if by:
            self._write(USED, role_arn, by)
        else:
            self._write(UNNAMED, role_arn, [(action, _without_key(self._names.resource(resource)))])
        if not context and not resource.startswith("arn:aws:s3:"):  # objects are without number
            self._asked.add((role_arn, action, resource))

    def refuse(self, role_arn: str, action: str, resource: str) -> None:
        """What a role was told that it may not."""
        self._write(REFUSED, role_arn, [(action, _without_key(self._names.resource(resource)))])

    def _write(self, kind: str, role_arn: str, pairs: Iterable[tuple[str, str]]) -> None:
        role = self._names.role(role_arn)
        with self._lock:
            lines = list(self._new(kind, role, pairs))
            if lines:
                with self._place.open("a", encoding="utf-8") as file:
                    file.writelines(lines)

    def _new(self, kind: str, role: str, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
        for action, pattern in pairs:
            entry = (kind, role, action, self._names.resource(pattern))
            if entry not in self._known:
                self._known.add(entry)
                yield json.dumps(dict(zip(("kind", "role", "action", "resource"), entry, strict=True))) + "\n"


def uses_of(stack: Stack, environment: Mapping[str, str] = os.environ) -> Uses:
    """As the environment wants it. Only of the stack that ships: a test's toys may do what they like."""
    folder = environment.get(VARIABLE)
    if not folder or not stack.name.startswith("neverdrop-"):
        return NoUses()
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    return RecordedUses(stack, place)


class Names:
    """Roles and resources by names that a template keeps: no suffix, no account, nothing that a setting chooses."""

    def __init__(self, stack: Stack) -> None:
        self._roles = {role.attributes["Arn"]: _short(role.logical_id) for role in stack.of_type("AWS::IAM::Role")}
        for function in stack.of_type("AWS::Lambda::Function"):
            if str(function.properties.get("Handler", "")).endswith(".handler"):
                self._roles[function.properties.get("Role", "")] = function.properties["Handler"].split(".")[-2]
        known = [pair for resource in stack.resources.values() for pair in _arns(resource)]
        known += [
            (f"arn:aws:execute-api:{stack.region}:{stack.account}:{api.ref}", _short(api.logical_id))
            for api in stack.of_type("AWS::ApiGatewayV2::Api")
        ]
        for machine in stack.of_type("AWS::StepFunctions::StateMachine"):
            executions = machine.attributes["Arn"].replace(":stateMachine:", ":execution:")
            known.append((executions, f"{_short(machine.logical_id)}.executions"))
        self._resources = sorted(known, key=lambda pair: len(pair[0]), reverse=True)  # the longest first

    def role(self, arn: str) -> str:
        """`worker` for the role of that function; the logical id, without its suffix, for any other."""
        return self._roles.get(arn, arn)

    def resource(self, arn: str) -> str:
        """`{StorageJobs}/index/due` for an ARN of that table, or a pattern of one."""
        for known, name in self._resources:
            if arn == known or arn.startswith((f"{known}/", f"{known}:")):
                return f"{{{name}}}{arn[len(known) :]}"
        return _CHOSEN.sub(r"\1<of the settings>", arn)


_CHOSEN = re.compile(r"^(arn:aws:secretsmanager:[^:]*:[^:]*:secret:|arn:aws:ses:[^:]*:[^:]*:identity/).*")


def _arns(resource: Resource) -> Iterator[tuple[str, str]]:
    name = _short(resource.logical_id)
    for attribute, value in {"Ref": resource.ref, **resource.attributes}.items():
        if str(value).startswith("arn:"):
            plain = attribute in ("Arn", "TopicArn", "Ref")
            yield str(value), name if plain else f"{name}.{attribute}"


def _short(logical_id: str) -> str:
    """Without the eight characters that CDK ends it with."""
    return re.sub(r"(?<=.)[0-9A-F]{8}$", "", logical_id)


def _without_key(resource: str) -> str:
    """An object by the prefix that it lies under."""
    place, slash, rest = resource.partition("}/")
    return f"{place}}}/{rest.partition('/')[0]}/…" if slash and "/" in rest else resource
