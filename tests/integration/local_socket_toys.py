"""A toy WebSocket API in the form in which the CDK's `WebSocketApi` is synthesized, and clients for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from local.runtime import Runtime
from tests.integration.local_toys import Toy

ADDRESS = "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"
_TARGET = "arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/%s/invocations"
_SOURCE = "arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${Sockets}/%s"


def sockets(
    toy: Toy, routes: Mapping[str, str], *, authorizer: str = "", api: Mapping[str, Any] | None = None,
    stage: Mapping[str, Any] | None = None, identity: tuple[str, ...] = ("route.request.querystring.ticket",),
) -> None:  # fmt: skip
    """`routes`: route key → role; `authorizer`: the role of who is asked on $connect."""
    toy.resources["Sockets"] = {
        "Type": "AWS::ApiGatewayV2::Api",
        "Properties": {
            "Name": "toy",
            "ProtocolType": "WEBSOCKET",
            "RouteSelectionExpression": "$request.body.action",
            **(api or {}),
        },
    }
    toy.resources["Live"] = _part("Stage", StageName="live", AutoDeploy=True, **(stage or {}))
    for number, (key, role) in enumerate(routes.items()):
        guarded = {"AuthorizationType": "CUSTOM", "AuthorizerId": {"Ref": "Guard"}}
        open_ = {"AuthorizationType": "NONE"}
        toy.resources[f"Calls{number}"] = _permission(role, f"*{key}")
        toy.resources[f"Socket{number}"] = _part("Integration", IntegrationType="AWS_PROXY", IntegrationUri=_uri(role))
        toy.resources[f"Way{number}"] = _part(
            "Route",
            RouteKey=key,
            Target={"Fn::Join": ["", ["integrations/", {"Ref": f"Socket{number}"}]]},
            **(guarded if authorizer and key == "$connect" else open_),
        )
    if authorizer:
        toy.resources["Guard"] = _part(
            "Authorizer",
            AuthorizerType="REQUEST",
            AuthorizerUri=_uri(authorizer),
            IdentitySource=list(identity),
            Name="door",
        )
        toy.resources["Asks"] = _permission(authorizer, "authorizers/${Guard}")


def address() -> dict[str, Any]:
    """What a function's environment has as the address of the API's @connections."""
    return {ADDRESS: {"Fn::Sub": "https://${Sockets}.execute-api.${AWS::Region}.${AWS::URLSuffix}/live"}}


def may_manage(toy: Toy, place: str = "live/POST/@connections/*") -> None:
    """The functions' role may do that with connections."""
    statements = toy.resources["Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    resource = {"Fn::Sub": _SOURCE % place}
    statements.append({"Effect": "Allow", "Action": "execute-api:ManageConnections", "Resource": resource})


def client(runtime: Runtime, query: str = "", **more: Any) -> ClientConnection:
    """A connection. InvalidStatus for one that is refused."""
    assert runtime.websocket is not None
    patience = {"open_timeout": 60, "close_timeout": 1}
    more = {"compression": None, "ping_interval": None, "legacy": True, **patience, **more}
    made: ClientConnection = connect(runtime.websocket + query, **more)
    return made


def refused(runtime: Runtime, query: str = "", **more: Any) -> tuple[int, Any]:
    """Status and body of an upgrade that is refused."""
    try:
        client(runtime, query, **more).close()
    except InvalidStatus as error:
        return error.response.status_code, json.loads(error.response.body or b"null")
    raise AssertionError("it was let in")


def place_of(runtime: Runtime) -> tuple[str, int]:
    """Where the WebSocket API listens."""
    place = urlsplit(runtime.websocket or "")
    assert place.hostname
    assert place.port
    return place.hostname, place.port


def heard(socket: ClientConnection, timeout_s: float = 60.0) -> Any:
    """The next message, parsed."""
    return json.loads(socket.recv(timeout_s))


def end_of(socket: ClientConnection) -> int:
    """The code that the connection is closed with."""
    try:
        while True:
            socket.recv(60)
    except ConnectionClosed as closed:
        return 1006 if closed.rcvd is None else closed.rcvd.code


@contextmanager
def management(url: str | None, key: str = "developer") -> Iterator[Any]:
    """A client of the @connections API there."""
    assert url is not None
    assert urlsplit(url).hostname == "127.0.0.1"
    create: Any = boto3.client
    made = create(
        "apigatewaymanagementapi",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}, proxies={}),
    )
    try:
        yield made
    finally:
        made.close()


def _part(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::ApiGatewayV2::{kind}", "Properties": {"ApiId": {"Ref": "Sockets"}, **properties}}


def _uri(role: str) -> dict[str, Any]:
    return {"Fn::Sub": _TARGET % f"${{{role.title()}.Arn}}"}


def _permission(role: str, place: str) -> dict[str, Any]:
    return {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "Action": "lambda:InvokeFunction",
            "FunctionName": {"Fn::GetAtt": [role.title(), "Arn"]},
            "Principal": "apigateway.amazonaws.com",
            "SourceArn": {"Fn::Sub": _SOURCE % place},
        },
    }
