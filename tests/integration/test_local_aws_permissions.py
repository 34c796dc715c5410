"""A function may do what its role allows, and is refused everything else in the words of AWS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws.permissions import Permissions
from local.aws.server import Caller
from local.stack.provision import Stack, provision
from local.stack.template import parse
from tests.integration.local_aws import Aws, error_code, index, serving

ACCOUNT = "123456789012"
TABLE = f"arn:aws:dynamodb:us-east-1:{ACCOUNT}:table/jobs"
QUEUE = f"arn:aws:sqs:us-east-1:{ACCOUNT}:work"


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.server.reset()
    running.server.gates.clear()
    running.table("jobs", strings=("due_shard",), GlobalSecondaryIndexes=[index("due", "due_shard")])
    running.client("s3").create_bucket(Bucket="box")
    running.client("s3").put_object(Bucket="box", Key="inputs/1", Body=b"in")
    running.queue("work")
    return running


def grant(aws: Aws, *statements: tuple[str | list[str], str | list[str]], **more: object) -> Permissions:
    """Give the role of the key WORKER these (action, resource) pairs."""
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": action, "Resource": resource, **more} for action, resource in statements
        ],
    }
    stack = stack_with_role(aws, policy)
    role = stack.of_type("AWS::IAM::Role")[0].attributes["Arn"]
    permissions = Permissions(stack)
    aws.server.callers.register("WORKER", Caller("worker-function", role, "request-1"))
    aws.server.gates[:] = [permissions]
    return permissions


def stack_with_role(aws: Aws, policy: dict[str, Any]) -> Stack:
    document = {
        "Resources": {
            "WorkerRole": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {}}},
            "WorkerPolicy": {
                "Type": "AWS::IAM::Policy",
                "Properties": {"PolicyName": "p", "PolicyDocument": policy, "Roles": [{"Ref": "WorkerRole"}]},
            },
        }
    }
    return provision(parse(document, name="test"), aws.server.url)


def denied(call: Callable[[], object]) -> ClientError:
    with pytest.raises(ClientError) as error:
        call()
    return error.value


def put(aws: Aws) -> None:
    aws.client("dynamodb", "WORKER").put_item(TableName="jobs", Item={"pk": {"S": "a"}})


def test_what_the_role_allows_is_carried_out(aws):
    grant(aws, ("dynamodb:PutItem", TABLE), ("sqs:SendMessage", QUEUE))
    put(aws)
    url = aws.client("sqs").get_queue_url(QueueName="work")["QueueUrl"]
    sqs = aws.client("sqs", "WORKER")
    sqs.send_message(QueueUrl=url, MessageBody="x")
    sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "x"}])


def test_what_no_policy_allows_is_refused_in_the_words_of_aws_and_has_no_effect(aws):
    grant(aws, ("dynamodb:GetItem", TABLE))
    error = denied(lambda: put(aws))
    assert error_code(error) == "AccessDeniedException"
    assert error.response["Error"]["Message"] == (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/test-WorkerRole-{_suffix()}/worker-function is not authorized to "
        f"perform: dynamodb:PutItem on resource: {TABLE} because no identity-based policy allows the "
        "dynamodb:PutItem action"
    )
    assert aws.client("dynamodb").scan(TableName="jobs")["Count"] == 0


def _suffix() -> str:
    from local.stack.names import suffix_of

    return suffix_of("test", "WorkerRole", 12).upper()


def test_the_developer_may_do_everything(aws):
    grant(aws, ("dynamodb:GetItem", TABLE))
    aws.client("dynamodb").put_item(TableName="jobs", Item={"pk": {"S": "a"}})


def query_due(aws: Aws) -> object:
    return aws.client("dynamodb", "WORKER").query(
        TableName="jobs",
        IndexName="due",
        KeyConditionExpression="due_shard = :s",
        ExpressionAttributeValues={":s": {"S": "s0"}},
    )


def test_a_query_of_an_index_is_allowed_on_the_index_and_not_on_the_table(aws):
    grant(aws, ("dynamodb:Query", TABLE))
    assert f"on resource: {TABLE}/index/due " in str(denied(lambda: query_due(aws)))
    grant(aws, ("dynamodb:Query", f"{TABLE}/index/due"))
    query_due(aws)


def test_each_part_of_a_transaction_needs_its_own_permission(aws):
    def attempt() -> object:
        return aws.client("dynamodb", "WORKER").transact_write_items(
            TransactItems=[
                {"Put": {"TableName": "jobs", "Item": {"pk": {"S": "a"}}}},
                {"Delete": {"TableName": "jobs", "Key": {"pk": {"S": "b"}}}},
            ]
        )

    grant(aws, ("dynamodb:PutItem", TABLE))
    assert "dynamodb:DeleteItem" in str(denied(attempt))
    grant(aws, (["dynamodb:PutItem", "dynamodb:DeleteItem"], TABLE))
    attempt()


def test_each_service_refuses_with_its_own_code(aws):
    grant(aws, ("dynamodb:PutItem", TABLE))
    url = aws.client("sqs").get_queue_url(QueueName="work")["QueueUrl"]
    arn = aws.client("sns").create_topic(Name="facts")["TopicArn"]
    codes = [
        error_code(denied(call))
        for call in (
            lambda: aws.client("sqs", "WORKER").send_message(QueueUrl=url, MessageBody="x"),
            lambda: aws.client("sns", "WORKER").publish(TopicArn=arn, Message="x"),
            lambda: aws.client("s3", "WORKER").put_object(Bucket="box", Key="x", Body=b""),
            lambda: aws.client("secretsmanager", "WORKER").get_secret_value(SecretId="x"),
        )
    ]
    assert codes == ["AccessDenied", "AuthorizationError", "AccessDenied", "AccessDeniedException"]


def get(aws: Aws, key: str, operation: str = "get_object") -> object:
    return getattr(aws.client("s3", "WORKER"), operation)(Bucket="box", Key=key)


def test_a_missing_object_is_403_for_whoever_may_not_list_the_bucket(aws):
    grant(aws, ("s3:GetObject", "arn:aws:s3:::box/inputs/*"))
    get(aws, "inputs/1")
    error = denied(lambda: get(aws, "inputs/none"))
    assert error_code(error) == "AccessDenied"
    assert "s3:ListBucket" in str(error)
    assert error_code(denied(lambda: get(aws, "inputs/none", "head_object"))) == "403"
    assert error_code(denied(lambda: get(aws, "results/1"))) == "AccessDenied"
    grant(aws, ("s3:GetObject", "arn:aws:s3:::box/inputs/*"), ("s3:ListBucket", "arn:aws:s3:::box"))
    assert error_code(denied(lambda: get(aws, "inputs/none"))) == "NoSuchKey"
    assert error_code(denied(lambda: get(aws, "inputs/none", "head_object"))) == "404"


def test_listing_may_be_bound_to_a_prefix(aws):
    grant(aws, ("s3:ListBucket", "arn:aws:s3:::box"), Condition={"StringLike": {"s3:prefix": ["inputs/*"]}})
    s3 = aws.client("s3", "WORKER")
    assert s3.list_objects_v2(Bucket="box", Prefix="inputs/")["KeyCount"] == 1
    assert error_code(denied(lambda: s3.list_objects_v2(Bucket="box"))) == "AccessDenied"
    assert error_code(denied(lambda: s3.list_objects_v2(Bucket="box", Prefix="other/"))) == "AccessDenied"


def test_deleting_many_objects_needs_permission_for_each(aws):
    grant(aws, ("s3:DeleteObject", "arn:aws:s3:::box/inputs/*"))
    s3 = aws.client("s3", "WORKER")
    s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": "inputs/1"}]})
    both = {"Objects": [{"Key": "inputs/2"}, {"Key": "results/2"}]}
    assert "box/results/2" in str(denied(lambda: s3.delete_objects(Bucket="box", Delete=both)))


def test_a_move_of_dead_letters_needs_what_it_does_on_both_queues(aws):
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-dead-letter-queue-redrive.html"""
    dlq = QUEUE.replace("work", "dlq")
    aws.queue("dlq")
    url = aws.client("sqs").get_queue_url(QueueName="work")["QueueUrl"]
    policy = f'{{"deadLetterTargetArn": "{dlq}", "maxReceiveCount": 2}}'
    aws.client("sqs").set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})
    takes = ["sqs:StartMessageMoveTask", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]

    def move() -> object:
        return aws.client("sqs", "WORKER").start_message_move_task(SourceArn=dlq, DestinationArn=QUEUE)

    for missing in takes:
        grant(aws, ([action for action in takes if action != missing], dlq), ("sqs:SendMessage", QUEUE))
        assert missing in str(denied(move))
    grant(aws, (takes, dlq))
    assert f"sqs:SendMessage on resource: {QUEUE}" in str(denied(move))
    grant(aws, (takes, dlq), ("sqs:SendMessage", QUEUE), ("sqs:ListMessageMoveTasks", dlq))
    move()
    assert aws.client("sqs", "WORKER").list_message_move_tasks(SourceArn=dlq)["Results"]


def test_an_explicit_deny_says_so(aws):
    policy = {
        "Statement": [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": "dynamodb:PutItem", "Resource": TABLE},
        ]
    }
    stack = stack_with_role(aws, policy)
    role = stack.of_type("AWS::IAM::Role")[0].attributes["Arn"]
    aws.server.callers.register("WORKER", Caller("worker", role))
    aws.server.gates[:] = [Permissions(stack)]
    assert "with an explicit deny in an identity-based policy" in str(denied(lambda: put(aws)))


def test_a_role_may_be_asked_for_what_other_servers_do(aws):
    model = "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0"
    permissions = grant(aws, ("bedrock:InvokeModel", model))
    role = aws.server.callers.find("WORKER").role_arn
    assert permissions.may(role, "bedrock:InvokeModel", model)
    assert not permissions.may(role, "bedrock:InvokeModel", model + "x")
