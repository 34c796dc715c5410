"""The repair: schedules on which what is stuck, lost or gone is looked for, and the function that does it."""

from __future__ import annotations

import json

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk.aws_lambda_destinations import SqsDestination
from constructs import Construct

from infra import sources
from infra.function import Function
from infra.notifications import Notifications
from infra.packaging import Packaging
from infra.queues import Queues, dead_letters
from infra.settings import Settings
from infra.storage import Storage
from infra.workflows import Workflows
from lambdas.contracts import names

STUCK = ("stuck", "deliveries", "letters")
DRIFT = ("drift",)


class Sweep(Construct):
    """`sweep` on its schedules, and the dead letters of sweeps that could not start or did not end."""

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
        self.sweep = Function(
            self,
            "sweep",
            packaging=packaging,
            settings=settings,
            timeout_s=settings.sweep_timeout_s,
            environment={
                names.JOBS_TABLE: storage.jobs.table_name,
                names.INPUTS_BUCKET: storage.inputs.bucket_name,
                names.RESULTS_BUCKET: storage.results.bucket_name,
                names.UPLOADS_BUCKET: storage.uploads.bucket_name,
                **queues.of_work,
                names.INBOX_QUEUE_URL: queues.inbox.queue_url,
                names.INBOX_DLQ_URL: queues.inbox_dead_letters.queue_url,
                names.DELIVERIES_QUEUE_URL: queues.deliveries.queue_url,
                names.DELIVERIES_DLQ_URL: queues.deliveries_dead_letters.queue_url,
                names.JOB_EVENTS_TOPIC_ARN: notifications.job_events.topic_arn,
                names.SOURCES: sources.environment(settings.event_sources),
                **workflows.place,
                names.DEADLINE_S: str(settings.deadline_s),
                names.DUE_GRACE_S: str(settings.due_grace_s),
                names.SWEEP_PERIOD_S: str(settings.sweep_period_s),
                names.SWEEP_WINDOW_DAYS: str(settings.sweep_window_days),
                names.SOURCE_GRACE_S: str(settings.source_grace_s),
                names.SWEEP_WIDTH: str(settings.sweep_width),
                names.SWEEP_RATE: str(settings.sweep_rate),
                names.SWEEP_PAGE: str(settings.sweep_page),
                names.RECORD_DAYS: str(settings.record_days),
                names.MAX_ATTEMPTS: str(settings.max_attempts),
                names.RETRY_BASE_S: str(settings.retry_base_s),  # an execution that ended badly is run again
                names.RETRY_CAP_S: str(settings.retry_cap_s),
                names.JITTER: settings.jitter,
            },
            recursive=True,
        )
        self._allow_records(storage)
        self._allow_objects(storage)
        self._allow_messages(queues, notifications)
        workflows.allow_describing(self.sweep)  # before it takes a job for dead
        workflows.allow_stopping(self.sweep)  # of a cancelled job of which nobody was told
        self.sweep.allow_itself()
        listed = {name: source.list for name, source in settings.event_sources.items() if source.list}
        if listed:
            self._allow_events(storage)
        self.sweep.allow_secrets({str(one["token"]) for one in listed.values() if "token" in one})
        self._invoke(settings)
        role = self._scheduler_role()
        self._schedule("Schedule", STUCK, settings.sweep_period_s, role)
        self._schedule("SourceSchedule", (names.UPLOADS, *sorted(listed)), settings.source_sweep_period_s, role)
        self._schedule("DriftSchedule", DRIFT, settings.drift_sweep_period_s, role)

    def _allow_records(self, storage: Storage) -> None:
        indexes = [f"{storage.jobs.table_arn}/index/{index}" for index in (names.DUE_INDEX, names.UPLOAD_INDEX)]
        self.sweep.allow("dynamodb:Query", on=indexes)
        self.sweep.allow(
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:Scan",
            on=storage.jobs.table_arn,
        )

    def _allow_objects(self, storage: Storage) -> None:
        results = storage.results
        self.sweep.allow(
            "s3:ListBucketVersions",
            on=storage.uploads.bucket_arn,
            when={"StringLike": {"s3:prefix": f"{names.UPLOADS_PREFIX}*"}},
        )
        self.sweep.allow("s3:PutObject", on=results.arn_for_objects(f"{names.CERTIFICATES_PREFIX}*"))
        self.sweep.allow("s3:GetObject", on=results.arn_for_objects(f"{names.RESULTS_PREFIX}*"))
        self.sweep.allow("s3:ListBucket", on=results.bucket_arn)  # else a result that is gone is 403, not 404

    def _allow_events(self, storage: Storage) -> None:
        """What sources list is looked up by the page, and may be too large for a record, which no upload is."""
        self.sweep.allow("dynamodb:BatchGetItem", on=storage.jobs.table_arn)
        self.sweep.allow("s3:PutObject", on=storage.inputs.arn_for_objects(f"{names.INPUTS_PREFIX}*"))

    def _allow_messages(self, queues: Queues, notifications: Notifications) -> None:
        queues.allow_sending(self.sweep)
        self.sweep.allow("sqs:SendMessage", on=[queues.inbox.queue_arn, queues.deliveries.queue_arn])
        self.sweep.allow("sqs:GetQueueAttributes", on=[queues.work.queue_arn, queues.deliveries.queue_arn])
        self.sweep.allow(
            "sqs:ReceiveMessage",
            "sqs:ChangeMessageVisibility",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            on=[queue.queue_arn for queue in queues.dead],
        )
        notifications.allow_publishing(self.sweep)
        notifications.allow_counting(self.sweep)

    def _invoke(self, settings: Settings) -> None:
        """The schedules' letters are failures to invoke; what the function raises goes to its destination."""
        self.sweep.allow("sqs:SendMessage", on=self.dead_letters.queue_arn)  # Lambda does it, in its name
        self.sweep.resource.configure_async_invoke(
            retry_attempts=0,  # the next sweep is the retry
            max_event_age=Duration.seconds(settings.sweep_period_s),
            on_failure=SqsDestination(self.dead_letters),
        )

    def _schedule(self, construct_id: str, parts: tuple[str, ...], period_s: int, role: iam.Role) -> None:
        minutes = period_s // 60
        scheduler.CfnSchedule(
            self,
            construct_id,
            description=f"Neverdrop: sweeps {', '.join(parts)}",
            schedule_expression=f"rate({minutes} minute{'s' if minutes > 1 else ''})",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self.sweep.resource.function_arn,
                role_arn=role.role_arn,
                input=json.dumps({"parts": parts}),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=self.dead_letters.queue_arn),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=min(period_s, 86_400), maximum_retry_attempts=2
                ),
            ),
        )

    def _scheduler_role(self) -> iam.Role:
        # the L2 target would permit every version of the function, by a star
        role = iam.Role(
            self,
            "SchedulerRole",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            ),
            description="What the sweep's schedules may do",
        )
        for action, arn in (
            ("lambda:InvokeFunction", self.sweep.resource.function_arn),
            ("sqs:SendMessage", self.dead_letters.queue_arn),
        ):
            role.add_to_principal_policy(iam.PolicyStatement(actions=[action], resources=[arn]))
        return role
