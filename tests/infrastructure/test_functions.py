"""What every function has, what it finds in its environment, and the little it may do."""

from __future__ import annotations

import json
import re

import pytest

from lambdas.contracts import names
from tests.infrastructure.conftest import Synthesize
from tests.infrastructure.templates import Template, listed, target

ROLES = (
    "accept",
    "query",
    "dispatch",
    "worker",
    "sweep",
    "control",
    "ingest",
    "admin",
    "redrive",
    "deliver",
    "webhooks",
    "ticket",
    "connect",
    "socket",
    "push",
    "branch",
    "collect",
    "ended",
)
JOBS, ANSWERS = "StorageJobs", "StorageAnswers"
INPUTS, RESULTS = "StorageInputs", "StorageResults"
UPLOADS = "StorageUploads"
WORK, WORK_DLQ = "QueuesWork", "QueuesWorkDeadLetters"
URGENT, URGENT_DLQ = "QueuesUrgent", "QueuesUrgentDeadLetters"
DISPATCH_DLQ, SWEEP_DLQ, EVENTS = "DispatchDeadLetters", "SweepDeadLetters", "NotificationsJobEvents"
PROFILE = "arn:aws:bedrock:us-east-1:<AWS::AccountId>:inference-profile/us.amazon.nova-lite-v1:0"
ASKING = ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream")
MODEL = "arn:aws:bedrock:{}::foundation-model/amazon.nova-lite-v1:0"

INBOX, INBOX_DLQ, REDRIVE_DLQ = "QueuesInbox", "QueuesInboxDeadLetters", "AdminDeadLetters"
CONNECTIONS, PUSH_DLQ = "StreamingConnections", "StreamingDeadLetters"
POSTING = "arn:aws:execute-api:us-east-1:<AWS::AccountId>:StreamingWebSocket/live/POST/@connections/*"
DELIVERIES, DELIVERIES_DLQ = "QueuesDeliveries", "QueuesDeliveriesDeadLetters"
SERVED = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
LOOKING = (*SERVED, "ChangeMessageVisibility")

