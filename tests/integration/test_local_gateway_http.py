"""The HTTP API as API Gateway plays it: events, responses, limits, CORS, throttling."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from local.events import http
from local.events.cors import Cors
from local.events.http import MalformedResponseError, Request
from local.events.routes import Route, Routes
from local.events.throttle import Bucket, Throttle
from local.runtime import Runtime
from tests.integration.local_toys import Toy, request

HANDLER = """
import time

def handler(event, context):
    do = event.get("queryStringParameters", {}).get("do")
    if do == "raise":
        raise ValueError
    if do == "hang":
        time.sleep(600)
    if do == "answer":
        return {
            "statusCode": 201, "headers": {"X-One": "1", "x-flag": True}, "cookies": ["a=1", "b=2"], "body": "made",
        }
    if do == "binary":
        return {"statusCode": 200, "body": "AAH/", "isBase64Encoded": True}
    if do == "malformed":
        return {"statusCode": "soon"}
    if do == "cors":
        return {"statusCode": 200, "headers": {"access-control-allow-origin": "https://evil.test"}}
    if do == "size":
        return {"size": len(event["body"])}
    return event
"""
ORIGIN = "https://app.test"


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    toy = Toy(tmp_path_factory.mktemp("gateway"))
    toy.function("echo", HANDLER)
    toy.function("hang", HANDLER, Timeout=1)
    toy.api(
        {
            "POST /jobs": "echo!",
            "GET /jobs/{id}": "echo!",
            "GET /jobs/{id}/result": "echo!",
            "GET /health": "echo",
            "GET /hanging": "hang",
            "GET /slow-down": "echo",
            "ANY /files/{path+}": "echo",
        },
        stage={"RouteSettings": {"GET /slow-down": {"ThrottlingRateLimit": 0.01, "ThrottlingBurstLimit": 2}}},
        CorsConfiguration={
            "AllowOrigins": [ORIGIN],
            "AllowMethods": ["GET", "POST"],
            "AllowHeaders": ["Content-Type", "Idempotency-Key"],
            "ExposeHeaders": ["Location"],
            "MaxAge": 600,
        },
    )
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        yield runtime


def connect(runtime: Runtime) -> HTTPConnection:
    place = urlsplit(runtime.api)
    return HTTPConnection(str(place.hostname), place.port)


def test_event_has_the_shape_of_payload_format_2(runtime):
    headers = {"X-Local-Tenant": "acme", "Idempotency-KEY": "k", "Cookie": "a=1; b=2", "User-Agent": "test"}
    before_ms = int(runtime.clock.now().timestamp() * 1000)
    event = request("POST", f"{runtime.api}/jobs?x=1&x=2&empty=&sp=a%20b", {"a": 1}, headers).json
    assert (event["version"], event["routeKey"], event["rawPath"]) == ("2.0", "POST /jobs", "/jobs")
    assert event["rawQueryString"] == "x=1&x=2&empty=&sp=a%20b"
    assert event["queryStringParameters"] == {"x": "1,2", "empty": "", "sp": "a b"}
    assert event["cookies"] == ["a=1", "b=2"]
    assert event["headers"]["idempotency-key"] == "k"
    assert not {"cookie", "x-local-tenant", "connection"} & set(event["headers"])
    assert (event["body"], event["isBase64Encoded"]) == ('{"a": 1}', False)
    context = event["requestContext"]
    assert context["http"] == {
        "method": "POST",
        "path": "/jobs",
        "protocol": "HTTP/1.1",
        "sourceIp": "127.0.0.1",
        "userAgent": "test",
    }
    assert (context["stage"], context["accountId"], context["routeKey"]) == ("$default", "123456789012", "POST /jobs")
    assert before_ms <= context["timeEpoch"] <= runtime.clock.now().timestamp() * 1000


def test_what_is_not_there_is_left_out_of_the_event(runtime):
    event = request("GET", f"{runtime.api}/health").json
    assert not {"body", "cookies", "queryStringParameters", "pathParameters", "stageVariables"} & set(event)
    assert event["isBase64Encoded"] is False


def test_path_and_its_parameters_are_decoded(runtime):
    event = request("GET", f"{runtime.api}/jobs/a%2Fb%20c/result").json
    assert event["pathParameters"] == {"id": "a/b c"}
    assert (event["routeKey"], event["rawPath"]) == ("GET /jobs/{id}/result", "/jobs/a/b c/result")
    assert request("GET", f"{runtime.api}/files/x/y%20z").json["pathParameters"] == {"path": "x/y z"}


def test_header_that_comes_twice_is_joined_by_a_comma(runtime):
    link = connect(runtime)
    link.putrequest("GET", "/health")
    link.putheader("X-Twice", "1")
    link.putheader("x-twice", "2")
    link.endheaders()
    event = json.loads(link.getresponse().read())
    link.close()
    assert event["headers"]["x-twice"] == "1,2"


def test_iam_route_tells_the_function_who_the_header_says_it_is(runtime):
    authorizer = request("GET", f"{runtime.api}/jobs/1", headers={"X-Local-Tenant": "acme"}).json["requestContext"]
    assert authorizer["authorizer"]["iam"]["accountId"] == "acme"
    default = request("GET", f"{runtime.api}/jobs/1").json["requestContext"]["authorizer"]
    assert default["iam"]["accountId"] == "local"


def test_route_without_authorizer_gets_no_identity(runtime):
    event = request("GET", f"{runtime.api}/health", headers={"X-Local-Tenant": "acme"}).json
    assert "authorizer" not in event["requestContext"]
    assert "acme" not in json.dumps(event)


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "application/octet-stream", "image/png"])
def test_api_01_body_of_any_other_type_is_base64(runtime, kind):
    event = request("POST", f"{runtime.api}/jobs", b'{"a":1}', {"content-type": kind} if kind else {"content-type": ""})
    assert (event.json["body"], event.json["isBase64Encoded"]) == (base64.b64encode(b'{"a":1}').decode(), True)


@pytest.mark.parametrize("kind", ["text/plain", "application/json; charset=utf-8", "application/XML", "text/csv"])
def test_api_01_body_of_a_text_type_is_plain(runtime, kind):
    event = request("POST", f"{runtime.api}/jobs", b'{"a":1}', {"content-type": kind}).json
    assert (event["body"], event["isBase64Encoded"]) == ('{"a":1}', False)


def test_response_is_mapped_with_status_headers_and_cookies(runtime):
    link = connect(runtime)
    link.request("GET", "/health?do=answer")
    answer = link.getresponse()
    assert (answer.status, answer.read()) == (201, b"made")
    assert answer.headers["x-one"] == "1"
    assert answer.headers["x-flag"] == "true"
    assert answer.headers.get_all("set-cookie") == ["a=1", "b=2"]
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["apigw-requestid"]
    link.close()


def test_binary_response_is_decoded(runtime):
    assert request("GET", f"{runtime.api}/health?do=binary").body == b"\x00\x01\xff"


def test_anything_without_a_status_is_a_200_of_json(runtime):
    answer = request("GET", f"{runtime.api}/health")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert http.answer("text").body == b"text"
    assert http.answer(None).body == b"null"


@pytest.mark.parametrize(
    "result",
    [
        {"statusCode": "soon"},
        {"statusCode": True},
        {"statusCode": 42},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "headers": {"a": ["b"]}},
        {"statusCode": 200, "body": "not base64!", "isBase64Encoded": True},
    ],
)
def test_malformed_response_is_told_apart(result):
    with pytest.raises(MalformedResponseError):
        http.answer(result)


@pytest.mark.parametrize("asked", ["health?do=raise", "health?do=malformed", "hanging?do=hang"])
def test_function_error_is_a_500_in_api_gateways_words(runtime, asked):
    answer = request("GET", f"{runtime.api}/{asked}")
    assert (answer.status, answer.json) == (500, {"message": "Internal Server Error"})


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/nothing"), ("DELETE", "/jobs"), ("GET", "/jobs/"), ("GET", "/jobs/1/2/3")]
)
def test_unknown_route_is_a_404(runtime, method, path):
    answer = request(method, f"{runtime.api}{path}")
    assert (answer.status, answer.json) == (404, {"message": "Not Found"})


def test_head_is_no_get(runtime):
    assert request("HEAD", f"{runtime.api}/health").status == 404
    assert request("HEAD", f"{runtime.api}/files/a").status == 200


def test_function_without_room_is_a_503(runtime):
    runtime.functions.pause("echo")
    answer = request("GET", f"{runtime.api}/health")
    runtime.functions.resume("echo")
    assert (answer.status, answer.json) == (503, {"message": "Service Unavailable"})


def test_api_10_body_above_the_limits_is_a_413(runtime):
    """10 MB is the gateway's own limit, 6 MB that of a Lambda event, in which base64 takes a third more."""
    plain = {"content-type": "text/plain"}
    for size, headers, status in (
        (11_000_000, plain, 413),
        (6_400_000, plain, 413),
        (5_000_000, {"content-type": "image/png"}, 413),
        (5_000_000, plain, 200),
    ):
        answer = request("POST", f"{runtime.api}/jobs?do=size", b"x" * size, headers)
        assert answer.status == status, size
        if status == 413:
            assert answer.json == {"message": "Request Entity Too Large"}


