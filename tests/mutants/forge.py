"""Runs in a copy of the repository: one process that has loaded what is heavy, and forks for each session of pytest.

What a mutant could change (lambdas/, and the tests that import it) is imported by the forked process alone."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

HEAVY = (
    "pytest", "hypothesis", "hypothesis.strategies", "boto3", "botocore.signers", "aws_lambda_powertools.metrics",
    "aws_lambda_powertools.utilities.idempotency", "moto", "moto.dynamodb.models", "moto.s3.models", "moto.sqs.models",
    "moto.sns.models", "moto.ses.models", "moto.sesv2.models", "moto.secretsmanager.models", "moto.dynamodb.responses",
    "moto.s3.responses", "moto.sqs.responses", "fastjsonschema", "jsonschema",
)  # fmt: skip
CHANGED = {"lambdas", "local", "infra", "conftest"}


def serve() -> None:
    """A line of JSON for each session: its arguments, variables, seconds; answered by its exit code."""
    for name in HEAVY:
        with suppress(ImportError):
            importlib.import_module(name)
    early = [name for name in sys.modules if name.partition(".")[0] in CHANGED]
    assert not early, f"imported before the fork: {early}"
    sys.path.insert(0, os.getcwd())
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(f"{_session(asked['arguments'], asked['variables'], asked['seconds'], asked['log'])}\n")
        sys.stdout.flush()


def _session(arguments: list[str], variables: dict[str, str], seconds: int, log: str) -> int:
    """The exit code; negative: the signal that ended it."""
    child = os.fork()
    if child == 0:
        _run(arguments, variables, seconds, log)
    try:
        _, status = os.waitpid(child, 0)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # whatever it has left running
    return os.waitstatus_to_exitcode(status)


def _run(arguments: list[str], variables: dict[str, str], seconds: int, log: str) -> None:
    os.setsid()
    signal.alarm(seconds)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(written, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(variables)
    code = 70
    try:
        import pytest

        code = int(pytest.main(arguments))
    finally:
        sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    assert Path("lambdas").is_dir()
    serve()
