"""Two sources of events that the end-to-end tests send for: API Gateway itself puts the events of one into the inbox, a
function those of the other. A deployment that has not declared them is not asked."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

TENANT = "e2e"  # deployed with SigV4, a tenant is its account: declare that instead
SECRET_NAME = "neverdrop/e2e"
_KEY = b"known to these tests alone"
SECRET = f"whsec_{base64.b64encode(_KEY).decode()}"
_DECLARED = {"tenant": TENANT, "task": "summarize", "scheme": "standard-webhooks", "secret": SECRET_NAME}
DECLARED: Mapping[str, Mapping[str, Any]] = {"e2e": _DECLARED, "e2e-binary": {**_DECLARED, "binary": True}}
SETTING = f"sources={json.dumps(DECLARED)}"


def signed(event_id: str, body: bytes, at: datetime) -> dict[str, str]:
    """The headers of an event of then, by the rules of standardwebhooks.com."""
    now = str(int(at.timestamp()))
    mac = hmac.new(_KEY, f"{event_id}.{now}.".encode() + body, hashlib.sha256)
    return {
        "content-type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": now,
        "webhook-signature": f"v1,{base64.b64encode(mac.digest()).decode()}",
    }
