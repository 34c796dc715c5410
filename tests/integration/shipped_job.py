"""A program that is given only what ships and boto3: one job through four handlers. Run by test_shipped_assets.py."""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from typing import Any


class Context:
    aws_request_id = "11111111-2222-3333-4444-555555555555"
    function_name = "shipped"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:shipped"

    def __init__(self) -> None:
        self._ends = time.time() + 900

    def get_remaining_time_in_millis(self) -> int:
        return int((self._ends - time.time()) * 1000)


def main(work: dict[str, Any]) -> dict[str, Any]:
    def call(role: str, event: dict[str, Any]) -> Any:
        os.environ.update(work["environments"][role])
        return import_module(f"lambdas.handlers.{role}").handler(event, Context())

    import boto3
    from botocore.config import Config

    clients = import_module("lambdas.adapters.clients")  # before anybody asks for one
    patient = Config(connect_timeout=60, read_timeout=60)  # this machine may be slow
    for kind in ("_STORES", "_DOOR"):
        setattr(clients, kind, getattr(clients, kind).merge(patient))
    who = {"authorizer": {"iam": {"accountId": "acme"}}}
    body = json.dumps(
        {"type": "summarize", "input": {"text": "ANN: The invoice is wrong. BOB: I will send a new one."}}
    )
    accepted = call("accept", {"headers": {}, "body": body, "requestContext": who})
    job_id = json.loads(accepted["body"])["job_id"]

    jobs, sqs = boto3.client("dynamodb"), boto3.client("sqs")
    key = {"pk": {"S": job_id}, "sk": {"S": "job"}}

    def image() -> dict[str, Any]:
        item: Any = jobs.get_item(TableName=os.environ["JOBS_TABLE"], Key=key)["Item"]
        return dict(item)

    new = image()
    call("dispatch", {"Records": [{"eventName": "INSERT", "dynamodb": {"SequenceNumber": "1", "NewImage": new}}]})
    received = sqs.receive_message(QueueUrl=os.environ["WORK_QUEUE_URL"], AttributeNames=["All"])["Messages"]
    records = [
        {"messageId": one["MessageId"], "receiptHandle": one["ReceiptHandle"], "body": one["Body"],
         "attributes": one["Attributes"], "eventSource": "aws:sqs"}
        for one in received
    ]  # fmt: skip
    worked = call("worker", {"Records": records})
    change = {"SequenceNumber": "2", "OldImage": new, "NewImage": image()}
    call("dispatch", {"Records": [{"eventName": "MODIFY", "dynamodb": change}]})
    call("sweep", {})
    query = {"pathParameters": {"id": job_id}, "requestContext": who}
    return {
        "worked": worked,
        "job": json.loads(call("query", {"routeKey": "GET /jobs/{id}", **query})["body"]),
        "result": json.loads(call("query", {"routeKey": "GET /jobs/{id}/result", **query})["body"]),
        "files": sorted(str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())),
    }


if __name__ == "__main__":
    given = json.loads(sys.stdin.read())
    sys.path[:0] = given["path"]
    logs, sys.stdout = sys.stdout, sys.stderr
    answer = main(given)
    logs.write(json.dumps(answer))
