"""Bucket policies that demand TLS, on a loopback without any; and delete markers of keys that never were.

Stock moto does not look at conditions: a policy that denies everything unless it comes over TLS would deny
everything. Here every call counts as made over TLS 1.3, as an SDK makes it on AWS. And a bucket with versions puts a
marker for any key that somebody deletes; stock moto asks for an object first.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket, FakeDeleteMarker, S3Backend

from local.aws.patches.patch import Patch

_TLS_VERSION = 1.3


def _get_permission(bucket: FakeBucket, action: str, resource: str) -> Any:
    policy = json.loads(bucket.policy or b"{}")
    statements = policy.get("Statement", [])
    applying = [one for one in (statements if isinstance(statements, list) else [statements]) if _applies(one)]
    if not applying:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps({**policy, "Statement": applying})).is_action_permitted(action, resource)


def _applies(statement: dict[str, Any]) -> bool:
    """False when a condition on the transport does not hold; other conditions stay unread, as in stock moto."""
    condition = {
        (operator, key.lower()): value
        for operator, keys in statement.get("Condition", {}).items()
        for key, value in keys.items()
    }
    secure = condition.get(("Bool", "aws:securetransport"))
    below = condition.get(("NumericLessThan", "s3:tlsversion"))
    insecure_only = secure is not None and str(secure).lower() == "false"
    old_tls_only = below is not None and float(below) <= _TLS_VERSION
    return not (insecure_only or old_tls_only)


def _set_delete_marker(backend: S3Backend, bucket_name: str, key_name: str) -> FakeDeleteMarker:
    deleted: Any = SimpleNamespace(name=key_name)  # and not the object, which the marker would keep in memory
    marker = FakeDeleteMarker(key=deleted)
    backend.get_bucket(bucket_name).keys[key_name] = marker
    return marker


PATCHES = (
    Patch(FakeBucket, "get_permission", _get_permission),
    Patch(S3Backend, "_set_delete_marker", _set_delete_marker),
)
