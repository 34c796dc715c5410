"""The queues: redrive, retention, encryption, and who may send without TLS (nobody)."""

from __future__ import annotations

import pytest

from tests.infrastructure.templates import Resource, Template

DAY_S = 86_400


SOURCES = {"Work": "WorkDlq", "Urgent": "UrgentDlq", "Inbox": "InboxDlq"}  # names of the outputs


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


def test_dead_letters_are_kept_for_two_weeks_and_longer_than_their_source(prod: Template) -> None:
    """SQS-07: a standard queue's clock does not restart."""
    sources = [queue(prod, name) for name in SOURCES]
    letters = [one for one in prod.of_type("SQS::Queue").values() if one not in sources]
    assert all(queue(prod, name) in letters for name in SOURCES.values())
    assert {one["Properties"]["MessageRetentionPeriod"] for one in letters} == {14 * DAY_S}
    assert all(one["Properties"]["MessageRetentionPeriod"] + DAY_S < 14 * DAY_S for one in sources)
    assert {one["DeletionPolicy"] for one in letters} == {"Retain"}


def test_only_the_inbox_holds_what_is_nowhere_else(prod: Template) -> None:
    """A work message is a hint that the sweep repeats; an event in the inbox is no record yet."""
    kept = {name: queue(prod, name)["DeletionPolicy"] for name in SOURCES}
    assert kept == {"Work": "Delete", "Urgent": "Delete", "Inbox": "Retain"}


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
