"""Text while it comes: tickets, the WebSocket API on which jobs are watched, and who sends to their watchers."""

from __future__ import annotations

from typing import Any

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_authorizers import WebSocketLambdaAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration, WebSocketLambdaIntegration
from aws_cdk.aws_lambda_event_sources import SqsDlq
from constructs import Construct

from infra import tenants
from infra.api import Api
from infra.function import Function
from infra.packaging import Packaging
from infra.queues import dead_letters
from infra.settings import Settings
from infra.storage import Storage
from lambdas.contracts import names

STAGE = "live"
ACTIONS = ("watch", "unwatch", "ping")
HINT_AGE_S = 300  # older news are no news: who missed them asks


class Streaming(Construct):
    """`ticket` at the door, `connect` and `socket` behind the WebSocket API, `push` on the stream of the Jobs table."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        packaging: Packaging,
        settings: Settings,
        storage: Storage,
        api: Api,
    ) -> None:
        super().__init__(scope, construct_id)
        self._packaging, self._settings, self._storage = packaging, settings, storage
        self.connections = self._table()
        self.web_socket_api = http.WebSocketApi(
            self,
            "WebSocket",
            api_name=f"{Stack.of(self).stack_name}-{STAGE}",
            description="Live watching of jobs",
            route_selection_expression="$request.body.action",
        )
        # made of the API alone: the stage waits for routes, routes for functions, and they for this
        self.url = f"{self.web_socket_api.api_endpoint}/{STAGE}"
        self.ticket = self._ticket(api)
        self.connect = self._connect()
        self.socket = self._sender("socket", settings.socket_timeout_s)
        self.socket.allow("dynamodb:GetItem", "dynamodb:PutItem", on=self.connections.table_arn)
        self.dead_letters = dead_letters(self, "DeadLetters", settings)
        self.push = self._sender("push", settings.push_timeout_s)
        self._serve()
        self._follow()

    def _table(self) -> dynamodb.Table:
        """Apart from Jobs, so that what faces browsers may not write there; nothing in it must survive."""
        return dynamodb.Table(
            self,
            "Connections",
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=names.CONNECTIONS_TTL_ATTRIBUTE,
            removal_policy=RemovalPolicy.DESTROY,
        )

    def _ticket(self, api: Api) -> Function:
        """Gives out tickets for jobs of the caller's own."""
        jobs = self._storage.jobs
        ticket = Function(
            self,
            "ticket",
            packaging=self._packaging,
            settings=self._settings,
            timeout_s=self._settings.query_timeout_s,
            environment={
                names.JOBS_TABLE: jobs.table_name,
                names.CONNECTIONS_TABLE: self.connections.table_name,
                names.WEBSOCKET_URL: self.url,
                names.TENANTS: tenants.environment(self._settings.tenants),
            },
        )
        ticket.allow("dynamodb:GetItem", on=jobs.table_arn)
        ticket.allow("dynamodb:PutItem", on=self.connections.table_arn)
        api.http_api.add_routes(
            path="/tickets",
            methods=[http.HttpMethod.POST],
            integration=HttpLambdaIntegration("Ticket", ticket.resource),
        )
        return ticket

    def _connect(self) -> Function:
        """Takes tickets: it decides who may open a connection."""
        connect = Function(
            self,
            "connect",
            packaging=self._packaging,
            settings=self._settings,
            timeout_s=self._settings.accept_timeout_s,
            environment={names.CONNECTIONS_TABLE: self.connections.table_name},
        )
        connect.allow("dynamodb:DeleteItem", on=self.connections.table_arn)
        return connect

    def _sender(self, role: str, timeout_s: int) -> Function:
        """A function that reads jobs, their text and results, and sends it to connections."""
        jobs, results = self._storage.jobs, self._storage.results
        function = Function(
            self,
            role,
            packaging=self._packaging,
            settings=self._settings,
            timeout_s=timeout_s,
            environment={
                names.JOBS_TABLE: jobs.table_name,
                names.RESULTS_BUCKET: results.bucket_name,
                names.CONNECTIONS_TABLE: self.connections.table_name,
                names.PUSH_URL: self._management_url(),
            },
        )
        function.allow("dynamodb:GetItem", "dynamodb:Query", on=jobs.table_arn)
        function.allow("s3:GetObject", on=results.arn_for_objects(f"{names.RESULTS_PREFIX}*"))
        function.allow("dynamodb:Query", "dynamodb:UpdateItem", "dynamodb:DeleteItem", on=self.connections.table_arn)
        function.allow("execute-api:ManageConnections", on=self._posting_arn())
        return function

    def _management_url(self) -> str:
        stack = Stack.of(self)
        return f"https://{self.web_socket_api.api_id}.execute-api.{stack.region}.{stack.url_suffix}/{STAGE}"

    def _posting_arn(self) -> str:
        """To send; not to look at connections or end them."""
        return Stack.of(self).format_arn(
            service="execute-api",
            resource=self.web_socket_api.api_id,
            resource_name=f"{STAGE}/POST/@connections/*",
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )

    def _serve(self) -> None:
        """Every route leads to `socket`; `$connect` asks `connect` first."""
        authorizer = WebSocketLambdaAuthorizer(
            "Tickets", self.connect.resource, identity_source=["route.request.querystring.ticket"]
        )
        integration = WebSocketLambdaIntegration("Socket", self.socket.resource)
        for route in ("$connect", "$disconnect", "$default", *ACTIONS):
            self.web_socket_api.add_route(
                route, integration=integration, authorizer=authorizer if route == "$connect" else None
            )
        # no access log: an account that has never given API Gateway a role for it would refuse the stage
        self.stage = http.WebSocketStage(
            self,
            "Stage",
            web_socket_api=self.web_socket_api,
            stage_name=STAGE,
            auto_deploy=True,
            throttle=http.ThrottleSettings(
                rate_limit=self._settings.throttle_rate, burst_limit=self._settings.throttle_burst
            ),
        )

    def _follow(self) -> None:
        """The second reader of the stream, beside `dispatch`; AWS advises no more. What it misses is soon old news."""
        stream = self._storage.jobs.table_stream_arn
        assert stream is not None
        self.push.allow("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", on=stream)
        # AWS authorizes the listing against any stream of the table
        self.push.allow("dynamodb:ListStreams", on=f"{self._storage.jobs.table_arn}/stream/*")
        self.push.allow("sqs:SendMessage", on=self.dead_letters.queue_arn)  # Lambda does it, in its name
        lambda_.EventSourceMapping(
            self,
            "Stream",
            target=self.push.resource,
            event_source_arn=stream,
            starting_position=lambda_.StartingPosition.TRIM_HORIZON,
            batch_size=self._settings.stream_batch_size,
            filters=[lambda_.FilterCriteria.filter(one) for one in (TEXT, END, START, PROGRESS)],
            max_record_age=Duration.seconds(HINT_AGE_S),
            retry_attempts=10_000,  # the most there is, so that age decides
            bisect_batch_on_error=True,
            report_batch_item_failures=True,
            on_failure=SqsDlq(self.dead_letters),
        )


def _image(**clauses: Any) -> dict[str, Any]:
    """Of new images alone: what is removed is no news to a watcher."""
    return {"dynamodb": {"NewImage": clauses}}


_JOB = {"S": lambda_.FilterRule.is_equal(names.JOB_SK)}
TEXT = _image(sk={"S": lambda_.FilterRule.begins_with(names.CHUNK_SK)})
# while somebody must hear of it: when everybody was told, the record changes once more
END = _image(
    sk=_JOB,
    status={"S": lambda_.FilterRule.or_(*names.FINAL)},
    **{names.DUE_SHARD: {"S": lambda_.FilterRule.exists()}},
)
# a new attempt: its text takes the place of what was sent. CDK knows no rule for a boolean
START = _image(sk=_JOB, status={"S": lambda_.FilterRule.is_equal(names.PROCESSING)}, **{names.STREAM: {"BOOL": [True]}})
# a branch of a workflow is over: until all are, such a record changes for little else
PROGRESS = _image(
    sk=_JOB,
    status={"S": lambda_.FilterRule.or_(names.PENDING, names.PROCESSING)},
    **{names.PROGRESS_AT: {"S": lambda_.FilterRule.exists()}},
)
