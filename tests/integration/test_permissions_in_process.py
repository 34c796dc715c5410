"""A handler that a test calls in its own process is held against its role, and the test's own looks are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest

from lambdas.adapters import clients
from local.aws.calls import Caller
from local.aws.needs import Need, needs
from local.aws.uses import VARIABLE
from tests.integration.cloud import REGION, Cloud
from tests.permissions.in_process import InProcess, call_of
from tests.permissions.record import Permission, Record, read

BOX = "https://box.s3.amazonaws.com"


def request(url: str, body: bytes = b"", **headers: str) -> AWSPreparedRequest:
    make: Any = AWSPreparedRequest
    return make("GET", url, headers, body, False)  # type: ignore[no-any-return]


@pytest.fixture
def recorded(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    beside = InProcess(cloud.stack)
    monkeypatch.setattr(cloud.wire, "answered", beside.sent)
    return beside


def used(tmp_path: Path) -> Record:
    record = read(tmp_path)
    return Record(used=record.used, refused=record.refused, unnamed=record.unnamed)


def test_what_a_handler_asks_for_is_its_roles_use(cloud, recorded, tmp_path):
    def handler(event: str, context: object) -> str:
        jobs = {"TableName": cloud.jobs_table, "Key": {"pk": {"S": event}, "sk": {"S": "job"}}}
        clients.client("dynamodb").get_item(**jobs)
        s3 = clients.client("s3")
        with pytest.raises(s3.exceptions.NoSuchKey):
            s3.get_object(Bucket=cloud.results_bucket, Key="results/acme/1")
        cloud.client("dynamodb").delete_item(**jobs)  # the test's own hand, in the middle of it
        return event

    assert recorded.of("query", handler)("job-1", None) == "job-1"
    assert used(tmp_path) == Record(
        used=frozenset(
            {
                Permission("query", "dynamodb:GetItem", "{StorageJobs}"),
                Permission("query", "s3:GetObject", "{StorageResults}/results/*"),
                Permission("query", "s3:ListBucket", "{StorageResults}"),
            }
        )
    )


def test_a_function_that_it_starts_past_the_wire_counts_too(cloud, recorded, tmp_path):
    name = cloud.environment("admin")["REDRIVE_FUNCTION"]
    recorded.of("admin", lambda: recorded.started(name))()
    recorded.of("redrive", lambda: recorded.started("as-the-test-calls-it"))()
    recorded.started(name)
    expected = {Permission(role, "lambda:InvokeFunction", "{AdminRedriveFunction}") for role in ("admin", "redrive")}
    assert used(tmp_path) == Record(used=frozenset(expected))


def test_what_its_role_does_not_allow_is_a_refusal(cloud, recorded, tmp_path):
    def handler() -> None:
        clients.client("dynamodb").put_item(TableName=cloud.jobs_table, Item={"pk": {"S": "a"}, "sk": {"S": "job"}})

    recorded.of("query", handler)()
    assert used(tmp_path) == Record(refused=frozenset({Permission("query", "dynamodb:PutItem", "{StorageJobs}")}))


def test_with_other_settings_it_would_have_had_another_role(cloud, recorded, tmp_path):
    def handler() -> None:
        clients.client("dynamodb").put_item(TableName=cloud.jobs_table, Item={"pk": {"S": "a"}, "sk": {"S": "job"}})
        clients.client("dynamodb").batch_get_item(
            RequestItems={cloud.jobs_table: {"Keys": [{"pk": {"S": "a"}, "sk": {"S": "job"}}]}}
        )

    recorded.of("query", handler, as_deployed=False)()
    assert used(tmp_path) == Record(used=frozenset({Permission("query", "dynamodb:BatchGetItem", "{StorageJobs}")}))


def test_between_handlers_nothing_is_anybodys_use(cloud, recorded, tmp_path):
    recorded.of("query", lambda: None)()
    make: Any = boto3.client
    make("sqs", region_name=REGION).get_queue_attributes(QueueUrl=cloud.work_url)
    assert used(tmp_path) == Record()


@pytest.mark.parametrize(
    ("operation", "url", "needed"),
    [
        ("GetObject", f"{BOX}/in/a%20b", Need("s3:GetObject", "arn:aws:s3:::box/in/a b")),
        ("GetObject", "https://s3.amazonaws.com/box/in/1", Need("s3:GetObject", "arn:aws:s3:::box/in/1")),
        ("GetObject", f"{BOX}/in/1?versionId=2", Need("s3:GetObjectVersion", "arn:aws:s3:::box/in/1")),
        (
            "ListObjectVersions",
            f"{BOX}/?versions&prefix=in/",
            Need("s3:ListBucketVersions", "arn:aws:s3:::box", {"s3:prefix": "in/"}),
        ),
    ],
)
def test_buckets_are_known_by_host_or_by_path(operation, url, needed):
    assert needs(call_of("s3", operation, request(url), Caller("worker", "arn"))) == [needed]
