"""What every function has, what it finds in its environment, and the little it may do."""

from __future__ import annotations

import json
import re

import pytest

from lambdas.contracts import names
from tests.infrastructure.conftest import Synthesize
from tests.infrastructure.templates import Template, listed, target

ROLES = ("accept", "query", "dispatch", "worker", "sweep")
JOBS, ANSWERS = "StorageJobs", "StorageAnswers"
INPUTS, RESULTS = "StorageInputs", "StorageResults"
WORK, WORK_DLQ = "QueuesWork", "QueuesWorkDeadLetters"
DISPATCH_DLQ, SWEEP_DLQ, EVENTS = "DispatchDeadLetters", "SweepDeadLetters", "NotificationsJobEvents"
PROFILE = "arn:aws:bedrock:us-east-1:<AWS::AccountId>:inference-profile/us.amazon.nova-lite-v1:0"
MODEL = "arn:aws:bedrock:{}::foundation-model/amazon.nova-lite-v1:0"

ALLOWED = {
    "accept": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:PutItem", JOBS),
        ("s3:PutObject", f"{INPUTS}/inputs/*"),
    },
    "query": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:BatchGetItem", JOBS),
        ("dynamodb:Query", f"{JOBS}/index/by_tenant"),
        ("s3:GetObject", f"{RESULTS}/results/*"),
        ("s3:ListBucket", RESULTS),
    },
    "dispatch": {
        ("dynamodb:UpdateItem", JOBS),
        ("dynamodb:DescribeStream", f"{JOBS}.StreamArn"),
        ("dynamodb:GetRecords", f"{JOBS}.StreamArn"),
        ("dynamodb:GetShardIterator", f"{JOBS}.StreamArn"),
        ("dynamodb:ListStreams", f"{JOBS}/stream/*"),
        ("sqs:SendMessage", WORK),
        ("sqs:SendMessage", WORK_DLQ),
        ("sqs:SendMessage", DISPATCH_DLQ),
        ("sqs:GetQueueAttributes", DISPATCH_DLQ),
        ("sqs:GetQueueUrl", DISPATCH_DLQ),
        ("sns:Publish", EVENTS),
    },
    "worker": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:UpdateItem", JOBS),
        ("dynamodb:GetItem", ANSWERS),
        ("dynamodb:PutItem", ANSWERS),
        ("dynamodb:UpdateItem", ANSWERS),
        ("dynamodb:DeleteItem", ANSWERS),
        ("s3:GetObject", f"{INPUTS}/inputs/*"),
        ("s3:GetObject", f"{INPUTS}/context/*"),
        ("s3:ListBucket", INPUTS),
        ("s3:ListBucket", RESULTS),
        ("s3:PutObject", f"{RESULTS}/results/*"),
        ("s3:PutObject", f"{RESULTS}/answers/*"),
        ("s3:GetObject", f"{RESULTS}/answers/*"),
        ("s3:DeleteObject", f"{RESULTS}/answers/*"),
        ("sqs:ReceiveMessage", WORK),
        ("sqs:ChangeMessageVisibility", WORK),
        ("sqs:DeleteMessage", WORK),
        ("sqs:GetQueueAttributes", WORK),
        ("sqs:GetQueueUrl", WORK),
        ("sqs:SendMessage", WORK_DLQ),
        ("bedrock:InvokeModel", PROFILE),
        *(("bedrock:InvokeModel", MODEL.format(region)) for region in ("us-east-1", "us-east-2", "us-west-2")),
    },
    "sweep": {
        ("dynamodb:Query", f"{JOBS}/index/due"),
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:UpdateItem", JOBS),
        ("sqs:SendMessage", WORK),
        ("sqs:GetQueueAttributes", WORK),
        ("sqs:SendMessage", WORK_DLQ),
        ("sqs:SendMessage", SWEEP_DLQ),
        ("sqs:GetQueueAttributes", SWEEP_DLQ),
        ("sqs:GetQueueUrl", SWEEP_DLQ),
        ("sns:Publish", EVENTS),
    },
}
ENVIRONMENT = {
    "accept": {"JOBS_TABLE", "INPUTS_BUCKET", "TENANTS", "DEADLINE_S", "DUE_GRACE_S", "NOT_BEFORE_MAX_S"},
    "query": {"JOBS_TABLE", "RESULTS_BUCKET", "TENANTS", "WAIT_MAX_S"},
    "dispatch": {"JOBS_TABLE", "WORK_QUEUE_URL", "WORK_DLQ_URL", "DISPATCH_DLQ_URL", "JOB_EVENTS_TOPIC_ARN"},
    "worker": {
        "JOBS_TABLE", "ANSWERS_TABLE", "INPUTS_BUCKET", "RESULTS_BUCKET", "WORK_QUEUE_URL", "WORK_DLQ_URL",
        "MODEL_ID", "MODEL_TIMEOUT_S", "MAX_ATTEMPTS", "RETRY_BASE_S", "RETRY_CAP_S", "MAX_SAMPLES",
        "ANSWER_DAYS", "RECORD_DAYS", "DUE_GRACE_S", "SWEEP_PERIOD_S", "DEADLINE_S", "JITTER",
    },
    "sweep": {
        "JOBS_TABLE", "WORK_QUEUE_URL", "WORK_DLQ_URL", "JOB_EVENTS_TOPIC_ARN", "DUE_GRACE_S",
        "SWEEP_PERIOD_S", "RECORD_DAYS", "MAX_ATTEMPTS",
    },
}  # fmt: skip


