"""The setting `tenants` as the functions get it: IAM principals, spelt as API Gateway names its callers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

MAX_BYTES = 3000  # of the 4 KB that Lambda gives a function's whole environment
TENANT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,64}")  # a segment of S3 keys, where `.` and `..` mean something
_PRINCIPAL = re.compile(r"arn:[a-z-]+:iam::\d{12}:\S+")
_SESSION = re.compile(r"arn:[a-z-]+:sts::\S+")
_ROLE = re.compile(r"(arn:[a-z-]+:iam::\d{12}:role/)\S*?([^/\s]+)")


def principal(arn: str) -> str:
    """A role without its path: the ARN of whoever assumed it never carries that. Anything else as it is."""
    role = _ROLE.fullmatch(arn)
    return role[1] + role[2] if role else arn


def environment(tenants: Mapping[str, str]) -> str:
    """The map as JSON, by the ARNs that callers have."""
    return json.dumps({principal(arn): tenant for arn, tenant in tenants.items()}, separators=(",", ":"))


def problems(tenants: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the map."""
    for arn, tenant in tenants.items():
        if _SESSION.fullmatch(arn):
            yield (
                f"tenants has the key {arn!r}: whoever assumes a role chooses the session's name, so it proves "
                "nothing: name the role, arn:aws:iam::<account>:role/…, one for each tenant"
            )
        elif not _PRINCIPAL.fullmatch(arn):
            yield f"tenants has the key {arn!r}: it must be a principal's ARN, arn:aws:iam::<account>:…"
        if not TENANT.fullmatch(tenant):
            yield f"tenants gives {arn!r} the tenant {tenant!r}: it must match {TENANT.pattern}"
    yield from _clashes(tenants)
    size = len(environment(tenants).encode())
    if size > MAX_BYTES:
        yield (
            f"tenants takes {size} bytes, and a function's environment has room for {MAX_BYTES} of them: "
            "use tokens (jwt_issuer), which name their tenant themselves"
        )


def _clashes(tenants: Mapping[str, str]) -> Iterator[str]:
    """Roles that only a path tells apart look the same at the door."""
    first: dict[str, str] = {}
    for arn, tenant in tenants.items():
        other = first.setdefault(principal(arn), arn)
        if tenants[other] != tenant:
            yield (
                f"tenants gives {other!r} and {arn!r} different tenants, but callers carry no path and both are "
                f"{principal(arn)!r}: rename one of the roles"
            )
