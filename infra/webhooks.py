"""Endpoints of tenants: the routes that register and test them, and the secret that all their secrets are made of."""

from __future__ import annotations

from aws_cdk import aws_apigatewayv2 as http
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from infra import tenants
from infra.api import Api, Route
from infra.function import Function
from infra.packaging import Packaging
from infra.retention import removal_policy
from infra.settings import Settings
from infra.storage import Storage
from lambdas.contracts import names

ROUTES = tuple(
    Route(method, path, "webhooks")
    for method, path in (
        (http.HttpMethod.POST, "/webhooks"),
        (http.HttpMethod.GET, "/webhooks"),
        (http.HttpMethod.GET, "/webhooks/{id}"),
        (http.HttpMethod.DELETE, "/webhooks/{id}"),
        (http.HttpMethod.GET, "/webhooks/{id}/secret"),
        (http.HttpMethod.POST, "/webhooks/{id}/rotate"),
        (http.HttpMethod.POST, "/webhooks/{id}/disable"),
        (http.HttpMethod.POST, "/webhooks/{id}/enable"),
        (http.HttpMethod.POST, "/webhooks/{id}/ping"),
        (http.HttpMethod.POST, "/jobs/{id}/redeliver"),
    )
)


class Webhooks(Construct):
    """`webhooks`, and `secret`: with it and a tenant's name every secret of that tenant can be made."""

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
        self.secret = secretsmanager.Secret(
            self,
            "Secret",
            description="Neverdrop: what the secrets of webhooks are made of. To change it: docs/delivery.md",
            generate_secret_string=secretsmanager.SecretStringGenerator(password_length=64, exclude_punctuation=True),
            removal_policy=removal_policy(settings),  # without it no receiver knows our signatures any more
        )
        self.webhooks = Function(
            self,
            "webhooks",
            packaging=packaging,
            settings=settings,
            timeout_s=settings.control_timeout_s,
            environment={
                names.JOBS_TABLE: storage.jobs.table_name,
                names.TENANTS: tenants.environment(settings.tenants),
                names.WEBHOOK_HOURS: str(settings.webhook_hours),
                names.RECORD_DAYS: str(settings.record_days),
                names.DUE_GRACE_S: str(settings.due_grace_s),
                **self.place,
            },
        )
        self.webhooks.allow(
            "dynamodb:Query",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            on=storage.jobs.table_arn,
        )
        # endpoints alone: whatever goes wrong in here, it removes no job and no delivery
        self.webhooks.allow(
            "dynamodb:DeleteItem",
            on=storage.jobs.table_arn,
            when={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{names.TENANT_PK}*"]}},
        )
        self.allow_reading(self.webhooks)
        self._routes(api)

    @property
    def place(self) -> dict[str, str]:
        """What whoever signs finds in its environment."""
        return {names.WEBHOOK_SECRET: self.secret.secret_arn}

    def allow_reading(self, function: Function) -> None:
        """Permit a function to make secrets: to sign, or to tell a tenant its own."""
        function.allow("secretsmanager:GetSecretValue", on=self.secret.secret_arn)

    def _routes(self, api: Api) -> None:
        integration = HttpLambdaIntegration("Webhooks", self.webhooks.resource)
        for route in ROUTES:
            api.http_api.add_routes(path=route.path, methods=[route.method], integration=integration)
