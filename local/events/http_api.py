"""One HTTP API of the template: which function or queue answers a request, and what API Gateway says by itself."""

from __future__ import annotations

import json
import logging
import uuid
from typing import Any

from local.aws.server import AwsServer
from local.clock import VirtualClock
from local.compute.environments import Functions
from local.events import http
from local.events.cors import Cors
from local.events.http import Answer, Request
from local.events.mapping import EVENT_LIMIT_BYTES
from local.events.routes import Route, Routes, routes
from local.events.sqs_integration import SqsIntegration
from local.events.throttle import Throttle
from local.events.within import within
from local.stack.errors import TemplateError
from local.stack.stack import Resource, Stack

_log = logging.getLogger(__name__)
BODY_LIMIT_BYTES = 10 * 1024 * 1024


class HttpApi:
    """Answers requests; may be called from many threads."""

    def __init__(self, stack: Stack, functions: Functions, clock: VirtualClock, aws: AwsServer) -> None:
        """TemplateError for what is not played on this machine. Queues are reached through `aws`."""
        self._functions = functions
        self._clock = clock
        self._account = stack.account
        api = _the_api(stack)
        self._api_id = "none" if api is None else api.ref
        known = [] if api is None else routes(stack, api.ref)
        for route in known:
            _refuse_unknown(route)
        self._queues = {route.key: _queue_of(route, stack, aws) for route in known if _is_direct(route)}
        stages = [item.properties for item in stack.of_type("AWS::ApiGatewayV2::Stage")]
        stage = next((one for one in stages if one["ApiId"] == self._api_id), {})
        self._stage = stage.get("StageName", "$default")
        self._throttle = Throttle(stage, [route.key for route in known])
        self._routes = Routes(known)
        self._cors = Cors(None if api is None else api.properties.get("CorsConfiguration"))

    def answer(self, request: Request) -> Answer:
        """What API Gateway answers."""
        preflight = self._cors.preflight(request)
        return preflight if preflight is not None else self._cors.mark(request, self._answer(request))

    # -----------------------------------------------------------------------------------------------------

    def _answer(self, request: Request) -> Answer:
        path = self._within_stage(request.raw_path)
        found = None if path is None else self._routes.find(request.method, path)
        if found is None:
            return http.message(404, "Not Found")
        route, parameters = found
        if not self._throttle.take(route.key):
            return http.message(429, "Too Many Requests")
        if len(request.body) > BODY_LIMIT_BYTES:
            return http.message(413, "Request Entity Too Large")
        request_id = str(uuid.uuid4())
        if route.key in self._queues:
            answer = self._queues[route.key].answer(request, parameters, self._context(request, route, request_id))
        else:
            answer = self._integrate(request, route, parameters, request_id)
        return Answer(answer.status, [*answer.headers, ("apigw-requestid", request_id)], answer.body)

    def _context(self, request: Request, route: Route, request_id: str) -> dict[str, str]:
        """API Gateway's context variables, those that mapping expressions may name."""
        return {
            "accountId": self._account,
            "apiId": self._api_id,
            "httpMethod": request.method,
            "identity.sourceIp": request.source_ip,
            "identity.userAgent": request.headers.get("user-agent", ""),
            "path": request.raw_path,
            "protocol": request.protocol,
            "requestId": request_id,
            "requestTimeEpoch": str(int(self._clock.now().timestamp() * 1000)),
            "routeKey": route.key,
            "stage": self._stage,
        }

    def _integrate(self, request: Request, route: Route, parameters: dict[str, str], request_id: str) -> Answer:
        event = http.event(
            request,
            route,
            parameters,
            account=self._account,
            api_id=self._api_id,
            stage=self._stage,
            request_id=request_id,
            now=self._clock.now(),
        )
        if len(request.body) > EVENT_LIMIT_BYTES // 8 and len(json.dumps(event)) > EVENT_LIMIT_BYTES:
            return http.message(413, "Request Entity Too Large")
        return self._invoke(route, event)

    def _invoke(self, route: Route, event: dict[str, Any]) -> Answer:
        role = self._functions.role(_function_of(route))
        timeout_s = float(route.integration.get("TimeoutInMillis", 30_000)) / 1000
        outcome = within(self._functions, timeout_s, role, event)
        if outcome is None or outcome.throttled:
            return http.message(503, "Service Unavailable")
        if not outcome.ok:
            return http.message(500, "Internal Server Error")
        try:
            return http.answer(outcome.result)
        except http.MalformedResponseError as error:
            _log.warning("%s returned no valid response: %s", role, error)
            return http.message(500, "Internal Server Error")

    def _within_stage(self, raw_path: str) -> str | None:
        """The path behind the stage's name; only $default has none."""
        if self._stage == "$default":
            return raw_path
        prefix = f"/{self._stage}"
        return raw_path.removeprefix(prefix) or "/" if raw_path.startswith(prefix) else None


def _the_api(stack: Stack) -> Resource | None:
    apis = [item for item in stack.of_type("AWS::ApiGatewayV2::Api") if item.properties["ProtocolType"] == "HTTP"]
    if len(apis) > 1:
        raise TemplateError("more than one HTTP API in a stack is not played on this machine")
    return apis[0] if apis else None


def _refuse_unknown(route: Route) -> None:
    integration = route.integration
    if integration.get("IntegrationType") != "AWS_PROXY":
        raise TemplateError("only Lambda and SQS integrations are played on this machine").at(route.key)
    if route.authorization not in ("NONE", "AWS_IAM", "JWT"):
        raise TemplateError(f"{route.authorization} authorizers are not played on this machine").at(route.key)
    if integration.get("PayloadFormatVersion") != "2.0" and not _is_direct(route):
        raise TemplateError("only payload format 2.0 is played on this machine").at(route.key)


def _is_direct(route: Route) -> bool:
    """Whether API Gateway calls another service than Lambda for this route."""
    return "IntegrationSubtype" in route.integration


def _queue_of(route: Route, stack: Stack, aws: AwsServer) -> SqsIntegration:
    try:
        return SqsIntegration(route, stack, aws)
    except TemplateError as error:
        raise error.at(route.key) from error


def _function_of(route: Route) -> str:
    uri = str(route.integration["IntegrationUri"])
    return uri.rpartition("/functions/")[2].removesuffix("/invocations")
