"""The @connections API: posts to connections, who may do it, and what tests may do to connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from local.aws.uses import Names
from local.faults import Fault
from local.runtime import Runtime
from local.sockets.connection import FRAME_LIMIT_BYTES, fragments
from tests.integration.local_socket_toys import address, client, end_of, heard, management, may_manage, sockets
from tests.integration.local_toys import Toy, eventually, request

PUSH = """
    import boto3, os
    from botocore.config import Config

    def handler(event, context):
        if "requestContext" in event:
            return {"statusCode": 200}
        tries = Config(retries={"total_max_attempts": event.get("tries", 1)})
        api = boto3.client("apigatewaymanagementapi", config=tries)
        do = getattr(api, event.get("do", "post_to_connection"))
        more = {} if "do" in event else {"Data": event.get("data", "{}").encode()}
        told = {"code": "", "url": os.environ.get("AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI")}
        try:
            do(ConnectionId=event["to"], **more)
        except api.exceptions.ClientError as error:
            told["status"] = error.response["ResponseMetadata"]["HTTPStatusCode"]
            told["code"], told["text"] = (error.response["Error"][name] for name in ("Code", "Message"))
        return told
"""


ENOUGH = 800  # posts of 128 KB: more than any socket's buffers hold


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    toy = Toy(tmp_path_factory.mktemp("posts"))
    toy.function("push", PUSH, environment=address())
    elsewhere = {"AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI": "https://other.execute-api.us-east-1.amazonaws.com/live"}
    toy.function("astray", PUSH, environment=elsewhere)
    toy.function("lost", PUSH)
    sockets(toy, {"$connect": "push", "$disconnect": "push"})
    may_manage(toy)
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        yield runtime


@pytest.fixture
def link(runtime: Runtime) -> Iterator[ClientConnection]:
    with client(runtime) as link:
        yield link
    eventually(lambda: runtime.connections.quiet)
    runtime.connections.calm()
    runtime.faults.clear()


@pytest.fixture(scope="module")
def api(runtime: Runtime) -> Iterator[Any]:
    with management(runtime.management) as api:
        yield api


def its_id(runtime: Runtime) -> str:
    (found,) = runtime.connections.ids
    return found


def push(runtime: Runtime, role: str = "push", **event: Any) -> dict[str, Any]:
    outcome = runtime.functions.invoke(role, {"to": its_id(runtime), **event})
    assert outcome.ok, outcome.error
    return dict(outcome.result)


def control(runtime: Runtime, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = request(method, f"{runtime.api}/_local/{path}", body)
    return answer.json if answer.status == 200 else (answer.status, answer.json["message"])


# --- what it does --------------------------------------------------------------------------------------


def test_function_posts_by_the_address_of_its_template(runtime, link):
    told = push(runtime, data='{"n": 1}')
    assert (told["code"], told["url"]) == ("", runtime.management)
    assert heard(link) == {"n": 1}
    metered = [call for call in runtime.meter.calls() if call.service == "apigatewaymanagementapi"][-1]
    assert (metered.function, metered.operation, metered.subject) == ("push", "PostToConnection", its_id(runtime))


def test_get_tells_and_delete_closes(runtime, link, api):
    told = api.get_connection(ConnectionId=its_id(runtime))
    assert (told["Identity"]["SourceIp"], told["Identity"]["UserAgent"][:6]) == ("127.0.0.1", "Python")
    assert told["ConnectedAt"] <= told["LastActiveAt"] <= runtime.clock.now()
    wanted = its_id(runtime)
    api.delete_connection(ConnectionId=wanted)
    with pytest.raises(api.exceptions.GoneException):
        api.post_to_connection(ConnectionId=wanted, Data=b"{}")
    assert end_of(link) == 1000


def test_who_is_gone_or_never_was_is_410(runtime, link, api):
    wanted = its_id(runtime)
    link.close()
    eventually(lambda: not runtime.connections.ids)
    for one in (wanted, "never=", "L0SM9cOFvHcCIhw="):
        for call in (api.get_connection, api.delete_connection, lambda **to: api.post_to_connection(Data=b"x", **to)):
            with pytest.raises(api.exceptions.GoneException) as error:
                call(ConnectionId=one)
            assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 410


def test_post_is_128_kb_at_most_and_comes_in_frames_of_32(runtime, link, api):
    wanted = its_id(runtime)
    with pytest.raises(api.exceptions.PayloadTooLargeException):
        api.post_to_connection(ConnectionId=wanted, Data=b"x" * (128 * 1024 + 1))
    text = "ä" * (64 * 1024)
    api.post_to_connection(ConnectionId=wanted, Data=text.encode())
    frames = list(link.recv_streaming())
    assert "".join(frames) == text
    assert max(len(frame.encode()) for frame in frames) <= FRAME_LIMIT_BYTES
    with pytest.raises(api.exceptions.ClientError, match="UTF-8"):
        api.post_to_connection(ConnectionId=wanted, Data=b"\xff")


@pytest.mark.parametrize("text", ["", "a", "x" * FRAME_LIMIT_BYTES, "x" + "ä" * FRAME_LIMIT_BYTES, "𝄞" * 20000])
def test_fragments_are_the_message_and_split_no_character(text):
    parts = list(fragments(text))
    assert "".join(parts) == text
    assert all(len(part.encode()) <= FRAME_LIMIT_BYTES for part in parts)
    assert all(parts) or text == ""


def test_client_that_does_not_read_fills_the_buffer_and_hinders_nobody(runtime, link, api):
    deaf = its_id(runtime)
    with client(runtime) as other:
        hears = next(one for one in runtime.connections.ids if one != deaf)
        link.recv_flow_control.acquire()
        try:
            data = b"x" * 128 * 1024
            with suppress(api.exceptions.LimitExceededException):
                for _ in range(ENOUGH):
                    api.post_to_connection(ConnectionId=deaf, Data=data)
                pytest.fail("whatever was posted fitted")
            api.post_to_connection(ConnectionId=hears, Data=b'{"n": 1}')
            assert heard(other) == {"n": 1}
            runtime.connections.cut(deaf)
            eventually(lambda: runtime.connections.ids == [hears])
        finally:
            link.recv_flow_control.release()


# --- who may -------------------------------------------------------------------------------------------


def test_role_must_be_allowed_by_method_stage_and_connection(runtime, link):
    assert push(runtime)["code"] == ""
    refused = push(runtime, do="delete_connection")
    assert (refused["code"], refused["status"]) == ("AccessDeniedException", 403)
    api_id = runtime.management.split("/")[-2]
    place = f"arn:aws:execute-api:us-east-1:123456789012:{api_id}/live/DELETE/@connections/{its_id(runtime)}"
    assert f"not authorized to perform: execute-api:ManageConnections on resource: {place}" in refused["text"]


@pytest.mark.parametrize("role", ["astray", "lost"])
def test_address_of_another_api_or_none_reaches_nothing(runtime, link, role):
    """It never leaves this machine either."""
    assert push(runtime, role)["status"] == 403


def test_wrong_stage_is_forbidden(runtime, link):
    with management(f"{runtime.management}x") as api, pytest.raises(api.exceptions.ForbiddenException):
        api.get_connection(ConnectionId=its_id(runtime))


def test_permissions_are_recorded_by_the_name_that_the_template_has(runtime):
    names = Names(runtime.stack)
    api_id = runtime.management.split("/")[-2]
    place = f"arn:aws:execute-api:us-east-1:123456789012:{api_id}/live/POST/@connections/*"
    assert names.resource(place) == "{Sockets}/live/POST/@connections/*"


# --- faults and controls ---------------------------------------------------------------------------------


def test_faults_strike_posts_like_any_call(runtime, link):
    def strike(kind: str, when: str) -> None:
        runtime.faults.add(Fault("push", kind, when, service="apigatewaymanagementapi", operation="PostToConnection"))

    strike("throttle", "before")
    assert push(runtime, data='{"n": 1}')["code"] == "LimitExceededException"
    strike("lost_reply", "after")
    assert push(runtime, data='{"n": 2}', tries=2)["code"] == ""
    assert [heard(link), heard(link)] == [{"n": 2}, {"n": 2}]  # the SDK has repeated it
    strike("crash", "after")
    outcome = runtime.functions.invoke("push", {"to": its_id(runtime), "data": '{"n": 3}'})
    assert outcome.crashed
    assert heard(link) == {"n": 3}
    strike("crash", "before")
    assert runtime.functions.invoke("push", {"to": its_id(runtime), "data": '{"n": 4}'}).crashed
    with pytest.raises(TimeoutError):
        link.recv(0.2)


def test_posts_fail_or_take_long_as_often_as_asked(runtime, link, monkeypatch):
    slept: list[float] = []
    over = threading.Event()

    def sleep(seconds: float) -> bool:
        slept.append(seconds)
        return over.wait(60)

    monkeypatch.setattr(runtime._sockets.stopping, "wait", sleep)
    wanted = its_id(runtime)
    told = control(
        runtime, "POST", "connections/posts", {"connection_id": wanted, "error": "GoneException", "times": 2}
    )
    assert told["posts"] == [{"connection_id": wanted, "error": "GoneException", "delay_s": 0.0, "times": 2}]
    assert [push(runtime)["code"] for _ in range(3)] == ["GoneException", "GoneException", ""]
    control(runtime, "POST", "connections/posts", {"connection_id": wanted, "delay_s": 0.3})
    slow = threading.Thread(target=push, args=(runtime,), kwargs={"data": '"slow"'})
    slow.start()
    eventually(lambda: not runtime.connections.describe()["posts"])
    assert push(runtime, data='"fast"')["code"] == ""
    assert [heard(link), heard(link)] == [{}, "fast"]
    over.set()
    assert heard(link) == "slow"
    slow.join(60)
    assert (slow.is_alive(), slept) == (False, [0.3])
    runtime.connections.fail(wanted, times=9)
    assert control(runtime, "DELETE", "connections/posts") == {}
    assert push(runtime)["code"] == ""


def test_lost_connection_is_gone_for_us_and_its_client_does_not_know(runtime, link):
    wanted = its_id(runtime)
    runtime.functions.history.clear()
    assert control(runtime, "POST", "connections/lose", {"connection_id": wanted}) == {"connection_id": wanted}
    assert push(runtime)["code"] == "GoneException"
    link.send("{}")
    with pytest.raises(TimeoutError):
        link.recv(0.2)
    link.close()
    eventually(lambda: not runtime.connections.ids)
    assert [one.function for one in list(runtime.functions.history)] == ["push"]  # nobody heard of its end


def test_dead_connection_takes_everything_until_it_is_cut(runtime, link):
    runtime.functions.history.clear()
    assert push(runtime, data='{"n": 1}')["code"] == ""
    assert heard(link) == {"n": 1}
    control(runtime, "POST", "connections/mute", {"connection_id": its_id(runtime)})
    assert push(runtime, data='{"n": 2}')["code"] == ""
    link.send("{}")
    with pytest.raises(TimeoutError):
        link.recv(0.2)
    assert [one.function for one in list(runtime.functions.history)] == ["push", "push"]
    runtime.connections.cut(its_id(runtime))
    eventually(lambda: len(runtime.functions.history) == 3)  # of its end the function hears


@pytest.mark.parametrize("disconnect", [True, False])
def test_connection_is_cut_and_the_function_hears_of_it_or_not(runtime, link, disconnect):
    runtime.functions.history.clear()
    wanted = {"connection_id": its_id(runtime), "disconnect": disconnect}
    control(runtime, "POST", "connections/cut", wanted)
    assert end_of(link) == 1006
    eventually(lambda: not runtime.connections.ids)
    if disconnect:
        eventually(lambda: runtime.functions.history)
    else:
        assert not runtime.functions.history


def test_connection_is_closed_with_a_code(runtime, link):
    control(runtime, "POST", "connections/cut", {"connection_id": its_id(runtime), "code": 1011})
    with pytest.raises(ConnectionClosed):
        link.recv(60)
    assert link.close_code == 1011


def test_controls_list_connections_and_say_what_would_be_right(runtime, link):
    (listed,) = control(runtime, "GET", "connections")["connections"]
    assert (listed["connection_id"], listed["lost"], listed["sent"]) == (its_id(runtime), False, 0)
    wanted = {"connection_id": its_id(runtime)}
    for path, body, words in (
        ("cut", {"connection_id": "x"}, "connection_id must be one of"),
        ("cut", {**wanted, "code": 7}, "code must be a close code"),
        ("posts", wanted, "one of error and delay_s"),
        ("posts", {**wanted, "error": "x", "delay_s": 1}, "one of error and delay_s"),
        ("posts", {**wanted, "error": "x"}, "error must be one of"),
        ("posts", {**wanted, "delay_s": -1}, "delay_s must be"),
        ("posts", {**wanted, "delay_s": 1, "times": 0}, "times must be"),
    ):
        status, said = control(runtime, "POST", f"connections/{path}", body)
        assert status == 400
        assert words in said
