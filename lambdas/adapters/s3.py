"""Inputs and results in S3."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.core.ports import Missing

JSON = "application/json"


class S3Objects:
    """The Inputs and Results ports on one bucket. Keys are built from ids alone, never from what a client named."""

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

    def delete(self, key: str) -> None:
        with as_unavailable(f"deleting {key}"):
            self._client.delete_object(Bucket=self._bucket, Key=key)

    def link(self, key: str, expires_s: int) -> str:
        return str(
            self._client.generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=expires_s
            )
        )