def test_throttle_answers_429_beyond_the_burst_of_its_route(runtime):
    statuses = [request("GET", f"{runtime.api}/slow-down").status for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    assert request("GET", f"{runtime.api}/health").status == 200


def test_bucket_fills_again_at_its_rate(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("local.events.throttle.time", SimpleNamespace(monotonic=lambda: now[0]))
    bucket = Bucket(rate=2, burst=3)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    now[0] += 1
    assert [bucket.take() for _ in range(3)] == [True, True, False]


def test_stage_without_throttle_never_refuses():
    throttle = Throttle({})
    assert all(throttle.take("GET /a") for _ in range(1000))


# --- routes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "key"),
    [
        ("GET", "/jobs/new", "GET /jobs/new"),
        ("GET", "/jobs/1", "GET /jobs/{id}"),
        ("POST", "/jobs/1", "ANY /jobs/{id}"),
        ("GET", "/jobs/1/2", "ANY /{proxy+}"),
        ("GET", "/a.b", "GET /a.b"),
        ("GET", "/axb", "ANY /{proxy+}"),
        ("GET", "/", "$default"),
    ],
)
def test_most_specific_route_wins(method, path, key):
    keys = ["ANY /{proxy+}", "ANY /jobs/{id}", "GET /jobs/{id}", "GET /jobs/new", "GET /a.b", "$default"]
    found = Routes([Route(each, {}) for each in keys]).find(method, path)
    assert found is not None
    assert found[0].key == key


def test_jwt_route_carries_the_tenant_as_a_claim():
    asked = Request("GET", "/", "", {"x-local-tenant": "acme"}, b"")
    authorizer = {"JwtConfiguration": {"Issuer": "https://issuer.test", "Audience": ["api"]}}
    event: dict[str, Any] = http.event(
        asked,
        Route("GET /", {}, "JWT", authorizer),
        {},
        account="1",
        api_id="a",
        stage="$default",
        request_id="1-2",
        now=datetime.now(UTC),
    )
    claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    assert (claims["tenant_id"], claims["iss"], claims["aud"]) == ("acme", "https://issuer.test", "api")


# --- CORS --------------------------------------------------------------------------------------------------


def test_preflight_is_answered_by_the_gateway_itself(runtime):
    asked = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST"}
    answer = request("OPTIONS", f"{runtime.api}/jobs", headers=asked)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-allow-methods"] == "GET,POST"
    assert answer.headers["access-control-allow-headers"] == "content-type,idempotency-key"
    assert answer.headers["access-control-max-age"] == "600"


def test_preflight_of_a_foreign_origin_is_allowed_nothing(runtime):
    asked = {"Origin": "https://evil.test", "Access-Control-Request-Method": "POST"}
    answer = request("OPTIONS", f"{runtime.api}/jobs", headers=asked)
    assert answer.status == 204
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_functions_own_cors_headers_are_replaced(runtime):
    answer = request("GET", f"{runtime.api}/health?do=cors", headers={"Origin": ORIGIN})
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert answer.headers["access-control-expose-headers"] == "location"
    assert "access-control-allow-origin" not in request("GET", f"{runtime.api}/health?do=cors").headers


def test_gateways_own_errors_carry_cors_headers_too(runtime):
    answer = request("GET", f"{runtime.api}/nothing", headers={"Origin": ORIGIN})
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (404, ORIGIN)


def test_without_configuration_options_is_a_request_like_any_other():
    asked = Request("OPTIONS", "/", "", {"origin": ORIGIN, "access-control-request-method": "GET"}, b"")
    assert Cors(None).preflight(asked) is None
