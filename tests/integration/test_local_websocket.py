"""The WebSocket API as API Gateway plays it: who may connect, what becomes of frames, how connections end."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from local.runtime import Runtime
from tests.integration.local_socket_toys import address, client, end_of, heard, may_manage, place_of, refused, sockets
from tests.integration.local_toys import Toy, eventually

DOOR = """
    TOLD = {"tenant": "acme", "number": 7, "share": 0.5, "flag": True}
    def handler(event, context):
        do = event["queryStringParameters"]["ticket"]
        arn = event["methodArn"]
        if do == "raise":
            raise ValueError("no")
        if do == "unauthorized":
            raise Exception("Unauthorized")
        statement = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": arn}
        if do == "deny":
            statement["Effect"] = "Deny"
        if do == "other":
            statement["Resource"] = arn.replace("$connect", "$disconnect")
        if do == "wide":
            statement.update(Action="execute-api:*", Resource=[arn.rsplit("/", 1)[0] + "/*"])
        answer = {
            "principalId": "me", "context": dict(TOLD, asked=repr(sorted(event)), of=event["type"]),
            "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        }
        if do == "nobody":
            del answer["principalId"]
        if do == "list":
            answer["context"] = {"jobs": ["a"]}
        if do == "large":
            answer["context"] = {"text": "x" * 8200}
        if do == "nothing":
            return None
        return answer
"""
ECHO = """
    import json, os, time
    import boto3
    api = boto3.client("apigatewaymanagementapi")
    def handler(event, context):
        about = event["requestContext"]
        query = event.get("queryStringParameters") or {}
        if about["eventType"] == "CONNECT":
            do = query.get("do", "200")
            if do == "raise":
                raise ValueError
            if do == "post":
                try:
                    api.post_to_connection(ConnectionId=about["connectionId"], Data=b"{}")
                    return {"statusCode": 599}
                except api.exceptions.GoneException:
                    return {"statusCode": 418}
            if do == "none":
                return None
            if do == "protocol":
                return {"statusCode": 200, "headers": {"Sec-WebSocket-Protocol": "second"}}
            return {"statusCode": int(do), "body": "said"}
        if about["eventType"] == "DISCONNECT":
            return {"statusCode": 200}
        say = json.loads(event["body"]) if event["body"].startswith("{") else {}
        if say.get("do") == "raise":
            raise ValueError
        if say.get("do") == "500":
            return {"statusCode": 500, "body": "nobody sees it"}
        if say.get("do") == "none":
            return None
        while "until" in say and not os.path.exists(say["until"]):
            time.sleep(0.02)
        told = {"route": about["routeKey"], "n": say.get("n"), "size": len(event["body"])}
        if say.get("do") == "event":
            told = event
        if say.get("do") == "size":
            del told["n"]
        api.post_to_connection(ConnectionId=about["connectionId"], Data=json.dumps(told).encode())
        return {"statusCode": 200, "body": "nobody sees it"}
"""
ROUTES = {"$connect": "echo", "$disconnect": "echo", "$default": "echo", "watch": "echo", "slow": "echo"}


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    toy = Toy(tmp_path_factory.mktemp("sockets"))
    toy.function("echo", ECHO, environment=address())
    toy.function("door", DOOR)
    slow = {"RouteSettings": {"slow": {"ThrottlingRateLimit": 0.01, "ThrottlingBurstLimit": 1}}}
    sockets(toy, ROUTES, authorizer="door", stage=slow)
    may_manage(toy)
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        yield runtime


@pytest.fixture
def link(runtime: Runtime) -> Iterator[ClientConnection]:
    with client(runtime, "?ticket=yes") as link:
        yield link


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that `until` waits for."""
    return tmp_path / "open"


@pytest.fixture(autouse=True)
def _quiet(runtime: Runtime) -> Iterator[None]:
    runtime.functions.history.clear()
    yield
    eventually(lambda: runtime.connections.quiet)


def say(link: ClientConnection, **told: Any) -> Any:
    link.send(json.dumps(told))
    return heard(link)


def ran(runtime: Runtime, role: str) -> int:
    return sum(one.function == role for one in list(runtime.functions.history))


# --- who may connect -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ticket", "status", "words"),
    [
        ("deny", 403, "Forbidden"),
        ("other", 403, "Forbidden"),
        ("unauthorized", 401, "Unauthorized"),
        ("raise", 500, "Internal server error"),
        ("nobody", 500, "Internal server error"),
        ("list", 500, "Internal server error"),
        ("large", 500, "Internal server error"),
        ("nothing", 500, "Internal server error"),
    ],
)
def test_authorizer_decides_by_a_policy_that_counts(runtime, ticket, status, words):
    runtime.functions.history.clear()
    got, body = refused(runtime, f"?ticket={ticket}")
    assert (got, body["message"], set(body)) == (status, words, {"message", "connectionId", "requestId"})
    assert ran(runtime, "echo") == 0
    assert runtime.connections.ids == []


