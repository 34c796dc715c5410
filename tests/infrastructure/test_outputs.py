"""What the stack tells its operator."""

from __future__ import annotations

import json
from typing import Any

from tests.infrastructure.templates import Template

NAMES = {
    "ApiUrl", "WebSocketUrl", "JobsTableName", "AnswersTableName", "ConnectionsTableName", "PushDlqUrl",
    "WorkQueueUrl", "WorkDlqUrl", "DispatchDlqUrl", "SweepDlqUrl",
    "RedriveDlqUrl", "UrgentQueueUrl", "UrgentDlqUrl", "InboxQueueUrl", "InboxDlqUrl", "JobEventsTopicArn",
    "DeliveriesQueueUrl", "DeliveriesDlqUrl", "EndedDlqUrl",
    "WebhookSecretArn", "AlertsTopicArn", "UploadsBucketName", "InputsBucketName", "ResultsBucketName",
}  # fmt: skip
LINKS = {
    "JobsTableConsole", "AnswersTableConsole", "ConnectionsTableConsole", "PushDlqConsole", "WorkConsole",
    "WorkDlqConsole", "DispatchDlqConsole", "UrgentConsole",
    "DeliveriesConsole", "DeliveriesDlqConsole",
    "UrgentDlqConsole", "InboxConsole", "InboxDlqConsole", "SweepDlqConsole", "RedriveDlqConsole", "JobEventsConsole",
    "EndedDlqConsole", "AlertsConsole", "UploadsBucketConsole", "InputsBucketConsole", "ResultsBucketConsole",
}  # fmt: skip


def resolved(value: Any) -> str:
    """An intrinsic as CloudFormation would resolve it, for a queue's URL of a made-up account."""
    match value:
        case str():
            return value
        case {"Ref": str(name)}:
            return f"https://sqs.us-east-1.amazonaws.com/111122223333/{name}"
        case {"Fn::Join": [str(between), list(parts)]}:
            return between.join(resolved(part) for part in parts)
        case {"Fn::Select": [index, {"Fn::Split": [str(between), whole]}]}:
            return resolved(whole).split(between)[int(index)]
    raise AssertionError(json.dumps(value))


def of_workflows(template: Template, what: str) -> dict[str, Any]:
    """By the state machine that each belongs to."""
    machines = set(template.of_type("StepFunctions::StateMachine"))
    outputs = {name: one["Value"] for name, one in template.outputs.items() if name.startswith("Workflow")}
    return {
        machine: value
        for name, value in outputs.items()
        if name.endswith(what)
        for machine in machines
        if json.dumps({"Ref": machine}) in json.dumps(value)
    }


def test_the_outputs_are_names_and_links_of_everything_an_operator_opens(prod: Template) -> None:
    assert {name for name in prod.outputs if not name.startswith("Workflow")} == NAMES | LINKS


def test_each_state_machine_has_its_arn_and_its_link_among_them(prod: Template) -> None:
    machines = set(prod.of_type("StepFunctions::StateMachine"))
    assert machines
    assert of_workflows(prod, "Arn") == {machine: {"Ref": machine} for machine in machines}
    links = of_workflows(prod, "Console")
    assert links.keys() == machines
    for link in links.values():
        assert link["Fn::Join"][1][0] == "https://us-east-1.console.aws.amazon.com/states/home#/statemachines/view/"


def test_links_open_the_console_of_the_region(prod: Template) -> None:
    for link in LINKS:
        assert json.dumps(prod.outputs[link]["Value"]).count("https://us-east-1.console.aws.amazon.com/") == 1


def test_a_queue_link_carries_its_url_escaped(prod: Template) -> None:
    queue = prod.outputs["WorkDlqUrl"]["Value"]["Ref"]
    assert resolved(prod.outputs["WorkDlqConsole"]["Value"]) == (
        "https://us-east-1.console.aws.amazon.com/sqs/v3/home#/queues/"
        f"https%3A%2F%2Fsqs.us-east-1.amazonaws.com%2F111122223333%2F{queue}"
    )
