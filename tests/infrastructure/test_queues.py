"""The queues: redrive, retention, encryption, and who may send without TLS (nobody)."""

from __future__ import annotations

from tests.infrastructure.templates import Resource, Template

DAY_S = 86_400


def work(template: Template) -> Resource:
    return template.resources[template.environment("worker")["WORK_QUEUE_URL"]["Ref"]]


def test_work_waits_six_worker_timeouts_before_it_returns(prod: Template) -> None:
    """SQS-01."""
    (mapping,) = (
        one["Properties"]
        for one in prod.of_type("Lambda::EventSourceMapping").values()
        if "ScalingConfig" in one["Properties"]
    )
    timeout = prod.function("worker")["Properties"]["Timeout"]
    assert work(prod)["Properties"]["VisibilityTimeout"] == 6 * timeout + mapping["MaximumBatchingWindowInSeconds"]


def test_work_goes_to_its_own_dead_letters_after_five_deliveries(prod: Template) -> None:
    """SQS-03, SQS-11."""
    redrive = work(prod)["Properties"]["RedrivePolicy"]
    assert redrive["maxReceiveCount"] == 5
    assert redrive["deadLetterTargetArn"]["Fn::GetAtt"][0] == prod.environment("worker")["WORK_DLQ_URL"]["Ref"]
    assert sum("RedrivePolicy" in one["Properties"] for one in prod.of_type("SQS::Queue").values()) == 1


def test_dead_letters_are_kept_for_two_weeks_and_longer_than_their_source(prod: Template) -> None:
    """SQS-07: a standard queue's clock does not restart."""
    source = work(prod)["Properties"]["MessageRetentionPeriod"]
    letters = [one for one in prod.of_type("SQS::Queue").values() if one is not work(prod)]
    assert len(letters) == 3
    assert {one["Properties"]["MessageRetentionPeriod"] for one in letters} == {14 * DAY_S}
    assert source + DAY_S < 14 * DAY_S
    assert {one["DeletionPolicy"] for one in letters} == {"Retain"}


def test_every_queue_is_encrypted_and_refuses_everything_without_tls(prod: Template) -> None:
    """CDK-02, CDK-13: the key that SQS manages needs no grants."""
    queues = prod.of_type("SQS::Queue")
    assert all(one["Properties"]["SqsManagedSseEnabled"] is True for one in queues.values())
    policies = prod.of_type("SQS::QueuePolicy").values()
    assert {queue["Ref"] for policy in policies for queue in policy["Properties"]["Queues"]} == set(queues)
    for policy in policies:
        (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
        assert (statement["Effect"], statement["Action"]) == ("Deny", "sqs:*")
        assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
