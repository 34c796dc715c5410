"""A template as the rules see it: resources by kind, values that can be read, references that can be followed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

FUNCTION = "AWS::Lambda::Function"
_REFERENCE = re.compile(r"\$\{([^!}][^}]*)\}")
_NAMES = {
    FUNCTION: "FunctionName",
    "AWS::Lambda::Alias": "Name",
    "AWS::SQS::Queue": "QueueName",
    "AWS::SNS::Topic": "TopicName",
    "AWS::Kinesis::Stream": "Name",
    "AWS::KMS::Alias": "AliasName",
}


class CannotTell(Exception):
    """A value that the template does not have; the text says which."""


@dataclass(frozen=True, eq=False)
class Resource:
    """One resource, its conditions already decided."""

    id: str
    kind: str
    properties: Mapping[str, Any]
    path: str

    def get(self, *names: str) -> Any:
        """A property, or one inside it; None where it is not set. Raises CannotTell."""
        return dig(self.properties, *names)


class Template:
    """The resources of one template. `assumed` collects the parameters whose defaults were taken for their values."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        parameters = body.get("Parameters")
        self._parameters: Mapping[str, Any] = parameters if isinstance(parameters, dict) else {}
        self.resources = {str(name): _resource(str(name), one) for name, one in body["Resources"].items()}
        self.assumed: set[str] = set()

    def of(self, *kinds: str) -> list[Resource]:
        return [one for one in self.resources.values() if one.kind in kinds]

    def follow(self, value: Any) -> Resource:
        """The resource that a reference, an ARN or a name means. Raises CannotTell if it is not in the template."""
        found = [self.resources[name] for name in dict.fromkeys(names_in(value)) if name in self.resources]
        if not found:
            tail = _tail(text_of(value))
            found = [one for one in self.resources.values() if tail and tail == _physical_name(one)]
        if len(found) != 1:
            raise CannotTell(f"{shown(value)} does not lead to one resource of this template")
        return found[0]

    def function(self, value: Any) -> Resource:
        """The function behind a reference to it, to its alias or to its version. Raises CannotTell."""
        found = self.follow(value)
        if found.kind in ("AWS::Lambda::Alias", "AWS::Lambda::Version"):
            found = self.follow(found.get("FunctionName"))
        if found.kind != FUNCTION:
            raise CannotTell(f"{found.id} is of kind {found.kind}, which is not looked into")
        return found

    def means(self, reference: Any, resource: Resource) -> bool:
        """Whether a reference means this resource, or this function by one of its names."""
        if reference is None:
            return False
        try:
            found = self.follow(reference)
            return found is resource or (resource.kind == FUNCTION and self.function(reference) is resource)
        except CannotTell:
            return False

    def number(self, value: Any, default: int) -> int:
        """A whole number, `default` where nothing is set. Raises CannotTell."""
        known = self._known(value)
        if known is None:
            return default
        try:
            return int(str(known)) if not isinstance(known, float) else int(known)
        except ValueError:
            raise CannotTell(f"{shown(value)} is no number before it is deployed") from None

    def flag(self, value: Any) -> bool:
        """True or false, false where nothing is set. Raises CannotTell."""
        return str(self._known(value)).lower() == "true"

    def text(self, value: Any) -> str:
        """A text, empty where nothing is set. Raises CannotTell."""
        known = self._known(value)
        return "" if known is None else str(known)

    def _known(self, value: Any) -> Any:
        if not isinstance(value, dict | list):
            return value
        name = value.get("Ref") if isinstance(value, dict) else None
        parameter = self._parameters.get(name) if isinstance(name, str) else None
        # the default of an SSM parameter is where its value lies
        if isinstance(parameter, dict) and parameter.get("Type") in ("Number", "String") and "Default" in parameter:
            self.assumed.add(f"parameter {name} = {parameter['Default']}")
            return parameter["Default"]
        raise CannotTell(f"{shown(value)} is known only when deployed")


def dig(value: Any, *names: str) -> Any:
    """What lies under these names, None where one of them is not set. Raises CannotTell."""
    for name in names:
        if value is None:
            return None
        if isinstance(value, str):
            value = _parsed(value)
        if is_intrinsic(value) or not isinstance(value, dict):
            raise CannotTell(f"{shown(value)} hides {name} until it is deployed")
        value = value.get(name)
    return value


def listed(value: Any) -> list[Any]:
    """A list as it is, one value as a list of it, nothing as none. Raises CannotTell."""
    if is_intrinsic(value):
        raise CannotTell(f"the list {shown(value)} is known only when deployed")
    return [] if value is None else value if isinstance(value, list) else [value]


def is_intrinsic(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


def names_in(value: Any) -> Iterator[str]:
    """Every logical id and parameter that a value refers to."""
    match value:
        case {"Ref": str(name)}:
            yield name
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::GetAtt": str(name)}:
            yield name.partition(".")[0]
        case {"Fn::Sub": str(text)}:
            yield from (name.partition(".")[0] for name in _REFERENCE.findall(text))
        case {"Fn::Sub": [str(text), dict(given)]}:
            yield from (name for name in names_in({"Fn::Sub": text}) if name not in given)
            yield from names_in(list(given.values()))
        case dict():
            yield from names_in(list(value.values()))
        case list():
            for one in value:
                yield from names_in(one)


def text_of(value: Any) -> str:
    """A text with its references as ${…}, as far as there is one."""
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return f"${{{name}}}"
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"${{{name}.{attribute}}}"
        case {"Fn::GetAtt": str(name)}:
            return f"${{{name}}}"
        case {"Fn::Sub": str(text)} | {"Fn::Sub": [str(text), *_]}:
            return text
        case {"Fn::Join": [str(glue), list(parts)]}:
            return glue.join(map(text_of, parts))
    return ""


def shown(value: Any) -> str:
    """A value for a message."""
    text = text_of(value) or json.dumps(value, default=str)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _resource(name: str, body: Any) -> Resource:
    body = body if isinstance(body, dict) else {}
    properties, metadata = body.get("Properties"), body.get("Metadata")
    path = metadata.get("aws:cdk:path") if isinstance(metadata, dict) else None
    return Resource(
        id=name,
        kind=str(body.get("Type", "")),
        properties=properties if isinstance(properties, dict) else {},
        path=str(path or ""),
    )


def _physical_name(resource: Resource) -> str:
    """The name that a resource was given by hand, if any; as the last part of an ARN would have it."""
    return _tail(text_of(resource.properties.get(_NAMES.get(resource.kind, ""))))


def _tail(text: str) -> str:
    """The name at the end of an ARN, where `${AWS::AccountId}` is no separator."""
    return re.split(r"[:/]", text.replace("${AWS::", "${AWS."))[-1]


def _parsed(text: str) -> Any:
    """A property that may be written as JSON in a text."""
    try:
        return json.loads(text)
    except ValueError:
        raise CannotTell(f"{shown(text)} is no JSON before it is deployed") from None
