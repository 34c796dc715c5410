"""CloudWatch of one stack: everything that reports numbers, and the alarms of the template that look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Mapping as Table
from typing import Any

from local.aws.calls import Call, Response
from local.aws.patches.sns import DELIVERIES
from local.clock import VirtualClock
from local.compute.definition import definitions
from local.compute.environments import Functions
from local.events.http import Answer, Request
from local.events.mapping import Mapping
from local.events.streams import StreamMapping
from local.metrics import alarm, emf, executions, functions, gateway, queues, topics
from local.metrics.alarms import Alarms
from local.metrics.executions import ExecutionMetrics
from local.metrics.functions import FunctionMetrics
from local.metrics.gateway import GatewayMetrics
from local.metrics.queues import QueueMetrics
from local.metrics.store import Metric, Store
from local.metrics.topics import TopicMetrics
from local.stack.errors import TemplateError
from local.stack.stack import Stack

_OFTEN_S = 3_600  # nobody may ask for the alarms for days
_OWN = "AWS/"
WriteLog = Callable[[str, str, str], None]


class CloudWatch:
    """A gate of the AWS server, too: a call is when the minutes before it are over."""

    def __init__(self, stack: Stack, clock: VirtualClock) -> None:
        """TemplateError, with the alarm's logical id, for one that cannot be evaluated or that nothing can feed."""
        self.store = Store()
        self._clock = clock
        names = {function.role: function.name for function in definitions(stack)}
        self.functions = FunctionMetrics(self.store, names.__getitem__, self._now_s)
        self.gateway = GatewayMetrics(self.store, *_api(stack), self._now_s)
        self.topics = TopicMetrics(self.store, self._now_s)
        self.executions = ExecutionMetrics(self.store, self._now_s)
        self.alarms = Alarms(_alarms(stack, _resources(stack)), self.store, self._now_s())
        self.queues = QueueMetrics(self.store, self._now_s, self.alarms.metrics(), stack.region)
        self._tidied_s = self._now_s()

    def start(self, invoked: Functions, mappings: Iterable[Mapping]) -> None:
        """From now on minutes count, and what is `invoked`, by event source `mappings` among others."""
        invoked.ended = self.functions.ended
        for mapping in mappings:
            if isinstance(mapping, StreamMapping):
                mapping.batch_ended = self.functions.batch_ended
        self.queues.start()
        DELIVERIES.listen(self.topics.tell)
        self._clock.before_advance(lambda seconds: self._pass(self._now_s() + seconds))

    def stop(self) -> None:
        """Nobody reports any more."""
        DELIVERIES.stop()

    def reading(self, write_log: WriteLog) -> WriteLog:
        """The same log, read for numbers in it."""

        def read(function: str, request_id: str, line: str) -> None:
            now_s = self._now_s()
            for told in emf.values(line):
                self.store.put(told.about, told.value, told.at_s, now_s)
            write_log(function, request_id, line)

        return read

    def watching(self, answer: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
        """The same API, counted."""
        return self.gateway.watching(answer)

    def look(self) -> Alarms:
        """The alarms, evaluated until now."""
        now_s = self._now_s()
        self.queues.report_until(now_s)
        self.alarms.evaluate(now_s)
        return self.alarms

    # --- the gate --------------------------------------------------------------------------------------------

    def before(self, call: Call) -> None:
        """Let everything pass."""
        self._pass(self._now_s())
        self.queues.before(call)

    def after(self, call: Call, response: Response) -> Response:
        """Nothing more."""
        return response

    # ---------------------------------------------------------------------------------------------------------

    def _pass(self, until_s: float) -> None:
        """What queues held in the minutes until then; nothing else happens by itself."""
        self.queues.report_until(until_s)
        if until_s - self._tidied_s >= _OFTEN_S:
            self._tidied_s = until_s
            self.alarms.forget(until_s)

    def _now_s(self) -> float:
        return self._clock.now().timestamp()


def _api(stack: Stack) -> tuple[str, str]:
    """The HTTP API's id and stage; of a WebSocket API nothing is reported here."""
    apis = [one for one in stack.of_type("AWS::ApiGatewayV2::Api") if one.properties["ProtocolType"] == "HTTP"]
    api = next((one.ref for one in apis), "none")
    stages = [one.properties for one in stack.of_type("AWS::ApiGatewayV2::Stage")]
    stage = next((one for one in stages if one["ApiId"] == api), {})
    return api, str(stage.get("StageName", "$default"))


def _resources(stack: Stack) -> Table[str, tuple[tuple[str, ...], list[dict[str, str]]]]:
    """What reports, by namespace: names of metrics, and the dimensions that they come with."""
    api, stage = _api(stack)
    queue_names = [one.attributes["QueueName"] for one in stack.of_type("AWS::SQS::Queue")]
    topic_names = [one.ref.rpartition(":")[2] for one in stack.of_type("AWS::SNS::Topic")]
    machine_arns = [one.attributes["Arn"] for one in stack.of_type("AWS::StepFunctions::StateMachine")]
    return {
        functions.NAMESPACE: (functions.NAMES, [{"FunctionName": one.name} for one in definitions(stack)]),
        queues.NAMESPACE: (queues.NAMES, [{"QueueName": name} for name in queue_names]),
        gateway.NAMESPACE: (gateway.NAMES, [{"ApiId": api}, {"ApiId": api, "Stage": stage}]),
        executions.NAMESPACE: (executions.NAMES, [{"StateMachineArn": arn} for arn in machine_arns]),
        topics.NAMESPACE: (topics.NAMES, [{"TopicName": name} for name in topic_names]),
    }


def _alarms(stack: Stack, reporting: Table[str, tuple[tuple[str, ...], list[dict[str, str]]]]) -> list[alarm.Alarm]:
    found = []
    for resource in stack.of_type("AWS::CloudWatch::Alarm"):
        try:
            read = alarm.read(resource.logical_id, resource.properties, resource.ref)
            for source in read.sources.values():
                _check_is_reported(source.about, reporting)
        except TemplateError as error:
            raise error.at(resource.logical_id) from error
        found.append(read)
    return found


def _check_is_reported(about: Metric, reporting: Table[str, Any]) -> None:
    """Services report what they report; of metrics of one's own nobody can know before they come."""
    if not about.namespace.startswith(_OWN):
        return
    names, dimensions = reporting.get(about.namespace, ((), []))
    if about.name not in names or dict(about.dimensions) not in dimensions:
        raise TemplateError(f"nothing on this machine reports {about}")
