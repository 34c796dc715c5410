"""Versions of objects and secrets need their own permissions, on AWS and here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws import secrets
from local.aws.permissions import Permissions
from local.aws.server import Caller
from local.stack.provision import provision
from local.stack.template import parse
from tests.integration.local_aws import Aws, error_code, serving

BOX = "arn:aws:s3:::box"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret"


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.server.reset()
    running.server.gates.clear()
    s3 = running.client("s3")
    s3.create_bucket(Bucket="box")
    s3.put_bucket_versioning(Bucket="box", VersioningConfiguration={"Status": "Enabled"})
    return running


def grant(aws: Aws, *allowed: tuple[Any, str], condition: dict[str, Any] | None = None) -> None:
    """WORKER may do that and nothing else."""
    statements = [
        {"Effect": "Allow", "Action": action, "Resource": resource, "Condition": condition or {}}
        for action, resource in allowed
    ]
    document = {
        "Resources": {
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {"Policies": [{"PolicyName": "p", "PolicyDocument": {"Statement": statements}}]},
            }
        }
    }
    stack = provision(parse(document, name="test"), aws.server.url)
    aws.server.callers.register("WORKER", Caller("worker", stack.resources["Role"].attributes["Arn"]))
    aws.server.gates[:] = [Permissions(stack)]


def denied(call: Callable[[], object], action: str) -> None:
    with pytest.raises(ClientError) as error:
        call()
    assert error_code(error.value) in ("AccessDenied", "AccessDeniedException")
    assert f"not authorized to perform: {action} on" in str(error.value)


def put(aws: Aws, key: str) -> str:
    return str(aws.client("s3").put_object(Bucket="box", Key=key, Body=b"x")["VersionId"])


def test_reading_a_version_needs_more_than_reading_the_object(aws):
    which = {"Bucket": "box", "Key": "a", "VersionId": put(aws, "a")}
    s3 = aws.client("s3", "WORKER")
    grant(aws, ("s3:GetObject", f"{BOX}/*"))
    s3.get_object(Bucket="box", Key="a")
    denied(lambda: s3.get_object(**which), "s3:GetObjectVersion")
    grant(aws, ("s3:GetObjectVersion", f"{BOX}/*"))
    s3.get_object(**which)
    s3.head_object(**which)
    denied(lambda: s3.get_object(Bucket="box", Key="a"), "s3:GetObject")


def test_copying_a_version_needs_to_read_the_version(aws):
    source = {"Bucket": "box", "Key": "a b", "VersionId": put(aws, "a b")}
    s3 = aws.client("s3", "WORKER")
    grant(aws, (["s3:GetObject", "s3:PutObject"], f"{BOX}/*"))
    denied(lambda: s3.copy_object(Bucket="box", Key="c", CopySource=source), "s3:GetObjectVersion")
    grant(aws, ("s3:GetObjectVersion", f"{BOX}/a b"), ("s3:PutObject", f"{BOX}/c"))
    s3.copy_object(Bucket="box", Key="c", CopySource=source)


def test_deleting_a_version_needs_more_than_deleting_the_object(aws):
    first, second = put(aws, "a"), put(aws, "a")
    s3 = aws.client("s3", "WORKER")
    grant(aws, ("s3:DeleteObject", f"{BOX}/*"))
    denied(lambda: s3.delete_object(Bucket="box", Key="a", VersionId=first), "s3:DeleteObjectVersion")
    many = {"Objects": [{"Key": "a", "VersionId": second}]}
    denied(lambda: s3.delete_objects(Bucket="box", Delete=many), "s3:DeleteObjectVersion")
    s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": "a&b"}]})
    grant(aws, ("s3:DeleteObjectVersion", f"{BOX}/a"))
    s3.delete_object(Bucket="box", Key="a", VersionId=first)
    s3.delete_objects(Bucket="box", Delete=many)


def test_listing_versions_needs_its_own_permission_and_may_be_bound_to_a_prefix(aws):
    s3 = aws.client("s3", "WORKER")
    grant(aws, ("s3:ListBucket", BOX))
    denied(lambda: s3.list_object_versions(Bucket="box"), "s3:ListBucketVersions")
    grant(aws, ("s3:ListBucketVersions", BOX), condition={"StringEquals": {"s3:prefix": "uploads/"}})
    s3.list_object_versions(Bucket="box", Prefix="uploads/")
    denied(lambda: s3.list_object_versions(Bucket="box"), "s3:ListBucketVersions")
    denied(lambda: s3.list_objects_v2(Bucket="box", Prefix="uploads/"), "s3:ListBucket")


def read(aws: Aws, secret_id: str = "neverdrop/hooks") -> str:
    return str(aws.client("secretsmanager", "WORKER").get_secret_value(SecretId=secret_id)["SecretString"])


@pytest.mark.parametrize("suffix", ["-??????", "-*", "*"])
def test_secret_is_held_against_its_arn_with_the_random_suffix(aws, suffix):
    arn = secrets.put(aws.client("secretsmanager"), "neverdrop/hooks", "v1")
    assert arn.startswith(f"{SECRET}:neverdrop/hooks-")
    grant(aws, ("secretsmanager:GetSecretValue", f"{SECRET}:neverdrop/hooks{suffix}"))
    assert read(aws) == read(aws, arn) == read(aws, arn[:-7]) == "v1"


@pytest.mark.parametrize("resource", ["neverdrop/hooks", "neverdrop/hook-??????", "neverdrop/hooks-#?????"])
def test_secret_is_refused_where_the_policy_does_not_meet_its_whole_arn(aws, resource):
    secrets.put(aws.client("secretsmanager"), "neverdrop/hooks", "v1")
    grant(aws, ("secretsmanager:GetSecretValue", f"{SECRET}:{resource}"))
    denied(lambda: read(aws), "secretsmanager:GetSecretValue")


def test_secret_that_does_not_exist_is_missing_only_to_whom_it_is_allowed(aws):
    grant(aws, ("secretsmanager:GetSecretValue", f"{SECRET}:neverdrop/hooks-??????"))
    with pytest.raises(ClientError) as error:
        read(aws)
    assert error_code(error.value) == "ResourceNotFoundException"
    denied(lambda: read(aws, "neverdrop/others"), "secretsmanager:GetSecretValue")


def test_secret_is_overwritten_under_the_same_arn(aws):
    client = aws.client("secretsmanager")
    first = secrets.put(client, "neverdrop/hooks", "v1")
    assert secrets.put(client, "neverdrop/hooks", "v2") == first
    assert client.get_secret_value(SecretId="neverdrop/hooks")["SecretString"] == "v2"
