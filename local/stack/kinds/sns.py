"""SNS topics, their policies and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.stack.kinds.kind import Kind, Made, Properties, Workbench
from local.stack.kinds.sqs import text

_TOPIC_ATTRIBUTES = frozenset(
    {"ContentBasedDeduplication", "DisplayName", "FifoTopic", "KmsMasterKeyId", "SignatureVersion"}
)
# an address or a URL has to confirm first, which nobody does here: like one that waits it hears nothing (moto would
# call the URL at once, and functions that it does not have)
_HEARD_HERE = "sqs"
_SUBSCRIPTION_ATTRIBUTES = frozenset(
    {"DeliveryPolicy", "FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy"}
)


def _topic(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    ending = ".fifo" if properties.get("FifoTopic") else ""
    name = properties.get("TopicName") or bench.name(logical_id, 256 - len(ending)) + ending
    attributes = {key: text(value) for key, value in properties.items() if key in _TOPIC_ATTRIBUTES}
    arn = bench.client("sns").create_topic(Name=name, Attributes=attributes, Tags=properties.get("Tags", []))[
        "TopicArn"
    ]
    for subscription in properties.get("Subscription", []):
        if subscription["Protocol"] == _HEARD_HERE:
            _subscribe(bench, {"TopicArn": arn, **subscription})
    return Made(arn, {"TopicArn": arn, "TopicName": name})


def _subscribe(bench: Workbench, properties: Mapping[str, Any]) -> str:
    attributes = {key: text(value) for key, value in properties.items() if key in _SUBSCRIPTION_ATTRIBUTES}
    answer = bench.client("sns").subscribe(
        TopicArn=properties["TopicArn"],
        Protocol=properties["Protocol"],
        Endpoint=properties["Endpoint"],
        Attributes=attributes,
        ReturnSubscriptionArn=True,
    )
    return str(answer["SubscriptionArn"])


def _subscription(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    if properties["Protocol"] != _HEARD_HERE:
        return Made(f"{properties['TopicArn']}:{bench.uuid(logical_id)}")
    return Made(_subscribe(bench, properties))


def _policy(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    for arn in properties["Topics"]:
        bench.client("sns").set_topic_attributes(
            TopicArn=arn, AttributeName="Policy", AttributeValue=text(properties["PolicyDocument"])
        )
    return Made(bench.name(logical_id, 128))


KINDS = (
    Kind(
        "AWS::SNS::Topic",
        _topic,
        # TracingConfig: there is no X-Ray here
        _TOPIC_ATTRIBUTES | {"Subscription", "Tags", "TopicName", "TracingConfig"},
    ),
    Kind(
        "AWS::SNS::Subscription",
        _subscription,
        _SUBSCRIPTION_ATTRIBUTES | {"Endpoint", "Protocol", "Region", "TopicArn"},
    ),
    Kind("AWS::SNS::TopicPolicy", _policy, frozenset({"PolicyDocument", "Topics"})),
)
