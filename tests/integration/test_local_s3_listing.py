"""Listings of objects and versions: S3's order and paging, whatever happens between two pages, at a page's own cost."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.s3.models import s3_backends

from local.aws.patches.s3_listing import sorted_keys
from local.clock import VirtualClock
from tests.integration.local_aws import Aws, error_code, serving
from tests.integration.stock_moto import stock

BOX = "box"


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def s3(running: Aws) -> Any:
    running.server.reset()
    client = running.client("s3")
    client.create_bucket(Bucket=BOX)
    client.put_bucket_versioning(Bucket=BOX, VersioningConfiguration={"Status": "Enabled"})
    return client


def put(s3: Any, key: str, body: bytes = b"x") -> str:
    return str(s3.put_object(Bucket=BOX, Key=key, Body=body)["VersionId"])


def versions(page: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(one["Key"], one["VersionId"], one["IsLatest"]) for one in page.get("Versions", [])]


def walked(s3: Any, size: int, **wanted: Any) -> list[tuple[str, str]]:
    """Every version and delete marker, in pages of that size."""
    found: list[tuple[str, str]] = []
    for page in s3.get_paginator("list_object_versions").paginate(
        Bucket=BOX, PaginationConfig={"PageSize": size}, **wanted
    ):
        listed = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        assert len(listed) + len(page.get("CommonPrefixes", [])) <= size
        found += [(one["Key"], one["VersionId"]) for one in listed]
    return found


def test_versions_come_by_key_in_utf_8_order_and_the_newest_of_a_key_first(s3):
    keys = ["b", "a/ü", "a", "Z", "a/\U0001f600", "a/\uffee", "a b+c"]
    for key in keys:
        put(s3, key)
    newer = put(s3, "a")
    listed = versions(s3.list_object_versions(Bucket=BOX))
    assert [key for key, _, _ in listed] == sorted([*keys, "a"], key=str.encode)
    assert [(key, latest) for key, _, latest in listed if key == "a"] == [("a", True), ("a", False)]
    assert next(version for key, version, _ in listed if key == "a") == newer


def test_versions_tell_when_they_were_written_by_the_virtual_clock(s3):
    with VirtualClock() as clock:
        clock.advance(86_400)
        before = datetime.now(UTC) - timedelta(seconds=1)  # that is how exactly it is told
        put(s3, "a")
        written = s3.list_object_versions(Bucket=BOX)["Versions"][0]["LastModified"]
        assert before < written <= datetime.now(UTC)
    assert written - datetime.now(UTC) > timedelta(hours=23)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_pages_of_any_size_make_up_the_whole_list(s3, size):
    expected = []
    for number in range(4):
        key = f"uploads/{number}"
        ids = [put(s3, key) for _ in range(3)]
        expected += [(key, version) for version in reversed(ids)]
    put(s3, "other/1")
    assert walked(s3, size, Prefix="uploads/") == expected
    assert len(walked(s3, size)) == 13


def test_a_page_in_the_middle_of_a_key_names_its_last_key_and_version(s3):
    first, second, third = put(s3, "a"), put(s3, "a"), put(s3, "a")
    page = s3.list_object_versions(Bucket=BOX, MaxKeys=2)
    assert (page["IsTruncated"], page["NextKeyMarker"], page["NextVersionIdMarker"]) == (True, "a", second)
    assert [version for _, version, _ in versions(page)] == [third, second]
    rest = s3.list_object_versions(Bucket=BOX, KeyMarker="a", VersionIdMarker=second)
    assert versions(rest) == [("a", first, False)]
    assert rest["IsTruncated"] is False
    assert "NextKeyMarker" not in rest


def test_a_key_marker_alone_goes_on_after_that_key(s3):
    for key in ("a", "b", "b", "c"):
        put(s3, key)
    assert [key for key, _, _ in versions(s3.list_object_versions(Bucket=BOX, KeyMarker="b"))] == ["c"]
    assert [key for key, _, _ in versions(s3.list_object_versions(Bucket=BOX, KeyMarker="a0"))] == ["b", "b", "c"]


def test_a_listing_goes_on_when_its_marker_was_deleted_meanwhile(s3):
    first, second, _third = put(s3, "a"), put(s3, "a"), put(s3, "a")
    put(s3, "b")
    page = s3.list_object_versions(Bucket=BOX, MaxKeys=2)
    assert page["NextVersionIdMarker"] == second
    s3.delete_object(Bucket=BOX, Key="a", VersionId=second)
    markers = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
    rest = versions(s3.list_object_versions(Bucket=BOX, **markers))
    assert [(key, version == first) for key, version, _ in rest] == [("a", True), ("b", False)]
    with stock("S3Response.list_object_versions"):
        assert versions(s3.list_object_versions(Bucket=BOX, **markers)) == []


def test_a_version_marker_needs_a_key_marker_and_must_have_existed(s3):
    put(s3, "a")
    with pytest.raises(ClientError, match="without a key marker"):
        s3.list_object_versions(Bucket=BOX, VersionIdMarker="x")
    with pytest.raises(ClientError, match="Invalid version id") as error:
        s3.list_object_versions(Bucket=BOX, KeyMarker="a", VersionIdMarker="x")
    assert error_code(error.value) == "InvalidArgument"


def test_delete_markers_are_listed_and_make_the_object_disappear(s3):
    version = put(s3, "a")
    put(s3, "b")
    marker = s3.delete_object(Bucket=BOX, Key="a")
    assert marker["DeleteMarker"] is True
    page = s3.list_object_versions(Bucket=BOX)
    assert [(one["Key"], one["VersionId"], one["IsLatest"]) for one in page["DeleteMarkers"]] == [
        ("a", marker["VersionId"], True)
    ]
    assert versions(page)[0] == ("a", version, False)
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=BOX)["Contents"]] == ["b"]
    assert len(walked(s3, 1)) == 3
    s3.delete_object(Bucket=BOX, Key="a", VersionId=marker["VersionId"])
    assert [one["Key"] for one in s3.list_objects_v2(Bucket=BOX)["Contents"]] == ["a", "b"]


def test_a_key_that_never_was_gets_a_delete_marker_too(s3):
    assert s3.delete_object(Bucket=BOX, Key="never")["DeleteMarker"] is True
    (marker,) = s3.list_object_versions(Bucket=BOX)["DeleteMarkers"]
    assert marker["Key"] == "never"
    s3.delete_object(Bucket=BOX, Key="never", VersionId=marker["VersionId"])
    with stock("S3Backend._set_delete_marker"):
        assert "DeleteMarker" not in s3.delete_object(Bucket=BOX, Key="never")


def test_a_deleted_version_is_gone_for_good(s3):
    old, new = put(s3, "a", b"old"), put(s3, "a", b"new")
    assert len(walked(s3, 1)) == 2
    assert s3.get_object(Bucket=BOX, Key="a", VersionId=old)["Body"].read() == b"old"
    s3.delete_object(Bucket=BOX, Key="a", VersionId=old)
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=BOX, Key="a", VersionId=old)
    assert error_code(error.value) == "NoSuchVersion"
    assert s3.get_object(Bucket=BOX, Key="a")["VersionId"] == new
    s3.delete_object(Bucket=BOX, Key="a", VersionId=new)
    assert versions(s3.list_object_versions(Bucket=BOX)) == []
    put(s3, "a")
    assert len(walked(s3, 1)) == 1


def test_reading_another_etag_fails_its_condition(s3):
    etag = s3.put_object(Bucket=BOX, Key="a", Body=b"one")["ETag"]
    assert s3.get_object(Bucket=BOX, Key="a", IfMatch=etag)["Body"].read() == b"one"
    put(s3, "a", b"two")
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=BOX, Key="a", IfMatch=etag)
    assert error_code(error.value) == "PreconditionFailed"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 412


def test_no_page_holds_more_than_a_thousand(s3):
    fill(1001)
    page = s3.list_object_versions(Bucket=BOX, MaxKeys=5000)
    assert (len(page["Versions"]), page["IsTruncated"], page["MaxKeys"]) == (1000, True, 1000)
    listed = s3.list_objects_v2(Bucket=BOX, MaxKeys=5000)
    assert (listed["KeyCount"], listed["IsTruncated"]) == (1000, True)
    with stock("S3Response.list_objects_v2"):
        assert s3.list_objects_v2(Bucket=BOX, MaxKeys=5000)["KeyCount"] == 1001


def test_keys_are_grouped_by_a_delimiter(s3):
    for key in ("a/1", "a/2", "b", "c/1", "d"):
        put(s3, key)
    s3.delete_object(Bucket=BOX, Key="c/1")
    pages = list(
        s3.get_paginator("list_objects_v2").paginate(Bucket=BOX, Delimiter="/", PaginationConfig={"PageSize": 1})
    )
    assert [page.get("Contents", [{}])[0].get("Key") or page["CommonPrefixes"][0]["Prefix"] for page in pages] == [
        "a/",
        "b",
        "d",
    ]
    whole = s3.list_object_versions(Bucket=BOX, Delimiter="/")
    assert [one["Prefix"] for one in whole["CommonPrefixes"]] == ["a/", "c/"]
    assert [key for key, _, _ in versions(whole)] == ["b", "d"]
    page = s3.list_object_versions(Bucket=BOX, Delimiter="/", MaxKeys=1)
    assert (page["NextKeyMarker"], page.get("NextVersionIdMarker") or "") == ("a/", "")
    assert [key for key, _, _ in versions(s3.list_object_versions(Bucket=BOX, Delimiter="/", KeyMarker="a/"))] == [
        "b",
        "d",
    ]


def test_objects_are_listed_after_a_key_or_a_token(s3):
    for key in ("a&b", "b <c>", "d"):
        put(s3, key)
    listed = s3.list_objects_v2(Bucket=BOX, StartAfter="a&b", MaxKeys=1)
    assert [one["Key"] for one in listed["Contents"]] == ["b <c>"]
    token = listed["NextContinuationToken"]
    put(s3, "c")
    rest = s3.list_objects_v2(Bucket=BOX, ContinuationToken=token, StartAfter="zzz")
    assert [one["Key"] for one in rest["Contents"]] == ["c", "d"]
    with pytest.raises(ClientError, match="continuation token"):
        s3.list_objects_v2(Bucket=BOX, ContinuationToken="no token!")


def fill(count: int) -> None:
    """Objects, faster than over HTTP."""
    backend = s3_backends["123456789012"]["aws"]
    for number in range(count):
        backend.put_object(BOX, f"uploads/{number:06d}", b"x")


def test_keys_are_sorted_once_and_kept_in_order(s3):
    for key in "bd":
        put(s3, key)
    store = s3_backends["123456789012"]["aws"].get_bucket(BOX).keys
    order = sorted_keys(store)
    version = put(s3, "c")
    put(s3, "a")
    assert order == ["a", "b", "c", "d"]
    s3.delete_object(Bucket=BOX, Key="c", VersionId=version)
    assert sorted_keys(store) is order
    assert order == ["a", "b", "d"]


def test_the_cost_of_a_page_does_not_grow_with_the_bucket(s3, running):
    def calls() -> int:
        """Of functions, also of those in C, by the thread that answers."""
        count = itertools.count()
        threading.setprofile(lambda *_: next(count))
        try:
            with running.unchecked("s3") as fresh:  # whose connection has a thread of its own
                fresh.list_object_versions(Bucket=BOX, MaxKeys=10, KeyMarker="uploads/000500")
        finally:
            threading.setprofile(None)
        return next(count)

    fill(1_000)
    calls()
    small = calls()
    fill(10_000)
    assert 0 < calls() < small * 2
