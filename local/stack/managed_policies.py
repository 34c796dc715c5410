"""The few managed policies of AWS's that a Lambda role may carry, as AWS documents them."""

from __future__ import annotations

from typing import Any, Final


def _allow(*actions: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [statement]}


_LOGS = ("logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents")

MANAGED: Final[dict[str, dict[str, Any]]] = {
    "AWSLambdaBasicExecutionRole": _allow(*_LOGS),
    "AWSLambdaSQSQueueExecutionRole": _allow(
        "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", *_LOGS
    ),
    "AWSLambdaDynamoDBExecutionRole": _allow(
        "dynamodb:DescribeStream",
        "dynamodb:GetRecords",
        "dynamodb:GetShardIterator",
        "dynamodb:ListStreams",
        *_LOGS,
    ),
}
