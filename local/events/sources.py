"""Every event source of the stack: mappings, schedules and asynchronous invocations, made from the template."""

from __future__ import annotations

from collections.abc import Mapping as Properties
from functools import partial
from typing import Any

import boto3
from botocore.config import Config

from local.aws import secrets
from local.aws.permissions import Permissions
from local.aws.server import AwsServer
from local.aws.streams import StreamReader
from local.clock import VirtualClock
from local.compute.environments import Functions
from local.events import grants, rules, streams
from local.events.asynchronous import AsyncInvoker, AsyncSettings
from local.events.bells import QUEUES, STREAMS, Bell, Bells
from local.events.invoke_api import InvokeApi
from local.events.lineage import Lineages
from local.events.mapping import Mapping
from local.events.notifications import Notifications
from local.events.queues import QueueMapping
from local.events.rules import Rules
from local.events.schedules import Schedule, Schedules
from local.events.streams import Reader, StreamMapping
from local.stack.errors import TemplateError
from local.stack.stack import Stack


class EventSources:
    """Made before `start`, so that a template that AWS would refuse is refused before anything runs."""

    def __init__(
        self,
        stack: Stack,
        functions: Functions,
        aws: AwsServer,
        clock: VirtualClock,
        permissions: Permissions | None = None,
    ) -> None:
        """TemplateError for what is not played here, and where `permissions` lack what AWS asks for."""
        if permissions is not None:
            grants.check(stack, functions, permissions)
        self._stack = stack
        self._permissions = permissions
        self._functions = functions
        self._clock = clock
        self._bells = Bells()
        self._lineages = Lineages(_may_loop(stack))
        aws.gates += [self._bells, self._lineages]
        self.notifications = Notifications(lambda: self._bells.ring(QUEUES))
        self._sqs = client("sqs", aws.url, stack.region)
        self._sns = client("sns", aws.url, stack.region)
        self._secrets = client("secretsmanager", aws.url, stack.region)
        self._readers: dict[str, Reader] = {}
        self.mappings: list[Mapping] = [
            self._mapping(resource.logical_id, resource.properties)
            for resource in stack.of_type("AWS::Lambda::EventSourceMapping")
        ]
        for mapping in self.mappings:
            mapping.exercise = partial(self._exercise, self._role_of(mapping.properties))
        self.invoker = AsyncInvoker(
            functions, _async_settings(stack, functions), self._bell(), self.deliver, self._lineages
        )
        aws.players["lambda", "Invoke"] = InvokeApi(functions, self.invoker, self._lineages)
        self.rules = Rules(rules.read(stack), self._invoke_later, lambda: self._bells.ring(QUEUES))
        now = clock.now()
        found = [
            Schedule(item.logical_id, {**item.properties, **item.attributes}, now)
            for item in stack.of_type("AWS::Scheduler::Schedule")
        ]
        self.schedules = Schedules(
            found, functions, self.invoker, self._bell(), deliver=self.deliver, exercise=self._exercise
        )

    def start(self) -> None:
        """Let events come."""
        self.notifications.start()
        for mapping in self.mappings:
            mapping.start()
        self.schedules.start()

    def stop(self) -> None:
        """Look for no more work and wait for the threads; call after the functions were stopped."""
        self.notifications.stop()
        self.schedules.stop()
        self.invoker.stop()
        for mapping in self.mappings:
            mapping.stop()
        self._sqs.close()
        self._sns.close()
        self._secrets.close()

    def put_secret(self, name: str, value: str) -> str:
        """Create or overwrite a secret; answers its ARN."""
        return secrets.put(self._secrets, name, value)

    def deliver(self, destination: str, message: str, role_arn: str) -> None:
        """Send to a queue or topic by its ARN, in the name of a role: failure destinations and dead letters."""
        kind, name = destination.split(":")[2], destination.rsplit(":", 1)[-1]
        if kind == "sqs":
            url = self._sqs.get_queue_url(QueueName=name)["QueueUrl"]
            self._sqs.send_message(QueueUrl=url, MessageBody=message)
            self._exercise(role_arn, "sqs:SendMessage", destination)
        elif kind == "sns":
            self._sns.publish(TopicArn=destination, Message=message)
            self._exercise(role_arn, "sns:Publish", destination)
        else:
            raise NotImplementedError(f"destinations of the kind {kind} are not played on this machine")

    def _invoke_later(self, arn: str, event: dict[str, Any]) -> bool:
        """As EventBridge does: Lambda takes the event, and that is all that it hears of it."""
        try:
            role = self._functions.role(arn)
        except KeyError:
            return False
        self.invoker.submit(role, event)
        return True

    def _exercise(self, role_arn: str, action: str, resource: str) -> None:
        """What a part of AWS does in the name of a role of ours; that it may was checked at the start."""
        if self._permissions is not None:
            self._permissions.exercise(role_arn, action, resource)

    def _role_of(self, mapping: Properties[str, Any]) -> str:
        return self._functions.definition(self._functions.role(mapping["FunctionName"])).execution_role_arn

    def _bell(self) -> Bell:
        return Bell(self._clock)

    def _mapping(self, logical_id: str, properties: Properties[str, Any]) -> Mapping:
        kind = properties["EventSourceArn"].split(":")[2]
        if kind == "sqs":
            return self._queue_mapping(logical_id, properties)
        if kind == "dynamodb":
            return self._stream_mapping(logical_id, properties)
        raise TemplateError(f"event sources of the kind {kind} are not played on this machine").at(logical_id)

    def _queue_mapping(self, logical_id: str, properties: Properties[str, Any]) -> QueueMapping:
        arn = properties["EventSourceArn"]
        url = self._sqs.get_queue_url(QueueName=arn.rsplit(":", 1)[-1])["QueueUrl"]
        bell = self._bell()
        self._bells.on(QUEUES, bell)
        return QueueMapping(
            logical_id, properties, self._functions, bell, sqs=self._sqs, queue_url=url, lineages=self._lineages
        )

    def _stream_mapping(self, logical_id: str, properties: Properties[str, Any]) -> StreamMapping:
        table = properties["EventSourceArn"].split("/")[1]
        if table not in self._readers:
            self._readers[table] = StreamReader(table, self._stack.region)
        reader = self._readers[table]
        bell = self._bell()
        self._bells.on(STREAMS, bell)
        return StreamMapping(
            logical_id,
            properties,
            self._functions,
            bell,
            reader=reader,
            give_up=lambda destination, message: self.deliver(destination, message, self._role_of(properties)),
            on_progress=lambda: self._trim(properties["EventSourceArn"], reader),
        )

    def _trim(self, arn: str, reader: Reader) -> None:
        same = [item for item in self.mappings if isinstance(item, StreamMapping) and item.source_arn == arn]
        streams.trim_what_all_have_done(reader, same)


