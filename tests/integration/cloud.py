"""The synthesized stack on moto, in this process: its tables, queues, buckets, and each function's environment."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
from moto.dynamodb.models import dynamodb_backends
from moto.s3.models import FakeBucket, FakeKey, s3_backends
from moto.sqs.models import sqs_backends

from lambdas.adapters.attributes import from_item, to_item
from lambdas.contracts import names
from local.stack.stack import Stack
from tests.integration.wire import Wire
from tests.permissions.in_process import EYES, InProcess

ROOT = Path(__file__).resolve().parents[2]
REGION = "us-east-1"


class Context:
    """What Lambda hands a handler beside the event."""

    def __init__(self, remaining_s: float = 120.0, request_id: str | None = None) -> None:
        self.ends = time.time() + remaining_s
        self.aws_request_id = request_id or str(uuid.uuid4())
        self.function_name = "a-function"

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.ends - time.time()) * 1000))


@dataclass
class Cloud:
    """One provisioned stack. `wire` sees and disturbs every call to it."""

    stack: Stack
    wire: Wire
    heard_url: str = ""
    _clients: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.in_process = InProcess(self.stack)

    def client(self, service: str) -> Any:
        """For the test's own eyes; adapters get one with our retry settings."""
        if service not in self._clients:
            create: Any = boto3.client
            self._clients[service] = create(service, region_name=REGION, config=EYES)
        return self._clients[service]

    def environment(self, role: str) -> dict[str, str]:
        """The variables that the template gives this function."""
        handler = f"lambdas.handlers.{role}.handler"
        for function in self.stack.of_type("AWS::Lambda::Function"):
            if function.properties["Handler"] == handler:
                return dict(function.properties["Environment"]["Variables"])
        raise LookupError(f"the template has no function {handler}")

    @property
    def jobs_table(self) -> str:
        return self.stack.outputs["JobsTableName"]

    @property
    def answers_table(self) -> str:
        return self.stack.outputs["AnswersTableName"]

    @property
    def connections_table(self) -> str:
        return self.stack.outputs["ConnectionsTableName"]

    @property
    def inputs_bucket(self) -> str:
        return self.stack.outputs["InputsBucketName"]

    @property
    def results_bucket(self) -> str:
        return self.stack.outputs["ResultsBucketName"]

    @property
    def uploads_bucket(self) -> str:
        return self.stack.outputs["UploadsBucketName"]

    @property
    def inbox_url(self) -> str:
        return self.stack.outputs["InboxQueueUrl"]

    @property
    def inbox_letters_url(self) -> str:
        return self.stack.outputs["InboxDlqUrl"]

    @property
    def work_url(self) -> str:
        return self.stack.outputs["WorkQueueUrl"]

    @property
    def letters_url(self) -> str:
        return self.stack.outputs["WorkDlqUrl"]

    @property
    def urgent_url(self) -> str:
        return self.stack.outputs["UrgentQueueUrl"]

    @property
    def urgent_letters_url(self) -> str:
        return self.stack.outputs["UrgentDlqUrl"]

    @property
    def dispatch_letters_url(self) -> str:
        return self.stack.outputs["DispatchDlqUrl"]

    @property
    def topic_arn(self) -> str:
        return self.stack.outputs["JobEventsTopicArn"]

    def item(self, job_id: str) -> dict[str, Any] | None:
        """The record in DynamoDB's own form."""
        key = {"pk": {"S": job_id}, "sk": {"S": names.JOB_SK}}
        found: dict[str, Any] | None = (
            self.client("dynamodb").get_item(TableName=self.jobs_table, Key=key, ConsistentRead=True).get("Item")
        )
        return found

    def put(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Put a record as it stands; answers it."""
        self.client("dynamodb").put_item(TableName=self.jobs_table, Item=to_item(record))
        return dict(record)

    def record(self, job_id: str) -> dict[str, Any]:
        """The record as plain values. LookupError when there is none."""
        item = self.item(job_id)
        if item is None:
            raise LookupError(job_id)
        return from_item(item)

    def answer_rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.client("dynamodb").scan(TableName=self.answers_table)["Items"]
        return rows

    def objects(self, bucket: str) -> dict[str, bytes]:
        s3 = self.client("s3")
        found = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        return {one["Key"]: s3.get_object(Bucket=bucket, Key=one["Key"])["Body"].read() for one in found}

    def receive(self, url: str) -> list[dict[str, Any]]:
        """All visible messages, with everything that SQS tells about them; they are deleted."""
        sqs, found = self.client("sqs"), list[dict[str, Any]]()
        while True:
            batch = sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
            ).get("Messages", [])
            if not batch:
                return found
            for message in batch:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            found += batch

    def bodies(self, url: str) -> list[Any]:
        return [json.loads(message["Body"]) for message in self.receive(url)]

    def heard(self) -> list[SimpleNamespace]:
        """What was published to the topic: body and attributes."""
        messages = [json.loads(message["Body"]) for message in self.receive(self.heard_url)]
        return [
            SimpleNamespace(
                body=json.loads(one["Message"]),
                attributes={name: value["Value"] for name, value in one.get("MessageAttributes", {}).items()},
            )
            for one in messages
        ]

    def listen(self) -> None:
        """Subscribe a queue to the topic."""
        sqs = self.client("sqs")
        self.heard_url = sqs.create_queue(QueueName="heard")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=self.heard_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        self.client("sns").subscribe(TopicArn=self.topic_arn, Protocol="sqs", Endpoint=arn)

    def open_buckets(self) -> None:
        """moto takes a TLS-only policy for a denial of everything: it looks at no condition."""
        for bucket in (self.inputs_bucket, self.results_bucket, self.uploads_bucket):
            self.client("s3").delete_bucket_policy(Bucket=bucket)

    def wipe(self) -> None:
        """As it was when it was provisioned: what this test touched is emptied, where moto keeps it. Asking for each
        deletion takes a sixth of a suite's time."""
        account = self.stack.account
        if self.wire.count(service="dynamodb"):
            for table in dynamodb_backends[account][self.stack.region].tables.values():
                table.items.clear()
        if self.wire.count(service="s3"):
            for bucket in s3_backends[account]["aws"].buckets.values():
                _empty(bucket)
        for queue in sqs_backends[account][self.stack.region].queues.values():
            # PurgeQueue may be called once a minute
            queue._messages, queue._pending_messages, queue.deleted_messages = [], set(), set()
        self.wire.clear()


def _empty(bucket: FakeBucket) -> None:
    """With their files."""
    for name in list(bucket.keys):
        for version in bucket.keys.getlist(name):
            if isinstance(version, FakeKey):
                version.dispose()
    for upload in bucket.multiparts.values():
        upload.dispose()
    bucket.keys.clear()
    bucket.multiparts.clear()
