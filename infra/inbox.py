"""What comes from outside: the inbox, the function that makes jobs of what lies there, and what the bucket tells it."""

from __future__ import annotations

from typing import cast

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra import sources
from infra.function import Function
from infra.packaging import Packaging
from infra.queues import Queues
from infra.settings import Settings
from infra.storage import Storage
from lambdas.contracts import names

BATCH_SIZE = 10
KEPT_OF_STACK = 24  # characters of a stack's name that a bucket's has for certain: CloudFormation shortens to 63 in all


class Inbox(Construct):
    """`ingest`: checks events and uploads, and records them as jobs."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        packaging: Packaging,
        settings: Settings,
        storage: Storage,
        queues: Queues,
    ) -> None:
        super().__init__(scope, construct_id)
        self.ingest = Function(
            self,
            "ingest",
            packaging=packaging,
            settings=settings,
            timeout_s=settings.ingest_timeout_s,
            environment={
                names.JOBS_TABLE: storage.jobs.table_name,
                names.INPUTS_BUCKET: storage.inputs.bucket_name,
                names.UPLOADS_BUCKET: storage.uploads.bucket_name,
                names.INBOX_DLQ_URL: queues.inbox_dead_letters.queue_url,
                names.SOURCES: sources.environment(settings.event_sources),
                names.DEADLINE_S: str(settings.deadline_s),
                names.DUE_GRACE_S: str(settings.due_grace_s),
            },
        )
        self.ingest.allow("dynamodb:PutItem", "dynamodb:GetItem", on=storage.jobs.table_arn)
        self.ingest.allow("s3:PutObject", on=storage.inputs.arn_for_objects(f"{names.INPUTS_PREFIX}*"))
        self.ingest.allow("s3:ListBucketVersions", on=storage.uploads.bucket_arn)
        self.ingest.allow("sqs:SendMessage", on=queues.inbox_dead_letters.queue_arn)
        self.ingest.allow_secrets({source.secret for source in settings.event_sources.values()})
        self.ingest.allow_serving(queues.inbox.queue_arn)
        lambda_.EventSourceMapping(
            self,
            "Events",
            target=self.ingest.resource,
            event_source_arn=queues.inbox.queue_arn,
            batch_size=BATCH_SIZE,
            max_concurrency=settings.ingest_concurrency,
            report_batch_item_failures=True,
        )
        _notify(storage.uploads, queues)


def _notify(bucket: s3.Bucket, queues: Queues) -> None:
    """By the bucket's own property: the L2 method would bring a function to do it. S3 tries the queue when the bucket
    is made, so the queue's policy comes first, and cannot name the bucket: it names all of this stack's."""
    stack = Stack.of(bucket)
    begun = stack.stack_name[:KEPT_OF_STACK]
    any_bucket = stack.format_arn(service="s3", region="", account="", resource=f"{begun}*")
    queues.inbox.add_to_resource_policy(
        iam.PolicyStatement(
            principals=[iam.ServicePrincipal("s3.amazonaws.com")],
            actions=["sqs:SendMessage"],
            resources=[queues.inbox.queue_arn],
            conditions={
                "StringEquals": {"aws:SourceAccount": stack.account},
                "ArnLike": {"aws:SourceArn": any_bucket},
            },
        )
    )
    properties = s3.CfnBucket
    cast(
        "s3.CfnBucket", bucket.node.default_child
    ).notification_configuration = properties.NotificationConfigurationProperty(
        queue_configurations=[
            properties.QueueConfigurationProperty(
                event="s3:ObjectCreated:*",
                queue=queues.inbox.queue_arn,
                filter=properties.NotificationFilterProperty(
                    s3_key=properties.S3KeyFilterProperty(
                        rules=[properties.FilterRuleProperty(name="prefix", value=names.UPLOADS_PREFIX)]
                    )
                ),
            )
        ]
    )
    bucket.node.add_dependency(queues.inbox.node.find_child("Policy"))
