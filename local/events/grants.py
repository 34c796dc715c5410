"""The permissions that event sources need on AWS. Without them a mapping is refused, a schedule never fires, and a
route answers 500: here all of that is found at the start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from local.aws.permissions import Permissions
from local.aws.policies import allows
from local.compute.environments import Functions
from local.executions.definition import functions_of, read, text_of
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
_GATEWAY, _EVENTS, _STATES = "apigateway.amazonaws.com", "events.amazonaws.com", "states.amazonaws.com"
_NAMES = {_GATEWAY: "API Gateway", _EVENTS: "EventBridge", _STATES: "Step Functions"}


def check(stack: Stack, functions: Functions, permissions: Permissions) -> None:
    """TemplateError, with the logical id, for the first permission that is missing."""
    for machine in stack.of_type("AWS::StepFunctions::StateMachine"):
        _check_trust(stack, machine, machine.properties["RoleArn"], _STATES, machine.attributes["Arn"])
    for rule in stack.of_type("AWS::Events::Rule"):
        _check_rule(stack, functions, rule)
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
        _check_trust(stack, route, uri["CredentialsArn"], _GATEWAY, source)
    if "IntegrationUri" not in uri:
        return
    role = functions.role(uri["IntegrationUri"].rpartition("/functions/")[2].removesuffix("/invocations"))
    _check_caller(stack, functions, role, (route.logical_id, route.properties["RouteKey"]), source)


def _check_caller(stack: Stack, functions: Functions, role: str, what: tuple[str, str], source: str) -> None:
    """`what`: the logical id of a route or an authorizer, and what to call it."""
    if not _may_invoke(stack, functions, role, _GATEWAY, source):
        raise TemplateError(f"API Gateway may not invoke {role} for {what[1]}").at(what[0])


def _may_invoke(stack: Stack, functions: Functions, role: str, service: str, source: str) -> bool:
    permissions = stack.of_type("AWS::Lambda::Permission")
    return any(_admits(permission, functions, role, service, source) for permission in permissions)


def _check_rule(stack: Stack, functions: Functions, rule: Resource) -> None:
    """By the policies of its targets: a rule has no role. A target that is not there is found when an event comes."""
    for target in rule.properties.get("Targets", []):
        letters = target.get("DeadLetterConfig", {}).get("Arn")
        queues = [arn for arn in (target["Arn"], letters) if arn is not None and _service(arn) == "sqs"]
        for queue in queues:
            if not _may_send(stack, queue, rule.attributes["Arn"]):
                raise TemplateError(f"EventBridge may not send to {queue}").at(rule.logical_id)
        role = _role_of(functions, target["Arn"])
        if role is not None and not _may_invoke(stack, functions, role, _EVENTS, rule.attributes["Arn"]):
            raise TemplateError(f"EventBridge may not invoke {role}").at(rule.logical_id)


def _role_of(functions: Functions, arn: str) -> str | None:
    try:
        return functions.role(arn) if _service(arn) == "lambda" else None
    except KeyError:
        return None


def _may_send(stack: Stack, queue_arn: str, source: str) -> bool:
    queue = next((one for one in stack.of_type("AWS::SQS::Queue") if one.attributes["Arn"] == queue_arn), None)
    policies = [one.properties for one in stack.of_type("AWS::SQS::QueuePolicy")]
    documents = [one["PolicyDocument"] for one in policies if queue is not None and queue.ref in one["Queues"]]
    about = [{"Statement": _statements_for(document, _EVENTS)} for document in documents]
    return allows(about, "sqs:SendMessage", queue_arn, _source(stack, source))


def _statements_for(document: dict[str, Any], service: str) -> list[dict[str, Any]]:
    statements = document.get("Statement", [])
    return [
        {**statement, "Resource": statement.get("Resource", "*")}
        for statement in (statements if isinstance(statements, list) else [statements])
        if statement.get("Principal") == "*" or _is_named(statement.get("Principal", {}), service)
    ]


def _is_named(principal: dict[str, Any], service: str) -> bool:
    named = [principal.get("Service", []), principal.get("AWS", [])]
    return service in _as_list(named[0]) or "*" in _as_list(named[1])


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _source(stack: Stack, arn: str) -> dict[str, str]:
    """What a service says for whom it asks."""
    return {"aws:SourceArn": arn, "aws:SourceAccount": stack.account}


def _check_trust(stack: Stack, user: Resource, role_arn: str, service: str, source: str) -> None:
    """What the role may do is asked with each request; whether the service may assume it, here."""
    role = next((one for one in stack.of_type("AWS::IAM::Role") if one.attributes["Arn"] == role_arn), None)
    document = {} if role is None else role.properties.get("AssumeRolePolicyDocument", {})
    trusts = _statements_for(document, service)
    if not allows([{"Statement": trusts}], "sts:AssumeRole", "*", _source(stack, source)):
        raise TemplateError(f"{_NAMES[service]} may not assume {role_arn}").at(user.logical_id)


def _admits(permission: Resource, functions: Functions, role: str, service: str, source: str) -> bool:
    properties = permission.properties
    pattern = re.escape(properties.get("SourceArn", "*")).replace(r"\*", ".*")
    return (
        properties["Principal"] == service
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
    yield from _called_by_machines(stack, functions)
    for schedule in stack.of_type("AWS::Scheduler::Schedule"):
        target = schedule.properties["Target"]
        if _service(target["Arn"]) == "lambda":
            yield schedule.logical_id, target["RoleArn"], "lambda:InvokeFunction", target["Arn"]
        if "DeadLetterConfig" in target:
            yield schedule.logical_id, target["RoleArn"], "sqs:SendMessage", target["DeadLetterConfig"]["Arn"]


def _called_by_machines(stack: Stack, functions: Functions) -> Iterator[tuple[str, str, str, str]]:
    for machine in stack.of_type("AWS::StepFunctions::StateMachine"):
        for arn in sorted(set(functions_of(read(text_of(machine.properties))))):
            if _role_of(functions, arn) is not None:
                yield machine.logical_id, machine.properties["RoleArn"], "lambda:InvokeFunction", arn


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
