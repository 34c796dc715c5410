"""Where events leave the house: the function that tells endpoints what happened, and what it may touch."""

from __future__ import annotations

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.function import Function
from infra.notifications import Notifications
from infra.packaging import Packaging
from infra.queues import Queues
from infra.settings import Settings
from infra.storage import Storage
from infra.webhooks import Webhooks
from lambdas.contracts import names

BATCH_SIZE = 10


class Deliveries(Construct):
    """`deliver`: makes deliveries of what happened to jobs, and tries each until its endpoint has it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        packaging: Packaging,
        settings: Settings,
        storage: Storage,
        queues: Queues,
        notifications: Notifications,
        webhooks: Webhooks,
    ) -> None:
        super().__init__(scope, construct_id)
        self.deliver = Function(
            self,
            "deliver",
            packaging=packaging,
            settings=settings,
            timeout_s=settings.deliver_timeout_s,
            environment={
                names.JOBS_TABLE: storage.jobs.table_name,
                names.DELIVERIES_QUEUE_URL: queues.deliveries.queue_url,
                names.DELIVERIES_DLQ_URL: queues.deliveries_dead_letters.queue_url,
                **webhooks.place,
                names.WEBHOOK_TIMEOUT_S: str(settings.webhook_timeout_s),
                names.WEBHOOK_HOURS: str(settings.webhook_hours),
                names.WEBHOOK_CONCURRENCY: str(settings.webhook_concurrency),
                names.DUE_GRACE_S: str(settings.due_grace_s),
                names.SWEEP_PERIOD_S: str(settings.sweep_period_s),
                names.RECORD_DAYS: str(settings.record_days),
            },
        )
        self.deliver.allow(
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:Query",
            on=storage.jobs.table_arn,
        )
        webhooks.allow_reading(self.deliver)
        self.deliver.allow("sqs:SendMessage", on=queues.deliveries_dead_letters.queue_arn)
        self.deliver.allow_serving(queues.deliveries.queue_arn)
        self.deliver.allow("sqs:ChangeMessageVisibility", on=queues.deliveries.queue_arn)  # what comes too early
        lambda_.EventSourceMapping(
            self,
            "Events",
            target=self.deliver.resource,
            event_source_arn=queues.deliveries.queue_arn,
            batch_size=BATCH_SIZE,
            max_concurrency=settings.deliver_concurrency,
            report_batch_item_failures=True,
        )
        # what SNS cannot put into the queue lies where the operator looks for what deliver could not take
        notifications.job_events.add_subscription(
            subscriptions.SqsSubscription(
                queues.deliveries, raw_message_delivery=True, dead_letter_queue=queues.deliveries_dead_letters
            )
        )
