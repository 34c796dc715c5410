"""A toy stack whose functions note what they were given, served by a queue, a stream and a client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from local.compute.environment import Environment
from local.events.queues import QueueMapping
from local.events.sources import client
from local.events.streams import StreamMapping
from local.faults import Fault
from local.runtime import Runtime
from tests.integration.local_toys import Toy, eventually, request

# In virtual time, which a test skips; far more than a slow machine needs in real time.
DEADLINE_S = 100
HIDDEN_S = 300

# Notes which jobs it was given, once for each invocation; with a table, it writes them there, too.
NOTE = """
import boto3, json, os, re, time
from botocore.config import Config
once = Config(retries={"total_max_attempts": 1})
dynamodb, sqs = boto3.client("dynamodb", config=once), boto3.client("sqs", config=once)

def handler(event, context):
    jobs = sorted(set(re.findall("job-[0-9a-f]+", json.dumps(event))))
    note = {"pk": {"S": f"{time.time_ns()} {context.aws_request_id}"}, "jobs": {"SS": jobs},
            "role": {"S": os.environ["ROLE"]}}
    dynamodb.put_item(TableName=os.environ["NOTES"], Item=note)
    for job in jobs:
        if "TABLE" in os.environ:
            item = {"pk": {"S": job}, "by": {"S": context.aws_request_id}}
            dynamodb.put_item(TableName=os.environ["TABLE"], Item=item)
            dynamodb.update_item(TableName=os.environ["TABLE"], Key={"pk": {"S": job}},
                UpdateExpression="ADD seen :one", ConditionExpression="attribute_not_exists(sealed)",
                ExpressionAttributeValues={":one": {"N": "1"}})
        if "QUEUE" in os.environ:
            sqs.send_message(QueueUrl=os.environ["QUEUE"], MessageBody=job)
    return {"statusCode": 200, "body": context.aws_request_id}
"""


class Stage:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.dynamodb = client("dynamodb", runtime.aws, "us-east-1")
        self.sqs = client("sqs", runtime.aws, "us-east-1")
        self.job = ""

    def close(self) -> None:
        self.dynamodb.close()
        self.sqs.close()

    def strike(self, function: str, kind: str, when: str, **more: Any) -> Fault:
        fault = Fault(function, kind, when, **{"job_id": self.job, **more})
        self.runtime.faults.add(fault)
        return fault

    def at_handler(self, function: str, kind: str, when: str, **more: Any) -> Fault:
        return self.strike(function, kind, when, service="handler", operation="Invoke", **more)

    def control(self, name: str) -> Any:
        return request("POST", f"{self.runtime.api}/_local/{name}").json

    # --- the three sources: a queue, a stream, a client ------------------------------------------------------------

    def send(self, job: str = "") -> None:
        self.sqs.send_message(QueueUrl=self.runtime.outputs["Inbox"], MessageBody=job or self.job)

    def write(self, *jobs: str) -> None:
        """One transaction, so that the stream has all of them at once."""
        table = self.runtime.outputs["Source"]
        puts = [{"Put": {"TableName": table, "Item": {"pk": {"S": job}}}} for job in jobs or [self.job]]
        self.dynamodb.transact_write_items(TransactItems=puts)

    def ask(self, job: str = "") -> tuple[int, bytes]:
        answer = request("POST", f"{self.runtime.api}/jobs", {"job": job or self.job})
        return answer.status, answer.body

    # --- what came of it -----------------------------------------------------------------------------------------

    def noted(self, role: str, job: str = "") -> list[str]:
        """The invocations that had the job, oldest first."""
        found = self.dynamodb.scan(TableName=self.runtime.outputs["Notes"], ConsistentRead=True)["Items"]
        own = [one["pk"]["S"] for one in found if one["role"]["S"] == role and (job or self.job) in one["jobs"]["SS"]]
        return [pk.split()[1] for pk in sorted(own)]

    def until_noted(self, role: str, times: int, job: str = "") -> None:
        eventually(lambda: len(self.noted(role, job)) == times)
        self.until_idle()

    def until_idle(self) -> None:
        eventually(lambda: not self.runtime.functions.running())

    def ended(self, role: str) -> list[str]:
        """Why each invocation of the function ended, as far as the runtime ended it."""
        return [one.reason for one in list(self.runtime.functions.history) if one.function == role]

    def records(self) -> int:
        """How many records of the stream the mapping is done with, of all tests."""
        (mapping,) = [one for one in self.runtime.sources.mappings if isinstance(one, StreamMapping)]
        return int(mapping.done_up_to or 0)

    def row(self) -> dict[str, Any] | None:
        table = self.runtime.outputs["Source"]
        found = self.dynamodb.get_item(TableName=table, Key={"pk": {"S": self.job}}, ConsistentRead=True).get("Item")
        return None if found is None else dict(found)

    def frozen(self, role: str) -> Environment:
        return eventually(lambda: self.standing(role))[0]

    def standing(self, role: str | None = None) -> list[Environment]:
        functions = self.runtime.functions
        found = [functions.environment_of(request_id) for request_id in functions.running(role)]
        return [one for one in found if one is not None and one.frozen]

    def letters(self) -> list[Any]:
        """What the stream has given up since the last time."""
        url = self.runtime.outputs["Letters"]
        found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        for letter in found:
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=letter["ReceiptHandle"])
        return list(found)

    def empty(self) -> None:
        """Until nothing is under way, and no message is left that would come back."""
        (mapping,) = [one for one in self.runtime.sources.mappings if isinstance(one, QueueMapping)]
        self.until_idle()
        eventually(lambda: not mapping._invoking)
        if self.depth():
            with self.runtime.functions.at_rest(60):
                self.runtime.clock.advance(HIDDEN_S + 1)
            eventually(lambda: self.depth() == 0)
            self.until_idle()

    def depth(self) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        url = self.runtime.outputs["Inbox"]
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(number) for number in found.values())


def toys(folder: Path) -> Toy:
    """`work` is served by a queue, `dispatch` by a stream that repeats nothing, `accept` and `tell` over HTTP."""
    toy = Toy(folder)
    for table in ("Notes", "Source"):
        toy.table(table)
    for queue in ("Inbox", "Letters"):
        toy.queue(queue, VisibilityTimeout=HIDDEN_S)
    more: dict[str, dict[str, Any]] = {"accept": {"TABLE": {"Ref": "Source"}}, "tell": {"QUEUE": {"Ref": "Inbox"}}}
    for role in ("work", "dispatch", "accept", "tell"):
        environment = {"NOTES": {"Ref": "Notes"}, "ROLE": role, **more.get(role, {})}
        toy.function(role, NOTE, environment=environment, Timeout=DEADLINE_S)
    toy.mapping("work", "Inbox", BatchSize=1)
    letters = {"OnFailure": {"Destination": {"Fn::GetAtt": ["Letters", "Arn"]}}}
    only_once = {"MaximumRetryAttempts": 0, "BisectBatchOnFunctionError": True, "DestinationConfig": letters}
    toy.mapping("dispatch", "Source", "StreamArn", BatchSize=10, StartingPosition="LATEST", **only_once)
    toy.api({"POST /jobs": "accept", "POST /told": "tell"})
    return toy
