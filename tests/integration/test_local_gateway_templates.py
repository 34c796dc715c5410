"""What a template may not say of an HTTP API that leads into queues: refused at the start, and named."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from local.runtime import Runtime
from local.stack.errors import TemplateError
from tests.integration.local_inbox import PARAMETERS, toy_at
from tests.integration.local_toys import Toy


def start(toy: Toy) -> None:
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None):
        pass


def with_parameter(name: str, value: Any) -> dict[str, Any]:
    return {"RequestParameters": {**PARAMETERS, name: value}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"IntegrationSubtype": "SQS-ReceiveMessage"}, "SQS-ReceiveMessage"),
        ({"PayloadFormatVersion": "2.0"}, "1.0"),
        ({"TlsConfig": {}}, "TlsConfig"),
        ({"CredentialsArn": None}, "CredentialsArn"),
        (with_parameter("MessageBody", "$request.body.MessageBody"), "100 KB"),
        (with_parameter("MessageBody", "${request.body}"), "within a text"),
        (with_parameter("MessageBody", "$request.cookie.a"), "request.cookie.a"),
        (with_parameter("MessageGroupId", "costs $5"), "outside of an expression"),
        (with_parameter("MessageGroupId", "${context.authorizer.claims.sub}"), "context.authorizer"),
        (with_parameter("MessageAttributes", "$request.header.attributes"), "one expression"),
        (with_parameter("MessageAttributes", '{"a": "b"}'), "must be JSON"),
        (with_parameter("MessageAttributes", '{"a": {"DataType": "String"}}'), "must be JSON"),
        (with_parameter("MessageAttributes", '{"a": ${request.header.a}'), "must be JSON"),
        (with_parameter("DelaySeconds", "5"), "DelaySeconds"),
        (with_parameter("Region", "eu-west-1"), "region"),
        (with_parameter("QueueUrl", "https://sqs.us-east-1.amazonaws.com/1/x"), "no queue of this stack"),
        ({"RequestParameters": {"QueueUrl": {"Ref": "Inbox"}}}, "MessageBody"),
        ({"ResponseParameters": {"200": {"ResponseParameters": [{"Destination": "overwrite:body"}]}}}, "body"),
    ],
)
def test_what_is_not_played_is_a_template_error_that_names_the_route(tmp_path, changes, said):
    with pytest.raises(TemplateError, match="POST /events/stripe") as error:
        start(toy_at(tmp_path, **changes))
    assert said in str(error.value)


@pytest.mark.parametrize(
    "statements",
    [
        [],
        [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "lambda.amazonaws.com"}}],
        [
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"Service": "apigateway.amazonaws.com"},
                "Condition": {"StringEquals": {"aws:SourceAccount": "999999999999"}},
            }
        ],
    ],
)
def test_role_that_api_gateway_may_not_assume_is_a_template_error(tmp_path, statements):
    toy = toy_at(tmp_path)
    trust = deepcopy(toy.resources["Sender"]["Properties"]["AssumeRolePolicyDocument"])
    toy.resources["Sender"]["Properties"]["AssumeRolePolicyDocument"] = {**trust, "Statement": statements}
    with pytest.raises(TemplateError, match="may not assume"):
        start(toy)


def test_settings_of_a_route_that_is_not_there_are_a_template_error(tmp_path):
    toy = toy_at(tmp_path)
    toy.resources["Stage"]["Properties"]["RouteSettings"] = {"POST /gone": {"ThrottlingRateLimit": 1}}
    with pytest.raises(TemplateError, match="POST /gone"):
        start(toy)
