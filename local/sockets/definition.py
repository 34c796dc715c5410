"""What the template says about its WebSocket API; everything that is not played here, or not by AWS, is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.stack.errors import TemplateError
from local.stack.stack import Resource, Stack

CONNECT, DISCONNECT, DEFAULT = "$connect", "$disconnect", "$default"
LONGEST_S = 29.0
_SELECTION = re.compile(r"\$(?:request\.body((?:\.\w+)+)|\{request\.body((?:\.\w+)+)\})")
_IDENTITY = re.compile(r"route\.request\.(querystring|header)\.([^.\s]+)")
_DESCRIBE = {"Description", "Name", "Tags", "ApiId"}
_PLAYED = {
    "AWS::ApiGatewayV2::Api": {"ProtocolType", "RouteSelectionExpression"},
    "AWS::ApiGatewayV2::Route": {"AuthorizationType", "AuthorizerId", "OperationName", "RouteKey", "Target"},
    "AWS::ApiGatewayV2::Integration": {"IntegrationType", "IntegrationUri", "PayloadFormatVersion", "TimeoutInMillis"},
    "AWS::ApiGatewayV2::Authorizer": {"AuthorizerType", "AuthorizerUri", "IdentitySource"},
    "AWS::ApiGatewayV2::Deployment": {"StageName"},
    "AWS::ApiGatewayV2::Stage": {"AutoDeploy", "DefaultRouteSettings", "DeploymentId", "RouteSettings", "StageName"},
}
_THROTTLES = {"ThrottlingBurstLimit", "ThrottlingRateLimit"}


@dataclass(frozen=True)
class Route:
    """A route key, and the function behind it."""

    key: str
    function: str
    """Its ARN."""
    timeout_s: float
    logical_id: str = ""


@dataclass(frozen=True)
class Authorizer:
    """Who is asked whether somebody may connect."""

    id: str
    function: str
    """Its ARN."""
    identity: tuple[tuple[str, str], ...]
    """What a request must have, else nobody is asked: `querystring` or `header`, and the name."""
    logical_id: str = ""


@dataclass(frozen=True)
class Definition:
    """One WebSocket API and its stage."""

    api_id: str
    stage: str
    region: str
    account: str
    selection: tuple[str, ...]
    """The path to the field of a message that names its route."""
    routes: Mapping[str, Route]
    authorization: str = "NONE"
    """How $connect is authorized: NONE, CUSTOM or AWS_IAM."""
    authorizer: Authorizer | None = None
    stage_settings: Mapping[str, Any] = field(default_factory=dict)

    def arn(self, key: str) -> str:
        """Of a route: what an authorizer's policy is about, and what a permission to invoke names."""
        return f"arn:aws:execute-api:{self.region}:{self.account}:{self.api_id}/{self.stage}/{key}"

    def select(self, text: str) -> Route | None:
        """The route of a message; None when there is neither its own nor $default."""
        key = _selected(text, self.selection)
        named = None if key is None or key.startswith("$") else self.routes.get(key)
        return named or self.routes.get(DEFAULT)

    def callers(self) -> Iterator[tuple[str, str, str]]:
        """Whom API Gateway invokes: logical id of the route or authorizer, the function's ARN, the ARN it comes by."""
        for route in self.routes.values():
            yield route.logical_id, route.function, self.arn(route.key)
        if self.authorizer is not None:
            api = f"arn:aws:execute-api:{self.region}:{self.account}:{self.api_id}"
            yield self.authorizer.logical_id, self.authorizer.function, f"{api}/authorizers/{self.authorizer.id}"


def read(stack: Stack) -> Definition | None:
    """The WebSocket API of a stack, if there is one. TemplateError, with the logical id, for what is not played."""
    apis = [one for one in stack.of_type("AWS::ApiGatewayV2::Api") if one.properties["ProtocolType"] == "WEBSOCKET"]
    if not apis:
        return None
    if len(apis) > 1:
        raise TemplateError("more than one WebSocket API in a stack is not played on this machine")
    (api,) = apis
    parts = {kind: _parts(stack, kind, api.ref) for kind in _PLAYED if not kind.endswith("::Api")}
    for resource in [api, *(one for found in parts.values() for one in found)]:
        _refuse_unknown(resource)
    stage = _stage(parts["AWS::ApiGatewayV2::Stage"])
    integrations = {one.ref: one for one in parts["AWS::ApiGatewayV2::Integration"]}
    routes = parts["AWS::ApiGatewayV2::Route"]
    connect = next((one for one in routes if one.properties["RouteKey"] == CONNECT), None)
    authorization = "NONE" if connect is None else connect.properties.get("AuthorizationType", "NONE")
    return Definition(
        api_id=api.ref,
        stage=stage["StageName"],
        region=stack.region,
        account=stack.account,
        selection=_selection(api),
        routes={one.properties["RouteKey"]: _route(one, integrations) for one in routes},
        authorization=authorization,
        authorizer=_authorizer(connect, parts["AWS::ApiGatewayV2::Authorizer"]) if authorization == "CUSTOM" else None,
        stage_settings=stage,
    )


