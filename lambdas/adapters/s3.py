"""Inputs and results in S3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.core.ports import Missing, Stored, TooLarge, Unavailable

JSON = "application/json"
LISTED_AT_ONCE = 1_000  # as many as one request deletes


class S3Objects:
    """The Inputs, Results and Folders ports on one bucket. Keys are built from ids, never from what a client named."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client, self._bucket = client, bucket

    def put(self, key: str, body: bytes) -> None:
        with as_unavailable(f"storing {key}"):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=JSON)

    def get(self, key: str) -> bytes:
        with as_unavailable(f"reading {key}"):
            try:
                return bytes(self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read())
            except ClientError as error:
                if code_of(error) in {"NoSuchKey", "404"}:
                    raise Missing(key) from error
                raise

    def exists(self, key: str) -> bool:
        with as_unavailable(f"looking for {key}"):
            try:
                self._client.head_object(Bucket=self._bucket, Key=key)
            except ClientError as error:
                if code_of(error) in {"NoSuchKey", "404"}:
                    return False
                raise
        return True

    def delete(self, key: str) -> None:
        with as_unavailable(f"deleting {key}"):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def delete_many(self, keys: Sequence[str]) -> None:
        """At most 1,000. It needs no permission to list: what is not there is as good as gone."""
        objects = [{"Key": key} for key in keys]
        with as_unavailable(f"deleting {len(keys)} objects"):
            answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
        _all_gone(answer)

    def delete_folder(self, prefix: str) -> None:
        """Page by page, from the beginning each time: what a page had is gone by then."""
        if not prefix.endswith("/"):
            raise ValueError(f"{prefix!r} would take more than one folder")
        while True:
            with as_unavailable(f"listing {prefix}"):
                page = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, MaxKeys=LISTED_AT_ONCE)
            if not page.get("Contents"):
                return
            self.delete_many([one["Key"] for one in page["Contents"]])
            if not page["IsTruncated"]:
                return

    def link(self, key: str, expires_s: int) -> str:
        return str(
            self._client.generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=expires_s
            )
        )


class S3Uploads:
    """The Uploads, UploadedObjects and UploadForms ports on a versioned bucket."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client, self._bucket = client, bucket

    def read(self, key: str, version: str, etag: str, limit: int) -> tuple[str, bytes]:
        # without versions the key has one content at a time, and its hash must be the one that was announced
        which = {"VersionId": version} if version else {"IfMatch": f'"{etag}"'}
        with as_unavailable(f"reading {key}"):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=key, **which)
            except ClientError as error:
                if code_of(error) in _ANOTHER:
                    raise Missing(key) from error
                raise
            if answer["ContentLength"] > limit:
                answer["Body"].close()
                raise TooLarge(key)
            return str(answer.get("ContentType", "")), bytes(answer["Body"].read())

    def first(self, key: str) -> Stored | None:
        found = None
        with as_unavailable(f"listing the versions of {key}"):
            for page in self._versions(key):
                for one in page:  # of one key the newest comes first; marks of deletion have no ETag
                    found = one if "ETag" in one else found
        if found is None:
            return None
        version = "" if found["VersionId"] == "null" else found["VersionId"]
        return Stored(key, version, found["ETag"].strip('"'), found["Size"])

    def form(self, key: str, content_type: str, most: int, expires_s: int) -> tuple[str, dict[str, str]]:
        made = self._client.generate_presigned_post(
            self._bucket,
            key,
            Fields={"Content-Type": content_type},
            Conditions=[{"Content-Type": content_type}, ["content-length-range", 1, most]],
            ExpiresIn=expires_s,
        )
        return str(made["url"]), {str(name): str(value) for name, value in made["fields"].items()}

    def delete(self, key: str, version: str) -> None:
        with as_unavailable(f"deleting {key}"):
            if version:
                self._client.delete_object(Bucket=self._bucket, Key=key, VersionId=version)
                return
            for page in list(self._versions(key)):  # all of them first: a page begins behind the last one of another
                objects = [{"Key": key, "VersionId": one["VersionId"]} for one in page]
                if objects:
                    _all_gone(
                        self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})
                    )

    def _versions(self, key: str) -> Iterator[list[Mapping[str, Any]]]:
        """Pages of the versions and marks of deletion of this key. Those of others that begin so come behind them, and
        may be many."""
        pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self._bucket, Prefix=key)
        for page in pages:
            listed = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            own = [one for one in listed if one["Key"] == key]
            yield own
            if len(own) < len(listed):
                return


# the version is gone, or never was one; or something else is in its place
_ANOTHER = {"NoSuchKey", "NoSuchVersion", "404", "PreconditionFailed", "412", "MethodNotAllowed"}


def _all_gone(answer: Mapping[str, Any]) -> None:
    """S3 answers 200 and says for each key what is wrong with it."""
    refused = answer.get("Errors", [])
    if refused:
        raise Unavailable(f"deleting {refused[0].get('Key')}: {refused[0].get('Code')}")
