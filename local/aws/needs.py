"""Which permissions a call needs: its IAM actions, each with the resource it must be allowed on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from xml.sax.saxutils import unescape

from local.aws import connections_api, secrets
from local.aws.calls import Call
from local.aws.functions import function_arn
from local.stack.place import ACCOUNT


@dataclass(frozen=True)
class Need:
    """One action on one resource, with the condition keys that hold for it."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)


def needs(call: Call) -> list[Need]:
    """Everything that must be allowed for the call; a service that is not known here needs `service:Operation` on *."""
    return _SERVICES.get(call.service, _other)(call)


def _other(call: Call) -> list[Need]:
    return [Need(f"{call.service}:{call.operation}", "*")]


def _table_arn(call: Call, name: str, index: str | None = None) -> str:
    arn = name if name.startswith("arn:") else f"arn:aws:dynamodb:{call.region}:{ACCOUNT}:table/{name}"
    return f"{arn}/index/{index}" if index else arn


_IN_TRANSACTION = {
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
}


def _dynamodb(call: Call) -> list[Need]:
    parameters = call.parameters
    if call.operation.startswith("Transact"):
        return [
            Need(f"dynamodb:{_IN_TRANSACTION[kind]}", _table_arn(call, part.get("TableName", "")))
            for entry in parameters.get("TransactItems") or []
            for kind, part in entry.items()
        ]
    if call.operation.startswith("Batch"):
        tables = parameters.get("RequestItems") or {}
        return [Need(f"dynamodb:{call.operation}", _table_arn(call, table)) for table in tables]
    if "TableName" not in parameters:
        return _other(call)
    # A query of an index is allowed on the index; the table alone does not cover it.
    resource = _table_arn(call, parameters["TableName"], parameters.get("IndexName"))
    return [Need(f"dynamodb:{call.operation}", resource, _leading_key(parameters))]


def _leading_key(parameters: Mapping[str, Any]) -> dict[str, str]:
    """The partition key of one item, if it is called `pk`, as all of our tables with a sort key call it. Of a query it
    stands in an expression, which is not read here: a condition on it must not be relied on."""
    one = parameters.get("Key") or parameters.get("Item") or {}
    value = (one.get("pk") or {}).get("S")
    return {"dynamodb:LeadingKeys": str(value)} if value is not None else {}


_MOVING = ("StartMessageMoveTask", "ReceiveMessage", "DeleteMessage", "GetQueueAttributes")


def _sqs(call: Call) -> list[Need]:
    source, destination = call.parameters.get("SourceArn"), call.parameters.get("DestinationArn")
    if call.operation == "StartMessageMoveTask" and source:
        sending = [Need("sqs:SendMessage", str(destination))] if destination else []
        return [Need(f"sqs:{action}", str(source)) for action in _MOVING] + sending
    if source:
        return [Need(f"sqs:{call.operation}", str(source))]
    url = str(call.parameters.get("QueueUrl") or "")
    name = url.rsplit("/", 1)[-1] or call.parameters.get("QueueName", "*")
    action = call.operation.removesuffix("Batch")
    return [Need(f"sqs:{action}", f"arn:aws:sqs:{call.region}:{ACCOUNT}:{name}")]


def _sns(call: Call) -> list[Need]:
    parameters = call.parameters
    resource = parameters.get("TopicArn") or parameters.get("TargetArn") or "*"
    return [Need(f"sns:{call.operation.removesuffix('Batch')}", str(resource))]


_S3_ACTIONS = {
    "CompleteMultipartUpload": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "HeadObject": "GetObject",
    "UploadPart": "PutObject",
    "HeadBucket": "ListBucket",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "PostObject": "PutObject",
}


def _s3(call: Call) -> list[Need]:
    bucket, _, key = unquote(call.path).lstrip("/").partition("/")
    action = _S3_ACTIONS.get(call.operation, call.operation)
    if call.operation == "ListBuckets":
        return [Need("s3:ListAllMyBuckets", "*")]
    if call.operation == "DeleteObjects":
        return [
            Need(f"s3:DeleteObject{'Version' if version else ''}", object_arn(bucket, one))
            for one, version in _to_delete(call)
        ]
    if action in ("ListBucket", "ListBucketVersions"):
        context = {f"s3:{name}": value for name, value in call.query_parameters.items() if name == "prefix"}
        return [Need(f"s3:{action}", bucket_arn(bucket), context)]
    if call.operation == "PostObject":
        key = call.form.key if call.form else ""
    if not key:
        return [Need(f"s3:{action}", bucket_arn(bucket))]
    if call.operation == "CopyObject":
        source, _, version = call.headers.get("x-amz-copy-source", "").lstrip("/").partition("?versionId=")
        return [
            Need(f"s3:GetObject{'Version' if version else ''}", object_arn(*unquote(source).partition("/")[::2])),
            Need("s3:PutObject", object_arn(bucket, key)),
        ]
    versioned = action in ("GetObject", "DeleteObject") and "versionId" in call.query_parameters
    return [Need(f"s3:{action}{'Version' if versioned else ''}", object_arn(bucket, key))]


def _to_delete(call: Call) -> Iterator[tuple[str, str]]:
    """Keys, each with the version that is meant, or an empty string."""
    text = call.body.decode("utf-8", "replace")
    for part in text.split("<Object>")[1:]:
        yield _element(part, "Key"), _element(part, "VersionId")


def _element(text: str, name: str) -> str:
    return unescape(text.partition(f"<{name}>")[2].partition(f"</{name}>")[0])


def bucket_arn(bucket: str) -> str:
    """A bucket's ARN."""
    return f"arn:aws:s3:::{bucket}"


def object_arn(bucket: str, key: str) -> str:
    """An object's ARN."""
    return f"arn:aws:s3:::{bucket}/{key}"


def _lambda(call: Call) -> list[Need]:
    if call.operation != "Invoke":
        return _other(call)
    return [Need("lambda:InvokeFunction", function_arn(call))]


def _logs(call: Call) -> list[Need]:
    group = call.parameters.get("logGroupName")
    resource = f"arn:aws:logs:{call.region}:{ACCOUNT}:log-group:{group}:*" if group else "*"
    return [Need(f"logs:{call.operation}", resource)]


def _ses(call: Call) -> list[Need]:
    sender = str(call.parameters.get("FromEmailAddress") or "")
    arn = f"arn:aws:ses:{call.region}:{ACCOUNT}:identity/{sender}"
    return [Need(f"ses:{call.operation}", arn, {"ses:FromAddress": sender})]


def _secretsmanager(call: Call) -> list[Need]:
    parameters = call.parameters
    if "SecretId" in parameters:
        return [Need(f"secretsmanager:{call.operation}", secrets.arn_of(str(parameters["SecretId"]), call.region))]
    return _other(call)


def _connections(call: Call) -> list[Need]:
    return [Need("execute-api:ManageConnections", connections_api.arn_of(call))]


def _states(call: Call) -> list[Need]:
    """Executions are permitted by their own ARNs, what starts and lists them by their state machine's."""
    parameters = call.parameters
    resource = parameters.get("executionArn") or parameters.get("stateMachineArn")
    return [Need(f"states:{call.operation}", str(resource))] if resource else _other(call)


_SERVICES: dict[str, Callable[[Call], list[Need]]] = {
    connections_api.SERVICE: _connections,
    "dynamodb": _dynamodb,
    "lambda": _lambda,
    "logs": _logs,
    "s3": _s3,
    "secretsmanager": _secretsmanager,
    "ses": _ses,
    "sns": _sns,
    "sqs": _sqs,
    "states": _states,
}
