"""The HTTP API's direct way into a queue: what travels, what is altered, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from local.events.http import Answer
from local.events.response_parameters import ResponseParameters
from local.events.sources import client
from local.events.throttle import Throttle
from local.runtime import Runtime
from local.stack.errors import TemplateError
from tests.integration.local_inbox import toy_at
from tests.integration.local_toys import Reply, eventually, request

SIGNED = {"Stripe-Signature": "t=1,v1=abc"}
NOTE = """
import json, os

def handler(event, context):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(json.dumps(event["Records"]) + "\\n")
"""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    folder = tmp_path_factory.mktemp("direct")
    toy = toy_at(folder)
    toy.function("note", NOTE, environment={"NOTES": str(folder / "notes")})
    toy.mapping("note", "Served")
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        yield runtime


class Inbox:
    """What lies in the first queue: each test takes it out, and finds it empty."""

    def __init__(self, runtime: Runtime) -> None:
        self.sqs = client("sqs", runtime.aws, "us-east-1")
        self.url = runtime.outputs["Inbox"]

    def take(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while more := self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        ).get("Messages"):
            found += more
            for message in more:
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return found


@pytest.fixture(scope="module")
def queue(runtime: Runtime) -> Iterator[Inbox]:
    inbox = Inbox(runtime)
    yield inbox
    inbox.sqs.close()


@pytest.fixture
def inbox(queue: Inbox) -> Inbox:
    queue.take()
    return queue


def post(runtime: Runtime, body: bytes, path: str = "/events/stripe", **headers: str) -> Reply:
    sent = SIGNED | {name.replace("_", "-"): value for name, value in headers.items()}
    return request("POST", f"{runtime.api}{path}", body, {name: value for name, value in sent.items() if value})


def code_of(reply: Reply) -> str:
    return str(ElementTree.fromstring(reply.body).findtext(".//{*}Code"))


def test_the_whole_body_travels_byte_for_byte_with_its_attributes(runtime, inbox):
    body = ' {"a": "Grüße \\u00e9 \U0001f600",\r\n\t"b": [1.0, 2e3, "&=+%20"]}\n'
    before_ms = int(runtime.clock.now().timestamp() * 1000)
    reply = post(runtime, body.encode())
    assert reply.status == 200
    (message,) = inbox.take()
    assert message["Body"] == body
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert attributes["signature"] == "t=1,v1=abc"
    assert attributes["source"] == "stripe"
    assert attributes["request_id"] == reply.headers["apigw-requestid"]
    assert before_ms <= int(attributes["received_ms"]) <= runtime.clock.now().timestamp() * 1000
    assert message["MessageAttributes"]["received_ms"]["DataType"] == "Number"
    assert message["Attributes"]["MessageGroupId"] == "stripe"


def test_the_answer_is_that_of_sqs_in_xml(runtime, inbox):
    reply = post(runtime, b"{}")
    (message,) = inbox.take()
    tree = ElementTree.fromstring(reply.body)
    assert tree.tag == "{http://queue.amazonaws.com/doc/2012-11-05/}SendMessageResponse"
    assert tree.findtext(".//{*}MessageId") == message["MessageId"]
    assert tree.findtext(".//{*}MD5OfMessageBody") == message["MD5OfBody"]
    assert reply.headers["content-type"] == "text/xml"
    assert tree.findtext(".//{*}RequestId") == reply.headers["x-amzn-requestid"]


def test_status_and_headers_of_the_answer_can_be_changed_and_parameters_come_from_path_and_query(runtime):
    reply = post(runtime, b"{}", "/tenants/acme?group=g1&group=g2")
    assert (reply.status, reply.headers["content-type"], reply.headers["x-inbox"]) == (202, "application/xml", "yes")
    assert b"SendMessageResponse" in reply.body
    notes = Path(runtime.functions.definition("note").environment["NOTES"])
    eventually(lambda: notes.exists() and notes.read_text().endswith("\n"))
    (record,) = json.loads(notes.read_text().splitlines()[0])
    assert record["messageAttributes"]["tenant"]["stringValue"] == "acme"
    assert record["attributes"]["MessageGroupId"] == "g1,g2"


def test_a_parameter_that_is_missing_altogether_cannot_be_resolved(runtime):
    reply = post(runtime, b"{}", "/tenants/acme")
    assert reply.status == 400
    assert reply.json["message"].startswith("Unable to resolve property MessageGroupId")


def test_header_that_comes_twice_is_joined_and_name_of_any_case_is_found(runtime, inbox):
    post(runtime, b"{}", **{"Stripe-Signature": "", "STRIPE-SIGNATURE": "v1=é"})
    (message,) = inbox.take()
    assert message["MessageAttributes"]["signature"]["StringValue"] == "v1=é"


# --- what is refused: nothing of it reaches the queue -------------------------------------------------------


def test_missing_header_leaves_an_empty_value_that_sqs_refuses(runtime, inbox):
    reply = post(runtime, b"{}", **{"Stripe-Signature": ""})
    assert (reply.status, code_of(reply)) == (400, "InvalidParameterValue")
    assert b"signature" in reply.body
    assert inbox.take() == []


@pytest.mark.parametrize("header", ['t=1,v1="abc"', "back\\slash", "tab\tinside"])
def test_header_that_is_no_json_text_breaks_the_attributes(runtime, inbox, header):
    reply = post(runtime, b"{}", **{"Stripe-Signature": header})
    assert reply.status == 400
    assert reply.json["message"].startswith("Unable to resolve property MessageAttributes")
    assert inbox.take() == []


def test_header_that_goes_on_as_json_writes_attributes_of_its_own(runtime, inbox):
    """Whoever sends the request writes into the JSON: what is said after it wins, what is said before does not."""
    forged = 'x"},"request_id":{"DataType":"String","StringValue":"mine"},"more":{"DataType":"String","StringValue":"y'
    assert post(runtime, b"{}", **{"Stripe-Signature": forged}).status == 200
    (message,) = inbox.take()
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert attributes["more"] == "y"
    assert attributes["request_id"] != "mine"


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_form_body_is_refused_with_a_text_that_says_why(runtime, inbox, kind):
    reply = post(runtime, b"a=1&b=2", content_type=kind)
    assert reply.status == 415
    assert kind in reply.json["message"]
    assert "undocumented" in reply.json["message"]
    assert inbox.take() == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [("application/json", b'{"a": "\xff\xfe"}'), ("application/octet-stream", b"abc"), ("image/png", b"abc")],
)
def test_binary_body_is_refused_with_a_text_that_says_why(runtime, inbox, kind, body):
    reply = post(runtime, body, content_type=kind)
    assert reply.status == 415
    assert "undocumented" in reply.json["message"]
    assert inbox.take() == []


def test_empty_body_is_refused_by_sqs(runtime, inbox):
    reply = post(runtime, b"")
    assert (reply.status, code_of(reply)) == (400, "MissingParameter")
    assert inbox.take() == []


@pytest.mark.parametrize("body", [b"a\x00b", b"a\x08b", "a\ufffeb".encode()])
def test_characters_that_sqs_does_not_take_are_refused(runtime, inbox, body):
    reply = post(runtime, body)
    assert (reply.status, code_of(reply)) == (400, "InvalidMessageContents")
    assert inbox.take() == []


def test_300_kb_pass_and_more_than_a_message_may_weigh_does_not(runtime, inbox):
    assert post(runtime, b"x" * 300 * 1024).status == 200
    assert [len(message["Body"]) for message in inbox.take()] == [300 * 1024]
    for size in (1_048_576, 1_048_500):  # the attributes count, too
        reply = post(runtime, b"x" * size)
        assert (reply.status, code_of(reply)) == (400, "InvalidParameterValue")
    assert inbox.take() == []
    assert post(runtime, b"x" * 10_500_000).status == 413


@pytest.mark.parametrize("path", ["/forbidden", "/elsewhere"])
def test_role_that_may_not_send_to_the_queue_sends_nothing(runtime, inbox, path):
    reply = post(runtime, b"{}", path)
    assert (reply.status, code_of(reply)) == (403, "AccessDenied")
    assert b"sqs:SendMessage" in reply.body
    assert inbox.take() == []


def test_no_function_runs_on_the_way_and_the_call_is_metered_as_the_gateways(runtime, inbox):
    with runtime.functions.at_rest(60):  # not in the middle of what an earlier test has sent to a function
        runtime.functions.history.clear()
        runtime.meter.reset()
    post(runtime, b"{}")
    assert list(runtime.functions.history) == []
    assert [(call.function, call.operation) for call in runtime.meter.calls()] == [("apigateway", "SendMessage")]


def test_route_has_a_throttle_of_its_own(runtime):
    statuses = [post(runtime, b"{}", "/slow").status for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    assert post(runtime, b"{}").status == 200


def test_routes_limits_stand_on_top_of_the_default():
    throttle = Throttle(
        {
            "DefaultRouteSettings": {"ThrottlingRateLimit": 0.001, "ThrottlingBurstLimit": 3},
            "RouteSettings": {"GET /a": {"ThrottlingBurstLimit": 1}, "GET /b": {"DetailedMetricsEnabled": True}},
        },
        ["GET /a", "GET /b", "GET /c"],
    )
    assert [throttle.take("GET /a") for _ in range(2)] == [True, False]
    assert [throttle.take(key) for key in ("GET /b", "GET /c", "GET /b", "GET /c")] == [True, True, True, False]
    with pytest.raises(TemplateError, match="GET /d"):
        Throttle({"RouteSettings": {"GET /d": {}}}, ["GET /a"])


# --- answers ---------------------------------------------------------------------------------------------------


def changes(status: str, *rules: tuple[str, str]) -> dict[str, Any]:
    return {status: {"ResponseParameters": [{"Destination": to, "Source": value} for to, value in rules]}}


def test_header_is_removed_replaced_or_added_for_one_status_only():
    made = ResponseParameters(
        changes("200", ("remove:header.a", ""), ("append:header.B", "2"), ("overwrite:header.c", "3"))
    )
    given = [("a", "1"), ("b", "1"), ("c", "1")]
    assert made.change(Answer(200, given)).headers == [("b", "1"), ("b", "2"), ("c", "3")]
    assert made.change(Answer(400, given)).headers == given


@pytest.mark.parametrize(
    ("status", "rule"),
    [
        ("200", ("overwrite:statuscode", "99")),
        ("200", ("overwrite:header.x-amzn-requestid", "1")),
        ("200", ("append:header.a", "$response.body.id")),
        ("2xx", ("append:header.a", "1")),
    ],
)
def test_change_that_api_gateway_refuses_is_a_template_error(status, rule):
    with pytest.raises(TemplateError):
        ResponseParameters(changes(status, rule))
