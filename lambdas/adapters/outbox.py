"""The Outbox port: work and letters to their queues, facts to the topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lambdas.adapters.sns import SnsTopic
from lambdas.adapters.sqs import SqsQueue
from lambdas.core.ports import Message


@dataclass(frozen=True)
class AwsOutbox:
    work: SqsQueue
    letters: SqsQueue
    events: SnsTopic

    def send_work(self, messages: Sequence[Message]) -> set[int]:
        return self.work.send(messages)

    def send_letters(self, messages: Sequence[Message]) -> set[int]:
        return self.letters.send(messages)

    def publish(self, messages: Sequence[Message]) -> set[int]:
        return self.events.publish(messages)
