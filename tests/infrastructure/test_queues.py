"""The queues: redrive, retention, encryption, and who may send without TLS (nobody)."""

from __future__ import annotations

import pytest

from tests.infrastructure.templates import Resource, Template

DAY_S = 86_400


# names of the outputs
SOURCES = {"Work": "WorkDlq", "Urgent": "UrgentDlq", "Inbox": "InboxDlq", "Deliveries": "DeliveriesDlq"}


def queue(template: Template, name: str) -> Resource:
    """By the name of its output."""
    output = f"{name}Url" if name.endswith("Dlq") else f"{name}QueueUrl"
    return template.resources[template.outputs[output]["Value"]["Ref"]]


@pytest.mark.parametrize("name", ["Work", "Urgent"])
def test_work_waits_six_worker_timeouts_before_it_returns(prod: Template, name: str) -> None:
    """SQS-01."""
    found = queue(prod, name)
    (mapping,) = (
        one["Properties"]
        for one in prod.of_type("Lambda::EventSourceMapping").values()
        if one["Properties"]["EventSourceArn"]["Fn::GetAtt"][0] == prod.id_of(found)
    )
    timeout = prod.function("worker")["Properties"]["Timeout"]
    assert found["Properties"]["VisibilityTimeout"] == 6 * timeout + mapping["MaximumBatchingWindowInSeconds"]


@pytest.mark.parametrize("name", SOURCES)
def test_what_nobody_can_take_goes_to_its_queues_own_dead_letters_after_five_deliveries(
    prod: Template, name: str
) -> None:
    """SQS-03, SQS-11."""
    redrive = queue(prod, name)["Properties"]["RedrivePolicy"]
    assert redrive["maxReceiveCount"] == 5
    assert redrive["deadLetterTargetArn"]["Fn::GetAtt"][0] == prod.id_of(queue(prod, SOURCES[name]))
    assert sum("RedrivePolicy" in one["Properties"] for one in prod.of_type("SQS::Queue").values()) == len(SOURCES)


def test_events_reach_the_deliveries_queue_as_they_are_and_what_does_not_lies_among_its_letters(prod: Template) -> None:
    """Raw: who reads the queue finds the envelope and its attributes, as in every other queue."""
    topic, deliveries = prod.outputs["JobEventsTopicArn"]["Value"]["Ref"], prod.id_of(queue(prod, "Deliveries"))
    (subscription,) = (
        one["Properties"]
        for one in prod.of_type("SNS::Subscription").values()
        if one["Properties"]["Endpoint"] == {"Fn::GetAtt": [deliveries, "Arn"]}
    )
    assert (subscription["TopicArn"], subscription["Protocol"]) == ({"Ref": topic}, "sqs")
    assert subscription["RawMessageDelivery"] is True
    assert "FilterPolicy" not in subscription
    letters = prod.id_of(queue(prod, "DeliveriesDlq"))
    assert subscription["RedrivePolicy"] == {"deadLetterTargetArn": {"Fn::GetAtt": [letters, "Arn"]}}
    for name in (deliveries, letters):
        (policy,) = (
            one["Properties"]["PolicyDocument"]["Statement"]
            for one in prod.of_type("SQS::QueuePolicy").values()
            if one["Properties"]["Queues"] == [{"Ref": name}]
        )
        (allowed,) = [statement for statement in policy if statement["Effect"] == "Allow"]
        assert allowed["Principal"] == {"Service": "sns.amazonaws.com"}
        assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": {"Ref": topic}}}


def test_deliveries_wait_six_timeouts_of_deliver_before_they_return(prod: Template) -> None:
    timeout = prod.function("deliver")["Properties"]["Timeout"]
    assert queue(prod, "Deliveries")["Properties"]["VisibilityTimeout"] == 6 * timeout
    assert timeout + 10 < 6 * timeout  # the lease of who was killed is over by then


def test_dead_letters_are_kept_for_two_weeks_and_longer_than_their_source(prod: Template) -> None:
    """SQS-07: a standard queue's clock does not restart."""
    sources = [queue(prod, name) for name in SOURCES]
    letters = [one for one in prod.of_type("SQS::Queue").values() if one not in sources]
    assert all(queue(prod, name) in letters for name in SOURCES.values())
    assert {one["Properties"]["MessageRetentionPeriod"] for one in letters} == {14 * DAY_S}
    assert all(one["Properties"]["MessageRetentionPeriod"] + DAY_S < 14 * DAY_S for one in sources)
    assert {one["DeletionPolicy"] for one in letters} == {"Retain"}


def test_only_the_inbox_and_deliveries_hold_what_is_nowhere_else(prod: Template) -> None:
    """A work message is a hint that the sweep repeats; an event in the inbox is no record yet, nor is one that is to be
    delivered."""
    kept = {name: queue(prod, name)["DeletionPolicy"] for name in SOURCES}
    assert kept == {"Work": "Delete", "Urgent": "Delete", "Inbox": "Retain", "Deliveries": "Retain"}


def test_every_queue_is_encrypted_and_refuses_everything_without_tls(prod: Template) -> None:
    """CDK-02, CDK-13: the key that SQS manages needs no grants."""
    queues = prod.of_type("SQS::Queue")
    assert all(one["Properties"]["SqsManagedSseEnabled"] is True for one in queues.values())
    policies = prod.of_type("SQS::QueuePolicy").values()
    assert {queue["Ref"] for policy in policies for queue in policy["Properties"]["Queues"]} == set(queues)
    for policy in policies:
        (statement,) = [s for s in policy["Properties"]["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
        assert (statement["Effect"], statement["Action"]) == ("Deny", "sqs:*")
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
