"""The whole stack on this machine: what `python -m local run` starts, and what tests use as a context manager."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from local.aws.mailbox import Mailbox
from local.aws.meter import Meter
from local.aws.permissions import Permissions
from local.aws.server import AwsServer
from local.aws.strict.gate import Strict
from local.aws.uses import uses_of
from local.clock import VirtualClock
from local.compute.environments import REPOSITORY, Functions, WriteLog
from local.compute.environments import to_stderr as log_to_stderr
from local.controls import Controls
from local.events.http_api import HttpApi
from local.events.notifications import Notifications
from local.events.sources import EventSources
from local.executions.api import StatesApi
from local.executions.calls import LambdaCaller
from local.executions.executions import Executions
from local.faults import Faults
from local.gateway import Gateway
from local.metrics.cloudwatch import CloudWatch
from local.model.server import ModelServer
from local.model_access import ModelAccess
from local.reload import Reloader
from local.sockets.connections import Connections
from local.sockets.gateway import SocketGateway
from local.sockets.management import Management
from local.stack.provision import provision
from local.stack.stack import Stack
from local.stack.template import load
from local.synthesis import is_cached, synthesize

Say = Callable[[str], None]


class Runtime:
    """One stack, provisioned and alive between `start` and `stop`. One at a time in a process: moto and the clock are
    the process's own."""

    stack: Stack
    functions: Functions
    sources: EventSources
    model_server: ModelServer
    faults: Faults
    meter: Meter
    metrics: CloudWatch
    mailbox: Mailbox
    executions: Executions
    """Of the stack's state machines: to be looked at and stopped, their events to be lost."""
    controls: Controls

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        port: int = 0,
        aws_port: int = 0,
        model_port: int = 0,
        socket_port: int = 0,
        model_script: Path | None = None,
        model_url: str | None = None,
        reload: bool = False,
        assembly: Path | None = None,
        out: Path | None = None,
        code: Path = REPOSITORY,
        say: Say | None = None,
        write_log: WriteLog | None = None,
    ) -> None:
        """`settings` as `-c name=value` takes them (`env` among them); ports of 0 are picked.

        `assembly` is a synthesized folder to use instead of synthesizing, `out` where to synthesize to, `code` where
        handlers are imported from; `say` gets a line for each step, `write_log` the functions' log.
        """
        self._settings = dict(settings or {})
        self._ports = port, aws_port, model_port, socket_port
        self._model_script = model_script
        self._model_url = model_url
        self._reload = reload
        self._assembly = assembly
        self._out = out
        self._code = code
        self._say = say or (lambda _: None)
        self._write_log = write_log
        self._ending = ExitStack()
        self.clock = VirtualClock()

    def start(self) -> None:
        """Everything, in the order in which things need one another.

        OSError for a port that is taken, SynthesisError, TemplateError, ScriptError for what they say.
        """
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process, thread and socket."""
        self._ending.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def notifications(self) -> Notifications:
        """What S3 tells queues: to be lost, doubled, held back."""
        return self.sources.notifications

    def put_secret(self, name: str, value: str) -> str:
        """Create or overwrite a secret that the stack only refers to by name; answers its ARN."""
        return self.sources.put_secret(name, value)

    # --- addresses -----------------------------------------------------------------------------------------

    @property
    def api(self) -> str:
        """The HTTP API's address, and that of the controls."""
        return self._gateway.url

    @property
    def aws(self) -> str:
        """The AWS API's address: `aws --endpoint-url`."""
        return self._aws.url

    @property
    def model(self) -> str:
        """The model server's address."""
        return self.model_server.url

    @property
    def websocket(self) -> str | None:
        """The WebSocket API's address, with its stage: where a client connects. None if the stack has none."""
        api = self._sockets.definition
        return None if api is None else f"{self._sockets.url}/{api.stage}"

    @property
    def management(self) -> str | None:
        """The address of the WebSocket API's @connections: the `endpoint_url` of a client."""
        api = self._sockets.definition
        return None if api is None else f"{self._aws.url}/{api.api_id}/{api.stage}"

    @property
    def connections(self) -> Connections:
        """Of the WebSocket API: to be looked at, cut, lost, slowed down."""
        return self._sockets.connections

    @property
    def outputs(self) -> dict[str, str]:
        """The stack's outputs."""
        return dict(self.stack.outputs)

    # ---------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        began = time.monotonic()
        self._open_ports()
        assembly = self._synthesize()
        self._say("creating the stack's resources")
        self.clock.start()
        self._ending.callback(self.clock.stop)
        self.stack = provision(load(assembly), self._aws.url, self._gateway.url, self._sockets.url)
        self._say("starting functions and event sources")
        self._start_compute()
        self._say(f"ready after {time.monotonic() - began:.1f} s")

    def _open_ports(self) -> None:
        """First of all, because a port that is taken is the likeliest thing to go wrong."""
        port, aws_port, model_port, socket_port = self._ports
        self._gateway = Gateway(port)
        self._ending.callback(self._gateway.stop)
        self._sockets = SocketGateway(socket_port)
        self._ending.callback(self._sockets.stop)
        self._aws = AwsServer(aws_port)
        self._aws.start()
        self._ending.callback(self._aws.stop)
        self._access = ModelAccess(self._aws.callers)
        self.model_server = ModelServer(model_port, self.clock, self._model_url, self._access)
        self._ending.callback(self.model_server.stop)
        if self._model_script is not None:
            self.model_server.load_script(self._model_script)
        self.model_server.start()

    def _synthesize(self) -> Path:
        if self._assembly is not None:
            return self._assembly
        if self._out is not None or not is_cached(self._settings):
            self._say("synthesizing the stack (once, until infra/ or a setting changes)")
        return synthesize(self._settings, self._out)

    def _start_compute(self) -> None:
        permissions = Permissions(self.stack, uses_of(self.stack))
        self._access.permissions = permissions
        self.metrics = CloudWatch(self.stack, self.clock)
        self._ending.callback(self.metrics.stop)
        self.functions = Functions(
            self.stack, self._aws, self.clock, self.model_server.url, code=self._code,
            write_log=self.metrics.reading(self._write_log or log_to_stderr), exercise=permissions.exercise,
        )  # fmt: skip
        self.faults = Faults(self.functions, self._aws.repeat)
        self.meter = Meter()
        self.mailbox = Mailbox()
        # from the outside in: a call that a fault stops was never made
        self._aws.gates += [self.faults, permissions, Strict(), self.mailbox, self.meter, self.metrics]
        self.sources = EventSources(self.stack, self.functions, self._aws, self.clock, permissions)
        caller = LambdaCaller(self.stack, self.functions, permissions.exercise)
        self.executions = Executions(self.stack, self.clock, caller, self.sources.rules)
        self.executions.changed = self.metrics.executions.changed
        self._aws.players.update(StatesApi(self.executions).players)
        self.metrics.start(self.functions, self.sources.mappings)
        api = HttpApi(self.stack, self.functions, self.clock, self._aws)
        self._sockets.play(self.stack, self.functions, self.clock)
        self._aws.players.update(Management(self._sockets, self.clock).players)
        self.controls = Controls(
            self.clock,
            self.functions,
            self.sources,
            self.faults,
            self.meter,
            mailbox=self.mailbox,
            metrics=self.metrics,
            connections=self.connections,
            executions=self.executions,
        )
        self.functions.start()
        self._ending.callback(self._stop_compute)
        self.functions.warm()
        self.sources.start()
        self._sockets.start()
        self._gateway.start(self.metrics.watching(api.answer), self.controls)
        if self._reload:
            reloader = Reloader(self._code / "lambdas", self.functions, self._say)
            self._ending.callback(reloader.stop)

    def _stop_compute(self) -> None:
        """Processes first: everything else waits for them."""
        self._sockets.forget()
        self.sources.invoker.forget()
        self.executions.forget()
        self.functions.stop()
        self.sources.stop()
        self.executions.stop_all()


def to_stderr(line: str) -> None:
    """Progress for a human who waits."""
    sys.stderr.write(f"local    | {line}\n")
    sys.stderr.flush()
