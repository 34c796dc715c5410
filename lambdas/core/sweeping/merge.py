"""Walks a bucket's listing and the records of its objects side by side: no look-up per key, no list of either."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from lambdas.core.ports import ObjectVersion, UploadRow

ROWS_PER_KEY = 1_000  # kept at once; of a key with more, the others are looked up one by one

_key = attrgetter("key")


@dataclass(frozen=True)
class Compared:
    """A version that stands for one event. `status` of its job, None when the index has none."""

    object: ObjectVersion
    status: str | None


def compared(
    versions: Iterable[ObjectVersion], shards: Iterable[Iterable[UploadRow]], announced: Callable[[str], bool]
) -> Iterator[Compared]:
    """Each event of the bucket, in the order of the keys; both sides must be in that order (by code points, which is
    that of UTF-8 bytes). Of a key that `POST /uploads` gave out the oldest version is the event, of any other each."""
    rows = _Rows(heapq.merge(*shards, key=_key))
    for key, of_key in groupby(versions, _key):
        known = rows.of(key)
        if announced(key):
            *_, oldest = of_key
            yield Compared(oldest, next(iter(known.values()), None))
        else:
            for version in of_key:
                yield Compared(version, known.get(version.version or version.etag))


class _Rows:
    """The records, key by key, forwards only."""

    def __init__(self, rows: Iterable[UploadRow]) -> None:
        self._groups = groupby(rows, _key)
        self._next = next(self._groups, None)

    def of(self, key: str) -> dict[str, str]:
        """Status by version. Records before this key have no object any more: nobody asks for them again."""
        while self._next is not None and self._next[0] < key:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != key:
            return {}
        found = {row.version: row.status for row, _ in zip(self._next[1], range(ROWS_PER_KEY), strict=False)}
        self._next = next(self._groups, None)
        return found