@pytest.mark.parametrize("query", ["", "?ticket=", "?other=1"])
def test_identity_source_that_is_missing_is_401_and_nobody_is_asked(runtime, query):
    runtime.functions.history.clear()
    assert refused(runtime, query)[0] == 401
    assert ran(runtime, "door") == 0


def test_authorizer_is_asked_each_time(runtime):
    runtime.functions.history.clear()
    for _ in range(2):
        client(runtime, "?ticket=wide").close()
    assert ran(runtime, "door") == 2


@pytest.mark.parametrize(
    ("do", "status"), [("403", 403), ("500", 500), ("302", 302), ("raise", 502), ("none", 502), ("post", 418)]
)
def test_connects_function_must_answer_2xx(runtime, do, status):
    """`post`: nobody can post to a connection that is not there yet."""
    with pytest.raises(InvalidStatus, match=f"HTTP {status}"):
        client(runtime, f"?ticket=yes&do={do}")
    assert runtime.connections.ids == []


@pytest.mark.parametrize(
    ("path", "status"), [("/other", 403), ("/live/more", 403), ("", 403), ("/live?ticket=" + "x" * 4096, 414)]
)
def test_only_the_stage_is_there(runtime, path, status):
    with pytest.raises(InvalidStatus, match=f"HTTP {status}"):
        connect(f"{runtime.websocket.removesuffix('/live')}{path}", legacy=True, open_timeout=60)


def test_plain_request_is_told_to_upgrade_and_starts_nothing(runtime):
    runtime.functions.history.clear()
    plain = http.client.HTTPConnection(*place_of(runtime))
    plain.request("GET", "/live?ticket=yes")
    assert plain.getresponse().status == 426
    plain.close()
    assert not runtime.functions.history


def test_events_have_the_shapes_of_a_websocket_api(runtime, link):
    event = say(link, do="event")
    context = event["requestContext"]
    assert set(event) == {"requestContext", "body", "isBase64Encoded"}
    assert json.loads(event["body"]) == {"do": "event"}
    assert (context["routeKey"], context["eventType"], context["stage"]) == ("$default", "MESSAGE", "live")
    assert [context["connectionId"]] == runtime.connections.ids
    told = context["authorizer"]
    assert (told["principalId"], told["tenant"]) == ("me", "acme")
    assert (told["number"], told["share"], told["flag"]) == ("7", "0.5", "true")  # every value is text
    assert told["of"] == "REQUEST"
    for name in ("methodArn", "headers", "multiValueHeaders", "queryStringParameters", "requestContext", "type"):
        assert repr(name) in told["asked"]
    assert {"messageId", "requestId", "extendedRequestId", "connectedAt", "requestTimeEpoch"} <= set(context)
    assert context["domainName"] == f"{context['apiId']}.execute-api.us-east-1.amazonaws.com"
    assert set(context["identity"]) == {"sourceIp", "userAgent"}


def test_protocol_that_connects_function_chose_is_told_to_the_client(runtime):
    with client(runtime, "?ticket=yes&do=protocol", subprotocols=["first", "second"]) as link:
        assert link.subprotocol == "second"


# --- frames ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "route"),
    [
        ('{"action": "watch"}', "watch"),
        ('{"action": "nothing"}', "$default"),
        ('{"action": ["watch"]}', "$default"),
        ('{"action": null}', "$default"),
        ('{"action": "$disconnect"}', "$default"),
        ('{"action": "$connect"}', "$default"),
        ("{}", "$default"),
        ("watch", "$default"),
        ('"watch"', "$default"),
        ("[" * 2000, "$default"),
        ("", "$default"),
    ],
)
def test_route_is_selected_by_the_expression(link, text, route):
    link.send(text)
    assert heard(link)["route"] == route


@pytest.mark.parametrize("do", ["raise", "none"])
def test_function_that_fails_is_an_internal_server_error_and_the_connection_stays(runtime, link, do):
    answer = say(link, do=do)
    assert answer == {
        "message": "Internal server error",
        "connectionId": runtime.connections.ids[0],
        "requestId": answer["requestId"],
    }
    assert say(link, n=1)["n"] == 1


