"""What AWS documents, asked of the emulator itself, where the stack cannot be asked. What fails here is listed in
gaps.py. A TimeoutError or RuntimeError is no such failure: the question could not be put."""

from __future__ import annotations

import io
import json
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest

from tests.ministack.gaps import ASKED_INSTEAD, UNKNOWN_TYPES
from tests.ministack.processes import eventually

PATIENCE_S = 8.0
_HANDLER = """
import json, os
import boto3

def handler(event, context):
    records = event.get("Records", [])
    if "HEARD" in os.environ:
        heard = [record["dynamodb"]["Keys"]["pk"]["S"] for record in records]
        boto3.client("sqs").send_message(QueueUrl=os.environ["HEARD"], MessageBody=json.dumps(heard))
    if os.environ["DOES"] == "report":
        return {"batchItemFailures": [{"itemIdentifier": records[0]["dynamodb"]["SequenceNumber"]}]}
    raise ValueError("as it was told")
"""


class Bench:
    """Makes resources for one probe, and takes them away again."""

    def __init__(self) -> None:
        self.name = f"probe-{uuid.uuid4().hex[:12]}"
        self._undo: list[Callable[[], object]] = []

    def client(self, service: str) -> Any:
        return boto3.client(service)  # type: ignore[call-overload]

    def later(self, undo: Callable[[], object]) -> None:
        self._undo.append(undo)

    def end(self) -> None:
        while self._undo:
            self._undo.pop()()

    def queue(self, suffix: str = "queue", **attributes: str) -> tuple[str, str]:
        """Its address and its ARN."""
        sqs = self.client("sqs")
        url = sqs.create_queue(QueueName=f"{self.name}-{suffix}", Attributes=attributes)["QueueUrl"]
        self.later(lambda: sqs.delete_queue(QueueUrl=url))
        return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]

    def versioned_bucket(self) -> tuple[str, str]:
        """Its name, and the version of the object `a` in it. Their end is the emulator's."""
        s3 = self.client("s3")
        s3.create_bucket(Bucket=self.name)
        s3.put_bucket_versioning(Bucket=self.name, VersioningConfiguration={"Status": "Enabled"})
        return self.name, s3.put_object(Bucket=self.name, Key="a", Body=b"a")["VersionId"]

    def role(self, *actions: str) -> str:
        """The ARN of a role that may do this, and nothing else."""
        iam = self.client("iam")
        trusts = {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com", "AWS": "*"},
            "Action": "sts:AssumeRole",
        }
        may = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
        arn = iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=_policy(trusts))["Role"]["Arn"]
        self.later(lambda: iam.delete_role(RoleName=self.name))
        iam.put_role_policy(RoleName=self.name, PolicyName="may", PolicyDocument=_policy(may))
        self.later(lambda: iam.delete_role_policy(RoleName=self.name, PolicyName="may"))
        return str(arn)

    def acting(self, role: str, service: str) -> Any:
        """A client that is this role."""
        key = self.client("sts").assume_role(RoleArn=role, RoleSessionName="probe")["Credentials"]
        return boto3.client(  # type: ignore[call-overload]
            service, aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"],
            aws_session_token=key["SessionToken"],
        )  # fmt: skip

    def function(self, **environment: str) -> str:
        """The name of a function that DOES what is said."""
        lambda_ = self.client("lambda")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("told.py", _HANDLER)
        lambda_.create_function(
            FunctionName=self.name, Runtime="python3.13", Handler="told.handler", Timeout=20,
            Role=self.role("sqs:SendMessage", "dynamodb:*"), Code={"ZipFile": packed.getvalue()},
            Environment={"Variables": environment},
        )  # fmt: skip
        self.later(lambda: lambda_.delete_function(FunctionName=self.name))
        return self.name

    def stream(self, *items: str) -> str:
        """The ARN of a table's stream that has these records."""
        dynamodb = self.client("dynamodb")
        table = dynamodb.create_table(
            TableName=self.name, BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        )["TableDescription"]  # fmt: skip
        self.later(lambda: dynamodb.delete_table(TableName=self.name))
        for item in items:
            dynamodb.put_item(TableName=self.name, Item={"pk": {"S": item}})
        return str(table["LatestStreamArn"])

    def heard(self, does: str, items: tuple[str, ...], **mapping: Any) -> Callable[[], list[list[str]]]:
        """What a function that is mapped to a stream has heard so far, batch by batch; it has heard something."""
        url, _ = self.queue("heard")
        function, lambda_ = self.function(DOES=does, HEARD=url), self.client("lambda")
        made = lambda_.create_event_source_mapping(
            EventSourceArn=self.stream(*items), FunctionName=function, StartingPosition="TRIM_HORIZON", **mapping
        )
        self.later(lambda: lambda_.delete_event_source_mapping(UUID=made["UUID"]))
        batches: list[list[str]] = []

        def look() -> list[list[str]]:
            batches.extend(json.loads(body) for body in _bodies(self.client("sqs"), url))
            return batches

        eventually(look, patience_s=30)
        return look


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.end()


@pytest.mark.parametrize("type_", UNKNOWN_TYPES)
def test_cloudformation_takes_every_type_of_the_stack(bench: Bench, type_: str) -> None:
    template = {"Resources": {"Probe": {"Type": type_, "Properties": {"Name": "a", "QueryString": "fields @message"}}}}
    bench.client("cloudformation").validate_template(TemplateBody=json.dumps(template))


