"""The events of a WebSocket API: what its authorizer and its routes' functions get."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from local.events.http import TENANT_HEADER
from local.sockets.definition import Definition

Event = dict[str, Any]


@dataclass(frozen=True)
class Upgrade:
    """The request that a connection begins with."""

    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """As they were sent."""
    source_ip: str = "127.0.0.1"

    def header(self, name: str) -> str:
        """The last one of that name, or nothing."""
        return next((value for known, value in reversed(self.headers) if known.lower() == name.lower()), "")

    def parameter(self, name: str) -> str:
        """The last value of a query parameter, or nothing."""
        return next((value for known, value in reversed(self.parameters) if known == name), "")

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The query, decoded."""
        return parse_qsl(self.query, keep_blank_values=True)


@dataclass(frozen=True)
class Peer:
    """Whom a connection is to."""

    id: str
    upgrade: Upgrade
    connected_at: datetime
    authorizer: Mapping[str, Any] = field(default_factory=dict)
    """What the authorizer said of him: every value is text, but for the gateway's own number."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What IAM says of him."""


def new_id() -> str:
    """In the form of a connection's or a request's id: 16 characters, one of them `=`."""
    return base64.urlsafe_b64encode(secrets.token_bytes(11)).decode()


def authorizing(definition: Definition, peer: Peer, now: datetime) -> Event:
    """What a REQUEST authorizer is asked."""
    event = connecting(definition, peer, now)
    del event["isBase64Encoded"]
    event["requestContext"].pop("authorizer", None)
    return {"type": "REQUEST", "methodArn": definition.arn("$connect"), "stageVariables": {}, **event}


def connecting(definition: Definition, peer: Peer, now: datetime) -> Event:
    """Somebody wants to connect. What is not there is left out."""
    headers = _headers(definition, peer.upgrade, now)
    event: Event = {
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": headers,
        "requestContext": _context(definition, peer, now, "$connect", "CONNECT"),
        "isBase64Encoded": False,
    }
    query = _several(peer.upgrade.parameters)
    if query:
        event["queryStringParameters"] = {name: values[-1] for name, values in query.items()}
        event["multiValueQueryStringParameters"] = query
    return event


def message(definition: Definition, peer: Peer, now: datetime, key: str, text: str) -> Event:
    """A frame, as the function of its route gets it: of the query and the headers nothing is left."""
    context = _context(definition, peer, now, key, "MESSAGE")
    return {"requestContext": {**context, "messageId": new_id()}, "body": text, "isBase64Encoded": False}


def disconnected(definition: Definition, peer: Peer, now: datetime, code: int, reason: str) -> Event:
    """The connection is gone."""
    context = _context(definition, peer, now, "$disconnect", "DISCONNECT")
    host = _domain(definition)
    headers = {"Host": host, "x-api-key": "", "X-Forwarded-For": "", "x-restapi": ""}
    return {
        "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "requestContext": {**context, "disconnectStatusCode": code, "disconnectReason": reason},
        "isBase64Encoded": False,
    }


def _context(definition: Definition, peer: Peer, now: datetime, key: str, kind: str) -> dict[str, Any]:
    identity = {"userAgent": peer.upgrade.header("user-agent"), "sourceIp": peer.upgrade.source_ip, **peer.identity}
    request_id = new_id()
    return {
        "routeKey": key,
        **({"authorizer": dict(peer.authorizer)} if peer.authorizer else {}),
        "eventType": kind,
        "extendedRequestId": request_id,
        "requestTime": f"{now:%d/%b/%Y:%H:%M:%S +0000}",
        "messageDirection": "IN",
        "stage": definition.stage,
        "connectedAt": _milliseconds(peer.connected_at),
        "requestTimeEpoch": _milliseconds(now),
        "identity": identity,
        "requestId": request_id,
        "domainName": _domain(definition),
        "connectionId": peer.id,
        "apiId": definition.api_id,
    }


def _headers(definition: Definition, upgrade: Upgrade, now: datetime) -> dict[str, list[str]]:
    sent = [(name, value) for name, value in upgrade.headers if name.lower() not in (TENANT_HEADER, "host")]
    added = {
        "Host": _domain(definition),
        "X-Amzn-Trace-Id": f"Root=1-{int(now.timestamp()):08x}-{secrets.token_hex(12)}",
        "X-Forwarded-For": upgrade.source_ip,
        "X-Forwarded-Port": "443",
        "X-Forwarded-Proto": "https",
    }
    return _several([*sent, *added.items()])


def _several(pairs: list[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _domain(definition: Definition) -> str:
    return f"{definition.api_id}.execute-api.{definition.region}.amazonaws.com"


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
