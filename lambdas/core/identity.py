"""Whose request it is: the tenant comes from the verified identity, never from the body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lambdas.core.problems import Problem, forbidden

TENANT = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]{1,64}")  # `.` and `..` are steps, not names, in the path of a URL
CLAIM = "tenant_id"


def tenant_of(authorizer: Mapping[str, Any], principals: Mapping[str, str]) -> str | Problem:
    """The tenant of what API Gateway verified. `principals` maps IAM ARNs to tenants (an assumed role is named by its
    role or by its session); an IAM identity that is not named is its account."""
    jwt, iam = authorizer.get("jwt"), authorizer.get("iam")
    if isinstance(jwt, Mapping):
        return _valid((jwt.get("claims") or {}).get(CLAIM), f"the token's claim `{CLAIM}`")
    if isinstance(iam, Mapping):
        arn, account = str(iam.get("userArn") or ""), str(iam.get("accountId") or "")
        named = principals.get(arn) or principals.get(_role_of(arn))
        return _valid(named or account, "the account of the caller")
    return forbidden("The request carries no verified identity: this route needs an authorizer.")


def _role_of(arn: str) -> str:
    """`arn:aws:sts::1:assumed-role/Role/session` is the role `arn:aws:iam::1:role/Role`."""
    found = re.fullmatch(r"arn:([\w-]+):sts::(\d+):assumed-role/(.+)/[^/]+", arn)
    return f"arn:{found[1]}:iam::{found[2]}:role/{found[3]}" if found else arn


def _valid(tenant: Any, source: str) -> str | Problem:
    if isinstance(tenant, str) and TENANT.fullmatch(tenant):
        return tenant
    return forbidden(f"{source} is no tenant id; it must match [A-Za-z0-9._-]{{1,64}}.")
