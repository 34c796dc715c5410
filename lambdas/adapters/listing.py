"""The Listing port: a bucket's versions, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from lambdas.adapters.clients import as_unavailable
from lambdas.core.ports import ObjectVersion, VersionPage


class S3Listing:
    """One bucket. Keys come decoded: the SDK asks for them in a form in which any key can be told."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client, self._bucket = client, bucket

    def versions(self, prefix: str, after: tuple[str, str] | None, limit: int) -> VersionPage:
        key, version = after or ("", "")
        markers = {"KeyMarker": key, "VersionIdMarker": version}
        with as_unavailable("listing uploads"):
            answer = self._client.list_object_versions(
                Bucket=self._bucket,
                Prefix=prefix,
                MaxKeys=limit,
                **{name: marker for name, marker in markers.items() if marker},
            )
        found = [_version(one) for one in answer.get("Versions", [])]
        if not answer.get("IsTruncated"):
            return VersionPage(found, None)
        return VersionPage(found, (answer["NextKeyMarker"], answer.get("NextVersionIdMarker", "")))


def _version(told: Mapping[str, Any]) -> ObjectVersion:
    """`null` is what an object has for a version that was put before its bucket kept versions."""
    version = told.get("VersionId") or ""
    return ObjectVersion(
        key=told["Key"],
        version="" if version == "null" else version,
        etag=told.get("ETag", "").strip('"'),
        bytes=int(told.get("Size", 0)),
        modified=told["LastModified"].astimezone(UTC),
    )
