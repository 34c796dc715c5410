"""The Inputs and Results ports: S3 and the fake keep objects, and tell a missing one from one that cannot be had."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.adapters.clients import client
from lambdas.adapters.s3 import S3Objects
from lambdas.core.ports import Missing, Unavailable
from tests.fakes import FakeObjects
from tests.integration.cloud import Cloud


@pytest.fixture(params=["s3", "fake"])
def objects(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeObjects()
    cloud: Cloud = request.getfixturevalue("cloud")
    return S3Objects(client("s3"), cloud.results_bucket)


@pytest.fixture
def bucket(cloud: Cloud) -> S3Objects:
    return S3Objects(client("s3"), cloud.results_bucket)


@pytest.mark.parametrize("body", [b"", b'{"a":1}', bytes(range(256)), b"x" * 2_000_000])
def test_an_object_comes_back_to_the_byte(objects: Any, body: bytes):
    objects.put("results/acme/1/1", body)
    assert objects.get("results/acme/1/1") == body


def test_a_later_put_replaces_the_object(objects: Any):
    objects.put("answers/acme/k", b"old")
    objects.put("answers/acme/k", b"new")
    assert objects.get("answers/acme/k") == b"new"


def test_a_key_that_is_not_there_is_missing(objects: Any):
    with pytest.raises(Missing):
        objects.get("results/acme/none/1")


def test_a_deleted_object_is_missing_and_deleting_it_again_does_nothing(objects: Any):
    objects.put("answers/acme/k", b"old")
    objects.delete("answers/acme/k")
    objects.delete("answers/acme/k")
    with pytest.raises(Missing):
        objects.get("answers/acme/k")


def test_many_objects_go_at_once_and_those_that_are_not_there_are_no_trouble(objects: Any):
    keys = [f"results/acme/j/{number}" for number in range(1, 4)]
    for key in [*keys, "results/acme/j/10", "results/acme/other/1"]:
        objects.put(key, b"{}")
    objects.delete_many([*keys, "results/acme/none/1"])
    objects.delete_many(keys)
    for key in keys:
        with pytest.raises(Missing):
            objects.get(key)
    assert (objects.get("results/acme/j/10"), objects.get("results/acme/other/1")) == (b"{}", b"{}")


def test_a_thousand_objects_are_one_request(cloud: Cloud, bucket: S3Objects):
    bucket.delete_many([f"results/acme/j/{number}" for number in range(1_000)])
    assert [one.operation for one in cloud.wire.sent] == ["DeleteObjects"]


def test_a_folder_goes_with_all_that_is_in_it_and_nothing_beside_it(
    cloud: Cloud, bucket: S3Objects, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("lambdas.adapters.s3.LISTED_AT_ONCE", 2)
    own = ["1", "run-0", "parts/entities/aa", "parts/summary/bb", "parts/summary/cc"]
    beside = ["results/acme/j", "results/acme/j0/1", "results/acme2/j/1", "answers/acme/j/1"]
    for key in [*(f"results/acme/j/{name}" for name in own), *beside]:
        bucket.put(key, b"{}")
    cloud.wire.clear()
    for _ in range(2):  # a repeat finds nothing
        bucket.delete_folder("results/acme/j/")
    operations = [one.operation for one in cloud.wire.sent if one.operation in ("ListObjectsV2", "DeleteObjects")]
    assert operations == ["ListObjectsV2", "DeleteObjects"] * 3 + ["ListObjectsV2"]
    assert sorted(cloud.objects(cloud.results_bucket)) == sorted(beside)


def test_a_folder_of_which_something_stays_is_told_and_a_repeat_goes_on(cloud: Cloud, bucket: S3Objects):
    bucket.put("results/acme/j/1", b"{}")
    for operation in ("DeleteObjects", "ListObjectsV2"):
        cloud.wire.refuse(operation, "AccessDenied", 403)
        with pytest.raises(Unavailable):
            bucket.delete_folder("results/acme/j/")
        cloud.wire.mend()
    bucket.delete_folder("results/acme/j/")
    assert cloud.objects(cloud.results_bucket) == {}


@pytest.mark.parametrize("prefix", ["", "results/acme/j", "results"])
def test_what_is_no_folder_is_not_deleted(bucket: S3Objects, prefix: str):
    bucket.put("results/acme/j/1", b"{}")
    with pytest.raises(ValueError, match="more than one folder"):
        bucket.delete_folder(prefix)
    assert bucket.exists("results/acme/j/1")


def test_one_object_that_cannot_be_deleted_is_told_though_s3_answers_200(bucket: S3Objects):
    class Answers:
        def delete_objects(self, **_: Any) -> Any:
            return {"Errors": [{"Key": "k", "Code": "InternalError"}]}

    with pytest.raises(Unavailable, match="InternalError"):
        S3Objects(Answers(), "b").delete_many(["k"])


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("DeleteObjects", lambda bucket: bucket.delete_many(["k"])),
        ("GetObject", lambda bucket: bucket.get("k")),
        ("PutObject", lambda bucket: bucket.put("k", b"")),
        ("DeleteObject", lambda bucket: bucket.delete("k")),
    ],
)
def test_a_refusal_is_unavailable_and_never_missing(cloud: Cloud, bucket: S3Objects, operation: str, call: Any):
    """Without s3:ListBucket a missing key is AccessDenied too: taken for missing, a paid answer would be paid again."""
    cloud.wire.refuse(operation, "AccessDenied", 403)
    with pytest.raises(Unavailable) as error:
        call(bucket)
    assert error.value.unknown is False


@pytest.mark.parametrize("operation", ["GetObject", "PutObject"])
def test_a_cut_connection_is_unavailable_and_unknown(cloud: Cloud, bucket: S3Objects, operation: str):
    cloud.wire.cut(operation, times=3)
    with pytest.raises(Unavailable) as error:
        bucket.get("k") if operation == "GetObject" else bucket.put("k", b"")
    assert error.value.unknown is True


def test_a_bucket_that_is_not_there_is_unavailable_and_never_missing(cloud: Cloud):
    with pytest.raises(Unavailable):
        S3Objects(client("s3"), "no-such-bucket-of-ours").get("k")


def test_an_object_is_stored_as_json(cloud: Cloud, bucket: S3Objects):
    bucket.put("results/acme/1/1", b"{}")
    head = client("s3").head_object(Bucket=cloud.results_bucket, Key="results/acme/1/1")
    assert head["ContentType"] == "application/json"


def test_a_link_names_the_object_its_time_and_a_signature(cloud: Cloud, bucket: S3Objects):
    link = bucket.link("results/acme/1/1", 300)
    assert f"{cloud.results_bucket}" in link
    assert "results/acme/1/1" in link
    assert "X-Amz-Expires=300" in link or "Expires=" in link
    assert "Signature=" in link


def test_a_link_is_signed_as_every_region_and_key_takes_it(bucket: S3Objects):
    """Signature version 2 is refused by newer regions and by KMS-encrypted buckets."""
    assert "X-Amz-Algorithm=AWS4-HMAC-SHA256" in bucket.link("results/acme/1/1", 300)
