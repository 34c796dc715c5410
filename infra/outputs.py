"""What others need to know of a deployed stack: names, addresses and links into the console."""

from __future__ import annotations

from urllib.parse import quote

from aws_cdk import CfnOutput, Fn, Stack
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import declarations
from infra.admin import Admin
from infra.api import Api
from infra.dispatch import Dispatch
from infra.monitoring import Monitoring
from infra.notifications import Notifications
from infra.queues import Queues
from infra.storage import Storage
from infra.streaming import Streaming
from infra.sweep import Sweep
from infra.webhooks import Webhooks
from infra.workflows import Workflows


class Outputs(Construct):
    """The stack's outputs; `…Console` is where to click."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        storage: Storage,
        queues: Queues,
        notifications: Notifications,
        api: Api,
        dispatch: Dispatch,
        workflows: Workflows,
        streaming: Streaming,
        sweep: Sweep,
        admin: Admin,
        monitoring: Monitoring,
        webhooks: Webhooks,
    ) -> None:
        super().__init__(scope, construct_id)
        self._console = f"https://{Stack.of(self).region}.console.aws.amazon.com"
        self._output(
            "ApiUrl",
            api.http_api.api_endpoint,
            "The API: every call is signed (SigV4), see docs/deploying.md",
        )
        self._output("WebSocketUrl", streaming.url, "Where jobs are watched live: with a ticket, see docs/streaming.md")
        self._table("Jobs", storage.jobs.table_name)
        self._table("Answers", storage.answers.table_name)
        self._table("Connections", streaming.connections.table_name)
        self._queue("Work", queues.work)
        self._queue("WorkDlq", queues.work_dead_letters)
        self._queue("Urgent", queues.urgent)
        self._queue("UrgentDlq", queues.urgent_dead_letters)
        self._queue("Inbox", queues.inbox)
        self._queue("InboxDlq", queues.inbox_dead_letters)
        self._queue("Deliveries", queues.deliveries)
        self._queue("DeliveriesDlq", queues.deliveries_dead_letters)
        self._queue("DispatchDlq", dispatch.dead_letters)
        self._queue("PushDlq", streaming.dead_letters)
        self._queue("SweepDlq", sweep.dead_letters)
        self._queue("RedriveDlq", admin.dead_letters)
        self._queue("EndedDlq", workflows.dead_letters)
        for type_, machine in workflows.machines.items():
            self._machine(f"Workflow{declarations.pascal(type_)}", machine.state_machine_arn)
        self._output("WebhookSecretArn", webhooks.secret.secret_arn, "To change it, see docs/delivery.md")
        self._topic("JobEvents", notifications.job_events)
        self._topic("Alerts", monitoring.alerts)
        self._bucket("Uploads", storage.uploads)
        self._bucket("Inputs", storage.inputs)
        self._bucket("Results", storage.results)

    def _table(self, name: str, table: str) -> None:
        self._output(f"{name}TableName", table)
        self._output(f"{name}TableConsole", f"{self._console}/dynamodbv2/home#table?name={table}")

    def _queue(self, name: str, queue: sqs.Queue) -> None:
        self._output(f"{name}Url" if name.endswith("Dlq") else f"{name}QueueUrl", queue.queue_url)
        # the console wants the queue's URL with every slash and colon escaped
        parts = Fn.split("/", queue.queue_url)
        escaped = quote("https://", safe="") + Fn.join(quote("/", safe=""), [Fn.select(i, parts) for i in (2, 3, 4)])
        self._output(f"{name}Console", f"{self._console}/sqs/v3/home#/queues/{escaped}")

    def _topic(self, name: str, topic: sns.Topic) -> None:
        self._output(f"{name}TopicArn", topic.topic_arn)
        self._output(f"{name}Console", f"{self._console}/sns/v3/home#/topic/{topic.topic_arn}")

    def _machine(self, name: str, arn: str) -> None:
        self._output(f"{name}Arn", arn)
        self._output(f"{name}Console", f"{self._console}/states/home#/statemachines/view/{arn}")

    def _bucket(self, name: str, bucket: s3.Bucket) -> None:
        self._output(f"{name}BucketName", bucket.bucket_name)
        self._output(f"{name}BucketConsole", f"{self._console}/s3/buckets/{bucket.bucket_name}")

    def _output(self, name: str, value: str, description: str | None = None) -> None:
        CfnOutput(self, name, value=value, description=description).override_logical_id(name)
