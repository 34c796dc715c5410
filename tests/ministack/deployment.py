"""The stack in the emulator, as a user brings it to AWS: bootstrap, deploy, and a user who may call it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3

from tests.e2e.sources import DECLARED
from tests.ministack.emulator import ACCOUNT, REGION, Emulator
from tests.ministack.processes import run

# each new environment of a function is a process of its own here, and a small machine cannot start fifty at once
ACCEPT_AT_ONCE = 4
_SETTINGS = {
    "accept_timeout_s": "29",  # a first answer pays for its process to start
    "sources": json.dumps({name: {**source, "tenant": ACCOUNT} for name, source in DECLARED.items()}),
}


def deploy(emulator: Emulator, cdk: Sequence[str], work: Path, root: Path) -> tuple[str, str]:
    """The address of the API, and the stack's name."""
    environment = emulator.environment()
    out = work / "outputs.json"
    run(*cdk, "bootstrap", f"aws://{ACCOUNT}/{REGION}", env=environment, cwd=work, log=work / "1-bootstrap.log")
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    how = ("--require-approval", "never", "--progress", "events", "--output", work / "cdk.out", "--outputs-file", out)
    app = ("--app", f"{sys.executable} -m tests.ministack.app")
    run(*cdk, "deploy", *app, *settings, *how, env=environment, cwd=root, log=work / "2-deploy.log")
    ((stack, outputs),) = json.loads(out.read_text("utf-8")).items()
    _limit(emulator)
    api = outputs["ApiUrl"].split("//")[1].split(".")[0]
    # not ApiUrl: few resolvers know what lies below `localhost`
    return f"{emulator.url}/_aws/execute-api/{api}/$default", stack


def client(emulator: Emulator, service: str) -> Any:
    """With the key that may do everything."""
    return boto3.client(  # type: ignore[call-overload]
        service, endpoint_url=emulator.url, verify=str(emulator.authority), region_name=REGION,
        aws_access_key_id="test", aws_secret_access_key="test",
    )  # fmt: skip


def operator(emulator: Emulator) -> tuple[str, str]:
    """Key and secret of a new administrator. Signatures of a user are verified, those of `test` are not."""
    iam = client(emulator, "iam")
    iam.create_user(UserName="operator")
    iam.attach_user_policy(UserName="operator", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
    key = iam.create_access_key(UserName="operator")["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


def _limit(emulator: Emulator) -> None:
    lambda_ = client(emulator, "lambda")
    for page in lambda_.get_paginator("list_functions").paginate():
        for function in page["Functions"]:
            if function["Handler"] == "lambdas.handlers.accept.handler":
                name = function["FunctionName"]
                lambda_.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=ACCEPT_AT_ONCE)
