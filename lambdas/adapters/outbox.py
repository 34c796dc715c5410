"""The Outbox port: work and letters to their queues, facts to the topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lambdas.adapters.clients import client
from lambdas.adapters.environment import Environment
from lambdas.adapters.sns import SnsTopic
from lambdas.adapters.sqs import SqsQueue
from lambdas.contracts import names
from lambdas.core.ports import Message


@dataclass(frozen=True)
class AwsOutbox:
    """Where the function's environment says."""

    work: SqsQueue
    letters: SqsQueue
    events: SnsTopic

    def send_work(self, messages: Sequence[Message]) -> set[int]:
        return self.work.send(messages)

    def send_letters(self, messages: Sequence[Message]) -> set[int]:
        return self.letters.send(messages)

    def publish(self, messages: Sequence[Message]) -> set[int]:
        return self.events.publish(messages)


def outbox_of(environment: Environment) -> AwsOutbox:
    return AwsOutbox(
        work=SqsQueue(client("sqs"), environment.text(names.WORK_QUEUE_URL)),
        letters=SqsQueue(client("sqs"), environment.text(names.WORK_DLQ_URL)),
        events=SnsTopic(client("sns"), environment.text(names.JOB_EVENTS_TOPIC_ARN)),
    )
