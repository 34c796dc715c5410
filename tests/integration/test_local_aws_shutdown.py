"""Stopping the server ends what it started, whatever is under way."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from moto.dynamodb.models.table import Table

from local.aws.server import AwsServer
from tests.integration.local_aws import Aws, endless_polls, serving
from tests.integration.local_toys import eventually


def test_stop_leaves_no_thread_and_gives_moto_back():
    before, stock = set(threading.enumerate()), Table.query
    with serving() as aws:
        aws.queue()
        assert Table.query is not stock
    eventually(lambda: set(threading.enumerate()) <= before)
    assert Table.query is stock


def test_stop_ends_a_long_poll(monkeypatch):
    before = set(threading.enumerate())
    server = AwsServer(0)
    reset = server.reset

    def connections() -> list[threading.Thread]:
        return [thread for thread in set(threading.enumerate()) - before if thread.name == "connection"]

    def nobody_waits_and_reset() -> None:
        """The stores are emptied at last, which would wake who waits."""
        eventually(lambda: not connections())
        reset()

    server.start()
    monkeypatch.setattr(server, "reset", nobody_waits_and_reset)
    aws = Aws(server)
    url = aws.queue()
    with endless_polls() as waits, ThreadPoolExecutor(1) as pool:
        receiving = pool.submit(aws.client("sqs").receive_message, QueueUrl=url, WaitTimeSeconds=20)
        assert waits.wait(60)
        server.stop()
        assert receiving.exception(120) is not None or receiving.result() is not None
    aws.close()


def test_a_new_server_starts_empty():
    with serving() as aws:
        aws.queue("kept")
    with serving() as aws:
        assert "QueueUrls" not in aws.client("sqs").list_queues()
