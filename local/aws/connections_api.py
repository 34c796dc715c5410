"""How calls of a WebSocket API's @connections look: they are signed for another name, and their path says what for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from local.aws.calls import Call
from local.stack.place import ACCOUNT

SERVICE = "apigatewaymanagementapi"
SIGNED_AS = "execute-api"
PAYLOAD_LIMIT_BYTES = 128 * 1024
ADDRESS = "AWS_ENDPOINT_URL_APIGATEWAYMANAGEMENTAPI"
"""The variable by which boto3 finds the API."""

_OPERATIONS = {"POST": "PostToConnection", "GET": "GetConnection", "DELETE": "DeleteConnection"}
_PATH = re.compile(r"(?:/(?P<api>[^/]+)/(?P<stage>[^/]+))?/@connections/(?P<id>[^/]+)")
_ON_AWS = re.compile(r"https://([a-z0-9]+)\.execute-api\.[a-z0-9-]+\.[a-z0-9.-]+/([^/?#]+)/?")


@dataclass(frozen=True)
class Target:
    """Which connection of which API is meant; the API is unknown to who has no address of it."""

    api_id: str
    stage: str
    connection_id: str


def target_of(call: Call) -> Target | None:
    """What the path says; None for a path that says nothing."""
    found = _PATH.fullmatch(call.path)
    return None if found is None else Target(found["api"] or "", found["stage"] or "", found["id"])


def operation(method: str, path: str) -> str | None:
    """As the API reference names it."""
    return _OPERATIONS.get(method) if _PATH.fullmatch(path) else None


def arn_of(call: Call) -> str:
    """What IAM is asked about."""
    target = target_of(call)
    if target is None or not target.api_id:
        return "*"
    place = f"{target.api_id}/{target.stage}/{call.method}/@connections/{target.connection_id}"
    return f"arn:aws:{SIGNED_AS}:{call.region}:{ACCOUNT}:{place}"


def here(environment: Mapping[str, str], aws_url: str) -> dict[str, str]:
    """The variable with which a function finds on this machine the API that its template's address names on AWS."""
    if ADDRESS not in environment:
        return {}
    found = _ON_AWS.fullmatch(environment[ADDRESS])
    return {ADDRESS: aws_url if found is None else f"{aws_url}/{found[1]}/{found[2]}"}
