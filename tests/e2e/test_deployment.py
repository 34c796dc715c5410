"""What the services themselves tell: they got what the template says; runs against a deployed stack too."""

from __future__ import annotations

import json

import pytest

from lambdas.contracts import names
from tests.e2e.target import Target, signature


@pytest.mark.parametrize(
    ("table", "attribute"),
    [("JobsTableName", names.TTL_ATTRIBUTE), ("AnswersTableName", names.ANSWER_TTL_ATTRIBUTE)],
)
def test_a_table_forgets_by_itself(target: Target, table: str, attribute: str) -> None:
    answer = target.client("dynamodb").describe_time_to_live(TableName=target.outputs[table])
    told = answer["TimeToLiveDescription"]
    assert (told["TimeToLiveStatus"], told.get("AttributeName")) == ("ENABLED", attribute)


@pytest.mark.parametrize("queue", ["Work", "Urgent", "Inbox"])
def test_a_queue_leads_to_its_own_dead_letters(target: Target, queue: str) -> None:
    def attributes(output: str) -> dict[str, str]:
        url = target.outputs[output]
        told: dict[str, str] = target.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return told

    work, letters = attributes(f"{queue}QueueUrl"), attributes(f"{queue}DlqUrl")
    policy = json.loads(work["RedrivePolicy"])
    assert policy["deadLetterTargetArn"] == letters["QueueArn"]
    assert int(policy["maxReceiveCount"]) >= 5
    assert int(letters["MessageRetentionPeriod"]) == 14 * 86_400


def test_every_version_of_an_upload_is_kept(target: Target) -> None:
    bucket = target.outputs["UploadsBucketName"]
    assert target.client("s3").get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"


@pytest.mark.parametrize("path", ["/jobs", "/admin/dead-letters"])
def test_nobody_comes_in_without_a_signature_of_this_very_request(target: Target, path: str) -> None:
    if target.is_local:
        pytest.skip("the local runtime verifies nobody")
    url = target.api + path
    signed = signature("GET", url, None, {})
    assert target.unsigned("GET", url, None, signed).status == 200
    assert target.unsigned("GET", url, None, {}).status == 403
    assert target.unsigned("GET", f"{url}?limit=7", None, signed).status == 403
