"""Physical names as CloudFormation makes them, but the same on every run: stack, logical id, a short suffix."""

from __future__ import annotations

import hashlib
import uuid


def physical_name(stack: str, logical_id: str, limit: int) -> str:
    """`stack-LogicalId-SUFFIX`, at most `limit` characters; the suffix keeps what was cut apart."""
    suffix = suffix_of(stack, logical_id, 12).upper()
    room = limit - len(suffix) - 2
    head = stack[: max(1, room - min(len(logical_id), room * 2 // 3))]
    return f"{head}-{logical_id[: room - len(head)]}-{suffix}"


def suffix_of(stack: str, logical_id: str, length: int) -> str:
    """Lower-case letters and digits that stand for this resource of this stack."""
    return hashlib.sha256(f"{stack}/{logical_id}".encode()).hexdigest()[:length]


def uuid_of(stack: str, logical_id: str) -> str:
    """An id in the form of a UUID, for resources that AWS names so."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{stack}/{logical_id}"))
