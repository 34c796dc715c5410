"""Writes a refusal the way the service that was called writes its errors, so that SDKs raise the right exception."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from xml.sax.saxutils import escape

from local.aws.calls import Call, Refusal, Response

_DYNAMODB_OWN = frozenset(
    {
        "ConditionalCheckFailedException",
        "IdempotentParameterMismatchException",
        "ItemCollectionSizeLimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ResourceNotFoundException",
        "TransactionCanceledException",
    }
)


def render(call: Call, refusal: Refusal) -> Response:
    """The HTTP response of a refusal."""
    if refusal.response is not None:
        return replace(refusal.response, carried_out=False)
    if refusal.lost:
        return Response(0, {}, lost=True, carried_out=False)
    return replace(_written(call, refusal), carried_out=False)


def _written(call: Call, refusal: Refusal) -> Response:
    if call.service == "s3":
        return _s3(call, refusal)
    if "x-amz-target" in call.headers:
        return _json(call, refusal)
    if call.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return _query(refusal)
    return _rest_json(refusal)


def _json(call: Call, refusal: Refusal) -> Response:
    headers = {"content-type": "application/x-amz-json-1.0", "x-amzn-requestid": str(uuid.uuid4())}
    code = refusal.code
    if call.service == "sqs":
        # SQS kept its old error names for SDKs in a header of their own.
        headers["x-amzn-query-error"] = f"{code};Sender"
    prefix = "com.amazonaws.dynamodb.v20120810" if code in _DYNAMODB_OWN else "com.amazon.coral.service"
    name = f"com.amazonaws.sqs#{code.rsplit('.', 1)[-1]}" if call.service == "sqs" else f"{prefix}#{code}"
    return Response(refusal.status, headers, json.dumps({"__type": name, "message": refusal.message}).encode())


def _rest_json(refusal: Refusal) -> Response:
    headers = {"content-type": "application/json", "x-amzn-errortype": refusal.code}
    return Response(refusal.status, headers, json.dumps({"message": refusal.message}).encode())


def _query(refusal: Refusal) -> Response:
    kind = "Sender" if refusal.status < 500 else "Receiver"
    request_id = str(uuid.uuid4())
    body = (
        f"<ErrorResponse><Error><Type>{kind}</Type><Code>{escape(refusal.code)}</Code>"
        f"<Message>{escape(refusal.message)}</Message></Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    )
    return Response(refusal.status, {"content-type": "text/xml", "x-amzn-requestid": request_id}, body.encode())


def _s3(call: Call, refusal: Refusal) -> Response:
    headers = {"content-type": "application/xml", "x-amz-request-id": uuid.uuid4().hex[:16].upper()}
    if call.method == "HEAD":  # a HEAD answer has no body to say more in
        return Response(refusal.status, headers)
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>'
        f"<Error><Code>{escape(refusal.code)}</Code><Message>{escape(refusal.message)}</Message>"
        f"<RequestId>{headers['x-amz-request-id']}</RequestId></Error>"
    )
    return Response(refusal.status, headers, body.encode())
