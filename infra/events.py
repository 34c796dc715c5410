"""The routes of declared sources: API Gateway itself puts an event into the inbox, with no code of ours on the way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aws_cdk import Annotations
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_iam as iam
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from infra import sources
from infra.api import Api
from infra.queues import Queues
from infra.settings import Settings
from lambdas.contracts import names, workflows
from lambdas.contracts.sources import Source

_TASKS = Path(__file__).resolve().parents[1] / "lambdas" / "tasks"


class Events(Construct):
    """One route for each source, with a throttle of its own. None has an authorizer: an event is its source's by its
    signature, which is checked behind the inbox."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings, api: Api, queues: Queues) -> None:
        super().__init__(scope, construct_id)
        self._api, self._queues = api, queues
        declared = settings.event_sources
        binary = sources.binary(declared)
        direct = {name: source for name, source in declared.items() if name not in binary}
        if direct:
            role = self._door()
            for name, source in direct.items():
                self._route(name, self._integration(name, source, role))
        if binary:
            self._through_accept(binary)
        if declared:
            self._warn_of_tasks(declared)
            api.stage.route_settings = {_key(name): _throttle(source) for name, source in declared.items()}

    def _warn_of_tasks(self, declared: Mapping[str, Source]) -> None:
        """No refusal: a source may be declared before its task is there, and its events can be brought back."""
        known = workflows.task_types(_TASKS) | workflows.load()[0].keys()
        for name, source in declared.items():
            if source.task not in known:
                text = f"sources.{name}.task: {source.task} is neither in lambdas/tasks nor in lambdas/workflows"
                Annotations.of(self).add_warning_v2(f"neverdrop:{name}:task", f"{text}: its events become dead letters")

    def _door(self) -> iam.Role:
        role = iam.Role(
            self,
            sources.DOOR,
            assumed_by=iam.ServicePrincipal("apigateway.amazonaws.com"),
            description="What API Gateway may do for events: put them into the inbox",
        )
        role.add_to_policy(iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[self._queues.inbox.queue_arn]))
        return role

    def _integration(self, name: str, source: Source, role: iam.Role) -> http.CfnIntegration:
        integration = http.CfnIntegration(
            self,
            sources.integration_id(name),
            api_id=self._api.http_api.api_id,
            integration_type="AWS_PROXY",
            integration_subtype="SQS-SendMessage",
            payload_format_version="1.0",
            credentials_arn=role.role_arn,
            request_parameters={
                "QueueUrl": self._queues.inbox.queue_url,
                "MessageBody": "$request.body",
                "MessageAttributes": sources.attributes(name, source),
            },
            response_parameters={
                "200": {"ResponseParameters": [{"Destination": "overwrite:statuscode", "Source": "202"}]}
            },
        )
        integration.node.add_dependency(role)  # its policy too: the first event may come at once
        return integration

    def _through_accept(self, binary: Mapping[str, Source]) -> None:
        accept, inbox = self._api.accept, self._queues.inbox
        accept.resource.add_environment(names.INBOX_QUEUE_URL, inbox.queue_url)
        accept.resource.add_environment(names.SOURCES, sources.environment(binary))
        accept.allow("sqs:SendMessage", on=inbox.queue_arn)
        integration = HttpLambdaIntegration("Events", accept.resource)
        for name in binary:
            (route,) = self._api.http_api.add_routes(
                path=f"/events/{name}",
                methods=[http.HttpMethod.POST],
                integration=integration,
                authorizer=http.HttpNoneAuthorizer(),
            )
            self._api.stage.node.add_dependency(route)

    def _route(self, name: str, integration: http.CfnIntegration) -> None:
        route = http.CfnRoute(
            self,
            sources.route_id(name),
            api_id=self._api.http_api.api_id,
            route_key=_key(name),
            authorization_type="NONE",
            target=f"integrations/{integration.ref}",
        )
        self._api.stage.node.add_dependency(route)  # it names the route in its settings


def _key(name: str) -> str:
    return f"POST /events/{name}"


def _throttle(source: Source) -> dict[str, int]:
    return {"ThrottlingRateLimit": source.rate, "ThrottlingBurstLimit": source.burst}