def test_status_and_body_of_a_message_go_nowhere(link):
    link.send('{"do": "500"}')
    with pytest.raises(TimeoutError):
        link.recv(0.3)


def test_messages_of_a_connection_do_not_wait_for_one_another(link, gate):
    link.send(json.dumps({"until": str(gate), "n": 1}))
    link.send('{"n": 2}')
    assert heard(link)["n"] == 2
    gate.touch()
    assert heard(link)["n"] == 1


def test_stage_throttles_messages(link):
    assert say(link, action="slow")["route"] == "slow"
    assert say(link, action="slow")["message"] == "Too Many Requests"


def test_function_that_is_paused_is_an_internal_server_error(runtime, link):
    runtime.functions.pause("echo")
    try:
        assert say(link, n=1)["message"] == "Internal server error"
    finally:
        runtime.functions.resume("echo")


def test_message_up_to_128_kb_in_frames_up_to_32_kb(link):
    whole = '{"do": "size", "n": "' + "x" * (128 * 1024 - 23) + '"}'
    link.send([whole[at : at + 32 * 1024] for at in range(0, len(whole), 32 * 1024)])
    assert heard(link)["size"] == 128 * 1024


@pytest.mark.parametrize(
    "message", ["x" * (32 * 1024 + 1), ["x" * (32 * 1024)] * 4 + ["x"]], ids=["large frame", "large message"]
)
def test_what_is_larger_closes_the_connection_with_1009(runtime, link, message):
    with suppress(ConnectionClosed):
        link.send(message)
    assert end_of(link) == 1009
    eventually(lambda: not runtime.connections.ids)


def test_binary_frame_closes_the_connection_with_1003(link):
    link.send(b"bytes")
    assert end_of(link) == 1003


# --- the end ---------------------------------------------------------------------------------------------


def skip(runtime: Runtime, seconds: float) -> None:
    """A skip ends what is running: what has answered has not ended yet."""
    with runtime.functions.at_rest(60):
        runtime.clock.advance(seconds)


@pytest.fixture
def ends(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Code and reason of each $disconnect that the function is told of."""
    heard: list[tuple[int, str]] = []
    invoke = runtime.functions.invoke

    def listening(role: str, event: Any, **more: Any) -> Any:
        about = event["requestContext"]
        if about["eventType"] == "DISCONNECT":
            assert (about["routeKey"], about["authorizer"]["tenant"], "body" in event) == ("$disconnect", "acme", False)
            heard.append((about["disconnectStatusCode"], about["disconnectReason"]))
        return invoke(role, event, **more)

    monkeypatch.setattr(runtime.functions, "invoke", listening)
    return heard


@pytest.mark.parametrize(("code", "told"), [(1000, 1000), (4000, 4000), (None, 1006)])
def test_function_hears_how_a_connection_has_ended(runtime, ends, code, told):
    link = client(runtime, "?ticket=yes")
    if code is None:
        link.socket.shutdown(socket.SHUT_RDWR)
    link.close(code or 1000, "enough")
    assert eventually(lambda: ends) == [(told, "enough" if code else "")]
    assert runtime.connections.ids == []


def test_client_that_leaves_before_it_is_let_in_has_been_connected_and_disconnected(runtime, ends, gate):
    runtime.functions.set_concurrency("echo", 1)
    try:
        with client(runtime, "?ticket=yes") as busy, socket.create_connection(place_of(runtime)) as early:
            busy.send(json.dumps({"until": str(gate)}))
            eventually(lambda: runtime.functions.running("echo"))
            early.sendall(
                b"GET /live?ticket=yes HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            eventually(lambda: ran(runtime, "door") >= 2)
            early.shutdown(socket.SHUT_RDWR)
            gate.touch()
            heard(busy)
            eventually(lambda: ends)
            assert ends == [(1006, "")]
    finally:
        runtime.functions.set_concurrency("echo", None)


def test_idle_for_ten_minutes_closes_and_two_hours_close_in_any_case(runtime, link):
    say(link, n=0)
    skip(runtime, 400)
    assert say(link, n=1)["n"] == 1
    skip(runtime, 601)
    assert end_of(link) == 1001
    with client(runtime, "?ticket=yes") as second:
        for _ in range(17):
            skip(runtime, 400)
            assert say(second, n=1)["n"] == 1
        skip(runtime, 401)
        assert end_of(second) == 1001


def test_pings_do_not_keep_a_connection(runtime, link):
    skip(runtime, 400)
    assert link.ping().wait(60)
    skip(runtime, 201)
    assert end_of(link) == 1001
