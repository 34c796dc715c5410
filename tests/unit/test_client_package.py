"""What the client's package asks for is what it was tried with, and nothing that it cannot do its work with."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from standardwebhooks import Webhook

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ASKED = [Requirement(one) for one in (*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["sigv4"])]
PINS = dict(
    line.split("==", 1)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if "==" in line and not line.startswith("#")
)
# The oldest that the client's tests pass with: websockets 14 knows no `proxy`, standardwebhooks 1.0 no `json_parse`.
OLDEST = {"httpx": "0.27", "websockets": "15", "standardwebhooks": "1.1", "botocore": "1.34"}


@pytest.mark.parametrize("asked", ASKED, ids=lambda one: one.name)
def test_each_requirement_begins_with_the_oldest_that_was_tried_and_has_what_is_pinned_here(asked: Requirement) -> None:
    pinned = Version(PINS[asked.name].split(" ")[0].split(";")[0])
    assert asked.specifier.contains(pinned)
    assert [one.version for one in asked.specifier if one.operator == ">="] == [OLDEST[asked.name]]


def test_a_webhook_is_verified_without_being_parsed_first() -> None:
    assert "json_parse" in inspect.signature(Webhook.verify).parameters