def client(service: str, url: str, region: str) -> Any:
    """A client of the runtime itself: it is nobody's function, so it is neither metered nor refused."""
    make: Any = boto3.session.Session().client
    return make(
        service,
        endpoint_url=url,
        region_name=region,
        aws_access_key_id="runtime",
        aws_secret_access_key="runtime",
        config=Config(max_pool_connections=64, account_id_endpoint_mode="disabled", proxies={}),
    )


def _may_loop(stack: Stack) -> frozenset[str]:
    functions = stack.of_type("AWS::Lambda::Function")
    return frozenset(
        one.attributes.get("Arn") or one.ref for one in functions if one.properties.get("RecursiveLoop") == "Allow"
    )


def _async_settings(stack: Stack, functions: Functions) -> dict[str, AsyncSettings]:
    settings = {}
    for item in stack.of_type("AWS::Lambda::EventInvokeConfig"):
        properties = item.properties
        destinations = properties.get("DestinationConfig", {})
        settings[functions.role(properties["FunctionName"])] = AsyncSettings(
            retries=int(properties.get("MaximumRetryAttempts", 2)),
            oldest_s=float(properties.get("MaximumEventAgeInSeconds", 6 * 3600)),
            on_failure=destinations.get("OnFailure", {}).get("Destination"),
            on_success=destinations.get("OnSuccess", {}).get("Destination"),
        )
    return settings
