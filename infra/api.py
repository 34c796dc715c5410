"""The door: the HTTP API, who may come in, and the functions behind its routes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from aws_cdk import Duration, Stack
from aws_cdk import aws_apigatewayv2 as http
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from infra import tenants
from infra.function import Function
from infra.limits import DAY_S
from infra.packaging import Packaging
from infra.retention import log_group
from infra.settings import Settings
from infra.storage import Storage
from lambdas.contracts import names

STAGE = "$default"


@dataclass(frozen=True)
class Route:
    """One route of lambdas/contracts/openapi.json, and the function that answers it."""

    method: http.HttpMethod
    path: str
    function: str
    public: bool = False


ROUTES = (
    Route(http.HttpMethod.POST, "/jobs", "accept"),
    Route(http.HttpMethod.GET, "/jobs", "query"),
    Route(http.HttpMethod.GET, "/jobs/{id}", "query"),
    Route(http.HttpMethod.GET, "/jobs/{id}/result", "query"),
    Route(http.HttpMethod.GET, "/jobs/{id}/events", "query"),
    Route(http.HttpMethod.GET, "/jobs/{id}/chunks", "query"),
    Route(http.HttpMethod.POST, "/jobs/{id}/cancel", "control"),
    Route(http.HttpMethod.POST, "/jobs/{id}/retry", "control"),
    Route(http.HttpMethod.DELETE, "/jobs/{id}", "control"),
    Route(http.HttpMethod.POST, "/uploads", "accept"),
    Route(http.HttpMethod.GET, "/health", "query", public=True),
    Route(http.HttpMethod.GET, "/openapi.json", "query", public=True),
)


class Api(Construct):
    """`http_api` with its routes and its `stage`, `accept`, `query` and `control`."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        packaging: Packaging,
        settings: Settings,
        storage: Storage,
    ) -> None:
        super().__init__(scope, construct_id)
        self.accept = _accept(self, packaging, settings, storage)
        self.query = _query(self, packaging, settings, storage)
        self.control = _control(self, packaging, settings, storage)
        self.http_api = http.HttpApi(
            self,
            "Http",
            api_name=Stack.of(self).stack_name,
            default_authorizer=_authorizer(settings),
            cors_preflight=_cors(settings),
            create_default_stage=False,
        )
        self._stage(settings)
        for role, function in (("accept", self.accept), ("query", self.query), ("control", self.control)):
            integration = HttpLambdaIntegration(role.capitalize(), function.resource)
            for route in (r for r in ROUTES if r.function == role):
                self.http_api.add_routes(
                    path=route.path,
                    methods=[route.method],
                    integration=integration,
                    authorizer=http.HttpNoneAuthorizer() if route.public else None,
                )

    def _stage(self, settings: Settings) -> None:
        self.access_log = log_group(self, "AccessLog", settings)
        self.stage = http.CfnStage(
            self,
            "Stage",
            api_id=self.http_api.api_id,
            stage_name=STAGE,
            auto_deploy=True,
            default_route_settings=http.CfnStage.RouteSettingsProperty(
                throttling_rate_limit=settings.throttle_rate,
                throttling_burst_limit=settings.throttle_burst,
            ),
            access_log_settings=http.CfnStage.AccessLogSettingsProperty(
                destination_arn=self.access_log.log_group_arn, format=json.dumps(ACCESS_LOG)
            ),
        )


# one JSON line per request; the caller, so that a refused one can be found: by ARN, or by the claims of a token
ACCESS_LOG = {
    "timestamp": "$context.requestTime",
    "request_id": "$context.requestId",
    "ip": "$context.identity.sourceIp",
    "caller": "$context.identity.userArn",
    "tenant_id": "$context.authorizer.claims.tenant_id",
    "sub": "$context.authorizer.claims.sub",
    "route": "$context.routeKey",
    "path": "$context.path",
    "status": "$context.status",
    "bytes": "$context.responseLength",
    "latency_ms": "$context.responseLatency",
    "function_error": "$context.integrationErrorMessage",
    "authorizer_error": "$context.authorizer.error",
    "error": "$context.error.message",
}


