"""Payload format 2.0: an HTTP request as a Lambda event, and what a function returns as an HTTP response."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from local.events.routes import Route

_PLAIN = ("application/json", "application/xml", "application/javascript")
_NEVER_FORWARDED = frozenset({"connection", "transfer-encoding", "cookie", "keep-alive", "upgrade"})
TENANT_HEADER = "x-local-tenant"


@dataclass(frozen=True)
class Request:
    """What came over the wire."""

    method: str
    raw_path: str
    query: str
    headers: dict[str, str]
    """Names in lower case, several of one name joined by commas."""
    body: bytes
    source_ip: str = "127.0.0.1"
    protocol: str = "HTTP/1.1"


@dataclass(frozen=True)
class Answer:
    """What goes back."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""


class MalformedResponseError(ValueError):
    """The function returned something that API Gateway answers with a 500."""


def message(status: int, text: str) -> Answer:
    """An answer that API Gateway makes itself."""
    return Answer(status, [("content-type", "application/json")], json.dumps({"message": text}).encode())


# --- the event -----------------------------------------------------------------------------------------


def event(
    request: Request,
    route: Route,
    parameters: dict[str, str],
    *,
    account: str,
    api_id: str,
    stage: str,
    request_id: str,
    now: datetime,
) -> dict[str, Any]:
    """The event that the function of `route` gets."""
    tenant = request.headers.get(TENANT_HEADER) or "local"
    built: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route.key,
        "rawPath": unquote(request.raw_path),  # an HTTP API decodes it, in spite of the name
        "rawQueryString": request.query,
        "headers": _headers(request, request_id, now),
        "requestContext": {
            "accountId": account,
            "apiId": api_id,
            "domainName": f"{api_id}.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": api_id,
            "http": {
                "method": request.method,
                "path": unquote(request.raw_path),
                "protocol": request.protocol,
                "sourceIp": request.source_ip,
                "userAgent": request.headers.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": route.key,
            "stage": stage,
            "time": f"{now:%d/%b/%Y:%H:%M:%S +0000}",
            "timeEpoch": int(now.timestamp() * 1000),
        },
        "isBase64Encoded": False,
    }
    optional = {
        "cookies": [part.strip() for part in request.headers.get("cookie", "").split(";") if part.strip()],
        "queryStringParameters": _query(request.query),
        "pathParameters": parameters,
    }
    built |= {name: value for name, value in optional.items() if value}
    authorizer = _authorizer(route, tenant)
    if authorizer:
        built["requestContext"]["authorizer"] = authorizer
    if request.body:
        built["body"], built["isBase64Encoded"] = _body(request)
    return built


def _headers(request: Request, request_id: str, now: datetime) -> dict[str, str]:
    port = request.headers.get("host", "").rpartition(":")[2]
    forwarded = {
        "x-forwarded-for": request.source_ip,
        "x-forwarded-port": port if port.isdigit() else "80",
        "x-forwarded-proto": "http",
        "x-amzn-trace-id": f"Root=1-{int(now.timestamp()):08x}-{request_id.replace('-', '')[:24]}",
    }
    kept = {name: value for name, value in request.headers.items() if name not in _NEVER_FORWARDED | {TENANT_HEADER}}
    return {**kept, **forwarded, "content-length": str(len(request.body))}


def _query(text: str) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _body(request: Request) -> tuple[str, bool]:
    """As text only for the types that API Gateway knows as text; base64 for all others, and for none."""
    if is_text(request):
        try:
            return request.body.decode("utf-8"), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(request.body).decode(), True


def is_text(request: Request) -> bool:
    """Whether API Gateway knows the body's type as text."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _PLAIN


def _authorizer(route: Route, tenant: str) -> dict[str, Any] | None:
    """What the authorizer would have verified: locally, whatever the request says."""
    if route.authorization == "AWS_IAM":
        identity = {
            "accessKey": "ASIALOCAL",
            "accountId": tenant,
            "callerId": "AIDALOCAL",
            "cognitoIdentity": None,
            "principalOrgId": None,
            "userArn": f"arn:aws:iam::{tenant}:user/local",
            "userId": "AIDALOCAL",
        }
        return {"iam": identity}
    if route.authorization == "JWT":
        config = (route.authorizer or {}).get("JwtConfiguration", {})
        audience = config.get("Audience", ["local"])
        claims = {"sub": "local", "iss": config.get("Issuer", "local"), "aud": audience[0], "tenant_id": tenant}
        return {"jwt": {"claims": claims, "scopes": None}}
    return None


# --- the response --------------------------------------------------------------------------------------


def answer(result: Any) -> Answer:
    """What a function returned, as HTTP. MalformedResponseError where API Gateway answers 500."""
    if not isinstance(result, dict) or "statusCode" not in result:
        text = result if isinstance(result, str) else json.dumps(result)
        return Answer(200, [("content-type", "application/json")], text.encode())
    headers = [(name.lower(), _header(value)) for name, value in (result.get("headers") or {}).items()]
    headers += [("set-cookie", cookie) for cookie in result.get("cookies") or []]
    if all(name != "content-type" for name, _ in headers):
        headers.append(("content-type", "text/plain; charset=utf-8"))
    return Answer(_status(result["statusCode"]), headers, _payload(result))


def _status(value: Any) -> int:
    try:
        status = int(value)
    except (TypeError, ValueError) as error:
        raise MalformedResponseError(f"statusCode {value!r}") from error
    if isinstance(value, bool) or not 100 <= status <= 599:
        raise MalformedResponseError(f"statusCode {value!r}")
    return status


def _header(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise MalformedResponseError(f"a header of the type {type(value).__name__}")


def _payload(result: dict[str, Any]) -> bytes:
    body = result.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedResponseError(f"a body of the type {type(body).__name__}")
    if not result.get("isBase64Encoded"):
        return body.encode("utf-8", "replace")
    try:
        return base64.b64decode(body, validate=True)
    except ValueError as error:
        raise MalformedResponseError("a body that is no base64") from error
