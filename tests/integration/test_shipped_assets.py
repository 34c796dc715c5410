"""What ships runs a job by itself, with nothing else on the path but boto3; and no function imports what is heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from local.aws.server import AwsServer
from local.model.server import ModelServer
from local.stack.provision import provision
from local.stack.stack import Stack
from local.stack.template import Template

HERE = Path(__file__).parent
ROLES = (
    "accept", "query", "control", "webhooks", "ingest", "dispatch", "worker", "branch", "collect", "ended", "deliver",
    "sweep",
)  # fmt: skip
RUNTIME = ("boto3", "botocore", "s3transfer", "urllib3", "jmespath", "dateutil", "six")  # what Lambda brings
HEAVY = ("pydantic", "aws_xray_sdk", "jsonschema", "opentelemetry", "requests", "moto", "aws_cdk", "yaml", "numpy")
MODULES_MAX = 550  # the sweep, the largest, has 544 on Python 3.11 with boto3; the rest of them is ours to keep small


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The unpacked assets, and a folder with boto3 and what it needs, as the Lambda runtime has it."""
    from infra.toolchain import use_bundled_node

    use_bundled_node()  # before anything imports the CDK
    from infra.packaging import build_code, build_layer

    code, layer, runtime = (tmp_path_factory.mktemp(name) for name in ("code", "layer", "runtime"))
    build_code(code)
    build_layer(layer)
    for name in RUNTIME:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        found = Path(spec.origin)
        source = found.parent if found.name == "__init__.py" else found
        (runtime / source.name).symlink_to(source)
    return [str(code), str(layer / "python"), str(runtime)]


@pytest.fixture
def stack(synthesized: Template) -> Iterator[tuple[Stack, str]]:
    server = AwsServer(0)
    server.start()
    try:
        yield provision(synthesized, server.url), server.url
    finally:
        server.stop()


def alone(*arguments: str, given: str = "") -> Any:
    """A Python without site-packages, without our environment and without our folder."""
    run = subprocess.run(
        [sys.executable, "-I", "-S", *arguments], input=given, capture_output=True, text=True, timeout=600,
        check=False, cwd="/", env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def environments(stack: Stack, aws: str, model: str) -> dict[str, dict[str, str]]:
    found = {}
    for function in stack.of_type("AWS::Lambda::Function"):
        role = function.properties["Handler"].split(".")[2]
        found[role] = {
            **function.properties["Environment"]["Variables"],
            "AWS_ENDPOINT_URL": aws,
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": model,
            "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }
    return found


def test_the_unpacked_assets_run_a_job_with_nothing_but_boto3(stack: tuple[Stack, str], path: list[str]) -> None:
    provisioned, aws = stack
    with ModelServer() as model:
        given = {"path": path, "environments": environments(provisioned, aws, model.url)}
        told = alone(str(HERE / "shipped_job.py"), given=json.dumps(given))
    assert told["worked"] == {"batchItemFailures": []}
    assert told["job"]["status"] == "COMPLETED"
    assert told["job"]["handed_over"] is True
    assert set(told["result"]) == {"summary", "participants", "action_items"}
    foreign = [file for file in told["files"] if "site-packages" in file and not _of_the_runtime(file)]
    assert foreign == []


def _of_the_runtime(file: str) -> bool:
    return any(f"site-packages/{name}" in file for name in RUNTIME)


@pytest.mark.parametrize("role", ROLES)
def test_a_function_imports_nothing_heavy_and_no_more_modules_than_its_budget(role: str, path: list[str]) -> None:
    program = (
        f"import json, sys; sys.path[:0] = {path!r}; import lambdas.handlers.{role}\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    modules: list[str] = alone("-c", program)
    packages = {name.partition(".")[0] for name in modules}
    assert not packages & set(HEAVY)
    assert len(modules) <= MODULES_MAX
