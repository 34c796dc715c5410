"""AWS clients as this project wants them, and what their errors mean to a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
)

from lambdas.adapters.single_call import SingleCall
from lambdas.core.ports import Unavailable

# Errors before a request left the house: whatever it asked for was certainly not done.
NOTHING_SENT = (ConnectTimeoutError, EndpointConnectionError, NoCredentialsError, NoRegionError)

# What AWS says to who asks too much.
THROTTLES = frozenset(
    {
        "ExecutionLimitExceeded",  # as many executions run as the account may have
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "ThrottlingException",
        "Throttling",
        "TooManyRequestsException",
    }
)

POOL = 16  # a batch of ten in threads, and some

# Our stores: short waits, three attempts in all. Every write is made so that a repeat of it is harmless.
_STORES = Config(
    connect_timeout=2,
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=POOL,
    signature_version="v4",  # for presigned URLs too: boto3 makes older ones for S3 in us-east-1
    s3={"addressing_style": "virtual"},  # else presigned URLs of any region lead to us-east-1, which redirects them
)


# The door has ten seconds in all, and at worst two stores in a row that stay silent: it must still say what it knows.
_DOOR = _STORES.merge(
    Config(connect_timeout=1, read_timeout=1.5, retries={"mode": "standard", "total_max_attempts": 2})
)


@cache
def client(service: str, *, door: bool = False) -> Any:
    """One client per service and execution environment; boto3 clients may be shared by threads."""
    return boto3.client(service, config=_DOOR if door else _STORES)  # type: ignore[call-overload]


def brief_client(service: str) -> Any:
    """One attempt, over in about two seconds at worst: for what must not hold up who asks, and may fail."""
    config = Config(connect_timeout=1, read_timeout=1, retries={"total_max_attempts": 1}, max_pool_connections=POOL)
    return boto3.client(service, config=config)  # type: ignore[call-overload]


def single_attempt_client(service: str, read_timeout_s: int) -> Any:
    """One HTTP attempt per call: the SDK must not repeat what leaves the house."""
    config = Config(connect_timeout=3, read_timeout=read_timeout_s, retries={"total_max_attempts": 1})
    return boto3.client(service, config=config)  # type: ignore[call-overload]


def model_client(total_s: int) -> Any:
    """Bedrock: one HTTP attempt per call, over in `total_s` seconds whatever the provider does, on a connection of its
    own: the SDK must not repeat what costs money, nor wait on a connection that died while this process was frozen."""
    found = single_attempt_client("bedrock-runtime", total_s)
    found.meta.events.register("before-send", SingleCall(total_s))
    return found


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def as_unavailable(what: str) -> Iterator[None]:
    """Turns what boto3 raises into Unavailable, and tells whether the call may have had its effect all the same."""
    try:
        yield
    except ClientError as error:
        unknown, throttled = _may_have_happened(error), code_of(error) in THROTTLES
        raise Unavailable(f"{what}: {error}", unknown=unknown, throttled=throttled) from error
    except (BotoCoreError, HTTPClientError) as error:
        raise Unavailable(f"{what}: {error}", unknown=True) from error


def _may_have_happened(error: ClientError) -> bool:
    """A refusal is certain only when it answered the first attempt: an earlier one may have landed unheard."""
    metadata = error.response.get("ResponseMetadata", {})
    status, retries = metadata.get("HTTPStatusCode", 500), metadata.get("RetryAttempts", 0)
    return bool(status >= 500 or retries > 0)
