"""A toy stack for the tests of the local runtime's compute side: a template of its own, handlers in a folder."""

from __future__ import annotations

import json
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Resources = dict[str, dict[str, Any]]
ALLOWED = ["sqs:*", "dynamodb:*", "sns:*", "s3:*", "lambda:*", "logs:*"]


class Toy:
    """Collects resources and handlers, and writes them where the runtime looks for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = folder / "code"
        (self.code / "handlers").mkdir(parents=True)
        self.resources: Resources = {
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []},
                    "Policies": [{"PolicyName": "all", "PolicyDocument": _everything()}],
                },
            }
        }

    def function(
        self, role: str, source: str, *, environment: Mapping[str, Any] | None = None, **properties: Any
    ) -> None:
        """A function whose handler is the `handler` of `source`."""
        (self.code / "handlers" / f"{role}.py").write_text(textwrap.dedent(source))
        self.resources[role.title()] = {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": f"handlers.{role}.handler",
                "Code": {"S3Bucket": "assets", "S3Key": "none.zip"},
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Timeout": 30,
                "MemorySize": 256,
                "Environment": {"Variables": dict(environment or {})},
                **properties,
            },
        }

    def queue(self, logical_id: str, **properties: Any) -> None:
        self.resources[logical_id] = {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30, **properties}}

    def table(self, logical_id: str) -> None:
        self.resources[logical_id] = {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
                "StreamSpecification": {"StreamViewType": "NEW_AND_OLD_IMAGES"},
            },
        }

    def mapping(self, role: str, source: str, attribute: str = "Arn", **properties: Any) -> None:
        self.resources[f"{role.title()}{source}"] = {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {
                "FunctionName": {"Ref": role.title()},
                "EventSourceArn": {"Fn::GetAtt": [source, attribute]},
                **properties,
            },
        }

    def schedule(self, role: str, expression: str, event: Mapping[str, Any], logical_id: str = "") -> None:
        self.resources[logical_id or f"{role.title()}Schedule"] = {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {
                "ScheduleExpression": expression,
                "FlexibleTimeWindow": {"Mode": "OFF"},
                "Target": {
                    "Arn": {"Fn::GetAtt": [role.title(), "Arn"]},
                    "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
                    "Input": json.dumps(event),
                },
            },
        }

    def api(self, routes: Mapping[str, str], *, stage: Mapping[str, Any] | None = None, **properties: Any) -> None:
        """`routes`: route key → role; those with a trailing `!` after the role ask for IAM."""
        self.resources["Api"] = {
            "Type": "AWS::ApiGatewayV2::Api",
            "Properties": {"ProtocolType": "HTTP", "Name": "toy", **properties},
        }
        self.resources["Stage"] = {
            "Type": "AWS::ApiGatewayV2::Stage",
            "Properties": {"ApiId": {"Ref": "Api"}, "StageName": "$default", "AutoDeploy": True, **(stage or {})},
        }
        for number, (key, target) in enumerate(routes.items()):
            role, iam = target.removesuffix("!"), target.endswith("!")
            self.resources[f"Permission{number}"] = {
                "Type": "AWS::Lambda::Permission",
                "Properties": {
                    "Action": "lambda:InvokeFunction",
                    "FunctionName": {"Fn::GetAtt": [role.title(), "Arn"]},
                    "Principal": "apigateway.amazonaws.com",
                    "SourceArn": {"Fn::Sub": "arn:aws:execute-api:us-east-1:123456789012:${Api}/*/*" + _path(key)},
                },
            }
            self.resources[f"Integration{number}"] = {
                "Type": "AWS::ApiGatewayV2::Integration",
                "Properties": {
                    "ApiId": {"Ref": "Api"},
                    "IntegrationType": "AWS_PROXY",
                    "PayloadFormatVersion": "2.0",
                    "IntegrationUri": {"Fn::GetAtt": [role.title(), "Arn"]},
                },
            }
            self.resources[f"Route{number}"] = {
                "Type": "AWS::ApiGatewayV2::Route",
                "Properties": {
                    "ApiId": {"Ref": "Api"},
                    "RouteKey": key,
                    "Target": {"Fn::Join": ["", ["integrations/", {"Ref": f"Integration{number}"}]]},
                    "AuthorizationType": "AWS_IAM" if iam else "NONE",
                },
            }

    def gateway_role(self, logical_id: str, *queues: str) -> None:
        """A role that API Gateway may assume, and that may send to these queues."""
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "apigateway.amazonaws.com"}}
        arns = [{"Fn::GetAtt": [queue, "Arn"]} for queue in queues]
        sends = [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": arns}] if arns else []
        self.resources[logical_id] = {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]},
                "Policies": [{"PolicyName": "send", "PolicyDocument": {"Version": "2012-10-17", "Statement": sends}}],
            },
        }

    def direct(self, key: str, role: str, parameters: Mapping[str, Any], **changes: Any) -> None:
        """A route of `api` that leads into a queue; a change to None takes a property away."""
        number = sum(one["Type"] == "AWS::ApiGatewayV2::Route" for one in self.resources.values())
        properties = {
            "ApiId": {"Ref": "Api"},
            "IntegrationType": "AWS_PROXY",
            "IntegrationSubtype": "SQS-SendMessage",
            "PayloadFormatVersion": "1.0",
            "CredentialsArn": {"Fn::GetAtt": [role, "Arn"]},
            "RequestParameters": dict(parameters),
            **changes,
        }
        self.resources[f"Direct{number}"] = {
            "Type": "AWS::ApiGatewayV2::Integration",
            "Properties": {name: value for name, value in properties.items() if value is not None},
        }
        self.resources[f"DirectRoute{number}"] = {
            "Type": "AWS::ApiGatewayV2::Route",
            "Properties": {
                "ApiId": {"Ref": "Api"},
                "RouteKey": key,
                "Target": {"Fn::Join": ["", ["integrations/", {"Ref": f"Direct{number}"}]]},
                "AuthorizationType": "NONE",
            },
        }

    def write(self) -> Path:
        """The cloud assembly's folder."""
        out = self.folder / "cdk.out"
        out.mkdir(exist_ok=True)
        artifact = {
            "type": "aws:cloudformation:stack",
            "environment": "aws://unknown-account/unknown-region",
            "properties": {"templateFile": "toy.template.json", "stackName": "toy"},
        }
        (out / "manifest.json").write_text(json.dumps({"version": "1", "artifacts": {"toy": artifact}}))
        outputs = {
            name: {"Value": {"Ref": name}}
            for name, resource in self.resources.items()
            if resource["Type"] in ("AWS::SQS::Queue", "AWS::DynamoDB::Table")
        }
        (out / "toy.template.json").write_text(json.dumps({"Resources": self.resources, "Outputs": outputs}))
        return out


@dataclass(frozen=True)
class Reply:
    """What came back over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    method: str, url: str, body: bytes | Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """One HTTP request; an error status is a reply like any other."""
    data = json.dumps(body).encode() if isinstance(body, Mapping) else body
    sent = {"content-type": "application/json", **(headers or {})}
    asked = urllib.request.Request(url, data=data, method=method, headers=sent)
    try:
        with urllib.request.urlopen(asked, timeout=300) as answer:
            return Reply(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())


def eventually(look: Callable[[], T], timeout_s: float = 60.0) -> T:
    """The first true value of `look`; AssertionError after `timeout_s` real seconds."""
    end = time.monotonic() + timeout_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"still {found!r} after {timeout_s} s"
        time.sleep(0.02)


def _everything() -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ALLOWED, "Resource": "*"}]}


def _path(route_key: str) -> str:
    return route_key.partition(" ")[2]
