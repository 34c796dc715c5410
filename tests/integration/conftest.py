"""Adapters and handlers on moto: the stack as synthesized, provisioned once a module, wiped after each test."""

from __future__ import annotations

import importlib
import io
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import time_machine
from aws_lambda_powertools import Logger
from botocore.retries.standard import ExponentialBackoff
from moto import mock_aws

from lambdas.adapters import clients
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.idempotency import PowertoolsAnswers
from lambdas.adapters.s3 import S3Objects
from local.model.server import ModelServer
from local.stack import template as templates
from local.stack.provision import provision
from tests.fakes import FakeAnswers, FakeJobStore
from tests.integration.cloud import REGION, ROOT, Cloud, Context
from tests.integration.command_line import CommandLine
from tests.integration.scripted_api import ScriptedApi
from tests.integration.wire import Wire

_RUN = itertools.count(1)

ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_PROFILE", "AWS_LAMBDA_FUNCTION_NAME")


def synthesize(out: Path, **settings: object) -> templates.Template:
    """The template, with settings as from the command line, without bundling."""
    from infra.toolchain import use_bundled_node

    use_bundled_node()  # before anything imports the CDK
    from infra.synthesis import synthesize as synth

    context = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDK_VALIDATION", "false")
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.delenv("CDK_DEFAULT_ACCOUNT", raising=False)
        patch.delenv("CDK_DEFAULT_REGION", raising=False)
        synth({**context, "aws:cdk:bundling-stacks": [], **settings}, str(out))
    return templates.load(out)


@pytest.fixture(scope="session")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> templates.Template:
    """The template of the default settings."""
    return synthesize(tmp_path_factory.mktemp("cdk.out"))


@pytest.fixture(scope="module")
def provisioned(synthesized: templates.Template) -> Iterator[Cloud]:
    """The stack on moto in this process. The module's tests share it."""
    wire = Wire()
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_DEFAULT_REGION", REGION)
        patch.setenv("AWS_REGION", REGION)
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name in ENDPOINTS:
            patch.delenv(name, raising=False)
        wire.attach(patch)
        clients.client.cache_clear()
        any_endpoint: Any = None  # moto sits inside boto3: the API's own hosts are meant
        cloud = Cloud(provision(synthesized, any_endpoint), wire)
        wire.answered = cloud.in_process.sent
        cloud.open_buckets()
        cloud.listen()
        cloud.wipe()  # S3 has sent its test event
        yield cloud
        clients.client.cache_clear()


@pytest.fixture
def cloud(provisioned: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """The stack, empty. botocore's pauses between its own attempts take no time."""
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda _self, context: 0)
    clients.client.cache_clear()
    yield provisioned
    clients.client.cache_clear()
    provisioned.wipe()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the senders of batches make; they take no time."""
    made: list[float] = []
    monkeypatch.setattr("lambdas.adapters.batching.time", SimpleNamespace(sleep=made.append))
    return made


@pytest.fixture
def still() -> Iterator[time_machine.Traveller]:
    """The clock stands still: what is reckoned from now is exact, however slow the machine is."""
    with time_machine.travel(datetime.now(UTC), tick=False) as traveller:
        yield traveller


@pytest.fixture(scope="module")
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def model(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """The model, with an empty script and no calls seen; boto3 finds it where it looks for Bedrock."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", model_server.url)
    model_server.script.replace([])
    model_server.calls.clear()
    yield model_server
    model_server.script.replace([])


@pytest.fixture(params=["dynamodb", "fake"])
def job_store(request: pytest.FixtureRequest) -> Any:
    """The JobStore port twice: the adapter on moto, and the fake that the unit tests trust."""
    if request.param == "fake":
        return FakeJobStore()
    cloud: Cloud = request.getfixturevalue("cloud")
    return DynamoJobStore(clients.client("dynamodb"), cloud.jobs_table)


def answers_of(cloud: Cloud, *, remaining_s: float = 120.0, keep_days: int = 30) -> PowertoolsAnswers:
    """The adapter as one execution environment has it, in an invocation with that much time left."""
    answers = PowertoolsAnswers(
        clients.client("dynamodb"),
        cloud.answers_table,
        S3Objects(clients.client("s3"), cloud.results_bucket),
        keep_days=keep_days,
    )
    answers.invocation_started(Context(remaining_s))
    return answers


@pytest.fixture(params=["powertools", "fake"])
def any_answers(request: pytest.FixtureRequest) -> Any:
    """The Answers port twice: the adapter on moto, and the fake."""
    return FakeAnswers() if request.param == "fake" else answers_of(request.getfixturevalue("cloud"))


class Lines:
    """What the functions log, read back as JSON."""

    def __init__(self, stream: io.StringIO) -> None:
        self._stream = stream

    @property
    def raw(self) -> str:
        return self._stream.getvalue()

    def all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.raw.splitlines()]

    def of(self, step: str) -> list[dict[str, Any]]:
        return [line for line in self.all() if line.get("step") == step]

    def steps(self) -> list[str]:
        return [line["step"] for line in self.all() if "step" in line]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """The log under a service name of this test alone: Powertools keeps one logger for each."""
    service, stream = f"neverdrop-test-{next(_RUN)}", io.StringIO()
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", service)
    Logger(service=service, stream=stream)
    return Lines(stream)


Load = Callable[..., ModuleType]


@pytest.fixture
def load_handler(cloud: Cloud, lines: Lines, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Starts a function as Lambda would, under the template's own environment: load_handler("worker", MAX_ATTEMPTS=2).
    Answers its module; its parts are built when they are first used."""
    loaded: list[ModuleType] = []

    def load(role: str, **settings: object) -> ModuleType:
        for name, value in cloud.environment(role).items():
            if name != "POWERTOOLS_SERVICE_NAME":  # the lines of this test go to their own logger
                monkeypatch.setenv(name, value)
        for name, setting in settings.items():
            monkeypatch.setenv(name, str(setting))
        module = importlib.import_module(f"lambdas.handlers.{role}")
        monkeypatch.setattr(module, "handler", cloud.in_process.of(role, module.handler, as_deployed=not settings))
        module.parts.cache_clear()
        loaded.append(module)
        return module

    yield load
    for module in loaded:
        module.parts.cache_clear()


@pytest.fixture
def bench(
    load_handler: Load,
    cloud: Cloud,
    model: ModelServer,
    lines: Lines,
    *,
    pauses: list[float],
    still: time_machine.Traveller,
) -> Any:
    """The worker, its model and its tables; the model says what `summarize` wants to hear. No time goes by."""
    from tests.integration.worker_bench import ANSWER, Bench

    made = Bench(load_handler("worker"), cloud, model, lines)
    made.script({"answer": ANSWER})
    return made


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    """An API that answers by a script."""
    scripted = ScriptedApi()
    yield scripted
    scripted.end()


@pytest.fixture
def ops(
    api: ScriptedApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> CommandLine:
    """The operator's command line against it. Its pauses take no time; those of other threads are none of it."""
    own, stock = threading.get_ident(), time.sleep

    def sleep(seconds: float) -> None:
        (pauses.append if threading.get_ident() == own else stock)(seconds)

    monkeypatch.setenv("NEVERDROP_URL", api.url)
    monkeypatch.delenv("NEVERDROP_TOKEN", raising=False)
    monkeypatch.setattr(time, "sleep", sleep)
    return CommandLine(capsys)
