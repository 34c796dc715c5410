"""State machines, and the rules that hear of their executions. `local/executions` and `local/events` play them."""

from __future__ import annotations

from typing import Any

from local.executions import definition
from local.stack.errors import TemplateError
from local.stack.kinds.kind import Kind, Made, Properties, Workbench


def _machine(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    if properties.get("StateMachineType", "STANDARD") != "STANDARD":
        raise TemplateError("only state machines of the type STANDARD are played on this machine")
    text = definition.text_of(properties)
    definition.read(text)
    request: dict[str, Any] = {
        "name": properties.get("StateMachineName") or bench.name(logical_id, 80),
        "definition": text,
        "roleArn": properties["RoleArn"],
        "type": "STANDARD",
        "tags": [{"key": tag["Key"], "value": tag["Value"]} for tag in properties.get("Tags", [])],
    }
    arn = bench.client("stepfunctions").create_state_machine(**request)["stateMachineArn"]
    return Made(arn, {"Arn": arn, "Name": request["name"]})


def _rule(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    if properties.get("EventBusName", "default") != "default":
        raise TemplateError("rules of other buses than the default one are not played on this machine")
    name = properties.get("Name") or bench.name(logical_id, 64)
    return Made(name, {"Arn": bench.arn("events", f"rule/{name}")})


KINDS = (
    Kind(
        "AWS::StepFunctions::StateMachine",
        _machine,
        frozenset(
            {
                "Definition",
                "DefinitionString",
                "DefinitionSubstitutions",
                "RoleArn",
                "StateMachineName",
                "StateMachineType",
                "Tags",
                # without effect here: encryption at rest, logs, X-Ray
                "EncryptionConfiguration",
                "LoggingConfiguration",
                "TracingConfiguration",
            }
        ),
    ),
    Kind(
        "AWS::Events::Rule",
        _rule,
        frozenset({"Description", "EventBusName", "EventPattern", "Name", "State", "Tags", "Targets"}),
    ),
)
