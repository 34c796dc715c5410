"""The UploadedObjects and UploadForms ports: S3 with versions and the fake tell the same of an object."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from lambdas.adapters.clients import client
from lambdas.adapters.s3 import S3Uploads
from lambdas.core.ports import Missing, Stored, TooLarge, Unavailable
from tests.fakes import FakeUploaded, FakeUploads
from tests.integration.cloud import Cloud

KEY = "uploads/acme/summarize/call"


class World(Protocol):
    """The port, and what others do to the bucket."""

    def put(self, key: str, body: bytes, content_type: str) -> Stored: ...

    def lose(self, stored: Stored) -> None: ...

    def read(self, key: str, version: str, etag: str, limit: int) -> tuple[str, bytes]: ...

    def first(self, key: str) -> Stored | None: ...


class Bucket(S3Uploads):
    def __init__(self, cloud: Cloud) -> None:
        super().__init__(client("s3"), cloud.uploads_bucket)
        self._s3, self._name = cloud.client("s3"), cloud.uploads_bucket

    def put(self, key: str, body: bytes = b"{}", content_type: str = "application/json") -> Stored:
        put = self._s3.put_object(Bucket=self._name, Key=key, Body=body, ContentType=content_type)
        return Stored(key, put["VersionId"], put["ETag"].strip('"'), len(body))

    def lose(self, stored: Stored) -> None:
        self._s3.delete_object(Bucket=self._name, Key=stored.key, VersionId=stored.version)

    def hide(self, key: str) -> None:
        """As a plain delete does: a mark on top of the versions."""
        self._s3.delete_object(Bucket=self._name, Key=key)


@pytest.fixture
def bucket(cloud: Cloud) -> Bucket:
    return Bucket(cloud)


@pytest.fixture(params=["s3", "fake"])
def world(request: pytest.FixtureRequest) -> Any:
    return FakeUploaded() if request.param == "fake" else request.getfixturevalue("bucket")


def test_the_very_version_is_read(world: World):
    first = world.put(KEY, b"first", "text/plain")
    second = world.put(KEY, b'{"a":1}', "application/json")
    assert world.read(KEY, first.version, first.etag, 5) == ("text/plain", b"first")
    assert world.read(KEY, second.version, second.etag, 100) == ("application/json", b'{"a":1}')


def test_a_version_that_is_gone_is_missing(world: World):
    first = world.put(KEY, b"first", "text/plain")
    world.put(KEY, b"second", "text/plain")
    world.lose(first)
    with pytest.raises(Missing):
        world.read(KEY, first.version, first.etag, 100)
    with pytest.raises(Missing):
        world.read("uploads/acme/summarize/other", first.version, first.etag, 100)


def test_an_object_above_the_limit_is_not_read(world: World):
    stored = world.put(KEY, b"12345", "text/plain")
    assert world.read(KEY, stored.version, stored.etag, 5)[1] == b"12345"
    with pytest.raises(TooLarge):
        world.read(KEY, stored.version, stored.etag, 4)


def test_the_first_version_is_the_oldest_that_there_is_of_exactly_this_key(world: World):
    assert world.first(KEY) is None
    first = world.put(KEY, b"1", "text/plain")
    second = world.put(KEY, b"22", "text/plain")
    for name in ("uploads/acme/summarize/cal", KEY + "-2", KEY + "/x"):
        world.put(name, b"333", "text/plain")
    assert world.first(KEY) == first
    world.lose(first)
    assert world.first(KEY) == second
    world.lose(second)
    assert world.first(KEY) is None


def test_a_key_with_many_versions_is_read_to_its_oldest_and_keys_behind_it_are_not(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
):
    """Whoever may put objects can put any number of them under names that begin with this one."""
    paginate, asked = bucket._client.get_paginator, list[int]()

    def in_twos(name: str) -> Any:
        pages = paginate(name)
        return SimpleNamespace(
            paginate=lambda **which: counted(pages.paginate(**which, PaginationConfig={"PageSize": 2}))
        )

    def counted(pages: Any) -> Any:
        for page in pages:
            asked.append(len(page.get("Versions", [])))
            yield page

    first, *_ = (bucket.put(KEY, b"1") for _ in range(5))
    for number in range(9):
        bucket.put(f"{KEY}-{number}")
    monkeypatch.setattr(bucket._client, "get_paginator", in_twos)
    assert bucket.first(KEY) == first
    assert asked == [2, 2, 2]
    bucket.delete(KEY, "")
    assert bucket.first(KEY) is None
    assert len(bucket._s3.list_object_versions(Bucket=bucket._name)["Versions"]) == 9


def test_a_mark_of_deletion_is_no_version_and_hides_none(bucket: Bucket):
    first = bucket.put(KEY, b"1", "text/plain")
    bucket.hide(KEY)
    assert bucket.first(KEY) == first
    assert bucket.read(KEY, first.version, first.etag, 5) == ("text/plain", b"1")


def test_without_versions_the_content_must_be_the_one_that_was_announced(cloud: Cloud):
    cloud.client("s3").put_object(Bucket=cloud.inputs_bucket, Key=KEY, Body=b"1", ContentType="text/plain")
    flat = S3Uploads(client("s3"), cloud.inputs_bucket)
    stored = flat.first(KEY)
    assert stored is not None
    assert stored.version == ""
    assert flat.read(KEY, "", stored.etag, 5) == ("text/plain", b"1")
    cloud.client("s3").put_object(Bucket=cloud.inputs_bucket, Key=KEY, Body=b"2", ContentType="text/plain")
    with pytest.raises(Missing):
        flat.read(KEY, "", stored.etag, 5)


def test_a_bucket_that_refuses_is_unavailable_not_empty(cloud: Cloud, bucket: Bucket):
    stored = bucket.put(KEY, b"1", "text/plain")
    cloud.wire.refuse("GetObject", code="SlowDown", status=503, times=5)
    with pytest.raises(Unavailable):
        bucket.read(KEY, stored.version, stored.etag, 5)
    cloud.wire.refuse("ListObjectVersions", code="AccessDenied", status=403, times=5)
    with pytest.raises(Unavailable):
        bucket.first(KEY)


def test_a_form_allows_one_key_one_type_and_a_size(cloud: Cloud, bucket: Bucket):
    url, fields = bucket.form(KEY, "text/plain", 5_000, 900)
    policy = json.loads(base64.b64decode(fields["policy"]))
    assert url.startswith("https://")
    assert cloud.uploads_bucket in url
    assert (fields["key"], fields["Content-Type"]) == (KEY, "text/plain")
    assert fields["x-amz-algorithm"] == "AWS4-HMAC-SHA256"
    for condition in ({"bucket": cloud.uploads_bucket}, {"key": KEY}, {"Content-Type": "text/plain"}):
        assert condition in policy["conditions"]
    assert ["content-length-range", 1, 5_000] in policy["conditions"]
    assert not any(one[0] == "starts-with" for one in policy["conditions"] if isinstance(one, list))


@pytest.mark.parametrize("region", ["eu-central-1", "ap-southeast-2"])
def test_a_form_leads_to_the_region_of_the_bucket(monkeypatch: pytest.MonkeyPatch, region: str):
    """The global name redirects, and a form cannot follow."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    client.cache_clear()
    try:
        url, _ = S3Uploads(client("s3", door=True), "a-bucket").form(KEY, "text/plain", 5, 900)
    finally:
        client.cache_clear()
    assert url == f"https://a-bucket.s3.{region}.amazonaws.com/"


