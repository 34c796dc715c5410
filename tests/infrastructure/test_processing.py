"""From the record to the worker and back: the mappings, the schedule, and where failures of each go."""

from __future__ import annotations

import json

import pytest

from lambdas.contracts import names
from tests.infrastructure.conftest import Synthesize
from tests.infrastructure.templates import Resource, Template, listed


def mappings(template: Template, role: str) -> list[Resource]:
    function = template.id_of(template.function(role))
    found = (one["Properties"] for one in template.of_type("Lambda::EventSourceMapping").values())
    return [one for one in found if one["FunctionName"] == {"Ref": function}]


def mapping(template: Template, role: str, queue: str | None = None) -> Resource:
    """The one mapping of a function; of the worker's two, that of the queue under this name in its environment."""
    wanted = template.environment(role)[queue]["Ref"] if queue else None
    (found,) = (one for one in mappings(template, role) if wanted in (None, one["EventSourceArn"]["Fn::GetAtt"][0]))
    return found


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
    wanted, *_ = mapping(prod, "dispatch")["FilterCriteria"]["Filters"]
    assert json.loads(wanted["Pattern"]) == {
        "dynamodb": {
            "Keys": {"sk": {"S": ["job"]}},
            "NewImage": {
                "status": {"S": list(names.HEARD)},
                "due_shard": {"S": [{"exists": True}]},
            },
        }
    }


def test_and_records_that_are_removed_while_something_is_still_due(prod: Template) -> None:
    """On AWS filters of a DynamoDB stream look at `dynamodb` alone: a removal is what has no new image."""
    _, job, _, delivery = mapping(prod, "dispatch")["FilterCriteria"]["Filters"]
    for lost, sk in ((job, "job"), (delivery, {"prefix": "delivery#"})):
        assert json.loads(lost["Pattern"]) == {
            "dynamodb": {
                "Keys": {"sk": {"S": [sk]}},
                "NewImage": {"sk": {"S": [{"exists": False}]}},
                "OldImage": {"due_shard": {"S": [{"exists": True}]}},
            }
        }


def test_of_deliveries_it_lets_through_those_that_are_to_be_tried(prod: Template) -> None:
    """N13. How one has ended nobody need hear, and what is beside a job's record else, like its text, never comes."""
    _, _, wanted, _ = mapping(prod, "dispatch")["FilterCriteria"]["Filters"]
    assert json.loads(wanted["Pattern"]) == {
        "dynamodb": {
            "Keys": {"sk": {"S": [{"prefix": "delivery#"}]}},
            "NewImage": {"status": {"S": ["PENDING"]}, "due_shard": {"S": [{"exists": True}]}},
        }
    }