def _parts(stack: Stack, kind: str, api_id: str) -> list[Resource]:
    return [one for one in stack.of_type(kind) if one.properties["ApiId"] == api_id]


def _refuse_unknown(resource: Resource) -> None:
    unknown = set(resource.properties) - _PLAYED[resource.type] - _DESCRIBE
    if unknown:
        text = f"{', '.join(sorted(unknown))} of a WebSocket API's {resource.type} is not played on this machine"
        raise TemplateError(text).at(resource.logical_id)


def _selection(api: Resource) -> tuple[str, ...]:
    expression = str(api.properties.get("RouteSelectionExpression", ""))
    found = _SELECTION.fullmatch(expression)
    if found is None:
        text = f"RouteSelectionExpression {expression!r}: $request.body.<field> is what is played on this machine"
        raise TemplateError(text).at(api.logical_id)
    return tuple((found[1] or found[2]).strip(".").split("."))


def _stage(stages: list[Resource]) -> Mapping[str, Any]:
    if len(stages) != 1:
        raise TemplateError(f"a WebSocket API has one stage on this machine, not {len(stages)}")
    (stage,) = stages
    settings = stage.properties
    if settings["StageName"] == "$default":
        raise TemplateError("the stage of a WebSocket API needs a name").at(stage.logical_id)
    if not settings.get("AutoDeploy") and not settings.get("DeploymentId"):
        raise TemplateError("the stage has neither AutoDeploy nor a DeploymentId: nothing is there").at(
            stage.logical_id
        )
    for limits in (settings.get("DefaultRouteSettings", {}), *settings.get("RouteSettings", {}).values()):
        if set(limits) - _THROTTLES:
            unknown = ", ".join(sorted(set(limits) - _THROTTLES))
            raise TemplateError(f"{unknown} of a stage is not played on this machine").at(stage.logical_id)
    return settings


def _route(route: Resource, integrations: Mapping[str, Resource]) -> Route:
    properties = route.properties
    key, authorization = properties["RouteKey"], properties.get("AuthorizationType", "NONE")
    if key != CONNECT and authorization != "NONE":
        raise TemplateError(f"only {CONNECT} may ask for authorization, not {key}").at(route.logical_id)
    if authorization not in ("NONE", "AWS_IAM", "CUSTOM"):
        raise TemplateError(f"a WebSocket API has no authorization {authorization}").at(route.logical_id)
    integration = integrations.get(str(properties.get("Target", "")).rpartition("/")[2])
    if integration is None:
        raise TemplateError(f"{key} leads to no integration of its API").at(route.logical_id)
    return Route(key, _lambda(integration), _timeout_s(integration), route.logical_id)


def _lambda(integration: Resource) -> str:
    properties = integration.properties
    if properties["IntegrationType"] != "AWS_PROXY" or properties.get("PayloadFormatVersion", "1.0") != "1.0":
        text = "a WebSocket API's integrations are AWS_PROXY of a function, in format 1.0, on this machine"
        raise TemplateError(text).at(integration.logical_id)
    return _function(integration, "IntegrationUri")


def _function(resource: Resource, name: str) -> str:
    uri = str(resource.properties.get(name, ""))
    arn = uri.rpartition("/functions/")[2].removesuffix("/invocations")
    if ":lambda:path/" not in uri or not arn.startswith("arn:"):
        raise TemplateError(f"{name} {uri!r} invokes no function").at(resource.logical_id)
    return arn


def _timeout_s(integration: Resource) -> float:
    seconds = float(integration.properties.get("TimeoutInMillis", LONGEST_S * 1000)) / 1000
    if not 0.05 <= seconds <= LONGEST_S:
        raise TemplateError("TimeoutInMillis must be between 50 and 29000").at(integration.logical_id)
    return seconds


def _authorizer(connect: Resource | None, authorizers: list[Resource]) -> Authorizer:
    assert connect is not None
    wanted = connect.properties.get("AuthorizerId")
    found = next((one for one in authorizers if one.ref == wanted), None)
    if found is None:
        raise TemplateError(f"{CONNECT} has no authorizer of its API").at(connect.logical_id)
    if found.properties["AuthorizerType"] != "REQUEST":
        raise TemplateError("a WebSocket API has authorizers of the type REQUEST only").at(found.logical_id)
    sources = found.properties.get("IdentitySource", [])
    matches = [_IDENTITY.fullmatch(str(source)) for source in sources]
    if None in matches:
        text = f"IdentitySource {sources}: route.request.querystring.x and .header.x are played on this machine"
        raise TemplateError(text).at(found.logical_id)
    identity = tuple((one[1], one[2]) for one in matches if one is not None)
    return Authorizer(found.ref, _function(found, "AuthorizerUri"), identity, found.logical_id)


def _selected(text: str, path: tuple[str, ...]) -> str | None:
    """The field's value as a route key; None for what is no JSON, or has no such field, or a structure there."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else None
