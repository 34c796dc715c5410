"""Turns settings into the cloud assembly of one stack, and refuses one that breaks the delivery contract."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from aws_cdk import App, Environment
from aws_cdk.cx_api import CloudAssembly

from infra.configuration import load
from infra.delivery.contract import check
from infra.stack import Neverdrop


class DeliveryError(Exception):
    """The stack breaks the delivery contract. Says which resources do, and what to do about each."""


def build(context: Mapping[str, Any], outdir: str, priced: Container[str] | None = None) -> App:
    """The app with its one stack; models without a price in `priced` are refused. Raises SettingsError."""
    app = App(context=dict(context), outdir=outdir, analytics_reporting=False)
    # what the CLI was told (`-c env=dev`) is already merged over cdk.json in there
    settings = load(app.node.get_all_context(), os.environ.get("CDK_DEFAULT_REGION"), priced)
    Neverdrop(
        app,
        f"neverdrop-{settings.env}",
        settings=settings,
        tags={"application": "neverdrop", "environment": settings.env},
        env=Environment(account=os.environ.get("CDK_DEFAULT_ACCOUNT"), region=settings.region),
    )
    return app


def synthesize(context: Mapping[str, Any], outdir: str, priced: Container[str] | None = None) -> CloudAssembly:
    """Write the assembly to `outdir`. Raises SettingsError, and DeliveryError for a stack that would lose messages."""
    assembly = build(context, outdir, priced).synth()
    folder = Path(assembly.directory)
    refuse_breaches(folder, {stack.stack_name: folder / stack.template_file for stack in assembly.stacks})
    return assembly


def refuse_breaches(folder: Path, templates: Mapping[str, Path]) -> None:
    """Check what was written, stack by stack. What is refused keeps no manifest: nobody deploys it from its folder."""
    for stack, path in templates.items():
        findings = check(json.loads(path.read_text(encoding="utf-8"))).findings
        if findings:
            (folder / "manifest.json").unlink()
            raise DeliveryError("\n  * ".join([f"{stack} breaks the delivery contract:", *map(str, findings)]))
