"""A synthesized template as tests look at it: plain dictionaries, and the few questions that many tests ask."""

from __future__ import annotations

import json
from typing import Any

Resource = dict[str, Any]


class Template:
    """One stack's template."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.resources: dict[str, Resource] = body["Resources"]
        self.outputs: dict[str, Any] = body["Outputs"]

    def of_type(self, kind: str) -> dict[str, Resource]:
        """Resources by logical id, like of_type("SQS::Queue")."""
        return {name: one for name, one in self.resources.items() if one["Type"] == f"AWS::{kind}"}

    def only(self, kind: str) -> Resource:
        (resource,) = self.of_type(kind).values()
        return resource

    def api(self, protocol: str = "HTTP") -> Resource:
        (found,) = (
            one for one in self.of_type("ApiGatewayV2::Api").values() if one["Properties"]["ProtocolType"] == protocol
        )
        return found

    def of_api(self, kind: str, protocol: str = "HTTP") -> dict[str, Resource]:
        """What belongs to one of the APIs, like of_api("Route")."""
        api = {"Ref": self.id_of(self.api(protocol))}
        found = self.of_type(f"ApiGatewayV2::{kind}")
        return {name: one for name, one in found.items() if one["Properties"]["ApiId"] == api}

    def stage(self, protocol: str = "HTTP") -> Resource:
        (found,) = self.of_api("Stage", protocol).values()
        return found

    def function(self, role: str) -> Resource:
        """The Lambda function of a role, found by its handler."""
        (found,) = (
            one
            for one in self.of_type("Lambda::Function").values()
            if one["Properties"]["Handler"] == f"lambdas.handlers.{role}.handler"
        )
        return found

    def id_of(self, resource: Resource) -> str:
        (name,) = (name for name, one in self.resources.items() if one is resource)
        return name

    def environment(self, role: str) -> dict[str, Any]:
        variables: dict[str, Any] = self.function(role)["Properties"]["Environment"]["Variables"]
        return variables

    def statements(self, role: str) -> list[dict[str, Any]]:
        """What the role of a function may do."""
        return self.statements_of_role(self.function(role)["Properties"]["Role"]["Fn::GetAtt"][0])

    def statements_of_role(self, role_id: str) -> list[dict[str, Any]]:
        return [
            statement
            for policy in self.of_type("IAM::Policy").values()
            if {"Ref": role_id} in policy["Properties"]["Roles"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]

    def permissions(self, role: str) -> set[tuple[str, str]]:
        """Pairs (action, resource) of a function, resources as `target` writes them."""
        return {
            (action, target(resource))
            for statement in self.statements(role)
            for action in listed(statement["Action"])
            for resource in listed(statement["Resource"])
        }


def listed(value: Any) -> list[Any]:
    """IAM writes one of something without a list."""
    return value if isinstance(value, list) else [value]


def target(value: Any) -> str:
    """A reference as text: logical ids stand for their ARNs, pseudo parameters in angle brackets."""
    match value:
        case str():
            return value
        case {"Fn::GetAtt": [str(name), "Arn"]}:
            return name
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            return f"{name}.{attribute}"
        case {"Ref": str(name)}:
            return f"<{name}>" if name.startswith("AWS::") else name
        case {"Fn::Join": ["", list(parts)]}:
            return "".join(target(part) for part in parts)
    raise AssertionError(f"unexpected reference {json.dumps(value)}")
