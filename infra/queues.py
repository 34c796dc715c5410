"""The queues between the parts, each with its own dead letters, and the one way every queue here is made."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.function import Function
from infra.retention import removal_policy
from infra.settings import Settings
from lambdas.contracts import names


class Queues(Construct):
    """`work` and `urgent` feed the workers, `inbox` feeds ingest, `deliveries` deliver; the dead letters are the
    operator's inbox."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self.work_dead_letters = dead_letters(self, "WorkDeadLetters", settings)
        self.urgent_dead_letters = dead_letters(self, "UrgentDeadLetters", settings)
        self.inbox_dead_letters = dead_letters(self, "InboxDeadLetters", settings)
        self.deliveries_dead_letters = dead_letters(self, "DeliveriesDeadLetters", settings)
        # a message of the first two is a hint that the sweep can repeat: nothing to keep
        self.work = self._queue("Work", self.work_dead_letters, settings.visibility_s, settings, RemovalPolicy.DESTROY)
        self.urgent = self._queue(
            "Urgent", self.urgent_dead_letters, settings.visibility_s, settings, RemovalPolicy.DESTROY
        )
        # an event in the inbox is nowhere else yet
        self.inbox = self._queue(
            "Inbox", self.inbox_dead_letters, settings.inbox_visibility_s, settings, removal_policy(settings)
        )
        # nor is an event that no delivery was made of
        self.deliveries = self._queue(
            "Deliveries",
            self.deliveries_dead_letters,
            settings.deliveries_visibility_s,
            settings,
            removal_policy(settings),
        )

    @property
    def of_work(self) -> dict[str, str]:
        """What whoever sends work and letters finds in its environment."""
        return {
            names.WORK_QUEUE_URL: self.work.queue_url,
            names.WORK_DLQ_URL: self.work_dead_letters.queue_url,
            names.URGENT_QUEUE_URL: self.urgent.queue_url,
            names.URGENT_DLQ_URL: self.urgent_dead_letters.queue_url,
        }

    @property
    def dead(self) -> tuple[sqs.Queue, ...]:
        """The operator's inbox."""
        return (
            self.work_dead_letters,
            self.urgent_dead_letters,
            self.inbox_dead_letters,
            self.deliveries_dead_letters,
        )

    def allow_sending(self, function: Function) -> None:
        """Work, and letters about it, to the queues of both kinds of job."""
        queues = (self.work, self.work_dead_letters, self.urgent, self.urgent_dead_letters)
        function.allow("sqs:SendMessage", on=[queue.queue_arn for queue in queues])

    def _queue(
        self, name: str, letters: sqs.Queue, visibility_s: int, settings: Settings, removal: RemovalPolicy
    ) -> sqs.Queue:
        return sqs.Queue(
            self,
            name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=Duration.seconds(visibility_s),
            retention_period=Duration.days(settings.work_days),
            dead_letter_queue=sqs.DeadLetterQueue(queue=letters, max_receive_count=settings.max_receive_count),
            removal_policy=removal,
        )


def dead_letters(scope: Construct, construct_id: str, settings: Settings) -> sqs.Queue:
    """A queue of dead letters: kept for as long as can be, because moving a message does not restart its clock."""
    return sqs.Queue(
        scope,
        construct_id,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(settings.dlq_days),
        removal_policy=removal_policy(settings),
    )
