"""What the synthesized stack in `cdk.out` asks of an account."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Needs:
    """Region, model and concurrency of the stack, and the bootstrap that its deployment relies on.

    `max_concurrency`: what all its queues together may have running at once."""

    stack: str
    region: str
    model_id: str
    max_concurrency: int
    bootstrap_version: int
    bootstrap_parameter: str

    @property
    def foundation_model(self) -> str:
        """The model behind an inference profile: the profile's id without its geography."""
        prefix, _, rest = self.model_id.partition(".")
        return rest if self.is_profile else f"{prefix}.{rest}"

    @property
    def is_profile(self) -> bool:
        return self.model_id.count(".") >= 2 and len(self.model_id.split(".")[0]) <= len("us-gov")

    @property
    def model_words(self) -> str:
        """The model as quotas spell it, like "nova lite"."""
        name = self.foundation_model.split(".", 1)[1].split(":")[0]
        words = [word for word in name.split("-") if not (word.isdigit() and len(word) == 8)]
        return " ".join(words[:-1] if words[-1][:1] == "v" and words[-1][1:].isdigit() else words)


def read(cdk_out: Path) -> Needs | None:
    """The needs of the stack in this folder, or None if nothing was synthesized there."""
    try:
        artifacts = json.loads((cdk_out / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    except (OSError, ValueError, KeyError):
        return None
    name, stack = next((n, a) for n, a in artifacts.items() if a["type"] == "aws:cloudformation:stack")
    properties = stack["properties"]
    template = json.loads((cdk_out / properties["templateFile"]).read_text(encoding="utf-8"))
    resources = template["Resources"].values()
    functions = [one for one in resources if one["Type"] == "AWS::Lambda::Function"]
    return Needs(
        stack=name,
        region=stack["environment"].rsplit("/", 1)[-1],
        model_id=_model(functions),
        max_concurrency=sum(_concurrency(one) for one in resources),
        bootstrap_version=properties.get("requiresBootstrapStackVersion", 6),
        bootstrap_parameter=properties.get("bootstrapStackVersionSsmParameter", "/cdk-bootstrap/hnb659fds/version"),
    )


def _model(functions: list[dict[str, Any]]) -> str:
    for function in functions:
        variables = function["Properties"].get("Environment", {}).get("Variables", {})
        if "MODEL_ID" in variables:
            return str(variables["MODEL_ID"])
    return ""


def _concurrency(resource: dict[str, Any]) -> int:
    return int(resource.get("Properties", {}).get("ScalingConfig", {}).get("MaximumConcurrency", 0))
