"""The stack, synthesized once per environment without bundling, as plain dictionaries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from infra.toolchain import use_bundled_node

use_bundled_node()  # before anything imports the CDK

from tests.infrastructure.templates import Template  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
Synthesize = Callable[..., Template]


def context(**settings: Any) -> dict[str, Any]:
    """The context of cdk.json with these settings from the command line, and no bundling."""
    written = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return {**written, "aws:cdk:bundling-stacks": [], **settings}


@pytest.fixture(scope="session", autouse=True)
def _offline() -> Iterator[None]:
    """No built-in validation (a test of its own does it), no account or region from whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDK_VALIDATION", "false")
        patch.delenv("CDK_DEFAULT_ACCOUNT", raising=False)
        patch.delenv("CDK_DEFAULT_REGION", raising=False)
        yield


@pytest.fixture(scope="session")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    """Synthesizes with settings as from the command line: synthesize(env="dev", batch_size=1)."""
    from infra.synthesis import synthesize as synth

    def template(**settings: Any) -> Template:
        assembly = synth(context(**settings), str(tmp_path_factory.mktemp("cdk.out")))
        (stack,) = assembly.stacks
        return Template(json.loads(Path(stack.template_full_path).read_text(encoding="utf-8")))

    return template


@pytest.fixture(scope="session")
def prod(synthesize: Synthesize) -> Template:
    return synthesize()


@pytest.fixture(scope="session")
def foreign() -> dict[str, Any]:
    """A template of somebody else that keeps the delivery contract."""
    from ops.check_template import read

    body: dict[str, Any] = read(Path(__file__).with_name("foreign.yaml"))
    return body


@pytest.fixture(scope="session")
def dev(synthesize: Synthesize) -> Template:
    return synthesize(env="dev")
