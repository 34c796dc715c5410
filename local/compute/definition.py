"""What the template says about a function, as the parts of Lambda need it; what AWS would refuse is refused here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.stack.errors import TemplateError
from local.stack.stack import Resource, Stack

ACCOUNT_LIMIT = 10  # concurrent executions in a new account
_RESERVED = frozenset(
    {
        "AWS_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_LAMBDA_RUNTIME_API",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "LAMBDA_RUNTIME_DIR",
        "LAMBDA_TASK_ROOT",
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
    }
)
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]+")
_ENVIRONMENT_LIMIT_BYTES = 4096


@dataclass(frozen=True)
class Definition:
    """One function of the stack."""

    role: str
    """The noun in its handler: worker for lambdas.handlers.worker.handler."""
    logical_id: str
    name: str
    arn: str
    handler: str
    runtime: str
    execution_role_arn: str
    environment: dict[str, str]
    timeout_s: float
    memory_mb: int
    log_group: str
    reserved_concurrency: int | None


def definitions(stack: Stack) -> list[Definition]:
    """Every Python function of the stack. TemplateError for what Lambda would not create."""
    found: dict[str, Definition] = {}
    for resource in stack.of_type("AWS::Lambda::Function"):
        if not str(resource.properties.get("Runtime", "")).startswith("python"):
            continue  # CDK's own custom resources, whose work the provisioning does
        definition = _define(resource)
        if definition.role in found:
            raise TemplateError(f"two functions have the role {definition.role}").at(definition.logical_id)
        found[definition.role] = definition
    return list(found.values())


def _define(resource: Resource) -> Definition:
    properties = resource.properties
    handler = properties["Handler"]
    name = resource.ref
    environment = properties.get("Environment", {}).get("Variables", {})
    _check_environment(resource.logical_id, environment)
    timeout, memory = int(properties.get("Timeout", 3)), int(properties.get("MemorySize", 128))
    if not 1 <= timeout <= 900 or not 128 <= memory <= 10_240:
        raise TemplateError("timeout 1 to 900 s and memory 128 to 10240 MB are possible").at(resource.logical_id)
    reserved = properties.get("ReservedConcurrentExecutions")
    return Definition(
        role=handler.split(".")[-2],
        logical_id=resource.logical_id,
        name=name,
        arn=resource.attributes.get("Arn") or name,
        handler=handler,
        runtime=properties["Runtime"],
        execution_role_arn=properties.get("Role", ""),
        environment={key: str(value) for key, value in environment.items()},
        timeout_s=timeout,
        memory_mb=memory,
        log_group=properties.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{name}"),
        reserved_concurrency=None if reserved is None else int(reserved),
    )


def _check_environment(function: str, environment: Mapping[str, Any]) -> None:
    for name, value in environment.items():
        if name in _RESERVED or not _NAME.fullmatch(name):
            raise TemplateError(f"the environment variable {name} is reserved or no valid name").at(function)
        if not isinstance(value, str):
            raise TemplateError(f"the environment variable {name} is no string: {value!r}").at(function)
    size = sum(len(name.encode()) + len(value.encode()) for name, value in environment.items())
    if size > _ENVIRONMENT_LIMIT_BYTES:
        raise TemplateError(f"environment variables of {size} bytes; {_ENVIRONMENT_LIMIT_BYTES} fit").at(function)
