"""Declared subscriptions on this machine: who hears gets what its filter asks for, what cannot be delivered lies among
its dead letters, and who would have to confirm hears nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.core import routing
from lambdas.core.ports import Message
from local.aws.permissions import Permissions
from local.aws.server import Caller
from local.stack.provision import Stack, provision
from tests.builders import NOW, final_job
from tests.integration.conftest import synthesize
from tests.integration.local_aws import Aws, error_code, serving
from tests.integration.stock_moto import stock

ARN = "arn:aws:sqs:us-east-1:123456789012:"
DECLARED: dict[str, Any] = {
    "failures": {"protocol": "sqs", "endpoint": f"{ARN}failures", "filter": {"event_type": ["job.failed"]}},
    "shop": {
        "protocol": "sqs",
        "endpoint": f"{ARN}shop",
        "filter": {"tenant": [{"prefix": "shop-"}], "type": [{"anything-but": ["classify"]}]},
    },
    "all": {"protocol": "sqs", "endpoint": f"{ARN}all"},
    "gone": {"protocol": "sqs", "endpoint": f"{ARN}gone"},
    "ops": {"protocol": "email", "endpoint": "ops@example.com"},
    "crm": {"protocol": "https", "endpoint": "https://crm.example.com/"},
}


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def stack(aws: Aws, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    for name in ("failures", "shop", "all"):
        aws.queue(name)
    made = provision(synthesize(tmp_path_factory.mktemp("out"), subscriptions=DECLARED), aws.server.url)
    for message in events():
        attributes = {name: {"DataType": "String", "StringValue": value} for name, value in message.attributes.items()}
        aws.client("sns").publish(
            TopicArn=made.outputs["JobEventsTopicArn"], Message=message.body, MessageAttributes=attributes
        )
    return made


def events() -> list[Message]:
    told = (("COMPLETED", "acme", "summarize"), ("FAILED", "acme", "classify"), ("FAILED", "shop-1", "summarize"))
    return [
        routing.event(final_job(status, tenant=tenant, type=type_, pk=f"{number:032x}"), NOW)
        for number, (status, tenant, type_) in enumerate(told)
    ]


def received(aws: Aws, url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        messages = (
            aws.client("sqs")
            .receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=0)
            .get("Messages", [])
        )
        if not messages:
            return sorted(found, key=lambda one: str(json.loads(one["Body"])["run_id"]))
        for one in messages:
            aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
        found += messages


@pytest.mark.parametrize(("name", "wanted"), [("failures", [1, 2]), ("shop", [2]), ("all", [0, 1, 2])])
def test_a_declared_queue_gets_exactly_what_its_filter_asks_for(
    aws: Aws, stack: Stack, name: str, wanted: list[int]
) -> None:
    url = aws.client("sqs").get_queue_url(QueueName=name)["QueueUrl"]
    found = received(aws, url)
    assert [one["Body"] for one in found] == [events()[number].body for number in wanted]
    for one, number in zip(found, wanted, strict=True):
        told = {name: value["StringValue"] for name, value in one["MessageAttributes"].items()}
        assert told == events()[number].attributes


def test_what_cannot_be_delivered_lies_among_the_dead_letters_of_that_subscription_alone(
    aws: Aws, stack: Stack
) -> None:
    letters = {
        one.properties["Endpoint"]: one.properties["RedrivePolicy"]["deadLetterTargetArn"].rpartition(":")[2]
        for one in stack.of_type("AWS::SNS::Subscription")
        if one.properties["TopicArn"] == stack.outputs["JobEventsTopicArn"]
    }
    urls = {name: aws.client("sqs").get_queue_url(QueueName=queue)["QueueUrl"] for name, queue in letters.items()}
    found = {name: [one["Body"] for one in received(aws, url)] for name, url in urls.items()}
    gone = found.pop(f"{ARN}gone")
    assert gone == [message.body for message in events()]
    assert {name: bodies for name, bodies in found.items() if bodies} == {}


def test_who_has_to_confirm_waits_for_ever_here(aws: Aws, stack: Stack) -> None:
    topic = stack.outputs["JobEventsTopicArn"]
    found = aws.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert {one["Protocol"] for one in found} == {"sqs"}
    assert {one["Endpoint"] for one in found} >= {f"{ARN}{name}" for name in ("failures", "shop", "all", "gone")}


def test_stock_moto_knows_no_dead_letters_of_a_subscription(aws: Aws) -> None:
    dead = aws.queue("dead")
    topic = str(aws.client("sns").create_topic(Name="lonely")["TopicArn"])
    policy = json.dumps({"deadLetterTargetArn": f"{ARN}dead"})
    aws.client("sns").subscribe(
        TopicArn=topic, Protocol="sqs", Endpoint=f"{ARN}nobody", Attributes={"RedrivePolicy": policy}
    )
    with stock("Subscription.publish"), pytest.raises(Exception, match=r"NonExistentQueue|does not exist"):
        aws.client("sns").publish(TopicArn=topic, Message="x")
    assert "Messages" not in aws.client("sqs").receive_message(QueueUrl=dead)
    aws.client("sns").publish(TopicArn=topic, Message="x")
    assert len(aws.client("sqs").receive_message(QueueUrl=dead)["Messages"]) == 1


# --- the one condition of a role of ours on what a key begins with ------------------------------------------------
def test_the_function_of_endpoints_removes_nothing_but_endpoints(aws: Aws, stack: Stack) -> None:
    (function,) = (
        one
        for one in stack.of_type("AWS::Lambda::Function")
        if one.properties["Handler"] == "lambdas.handlers.webhooks.handler"
    )
    aws.server.callers.register("WEBHOOKS", Caller(function.ref, function.properties["Role"]))
    aws.server.gates.append(Permissions(stack))
    try:
        table, removing = stack.outputs["JobsTableName"], aws.client("dynamodb", "WEBHOOKS").delete_item
        removing(TableName=table, Key={"pk": {"S": "tenant#acme"}, "sk": {"S": "endpoint#1"}})
        for pk in ("0" * 32, "ping#1", "tenant"):
            with pytest.raises(ClientError) as refusal:
                removing(TableName=table, Key={"pk": {"S": pk}, "sk": {"S": "job"}})
            assert error_code(refusal.value) == "AccessDeniedException"
    finally:
        aws.server.gates.pop()
