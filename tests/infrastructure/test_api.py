"""The door: routes as the contract says, and nobody comes in unseen."""

from __future__ import annotations

import json

from tests.infrastructure.conftest import ROOT, Synthesize
from tests.infrastructure.templates import Template, target

PUBLIC = {"GET /health", "GET /openapi.json"}


def functions_by_route(template: Template) -> dict[str, str]:
    """Route key to the handler that answers it."""
    handlers = {}
    for route in template.of_api("Route").values():
        integration = target(route["Properties"]["Target"]).removeprefix("integrations/")
        function = target(template.resources[integration]["Properties"]["IntegrationUri"])
        handlers[route["Properties"]["RouteKey"]] = template.resources[function]["Properties"]["Handler"]
    return handlers


def test_the_routes_are_those_of_the_contract(prod: Template) -> None:
    contract = json.loads((ROOT / "lambdas/contracts/openapi.json").read_text(encoding="utf-8"))
    methods = ("get", "post", "put", "patch", "delete")
    promised = {
        f"{method.upper()} {path}" for path, item in contract["paths"].items() for method in methods if method in item
    }
    # a route for each declared source, and none is declared (tests/infrastructure/test_events.py declares some)
    assert functions_by_route(prod).keys() == promised - {"POST /events/{source}"}


def test_accept_takes_jobs_control_changes_them_and_query_answers_whatever_is_read(prod: Template) -> None:
    routes = functions_by_route(prod)
    assert routes["POST /jobs"] == "lambdas.handlers.accept.handler"
    changing = ("POST /jobs/{id}/cancel", "POST /jobs/{id}/retry", "DELETE /jobs/{id}")
    assert {routes[route] for route in changing} == {"lambdas.handlers.control.handler"}
    reading = {
        route: function
        for route, function in routes.items()
        if route.startswith("GET ") and "/admin/" not in route and "/webhooks" not in route
    }
    assert set(reading.values()) == {"lambdas.handlers.query.handler"}


def test_every_route_but_health_and_contract_wants_a_signature(prod: Template) -> None:
    for route in prod.of_api("Route").values():
        properties = route["Properties"]
        wanted = "NONE" if properties["RouteKey"] in PUBLIC else "AWS_IAM"
        assert properties["AuthorizationType"] == wanted, properties["RouteKey"]


def test_with_an_issuer_every_route_but_health_and_contract_wants_its_token(synthesize: Synthesize) -> None:
    template = synthesize(jwt_issuer="https://login.example.com/pool", jwt_audience=["app"])
    (authorizer,) = template.of_api("Authorizer").values()
    assert authorizer["Properties"]["JwtConfiguration"] == {
        "Issuer": "https://login.example.com/pool",
        "Audience": ["app"],
    }
    for route in template.of_api("Route").values():
        properties = route["Properties"]
        if properties["RouteKey"] in PUBLIC:
            assert properties["AuthorizationType"] == "NONE"
        elif "/admin/" in properties["RouteKey"]:  # a token of a tenant's user is no operator's
            assert properties["AuthorizationType"] == "AWS_IAM"
        else:
            assert properties["AuthorizationType"] == "JWT"
            assert properties["AuthorizerId"] == {"Ref": template.id_of(authorizer)}


def test_the_stage_is_throttled_and_logs_each_request_as_json(prod: Template) -> None:
    stage = prod.stage()["Properties"]
    assert (stage["StageName"], stage["AutoDeploy"]) == ("$default", True)
    assert stage["DefaultRouteSettings"] == {"ThrottlingRateLimit": 50, "ThrottlingBurstLimit": 100}
    assert target(stage["AccessLogSettings"]["DestinationArn"]) in prod.of_type("Logs::LogGroup")
    line = json.loads(stage["AccessLogSettings"]["Format"])
    assert {"request_id", "status", "route", "latency_ms", "caller", "tenant_id", "sub"} <= line.keys()
    assert not any("authorization" in value.lower() for value in line.values())


def test_functions_are_invoked_by_these_apis_only(prod: Template) -> None:
    """And `ended` by its rule (test_workflows.py)."""
    apis = [f":{name}/" for name in prod.of_type("ApiGatewayV2::Api")]
    ended = prod.id_of(prod.function("ended"))
    for permission in prod.of_type("Lambda::Permission").values():
        if target(permission["Properties"]["FunctionName"]) == ended:
            continue
        assert permission["Properties"]["Principal"] == "apigateway.amazonaws.com"
        assert sum(api in target(permission["Properties"]["SourceArn"]) for api in apis) == 1


def test_browsers_get_in_only_from_the_origins_that_are_set(prod: Template, synthesize: Synthesize) -> None:
    assert "CorsConfiguration" not in prod.api()["Properties"]
    cors = synthesize(cors_origins=["https://app.example.com"]).api()["Properties"]["CorsConfiguration"]
    assert cors["AllowOrigins"] == ["https://app.example.com"]
    assert set(cors["AllowMethods"]) == {"GET", "POST", "DELETE"}
    assert {"authorization", "content-type", "idempotency-key", "traceparent"} <= set(cors["AllowHeaders"])
    assert "location" in cors["ExposeHeaders"]


def test_tenants_reach_every_function_behind_the_door_by_the_arns_that_callers_have(synthesize: Synthesize) -> None:
    account = "arn:aws:iam::111122223333"
    template = synthesize(tenants={f"{account}:role/team/shop": "shop", f"{account}:user/team/eve": "eve"})
    for role in ("accept", "query", "control"):
        assert json.loads(template.environment(role)["TENANTS"]) == {
            f"{account}:role/shop": "shop",
            f"{account}:user/team/eve": "eve",
        }
