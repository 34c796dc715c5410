"""The state machines in the template: what they may do, who may start, ask and stop them, who hears of a bad end."""

from __future__ import annotations

import json
from typing import Any

from lambdas.contracts import names, workflows
from tests.infrastructure.broken import found, put, remove, rewrite
from tests.infrastructure.templates import Resource, Template, listed, target


def machines(template: Template) -> dict[str, Resource]:
    return template.of_type("StepFunctions::StateMachine")


def definition(machine: Resource) -> dict[str, Any]:
    """As Step Functions gets it, logical ids for ARNs."""
    body: dict[str, Any] = json.loads(target(machine["Properties"]["DefinitionString"]))
    return body


def declared(value: Any) -> dict[str, str]:
    """The variable WORKFLOWS: logical ids by the workflow's type."""
    found: dict[str, str] = json.loads(target(value))
    return found


# --- state machines -----------------------------------------------------------------------------------------------


def test_every_declared_workflow_is_a_standard_state_machine(prod: Template) -> None:
    """Its name is started once, and kept for 90 days: an Express one knows no names."""
    made = declared(prod.environment("worker")[names.WORKFLOWS])
    shipped, broken = workflows.load()
    assert broken == {}
    assert made.keys() == shipped.keys()
    assert set(made.values()) == set(machines(prod))
    for type_, machine in made.items():
        assert prod.resources[machine]["Properties"]["StateMachineType"] == "STANDARD"
        body = definition(prod.resources[machine])
        assert (body["Comment"], body["TimeoutSeconds"]) == (shipped[type_].description, shipped[type_].timeout_s)


def test_who_deals_with_executions_knows_where_they_are(prod: Template) -> None:
    told = {role: prod.environment(role)[names.WORKFLOWS] for role in ("worker", "sweep", "ended", "dispatch")}
    assert len({json.dumps(one) for one in told.values()}) == 1


def test_their_tasks_are_branch_and_collect_within_their_timeouts(prod: Template) -> None:
    branch, collect = (prod.function(role) for role in ("branch", "collect"))
    for machine in machines(prod).values():
        body = definition(machine)
        inner = [inside["States"] for state in body["States"].values() for inside in state.get("Branches", ())]
        tasks = [state for states in (body["States"], *inner) for state in states.values() if state["Type"] == "Task"]
        used = {state["Resource"]: state["TimeoutSeconds"] for state in tasks}
        assert used == {prod.id_of(one): one["Properties"]["Timeout"] + 30 for one in (branch, collect)}


def test_what_is_null_in_a_definition_is_there(prod: Template) -> None:
    """CDK's own way to JSON leaves it out; without these, what branches answer or fail with would go on as the data."""
    for machine in machines(prod).values():
        text = target(machine["Properties"]["DefinitionString"])
        parallel = [state for state in definition(machine)["States"].values() if state["Type"] == "Parallel"]
        assert all(state["ResultPath"] is None for state in parallel)
        assert text.count('"ResultPath": null') >= len(parallel) + 2 * text.count('"branch":')


