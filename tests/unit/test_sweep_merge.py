"""A bucket's listing and the index of its jobs, side by side: what is in both, and what the records lack."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.ports import ObjectVersion, UploadRow
from lambdas.core.sweeping import merge
from lambdas.core.sweeping.merge import compared
from tests.builders import later

KEYS = st.text(st.sampled_from("ab/\x01~\x7fé\ud7ff\U0001f600"), min_size=1, max_size=4)
VERSIONS = st.sampled_from(["v1", "v2", "v3"])
PAIRS = st.sets(st.tuples(KEYS, VERSIONS), max_size=30)


def listing(pairs: set[tuple[str, str]]) -> list[ObjectVersion]:
    """As S3 lists them: by the bytes of the key, of one key the newest (here the highest) first."""
    newest_first = sorted(pairs, key=lambda pair: pair[1], reverse=True)
    ordered = sorted(newest_first, key=lambda pair: pair[0].encode("utf-8", "surrogatepass"))
    return [ObjectVersion(key, version, "", 1, later()) for key, version in ordered]


def shards(pairs: set[tuple[str, str]], number: int = 3) -> list[list[UploadRow]]:
    """As DynamoDB sorts them: by the bytes of key, zero, version."""
    ordered = sorted(pairs, key=lambda pair: f"{pair[0]}\0{pair[1]}".encode("utf-8", "surrogatepass"))
    rows = [UploadRow(key, version, f"job of {key} {version}", "COMPLETED") for key, version in ordered]
    return [[row for at, row in enumerate(rows) if at % number == shard] for shard in range(number)]


def is_announced(key: str) -> bool:
    return key.startswith("a")


@given(PAIRS, PAIRS)
def test_each_version_is_compared_with_its_own_record(
    stored: set[tuple[str, str]], known: set[tuple[str, str]]
) -> None:
    found = [(one.object, one.status) for one in compared(listing(stored), shards(known), _never)]
    assert found == [(one, "COMPLETED" if (one.key, one.version) in known else None) for one in listing(stored)]


@given(PAIRS, PAIRS)
def test_of_a_key_that_was_given_out_the_oldest_version_is_the_event_and_any_record_is_its_own(
    stored: set[tuple[str, str]], known: set[tuple[str, str]]
) -> None:
    found = [one for one in compared(listing(stored), shards(known), is_announced) if is_announced(one.object.key)]
    oldest = {key: min(pair[1] for pair in group) for key, group in groupby(sorted(stored), lambda pair: pair[0])}
    assert [(one.object.key, one.object.version) for one in found] == [
        (key, oldest[key]) for key in dict.fromkeys(one.key for one in listing(stored)) if is_announced(key)
    ]
    assert [one.status is not None for one in found] == [
        any(key == one.object.key for key, _ in known) for one in found
    ]


def test_a_record_whose_object_is_gone_is_passed_over() -> None:
    found = compared(listing({("b", "v1")}), shards({("a", "v1"), ("b", "v1"), ("c", "v1")}), _never)
    assert [(one.object.key, one.status) for one in found] == [("b", "COMPLETED")]


def test_an_object_without_a_version_is_known_by_its_content() -> None:
    version = ObjectVersion("a", "", "etag", 1, later())
    (found,) = compared([version], [[UploadRow("a", "etag", "job", "PENDING")]], _never)
    assert found.status == "PENDING"


def test_of_a_key_with_very_many_versions_only_so_many_records_are_kept_and_the_others_are_looked_up(
    monkeypatch,
) -> None:
    monkeypatch.setattr(merge, "ROWS_PER_KEY", 2)
    pairs = {("a", f"v{n}") for n in range(5)} | {("b", "v0")}
    found = [(one.object.key, one.status is not None) for one in compared(listing(pairs), shards(pairs), _never)]
    assert sorted(found) == [("a", False), ("a", False), ("a", False), ("a", True), ("a", True), ("b", True)]


def test_both_sides_are_read_no_further_than_needed() -> None:
    read: list[str] = []

    def telling(name: str, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            read.append(f"{name} {item.key}")
            yield item

    pairs = {(f"{n}", "v1") for n in range(6)}
    walk = compared(telling("object", listing(pairs)), [telling("row", shards(pairs, 1)[0])], _never)
    next(walk)
    assert len(read) <= 6


def _never(_key: str) -> bool:
    return False
