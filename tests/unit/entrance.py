"""The door with fakes behind it: what the tests of accepting knock at."""

from __future__ import annotations

from typing import Any

from lambdas.contracts.validation import compile_schema
from lambdas.core.intake import Accepted, Door, Submission, accept
from lambdas.core.policy import Limits
from lambdas.core.problems import Problem
from tests.builders import TENANT, any_body
from tests.fakes import FakeClock, FakeJobStore, FakeObjects

TYPES = {
    "summarize": compile_schema(
        {
            "type": "object",
            "required": ["text"],
            "additionalProperties": False,
            "properties": {"text": {"type": "string", "minLength": 1}, "language": {"type": "string"}},
        }
    ),
    "anything": compile_schema({}),
}


class Entrance:
    """The door with its fakes; `order` says what was called one after the other."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.order: list[str] = []
        self.store = FakeJobStore(before=self.order.append)
        self.inputs = FakeObjects(order=self.order)
        self.clock = FakeClock()
        self._made = 0
        self.door = Door(self.store, self.inputs, TYPES, limits or Limits(), self.clock, self._new_id)

    def _new_id(self) -> str:
        self._made += 1
        return f"{self._made:032x}"

    def send(
        self,
        body: bytes | None = None,
        *,
        key: str | None = None,
        tenant: str = TENANT,
        trace: str | None = None,
        **over: Any,
    ) -> Accepted | Problem:
        return accept(Submission(tenant, any_body(**over) if body is None else body, key, trace), self.door)

    def accepted(self, **over: Any) -> dict[str, Any]:
        """The record of an event that must be accepted."""
        outcome = self.send(**over)
        assert isinstance(outcome, Accepted), outcome
        return self.store.records[outcome.job_id]


def refused(entrance: Entrance, **over: Any) -> Problem:
    """The problem with an event that must be refused: and then nothing is recorded."""
    outcome = entrance.send(**over)
    assert isinstance(outcome, Problem)
    assert entrance.store.records == {}
    assert entrance.inputs.objects == {}
    assert outcome.body()["detail"]
    return outcome


def text_of(size: int) -> dict[str, str]:
    """An input that is so many bytes long as canonical JSON."""
    return {"text": "é" * ((size - 11) // 2) + "x" * ((size - 11) % 2)}