def test_they_may_call_two_functions_and_nothing_else(prod: Template) -> None:
    """The L2 task would permit every version of each, by a star."""
    (role,) = {one["Properties"]["RoleArn"]["Fn::GetAtt"][0] for one in machines(prod).values()}
    allowed = [
        (action, target(resource))
        for statement in prod.statements_of_role(role)
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
    ]
    functions = [prod.id_of(prod.function(name)) for name in ("branch", "collect")]
    assert sorted(allowed) == sorted(("lambda:InvokeFunction", function) for function in functions)
    (trust,) = prod.resources[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "states.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_what_a_state_machine_waits_for_neither_starts_nor_stops_one(prod: Template) -> None:
    """CloudFormation could make neither first, and a loop would have no end."""
    for role in ("branch", "collect"):
        assert not {action for action, _ in prod.permissions(role) if action.startswith(("states:", "lambda:"))}
        assert names.WORKFLOWS not in prod.environment(role)


def test_nothing_waits_for_what_waits_for_it(prod: Template) -> None:
    """Functions first, state machines then, and who starts them last."""
    for role in ("branch", "collect"):
        needed = json.dumps(prod.function(role))
        assert not any(machine in needed for machine in machines(prod))


# --- bad ends -----------------------------------------------------------------------------------------------------


def test_the_bus_tells_ended_of_executions_that_ended_badly_and_of_ours_alone(prod: Template) -> None:
    rule = prod.only("Events::Rule")["Properties"]
    assert "EventBusName" not in rule  # AWS puts them on the default one
    pattern = rule["EventPattern"]
    assert (pattern["source"], pattern["detail-type"]) == (["aws.states"], ["Step Functions Execution Status Change"])
    assert pattern["detail"] == {
        "status": ["FAILED", "TIMED_OUT", "ABORTED"],
        "stateMachineArn": [{"Ref": machine} for machine in machines(prod)],
    }
    (told,) = rule["Targets"]
    assert told["Arn"] == {"Fn::GetAtt": [prod.id_of(prod.function("ended")), "Arn"]}
    assert not told.keys() & {"Input", "InputPath", "InputTransformer"}


def test_what_ended_is_not_told_and_what_it_cannot_do_are_letters(prod: Template) -> None:
    """EB-03, both kinds; and the bus may write them."""
    rule = prod.only("Events::Rule")
    (told,) = rule["Properties"]["Targets"]
    assert told["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 185}
    function = {"Ref": prod.id_of(prod.function("ended"))}
    (own,) = [
        one["Properties"]
        for one in prod.of_type("Lambda::EventInvokeConfig").values()
        if one["Properties"]["FunctionName"] == function
    ]
    assert own["MaximumRetryAttempts"] == 2  # as core/workflows/hearing.py counts on
    assert own["DestinationConfig"]["OnFailure"]["Destination"] == told["DeadLetterConfig"]["Arn"]
    queue = told["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]
    assert prod.outputs["EndedDlqUrl"]["Value"] == {"Ref": queue}
    (policy,) = [
        one["Properties"]["PolicyDocument"]["Statement"]
        for one in prod.of_type("SQS::QueuePolicy").values()
        if one["Properties"]["Queues"] == [{"Ref": queue}]
    ]
    (allowed,) = [one for one in policy if one["Effect"] == "Allow"]
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "events.amazonaws.com"}, "sqs:SendMessage")
    arn = {"Fn::GetAtt": [prod.id_of(rule), "Arn"]}
    assert allowed["Condition"] == {"ArnEquals": {"aws:SourceArn": arn}}
    (invoke,) = [
        one["Properties"]
        for one in prod.of_type("Lambda::Permission").values()
        if one["Properties"]["Principal"] == "events.amazonaws.com"
    ]
    assert (invoke["Action"], invoke["SourceArn"]) == ("lambda:InvokeFunction", arn)


def test_a_state_machine_that_waits_for_ever_gives_up_at_once_or_tells_nobody_is_found(prod: Template) -> None:
    """The delivery contract, on our own template. Alarms tell of bad ends, too: one of both is enough."""
    rule, ended = prod.id_of(prod.only("Events::Rule")), prod.id_of(prod.function("ended"))
    for name, machine in machines(prod).items():
        text = definition(machine)
        flat = put(name, "DefinitionString", to=json.dumps(text))
        assert found(prod.body, flat) == set()
        endless = {key: value for key, value in text.items() if key != "TimeoutSeconds"}
        assert found(prod.body, put(name, "DefinitionString", to=json.dumps(endless))) == {("machine-timeouts", name)}
        hasty = json.dumps(text).replace("Lambda.TooManyRequestsException", "Lambda.Unknown")
        hasty = hasty.replace(f'"{ended}"', '"x"').replace('"Resource": "', '"Resource": "arn:aws:lambda:x:y:function:')
        assert found(prod.body, put(name, "DefinitionString", to=hasty)) == {("machine-throttles", name)}
    for part in ("DeadLetterConfig", "RetryPolicy"):
        assert found(prod.body, remove(rule, "Targets", 0, part)) == {("rule-letters", rule)}


def test_a_task_without_an_end_is_found(prod: Template) -> None:
    for name, machine in machines(prod).items():

        def joined(body: dict[str, Any], name: str = name, machine: Resource = machine) -> None:
            body["Resources"][name]["Properties"]["DefinitionString"] = target(
                machine["Properties"]["DefinitionString"]
            )
            rewrite(name, '"TimeoutSeconds": 330', '"Waits": 330')(body)

        assert found(prod.body, joined) == {("machine-timeouts", name)}
