"""The tables and buckets: what they keep, how long, and who gets in."""

from __future__ import annotations

import pytest

from infra.settings import Settings
from lambdas.contracts import names
from tests.infrastructure.templates import Resource, Template

TABLES = {"JOBS_TABLE": "accept", "ANSWERS_TABLE": "worker"}


def table(template: Template, variable: str) -> Resource:
    """The table that a function finds under this name in its environment."""
    return template.resources[template.environment(TABLES[variable])[variable]["Ref"]]


@pytest.mark.parametrize("variable", TABLES)
def test_tables_are_on_demand_restorable_and_survive_the_stack(prod: Template, variable: str) -> None:
    """DDB-12."""
    found = table(prod, variable)
    properties = found["Properties"]
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["DeletionProtectionEnabled"] is True
    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("Retain", "Retain")


def test_the_jobs_table_streams_both_images_and_expires_by_the_attribute_that_is_written(prod: Template) -> None:
    properties = table(prod, "JOBS_TABLE")["Properties"]
    assert properties["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert properties["TimeToLiveSpecification"] == {"AttributeName": names.TTL_ATTRIBUTE, "Enabled": True}
    assert [key["AttributeName"] for key in properties["KeySchema"]] == ["pk", "sk"]


def test_the_indexes_of_the_jobs_table_carry_their_keys_and_no_more_than_is_asked_of_them(prod: Template) -> None:
    indexes = table(prod, "JOBS_TABLE")["Properties"]["GlobalSecondaryIndexes"]
    assert {index["IndexName"]: [key["AttributeName"] for key in index["KeySchema"]] for index in indexes} == {
        "due": ["due_shard", "due_at"],
        "by_tenant": ["tenant_shard", "created_at"],
        "by_upload": ["upload_shard", "upload_key"],
    }
    assert {index["IndexName"]: index["Projection"] for index in indexes} == {
        "due": {"ProjectionType": "KEYS_ONLY"},
        "by_tenant": {"ProjectionType": "KEYS_ONLY"},
        "by_upload": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["status"]},
    }


def test_answers_are_found_by_key_and_expire(prod: Template) -> None:
    properties = table(prod, "ANSWERS_TABLE")["Properties"]
    assert [key["AttributeName"] for key in properties["KeySchema"]] == [names.ANSWER_KEY]
    assert properties["TimeToLiveSpecification"]["AttributeName"] == names.ANSWER_TTL_ATTRIBUTE


def test_buckets_are_private_encrypted_and_survive_the_stack(prod: Template) -> None:
    """CDK-12."""
    buckets = prod.of_type("S3::Bucket")
    assert len(buckets) == 3
    for bucket in buckets.values():
        properties = bucket["Properties"]
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
        (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "AES256"
        assert properties["OwnershipControls"]["Rules"] == [{"ObjectOwnership": "BucketOwnerEnforced"}]
        assert bucket["DeletionPolicy"] == "Retain"


def test_only_uploads_have_versions_and_old_ones_expire_as_well(prod: Template) -> None:
    """Each version is a job of its own; everywhere else a deleted object must be gone."""
    uploads = prod.environment("control")["UPLOADS_BUCKET"]["Ref"]
    versioned = {
        name for name, one in prod.of_type("S3::Bucket").items() if "VersioningConfiguration" in one["Properties"]
    }
    assert versioned == {uploads}
    rules = prod.resources[uploads]["Properties"]["LifecycleConfiguration"]["Rules"]
    (rule,) = [one for one in rules if one.get("Prefix") == names.UPLOADS_PREFIX]
    assert rule["NoncurrentVersionExpiration"] == {"NoncurrentDays": Settings().object_days}


def test_buckets_refuse_everything_without_tls(prod: Template) -> None:
    policies = prod.of_type("S3::BucketPolicy").values()
    assert {policy["Properties"]["Bucket"]["Ref"] for policy in policies} == set(prod.of_type("S3::Bucket"))
    for policy in policies:
        refused = [s for s in policy["Properties"]["PolicyDocument"]["Statement"] if s["Effect"] == "Deny"]
        assert {"Bool": {"aws:SecureTransport": "false"}} in [s["Condition"] for s in refused]
        assert all(s["Action"] == "s3:*" and s["Principal"] == {"AWS": "*"} for s in refused)


@pytest.mark.parametrize(
    ("variable", "prefixes"),
    [
        ("INPUTS_BUCKET", {"inputs/"}),
        ("RESULTS_BUCKET", {"results/", "answers/", "sweeps/"}),
        ("UPLOADS_BUCKET", {"uploads/"}),
    ],
)
def test_objects_expire_after_every_record_that_points_to_them(
    prod: Template, variable: str, prefixes: set[str]
) -> None:
    rules = prod.resources[prod.environment("control")[variable]["Ref"]]["Properties"]["LifecycleConfiguration"]
    expiring = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules["Rules"] if "Prefix" in rule}
    kept = int(prod.environment("worker")["RECORD_DAYS"]) + int(prod.environment("accept")["DEADLINE_S"]) // 86_400
    assert set(expiring) == prefixes
    assert all(days == Settings().object_days > kept for days in expiring.values())
    assert any("AbortIncompleteMultipartUpload" in rule for rule in rules["Rules"])


def test_dev_deletes_its_data_and_empties_its_buckets(dev: Template) -> None:
    for kind in ("DynamoDB::Table", "S3::Bucket", "SQS::Queue", "Logs::LogGroup"):
        assert {one["DeletionPolicy"] for one in dev.of_type(kind).values()} == {"Delete"}, kind
    assert not any(
        one["Properties"].get("DeletionProtectionEnabled") for one in dev.of_type("DynamoDB::Table").values()
    )
    emptied = {r["Properties"]["BucketName"]["Ref"] for r in dev.resources.values() if "AutoDelete" in r["Type"]}
    assert emptied == set(dev.of_type("S3::Bucket"))


def test_prod_keeps_everything_that_holds_state_and_needs_no_custom_resource(prod: Template) -> None:
    stateful = ("DynamoDB::Table", "S3::Bucket", "SQS::Queue", "Logs::LogGroup")
    lost = {name for kind in stateful for name, one in prod.of_type(kind).items() if one["DeletionPolicy"] != "Retain"}
    worker = prod.environment("worker")
    connections = prod.environment("socket")["CONNECTIONS_TABLE"]["Ref"]  # whose clients come again
    hints = {worker[name]["Ref"] for name in ("WORK_QUEUE_URL", "URGENT_QUEUE_URL")}  # which the sweep repeats
    assert lost == {*hints, connections}
    assert not [one["Type"] for one in prod.resources.values() if one["Type"].startswith("Custom::")]


def test_nothing_has_a_physical_name(prod: Template) -> None:
    naming = {
        "TableName",
        "BucketName",
        "QueueName",
        "TopicName",
        "FunctionName",
        "RoleName",
        "LogGroupName",
        "AlarmName",
    }
    for kind in ("DynamoDB::Table", "S3::Bucket", "SQS::Queue", "SNS::Topic", "IAM::Role", "CloudWatch::Alarm"):
        for name, one in prod.of_type(kind).items():
            assert not naming & one["Properties"].keys(), name
