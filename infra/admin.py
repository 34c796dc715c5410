"""The operator's hand: the routes under /admin, the function behind them, and the one that brings dead letters back."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from aws_cdk.aws_lambda_destinations import SqsDestination
from constructs import Construct

from infra import sources
from infra.api import Api, Route
from infra.function import Function
from infra.packaging import Packaging
from infra.queues import Queues, dead_letters
from infra.settings import Settings
from infra.storage import Storage
from infra.sweep import Sweep
from lambdas.contracts import names

ROUTES = tuple(
    Route(method, path, "admin")
    for method, path in (
        (http.HttpMethod.POST, "/admin/sweeps"),
        (http.HttpMethod.GET, "/admin/sweeps/{id}"),
        (http.HttpMethod.GET, "/admin/dead-letters"),
        (http.HttpMethod.GET, "/admin/dead-letters/{id}"),
        (http.HttpMethod.POST, "/admin/dead-letters/{id}/repair"),
        (http.HttpMethod.POST, "/admin/dead-letters/{id}/discard"),
        (http.HttpMethod.POST, "/admin/dead-letters/redrive"),
        (http.HttpMethod.GET, "/admin/redrives/{id}"),
        (http.HttpMethod.GET, "/admin/review"),
    )
)


class Admin(Construct):
    """`admin`, and `redrive` with the dead letters of its own: redrives that died. Whoever may call these routes sees
    and moves the work of all tenants."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        packaging: Packaging,
        settings: Settings,
        storage: Storage,
        queues: Queues,
        api: Api,
        sweep: Sweep,
    ) -> None:
        super().__init__(scope, construct_id)
        self.dead_letters = dead_letters(self, "DeadLetters", settings)
        self.redrive = _redrive(self, packaging, settings, storage, queues)
        self.redrive.allow("sqs:SendMessage", on=self.dead_letters.queue_arn)  # Lambda does it, in its name
        # what it raises is repeated, and goes on where it was
        self.redrive.resource.configure_async_invoke(
            retry_attempts=2, max_event_age=Duration.hours(6), on_failure=SqsDestination(self.dead_letters)
        )
        self.admin = Function(
            self,
            "admin",
            packaging=packaging,
            settings=settings,
            timeout_s=settings.admin_timeout_s,
            environment={
                names.JOBS_TABLE: storage.jobs.table_name,
                names.RESULTS_BUCKET: storage.results.bucket_name,
                names.SWEEP_FUNCTION: sweep.sweep.resource.function_name,
                names.REDRIVE_FUNCTION: self.redrive.resource.function_name,
                names.SOURCES: sources.environment(settings.event_sources),
                names.RECORD_DAYS: str(settings.record_days),
                **_places(queues),
            },
        )
        self.admin.allow(
            "dynamodb:GetItem",
            "dynamodb:BatchGetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:Query",
            on=storage.jobs.table_arn,
        )
        self.admin.allow("s3:GetObject", on=storage.results.arn_for_objects(f"{names.CERTIFICATES_PREFIX}*"))
        self.admin.allow("s3:ListBucket", on=storage.results.bucket_arn)  # else one that is gone is 403, not 404
        self.admin.allow(
            "lambda:InvokeFunction", on=[sweep.sweep.resource.function_arn, self.redrive.resource.function_arn]
        )
        _allow_letters(self.admin, queues)
        self._routes(api)

    def _routes(self, api: Api) -> None:
        """Signed (SigV4) in every deployment: a token of a tenant's user is no operator's."""
        integration, authorizer = HttpLambdaIntegration("Admin", self.admin.resource), HttpIamAuthorizer()
        for route in ROUTES:
            api.http_api.add_routes(
                path=route.path, methods=[route.method], integration=integration, authorizer=authorizer
            )


def _redrive(scope: Construct, packaging: Packaging, settings: Settings, storage: Storage, queues: Queues) -> Function:
    """Moves letters, and calls itself while there are some left: as often as its own code allows."""
    redrive = Function(
        scope,
        "redrive",
        packaging=packaging,
        settings=settings,
        timeout_s=settings.redrive_timeout_s,
        recursive=True,
        environment={names.JOBS_TABLE: storage.jobs.table_name, **_places(queues)},
    )
    redrive.allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=storage.jobs.table_arn)
    _allow_letters(redrive, queues)
    redrive.allow_itself()
    return redrive


def _places(queues: Queues) -> dict[str, str]:
    return {
        **queues.of_work,
        names.INBOX_QUEUE_URL: queues.inbox.queue_url,
        names.INBOX_DLQ_URL: queues.inbox_dead_letters.queue_url,
        names.DELIVERIES_QUEUE_URL: queues.deliveries.queue_url,
        names.DELIVERIES_DLQ_URL: queues.deliveries_dead_letters.queue_url,
    }


def _allow_letters(function: Function, queues: Queues) -> None:
    """To look through dead letters and take them away, and to send to the queues that they belong to."""
    function.allow(
        "sqs:ReceiveMessage",
        "sqs:ChangeMessageVisibility",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        on=[queue.queue_arn for queue in queues.dead],
    )
    living = (queues.work, queues.urgent, queues.inbox, queues.deliveries)
    function.allow("sqs:SendMessage", on=[queue.queue_arn for queue in living])
