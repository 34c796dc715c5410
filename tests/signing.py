"""Signs events as senders do: written from the schemes' own descriptions, not from the code that checks them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

from lambdas.contracts.sources import Source, source_of
from tests.builders import NOW, TENANT

KEY = b"a key of twenty-four byt"
WHSEC = "whsec_" + base64.b64encode(KEY).decode()
TEXT_SECRET = "It's a Secret to Everybody"
NOW_S = int(NOW.timestamp())

DECLARED: dict[str, dict[str, Any]] = {
    "crm": {"tenant": TENANT, "task": "summarize", "scheme": "standard-webhooks", "secret": "neverdrop/crm"},
    "pay": {
        "tenant": TENANT,
        "task": "summarize",
        "scheme": "timestamped",
        "header": "stripe-signature",
        "secret": "neverdrop/pay",
        "id": "/id",
        "input": "/data",
    },
    "forge": {
        "tenant": "globex",
        "task": "summarize",
        "scheme": "hmac-sha256",
        "header": "x-hub-signature-256",
        "secret": "neverdrop/forge",
        "id": "header:x-github-delivery",
        "input": "text",
    },
}
SECRETS = {"neverdrop/crm": WHSEC, "neverdrop/pay": TEXT_SECRET, "neverdrop/forge": TEXT_SECRET}


def any_source(name: str = "crm", **over: Any) -> Source:
    return source_of({**DECLARED[name], **over})


def standard_webhooks(body: bytes, *, id_: str = "msg_1", at_s: int = NOW_S, key: bytes = KEY) -> dict[str, str]:
    """The headers of https://www.standardwebhooks.com."""
    signed = f"{id_}.{at_s}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {"webhook-id": id_, "webhook-timestamp": str(at_s), "webhook-signature": f"v1,{signature}"}


def timestamped(body: bytes, *, at_s: int = NOW_S, secret: str = TEXT_SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return {"stripe-signature": f"t={at_s},v1={digest}"}


def hmac_sha256(body: bytes, *, id_: str = "delivery-1", secret: str = TEXT_SECRET) -> dict[str, str]:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"x-hub-signature-256": f"sha256={digest}", "x-github-delivery": id_}


def attributes(name: str, headers: dict[str, str], source: Source | None = None, **over: str) -> dict[str, str]:
    """The attributes that API Gateway writes for a request with these headers."""
    declared = (source or any_source(name)).headers
    found = {attribute: headers[header] for attribute, header in declared.items()}
    return {"source": name, "request_id": "request-1", "received_ms": str(NOW_S * 1000), **found, **over}
