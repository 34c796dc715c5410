"""The secrets that deliveries are signed with: derived, so that none of them is stored anywhere."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence

from lambdas.core.canonical import canonical
from lambdas.core.times import Instant
from lambdas.core.webhooks.endpoint import Endpoint

PREFIX = "whsec_"


def secret(master: str, tenant: str, endpoint: str, version: int) -> str:
    """`whsec_…`, as Standard Webhooks writes a key of 32 bytes. `endpoint`: `callback` for all callback URLs."""
    about = canonical(["webhook", tenant, endpoint, version])
    return PREFIX + base64.b64encode(hmac.new(master.encode(), about.encode(), hashlib.sha256).digest()).decode()


def current(masters: Sequence[str], endpoint: Endpoint) -> str:
    """The one to verify with from now on: what `POST /webhooks` and a rotation answer with."""
    return secret(masters[0], endpoint.tenant, endpoint.id, endpoint.secret_version)


def signing(masters: Sequence[str], endpoint: Endpoint, now: Instant) -> tuple[str, ...]:
    """Those that sign at this time, the newest first: of each version that counts under each master that counts."""
    versions = endpoint.versions(now)
    found = (secret(master, endpoint.tenant, endpoint.id, version) for version in versions for master in masters)
    return tuple(dict.fromkeys(found))
