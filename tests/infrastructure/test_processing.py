"""From the record to the worker and back: the mappings, the schedule, and where failures of each go."""

from __future__ import annotations

import json

from lambdas.contracts import names
from tests.infrastructure.conftest import Synthesize
from tests.infrastructure.templates import Resource, Template, listed


def mapping(template: Template, role: str) -> Resource:
    function = template.id_of(template.function(role))
    (found,) = (
        one["Properties"]
        for one in template.of_type("Lambda::EventSourceMapping").values()
        if one["Properties"]["FunctionName"] == {"Ref": function}
    )
    mapped: Resource = found
    return mapped


def test_no_record_blocks_its_shard_and_none_is_lost(prod: Template) -> None:
    """STR-01, STR-02."""
    stream = mapping(prod, "dispatch")
    assert stream["StartingPosition"] == "TRIM_HORIZON"
    assert stream["MaximumRecordAgeInSeconds"] == 3600
    assert stream["MaximumRetryAttempts"] == 10_000
    assert stream["BisectBatchOnFunctionError"] is True
    assert stream["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert stream["BatchSize"] == 100
    letters = stream["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert letters == prod.environment("dispatch")["DISPATCH_DLQ_URL"]["Ref"]


def test_the_stream_lets_through_what_somebody_must_hear_of(prod: Template) -> None:
    """STR-10: what marks a job as handed over removes `due_shard`, and so does not come back."""
    (wanted,) = mapping(prod, "dispatch")["FilterCriteria"]["Filters"]
    assert json.loads(wanted["Pattern"]) == {
        "dynamodb": {
            "Keys": {"sk": {"S": ["job"]}},
            "NewImage": {
                "status": {"S": list(names.HEARD)},
                "due_shard": {"S": [{"exists": True}]},
            },
        }
    }


def test_the_worker_takes_ten_messages_at_once_five_times_over(prod: Template) -> None:
    """SQS-03, SQS-04."""
    work = mapping(prod, "worker")
    assert work["EventSourceArn"]["Fn::GetAtt"][0] == prod.environment("worker")["WORK_QUEUE_URL"]["Ref"]
    assert work["BatchSize"] == 10
    assert work["MaximumBatchingWindowInSeconds"] == 0
    assert work["ScalingConfig"] == {"MaximumConcurrency": 5}
    assert work["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_sweep_runs_every_five_minutes_and_its_failures_are_letters(prod: Template) -> None:
    """EB-03: both kinds of failure, not to be invoked and not to end."""
    schedule = prod.only("Scheduler::Schedule")["Properties"]
    sweep = prod.id_of(prod.function("sweep"))
    assert schedule["ScheduleExpression"] == "rate(5 minutes)"
    assert schedule["Target"]["Arn"]["Fn::GetAtt"] == [sweep, "Arn"]
    assert schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] <= 2
    letters = schedule["Target"]["DeadLetterConfig"]["Arn"]
    invoked = prod.only("Lambda::EventInvokeConfig")["Properties"]
    assert (invoked["FunctionName"], invoked["MaximumRetryAttempts"]) == ({"Ref": sweep}, 0)
    assert invoked["DestinationConfig"]["OnFailure"]["Destination"] == letters


def test_the_schedule_may_invoke_the_sweep_and_write_its_letters_for_this_account_only(prod: Template) -> None:
    target = prod.only("Scheduler::Schedule")["Properties"]["Target"]
    role = target["RoleArn"]["Fn::GetAtt"][0]
    allowed = {(listed(s["Action"])[0], json.dumps(s["Resource"])) for s in prod.statements_of_role(role)}
    assert allowed == {
        ("lambda:InvokeFunction", json.dumps(target["Arn"])),
        ("sqs:SendMessage", json.dumps(target["DeadLetterConfig"]["Arn"])),
    }
    (trust,) = prod.resources[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_settings_reach_the_mappings(synthesize: Synthesize) -> None:
    template = synthesize(batch_size=3, batch_window_s=7, max_concurrency=50, stream_age_s=600, sweep_period_s=60,
                          sweep_timeout_s=60)  # fmt: skip
    work = mapping(template, "worker")
    assert (work["BatchSize"], work["MaximumBatchingWindowInSeconds"]) == (3, 7)
    assert work["ScalingConfig"] == {"MaximumConcurrency": 50}
    queue = template.resources[work["EventSourceArn"]["Fn::GetAtt"][0]]
    assert queue["Properties"]["VisibilityTimeout"] == 6 * 120 + 7
    assert mapping(template, "dispatch")["MaximumRecordAgeInSeconds"] == 600
    assert template.only("Scheduler::Schedule")["Properties"]["ScheduleExpression"] == "rate(1 minute)"


def test_job_events_are_encrypted_and_refuse_publishers_without_tls(prod: Template) -> None:
    topic_id = prod.environment("dispatch")["JOB_EVENTS_TOPIC_ARN"]["Ref"]
    assert "alias/aws/sns" in json.dumps(prod.resources[topic_id]["Properties"]["KmsMasterKeyId"])
    policies = prod.of_type("SNS::TopicPolicy").values()
    assert {topic["Ref"] for policy in policies for topic in policy["Properties"]["Topics"]} == set(
        prod.of_type("SNS::Topic")
    )
    for policy in policies:
        refused = policy["Properties"]["PolicyDocument"]["Statement"][0]
        assert (refused["Effect"], refused["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
