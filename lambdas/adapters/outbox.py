"""The Outbox port: work and letters to their queues, urgent ones to queues of their own, facts to the topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lambdas.adapters.clients import client
from lambdas.adapters.environment import Environment
from lambdas.adapters.sns import SnsTopic
from lambdas.adapters.sqs import SqsQueue
from lambdas.contracts import names
from lambdas.core.ports import Message

_Send = Callable[[Sequence[Message]], set[int]]


@dataclass(frozen=True)
class AwsOutbox:
    """Where the function's environment says."""

    work: SqsQueue
    urgent: SqsQueue
    letters: SqsQueue
    urgent_letters: SqsQueue
    events: SnsTopic

    def send_work(self, messages: Sequence[Message]) -> set[int]:
        return _each(messages, self.work.send, self.urgent.send)

    def send_letters(self, messages: Sequence[Message]) -> set[int]:
        return _each(messages, self.letters.send, self.urgent_letters.send)

    def publish(self, messages: Sequence[Message]) -> set[int]:
        return self.events.publish(messages)


def _each(messages: Sequence[Message], ordinary: _Send, urgent: _Send) -> set[int]:
    """Each kind by its own queue, the urgent ones first; positions are those of the whole list."""
    refused: set[int] = set()
    for is_urgent, send in ((True, urgent), (False, ordinary)):
        chosen = [position for position, message in enumerate(messages) if message.urgent is is_urgent]
        if chosen:
            refused |= {chosen[index] for index in send([messages[position] for position in chosen])}
    return refused


def outbox_of(environment: Environment) -> AwsOutbox:
    return AwsOutbox(
        work=SqsQueue(client("sqs"), environment.text(names.WORK_QUEUE_URL)),
        urgent=SqsQueue(client("sqs"), environment.text(names.URGENT_QUEUE_URL)),
        letters=SqsQueue(client("sqs"), environment.text(names.WORK_DLQ_URL)),
        urgent_letters=SqsQueue(client("sqs"), environment.text(names.URGENT_DLQ_URL)),
        events=SnsTopic(client("sns"), environment.text(names.JOB_EVENTS_TOPIC_ARN)),
    )