def _accept(scope: Construct, packaging: Packaging, settings: Settings, storage: Storage) -> Function:
    """Records the job, and its input in S3 when large; gives out forms for uploads."""
    accept = Function(
        scope,
        "accept",
        packaging=packaging,
        settings=settings,
        timeout_s=settings.accept_timeout_s,
        environment={
            names.JOBS_TABLE: storage.jobs.table_name,
            names.INPUTS_BUCKET: storage.inputs.bucket_name,
            names.UPLOADS_BUCKET: storage.uploads.bucket_name,
            names.UPLOAD_MAX_BYTES: str(settings.upload_max_bytes),
            names.TENANTS: tenants.environment(settings.tenants),
            names.DEADLINE_S: str(settings.deadline_s),
            names.DUE_GRACE_S: str(settings.due_grace_s),
            names.NOT_BEFORE_MAX_S: str(settings.not_before_max_days * DAY_S),
        },
    )
    accept.allow("dynamodb:PutItem", "dynamodb:GetItem", on=storage.jobs.table_arn)
    accept.allow("s3:PutObject", on=storage.inputs.arn_for_objects(f"{names.INPUTS_PREFIX}*"))
    accept.allow(
        "s3:PutObject", on=storage.uploads.arn_for_objects(f"{names.UPLOADS_PREFIX}*")
    )  # by whoever has a form
    return accept


def _query(scope: Construct, packaging: Packaging, settings: Settings, storage: Storage) -> Function:
    """Reads jobs and results, and changes nothing."""
    query = Function(
        scope,
        "query",
        packaging=packaging,
        settings=settings,
        timeout_s=settings.query_timeout_s,
        environment={
            names.JOBS_TABLE: storage.jobs.table_name,
            names.RESULTS_BUCKET: storage.results.bucket_name,
            names.TENANTS: tenants.environment(settings.tenants),
            names.WAIT_MAX_S: str(settings.wait_max),
        },
    )
    query.allow("dynamodb:GetItem", "dynamodb:BatchGetItem", on=storage.jobs.table_arn)
    query.allow("dynamodb:Query", on=f"{storage.jobs.table_arn}/index/{names.TENANT_INDEX}")
    query.allow("dynamodb:Query", on=storage.jobs.table_arn)  # what lies beside a job's record
    query.allow("s3:GetObject", on=storage.results.arn_for_objects(f"{names.RESULTS_PREFIX}*"))
    query.allow("s3:ListBucket", on=storage.results.bucket_arn)  # else a result that is gone is 403, not 404
    return query


def _control(scope: Construct, packaging: Packaging, settings: Settings, storage: Storage) -> Function:
    """Cancels, starts again and deletes jobs; of objects it knows nothing but their names, and how to remove them."""
    control = Function(
        scope,
        "control",
        packaging=packaging,
        settings=settings,
        timeout_s=settings.control_timeout_s,
        environment={
            names.JOBS_TABLE: storage.jobs.table_name,
            names.INPUTS_BUCKET: storage.inputs.bucket_name,
            names.RESULTS_BUCKET: storage.results.bucket_name,
            names.UPLOADS_BUCKET: storage.uploads.bucket_name,
            names.TENANTS: tenants.environment(settings.tenants),
            names.DEADLINE_S: str(settings.deadline_s),
            names.DUE_GRACE_S: str(settings.due_grace_s),
            names.RECORD_DAYS: str(settings.record_days),
        },
    )
    control.allow("dynamodb:GetItem", "dynamodb:UpdateItem", on=storage.jobs.table_arn)
    control.allow("dynamodb:Query", "dynamodb:BatchWriteItem", on=storage.jobs.table_arn)  # to delete streamed text
    control.allow("s3:DeleteObject", on=storage.inputs.arn_for_objects(f"{names.INPUTS_PREFIX}*"))
    control.allow("s3:DeleteObject", on=storage.results.arn_for_objects(f"{names.RESULTS_PREFIX}*"))
    control.allow(
        "s3:ListBucket",  # the parts of a result have names that no tombstone tells
        on=storage.results.bucket_arn,
        when={"StringLike": {"s3:prefix": f"{names.RESULTS_PREFIX}*"}},
    )
    # an upload has versions, and all of them that were sent to a job's own name go with it
    control.allow("s3:DeleteObjectVersion", on=storage.uploads.arn_for_objects(f"{names.UPLOADS_PREFIX}*"))
    control.allow("s3:ListBucketVersions", on=storage.uploads.bucket_arn)
    return control


def _authorizer(settings: Settings) -> http.IHttpRouteAuthorizer:
    if not settings.jwt_issuer:
        return HttpIamAuthorizer()
    return HttpJwtAuthorizer("Jwt", settings.jwt_issuer, jwt_audience=list(settings.jwt_audience))


def _cors(settings: Settings) -> http.CorsPreflightOptions | None:
    if not settings.cors_origins:
        return None
    return http.CorsPreflightOptions(
        allow_origins=list(settings.cors_origins),
        allow_methods=[http.CorsHttpMethod.GET, http.CorsHttpMethod.POST, http.CorsHttpMethod.DELETE],
        allow_headers=[
            "authorization",
            "content-type",
            "idempotency-key",
            "traceparent",
            "x-amz-content-sha256",
            "x-amz-date",
            "x-amz-security-token",
        ],
        expose_headers=["location", "retry-after"],
        max_age=Duration.hours(1),
    )