LETTERS = {
    *((f"sqs:{action}", queue) for action in LOOKING for queue in (WORK_DLQ, URGENT_DLQ, INBOX_DLQ, DELIVERIES_DLQ)),
    *(("sqs:SendMessage", queue) for queue in (WORK, URGENT, INBOX, DELIVERIES)),
}
A_MACHINE = "a machine"  # whichever there are: workflows are data
ENDED_DLQ = "WorkflowsDeadLetters"
EXECUTIONS = "arn:aws:states:us-east-1:<AWS::AccountId>:execution:{}.Name:*"
RUNNING_TASKS = {
    ("dynamodb:GetItem", JOBS),
    ("dynamodb:UpdateItem", JOBS),
    *((f"dynamodb:{action}", ANSWERS) for action in ("GetItem", "PutItem", "UpdateItem", "DeleteItem")),
    ("s3:GetObject", f"{INPUTS}/inputs/*"),
    ("s3:GetObject", f"{INPUTS}/context/*"),
    ("s3:GetObject", f"{UPLOADS}/uploads/*"),
    ("s3:GetObjectVersion", f"{UPLOADS}/uploads/*"),
    *(("s3:ListBucket", bucket) for bucket in (INPUTS, RESULTS, UPLOADS)),
    ("s3:PutObject", f"{RESULTS}/results/*"),
    *((f"s3:{action}", f"{RESULTS}/answers/*") for action in ("PutObject", "GetObject", "DeleteObject")),
    *((action, PROFILE) for action in ASKING),
    *((action, MODEL.format(region)) for action in ASKING for region in ("us-east-1", "us-east-2", "us-west-2")),
}
SENDING = {
    *((f"dynamodb:{action}", JOBS) for action in ("GetItem", "Query")),
    *((f"dynamodb:{action}", CONNECTIONS) for action in ("Query", "UpdateItem", "DeleteItem")),
    ("s3:GetObject", f"{RESULTS}/results/*"),
    ("execute-api:ManageConnections", POSTING),
}
ALLOWED = {
    "ticket": {("dynamodb:GetItem", JOBS), ("dynamodb:PutItem", CONNECTIONS)},
    "connect": {("dynamodb:DeleteItem", CONNECTIONS)},
    "socket": {*SENDING, *((f"dynamodb:{action}", CONNECTIONS) for action in ("GetItem", "PutItem"))},
    "push": {
        *SENDING,
        *(
            (f"dynamodb:{action}", f"{JOBS}.StreamArn")
            for action in ("DescribeStream", "GetRecords", "GetShardIterator")
        ),
        ("dynamodb:ListStreams", f"{JOBS}/stream/*"),
        ("sqs:SendMessage", PUSH_DLQ),
    },
    "admin": {
        *((f"dynamodb:{action}", JOBS) for action in ("GetItem", "BatchGetItem", "PutItem", "UpdateItem", "Query")),
        ("s3:GetObject", f"{RESULTS}/sweeps/*"),
        ("s3:ListBucket", RESULTS),
        ("lambda:InvokeFunction", "SweepFunction"),
        ("lambda:InvokeFunction", "AdminRedriveFunction"),
        *LETTERS,
    },
    "redrive": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:UpdateItem", JOBS),
        ("lambda:InvokeFunction", "AdminRedriveFunction"),
        ("sqs:SendMessage", REDRIVE_DLQ),
        *LETTERS,
    },
    "accept": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:PutItem", JOBS),
        ("s3:PutObject", f"{INPUTS}/inputs/*"),
        ("s3:PutObject", f"{UPLOADS}/uploads/*"),
    },
    "ingest": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:PutItem", JOBS),
        ("s3:PutObject", f"{INPUTS}/inputs/*"),
        ("s3:ListBucketVersions", UPLOADS),
        *((f"sqs:{action}", INBOX) for action in SERVED),
        ("sqs:SendMessage", INBOX_DLQ),
    },
    "query": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:BatchGetItem", JOBS),
        ("dynamodb:Query", f"{JOBS}/index/by_tenant"),
        ("dynamodb:Query", JOBS),
        ("s3:GetObject", f"{RESULTS}/results/*"),
        ("s3:ListBucket", RESULTS),
    },
    "dispatch": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:UpdateItem", JOBS),
        ("dynamodb:DescribeStream", f"{JOBS}.StreamArn"),
        ("dynamodb:GetRecords", f"{JOBS}.StreamArn"),
        ("dynamodb:GetShardIterator", f"{JOBS}.StreamArn"),
        ("dynamodb:ListStreams", f"{JOBS}/stream/*"),
        *(("sqs:SendMessage", queue) for queue in (WORK, WORK_DLQ, URGENT, URGENT_DLQ)),
        ("sqs:SendMessage", DISPATCH_DLQ),
        ("sqs:SendMessage", DELIVERIES),
        ("sns:Publish", EVENTS),
        ("states:StopExecution", EXECUTIONS.format(A_MACHINE)),
    },
    "deliver": {
        *((f"dynamodb:{action}", JOBS) for action in ("GetItem", "PutItem", "UpdateItem", "Query")),
        *((f"sqs:{action}", DELIVERIES) for action in LOOKING),
        ("sqs:SendMessage", DELIVERIES_DLQ),
        ("secretsmanager:GetSecretValue", "WebhooksSecret"),
    },
    "webhooks": {
        *((f"dynamodb:{action}", JOBS) for action in ("GetItem", "PutItem", "UpdateItem", "Query", "DeleteItem")),
        ("secretsmanager:GetSecretValue", "WebhooksSecret"),
    },
    "worker": {
        *RUNNING_TASKS,
        ("dynamodb:PutItem", JOBS),
        *((f"sqs:{action}", queue) for action in LOOKING for queue in (WORK, URGENT)),
        ("sqs:SendMessage", WORK_DLQ),
        ("sqs:SendMessage", URGENT_DLQ),
        ("states:StartExecution", A_MACHINE),
        ("states:DescribeExecution", EXECUTIONS.format(A_MACHINE)),
    },
    "branch": {  # it streams nothing
        *(one for one in RUNNING_TASKS if one[0] != ASKING[1]),
        ("s3:GetObject", f"{RESULTS}/results/*"),
    },
    "collect": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:UpdateItem", JOBS),
        ("s3:GetObject", f"{RESULTS}/results/*"),
        ("s3:PutObject", f"{RESULTS}/results/*"),
        ("s3:ListBucket", RESULTS),
    },
    "ended": {
        ("dynamodb:GetItem", JOBS),
        ("dynamodb:UpdateItem", JOBS),
        ("states:DescribeExecution", EXECUTIONS.format(A_MACHINE)),
        ("sqs:SendMessage", ENDED_DLQ),
    },
    "sweep": {
        *(("dynamodb:Query", f"{JOBS}/index/{index}") for index in ("due", "by_upload")),
        *((f"dynamodb:{action}", JOBS) for action in ("GetItem", "PutItem", "UpdateItem", "Scan")),
        *LETTERS,
        ("s3:ListBucketVersions", UPLOADS),
        ("s3:PutObject", f"{RESULTS}/sweeps/*"),
        ("s3:GetObject", f"{RESULTS}/results/*"),
        ("s3:ListBucket", RESULTS),
        ("lambda:InvokeFunction", "SweepFunction"),
        *(("sqs:SendMessage", queue) for queue in (WORK_DLQ, URGENT_DLQ)),
        ("sqs:GetQueueAttributes", WORK),
        ("sqs:GetQueueAttributes", DELIVERIES),
        ("sqs:SendMessage", SWEEP_DLQ),
        ("sns:Publish", EVENTS),
        ("sns:GetTopicAttributes", EVENTS),
        ("states:DescribeExecution", EXECUTIONS.format(A_MACHINE)),
        ("states:StopExecution", EXECUTIONS.format(A_MACHINE)),
    },
    "control": {
        *((f"dynamodb:{action}", JOBS) for action in ("GetItem", "UpdateItem", "Query", "BatchWriteItem")),
        ("s3:DeleteObject", f"{INPUTS}/inputs/*"),
        ("s3:DeleteObject", f"{RESULTS}/results/*"),
        ("s3:DeleteObjectVersion", f"{UPLOADS}/uploads/*"),
        ("s3:ListBucketVersions", UPLOADS),
        ("s3:ListBucket", RESULTS),
    },
}
DELIVERING = {"DELIVERIES_QUEUE_URL", "DELIVERIES_DLQ_URL"}
QUEUES = {"WORK_QUEUE_URL", "WORK_DLQ_URL", "URGENT_QUEUE_URL", "URGENT_DLQ_URL"}
ASKING_TASKS = {
    "JOBS_TABLE", "ANSWERS_TABLE", "INPUTS_BUCKET", "RESULTS_BUCKET", "UPLOADS_BUCKET", "UPLOAD_MAX_BYTES", "MODEL_ID",
    "MODEL_TIMEOUT_S", "MAX_SAMPLES", "ANSWER_DAYS", "RECORD_DAYS", "DUE_GRACE_S",
}  # fmt: skip
SENDER = {"JOBS_TABLE", "RESULTS_BUCKET", "CONNECTIONS_TABLE", names.PUSH_URL}
ENVIRONMENT = {
    "ticket": {"JOBS_TABLE", "CONNECTIONS_TABLE", "WEBSOCKET_URL", "TENANTS"},
    "connect": {"CONNECTIONS_TABLE"},
    "socket": SENDER,
    "push": SENDER,
    "admin": {
        "JOBS_TABLE", "RESULTS_BUCKET", "SWEEP_FUNCTION", "REDRIVE_FUNCTION", "SOURCES", "RECORD_DAYS",
        *QUEUES, "INBOX_QUEUE_URL", "INBOX_DLQ_URL", *DELIVERING,
    },
    "redrive": {"JOBS_TABLE", *QUEUES, "INBOX_QUEUE_URL", "INBOX_DLQ_URL", *DELIVERING},
    "accept": {
        "JOBS_TABLE", "INPUTS_BUCKET", "UPLOADS_BUCKET", "UPLOAD_MAX_BYTES", "TENANTS", "DEADLINE_S", "DUE_GRACE_S",
        "NOT_BEFORE_MAX_S",
    },
    "ingest": {
        "JOBS_TABLE", "INPUTS_BUCKET", "UPLOADS_BUCKET", "INBOX_DLQ_URL", "SOURCES", "DEADLINE_S", "DUE_GRACE_S",
    },
    "query": {"JOBS_TABLE", "RESULTS_BUCKET", "TENANTS", "WAIT_MAX_S"},
    "dispatch": {
        "JOBS_TABLE", *QUEUES, "DISPATCH_DLQ_URL", "JOB_EVENTS_TOPIC_ARN", "DELIVERIES_QUEUE_URL", "WORKFLOWS",
    },
    "branch": ASKING_TASKS,
    "collect": {"JOBS_TABLE", "RESULTS_BUCKET", "RECORD_DAYS", "DUE_GRACE_S"},
    "ended": {"JOBS_TABLE", "WORKFLOWS", "RECORD_DAYS", "DUE_GRACE_S", "RETRY_BASE_S", "RETRY_CAP_S", "JITTER"},
    "deliver": {
        "JOBS_TABLE", *DELIVERING, "WEBHOOK_SECRET", "WEBHOOK_TIMEOUT_S", "WEBHOOK_HOURS", "WEBHOOK_CONCURRENCY",
        "DUE_GRACE_S", "SWEEP_PERIOD_S", "RECORD_DAYS",
    },
    "webhooks": {"JOBS_TABLE", "TENANTS", "WEBHOOK_SECRET", "WEBHOOK_HOURS", "DUE_GRACE_S", "RECORD_DAYS"},
    "worker": {
        *ASKING_TASKS, *QUEUES, "MAX_ATTEMPTS", "RETRY_BASE_S", "RETRY_CAP_S", "SWEEP_PERIOD_S", "DEADLINE_S", "JITTER",
        "CHUNK_MS", "CHUNK_BYTES", "WORKFLOWS",
    },
    "sweep": {
        "JOBS_TABLE", "INPUTS_BUCKET", "RESULTS_BUCKET", "UPLOADS_BUCKET", *QUEUES, "INBOX_QUEUE_URL", "INBOX_DLQ_URL",
        *DELIVERING, "JOB_EVENTS_TOPIC_ARN", "SOURCES", "DEADLINE_S", "DUE_GRACE_S", "SWEEP_PERIOD_S",
        "SWEEP_WINDOW_DAYS",
        "SOURCE_GRACE_S", "SWEEP_WIDTH", "SWEEP_RATE", "SWEEP_PAGE", "RECORD_DAYS", "MAX_ATTEMPTS",
        "RETRY_BASE_S", "RETRY_CAP_S", "JITTER", "WORKFLOWS",
    },
    "control": {
        "JOBS_TABLE", "INPUTS_BUCKET", "RESULTS_BUCKET", "UPLOADS_BUCKET", "TENANTS", "DEADLINE_S", "DUE_GRACE_S",
        "RECORD_DAYS",
    },
}  # fmt: skip


