"""What a runtime writes down of its roles: every statement that is used, by whomever, and what was refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from local.aws.needs import Need
from local.aws.permissions import Permissions
from local.aws.server import Caller
from local.aws.uses import VARIABLE, NoUses, RecordedUses, uses_of
from local.runtime import Runtime
from local.stack.stack import Resource, Stack
from tests.integration.local_aws import serving
from tests.integration.local_toys import Toy, eventually
from tests.permissions.record import Permission, Record, read

HANDLER = """
    import boto3, os
    client = boto3.client("dynamodb", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    def handler(event, context):
        print("seen")
        client.put_item(TableName=os.environ["TABLE"], Item={"pk": {"S": "a"}})
        try:
            client.delete_item(TableName=os.environ["TABLE"], Key={"pk": {"S": "a"}})
        except client.exceptions.ClientError as error:
            print(error)
"""
FAILS = "def handler(event, context):\n    raise ValueError('never')\n"
POLL = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
STREAM = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")


def granting(*statements: tuple[list[str], Any]) -> dict[str, Any]:
    document = {"Statement": [{"Effect": "Allow", "Action": one, "Resource": on} for one, on in statements]}
    return {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []},
            "Policies": [{"PolicyName": "p", "PolicyDocument": document}],
        },
    }


def arn(logical_id: str, attribute: str = "Arn") -> dict[str, Any]:
    return {"Fn::GetAtt": [logical_id, attribute]}


def toys(folder: Path) -> Toy:
    """A queue and a stream with a function each; the stream's function fails into `Letters`; a schedule."""
    toy = Toy(folder)
    toy.queue("Queue")
    toy.queue("Letters")
    toy.table("Table1A2B3C4D")
    toy.function("work", HANDLER, Timeout=30, environment={"TABLE": {"Ref": "Table1A2B3C4D"}})
    toy.function("follow", FAILS)
    toy.mapping("work", "Queue")
    failure = {"OnFailure": {"Destination": arn("Letters")}}
    more = {"StartingPosition": "TRIM_HORIZON", "MaximumRetryAttempts": 0, "DestinationConfig": failure}
    toy.mapping("follow", "Table1A2B3C4D", "StreamArn", **more)
    toy.schedule("work", "rate(1 day)", {})
    logs = (["logs:CreateLogStream", "logs:PutLogEvents"], "*")
    table = (["dynamodb:PutItem", "dynamodb:Scan"], arn("Table1A2B3C4D"))
    poll = ([f"sqs:{action}" for action in POLL], arn("Queue"))
    stream = ([f"dynamodb:{action}" for action in STREAM], arn("Table1A2B3C4D", "StreamArn"))
    toy.resources["Role"] = granting(table, poll, logs)
    toy.resources["FollowRole"] = granting(stream, (["sqs:SendMessage"], arn("Letters")), logs)
    toy.resources["Follow"]["Properties"]["Role"] = arn("FollowRole")
    toy.resources["Timer"] = granting((["lambda:InvokeFunction"], arn("Work")))
    toy.resources["WorkSchedule"]["Properties"]["Target"]["RoleArn"] = arn("Timer")
    return toy


def named(toy: Toy, name: str) -> Path:
    assembly = toy.write()
    manifest = assembly / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"stackName": "toy"', f'"stackName": "{name}"'))
    return assembly


def played(toy: Toy, name: str, uses: Path) -> Record:
    """Until both functions have run, and the stream's one has been given up on."""
    with Runtime(assembly=named(toy, name), code=toy.code, write_log=lambda *_: None) as runtime:
        make: Any = boto3.client
        sqs = make(
            "sqs", endpoint_url=runtime.aws, region_name="us-east-1", aws_access_key_id="developer",
            aws_secret_access_key="x", config=Config(retries={"total_max_attempts": 1}),
        )  # fmt: skip
        sqs.send_message(QueueUrl=runtime.outputs["Queue"], MessageBody="{}")
        letters = {"QueueUrl": runtime.outputs["Letters"], "WaitTimeSeconds": 1}
        eventually(lambda: sqs.receive_message(**letters).get("Messages"))
        last = {
            Permission("work", "sqs:DeleteMessage", "{Queue}"),
            Permission("follow", "sqs:SendMessage", "{Letters}"),
        }
        eventually(lambda: not uses.exists() or last <= read(uses).used)
        runtime.sources.schedules.run("work")
        sqs.close()
        return read(uses) if uses.exists() else Record()


def test_everything_that_is_done_in_the_name_of_a_role_is_written_down_at_once(tmp_path, monkeypatch):
    uses = tmp_path / "uses"
    monkeypatch.setenv(VARIABLE, str(uses))
    record = played(toys(tmp_path), "neverdrop-toys", uses)
    put, scan = Permission("work", "dynamodb:PutItem", "{Table}"), Permission("work", "dynamodb:Scan", "{Table}")
    assert record.used == record.granted - {scan}
    assert put in record.used
    assert {one for one in record.used if one.role == "follow"} >= {
        *(Permission("follow", f"dynamodb:{action}", "{Table.StreamArn}") for action in STREAM),
        Permission("follow", "sqs:SendMessage", "{Letters}"),
        Permission("follow", "logs:PutLogEvents", "*"),
    }
    assert Permission("Timer", "lambda:InvokeFunction", "{Work}") in record.used
    assert record.refused == {Permission("work", "dynamodb:DeleteItem", "{Table}")}
    assert record.unnamed == set()


def test_a_stack_that_does_not_ship_is_not_written_down(tmp_path):
    nobody = Stack("toy", "us-east-1", "123456789012", {}, {}, {})
    assert isinstance(uses_of(nobody, {VARIABLE: str(tmp_path)}), NoUses)
    ours = Stack("neverdrop-prod", "us-east-1", "123456789012", {}, {}, {})
    assert isinstance(uses_of(ours, {VARIABLE: str(tmp_path)}), RecordedUses)
    assert isinstance(uses_of(ours, {}), NoUses)


# --- in detail -------------------------------------------------------------------------------------------------------

ROLE = "arn:aws:iam::123456789012:role/worker"


def stack(*statements: tuple[str, str]) -> Stack:
    allowed = [{"Effect": "Allow", "Action": action, "Resource": on} for action, on in statements]
    resources = [
        Resource(
            "WorkerRole1234ABCD", "AWS::IAM::Role", {"Policies": [{"PolicyDocument": {"Statement": allowed}}]},
            "worker", {"Arn": ROLE},
        ),
        Resource("BoxAAAABBBB", "AWS::S3::Bucket", {}, "box", {"Arn": "arn:aws:s3:::box"}),
        Resource("BoxesCCCCDDDD", "AWS::S3::Bucket", {}, "boxes", {"Arn": "arn:aws:s3:::boxes"}),
    ]  # fmt: skip
    return Stack("neverdrop-x", "us-east-1", "123456789012", {one.logical_id: one for one in resources}, {}, {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def exercised(folder: Path, stack: Stack, *needs: Need) -> Record:
    permissions = Permissions(stack, RecordedUses(stack, folder))
    for need in needs:
        permissions.exercise(ROLE, need.action, need.resource, need.context)
    return read(folder)


def test_the_statement_counts_and_not_the_object(folder):
    statements = ("s3:GetObject*", "arn:aws:s3:::box/in/*"), ("s3:*", "arn:aws:s3:::boxes/*")
    record = exercised(
        folder,
        stack(*statements),
        *(Need("s3:GetObject", f"arn:aws:s3:::box/in/{number}") for number in range(50)),
        Need("s3:PutObject", "arn:aws:s3:::boxes/out/1"),
    )
    assert record.used == {
        Permission("WorkerRole", "s3:GetObject*", "{Box}/in/*"),
        Permission("WorkerRole", "s3:*", "{Boxes}/*"),
    }
    (file,) = folder.iterdir()
    assert len(file.read_text().splitlines()) == 4


def test_refused_objects_are_one_line_for_each_prefix(folder):
    record = exercised(folder, stack(), *(Need("s3:GetObject", f"arn:aws:s3:::box/in/{name}") for name in "abc"))
    assert record.refused == {Permission("WorkerRole", "s3:GetObject", "{Box}/in/…")}


def test_what_settings_choose_is_left_out_of_names(folder):
    secret = "arn:aws:secretsmanager:us-east-1:123456789012:secret:acme-"
    record = exercised(
        folder,
        stack(("secretsmanager:GetSecretValue", f"{secret}??????")),
        Need("secretsmanager:GetSecretValue", f"{secret}abcdef"),
    )
    (used,) = record.used
    assert used.resource == "arn:aws:secretsmanager:us-east-1:123456789012:secret:<of the settings>"


def test_a_call_that_needs_nothing_is_a_hole_and_said_to_be_one(folder):
    ours = stack()
    with serving(Permissions(ours, RecordedUses(ours, folder))) as aws:
        aws.server.callers.register("WORKER", Caller("worker", ROLE))
        aws.client("dynamodb", "WORKER").batch_get_item(RequestItems={})
    assert read(folder).unnamed == {Permission("WorkerRole", "dynamodb:BatchGetItem", "*")}


def test_each_line_is_whole_json(folder):
    exercised(folder, stack(("sqs:SendMessage", "*")), Need("sqs:SendMessage", "arn:aws:sqs:us-east-1:1:q"))
    (file,) = folder.iterdir()
    assert [json.loads(line)["kind"] for line in file.read_text().splitlines()] == ["granted", "used"]
