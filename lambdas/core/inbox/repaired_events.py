"""What can be said of a repaired event before ingest takes it: what ingest itself would refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lambdas.contracts.names import INBOX_SOURCE
from lambdas.contracts.sources import Source
from lambdas.contracts.validation import Check
from lambdas.core.inbox.event_inputs import bytes_of, event_of, id_of, input_of, parsed
from lambdas.core.inbox.message import Refusal
from lambdas.core.policy import Limits


@dataclass(frozen=True)
class Fits:
    """Answers what is wrong with a body under the attributes of its message, None when nothing is known to be. What is
    not declared or not deployed here is for ingest to judge."""

    sources: Mapping[str, Source]
    types: Mapping[str, Check]
    limits: Limits = field(default_factory=Limits)

    def __call__(self, body: str, attributes: Mapping[str, str]) -> str | None:
        if not body:
            return "an empty message cannot be sent"
        try:
            self._refuse(bytes_of(body, attributes), attributes)
        except Refusal as refused:
            return str(refused)
        return None

    def _refuse(self, body: bytes, attributes: Mapping[str, str]) -> None:
        name = attributes.get(INBOX_SOURCE)
        if not name:
            parsed(body)  # a notification about objects
            return
        source = self.sources.get(name)
        if source and source.task in self.types:
            event = event_of(source, attributes, body)
            id_of(event)
            input_of(event, self.types, self.limits)
