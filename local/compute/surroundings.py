"""What an execution environment finds around it: the services of the runtime, and its environment variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from local.aws import connections_api
from local.aws.calls import Callers
from local.clock import VirtualClock
from local.compute.definition import Definition
from local.compute.invocation import Invocation
from local.compute.processes import Processes


@dataclass(frozen=True)
class Surroundings:
    """What all environments of a runtime share."""

    processes: Processes
    callers: Callers
    clock: VirtualClock
    aws_url: str
    model_url: str
    code: Path
    region: str
    write_log: Callable[[str, str, str], None]
    """(function, request id, line)"""
    record: Callable[[Invocation], object]
    """Hears of each invocation that has begun and is over, before anybody can see that it is."""


def variables(function: Definition, around: Surroundings, access_key_id: str, log_stream: str) -> dict[str, str]:
    """The function's own, what Lambda sets, and the addresses of what stands in for AWS; nothing else."""
    return {
        **function.environment,
        "AWS_REGION": around.region,
        "AWS_DEFAULT_REGION": around.region,
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_SESSION_TOKEN": "local",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group,
        "AWS_LAMBDA_LOG_STREAM_NAME": log_stream,
        "_HANDLER": function.handler,
        "LAMBDA_TASK_ROOT": str(around.code),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "AWS_ENDPOINT_URL": around.aws_url,
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": around.model_url,
        **connections_api.here(function.environment, around.aws_url),
        "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
        "AWS_EC2_METADATA_DISABLED": "true",
        "NEVERDROP_LOCAL": "1",  # receivers of webhooks may be on loopback, without TLS; no template ever says so
        "AWS_CONFIG_FILE": "/dev/null",  # the developer's own profile must not leak in
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "NO_PROXY": "*",  # and macOS is not asked for its proxies, which a forked process must not do
    }
