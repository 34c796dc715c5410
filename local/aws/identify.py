"""Recognises who calls which operation of which service, from what every AWS request carries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from moto.core.request import Request
from moto.core.routing import get_service_router

from local.aws import connections_api, forms
from local.aws.calls import Call, Callers
from local.aws.parameters import form

_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/\d+/([^/]+)/([^/]+)/aws4_request")
_RPC_PATH = re.compile(r"^/service/[^/]+/operation/(\w+)$")
_MODELS_BY_PATH = {("ses", "/v2/"): "sesv2"}  # two APIs under one name
_SIGNING_NAMES = {
    "monitoring": "cloudwatch",
    "email": "ses",
    connections_api.SIGNED_AS: connections_api.SERVICE,
}


def recognise(environ: dict[str, Any], body: bytes, callers: Callers) -> Call:
    """The call that a WSGI request makes; an unsigned request counts as S3's, as moto does it."""
    headers = _headers(environ)
    query = environ.get("QUERY_STRING", "")
    key, region, service, presigned = _credential(headers, query, body)
    target = headers.get("x-amz-target", "")
    if target.startswith("DynamoDBStreams"):
        service = "dynamodbstreams"
    return Call(
        caller=None if presigned else callers.find(key),
        service=service,
        operation=_operation(service, target, environ, headers, body),
        body=body,
        headers=headers,
        path=environ.get("PATH_INFO", "/"),
        method=environ["REQUEST_METHOD"],
        query=query,
        access_key_id="" if presigned else key,
        region=region,
        environ=dict(environ),
        signer=callers.signer(key) if presigned else None,
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


def _credential(headers: dict[str, str], query: str, body: bytes) -> tuple[str, str, str, bool]:
    """Access key id, region, service, and whether it was presigned: from the header, or from a URL or form."""
    found = _CREDENTIAL.search(headers.get("authorization", ""))
    presigned = found is None
    fields = _presigned_fields(headers, query, body) if presigned else {}
    if presigned:
        found = _CREDENTIAL.search(f"Credential={fields.get('x-amz-credential', '')}")
    if found is not None:
        key, region, service = found.groups()
        return key, region, _SIGNING_NAMES.get(service, service), presigned
    older = fields.get("awsaccesskeyid", "")
    return older, "us-east-1", "s3", bool(older)


def _presigned_fields(headers: dict[str, str], query: str, body: bytes) -> Mapping[str, str]:
    """What a presigned URL or form says, by names in lower case."""
    form = forms.parse(headers.get("content-type", ""), body)
    if form is not None:
        return form.fields
    return {name.lower(): values[0] for name, values in parse_qs(query).items()}


def _operation(service: str, target: str, environ: dict[str, Any], headers: dict[str, str], body: bytes) -> str:
    if target:
        return target.rsplit(".", 1)[-1]
    if service == connections_api.SERVICE:
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "/")
        return connections_api.operation(method, path) or f"{method} {path}"
    rpc = _RPC_PATH.match(environ.get("PATH_INFO", ""))
    if rpc:
        return rpc.group(1)
    kind = headers.get("content-type", "")
    if kind.startswith("application/x-www-form-urlencoded") and service != "s3":
        return form(body).get("Action", "")
    if service == "s3" and environ["REQUEST_METHOD"] == "POST" and kind.lower().startswith(forms.KIND):
        return "PostObject"  # no SDK's model knows it: browsers do it
    return _rest_operation(service, environ)


def _rest_operation(service: str, environ: dict[str, Any]) -> str:
    """By method and path, through the service's own model; a path that fits none is named as it came."""
    try:
        model = _MODELS_BY_PATH.get((service, environ.get("PATH_INFO", "")[:4]), service)
        operation, _ = get_service_router(model).match(Request(dict(environ)))
    except Exception:  # moto answers what nobody knows
        return f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '/')}"
    return str(operation.name)
