"""Turns settings into the cloud assembly of one stack."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from typing import Any

from aws_cdk import App, Environment
from aws_cdk.cx_api import CloudAssembly

from infra.configuration import load
from infra.stack import Neverdrop


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
    """Write the assembly to `outdir`. Raises SettingsError."""
    return build(context, outdir, priced).synth()