def test_cloudformation_makes_an_alarm_on_metric_math(bench: Bench) -> None:
    metric = {"Metric": {"Namespace": "AWS/SQS", "MetricName": "NumberOfMessagesSent"}, "Period": 60, "Stat": "Sum"}
    metrics = [{"Id": "m", "MetricStat": metric, "ReturnData": False}, {"Id": "e", "Expression": "m * 2"}]
    alarm = {"ComparisonOperator": "GreaterThanThreshold", "EvaluationPeriods": 1, "Threshold": 1, "Metrics": metrics}
    template = {"Resources": {"Probe": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm}}}
    cloudformation = bench.client("cloudformation")
    cloudformation.create_stack(StackName=bench.name, TemplateBody=json.dumps(template))
    bench.later(lambda: cloudformation.delete_stack(StackName=bench.name))

    def status() -> str:
        return str(cloudformation.describe_stacks(StackName=bench.name)["Stacks"][0]["StackStatus"])

    eventually(lambda: not status().endswith("_IN_PROGRESS"), patience_s=30)
    assert status() == "CREATE_COMPLETE"


@pytest.mark.parametrize("action", ASKED_INSTEAD)
def test_who_may_do_one_may_do_a_batch(bench: Bench, action: str) -> None:
    """Service Authorization Reference, Amazon SQS, SNS and S3: batches have no action of their own."""
    url, _ = bench.queue()
    client = bench.acting(bench.role(action), action.partition(":")[0])
    entry = {"Id": "1", "ReceiptHandle": "none"}
    match action:
        case "sqs:SendMessage":
            client.send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "a"}])
        case "sqs:DeleteMessage":
            client.delete_message_batch(QueueUrl=url, Entries=[entry])
        case "sqs:ChangeMessageVisibility":
            client.change_message_visibility_batch(QueueUrl=url, Entries=[{**entry, "VisibilityTimeout": 1}])
        case "sns:Publish":
            topic = bench.client("sns").create_topic(Name=bench.name)["TopicArn"]
            bench.later(lambda: bench.client("sns").delete_topic(TopicArn=topic))
            client.publish_batch(TopicArn=topic, PublishBatchRequestEntries=[{"Id": "1", "Message": "a"}])
        case "s3:DeleteObjectVersion":
            bucket, version = bench.versioned_bucket()
            told = client.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a", "VersionId": version}]})
            assert "Errors" not in told
        case _:
            raise RuntimeError(f"nobody knows how to ask for {action}")


def test_a_stream_brings_back_what_its_function_reports_as_failed(bench: Bench) -> None:
    """Lambda guide, "Reporting batch item failures": from the lowest reported sequence number on, again."""
    heard = bench.heard("report", ("a",), FunctionResponseTypes=["ReportBatchItemFailures"], MaximumRetryAttempts=5)
    assert within(lambda: len(heard()) > 1)


def test_a_stream_parts_a_batch_that_fails(bench: Bench) -> None:
    """CreateEventSourceMapping, BisectBatchOnFunctionError: split the batch in two and retry."""
    heard = bench.heard("raise", ("a", "b"), BisectBatchOnFunctionError=True, MaximumRetryAttempts=5)
    assert within(lambda: ["a"] in heard())


def test_a_stream_gives_up_after_its_retries_and_leaves_a_letter(bench: Bench) -> None:
    """CreateEventSourceMapping, MaximumRetryAttempts and DestinationConfig: discard after so many, and tell."""
    letters, arn = bench.queue("letters")
    bench.heard("raise", ("a",), MaximumRetryAttempts=1, DestinationConfig={"OnFailure": {"Destination": arn}})
    assert within(lambda: _bodies(bench.client("sqs"), letters))


def test_an_error_of_a_function_says_its_type(bench: Bench) -> None:
    """Lambda guide, Python exceptions: errorType is the name of the exception."""
    answer = bench.client("lambda").invoke(FunctionName=bench.function(DOES="raise"), Payload=b"{}")
    told = json.loads(answer["Payload"].read())
    if told["errorMessage"] != "as it was told":
        raise RuntimeError(told)
    assert told["errorType"] == "ValueError"


def test_dead_letters_are_moved_back_by_sqs(bench: Bench) -> None:
    """SQS, StartMessageMoveTask: from a dead-letter queue to where its letters came from, or are to go."""
    letters, arn = bench.queue("letters")
    target, target_arn = bench.queue(
        "work", RedrivePolicy=json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 5})
    )
    sqs = bench.client("sqs")
    sqs.send_message(QueueUrl=letters, MessageBody="letter")
    sqs.start_message_move_task(SourceArn=arn, DestinationArn=target_arn)
    assert within(lambda: _bodies(sqs, target) == ["letter"])


def test_a_queue_has_metrics(bench: Bench) -> None:
    """SQS guide, "Available CloudWatch metrics". The alarms on queues see nothing without."""
    url, arn = bench.queue()
    bench.client("sqs").send_message(QueueUrl=url, MessageBody="a")
    of_queue = [{"Name": "QueueName", "Value": arn.rpartition(":")[2]}]
    cloudwatch = bench.client("cloudwatch")
    assert within(lambda: cloudwatch.list_metrics(Namespace="AWS/SQS", Dimensions=of_queue)["Metrics"])


def within(look: Callable[[], object]) -> bool:
    """Whether it comes true in time."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if look():
            return True
        time.sleep(0.3)
    return False


def _bodies(sqs: Any, url: str) -> list[str]:
    return [
        message["Body"] for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    ]


def _policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})
