"""A worker at its bench: hands it messages as SQS does, with the tasks and the model that a test wants."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from lambdas.adapters import clock
from lambdas.core import times
from lambdas.core.job import from_record
from lambdas.core.routing import letter, work_message
from local.model.server import ModelServer
from tests.builders import any_task
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines
from tests.integration.events import failures, sqs, sqs_record
from tests.integration.records import pending

ANSWER = {"summary": "The pump broke.", "participants": ["ANNA", "BEN"], "action_items": ["Send somebody."]}


@dataclasses.dataclass
class Bench:
    """`module`: the worker's handler. `lines`: its log."""

    module: ModuleType
    cloud: Cloud
    model: ModelServer
    lines: Lines

    def task(self, type_: str, run: Callable[..., Any], **more: Any) -> None:
        """One more task, beside those that ship."""
        self.module.parts().worker.tasks[type_] = any_task(run, type_=type_, **more)

    def job(self, type_: str = "summarize", text: str = "ANNA: The pump is broken.", **over: Any) -> dict[str, Any]:
        """An accepted job, in the table."""
        return self.cloud.put(pending(request={"type": type_, "input": {"text": text}}, **over))

    def run(self, *records: Mapping[str, Any], context: Context | None = None) -> list[str]:
        """One invocation; the ids of the messages that SQS shall keep."""
        return failures(self.module.handler(sqs(*map(dict, records)), context or Context()))

    def status(self, record: Mapping[str, Any]) -> str:
        return str(self.cloud.record(record["pk"])["status"])

    @property
    def calls(self) -> int:
        """Model calls seen by the provider."""
        return len(self.model.calls.listed())

    def script(self, *rules: Mapping[str, Any]) -> None:
        self.model.script.replace([dict(rule) for rule in rules])

    def letters(self) -> list[dict[str, Any]]:
        return self.cloud.bodies(self.cloud.letters_url)


def doing(act: Callable[[Any], object]) -> Callable[[Any, Any], dict[str, Any]]:
    """A task that does this with its context, and has an empty result."""

    def run(_task_input: Any, ctx: Any) -> dict[str, Any]:
        act(ctx)
        return {}

    return run


def hint(record: Mapping[str, Any], **envelope: Any) -> str:
    """The message that the dispatcher sends for this record."""
    message = work_message(from_record({**record, "not_before": record["created_at"]}), clock.now())
    assert message is not None
    return json.dumps({**json.loads(message.body), **envelope})


def message(record: Mapping[str, Any], receives: int = 1, **envelope: Any) -> dict[str, Any]:
    return sqs_record(hint(record, **envelope), receives=receives)


def returned_letter(record: Mapping[str, Any]) -> dict[str, Any]:
    """What an operator moved back to the work queue."""
    return sqs_record(letter(from_record(record), clock.now()).body)


def soon(seconds: float) -> str:
    return times.text(times.after(clock.now(), seconds))
