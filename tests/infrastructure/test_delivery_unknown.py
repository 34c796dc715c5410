"""What a template does not tell: said as such, neither passed over nor taken for wrong, whatever is written there."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from infra.delivery.contract import NoTemplateError, check
from tests.infrastructure.broken import Body, Change, Found, add, both, found, notes, put, remove

UNKNOWN = {"Fn::ImportValue": "there"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            put("Orders", "VisibilityTimeout", to=UNKNOWN),
            {("visibility", "WorkerMapping"), ("receive-count", "Orders"), ("idempotency", "Worker")},
        ),
        (put("Worker", "Timeout", to="{{resolve:ssm:timeout}}"), {("visibility", "WorkerMapping")}),
        (
            put("WorkerMapping", "EventSourceArn", to=UNKNOWN),
            {("visibility", "WorkerMapping")},
        ),
        (
            put("WorkerMapping", "FunctionName", to={"Ref": "Somebody"}),
            {("visibility", "WorkerMapping")},
        ),
        (put("Orders", "RedrivePolicy", "maxReceiveCount", to=UNKNOWN), {("receive-count", "Orders")}),
        (
            put("Orders", "RedrivePolicy", "deadLetterTargetArn", to=UNKNOWN),
            {("dead-letters", "Orders"), ("letters-within-reach", "Orders")},
        ),
        (
            put("Orders", "RedrivePolicy", to={"Fn::FindInMap": ["a", "b", "c"]}),
            {(rule, "Orders") for rule in ("dead-letters", "receive-count", "letters-within-reach")}
            | {("idempotency", "Worker")},
        ),
        (put("OrderLetters", "MessageRetentionPeriod", to=UNKNOWN), {("letters-retention", "OrderLetters")}),
        (put("OrderLettersAlarm", "Threshold", to=UNKNOWN), {("letters-alarm", "OrderLetters")}),
        (put("OrderLettersAlarm", "Threshold", to="some"), {("letters-alarm", "OrderLetters")}),
        (put("WorkerMapping", "FunctionResponseTypes", to=UNKNOWN), {("batch-failures", "WorkerMapping")}),
        (
            put("WorkerMapping", "ScalingConfig", "MaximumConcurrency", to=UNKNOWN),
            {("concurrency", "WorkerMapping"), ("reserved-concurrency", "Worker")},
        ),
        (
            put("WorkerMapping", "ProvisionedPollerConfig", to={"MaximumPollers": 9}),
            {("concurrency", "WorkerMapping"), ("reserved-concurrency", "Worker")},
        ),
        (put("Worker", "ReservedConcurrentExecutions", to=UNKNOWN), {("reserved-concurrency", "Worker")}),
        (put("ClicksMapping", "EventSourceArn", to=UNKNOWN), {("stream-age", "ClicksMapping")}),
        (put("ClicksMapping", "StartingPosition", to=UNKNOWN), {("stream-start", "ClicksMapping")}),
        (
            put("NewsToReactor", "RedrivePolicy", "deadLetterTargetArn", to=UNKNOWN),
            {("letters-within-reach", "NewsToReactor")},
        ),
        (put("NewsToReactor", "Protocol", to=UNKNOWN), {("subscription-letters", "NewsToReactor")}),
        (put("Nightly", "Target", "Arn", to=UNKNOWN), {("invoke-letters", "Nightly")}),
        (
            put("Uploaded", "Targets", to=UNKNOWN),
            {(rule, "Uploaded") for rule in ("rule-letters", "letters-within-reach", "invoke-letters", "reach")},
        ),
        (
            put("Letters", "KmsMasterKeyId", to=UNKNOWN),
            {("reach", owner) for owner in ("NewsToReactor", "Uploaded", "CheckoutEnds")},
        ),
        (
            put("Checkout", "DefinitionString", to=UNKNOWN),
            {(rule, "Checkout") for rule in ("machine-timeouts", "machine-throttles")},
        ),
        (
            both(remove("Checkout", "DefinitionString"), put("Checkout", "DefinitionS3Location", to={"Key": "x"})),
            {(rule, "Checkout") for rule in ("machine-timeouts", "machine-throttles")},
        ),
        (put("CheckoutEnds", "EventPattern", "detail", to=UNKNOWN), {("machine-bad-ends", "Checkout")}),
        (put("ReportAlarm", "Metrics", to=UNKNOWN), {("machine-bad-ends", "Report")}),
        (put("Worker", "Environment", to=UNKNOWN), {("idempotency", "Worker")}),
        (remove("Worker", "Environment"), {("idempotency", "Worker")}),
        (add("Stack", "CloudFormation::Stack"), {("not-looked-into", "Stack")}),
        (add("Sam", "Serverless::Function"), {("not-looked-into", "Sam")}),
        (add("Pipe", "Pipes::Pipe"), {("not-looked-into", "Pipe")}),
    ],
)
def test_what_is_known_only_when_deployed_is_neither_right_nor_wrong(
    foreign: Body, change: Change, expected: Found
) -> None:
    assert (found(foreign, change), notes(foreign, change)) == (set(), expected)


def test_a_stream_of_another_stack_is_known_by_its_starting_position(foreign: Body) -> None:
    imported = both(put("ClicksMapping", "EventSourceArn", to=UNKNOWN), remove("ClicksMapping", "DestinationConfig"))
    assert found(foreign, imported) == {("stream-letters", "ClicksMapping")}


@pytest.mark.parametrize("broker", ["Topics", "Queues", "SelfManagedEventSource"])
def test_a_broker_reports_no_batch_items(foreign: Body, broker: str) -> None:
    mapping = add("Broker", "Lambda::EventSourceMapping", **{broker: ["x"]}, FunctionName={"Ref": "Worker"})
    assert (found(foreign, mapping), notes(foreign, mapping)) == (set(), set())


def test_a_parameter_is_checked_by_its_default_and_said_to_be_one(foreign: Body) -> None:
    def parameter(default: str) -> Change:
        def change(body: Body) -> None:
            body["Parameters"]["Hidden"] = {"Type": "Number", "Default": default}
            body["Resources"]["Orders"]["Properties"]["VisibilityTimeout"] = {"Ref": "Hidden"}

        return change

    assert found(foreign, parameter("369")) == {("visibility", "Orders")}
    assert found(foreign, parameter("370")) == set()
    assert notes(foreign, parameter("370")) >= {("visibility", "WorkerMapping")}


def test_the_default_of_an_ssm_parameter_is_no_value(foreign: Body) -> None:
    def parameter(body: Body) -> None:
        body["Parameters"]["Hidden"] = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "1"}
        body["Resources"]["Orders"]["Properties"]["VisibilityTimeout"] = {"Ref": "Hidden"}

    assert found(foreign, parameter) == set()
    assert ("visibility", "WorkerMapping") in notes(foreign, parameter)


def test_a_function_that_another_may_invoke_is_a_question(foreign: Body) -> None:
    """Nobody sees in a template whether code waits for the answer."""
    allow = put(
        "WorkerRole", "Policies", 0, "PolicyDocument", "Statement",
        to=[{"Effect": "Allow", "Action": ["lambda:InvokeFunction"], "Resource": {"Fn::Sub": "${Quiet.Arn}:*"}}],
    )  # fmt: skip
    invoked = both(allow, add("Quiet", "Lambda::Function"))
    assert (found(foreign, invoked), notes(foreign, invoked)) == (set(), {("invoke-letters", "Quiet")})


def test_a_transform_is_said() -> None:
    report = check({"Transform": "AWS::Serverless-2016-10-31", "Resources": {"Fn::ForEach::Q": ["a", ["b"], {}]}})
    assert [(one.rule, one.resource) for one in report.notes] == [
        ("not-looked-into", ""),
        ("not-looked-into", "Fn::ForEach::Q"),
    ]


@pytest.mark.parametrize("body", [None, [], "text", {}, {"Resources": []}, {"resources": {}}])
def test_what_is_no_template_is_refused(body: Any) -> None:
    with pytest.raises(NoTemplateError):
        check(body)


STRANGE: tuple[Any, ...] = (
    *(None, "", "x", 3, -1, [], {}, True, [None], {"a": 1}),
    *({"Ref": "Nowhere"}, {"Ref": 3}, {"Fn::GetAtt": "x"}, {"Fn::If": ["Nowhere", 1, 2]}, {"Fn::If": []}),
    *({"Fn::Sub": ["${a}", {"a": {"Ref": "Worker"}}]}, {"Fn::Join": ["", ["a", {"Ref": "Orders"}]]}),
)


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a template."""
    inside: list[Any] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    return [above, *(place for name, one in inside for place in places(one, (*above, name)))]


def test_no_value_anywhere_makes_it_stumble(foreign: Body) -> None:
    ways = places(foreign["Resources"])[1:]
    assert len(ways) > 300
    for number, way in enumerate(ways):
        broken = deepcopy(foreign)
        place = broken["Resources"]
        for name in way[:-1]:
            place = place[name]
        place[way[-1]] = STRANGE[number % len(STRANGE)]
        check(broken)