@pytest.mark.parametrize(("queue", "at_once"), [("WORK_QUEUE_URL", 5), ("URGENT_QUEUE_URL", 2)])
def test_the_worker_takes_ten_messages_at_once_of_each_queue_with_a_share_for_each(
    prod: Template, queue: str, at_once: int
) -> None:
    """SQS-03, SQS-04."""
    work = mapping(prod, "worker", queue)
    assert len(mappings(prod, "worker")) == 2
    assert work["BatchSize"] == 10
    assert work["MaximumBatchingWindowInSeconds"] == 0
    assert work["ScalingConfig"] == {"MaximumConcurrency": at_once}
    assert work["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_the_sweep_runs_every_five_minutes_and_its_failures_are_letters(prod: Template) -> None:
    """EB-03: both kinds of failure, not to be invoked and not to end."""
    sweep = prod.id_of(prod.function("sweep"))
    invoked = [one["Properties"] for one in prod.of_type("Lambda::EventInvokeConfig").values()]
    (own,) = [one for one in invoked if one["FunctionName"] == {"Ref": sweep}]
    assert own["MaximumRetryAttempts"] == 0
    rates = {}
    for schedule in schedules(prod):
        target = schedule["Target"]
        assert target["Arn"]["Fn::GetAtt"] == [sweep, "Arn"]
        assert target["RetryPolicy"]["MaximumRetryAttempts"] <= 2
        assert own["DestinationConfig"]["OnFailure"]["Destination"] == target["DeadLetterConfig"]["Arn"]
        rates[tuple(json.loads(target["Input"])["parts"])] = schedule["ScheduleExpression"]
    assert rates == {
        ("stuck", "deliveries", "letters"): "rate(5 minutes)",
        ("uploads",): "rate(60 minutes)",
        ("drift",): "rate(1440 minutes)",
    }


def schedules(template: Template) -> list[Resource]:
    return [one["Properties"] for one in template.of_type("Scheduler::Schedule").values()]


def test_sources_that_can_list_their_events_are_compared_with_the_uploads(synthesize: Synthesize) -> None:
    shop = {
        "tenant": "acme", "task": "summarize", "scheme": "hmac-sha256", "secret": "shop/key", "header": "x-sig",
        "id": "/id", "list": {"plugin": "http_event_list", "url": "https://shop.test/events", "token": "shop/list"},
    }  # fmt: skip
    template = synthesize(sources={"shop": shop})
    parts = [json.loads(one["Target"]["Input"])["parts"] for one in schedules(template)]
    assert ["uploads", "shop"] in parts
    (secrets,) = [s for s in template.statements("sweep") if "secretsmanager:GetSecretValue" in listed(s["Action"])]
    assert "secret:shop/list-??????" in json.dumps(secrets["Resource"])
    assert "shop/key" not in json.dumps(secrets["Resource"])


def test_only_a_sweep_of_listed_sources_may_read_by_the_page_and_keep_large_inputs(
    prod: Template, synthesize: Synthesize
) -> None:
    shop = {
        "tenant": "acme", "task": "summarize", "scheme": "hmac-sha256", "secret": "shop/key", "header": "x-signature",
        "id": "/id", "list": {"plugin": "http_event_list", "url": "https://shop.test/events"},
    }  # fmt: skip
    more = synthesize(sources={"shop": shop}).permissions("sweep") - prod.permissions("sweep")
    assert {action for action, _ in more} == {"dynamodb:BatchGetItem", "s3:PutObject"}


def test_the_sweep_may_go_on_by_itself_and_is_not_taken_for_a_loop_that_nobody_meant(prod: Template) -> None:
    assert prod.function("sweep")["Properties"]["RecursiveLoop"] == "Allow"
    function = prod.function("sweep")
    waits_for = json.dumps(function.get("DependsOn", []))
    own = [name for name in prod.of_type("IAM::Policy") if name.startswith("Sweep") and "Itself" in name]
    assert len(own) == 1
    assert own[0] not in waits_for  # neither could be made before the other


def test_the_schedule_may_invoke_the_sweep_and_write_its_letters_for_this_account_only(prod: Template) -> None:
    target = schedules(prod)[0]["Target"]
    assert {json.dumps(one["Target"]["RoleArn"]) for one in schedules(prod)} == {json.dumps(target["RoleArn"])}
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
    template = synthesize(batch_size=3, batch_window_s=7, max_concurrency=50, urgent_concurrency=20, stream_age_s=600,
                          sweep_period_s=60, sweep_timeout_s=50)  # fmt: skip
    for name, at_once in (("WORK_QUEUE_URL", 50), ("URGENT_QUEUE_URL", 20)):
        work = mapping(template, "worker", name)
        assert (work["BatchSize"], work["MaximumBatchingWindowInSeconds"]) == (3, 7)
        assert work["ScalingConfig"] == {"MaximumConcurrency": at_once}
        queue = template.resources[work["EventSourceArn"]["Fn::GetAtt"][0]]
        assert queue["Properties"]["VisibilityTimeout"] == 6 * 120 + 7
    assert mapping(template, "dispatch")["MaximumRecordAgeInSeconds"] == 600
    assert "rate(1 minute)" in [one["ScheduleExpression"] for one in schedules(template)]


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
