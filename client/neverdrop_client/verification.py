"""Webhooks as a receiver takes them: signed, recent and unchanged, or not at all."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

from neverdrop_client.errors import BadArgument, WebhookRefused


@dataclass(frozen=True)
class WebhookEvent:
    """`id` is the same on every repetition: what was seen before is to be acknowledged and left alone. Of two events of
    a job the one with the higher `sequence` is the later, in whichever order they come."""

    id: str
    type: str
    job_id: str
    timestamp: str
    sequence: int
    payload: Mapping[str, Any]
    envelope: Mapping[str, Any]


def verify_webhook(body: bytes, headers: Mapping[str, str], secrets: str | Sequence[str]) -> WebhookEvent:
    """The event in a request, by the rules of https://www.standardwebhooks.com. Raises WebhookRefused.

    `body`: the bytes as they came, before anything has parsed them. `secrets`: the endpoint's, `whsec_…`; several while
    one is changed for another."""
    hooks = [_hook(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    if not hooks:
        raise BadArgument("a webhook is verified by a secret, and there is none")
    carried = {name.lower(): value for name, value in headers.items()}
    if not re.fullmatch(r"[0-9]{1,12}", carried.get("webhook-timestamp", "")):
        raise WebhookRefused("there is no webhook-timestamp in seconds")
    whys = [_refusal(hook, body, carried) for hook in hooks]
    if None not in whys:
        raise WebhookRefused(str(whys[0]))
    return _event(body, carried["webhook-id"])


def _hook(secret: str) -> Webhook:
    try:
        return Webhook(secret)
    except Exception:  # its own, and those of Base64
        raise BadArgument("a webhook's secret is whsec_ and Base64") from None


def _refusal(hook: Webhook, body: bytes, headers: dict[str, str]) -> str | None:
    """Why this secret does not vouch for the request; None when it does."""
    try:
        hook.verify(body, headers, json_parse=False)
    except WebhookVerificationError as error:
        return str(error)
    except ValueError:  # a body that is no text, a signature that is no Base64
        return "the signature cannot be read"
    return None


def _event(body: bytes, event_id: str) -> WebhookEvent:
    try:
        envelope = json.loads(body)
        payload = envelope["payload"]
        return WebhookEvent(
            id=event_id, type=str(envelope["event_type"]), job_id=str(envelope["run_id"]),
            timestamp=str(envelope["timestamp"]), sequence=int(payload.get("sequence", 0)), payload=payload,
            envelope=envelope,
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise WebhookRefused("it is signed, and no event of Neverdrop") from None
