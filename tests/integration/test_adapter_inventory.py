"""The Inventory and Listing ports keep their promises, on moto and as fakes: pages that add up, in one order."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.inventory import DynamoInventory
from lambdas.adapters.listing import S3Listing
from lambdas.contracts.names import COMPLETED, FAILED
from lambdas.core import ids
from lambdas.core.ports import Inventory, JobStore, ObjectVersion, UploadRow
from tests.fakes import FakeInventory, FakeJobStore, FakeListing
from tests.integration.cloud import Cloud
from tests.integration.records import completed, failed, pending

SHARD = "uploads#2"


@pytest.fixture(params=["dynamodb", "fake"])
def both(request: pytest.FixtureRequest) -> tuple[JobStore, Inventory]:
    if request.param == "fake":
        fake = FakeJobStore()
        return fake, FakeInventory(fake)
    cloud: Cloud = request.getfixturevalue("cloud")
    dynamodb = client("dynamodb")
    return DynamoJobStore(dynamodb, cloud.jobs_table), DynamoInventory(dynamodb, cloud.jobs_table)


def uploaded(store: JobStore, key: str, version: str, shard: str = SHARD, **over: Any) -> UploadRow:
    record = {**pending(), "upload_shard": shard, "upload_key": ids.upload_order(key, version), **over}
    store.create(record)
    return UploadRow(key, version, record["pk"], record["status"])


def test_uploads_come_in_the_order_of_their_keys_page_by_page(both: tuple[JobStore, Inventory]):
    store, inventory = both
    keys = ["uploads/a/b/z", "uploads/a/b/a", "uploads/a/b/a!", "uploads/a/b/é", "uploads/a/b/a/b"]
    rows = [uploaded(store, key, version) for key in keys for version in ("v2", "v1")]
    uploaded(store, "uploads/a/b/other", "v1", shard="uploads#3")
    store.create(pending())  # no upload
    found: list[UploadRow] = []
    while page := inventory.uploads(SHARD, ids.upload_order(found[-1].key, found[-1].version) if found else "", 3):
        found += page
    assert found == sorted(rows, key=lambda row: ids.upload_order(row.key, row.version).encode())


def test_behind_a_key_come_the_next_keys_and_none_of_its_versions(both: tuple[JobStore, Inventory]):
    store, inventory = both
    for key in ("a", "a\x01", "a!", "b"):
        uploaded(store, f"uploads/{key}", "v1")
        uploaded(store, f"uploads/{key}", "v2")
    found = inventory.uploads(SHARD, ids.after_upload("uploads/a"), 100)
    assert [row.key for row in found] == [f"uploads/{key}" for key in ("a\x01", "a\x01", "a!", "a!", "b", "b")]


def test_a_row_tells_the_status_that_the_job_has_now(both: tuple[JobStore, Inventory]):
    store, inventory = both
    uploaded(store, "uploads/a", "v1", status=FAILED)
    assert [row.status for row in inventory.uploads(SHARD, "", 10)] == [FAILED]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_completed_jobs_are_found_on_pages_that_go_through_the_whole_table(
    both: tuple[JobStore, Inventory], limit: int
):
    store, inventory = both
    records = [completed() for _ in range(4)] + [failed() for _ in range(2)] + [pending()]
    for record in records:
        store.create(record)
    found, after, pages = [], "", 0
    while True:
        page, after = inventory.completed(after, limit)
        found += page
        pages += 1
        if not after:
            break
    expected = {record["pk"]: record["result_key"] for record in records if record["status"] == COMPLETED}
    assert {one.job_id: one.result_key for one in found} == expected
    assert len(found) == 4
    assert pages >= len(records) / limit


# --- a bucket's listing --------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_versions_are_listed_by_key_the_newest_first_and_marks_of_deletion_are_not(cloud: Cloud, limit: int):
    s3, placed = cloud.client("s3"), []
    for key in ("uploads/b", "uploads/a", "uploads/a b", "elsewhere", "uploads/b"):
        version = s3.put_object(Bucket=cloud.uploads_bucket, Key=key, Body=key.encode())["VersionId"]
        placed.append((key, version))
    s3.delete_object(Bucket=cloud.uploads_bucket, Key="uploads/a")
    listing = S3Listing(client("s3"), cloud.uploads_bucket)
    found: list[ObjectVersion] = []
    after: tuple[str, str] | None = None
    while True:
        page = listing.versions("uploads/", after, limit)
        found += page.versions
        after = page.next
        if after is None:
            break
    assert [(one.key, one.version) for one in found] == [placed[1], placed[2], placed[4], placed[0]]
    assert {one.bytes for one in found} == {len("uploads/a"), len("uploads/a b")}
    assert all('"' not in one.etag and one.modified.tzinfo for one in found)
    fake = FakeListing(*found)
    assert list(fake.versions("uploads/", None, 100).versions) == found
    assert list(fake.versions("uploads/", ("uploads/a b", ""), 100).versions) == found[2:]
