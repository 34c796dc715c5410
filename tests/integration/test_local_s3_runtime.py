"""Uploads from end to end in the runtime: a function signs, a client uploads, S3 tells, a function hears; controls."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from local.runtime import Runtime
from tests.integration.local_toys import Reply, Toy, eventually, request
from tests.integration.test_local_s3_uploads import post

SIGN = """
import boto3, os
from botocore.config import Config

s3 = boto3.client("s3", config=Config(signature_version="v4"))

def handler(event, context):
    return s3.generate_presigned_post(os.environ["BUCKET"], event["key"], Conditions=[["content-length-range", 1, 9]])
"""
HEAR = """
import json

def handler(event, context):
    bodies = [json.loads(record["body"]) for record in event["Records"]]
    return [record["s3"]["object"]["key"] for body in bodies for record in body.get("Records", [])]
"""
TELL = """
import boto3

def handler(event, context):
    return boto3.client("secretsmanager").get_secret_value(SecretId=event["name"])["SecretString"]
"""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    toy = Toy(tmp_path_factory.mktemp("uploads"))
    toy.queue("Inbox")
    toy.resources["Policy"] = {
        "Type": "AWS::SQS::QueuePolicy",
        "Properties": {
            "Queues": [{"Ref": "Inbox"}],
            "PolicyDocument": {
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"Service": "s3.amazonaws.com"},
                        "Action": "sqs:SendMessage",
                        "Resource": {"Fn::GetAtt": ["Inbox", "Arn"]},
                        "Condition": {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}},
                    }
                ]
            },
        },
    }
    toy.resources["Uploads"] = {
        "Type": "AWS::S3::Bucket",
        "DependsOn": "Policy",
        "Properties": {
            "NotificationConfiguration": {
                "QueueConfigurations": [
                    {
                        "Event": "s3:ObjectCreated:*",
                        "Queue": {"Fn::GetAtt": ["Inbox", "Arn"]},
                        "Filter": {"S3Key": {"Rules": [{"Name": "prefix", "Value": "uploads/"}]}},
                    }
                ]
            }
        },
    }
    policy = toy.resources["Role"]["Properties"]["Policies"][0]["PolicyDocument"]
    policy["Statement"].append(
        {
            "Effect": "Allow",
            "Action": "secretsmanager:GetSecretValue",
            "Resource": {"Fn::Sub": "arn:aws:secretsmanager:*:${AWS::AccountId}:secret:hooks-??????"},
        }
    )
    toy.function("sign", SIGN, environment={"BUCKET": {"Ref": "Uploads"}})
    toy.function("hear", HEAR)
    toy.function("tell", TELL)
    toy.mapping("hear", "Inbox", BatchSize=1)
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        yield runtime


@pytest.fixture(autouse=True)
def _quiet(runtime: Runtime) -> Iterator[None]:
    runtime.notifications.clear()
    with runtime.functions.at_rest(60):
        runtime.functions.history.clear()
    yield
    runtime.notifications.clear()


def control(runtime: Runtime, method: str, name: str, body: object = None) -> Reply:
    data = None if body is None else json.dumps(body).encode()
    return request(method, f"{runtime.api}/_local/{name}", data)


def upload(runtime: Runtime, key: str) -> None:
    given = runtime.functions.invoke("sign", {"key": key}).result
    assert given["url"].startswith(f"{runtime.aws}/")
    assert post(given["url"], given["fields"]).status == 204


def heard(runtime: Runtime) -> list[str]:
    return [key for one in list(runtime.functions.history) if one.function == "hear" for key in one.result or []]


def test_what_a_function_signed_is_uploaded_and_heard_of(runtime):
    upload(runtime, "uploads/a")
    assert eventually(lambda: heard(runtime)) == ["uploads/a"]


def test_released_notifications_wake_the_mapping(runtime):
    answer = control(runtime, "POST", "notifications", {"reorder": 2, "match": "uploads/"})
    assert answer.json["pending"] == [{"kind": "reorder", "left": 2, "match": "uploads/"}]
    upload(runtime, "uploads/a")
    upload(runtime, "uploads/b")
    held = control(runtime, "GET", "notifications").json["held"]
    assert [(one["key"], one["event"], one["kind"]) for one in held] == [
        ("uploads/a", "ObjectCreated:Post", "reorder"),
        ("uploads/b", "ObjectCreated:Post", "reorder"),
    ]
    assert control(runtime, "POST", "notifications", {"release": True}).json["released"] == 2
    assert sorted(eventually(lambda: heard(runtime) if len(heard(runtime)) == 2 else [])) == ["uploads/a", "uploads/b"]


def test_lost_notifications_are_lost(runtime):
    control(runtime, "POST", "notifications", {"drop": 1})
    upload(runtime, "uploads/lost")
    upload(runtime, "uploads/found")
    assert eventually(lambda: heard(runtime)) == ["uploads/found"]
    assert control(runtime, "GET", "notifications").json["dropped"][0]["key"] == "uploads/lost"
    assert control(runtime, "DELETE", "notifications").json == {}
    assert control(runtime, "GET", "notifications").json["dropped"] == []


@pytest.mark.parametrize(
    "body", [{}, {"drop": 0}, {"drop": True}, {"lose": 1}, {"drop": 1, "match": 3}, {"release": False}, {"match": "a"}]
)
def test_control_says_what_would_have_been_right(runtime, body):
    answer = control(runtime, "POST", "notifications", body)
    assert answer.status == 400
    assert "drop" in answer.json["message"]
    assert control(runtime, "GET", "notifications").json["pending"] == []


def test_secret_outside_the_stack_is_put_and_read_by_a_function(runtime):
    answer = control(runtime, "POST", "secrets", {"name": "hooks", "value": "s3cret"})
    assert answer.json["arn"].startswith("arn:aws:secretsmanager:us-east-1:123456789012:secret:hooks-")
    assert runtime.functions.invoke("tell", {"name": "hooks"}).result == "s3cret"
    assert runtime.put_secret("hooks", "another") == answer.json["arn"]
    assert runtime.functions.invoke("tell", {"name": "hooks"}).result == "another"
    control(runtime, "POST", "secrets", {"name": "private", "value": "x"})
    refused = runtime.functions.invoke("tell", {"name": "private"})
    assert not refused.ok


@pytest.mark.parametrize("body", [{}, {"name": "a"}, {"name": "a", "value": 1}, {"name": "", "value": "x"}])
def test_secret_needs_a_name_and_a_value(runtime, body):
    assert control(runtime, "POST", "secrets", body).status == 400