def without_hash(resource: str) -> str:
    """A logical id as it would be without CDK's eight hexadecimal digits."""
    return re.sub(r"(?<=[a-z])[0-9A-F]{8}(?![0-9A-Za-z])", "", resource)


@pytest.mark.parametrize("role", ROLES)
def test_a_function_may_do_exactly_what_its_part_needs(prod: Template, role: str) -> None:
    granted = {(action, without_hash(on)) for action, on in prod.permissions(role)}
    logs = {(action, on) for action, on in granted if action.startswith("logs:")}
    assert {action for action, _ in logs} == {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert granted - logs == ALLOWED[role]


@pytest.mark.parametrize("role", ROLES)
def test_a_function_finds_exactly_its_part_of_the_contract_in_its_environment(prod: Template, role: str) -> None:
    always = {"LOG_LEVEL", "POWERTOOLS_SERVICE_NAME"}
    assert prod.environment(role).keys() == ENVIRONMENT[role] | always
    assert ENVIRONMENT[role] <= {value for name, value in vars(names).items() if name.isupper()}


def test_no_policy_has_a_star_where_a_name_would_do(prod: Template) -> None:
    prefixes = ("inputs/*", "context/*", "results/*", "answers/*", "/stream/*")
    for policy in prod.of_type("IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert not any("*" in action for action in listed(statement["Action"]))
            for resource in map(target, listed(statement["Resource"])):
                assert "*" not in resource or resource.endswith(prefixes), resource


def test_no_role_borrows_a_managed_policy(prod: Template) -> None:
    assert not any("ManagedPolicyArns" in one["Properties"] for one in prod.of_type("IAM::Role").values())


def test_the_model_is_reached_in_other_regions_only_through_its_profile(prod: Template) -> None:
    """BED-06."""
    (routed,) = (s for s in prod.statements("worker") if "Condition" in s)
    assert routed["Action"] == "bedrock:InvokeModel"
    assert target(routed["Condition"]["StringEquals"]["bedrock:InferenceProfileArn"]) == PROFILE
    assert all(":foundation-model/" in target(one) for one in routed["Resource"])


@pytest.mark.parametrize("role", ROLES)
def test_functions_run_on_arm_under_python_3_13_and_share_one_code_and_one_layer(prod: Template, role: str) -> None:
    properties = prod.function(role)["Properties"]
    assert (properties["Runtime"], properties["Architectures"]) == ("python3.13", ["arm64"])
    assert properties["Code"] == prod.function("accept")["Properties"]["Code"]
    assert [layer["Ref"] for layer in properties["Layers"]] == list(prod.of_type("Lambda::LayerVersion"))


def test_no_function_reserves_concurrency(prod: Template) -> None:
    """SQS-06; a new account has ten in all."""
    functions = prod.of_type("Lambda::Function").values()
    assert not any("ReservedConcurrentExecutions" in one["Properties"] for one in functions)


def test_timeouts_are_those_of_the_design(prod: Template) -> None:
    assert {role: prod.function(role)["Properties"]["Timeout"] for role in ROLES[:4]} == {
        "accept": 10,
        "query": 29,
        "dispatch": 30,
        "worker": 120,
    }


@pytest.mark.parametrize("environment", ["prod", "dev"])
def test_every_function_logs_to_a_group_that_forgets(request: pytest.FixtureRequest, environment: str) -> None:
    """CDK-08: those of custom resources too."""
    template: Template = request.getfixturevalue(environment)
    groups = template.of_type("Logs::LogGroup")
    assert all(0 < one["Properties"]["RetentionInDays"] <= 30 for one in groups.values())
    used = [
        one["Properties"]["LoggingConfig"]["LogGroup"]["Ref"] for one in template.of_type("Lambda::Function").values()
    ]
    assert len(set(used)) == len(used)
    assert set(used) < set(groups)


def test_only_a_deployment_with_a_sender_may_send_mail_and_only_as_that_sender(
    prod: Template, synthesize: Synthesize
) -> None:
    assert names.MAIL_FROM not in prod.environment("worker")
    assert "ses:SendEmail" not in json.dumps(prod.resources)
    sending = synthesize(mail_from="jobs@example.com")
    assert sending.environment("worker")[names.MAIL_FROM] == "jobs@example.com"
    (permit,) = [one for one in sending.statements("worker") if "ses:SendEmail" in listed(one["Action"])]
    assert permit["Condition"] == {"StringEquals": {"ses:FromAddress": "jobs@example.com"}}
    assert all("identity/" in json.dumps(resource) for resource in listed(permit["Resource"]))
    assert "*" not in json.dumps(permit["Resource"])
