"""The CDK app that the CLI runs here: the stack's own, less what ministack is known not to take (gaps.py)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import app
from tests.ministack.gaps import ASKED_INSTEAD, UNKNOWN_PROPERTIES, UNKNOWN_TYPES

Resource = dict[str, Any]


def main() -> None:
    """Synthesize to where the CLI says, and fit every template."""
    app.main()
    for path in Path(os.environ["CDK_OUTDIR"]).glob("*.template.json"):
        path.write_text(json.dumps(fitted(json.loads(path.read_text("utf-8")))), "utf-8")


def fitted(template: dict[str, Any]) -> dict[str, Any]:
    """The template without what would be refused, and with the actions that are asked for instead of AWS's own."""
    kept = {name: resource for name, resource in template["Resources"].items() if not _refused(resource)}
    for resource in kept.values():
        if resource["Type"] == "AWS::IAM::Policy":
            for statement in resource["Properties"]["PolicyDocument"]["Statement"]:
                statement["Action"] = _with_those_asked_for(statement["Action"])
    return {**template, "Resources": kept}


def _refused(resource: Resource) -> bool:
    return resource["Type"] in UNKNOWN_TYPES or UNKNOWN_PROPERTIES.get(resource["Type"]) in resource["Properties"]


def _with_those_asked_for(actions: str | list[str]) -> list[str]:
    named = [actions] if isinstance(actions, str) else actions
    return [*named, *(ASKED_INSTEAD[action] for action in named if action in ASKED_INSTEAD)]


if __name__ == "__main__":
    main()
