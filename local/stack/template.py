"""Loads what `cdk synth` wrote: one stack's template, its place, and where its assets lie."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.stack.errors import TemplateError
from local.stack.intrinsics import Resolver, names_in
from local.stack.place import ACCOUNT, PARTITION, REGION

_SSM_VALUES = {"/cdk-bootstrap/hnb659fds/version": "30"}
"""What parameters that name an SSM parameter find there; `cdk bootstrap` wrote it on AWS."""

_KNOWN_SECTIONS = {
    "AWSTemplateFormatVersion",
    "Conditions",
    "Description",
    "Mappings",
    "Metadata",
    "Outputs",
    "Parameters",
    "Resources",
    "Rules",  # assertions about parameters that only a deployment gets
}


@dataclass(frozen=True)
class Template:
    """A synthesized stack, before anything of it exists."""

    name: str
    resources: Mapping[str, dict[str, Any]]
    """By logical id, in the template's own form; resources whose condition is false are left out."""
    outputs: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The values of the template's and CloudFormation's own (AWS::Region, …) parameters."""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    mappings: Mapping[str, Any] = field(default_factory=dict)
    assets: Mapping[str, Path] = field(default_factory=dict)
    """What the asset with that key in CDK's bucket is made of: a folder, or a file."""
    region: str = REGION
    account: str = ACCOUNT

    def order(self) -> list[str]:
        """Logical ids, each after everything it refers to. TemplateError names the circle if there is one."""
        done: list[str] = []
        seen: set[str] = set()

        def visit(logical_id: str, above: tuple[str, ...]) -> None:
            if logical_id in above:
                circle = [*above[above.index(logical_id) :], logical_id]
                raise TemplateError(f"circular dependency: {' -> '.join(circle)}")
            if logical_id in seen:
                return
            for needed in sorted(self._needs(logical_id)):
                visit(needed, (*above, logical_id))
            seen.add(logical_id)
            done.append(logical_id)

        for logical_id in sorted(self.resources, key=self._may_come_late):
            visit(logical_id, ())
        return done

    def _may_come_late(self, logical_id: str) -> bool:
        """False for what needs something that it does not refer to, and had better name in `DependsOn`: CloudFormation
        may create it before that, so it comes first here. A bucket's notifications need the queue's policy."""
        return "NotificationConfiguration" not in self.resources[logical_id].get("Properties", {})

    def _needs(self, logical_id: str) -> set[str]:
        resource = self.resources[logical_id]
        depends = resource.get("DependsOn", [])
        named = {depends} if isinstance(depends, str) else set(depends)
        return (named | names_in(resource.get("Properties", {}))) & set(self.resources)


class _BeforeResources:
    """What conditions may refer to: parameters, and nothing that has yet to be created."""

    def __init__(self, document: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        self.conditions = document.get("Conditions", {})
        self.mappings = document.get("Mappings", {})
        self._parameters = parameters

    def ref(self, name: str) -> Any:
        if name not in self._parameters:
            raise TemplateError(f"a condition refers to {name}, which is no parameter")
        return self._parameters[name]

    def attribute(self, logical_id: str, name: str) -> Any:
        raise TemplateError(f"a condition refers to {logical_id}.{name}; conditions know parameters only")


def load(cdk_out: Path, parameters: Mapping[str, Any] | None = None) -> Template:
    """The one stack in a cloud assembly. `parameters` override defaults.

    TemplateError when there is none or more than one, or a parameter has no value.
    """
    manifest = json.loads((cdk_out / "manifest.json").read_text())
    stacks = {
        name: artifact
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    if len(stacks) != 1:
        raise TemplateError(f"{cdk_out} holds {len(stacks)} stacks ({', '.join(stacks)}), one was expected")
    name, artifact = next(iter(stacks.items()))
    properties = artifact["properties"]
    document = json.loads((cdk_out / properties["templateFile"]).read_text())
    region = artifact.get("environment", "").rsplit("/", 1)[-1]
    return parse(
        document,
        name=properties.get("stackName", name),
        region=REGION if region in ("", "unknown-region") else region,
        assets=_assets(cdk_out, manifest),
        parameters=parameters,
    )


def parse(
    document: Mapping[str, Any],
    *,
    name: str,
    region: str = REGION,
    assets: Mapping[str, Path] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Template:
    """A template that is in memory already."""
    unknown = set(document) - _KNOWN_SECTIONS
    if unknown:
        raise TemplateError(f"sections that are not understood: {', '.join(sorted(unknown))}")
    values = {**_pseudo_parameters(name, region), **_parameters(document, parameters or {})}
    resolver = Resolver(_BeforeResources(document, values))
    resources = {
        logical_id: resource
        for logical_id, resource in document["Resources"].items()
        if "Condition" not in resource or resolver.holds(resource["Condition"])
    }
    outputs = {
        output: value
        for output, value in document.get("Outputs", {}).items()
        if "Condition" not in value or resolver.holds(value["Condition"])
    }
    return Template(
        name=name,
        resources=resources,
        outputs=outputs,
        parameters=values,
        conditions=document.get("Conditions", {}),
        mappings=document.get("Mappings", {}),
        assets=assets or {},
        region=region,
    )


def _pseudo_parameters(name: str, region: str) -> dict[str, Any]:
    return {
        "AWS::AccountId": ACCOUNT,
        "AWS::NotificationARNs": [],
        "AWS::Partition": PARTITION,
        "AWS::Region": region,
        "AWS::StackId": f"arn:{PARTITION}:cloudformation:{region}:{ACCOUNT}:stack/{name}/local",
        "AWS::StackName": name,
        "AWS::URLSuffix": "amazonaws.com",
    }


def _parameters(document: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, parameter in document.get("Parameters", {}).items():
        value = given.get(name, parameter.get("Default"))
        if value is None:
            raise TemplateError(f"parameter {name} has no value")
        kind = parameter.get("Type", "String")
        if kind.startswith("AWS::SSM::Parameter::Value"):
            if value not in _SSM_VALUES:
                raise TemplateError(f"parameter {name}: nothing is known about the SSM parameter {value}")
            value = _SSM_VALUES[value]
        is_list = kind == "CommaDelimitedList" or kind.startswith("List<")
        values[name] = str(value).split(",") if is_list and not isinstance(value, list) else value
    return values


def _assets(cdk_out: Path, manifest: Mapping[str, Any]) -> dict[str, Path]:
    """From the asset manifests: the metadata in the template is there only when the CDK CLI ran the app."""
    found: dict[str, Path] = {}
    for artifact in manifest["artifacts"].values():
        if artifact["type"] != "cdk:asset-manifest":
            continue
        listed = json.loads((cdk_out / artifact["properties"]["file"]).read_text())
        for asset in listed.get("files", {}).values():
            for destination in asset["destinations"].values():
                found[destination["objectKey"]] = cdk_out / asset["source"]["path"]
    return found
