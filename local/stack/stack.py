"""A provisioned stack: every resource with its resolved properties, its physical name and its attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.stack.errors import TemplateError
from local.stack.managed_policies import MANAGED


@dataclass(frozen=True)
class Resource:
    """One resource of the template, as it came to be."""

    logical_id: str
    type: str
    properties: Mapping[str, Any]
    """Fully resolved."""
    ref: str
    """What `Ref` gives: a name, an ARN, a URL or an id, depending on the type."""
    attributes: Mapping[str, Any]
    """What `Fn::GetAtt` gives."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stack:
    """All resources of a stack, by logical id."""

    name: str
    region: str
    account: str
    resources: Mapping[str, Resource]
    outputs: Mapping[str, str]
    assets: Mapping[str, Path]

    def of_type(self, type_name: str) -> list[Resource]:
        """The resources of one type, in the order they were created."""
        return [resource for resource in self.resources.values() if resource.type == type_name]

    def by_arn(self, arn: str) -> Resource:
        """The resource whose ARN that is. LookupError when none is."""
        for resource in self.resources.values():
            if arn in (resource.ref, *map(resource.attributes.get, ("Arn", "TopicArn", "StreamArn"))):
                return resource
        raise LookupError(f"no resource with the ARN {arn}")

    def asset_of(self, resource: Resource) -> Path:
        """The folder that a function's or layer's code comes from. LookupError for code that is no asset."""
        code = resource.properties.get("Code") or resource.properties.get("Content") or {}
        path = self.assets.get(code.get("S3Key", ""))
        if path is None:
            raise LookupError(f"{resource.logical_id}: its code is no asset of this assembly")
        return path

    def role_policies(self, role_arn: str) -> list[dict[str, Any]]:
        """Every policy document that a role has: its own, attached ones, managed ones.

        LookupError for an unknown role, TemplateError for a managed policy of AWS's whose content is not known here.
        """
        role = next((one for one in self.of_type("AWS::IAM::Role") if one.attributes["Arn"] == role_arn), None)
        if role is None:
            raise LookupError(f"no role {role_arn}")
        documents = [policy["PolicyDocument"] for policy in role.properties.get("Policies", [])]
        for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy", "AWS::IAM::RolePolicy"):
            for policy in self.of_type(kind):
                named = policy.properties.get("Roles") or [policy.properties.get("RoleName")]
                if role.ref in named:
                    documents.append(policy.properties["PolicyDocument"])
        return documents + [self._managed(role, arn) for arn in role.properties.get("ManagedPolicyArns", [])]

    def _managed(self, role: Resource, arn: str) -> dict[str, Any]:
        own = next((one for one in self.of_type("AWS::IAM::ManagedPolicy") if one.ref == arn), None)
        if own is not None:
            document: dict[str, Any] = own.properties["PolicyDocument"]
            return document
        name = arn.rsplit("/", 1)[-1]
        if name not in MANAGED:
            raise TemplateError(f"what the managed policy {arn} allows is not known here").at(role.logical_id)
        return MANAGED[name]
