"""What the end-to-end tests talk to: an API over HTTP and the AWS API behind it, deployed or on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import boto3
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest

from neverdrop_client import Client, SigV4

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")
PATIENCE_S = 180.0
SHOWN = 4_000  # characters of what was not as wanted


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        return None


_OPENER = build_opener(_NoRedirect)


@dataclass(frozen=True)
class Target:
    """A stack. `aws` is the endpoint of the AWS API, None for AWS itself; `model` and the controls are local only."""

    api: str
    outputs: Mapping[str, str]
    aws: str | None = None
    model: str | None = None

    @property
    def is_local(self) -> bool:
        return self.model is not None

    # --- HTTP ------------------------------------------------------------------------------------------------

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request; a throttled one is sent again, as every client of an API Gateway must. Deployed, 503 is one,
        too: Lambda has no room."""
        throttled = {429} if self.is_local else {429, 503}
        for attempt in range(100):
            answer = self._request(method, path, body, dict(headers or {}))
            if answer.status not in throttled:
                break
            time.sleep(min(0.3 + 0.1 * attempt, 2))
        return answer

    def _request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        url = path if path.startswith("http") else self.api + path
        return self.unsigned(
            method, url, body, headers if self.is_local else headers | signature(method, url, body, headers)
        )

    def unsigned(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """One request as it is, to wherever."""
        try:
            with _OPENER.open(Request(url, body, dict(headers), method=method), timeout=90) as answer:
                return Answer(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
        except HTTPError as error:
            with error:
                return Answer(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())

    def get(self, path: str, tenant: str | None = None) -> Answer:
        return self.request("GET", path, headers=_as(tenant))

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", path, json.dumps(body).encode(), {"content-type": "application/json", **named})

    def submit(
        self, type_: str, task_input: Any, *, key: str | None = None, tenant: str | None = None, **more: Any
    ) -> str:
        headers = _as(tenant) | ({"idempotency-key": key} if key else {})
        answer = self.request(
            "POST", "/jobs", json.dumps({"type": type_, "input": task_input, **more}).encode(),
            {"content-type": "application/json", **headers},
        )  # fmt: skip
        assert answer.status == 202, answer
        return str(answer.json()["job_id"])

    def job(self, job_id: str, tenant: str | None = None) -> dict[str, Any]:
        answer = self.get(f"/jobs/{job_id}", tenant)
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json()
        return found

    def final(self, job_id: str, tenant: str | None = None, patience_s: float = PATIENCE_S) -> dict[str, Any]:
        """The job when it is final and handed over."""
        return eventually(
            lambda: self.job(job_id, tenant), lambda job: bool(job.get("handed_over")), patience_s=patience_s
        )

    def finals(
        self, job_ids: list[str], tenant: str | None = None, patience_s: float = PATIENCE_S
    ) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(lambda job_id: self.final(job_id, tenant, patience_s), job_ids))

    def neverdrop(self, tenant: str | None = None, transport: httpx.BaseTransport | None = None) -> Client:
        """The client of this repository, as this tenant."""
        auth = None if self.is_local else SigV4()
        return Client(self.api, auth=auth, headers=_as(tenant), transport=transport)

    # --- AWS ---------------------------------------------------------------------------------------------------

    def client(self, service: str) -> Any:
        """For services of the stack itself: its queues, tables, topics and buckets."""
        if self.aws is None:
            return boto3.client(service)  # type: ignore[call-overload]
        return boto3.client(  # type: ignore[call-overload]
            service, endpoint_url=self.aws, region_name="us-east-1", aws_access_key_id="test",
            aws_secret_access_key="test",
        )  # fmt: skip

    @cached_property
    def sqs(self) -> Any:
        return self.client("sqs")

    def letters(self, queue: str = "WorkDlqUrl") -> list[dict[str, Any]]:
        """What lies in a dead-letter queue: attributes as text, the envelope as `body`. They stay there."""
        found: dict[str, dict[str, Any]] = {}
        while True:
            messages = self.sqs.receive_message(
                QueueUrl=self.outputs[queue], MaxNumberOfMessages=10, MessageAttributeNames=["All"], VisibilityTimeout=5
            ).get("Messages", [])
            if all(message["MessageId"] in found for message in messages):  # the first may be visible again
                return list(found.values())
            for message in messages:
                told = message.get("MessageAttributes", {}).items()
                attributes = {name: value["StringValue"] for name, value in told}
                found[message["MessageId"]] = attributes | {"body": json.loads(message["Body"])}

    def letter_about(self, job_id: str, queue: str = "WorkDlqUrl") -> dict[str, Any]:
        """The only one, as soon as nobody else has it in hand."""
        found = eventually(lambda: [one for one in self.letters(queue) if one.get("job_id") == job_id], bool)
        assert len(found) == 1, found
        return found[0]

    def record(self, job_id: str) -> dict[str, Any]:
        """The item as it stands in the Jobs table."""
        answer = self.client("dynamodb").get_item(
            TableName=self.outputs["JobsTableName"], Key={"pk": {"S": job_id}, "sk": {"S": "job"}}, ConsistentRead=True
        )
        item: dict[str, Any] = answer["Item"]
        return item

    @property
    def now(self) -> datetime:
        """By the stack's clock, which tests may have moved on."""
        if not self.is_local:
            return datetime.now(UTC)
        return datetime.fromisoformat(self.control("GET", "clock")["now"]).astimezone(UTC)

    # --- local controls ------------------------------------------------------------------------------------------

    def control(self, method: str, what: str, body: Any = None) -> Any:
        answer = self.request(method, f"/_local/{what}", None if body is None else json.dumps(body).encode())
        assert answer.status == 200, answer
        return answer.json()

    def advance(self, seconds: float) -> None:
        self.control("POST", "clock", {"advance_seconds": seconds})

    def leap(self, seconds: float) -> None:
        """Skip between two invocations, if there is such a moment: else who has just begun meets its deadline."""
        self.control("POST", "clock", {"advance_seconds": seconds, "patience_s": 20})

    def answer_after(self, seconds: float, *functions: str) -> None:
        """Skip so far under those who wait for the model, when nobody else is at work, who might meet his deadline."""
        eventually(
            lambda: self.control("GET", "invocations")["running"],
            lambda running: not any(ids for function, ids in running.items() if function not in functions),
        )
        self.advance(seconds)

    def script(self, *rules: Mapping[str, Any]) -> None:
        assert self.model is not None
        answer = self.request("POST", self.model + "/_script", json.dumps(rules).encode())
        assert answer.status == 200, answer

    def model_calls(self, containing: str = "") -> list[dict[str, Any]]:
        assert self.model is not None
        calls: list[dict[str, Any]] = self.get(self.model + "/_calls").json()
        return [call for call in calls if containing in call["prompt"]]

    @property
    def subscribed(self) -> Subscription:
        return Subscription(self)


class Subscription:
    """A queue of the test's own on `job-events`: what every later consumer is."""

    def __init__(self, target: Target) -> None:
        self._sqs, self._sns = target.client("sqs"), target.client("sns")
        name = f"neverdrop-test-{uuid.uuid4().hex[:12]}"
        self._url = self._sqs.create_queue(QueueName=name)["QueueUrl"]
        arn = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        topic = target.outputs["JobEventsTopicArn"]
        self._sqs.set_queue_attributes(QueueUrl=self._url, Attributes={"Policy": json.dumps(_allow(topic, arn))})
        self._subscription = self._sns.subscribe(
            TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"RawMessageDelivery": "true"}
        )["SubscriptionArn"]

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self._sns.unsubscribe(SubscriptionArn=self._subscription)
        self._sqs.delete_queue(QueueUrl=self._url)

    def events(self, wanted: Callable[[list[Any]], bool], patience_s: float = PATIENCE_S) -> list[dict[str, Any]]:
        """The envelopes, collected until there are those that are wanted."""
        found: list[dict[str, Any]] = []
        until = time.monotonic() + patience_s
        while not wanted(found):
            assert time.monotonic() < until, f"{len(found)} events, and not those that were wanted"
            messages = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages", [])
            for message in messages:
                found.append(json.loads(message["Body"]))
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
            if not messages:
                time.sleep(0.1)
        return found


