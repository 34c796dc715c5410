"""The permissions that event sources need on AWS. Without them a mapping is refused, a schedule never fires, and a
route answers 500: here all of that is found at the start."""

from __future__ import annotations

import re
from collections.abc import Iterator

from local.aws.permissions import Permissions
from local.aws.policies import allows
from local.compute.environments import Functions
from local.sockets import definition
from local.stack.errors import TemplateError
from local.stack.stack import Resource, Stack

_CONSUME = {
    "sqs": ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
    "dynamodb": (
        "dynamodb:DescribeStream",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:ListStreams",
    ),
}
_SEND = {"sqs": "sqs:SendMessage", "sns": "sns:Publish"}
_GATEWAY = "apigateway.amazonaws.com"


def check(stack: Stack, functions: Functions, permissions: Permissions) -> None:
    """TemplateError, with the logical id, for the first permission that is missing."""
    for logical_id, role_arn, action, resource in _needed(stack, functions):
        if not permissions.may(role_arn, action, resource):
            raise TemplateError(f"{role_arn} may not {action} on {resource}").at(logical_id)
    sockets = definition.read(stack)
    for route in stack.of_type("AWS::ApiGatewayV2::Route"):
        if sockets is None or route.properties["ApiId"] != sockets.api_id:
            _check_route(stack, functions, route)
    for logical_id, function, source in sockets.callers() if sockets is not None else ():
        _check_caller(stack, functions, functions.role(function), (logical_id, source.partition("/")[2]), source)


def _check_route(stack: Stack, functions: Functions, route: Resource) -> None:
    """API Gateway invokes a function by the function's own policy, and calls other services by a role."""
    target = route.properties.get("Target", "").rpartition("/")[2]
    uri = next(item for item in stack.of_type("AWS::ApiGatewayV2::Integration") if item.ref == target).properties
    method, _, path = route.properties["RouteKey"].partition(" ")
    place = f"{route.properties['ApiId']}/$default/{method}{path}"
    source = f"arn:aws:execute-api:{stack.region}:{stack.account}:{place}"
    if "CredentialsArn" in uri:
        _check_trust(stack, route, uri["CredentialsArn"], source)
    if "IntegrationUri" not in uri:
        return
    role = functions.role(uri["IntegrationUri"].rpartition("/functions/")[2].removesuffix("/invocations"))
    _check_caller(stack, functions, role, (route.logical_id, route.properties["RouteKey"]), source)


def _check_caller(stack: Stack, functions: Functions, role: str, what: tuple[str, str], source: str) -> None:
    """`what`: the logical id of a route or an authorizer, and what to call it."""
    if not any(_admits(permission, functions, role, source) for permission in stack.of_type("AWS::Lambda::Permission")):
        raise TemplateError(f"API Gateway may not invoke {role} for {what[1]}").at(what[0])


def _check_trust(stack: Stack, route: Resource, role_arn: str, source: str) -> None:
    """What the role may do is asked with each request; whether API Gateway may assume it, here."""
    role = next((one for one in stack.of_type("AWS::IAM::Role") if one.attributes["Arn"] == role_arn), None)
    document = {} if role is None else role.properties.get("AssumeRolePolicyDocument", {})
    statements = document.get("Statement", [])
    trusts = [
        {**statement, "Resource": "*"}
        for statement in (statements if isinstance(statements, list) else [statements])
        if _GATEWAY in statement.get("Principal", {}).get("Service", [])
    ]
    context = {"aws:SourceArn": source, "aws:SourceAccount": stack.account}
    if not allows([{"Statement": trusts}], "sts:AssumeRole", "*", context):
        raise TemplateError(f"API Gateway may not assume {role_arn} for {route.properties['RouteKey']}").at(
            route.logical_id
        )


def _admits(permission: Resource, functions: Functions, role: str, source: str) -> bool:
    properties = permission.properties
    pattern = re.escape(properties.get("SourceArn", "*")).replace(r"\*", ".*")
    return (
        properties["Principal"] == _GATEWAY
        and properties["Action"] in ("lambda:InvokeFunction", "lambda:*")
        and functions.role(properties["FunctionName"]) == role
        and re.fullmatch(pattern, source) is not None
    )


def _needed(stack: Stack, functions: Functions) -> Iterator[tuple[str, str, str, str]]:
    for mapping in stack.of_type("AWS::Lambda::EventSourceMapping"):
        role_arn = functions.definition(functions.role(mapping.properties["FunctionName"])).execution_role_arn
        source = mapping.properties["EventSourceArn"]
        for action in _CONSUME.get(_service(source), ()):
            yield mapping.logical_id, role_arn, action, source
        yield from _destinations(mapping.logical_id, role_arn, mapping.properties.get("DestinationConfig", {}))
    for config in stack.of_type("AWS::Lambda::EventInvokeConfig"):
        role_arn = functions.definition(functions.role(config.properties["FunctionName"])).execution_role_arn
        yield from _destinations(config.logical_id, role_arn, config.properties.get("DestinationConfig", {}))
    for schedule in stack.of_type("AWS::Scheduler::Schedule"):
        target = schedule.properties["Target"]
        if _service(target["Arn"]) == "lambda":
            yield schedule.logical_id, target["RoleArn"], "lambda:InvokeFunction", target["Arn"]
        if "DeadLetterConfig" in target:
            yield schedule.logical_id, target["RoleArn"], "sqs:SendMessage", target["DeadLetterConfig"]["Arn"]


def _destinations(
    logical_id: str, role_arn: str, config: dict[str, dict[str, str]]
) -> Iterator[tuple[str, str, str, str]]:
    for destination in config.values():
        arn = destination["Destination"]
        if _service(arn) not in _SEND:
            raise TemplateError(f"destinations of the kind {_service(arn)} are not played here").at(logical_id)
        yield logical_id, role_arn, _SEND[_service(arn)], arn


def _service(arn: str) -> str:
    return arn.split(":")[2]
