"""Events as AWS sends them: HTTP API (payload format 2.0), SQS, the stream of a DynamoDB table, a schedule."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping
from typing import Any

from lambdas.adapters.attributes import to_item

_NUMBER = itertools.count(1)

IAM = {
    "iam": {
        "accessKey": "AKIAEXAMPLE",
        "accountId": "111122223333",
        "callerId": "AIDAEXAMPLE",
        "cognitoIdentity": None,
        "principalOrgId": "",
        "userArn": "arn:aws:iam::111122223333:user/backend",
        "userId": "AIDAEXAMPLE",
    }
}


def jwt(**claims: str) -> dict[str, Any]:
    return {"jwt": {"claims": {"iss": "https://issuer.test", "sub": "u-1", **claims}, "scopes": None}}


ACME = jwt(tenant_id="acme")
GLOBEX = jwt(tenant_id="globex")


def http(
    route: str,
    *,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    path: Mapping[str, str] | None = None,
    authorizer: Mapping[str, Any] | None = ACME,
    as_base64: bool = False,
) -> dict[str, Any]:
    """One request. API Gateway lowers header names, joins repeated ones, and leaves out what is empty."""
    method, pattern = route.split(" ")
    raw_path = pattern
    for name, value in (path or {}).items():
        raw_path = raw_path.replace(f"{{{name}}}", value)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": raw_path,
        "rawQueryString": "&".join(f"{name}={value}" for name, value in (query or {}).items()),
        "headers": {"host": "api.test", "x-forwarded-proto": "https", **(headers or {})},
        "requestContext": {
            "accountId": "111122223333",
            "apiId": "a1b2c3d4e5",
            "domainName": "api.test",
            "http": {
                "method": method,
                "path": raw_path,
                "protocol": "HTTP/1.1",
                "sourceIp": "198.51.100.7",
                "userAgent": "curl/8.5.0",
            },
            "requestId": f"request-{next(_NUMBER)}=",
            "routeKey": route,
            "stage": "$default",
            "time": "29/Nov/2026:15:30:44 +0000",
            "timeEpoch": 1795966244123,
        },
        "isBase64Encoded": as_base64,
    }
    if authorizer is not None:
        event["requestContext"]["authorizer"] = dict(authorizer)
    if query:
        event["queryStringParameters"] = dict(query)
    if path:
        event["pathParameters"] = dict(path)
    if body is not None:
        raw = body.encode() if isinstance(body, str) else body
        event["body"] = base64.b64encode(raw).decode() if as_base64 else raw.decode("utf-8", "surrogateescape")
    return event


def post_job(body: Any, key: str | None = None, **more: Any) -> dict[str, Any]:
    """POST /jobs; a body that is no text or bytes is sent as JSON."""
    raw = body if isinstance(body, bytes | str) else json.dumps(body)
    headers = {
        "content-type": "application/json",
        **({"idempotency-key": key} if key else {}),
        **more.pop("headers", {}),
    }
    return http("POST /jobs", body=raw, headers=headers, **more)


def sqs(*records: dict[str, Any]) -> dict[str, Any]:
    return {"Records": list(records)}


def sqs_record(body: str, *, receives: int = 1, message_id: str | None = None, receipt: str = "") -> dict[str, Any]:
    message_id = message_id or f"00000000-0000-4000-8000-{next(_NUMBER):012d}"
    return {
        "messageId": message_id,
        "receiptHandle": receipt or f"receipt of {message_id}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": str(receives),
            "SentTimestamp": "1795966244123",
            "SenderId": "AROAEXAMPLE:dispatch",
            "ApproximateFirstReceiveTimestamp": "1795966244200",
            "MessageGroupId": "acme",
        },
        "messageAttributes": {},
        "md5OfBody": "0" * 32,
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:work",
        "awsRegion": "us-east-1",
    }


def stream(*records: dict[str, Any]) -> dict[str, Any]:
    return {"Records": list(records)}


def stream_record(new: Mapping[str, Any] | None, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One write, as plain records: an insert, a change, or with no new image a removal."""
    number = str(100_000_000_000_000_000 + next(_NUMBER))
    one = new if new is not None else old
    assert one is not None
    images: dict[str, Any] = {
        "ApproximateCreationDateTime": 1795966244.0,
        "Keys": to_item({name: one[name] for name in ("pk", "sk") if name in one}),
        "SequenceNumber": number,
        "SizeBytes": 500,
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    if new is not None:
        images["NewImage"] = to_item(new)
    if old is not None:
        images["OldImage"] = to_item(old)
    return {
        "eventID": f"{int(number):032x}",
        "eventName": "REMOVE" if new is None else "MODIFY" if old is not None else "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": images,
        "eventSourceARN": "arn:aws:dynamodb:us-east-1:123456789012:table/Jobs/stream/2026-11-29T15:30:44.123",
    }


def sequence(record: Mapping[str, Any]) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def failures(answer: Mapping[str, Any]) -> list[str]:
    """The identifiers of a partial batch response, checked for its shape (BATCH-10)."""
    assert set(answer) == {"batchItemFailures"}
    assert all(set(one) == {"itemIdentifier"} and one["itemIdentifier"] for one in answer["batchItemFailures"])
    return [one["itemIdentifier"] for one in answer["batchItemFailures"]]
