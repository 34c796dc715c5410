"""Resources that live in the template only: other parts of the runtime play them, or nothing here needs them."""

from __future__ import annotations

from collections.abc import Callable

from local.stack.kinds.kind import Kind, Made, Properties, Workbench


def _function(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("FunctionName") or bench.name(logical_id, 64)
    return Made(name, {"Arn": bench.arn("lambda", f"function:{name}")})


def _layer(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("LayerName") or bench.name(logical_id, 64)
    arn = bench.arn("lambda", f"layer:{name}:1")
    return Made(arn, {"LayerVersionArn": arn})


def _version(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    arn = bench.arn("lambda", f"function:{properties['FunctionName'].split(':')[-1]}:1")
    return Made(arn, {"Version": "1", "FunctionArn": arn})


def _alias(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    function = properties["FunctionName"].split(":")[-1]
    arn = bench.arn("lambda", f"function:{function}:{properties['Name']}")
    return Made(arn, {"AliasArn": arn})


def _mapping(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    uid = bench.uuid(logical_id)
    return Made(uid, {"Id": uid, "EventSourceMappingArn": bench.arn("lambda", f"event-source-mapping:{uid}")})


def _role(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("RoleName") or bench.name(logical_id, 64)
    path = properties.get("Path", "/")
    role_id = f"AROA{bench.uuid(logical_id).replace('-', '')[:17].upper()}"
    return Made(name, {"Arn": f"arn:aws:iam::{bench.account}:role{path}{name}", "RoleId": role_id})


def _managed_policy(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("ManagedPolicyName") or bench.name(logical_id, 128)
    arn = f"arn:aws:iam::{bench.account}:policy{properties.get('Path', '/')}{name}"
    return Made(arn, {"PolicyArn": arn})


def _api(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    uid = bench.uuid(logical_id).replace("-", "")[:10]
    sockets = properties.get("ProtocolType") == "WEBSOCKET"
    here = bench.socket_endpoint if sockets else bench.api_endpoint
    endpoint = here or f"{'wss' if sockets else 'https'}://{uid}.execute-api.{bench.region}.amazonaws.com"
    return Made(uid, {"ApiId": uid, "ApiEndpoint": endpoint})


def _stage(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    return Made(properties["StageName"])


def _schedule(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("Name") or bench.name(logical_id, 64)
    group = properties.get("GroupName", "default")
    return Made(name, {"Arn": bench.arn("scheduler", f"schedule/{group}/{name}")})


def _schedule_group(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("Name") or bench.name(logical_id, 64)
    return Made(name, {"Arn": bench.arn("scheduler", f"schedule-group/{name}")})


def _short_id(attribute: str | None = None) -> Callable[[Workbench, str, Properties], Made]:
    def make(bench: Workbench, logical_id: str, properties: Properties) -> Made:
        uid = bench.uuid(logical_id).replace("-", "")[:7]
        return Made(uid, {attribute: uid} if attribute else {})

    return make


def _key(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    uid = bench.uuid(logical_id)
    return Made(uid, {"KeyId": uid, "Arn": bench.arn("kms", f"key/{uid}")})


def _query_definition(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    uid = bench.uuid(logical_id)
    return Made(uid, {"QueryDefinitionId": uid})


def _named(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    return Made(bench.name(logical_id, 128))


_PLAYED_ELSEWHERE = {
    "AWS::ApiGatewayV2::Api": _api,
    "AWS::ApiGatewayV2::Authorizer": _short_id("AuthorizerId"),
    "AWS::ApiGatewayV2::Deployment": _short_id("DeploymentId"),
    "AWS::ApiGatewayV2::Integration": _short_id("IntegrationId"),
    "AWS::ApiGatewayV2::Route": _short_id("RouteId"),
    "AWS::ApiGatewayV2::Stage": _stage,
    "AWS::IAM::ManagedPolicy": _managed_policy,
    "AWS::IAM::Policy": _named,
    "AWS::IAM::Role": _role,
    "AWS::IAM::RolePolicy": _named,
    "AWS::Lambda::Alias": _alias,
    "AWS::Lambda::EventInvokeConfig": _short_id(),
    "AWS::Lambda::EventSourceMapping": _mapping,
    "AWS::Lambda::Function": _function,
    "AWS::Lambda::LayerVersion": _layer,
    "AWS::Lambda::Version": _version,
    "AWS::Scheduler::Schedule": _schedule,
    "AWS::Scheduler::ScheduleGroup": _schedule_group,
}

_NOT_NEEDED_HERE = {
    "AWS::CDK::Metadata": _named,  # CDK's usage statistics
    "AWS::CloudWatch::Dashboard": _named,  # moto draws nothing
    "AWS::KMS::Alias": _named,
    "AWS::KMS::Key": _key,  # nothing is encrypted at rest here
    "AWS::Lambda::Permission": _named,  # the runtime itself is the only one that invokes
    "AWS::Logs::QueryDefinition": _query_definition,  # moto has none
    "AWS::Logs::ResourcePolicy": _named,
    "Custom::S3AutoDeleteObjects": _named,  # everything is gone when the process ends
}

KINDS = tuple(Kind(name, make) for name, make in {**_PLAYED_ELSEWHERE, **_NOT_NEEDED_HERE}.items())
