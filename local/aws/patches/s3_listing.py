"""The pages of a bucket's listing: each costs what it holds, not what the bucket holds.

Stock moto sorts all keys for each page, copies every version of every object for a page of versions, and goes on
after a marker that was deleted meanwhile with nothing. Keys are in the order of their code points, which is that of
their UTF-8 bytes.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from moto.s3.exceptions import InvalidContinuationToken, S3ClientError
from moto.s3.models import FakeBucket, FakeDeleteMarker, FakeKey
from moto.s3.utils import _VersionedKeyStore

from local.aws.patches.patch import Patch

MOST = 1000
_ENDS_KEPT = 1000
_LAST = "\U0010ffff"
_stock_setitem: Any = vars(_VersionedKeyStore)["__setitem__"]
_stock_pop: Any = vars(_VersionedKeyStore)["pop"]

Version = FakeKey | FakeDeleteMarker
Item = TypeVar("Item")


@dataclass
class Page(Generic[Item]):
    """What one answer lists, in order, and where the next one goes on."""

    items: list[Item] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    """Common prefixes: each stands for all keys that share it, and counts as one."""
    truncated: bool = False
    last_key: str = ""
    last_version: str = ""

    def is_full(self, most: int) -> bool:
        """Whether there is room for no more; what comes now makes it truncated."""
        full = len(self.items) + len(self.prefixes) >= min(most, MOST)
        self.truncated = self.truncated or (full and bool(self.last_key))
        return full


# --- keys in order -------------------------------------------------------------------------------------------


def sorted_keys(store: _VersionedKeyStore) -> list[str]:
    """The store's keys in order: sorted once, kept up to date from then on."""
    keys: list[str] | None = getattr(store, "in_order", None)
    if keys is None:
        keys = sorted(dict.keys(store))
        vars(store)["in_order"] = keys
    return keys


def _note(store: _VersionedKeyStore, key: str) -> None:
    if key not in store and hasattr(store, "in_order"):
        insort(store.in_order, key)


def _setitem(store: _VersionedKeyStore, key: str, version: Version) -> None:
    _note(store, key)
    _stock_setitem(store, key, version)


def _setlist(store: _VersionedKeyStore, key: str, versions: Any) -> None:
    """Stock compares each version with all others to find those that go."""
    kept = list(versions) if isinstance(versions, list | tuple) else [versions]
    staying = {id(version) for version in kept}
    for version in store.getlist(key, []):
        if id(version) not in staying and hasattr(version, "dispose"):
            version.dispose()
    _note(store, key)
    dict.__setitem__(store, key, kept)


def _pop(store: _VersionedKeyStore, key: str) -> None:
    _stock_pop(store, key)
    if hasattr(store, "in_order"):
        del store.in_order[bisect_left(store.in_order, key)]


@dataclass(frozen=True)
class _Entry:
    """A key, or a common prefix of several."""

    name: str
    keys: list[str]
    is_prefix: bool


def _entries(keys: list[str], after: str | None, prefix: str, delimiter: str | None) -> Iterator[_Entry]:
    """What a listing counts, in order, from the first that is greater than `after`."""
    at = max(bisect_left(keys, prefix), 0 if after is None else bisect_right(keys, after))
    while at < len(keys) and keys[at].startswith(prefix):
        cut = keys[at].find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0 or delimiter is None:
            yield _Entry(keys[at], [keys[at]], is_prefix=False)
            at += 1
            continue
        common = keys[at][: cut + len(delimiter)]
        end = bisect_right(keys, common + _LAST, at)
        if after is None or common > after:
            yield _Entry(common, keys[at:end], is_prefix=True)
        at = end


# --- objects -------------------------------------------------------------------------------------------------


def objects_page(
    bucket: FakeBucket, *, prefix: str, delimiter: str | None, token: str | None, start_after: str | None, most: int
) -> Page[FakeKey]:
    """The current objects after a continuation token (`token_of`), or after a key."""
    page = Page[FakeKey]()
    after = _position(token) if token else start_after
    for entry in _entries(sorted_keys(bucket.keys), after, prefix, delimiter):
        if not any(isinstance(bucket.keys[key], FakeKey) for key in entry.keys):
            continue  # deleted: only versions are left
        if page.is_full(most):
            break
        if entry.is_prefix:
            page.prefixes.append(entry.name)
        else:
            page.items.append(bucket.keys[entry.name])
        page.last_key = entry.name
    return page


def token_of(page: Page[Any]) -> str:
    """What the next request continues with."""
    return base64.urlsafe_b64encode(page.last_key.encode("utf-8", "surrogatepass")).decode()


def _position(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), b"-_", validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeError) as error:
        raise InvalidContinuationToken from error


# --- versions ------------------------------------------------------------------------------------------------


def versions_page(
    bucket: FakeBucket, *, prefix: str, delimiter: str | None, key_marker: str, version_marker: str, most: int
) -> Page[tuple[Version, bool]]:
    """Versions and delete markers after the markers, the newest of a key first, each with whether it is current."""
    if version_marker and not key_marker:
        raise S3ClientError("InvalidArgument", "A version-id marker cannot be specified without a key marker.")
    page = Page[tuple[Version, bool]]()
    for name, version, current in _versions(bucket, prefix, delimiter, key_marker, version_marker):
        if page.is_full(most):
            break
        if version is None:
            page.prefixes.append(name)
        else:
            page.items.append((version, current))
        page.last_key, page.last_version = name, "" if version is None else version.version_id
    if page.truncated and page.last_version:
        _remember(bucket, page.items[-1][0])
    return page


def _versions(
    bucket: FakeBucket, prefix: str, delimiter: str | None, key_marker: str, version_marker: str
) -> Iterator[tuple[str, Version | None, bool]]:
    if version_marker and key_marker in bucket.keys:
        for version, current in _older(bucket, key_marker, version_marker):
            yield key_marker, version, current
    for entry in _entries(sorted_keys(bucket.keys), key_marker or None, prefix, delimiter):
        if entry.is_prefix:
            yield entry.name, None, False
            continue
        for version, current in _newest_first(bucket, entry.name):
            yield entry.name, version, current


def _newest_first(bucket: FakeBucket, key: str) -> list[tuple[Version, bool]]:
    versions: list[Version] = bucket.keys.getlist(key)[::-1]
    return [(version, number == 0) for number, version in enumerate(versions)]


def _older(bucket: FakeBucket, key: str, version_id: str) -> list[tuple[Version, bool]]:
    """The versions after the marker, also when the marker itself was deleted since its page was served."""
    versions = _newest_first(bucket, key)
    for number, (version, _) in enumerate(versions):
        if version.version_id == version_id:
            return versions[number + 1 :]
    written_at = _ends(bucket).get(version_id)
    if written_at is None:
        raise S3ClientError("InvalidArgument", "Invalid version id specified")
    return [one for one in versions if one[0].last_modified < written_at]


def _remember(bucket: FakeBucket, last: Version) -> None:
    ends = _ends(bucket)
    ends[last.version_id] = last.last_modified
    if len(ends) > _ENDS_KEPT:
        ends.popitem(last=False)


def _ends(bucket: FakeBucket) -> OrderedDict[str, datetime]:
    """When the last versions of recent pages were written, by their ids."""
    ends: OrderedDict[str, datetime] = vars(bucket).setdefault("page_ends", OrderedDict())
    return ends


PATCHES = (
    Patch(_VersionedKeyStore, "__setitem__", _setitem),
    Patch(_VersionedKeyStore, "setlist", _setlist),
    Patch(_VersionedKeyStore, "pop", _pop),
)
