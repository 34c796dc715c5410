"""An operator at the API: asks admin, and runs what it starts, as Lambda would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.functions import LambdaFunctions
from lambdas.core.envelope import written
from lambdas.core.job import from_record
from lambdas.core.letters import dead_letters
from lambdas.core.routing import letter
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Load
from tests.integration.events import IAM, http

EVE = IAM["iam"]["userArn"]


@dataclass
class Operator:
    """`started`: what was to run, by the function's name; `run` lets it."""

    cloud: Cloud
    admin: ModuleType
    redrive: ModuleType
    started: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def ask(self, route: str, body: Any = None, *, id: str | None = None, **more: Any) -> tuple[int, Any]:  # noqa: A002
        """Status and answer."""
        raw = body if body is None or isinstance(body, str) else json.dumps(body)
        path = {"id": id} if id is not None else None
        event = http(route, body=raw, path=path, **{"authorizer": IAM, **more})
        answer = self.admin.handler(event, Context(300))
        assert answer["headers"]["content-type"].startswith("application/")
        return answer["statusCode"], json.loads(answer["body"])

    def run(self, seconds: float = 300) -> dict[str, Any]:
        """Everything that was started, and what that starts; the last answer."""
        answer: dict[str, Any] = {}
        while self.started:
            name, payload = self.started.pop(0)
            context = Context(seconds)
            context.function_name = name
            answer = self.redrive.handler(payload, context)
        return answer

    def die(self, record: dict[str, Any]) -> dict[str, Any]:
        """The job in the table, and its letter where the dispatcher sends it."""
        self.cloud.put(record)
        message = letter(from_record(record), clock.now())
        attributes = {k: {"DataType": "String", "StringValue": v} for k, v in message.attributes.items() if v}
        self.cloud.client("sqs").send_message(
            QueueUrl=self.cloud.letters_url,
            MessageBody=message.body,
            MessageAttributes=attributes,
            MessageGroupId="acme",
        )
        return record

    def bury(self, envelope: Any, url: str | None = None, **attributes: str) -> None:
        """Any message among the dead letters."""
        body = envelope if isinstance(envelope, str) else written(envelope)
        told = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
        self.cloud.client("sqs").send_message(
            QueueUrl=url or self.cloud.letters_url, MessageBody=body, MessageAttributes=told
        )

    def dead(self, url: str | None = None) -> int:
        """How many letters are visible."""
        asked = "ApproximateNumberOfMessages"
        answer = self.cloud.client("sqs").get_queue_attributes(
            QueueUrl=url or self.cloud.letters_url, AttributeNames=[asked]
        )
        return int(answer["Attributes"][asked])


@pytest.fixture
def operator(cloud: Cloud, load_handler: Load, monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setattr(dead_letters, "PATIENCE_S", 0)  # moto has one server, which does not need to be waited for
    made = Operator(cloud, load_handler("admin"), load_handler("redrive"))

    def start(_self: LambdaFunctions, name: str, payload: Mapping[str, Any]) -> None:
        made.started.append((name, dict(payload)))
        cloud.in_process.started(name)

    monkeypatch.setattr(LambdaFunctions, "start", start)
    return made
