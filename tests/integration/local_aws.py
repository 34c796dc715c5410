"""The AWS API on this machine for one test module, and boto3 clients that talk to it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.config import Config

from local.aws.lock import MESSAGES
from local.aws.patches import sqs
from local.aws.server import AwsServer, Gate

ONE_TRY = Config(
    retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}, connect_timeout=60, read_timeout=300
)


class Aws:
    """A running server and its clients; a client per access key id."""

    def __init__(self, server: AwsServer) -> None:
        self.server = server
        self._clients: dict[tuple[str, str], Any] = {}

    def client(self, service: str, key: str = "developer") -> Any:
        if (service, key) not in self._clients:
            create: Any = boto3.client
            self._clients[service, key] = create(
                service,
                endpoint_url=self.server.url,
                region_name="us-east-1",
                aws_access_key_id=key,
                aws_secret_access_key="secret",
                config=ONE_TRY,
            )
        return self._clients[service, key]

    @contextmanager
    def unchecked(self, service: str) -> Iterator[Any]:
        """A client that sends what the SDK would refuse by itself, as another SDK may."""
        create: Any = boto3.client
        client = create(
            service,
            endpoint_url=self.server.url,
            region_name="us-east-1",
            aws_access_key_id="developer",
            aws_secret_access_key="secret",
            config=ONE_TRY.merge(Config(parameter_validation=False)),
        )
        try:
            yield client
        finally:
            client.close()

    def table(self, name: str = "things", *, sort_key: bool = False, **more: Any) -> str:
        """A table with the key `pk` (and `sk`), both strings."""
        keys = {"pk": "HASH"} | ({"sk": "RANGE"} if sort_key else {})
        attributes = {*keys, *more.pop("strings", ())}
        self.client("dynamodb").create_table(
            TableName=name,
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
            AttributeDefinitions=[{"AttributeName": one, "AttributeType": "S"} for one in sorted(attributes)],
            BillingMode="PAY_PER_REQUEST",
            **more,
        )
        return name

    def queue(self, name: str = "letters", **attributes: str) -> str:
        return str(self.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


@contextmanager
def serving(*gates: Gate) -> Iterator[Aws]:
    """A server on a free port with these gates, ended afterwards."""
    server = AwsServer(0)
    server.gates.extend(gates)
    server.start()
    aws = Aws(server)
    try:
        yield aws
    finally:
        aws.close()
        server.stop()


@contextmanager
def endless_polls() -> Iterator[threading.Event]:
    """Within it, a long poll ends when it is told to, and does not look by itself meanwhile. Set when one waits."""
    waits, wait = threading.Event(), MESSAGES.wait

    def wait_long(_: float | None = None) -> bool:
        waits.set()
        return wait(300)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MESSAGES, "wait", wait_long)
        patch.setattr(sqs, "time", SimpleNamespace(monotonic=lambda: 0.0))
        yield waits


def index(name: str, hash_key: str, range_key: str | None = None, projection: str = "KEYS_ONLY") -> dict[str, Any]:
    """A secondary index as CreateTable takes it."""
    keys = {hash_key: "HASH"} | ({range_key: "RANGE"} if range_key else {})
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
        "Projection": {"ProjectionType": projection},
    }


def error_code(error: Any) -> str:
    """The code of a botocore ClientError."""
    return str(error.response["Error"]["Code"])


def sent_and_answered(port: int, sent: bytes) -> bytes:
    """What comes back until the other side hangs up, on a connection that ends with these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=300) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))