def without_hash(resource: str) -> str:
    """A logical id as it would be without CDK's eight hexadecimal digits; a state machine without its name."""
    plain = re.sub(r"(?<=[a-z])[0-9A-F]{8}(?![0-9A-Za-z])", "", resource)
    return re.sub(r"WorkflowsMachines[0-9A-Za-z]+", A_MACHINE, plain)


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


def test_no_function_is_told_that_it_runs_on_this_machine(prod: Template) -> None:
    """Who believes it delivers to loopback, and without TLS."""
    told = [one["Properties"]["Environment"]["Variables"] for one in prod.of_type("Lambda::Function").values()]
    assert told
    assert not [variables for variables in told if names.LOCAL in variables]


def test_no_policy_has_a_star_where_a_name_would_do(prod: Template) -> None:
    prefixes = (
        "inputs/*",
        "context/*",
        "results/*",
        "answers/*",
        "uploads/*",
        "sweeps/*",
        "/stream/*",
        "/@connections/*",
        ".Name:*",  # executions of one state machine
    )
    for policy in prod.of_type("IAM::Policy").values():
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert not any("*" in action for action in listed(statement["Action"]))
            for resource in map(target, listed(statement["Resource"])):
                assert "*" not in resource or resource.endswith(prefixes), resource


def test_no_role_borrows_a_managed_policy(prod: Template) -> None:
    assert not any("ManagedPolicyArns" in one["Properties"] for one in prod.of_type("IAM::Role").values())


