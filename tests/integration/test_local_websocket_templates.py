"""Which WebSocket APIs are played, and which are refused with their logical id; how the gateway starts and ends."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from local.runtime import Runtime
from local.sockets.definition import Definition, read
from local.stack.errors import TemplateError
from local.stack.provision import provision
from local.stack.template import load
from tests.integration.local_socket_toys import client, place_of, sockets
from tests.integration.local_toys import Toy, eventually, request

YES = "def handler(event, context):\n    return {'statusCode': 200}\n"
HELD = "import time\ndef handler(event, context):\n    time.sleep(60)\n"
ROUTES = {"$connect": "yes", "$disconnect": "yes", "$default": "yes"}


def toy_of(folder: Path, authorizer: str = "yes", **more: Any) -> Toy:
    toy = Toy(folder)
    toy.function("yes", YES)
    sockets(toy, ROUTES, authorizer=authorizer, **more)
    return toy


def start(toy: Toy) -> Runtime:
    return Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None)


def read_from(toy: Toy) -> Definition | None:
    """What the runtime reads before it starts anything."""
    return read(provision(load(toy.write()), None))


@pytest.mark.parametrize(
    ("logical_id", "changes", "words"),
    [
        ("Sockets", {"RouteSelectionExpression": "$request.header.x"}, "RouteSelectionExpression"),
        ("Sockets", {"RouteSelectionExpression": None}, "RouteSelectionExpression"),
        ("Sockets", {"ApiKeySelectionExpression": "$request.header.x-api-key"}, "ApiKeySelectionExpression"),
        ("Live", {"StageName": "$default"}, "needs a name"),
        ("Live", {"AutoDeploy": None}, "DeploymentId"),
        ("Live", {"AccessLogSettings": {"Format": "x"}}, "AccessLogSettings"),
        ("Live", {"DefaultRouteSettings": {"LoggingLevel": "INFO"}}, "LoggingLevel"),
        ("Live", {"StageVariables": {"a": "b"}}, "StageVariables"),
        ("Way0", {"AuthorizationType": "JWT"}, "JWT"),
        ("Way0", {"AuthorizerId": "other"}, "no authorizer"),
        ("Way0", {"Target": "integrations/none"}, "no integration"),
        ("Way0", {"ApiKeyRequired": True}, "ApiKeyRequired"),
        ("Way2", {"AuthorizationType": "AWS_IAM"}, r"only \$connect"),
        ("Way2", {"RouteResponseSelectionExpression": "$default"}, "RouteResponseSelectionExpression"),
        ("Socket0", {"IntegrationType": "HTTP_PROXY"}, "AWS_PROXY"),
        ("Socket0", {"PayloadFormatVersion": "2.0"}, "1.0"),
        ("Socket0", {"IntegrationUri": "https://example.com"}, "invokes no function"),
        ("Socket0", {"TimeoutInMillis": 30_000}, "TimeoutInMillis"),
        ("Socket0", {"CredentialsArn": "arn:aws:iam::1:role/r"}, "CredentialsArn"),
        ("Guard", {"AuthorizerType": "JWT"}, "REQUEST"),
        ("Guard", {"IdentitySource": ["stageVariables.x"]}, "IdentitySource"),
        ("Guard", {"AuthorizerResultTtlInSeconds": 300}, "AuthorizerResultTtlInSeconds"),
    ],
)
def test_what_is_not_played_or_not_there_on_aws_is_refused(tmp_path, logical_id, changes, words):
    toy = toy_of(tmp_path)
    properties = {**toy.resources[logical_id]["Properties"], **changes}
    toy.resources[logical_id]["Properties"] = {name: one for name, one in properties.items() if one is not None}
    with pytest.raises(TemplateError, match=rf"\[{logical_id}\].*{words}"):
        read_from(toy)


@pytest.mark.parametrize(("permission", "at"), [("Calls0", "Way0"), ("Calls2", "Way2"), ("Asks", "Guard")])
def test_api_that_may_not_invoke_is_refused(tmp_path, permission, at):
    toy = toy_of(tmp_path)
    source = toy.resources[permission]["Properties"]["SourceArn"]
    source["Fn::Sub"] = source["Fn::Sub"].rpartition("/")[0] + "/other"
    with pytest.raises(TemplateError, match=rf"\[{at}\] API Gateway may not invoke yes"):
        start(toy).start()


def test_what_the_cdk_writes_is_read(tmp_path):
    definition = read_from(toy_of(tmp_path))
    assert definition is not None
    assert (definition.stage, definition.selection, definition.authorization) == ("live", ("action",), "CUSTOM")
    assert set(definition.routes) == set(ROUTES)
    assert definition.authorizer is not None
    assert definition.authorizer.identity == (("querystring", "ticket"),)
    assert definition.arn("$connect").endswith(f":{definition.api_id}/live/$connect")


def test_throttle_of_a_route_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TemplateError, match="no such route"):
        start(toy_of(tmp_path, stage={"RouteSettings": {"other": {"ThrottlingRateLimit": 1}}})).start()


def test_second_api_and_second_stage_are_refused(tmp_path):
    toy = toy_of(tmp_path)
    toy.resources["Other"] = toy.resources["Live"]
    with pytest.raises(TemplateError, match="one stage"):
        read_from(toy)
    toy.resources["Other"] = toy.resources["Sockets"]
    with pytest.raises(TemplateError, match="more than one WebSocket API"):
        start(toy).start()


def test_api_with_a_deployment_an_identity_by_iam_and_a_nested_selection(tmp_path, monkeypatch):
    toy = toy_of(tmp_path, "", api={"RouteSelectionExpression": "${request.body.to.do}"})
    toy.resources["Deployed"] = {
        "Type": "AWS::ApiGatewayV2::Deployment",
        "Properties": {"ApiId": {"Ref": "Sockets"}},
        "DependsOn": ["Way0"],
    }
    stage = toy.resources["Live"]["Properties"]
    del stage["AutoDeploy"]
    stage["DeploymentId"] = {"Ref": "Deployed"}
    toy.resources["Way0"]["Properties"]["AuthorizationType"] = "AWS_IAM"
    seen: list[Any] = []
    with start(toy) as runtime:
        invoke = runtime.functions.invoke

        def seeing(role: str, event: Any, **more: Any) -> Any:
            seen.append(event)
            return invoke(role, event, **more)

        monkeypatch.setattr(runtime.functions, "invoke", seeing)
        with client(runtime, additional_headers={"X-Local-Tenant": "acme"}) as link:
            link.send('{"to": {"do": "$default"}}')
            eventually(lambda: len(seen) == 2)
    assert seen[0]["requestContext"]["identity"]["accountId"] == "acme"
    assert "X-Local-Tenant" not in seen[0]["headers"]
    assert seen[0]["headers"]["Upgrade"] == "websocket"
    assert seen[0]["multiValueHeaders"]["Sec-WebSocket-Version"] == ["13"]
    assert "queryStringParameters" not in seen[0]


def test_two_apis_of_two_kinds_live_side_by_side(tmp_path):
    toy = toy_of(tmp_path, "")
    toy.api({"GET /a": "yes"})
    toy.resources["Yes"]["Properties"]["Environment"]["Variables"]["URL"] = {"Fn::GetAtt": ["Sockets", "ApiEndpoint"]}
    with start(toy) as runtime:
        assert request("GET", f"{runtime.api}/a").status == 200
        assert runtime.functions.definition("yes").environment["URL"] == str(runtime.websocket).removesuffix("/live")
        client(runtime).close()


def test_stack_without_a_websocket_api_has_no_address(tmp_path):
    toy = Toy(tmp_path)
    toy.function("yes", YES)
    with start(toy) as runtime:
        assert (runtime.websocket, runtime.management, runtime.connections.ids) == (None, None, [])


def test_runtime_ends_with_connections_in_every_state_and_leaves_no_thread(tmp_path):
    """Open; being let in; silent since it connected; lost."""
    before = set(threading.enumerate())
    toy = toy_of(tmp_path, "")
    toy.function("held", HELD, Timeout=30)
    toy.resources["Socket2"]["Properties"]["IntegrationUri"]["Fn::Sub"] = toy.resources["Socket0"]["Properties"][
        "IntegrationUri"
    ]["Fn::Sub"].replace("Yes", "Held")
    toy.resources["Calls2"]["Properties"]["FunctionName"] = {"Fn::GetAtt": ["Held", "Arn"]}
    runtime = start(toy)
    runtime.start()
    silent = socket.create_connection(place_of(runtime))
    links = [client(runtime) for _ in range(3)]
    links[0].send("{}")
    eventually(lambda: runtime.functions.running("held"))
    runtime.connections.lose(runtime.connections.ids[1])
    runtime.stop()
    for link in links:
        link.close()
    silent.close()
    eventually(lambda: not [one for one in set(threading.enumerate()) - before if one.is_alive()])
