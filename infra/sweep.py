"""The repair: every few minutes the sweep looks for jobs that are due and that nobody works on."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk.aws_lambda_destinations import SqsDestination
from constructs import Construct

from infra.function import Function
from infra.notifications import Notifications
from infra.packaging import Packaging
from infra.queues import Queues, dead_letters
from infra.settings import Settings
from infra.storage import Storage
from lambdas.contracts import names


class Sweep(Construct):
    """`sweep` on its schedule, and the dead letters of sweeps that could not start or did not end."""

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
                names.WORK_QUEUE_URL: queues.work.queue_url,
                names.WORK_DLQ_URL: queues.work_dead_letters.queue_url,
                names.JOB_EVENTS_TOPIC_ARN: notifications.job_events.topic_arn,
                names.DUE_GRACE_S: str(settings.due_grace_s),
                names.SWEEP_PERIOD_S: str(settings.sweep_period_s),
                names.RECORD_DAYS: str(settings.record_days),
                names.MAX_ATTEMPTS: str(settings.max_attempts),
            },
        )
        self.sweep.allow("dynamodb:Query", on=f"{storage.jobs.table_arn}/index/{names.DUE_INDEX}")
        self.sweep.allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=storage.jobs.table_arn)
        self.sweep.allow("sqs:SendMessage", on=[queues.work.queue_arn, queues.work_dead_letters.queue_arn])
        self.sweep.allow("sqs:GetQueueAttributes", on=queues.work.queue_arn)
        notifications.allow_publishing(self.sweep)
        self._schedule(settings)

    def _schedule(self, settings: Settings) -> None:
        """The schedule's letters are failures to invoke; what the function raises goes to its destination."""
        function = self.sweep.resource
        period = Duration.seconds(settings.sweep_period_s)
        function.configure_async_invoke(
            retry_attempts=0,  # the next sweep is the retry
            max_event_age=period,
            on_failure=SqsDestination(self.dead_letters),
        )
        minutes = settings.sweep_period_s // 60
        scheduler.CfnSchedule(
            self,
            "Schedule",
            description="Neverdrop: looks for jobs that are due",
            schedule_expression=f"rate({minutes} minute{'s' if minutes > 1 else ''})",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self._scheduler_role().role_arn,
                input="{}",
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=self.dead_letters.queue_arn),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_event_age_in_seconds=settings.sweep_period_s, maximum_retry_attempts=2
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
            description="What the sweep's schedule may do",
        )
        for action, arn in (
            ("lambda:InvokeFunction", self.sweep.resource.function_arn),
            ("sqs:SendMessage", self.dead_letters.queue_arn),
        ):
            role.add_to_principal_policy(iam.PolicyStatement(actions=[action], resources=[arn]))
        return role