@pytest.mark.parametrize("role", ["worker", "branch"])
def test_the_model_is_reached_in_other_regions_only_through_its_profile(prod: Template, role: str) -> None:
    """BED-06."""
    (routed,) = (s for s in prod.statements(role) if "Condition" in s)
    assert tuple(listed(routed["Action"])) == (ASKING if role == "worker" else ASKING[:1])
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
    timed = ("accept", "query", "control", "ingest", "dispatch", "worker", "branch", "collect", "ended")
    assert {role: prod.function(role)["Properties"]["Timeout"] for role in timed} == {
        "accept": 10,
        "query": 29,
        "control": 29,
        "ingest": 30,
        "dispatch": 30,
        "worker": 120,
        "branch": 300,
        "collect": 60,
        "ended": 30,
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
    assert "ses:SendEmail" not in json.dumps(prod.resources)
    sending = synthesize(mail_from="jobs@example.com")
    for role in ("worker", "branch"):
        assert names.MAIL_FROM not in prod.environment(role)
        assert sending.environment(role)[names.MAIL_FROM] == "jobs@example.com"
        (permit,) = [one for one in sending.statements(role) if "ses:SendEmail" in listed(one["Action"])]
        assert permit["Condition"] == {"StringEquals": {"ses:FromAddress": "jobs@example.com"}}
        assert all("identity/" in json.dumps(resource) for resource in listed(permit["Resource"]))
        assert "*" not in json.dumps(permit["Resource"])


def test_control_lists_results_alone(prod: Template) -> None:
    """The prefix of a job's results; not what else lies in that bucket."""
    (listing,) = [one for one in prod.statements("control") if "s3:ListBucket" in listed(one["Action"])]
    assert listing["Condition"] == {"StringLike": {"s3:prefix": "results/*"}}


def test_only_what_goes_on_by_itself_may_call_itself(prod: Template) -> None:
    """SQS-20: Lambda would end the loop after 16 calls; `redrive` has a bound of its own."""
    looping = {
        one["Properties"]["Handler"].split(".")[2]
        for one in prod.of_type("Lambda::Function").values()
        if one["Properties"].get("RecursiveLoop") == "Allow"
    }
    assert "redrive" in looping
    for role in looping:
        function = prod.id_of(prod.function(role))
        assert any(
            on.startswith(function) for action, on in prod.permissions(role) if action == "lambda:InvokeFunction"
        )
