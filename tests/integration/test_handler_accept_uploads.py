"""POST /uploads and the events of binary sources, as API Gateway hands them over."""

from __future__ import annotations

import base64
import json
from types import ModuleType
from typing import Any

import pytest

from lambdas.contracts.sources import written
from lambdas.core import ids
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import GLOBEX, http
from tests.signing import any_source, hmac_sha256

WISH = {"type": "summarize", "content_type": "text/plain"}
BODY = b"a=1&b=%20\xff\x00\r\n"


@pytest.fixture
def accept(load_handler: Load) -> ModuleType:
    return load_handler("accept", UPLOAD_MAX_BYTES=5_000_000)


def ask(accept: ModuleType, body: Any = WISH, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = accept.handler(http("POST /uploads", body=json.dumps(body), **more), Context(10))
    answer["json"] = json.loads(answer["body"])
    return answer


# --- uploads -------------------------------------------------------------------------------------
def test_a_wish_to_upload_is_answered_with_a_form_and_costs_no_call(cloud: Cloud, accept: ModuleType, lines: Lines):
    answer = ask(accept)
    form = answer["json"]
    assert (answer["statusCode"], answer["headers"]["Location"]) == (201, f"/jobs/{form['job_id']}")
    assert set(form) == {"job_id", "url", "fields", "expires_at", "links"}
    assert form["fields"]["key"] == f"uploads/acme/summarize/{form['job_id']}"
    assert ids.is_upload_id("acme", "summarize", form["job_id"])
    policy = json.loads(base64.b64decode(form["fields"]["policy"]))
    assert ["content-length-range", 1, 5_000_000] in policy["conditions"]
    assert cloud.wire.sent == []
    assert "policy" not in lines.raw


def test_the_tenant_of_a_form_is_the_callers(accept: ModuleType):
    form = ask(accept, authorizer=GLOBEX)["json"]
    assert form["fields"]["key"].startswith("uploads/globex/summarize/")
    assert ask(accept, authorizer=None)["statusCode"] == 403


@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 400), ([], 400), ({**WISH, "type": "unknown"}, 422), ({**WISH, "content_type": "image/png"}, 422)],
)
def test_a_wish_that_cannot_be_met_is_a_problem(accept: ModuleType, body: Any, status: int):
    answer = ask(accept, body)
    assert (answer["statusCode"], answer["headers"]["content-type"]) == (status, "application/problem+json")


# --- events of binary sources --------------------------------------------------------------------
@pytest.fixture
def door(load_handler: Load, cloud: Cloud) -> ModuleType:
    """Accept as it is deployed where `forge` is declared as binary."""
    sources = written({"forge": any_source("forge", binary=True)})
    return load_handler("accept", SOURCES=sources, INBOX_QUEUE_URL=cloud.inbox_url)


def post(door: ModuleType, body: bytes = BODY, name: str = "forge", **more: Any) -> dict[str, Any]:
    headers = more.pop("headers", {name.upper(): value for name, value in hmac_sha256(body).items()})
    event = http(f"POST /events/{name}", body=body, headers=headers, authorizer=None, as_base64=True)
    answer: dict[str, Any] = door.handler(event, Context(10))
    return answer | {"request": event["requestContext"]}


def test_the_exact_bytes_of_an_event_are_in_the_inbox_before_the_202(cloud: Cloud, door: ModuleType):
    answer = post(door)
    assert (answer["statusCode"], json.loads(answer["body"])) == (202, {"request_id": answer["request"]["requestId"]})
    (message,) = cloud.receive(cloud.inbox_url)
    assert base64.b64decode(message["Body"]) == BODY
    assert {name: one["StringValue"] for name, one in message["MessageAttributes"].items()} == {
        "source": "forge",
        "request_id": answer["request"]["requestId"],
        "received_ms": "1795966244123",
        "encoding": "base64",
        "signature": hmac_sha256(BODY)["x-hub-signature-256"],
        "event_id": "delivery-1",
    }


def test_text_that_api_gateway_did_not_encode_is_the_same_event(cloud: Cloud, door: ModuleType):
    body = "é=1".encode()
    event = http("POST /events/forge", body=body, headers=hmac_sha256(body), authorizer=None)
    assert door.handler(event, Context(10))["statusCode"] == 202
    (message,) = cloud.receive(cloud.inbox_url)
    assert base64.b64decode(message["Body"]) == body


@pytest.mark.parametrize("missing", ["x-hub-signature-256", "x-github-delivery"])
def test_an_event_without_a_declared_header_is_refused(cloud: Cloud, door: ModuleType, missing: str):
    headers = {name: value for name, value in hmac_sha256(BODY).items() if name != missing}
    answer = post(door, headers=headers)
    assert answer["statusCode"] == 400
    assert missing in json.loads(answer["body"])["detail"]
    assert cloud.receive(cloud.inbox_url) == []


@pytest.mark.parametrize(("size", "status"), [(0, 400), (742_000, 202), (742_400, 413)])
def test_an_event_has_as_many_bytes_as_sqs_takes(cloud: Cloud, door: ModuleType, size: int, status: int):
    assert post(door, b"\xff" * size)["statusCode"] == status


def test_an_unknown_source_is_404(door: ModuleType, accept: ModuleType):
    assert post(door, name="crm")["statusCode"] == 404
    assert post(door, name="")["statusCode"] == 404


def test_without_binary_sources_accept_takes_no_events(accept: ModuleType):
    assert post(accept)["statusCode"] == 404


def test_an_event_that_sqs_does_not_take_is_503_to_be_sent_again(
    cloud: Cloud, door: ModuleType, lines: Lines, pauses: list[float]
):
    cloud.wire.refuse("SendMessageBatch", code="AccessDenied", status=403, times=1)
    answer = post(door)
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "2")
    assert lines.of("refused")[0]["level"] == "ERROR"
    assert post(door)["statusCode"] == 202
