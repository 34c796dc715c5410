"""Recognises who calls which operation of which service, from what every AWS request carries."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs

from moto.core.request import Request
from moto.core.routing import get_service_router

from local.aws.calls import Call, Callers
from local.aws.parameters import form

_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_RPC_PATH = re.compile(r"^/service/[^/]+/operation/(\w+)$")
_MODELS_BY_PATH = {("ses", "/v2/"): "sesv2"}  # two APIs under one name
_SIGNING_NAMES = {"monitoring": "cloudwatch", "email": "ses"}


def recognise(environ: dict[str, Any], body: bytes, callers: Callers) -> Call:
    """The call that a WSGI request makes; an unsigned request counts as S3's, as moto does it."""
    headers = _headers(environ)
    query = environ.get("QUERY_STRING", "")
    key, region, service = _credential(headers, query)
    target = headers.get("x-amz-target", "")
    if target.startswith("DynamoDBStreams"):
        service = "dynamodbstreams"
    return Call(
        caller=callers.find(key),
        service=service,
        operation=_operation(service, target, environ, headers, body),
        body=body,
        headers=headers,
        path=environ.get("PATH_INFO", "/"),
        method=environ["REQUEST_METHOD"],
        query=query,
        access_key_id=key,
        region=region,
    )


def _headers(environ: dict[str, Any]) -> dict[str, str]:
    headers = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") and isinstance(value, str)
    }
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers[name.replace("_", "-").lower()] = environ[name]
    return headers


def _credential(headers: dict[str, str], query: str) -> tuple[str, str, str]:
    """Access key id, region and service: from the header, or from a presigned URL."""
    found = _CREDENTIAL.search(headers.get("authorization", ""))
    if found is None and "X-Amz-Credential" in query:
        presigned = parse_qs(query).get("X-Amz-Credential", [""])[0]
        found = _CREDENTIAL.search(f"Credential={presigned}")
    if found is not None:
        key, region, service = found.groups()
        return key, region, _SIGNING_NAMES.get(service, service)
    older = parse_qs(query).get("AWSAccessKeyId", [""])[0]
    return older, "us-east-1", "s3"


def _operation(service: str, target: str, environ: dict[str, Any], headers: dict[str, str], body: bytes) -> str:
    if target:
        return target.rsplit(".", 1)[-1]
    rpc = _RPC_PATH.match(environ.get("PATH_INFO", ""))
    if rpc:
        return rpc.group(1)
    if headers.get("content-type", "").startswith("application/x-www-form-urlencoded") and service != "s3":
        return form(body).get("Action", "")
    return _rest_operation(service, environ)


def _rest_operation(service: str, environ: dict[str, Any]) -> str:
    """By method and path, through the service's own model; a path that fits none is named as it came."""
    try:
        model = _MODELS_BY_PATH.get((service, environ.get("PATH_INFO", "")[:4]), service)
        operation, _ = get_service_router(model).match(Request(dict(environ)))
    except Exception:  # moto answers what nobody knows
        return f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '/')}"
    return str(operation.name)