def _allow(topic: str, queue: str) -> dict[str, Any]:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def eventually(look: Callable[[], T], wanted: Callable[[T], bool], *, patience_s: float = PATIENCE_S) -> T:
    """What is seen when it is as wanted; AssertionError with what was seen last when it takes too long."""
    until = time.monotonic() + patience_s
    while True:
        seen = look()
        if wanted(seen):
            return seen
        assert time.monotonic() < until, f"still {str(seen)[:SHOWN]} after {patience_s} s"
        time.sleep(0.1)


def deployed(url: str, name: str | None = None) -> Target:
    """The stack that `make smoke URL=…` names; its outputs come from CloudFormation. Behind an address of another
    kind, like a domain of your own, its `name` says which it is."""
    stacks = boto3.client("cloudformation").describe_stacks()["Stacks"]
    for stack in stacks:
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
        if stack["StackName"] == name if name else outputs.get("ApiUrl", "").rstrip("/") == url.rstrip("/"):
            return Target(url.rstrip("/"), outputs)
    wanted = f"is named {name}" if name else f"has the output ApiUrl = {url}"
    raise LookupError(f"no stack of this account and region {wanted}")


class LocalStack:
    """`python -m local run` as its user starts it, in this repository or in `home`, which is like it."""

    def __init__(self, *arguments: str, home: Path = ROOT, environment: Mapping[str, str] = os.environ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "local", "run", *arguments], cwd=home, env=environment, stdout=subprocess.PIPE,
            stderr=None if os.environ.get("NEVERDROP_SHOW_LOGS") else subprocess.DEVNULL, text=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def ready(self) -> Target:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the local stack ended with {self._process.wait(60)} before it was ready"
        said = json.loads(line)
        assert said["ready"] is True
        return Target(said["api"], said["outputs"], said["aws"], said["model"])

    def end(self) -> int:
        self._process.terminate()
        try:
            return self._process.wait(90)
        finally:
            self._process.kill()
            assert self._process.stdout is not None
            self._process.stdout.close()


def _as(tenant: str | None) -> dict[str, str]:
    return {"x-local-tenant": tenant} if tenant else {}


@cache
def _session() -> boto3.Session:
    return boto3.Session()


def signature(method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with which a request comes in: signed by the credentials that boto3 finds."""
    session = _session()
    request = AWSRequest(method, url, data=body, headers=dict(headers))
    credentials = session.get_credentials()
    assert credentials is not None, "no AWS credentials to sign with"
    SigV4Auth(credentials, "execute-api", session.region_name or "us-east-1").add_auth(request)
    return dict(request.headers.items())
