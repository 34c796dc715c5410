"""From the record to its next step: the function on the Jobs stream that sends what each write calls for."""

from __future__ import annotations

from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_lambda_event_sources import SqsDlq
from constructs import Construct

from infra.function import Function
from infra.notifications import Notifications
from infra.packaging import Packaging
from infra.queues import Queues, dead_letters
from infra.settings import Settings
from infra.storage import Storage
from infra.workflows import Workflows
from lambdas.contracts import names


class Dispatch(Construct):
    """`dispatch`, and the dead letters of what it could not deliver while the stream remembered it."""

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
        workflows: Workflows,
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = dead_letters(self, "DeadLetters", settings)
        self.dispatch = Function(
            self,
            "dispatch",
            packaging=packaging,
            settings=settings,
            timeout_s=settings.dispatch_timeout_s,
            environment={
                names.JOBS_TABLE: storage.jobs.table_name,
                **queues.of_work,
                names.DISPATCH_DLQ_URL: self.dead_letters.queue_url,
                names.JOB_EVENTS_TOPIC_ARN: notifications.job_events.topic_arn,
                names.DELIVERIES_QUEUE_URL: queues.deliveries.queue_url,
                **workflows.place,
            },
        )
        # it reads a job whose delivery was removed: was the job?
        self.dispatch.allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=storage.jobs.table_arn)
        queues.allow_sending(self.dispatch)
        self.dispatch.allow("sqs:SendMessage", on=queues.deliveries.queue_arn)
        self.dispatch.allow("sqs:SendMessage", on=self.dead_letters.queue_arn)  # Lambda does it, in its name
        notifications.allow_publishing(self.dispatch)
        workflows.allow_stopping(self.dispatch)  # of a job that was cancelled
        self._follow(storage, settings)

    def _follow(self, storage: Storage, settings: Settings) -> None:
        """Retry until age ends it, and bisect: a bad record neither blocks the others nor drops them."""
        stream = storage.jobs.table_stream_arn
        assert stream is not None
        self.dispatch.allow("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", on=stream)
        # AWS authorizes the listing against any stream of the table
        self.dispatch.allow("dynamodb:ListStreams", on=f"{storage.jobs.table_arn}/stream/*")
        lambda_.EventSourceMapping(
            self,
            "Stream",
            target=self.dispatch.resource,
            event_source_arn=stream,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=settings.stream_batch_size,
            filters=[lambda_.FilterCriteria.filter(one) for one in (HEARD, LOST, DELIVERED, UNDELIVERED)],
            max_record_age=Duration.seconds(settings.stream_age_s),
            # the most there is, so that age decides: while a queue is down, a count is used up in seconds
            retry_attempts=10_000,
            bisect_batch_on_error=True,
            report_batch_item_failures=True,
            on_failure=SqsDlq(self.dead_letters),
        )


def _of(sk: list[Any], **images: Any) -> dict[str, Any]:
    return {"dynamodb": {"Keys": {"sk": {"S": sk}}, **images}}


_JOB: list[Any] = lambda_.FilterRule.is_equal(names.JOB_SK)
_DELIVERY: list[Any] = lambda_.FilterRule.begins_with(names.DELIVERY_SK)
_DUE = {names.DUE_SHARD: {"S": lambda_.FilterRule.exists()}}

# a record that is gone though something was still due: Lambda filters on `dynamodb` alone, not on the kind of event.
# Without the clause about the new image every claim and every mark would come, too: twice as much. That it holds when
# there is no new image at all is unverified on AWS (docs/local-runtime.md has the probe); the function decides anyway
_GONE: dict[str, Any] = {"NewImage": {"sk": {"S": lambda_.FilterRule.not_exists()}}, "OldImage": _DUE}

# filters cannot compare images: the function ignores what did not change
HEARD = _of(_JOB, NewImage={"status": {"S": lambda_.FilterRule.or_(*names.HEARD)}, **_DUE})
LOST = _of(_JOB, **_GONE)

# an attempt is to be made; how a delivery has ended nobody hears: it is in the job's timeline
DELIVERED = _of(_DELIVERY, NewImage={"status": {"S": lambda_.FilterRule.is_equal(names.PENDING)}, **_DUE})
UNDELIVERED = _of(_DELIVERY, **_GONE)
