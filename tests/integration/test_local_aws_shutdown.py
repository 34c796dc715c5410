"""Stopping the server ends what it started, whatever is under way."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from moto.dynamodb.models.table import Table

from local.aws.server import AwsServer
from tests.integration.local_aws import Aws, serving


def test_stop_leaves_no_thread_and_gives_moto_back():
    before, stock = set(threading.enumerate()), Table.query
    with serving() as aws:
        aws.queue()
        assert Table.query is not stock
    assert set(threading.enumerate()) == before
    assert Table.query is stock


def test_stop_ends_a_long_poll():
    server = AwsServer(0)
    server.start()
    aws = Aws(server)
    url = aws.queue()
    with ThreadPoolExecutor(1) as pool:
        receiving = pool.submit(aws.client("sqs").receive_message, QueueUrl=url, WaitTimeSeconds=20)
        time.sleep(0.1)
        started = time.monotonic()
        server.stop()
        receiving.exception(5)
        assert time.monotonic() - started < 3
    aws.close()


def test_a_new_server_starts_empty():
    with serving() as aws:
        aws.queue("kept")
    with serving() as aws:
        assert "QueueUrls" not in aws.client("sqs").list_queues()
