"""Endpoints of tenants: the function behind their routes, what it may touch, and the secret that theirs are made of."""

from __future__ import annotations

import json

import pytest

from lambdas.contracts import names
from tests.infrastructure.conftest import ROOT, Synthesize
from tests.infrastructure.templates import Template, target
from tests.infrastructure.test_api import functions_by_route


def test_its_routes_are_those_about_endpoints_and_deliveries(prod: Template) -> None:
    contract = json.loads((ROOT / "lambdas/contracts/openapi.json").read_text(encoding="utf-8"))
    promised = {
        f"{method.upper()} {path}"
        for path, item in contract["paths"].items()
        if path.startswith("/webhooks") or path.endswith("/redeliver")
        for method in item.keys() & {"get", "post", "delete"}
    }
    routes = functions_by_route(prod)
    assert {route for route, handler in routes.items() if handler == "lambdas.handlers.webhooks.handler"} == promised
    assert len(promised) == 10


def test_it_touches_the_records_and_its_secret_and_nothing_else(prod: Template) -> None:
    table = prod.outputs["JobsTableName"]["Value"]["Ref"]
    actions = ("Query", "GetItem", "PutItem", "UpdateItem", "DeleteItem")
    expected = {(f"dynamodb:{action}", table) for action in actions}
    secret = target(prod.environment("webhooks")[names.WEBHOOK_SECRET])
    expected |= {("secretsmanager:GetSecretValue", secret)}
    logs = {one for one in prod.permissions("webhooks") if one[0].startswith("logs:")}
    assert prod.permissions("webhooks") - logs == expected
    assert prod.resources[secret]["Type"] == "AWS::SecretsManager::Secret"


def test_it_removes_what_belongs_to_a_tenant_and_neither_jobs_nor_deliveries(prod: Template) -> None:
    (removing,) = (one for one in prod.statements("webhooks") if "dynamodb:DeleteItem" in one["Action"])
    assert removing["Action"] == "dynamodb:DeleteItem"
    assert removing["Condition"] == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["tenant#*"]}}


@pytest.mark.parametrize(("environment", "policy"), [("prod", "Retain"), ("dev", "Delete")])
def test_the_secret_is_drawn_by_aws_and_outlives_the_stack_with_the_data(
    request: pytest.FixtureRequest, environment: str, policy: str
) -> None:
    template: Template = request.getfixturevalue(environment)
    secret = template.only("SecretsManager::Secret")
    drawn = secret["Properties"]["GenerateSecretString"]
    assert (drawn["PasswordLength"], drawn["ExcludePunctuation"]) == (64, True)
    assert (secret["DeletionPolicy"], secret["UpdateReplacePolicy"]) == (policy, policy)


def test_what_signs_and_what_tells_a_secret_read_it_and_nobody_else(prod: Template) -> None:
    secret = target(prod.environment("webhooks")[names.WEBHOOK_SECRET])
    readers = set()
    for function in prod.of_type("Lambda::Function").values():
        role = str(function["Properties"]["Handler"]).removeprefix("lambdas.handlers.").removesuffix(".handler")
        if role in ("index", "__init__"):
            continue
        if ("secretsmanager:GetSecretValue", secret) in prod.permissions(role):
            readers.add(role)
    assert readers == {"webhooks", "deliver"}


def test_tenants_reach_it_and_no_template_says_that_it_is_local(prod: Template, synthesize: Synthesize) -> None:
    role = "arn:aws:iam::111122223333:role/shop"
    template = synthesize(tenants={role: "shop"})
    assert json.loads(template.environment("webhooks")["TENANTS"]) == {role: "shop"}
    assert names.LOCAL not in json.dumps(prod.body)
