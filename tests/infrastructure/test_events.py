"""The ways in from outside: a route for each source straight into the inbox, and the bucket that tells of uploads."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from lambdas.contracts import names
from lambdas.contracts.sources import read
from tests.infrastructure.conftest import Synthesize, context
from tests.infrastructure.templates import Resource, Template, listed, target
from tests.infrastructure.test_functions import without_hash
from tests.signing import DECLARED

DIRECT, BINARY = ("crm", "pay"), ("forge",)


@pytest.fixture(scope="module")
def declared(synthesize: Synthesize) -> Template:
    slow = {**DECLARED["pay"], "rate": 2, "burst": 3}
    return synthesize(sources={**DECLARED, "pay": slow, "forge": {**DECLARED["forge"], "binary": True}})


def route(template: Template, name: str) -> Resource:
    (found,) = [
        one for one in template.of_api("Route").values() if one["Properties"]["RouteKey"] == f"POST /events/{name}"
    ]
    return found


def integration(template: Template, name: str) -> dict[str, Any]:
    place = target(route(template, name)["Properties"]["Target"]).removeprefix("integrations/")
    found: dict[str, Any] = template.resources[place]["Properties"]
    return found


def queue(template: Template, name: str) -> str:
    (found,) = [one for one in template.of_type("SQS::Queue") if without_hash(one) == f"Queues{name}"]
    return found


# --- routes --------------------------------------------------------------------------------------
def test_without_sources_there_is_no_route_and_nothing_that_one_would_need(prod: Template) -> None:
    assert not [one for one in prod.of_api("Integration").values() if "CredentialsArn" in one["Properties"]]
    assert "RouteSettings" not in prod.stage()["Properties"]
    assert json.loads(prod.environment("ingest")[names.SOURCES]) == {}
    assert {names.INBOX_QUEUE_URL, names.SOURCES}.isdisjoint(prod.environment("accept"))
    assert "secretsmanager" not in json.dumps([prod.statements("ingest"), prod.statements("accept")])


@pytest.mark.parametrize("name", DIRECT)
def test_api_gateway_puts_an_event_into_the_inbox_by_itself(declared: Template, name: str) -> None:
    found = integration(declared, name)
    assert (found["IntegrationType"], found["IntegrationSubtype"]) == ("AWS_PROXY", "SQS-SendMessage")
    parameters = found["RequestParameters"]
    assert parameters["QueueUrl"] == {"Ref": queue(declared, "Inbox")}
    assert parameters["MessageBody"] == "$request.body"
    assert found["ResponseParameters"] == {
        "200": {"ResponseParameters": [{"Destination": "overwrite:statuscode", "Source": "202"}]}
    }


def test_what_travels_with_an_event_is_what_its_source_declares(declared: Template) -> None:
    def travelling(name: str) -> dict[str, str]:
        told = json.loads(integration(declared, name)["RequestParameters"]["MessageAttributes"])
        return {attribute: one["StringValue"] for attribute, one in told.items()}

    assert travelling("crm") == {
        "source": "crm",
        "request_id": "${context.requestId}",
        "received_ms": "${context.requestTimeEpoch}",
        "signature": "${request.header.webhook-signature}",
        "event_id": "${request.header.webhook-id}",
        "timestamp": "${request.header.webhook-timestamp}",
    }
    assert travelling("pay") == {
        "source": "pay",
        "request_id": "${context.requestId}",
        "received_ms": "${context.requestTimeEpoch}",
        "signature": "${request.header.stripe-signature}",
    }


def test_the_gateway_may_send_to_the_inbox_and_nothing_else(declared: Template) -> None:
    roles = {target(integration(declared, name)["CredentialsArn"]) for name in DIRECT}
    (role,) = roles
    (statement,) = declared.statements_of_role(role)
    assert (statement["Action"], target(statement["Resource"])) == ("sqs:SendMessage", queue(declared, "Inbox"))
    trust = declared.resources[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert [one["Principal"] for one in trust] == [{"Service": "apigateway.amazonaws.com"}]


def test_a_binary_source_goes_through_accept_which_may_send_to_the_inbox_then(declared: Template) -> None:
    found = integration(declared, "forge")
    assert target(found["IntegrationUri"]) == declared.id_of(declared.function("accept"))
    assert ("sqs:SendMessage", queue(declared, "Inbox")) in declared.permissions("accept")
    environment = declared.environment("accept")
    assert environment[names.INBOX_QUEUE_URL] == {"Ref": queue(declared, "Inbox")}
    assert set(read(environment[names.SOURCES])) == set(BINARY)
    assert set(read(declared.environment("ingest")[names.SOURCES])) == set(DECLARED)


def test_events_have_no_authorizer_with_sigv4_or_with_tokens(declared: Template, synthesize: Synthesize) -> None:
    tokens = synthesize(jwt_issuer="https://login.example.com/pool", jwt_audience=["app"], sources=DECLARED)
    for template in (declared, tokens):
        for name in DECLARED:
            properties = route(template, name)["Properties"]
            assert properties["AuthorizationType"] == "NONE"
            assert "AuthorizerId" not in properties


def test_each_route_has_a_throttle_of_its_own_and_stands_before_the_stage_that_names_it(declared: Template) -> None:
    """Else the first deployment fails."""
    stage = declared.stage()
    assert stage["Properties"]["RouteSettings"] == {
        "POST /events/crm": {"ThrottlingRateLimit": 10, "ThrottlingBurstLimit": 20},
        "POST /events/pay": {"ThrottlingRateLimit": 2, "ThrottlingBurstLimit": 3},
        "POST /events/forge": {"ThrottlingRateLimit": 10, "ThrottlingBurstLimit": 20},
    }
    assert {declared.id_of(route(declared, name)) for name in DECLARED} <= set(stage["DependsOn"])


def test_cloudformation_would_accept_the_routes_of_sources(declared: Template, tmp_path: Path) -> None:
    """As tests/infrastructure/test_rules.py asks of a stack without any."""
    from cloudformation_validate import CompositeEngine, Severity

    path = tmp_path / "template.json"
    path.write_text(json.dumps(declared.body), encoding="utf-8")
    found = CompositeEngine().validate_template(str(path)).diagnostics
    worse = [one for one in found if one.severity not in (Severity.INFO, Severity.DEBUG) and one.rule_id != "W3005"]
    assert [(one.rule_id, one.message) for one in worse] == []


def test_a_source_of_a_task_that_is_not_here_is_warned_of_at_synth(tmp_path: Path) -> None:
    from infra.synthesis import synthesize as synth

    declared = {"crm": DECLARED["crm"], "pay": {**DECLARED["pay"], "task": "book-payment"}}
    (stack,) = synth(context(sources=declared), str(tmp_path)).stacks
    warned = [str(one.entry.data) for one in stack.messages if "sources." in str(one.entry.data)]
    assert len(warned) == 1
    assert warned[0].startswith("sources.pay.task: book-payment is neither in lambdas/tasks nor in lambdas/workflows")


# --- ingest --------------------------------------------------------------------------------------
def test_ingest_reads_the_secrets_of_declared_sources_and_no_others(declared: Template) -> None:
    (permit,) = [
        one for one in declared.statements("ingest") if "secretsmanager:GetSecretValue" in listed(one["Action"])
    ]
    place = "arn:aws:secretsmanager:us-east-1:<AWS::AccountId>:secret:"
    assert {target(one) for one in listed(permit["Resource"])} == {
        f"{place}{one['secret']}-??????" for one in DECLARED.values()
    }


def test_the_inbox_is_emptied_in_batches_of_which_each_message_is_reported(prod: Template) -> None:
    (mapping,) = [
        one["Properties"]
        for one in prod.of_type("Lambda::EventSourceMapping").values()
        if target(one["Properties"]["EventSourceArn"]) == queue(prod, "Inbox")
    ]
    assert target(mapping["FunctionName"]) == prod.id_of(prod.function("ingest"))
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert (mapping["BatchSize"], mapping["ScalingConfig"]) == (10, {"MaximumConcurrency": 2})
    visibility = prod.resources[queue(prod, "Inbox")]["Properties"]["VisibilityTimeout"]
    assert visibility >= 6 * prod.function("ingest")["Properties"]["Timeout"]


# --- uploads -------------------------------------------------------------------------------------
def uploads(template: Template) -> Resource:
    return template.resources[template.environment("ingest")[names.UPLOADS_BUCKET]["Ref"]]


def test_the_bucket_tells_the_inbox_of_every_new_object_under_its_prefix(prod: Template) -> None:
    (told,) = uploads(prod)["Properties"]["NotificationConfiguration"]["QueueConfigurations"]
    assert told["Event"] == "s3:ObjectCreated:*"
    assert target(told["Queue"]) == queue(prod, "Inbox")
    assert told["Filter"]["S3Key"]["Rules"] == [{"Name": "prefix", "Value": "uploads/"}]
    assert not [one for one in prod.of_type("Lambda::Function") if "BucketNotifications" in one]


def test_s3_may_send_to_the_inbox_for_our_buckets_before_the_bucket_is_made(prod: Template) -> None:
    policies = {name: one for name, one in prod.of_type("SQS::QueuePolicy").items()
                if {"Ref": queue(prod, "Inbox")} in one["Properties"]["Queues"]}  # fmt: skip
    ((name, policy),) = policies.items()
    assert name in uploads(prod)["DependsOn"]
    (permit,) = [one for one in policy["Properties"]["PolicyDocument"]["Statement"] if one["Effect"] == "Allow"]
    assert (permit["Principal"], permit["Action"]) == ({"Service": "s3.amazonaws.com"}, "sqs:SendMessage")
    assert permit["Condition"] == {
        "StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}},
        "ArnLike": {"aws:SourceArn": "arn:aws:s3:::neverdrop-prod*"},
    }


def test_s3_may_send_although_cloudformation_shortens_the_names_of_buckets(synthesize: Synthesize) -> None:
    """It has 63 at most: what is left of the stack's name and of the logical id, and twelve characters at random."""
    template = synthesize(env="e" * 20, environments={"e" * 20: {}})
    permits = [statement["Condition"]["ArnLike"]["aws:SourceArn"]
               for policy in template.of_type("SQS::QueuePolicy").values()
               for statement in policy["Properties"]["PolicyDocument"]["Statement"]
               if statement["Principal"] == {"Service": "s3.amazonaws.com"}]  # fmt: skip
    shortened = f"arn:aws:s3:::neverdrop-{'e' * 14}-storageuploads0123abcd-abcdefghijkl"
    assert [fnmatchcase(shortened, permit) for permit in permits] == [True]


def test_s3_05_nothing_of_ours_is_written_where_the_trigger_listens(prod: Template) -> None:
    """Accept's permission is that of the forms it signs."""
    bucket = prod.environment("ingest")[names.UPLOADS_BUCKET]["Ref"]
    writers = {
        role
        for role in ("accept", "query", "control", "ingest", "dispatch", "worker", "sweep")
        for action, on in prod.permissions(role)
        if action == "s3:PutObject" and on.startswith(bucket)
    }
    assert writers == {"accept"}


def test_an_expired_upload_leaves_nothing_behind(prod: Template) -> None:
    rules = uploads(prod)["Properties"]["LifecycleConfiguration"]["Rules"]
    assert {"ExpiredObjectDeleteMarker": True, "Status": "Enabled"} in rules


def test_browsers_may_upload_from_the_origins_that_may_call_the_api(prod: Template, synthesize: Synthesize) -> None:
    assert "CorsConfiguration" not in uploads(prod)["Properties"]
    template = synthesize(cors_origins=["https://app.example.com"])
    (rule,) = uploads(template)["Properties"]["CorsConfiguration"]["CorsRules"]
    assert (rule["AllowedMethods"], rule["AllowedOrigins"]) == (["POST"], ["https://app.example.com"])
