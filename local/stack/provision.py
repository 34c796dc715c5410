"""Creates what a template declares, in the order it needs, through the AWS API on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from local.stack.errors import TemplateError
from local.stack.intrinsics import Resolver
from local.stack.kinds import KINDS
from local.stack.kinds.kind import Workbench
from local.stack.rules import check_stack
from local.stack.stack import Resource, Stack
from local.stack.template import Template

__all__ = ["Resource", "Stack", "provision"]


class _Created:
    """What names mean while a stack comes into being."""

    def __init__(self, template: Template) -> None:
        self.mappings: Mapping[str, Any] = template.mappings
        self.conditions: Mapping[str, Any] = template.conditions
        self.resources: dict[str, Resource] = {}
        self._parameters = template.parameters

    def ref(self, name: str) -> Any:
        if name in self.resources:
            return self.resources[name].ref
        if name in self._parameters:
            return self._parameters[name]
        raise TemplateError(f"Ref to {name}, which is neither a resource nor a parameter")

    def attribute(self, logical_id: str, name: str) -> Any:
        resource = self.resources.get(logical_id)
        if resource is None:
            raise TemplateError(f"Fn::GetAtt to {logical_id}, which is no resource")
        if name not in resource.attributes:
            raise TemplateError(f"{resource.type} has no attribute {name} on this machine")
        return resource.attributes[name]


def provision(
    template: Template,
    endpoint_url: str | None,
    api_endpoint: str | None = None,
    socket_endpoint: str | None = None,
) -> Stack:
    """The stack, created through the AWS API at `endpoint_url` (None: wherever boto3 would go).

    `api_endpoint`, when given, is what HTTP APIs have for `ApiEndpoint`: where the local gateway listens;
    `socket_endpoint` what WebSocket APIs have.
    TemplateError, with the logical id, for what is not played here or what AWS would not create.
    """
    created = _Created(template)
    resolver = Resolver(created)
    bench = Workbench(
        template.name,
        template.region,
        template.account,
        endpoint_url,
        api_endpoint,
        socket_endpoint=socket_endpoint,
    )
    try:
        for logical_id in template.order():
            try:
                created.resources[logical_id] = _create(bench, resolver, logical_id, template.resources[logical_id])
            except TemplateError as error:
                raise error.at(logical_id) from error
            except (ClientError, BotoCoreError) as error:
                raise TemplateError(str(error)).at(logical_id) from error
    finally:
        bench.close()
    outputs = {name: str(_value(resolver, name, output)) for name, output in template.outputs.items()}
    stack = Stack(template.name, template.region, template.account, created.resources, outputs, template.assets)
    check_stack(stack)
    return stack


def _create(bench: Workbench, resolver: Resolver, logical_id: str, declared: Mapping[str, Any]) -> Resource:
    kind = KINDS.get(declared["Type"])
    if kind is None:
        raise TemplateError(f"{declared['Type']} is not played on this machine")
    properties = resolver.resolve(declared.get("Properties", {}))
    kind.check(properties)
    made = kind.make(bench, logical_id, properties)
    return Resource(logical_id, kind.type, properties, made.ref, made.attributes, declared.get("Metadata", {}))


def _value(resolver: Resolver, name: str, output: Mapping[str, Any]) -> Any:
    try:
        return resolver.resolve(output["Value"])
    except TemplateError as error:
        raise error.at(f"Outputs.{name}") from error