# --- what is deleted with its job --------------------------------------------------------------------
class Versions(Protocol):
    """The Uploads port, filled with versions of keys."""

    def delete(self, key: str, version: str) -> None: ...


NEIGHBOURS = ("uploads/acme/summarize/call", "uploads/acme/summarize/call2", "uploads/acme/summarize/other")


@pytest.fixture(params=["s3", "fake"])
def filled(request: pytest.FixtureRequest) -> tuple[Versions, Any, dict[str, list[str]]]:
    """The port, what is left in it, and the versions of each key that it begins with."""
    if request.param == "fake":
        made = {key: ["v1", "v2"] for key in NEIGHBOURS}
        fake = FakeUploads(*((key, version) for key in NEIGHBOURS for version in made[key]))
        return fake, lambda: sorted(fake.versions), made
    bucket: Bucket = request.getfixturevalue("bucket")
    made = {key: [bucket.put(key).version, bucket.put(key).version] for key in NEIGHBOURS}
    bucket.hide(KEY)  # a mark of deletion is a version, too

    def left() -> list[tuple[str, str]]:
        found = bucket._s3.list_object_versions(Bucket=bucket._name)
        return sorted(
            (one["Key"], one["VersionId"]) for one in found.get("Versions", []) + found.get("DeleteMarkers", [])
        )

    return bucket, left, made


def test_one_version_goes_and_the_others_stay(filled: Any):
    port, left, made = filled
    before = left()
    port.delete(KEY, made[KEY][0])
    port.delete(KEY, made[KEY][0])
    assert left() == [one for one in before if one != (KEY, made[KEY][0])]


def test_all_versions_of_a_key_go_and_those_of_keys_that_begin_like_it_stay(filled: Any):
    port, left, made = filled
    port.delete(KEY, "")
    port.delete(KEY, "")
    assert left() == sorted((key, version) for key in NEIGHBOURS[1:] for version in made[key])


def test_an_upload_that_cannot_be_deleted_is_unavailable(cloud: Cloud, bucket: Bucket):
    stored = bucket.put(KEY)
    cloud.wire.refuse("DeleteObject", "AccessDenied", 403)
    cloud.wire.refuse("DeleteObjects", "AccessDenied", 403)
    for version in (stored.version, ""):
        with pytest.raises(Unavailable):
            bucket.delete(KEY, version)


def test_a_version_that_cannot_be_deleted_is_told_though_s3_answers_200(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
):
    bucket.put(KEY)
    refusal = {"Errors": [{"Key": KEY, "Code": "InternalError"}]}
    monkeypatch.setattr(client("s3"), "delete_objects", lambda **arguments: refusal)
    with pytest.raises(Unavailable, match="InternalError"):
        bucket.delete(KEY, "")
