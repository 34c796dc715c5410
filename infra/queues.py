"""The work queue and its dead letters, and the one way every queue here is made."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.retention import removal_policy
from infra.settings import Settings


class Queues(Construct):
    """`work` feeds the workers; `work_dead_letters` is the operator's inbox."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self.work_dead_letters = dead_letters(self, "WorkDeadLetters", settings)
        self.work = sqs.Queue(
            self,
            "Work",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=Duration.seconds(settings.visibility_s),
            retention_period=Duration.days(settings.work_days),
            dead_letter_queue=sqs.DeadLetterQueue(
                queue=self.work_dead_letters, max_receive_count=settings.max_receive_count
            ),
            # a message is a hint that the sweep can repeat: nothing to keep
            removal_policy=RemovalPolicy.DESTROY,
        )


def dead_letters(scope: Construct, construct_id: str, settings: Settings) -> sqs.Queue:
    """A queue of dead letters: kept for `dlq_days`, because moving a message does not restart its clock."""
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(settings.dlq_days),
        removal_policy=removal_policy(settings),
    )
