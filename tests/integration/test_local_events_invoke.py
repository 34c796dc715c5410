"""Lambda's Invoke as functions and tests call it: with an answer, without waiting, and only where it is allowed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local.events.sources import client
from local.runtime import Runtime
from tests.integration.local_aws import error_code
from tests.integration.local_toys import Toy, eventually, request

ECHO = """
import json, os

def handler(event, context):
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(json.dumps(event) + "\\n")
    print("seen")
    if isinstance(event, dict) and event.get("fail"):
        raise ValueError("as asked")
    return {"got": event}
"""
# Invokes whom the event names, and says what came of it.
CALLER = """
import boto3, json
from botocore.config import Config
client = boto3.client("lambda", config=Config(read_timeout=900))

def handler(event, context):
    try:
        answer = client.invoke(Payload=json.dumps(event["payload"]), **event["invoke"])
    except client.exceptions.ClientError as error:
        return {"error": error.response["Error"]["Code"], "message": str(error)}
    return {"status": answer["StatusCode"], "payload": answer["Payload"].read().decode()}
"""
# Goes on by invoking itself, as often as the event says.
AGAIN = """
import boto3, json, os
from botocore.config import Config
client = boto3.client("lambda", config=Config(read_timeout=900, retries={"total_max_attempts": 1}))

def handler(event, context):
    if event["left"]:
        client.invoke(
            FunctionName=context.function_name,
            InvocationType=event["kind"],
            Payload=json.dumps({**event, "left": event["left"] - 1}),
        )
    return event["left"]
"""


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    folder = tmp_path_factory.mktemp("invoke")
    toy = Toy(folder)
    toy.queue("Letters", VisibilityTimeout=0)
    notes = {"NOTES": str(folder / "notes")}
    toy.function("echo", ECHO, environment=notes, Timeout=900)
    toy.function("forbidden", ECHO, environment=notes)
    toy.function("caller", CALLER, Timeout=900)
    toy.resources["Narrow"] = {
        "Type": "AWS::IAM::Role",
        "Properties": {
            "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []},
            "Policies": [{"PolicyName": "p", "PolicyDocument": {"Statement": _may_invoke("Echo")}}],
        },
    }
    toy.resources["Caller"]["Properties"]["Role"] = {"Fn::GetAtt": ["Narrow", "Arn"]}
    toy.function("looping", AGAIN, ReservedConcurrentExecutions=40, Timeout=900)
    toy.function("redrive", AGAIN, RecursiveLoop="Allow", Timeout=900)
    for role in ("echo", "looping"):
        toy.resources[f"{role.title()}Config"] = {
            "Type": "AWS::Lambda::EventInvokeConfig",
            "Properties": {
                "FunctionName": {"Ref": role.title()},
                "Qualifier": "$LATEST",
                "MaximumRetryAttempts": 1,
                "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["Letters", "Arn"]}}},
            },
        }
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        yield runtime


def _may_invoke(logical_id: str) -> dict[str, Any]:
    arn = {"Fn::GetAtt": [logical_id, "Arn"]}
    both = [arn, {"Fn::Join": ["", [arn, ":*"]]}]
    return {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": both}


def lambda_client(runtime: Runtime, key: str) -> Any:
    create: Any = boto3.client
    return create(
        "lambda",
        endpoint_url=runtime.aws,
        region_name="us-east-1",
        aws_access_key_id=key,
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=60, read_timeout=900),
    )


@pytest.fixture(scope="module")
def api(runtime: Runtime) -> Iterator[Any]:
    made = lambda_client(runtime, "developer")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def clean(runtime: Runtime) -> Iterator[None]:
    runtime.functions.history.clear()
    runtime.meter.reset()
    yield
    runtime.faults.clear()
    eventually(lambda: not runtime.functions.running())


def name(runtime: Runtime, role: str) -> str:
    return runtime.functions.definition(role).name


def arn(runtime: Runtime, role: str) -> str:
    return runtime.functions.definition(role).arn


def ran(runtime: Runtime, role: str) -> int:
    return sum(outcome.function == role for outcome in list(runtime.functions.history))


def got(runtime: Runtime, payload: object) -> int:
    """How often echo has run on exactly this event."""
    return sum(outcome.result == {"got": payload} for outcome in list(runtime.functions.history))


def letters(runtime: Runtime) -> list[dict[str, Any]]:
    """Takes the letters out of the queue."""
    sqs, url = client("sqs", runtime.aws, "us-east-1"), runtime.outputs["Letters"]
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    for message in found:
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    sqs.close()
    return [json.loads(message["Body"]) for message in found]


# --- with an answer --------------------------------------------------------------------------------------------


def test_answer_is_the_functions_result(runtime, api):
    answer = api.invoke(FunctionName=name(runtime, "echo"), Payload=b'{"a": 1}', LogType="Tail")
    assert (answer["StatusCode"], answer["ExecutedVersion"]) == (200, "$LATEST")
    assert "FunctionError" not in answer
    assert json.loads(answer["Payload"].read()) == {"got": {"a": 1}}
    assert b"seen" in base64.b64decode(answer["LogResult"])


def test_error_of_the_function_comes_with_its_type(runtime, api):
    answer = api.invoke(FunctionName=name(runtime, "echo"), Payload=b'{"fail": true}')
    assert (answer["StatusCode"], answer["FunctionError"]) == (200, "Unhandled")
    error = json.loads(answer["Payload"].read())
    assert (error["errorType"], error["errorMessage"]) == ("ValueError", "as asked")


@pytest.mark.parametrize("form", ["{name}", "{arn}", "123456789012:function:{name}", "{arn}:$LATEST"])
def test_function_is_named_by_its_name_or_its_arn(runtime, api, form):
    named = form.format(name=name(runtime, "echo"), arn=arn(runtime, "echo"))
    assert json.loads(api.invoke(FunctionName=named)["Payload"].read()) == {"got": {}}


@pytest.mark.parametrize("named", ["echo", "nobody", "arn:aws:lambda:us-east-1:123456789012:function:nobody"])
def test_unknown_function_is_a_404(api, named):
    with pytest.raises(api.exceptions.ResourceNotFoundException):
        api.invoke(FunctionName=named)


def test_unknown_version_is_a_404(runtime, api):
    with pytest.raises(api.exceptions.ResourceNotFoundException):
        api.invoke(FunctionName=name(runtime, "echo"), Qualifier="7")


def test_dry_run_runs_nothing(runtime, api):
    assert api.invoke(FunctionName=name(runtime, "echo"), InvocationType="DryRun", Payload=b"3")["StatusCode"] == 204
    assert got(runtime, 3) == 0


def test_payload_that_is_no_json_is_refused(runtime, api):
    with pytest.raises(api.exceptions.InvalidRequestContentException):
        api.invoke(FunctionName=name(runtime, "echo"), Payload=b"{")


def test_what_is_not_played_is_refused(runtime, api):
    with pytest.raises(api.exceptions.InvalidParameterValueException, match="client context"):
        api.invoke(FunctionName=name(runtime, "echo"), ClientContext=base64.b64encode(b"{}").decode())


def test_function_without_room_is_a_429(runtime, api):
    runtime.functions.pause("echo")
    try:
        with pytest.raises(api.exceptions.TooManyRequestsException):
            api.invoke(FunctionName=name(runtime, "echo"))
    finally:
        runtime.functions.resume("echo")


@pytest.mark.parametrize(("kind", "limit"), [("Event", 1_048_576), ("RequestResponse", 6_291_456)])
def test_payload_has_a_limit(runtime, api, kind, limit):
    def send(size: int) -> int:
        payload = json.dumps("x" * (size - 2)).encode()
        return int(api.invoke(FunctionName=name(runtime, "caller"), InvocationType=kind, Payload=payload)["StatusCode"])

    runtime.functions.pause("caller")  # what is accepted need not run
    try:
        with pytest.raises(api.exceptions.RequestTooLargeException):
            send(limit + 1)
        if kind == "Event":
            assert send(limit) == 202
    finally:
        runtime.functions.resume("caller")


# --- without waiting -------------------------------------------------------------------------------------------


def test_event_is_accepted_at_once_and_run_later(runtime, api):
    runtime.functions.pause("echo")
    answer = api.invoke(FunctionName=arn(runtime, "echo"), InvocationType="Event", Payload=b'{"later": 1}')
    assert (answer["StatusCode"], answer["Payload"].read()) == (202, b"")
    assert got(runtime, {"later": 1}) == 0
    runtime.functions.resume("echo")
    eventually(lambda: got(runtime, {"later": 1}) == 1)


def test_event_that_fails_is_retried_as_configured_and_then_reported(runtime, api):
    letters(runtime)
    api.invoke(FunctionName=name(runtime, "echo"), InvocationType="Event", Payload=b'{"fail": true}')
    eventually(lambda: len(failures(runtime)) == 1)
    with runtime.functions.at_rest(60):
        runtime.clock.advance(61)
    eventually(lambda: len(failures(runtime)) == 2)
    (letter,) = eventually(lambda: letters(runtime))
    assert letter["requestContext"]["condition"] == "RetriesExhausted"
    assert letter["requestPayload"] == {"fail": True}
    assert letter["requestContext"]["functionArn"].startswith(arn(runtime, "echo"))
    assert failures(runtime) == [letter["requestContext"]["requestId"]] * 2, "an event is repeated under its request id"


def failures(runtime: Runtime) -> list[str]:
    """The request ids of the failed invocations of `echo`."""
    return [one.request_id for one in list(runtime.functions.history) if one.function == "echo" and not one.ok]


# --- from a function -------------------------------------------------------------------------------------------


def call(runtime: Runtime, role: str, payload: object = None, **invoke: Any) -> dict[str, Any]:
    event = {"payload": payload or {}, "invoke": {"FunctionName": name(runtime, role), **invoke}}
    outcome = runtime.functions.invoke("caller", event)
    assert outcome.ok, outcome.error
    result: dict[str, Any] = outcome.result
    return result


def test_function_invokes_another_and_the_call_is_metered(runtime):
    assert call(runtime, "echo", {"a": 1})["payload"] == '{"got": {"a": 1}}'
    metered = [(one.function, one.service, one.operation, one.error) for one in runtime.meter.calls()]
    assert metered == [("caller", "lambda", "Invoke", None)]
    assert call(runtime, "echo", {"b": 1}, InvocationType="Event", Qualifier="$LATEST")["status"] == 202
    eventually(lambda: got(runtime, {"b": 1}) == 1)


def test_function_whose_role_does_not_allow_it_is_refused_and_nothing_runs(runtime):
    answer = call(runtime, "forbidden")
    assert answer["error"] == "AccessDeniedException"
    assert f"lambda:InvokeFunction on resource: {arn(runtime, 'forbidden')}" in answer["message"]
    assert ran(runtime, "forbidden") == 0


def test_dry_run_asks_for_the_permission(runtime):
    assert call(runtime, "forbidden", InvocationType="DryRun")["error"] == "AccessDeniedException"
    assert call(runtime, "echo", InvocationType="DryRun")["status"] == 204


def strike(runtime: Runtime, **fault: object) -> None:
    body = {"function": "caller", "service": "lambda", "operation": "Invoke", **fault}
    assert request("POST", f"{runtime.api}/_local/faults", body).status == 200


def crashing_call(runtime: Runtime, payload: object) -> None:
    event = {"payload": payload, "invoke": {"FunctionName": name(runtime, "echo"), "InvocationType": "Event"}}
    assert runtime.functions.invoke("caller", event).crashed


def test_fault_before_the_call_means_that_nothing_was_invoked(runtime):
    strike(runtime, kind="crash", when="before")
    crashing_call(runtime, {"crash": "before"})
    assert runtime.meter.calls() == []
    call(runtime, "echo", {"crash": "no"}, InvocationType="Event")
    eventually(lambda: got(runtime, {"crash": "no"}) == 1)
    assert got(runtime, {"crash": "before"}) == 0


def test_fault_after_the_call_means_that_the_invocation_goes_on_without_its_caller(runtime):
    strike(runtime, kind="crash", when="after")
    crashing_call(runtime, {"crash": "after"})
    eventually(lambda: got(runtime, {"crash": "after"}) == 1)


def test_throttled_call_is_tried_again_by_the_sdk(runtime):
    strike(runtime, kind="throttle")
    assert call(runtime, "echo", {"throttled": 1}, InvocationType="Event")["status"] == 202
    eventually(lambda: got(runtime, {"throttled": 1}) == 1)


def test_who_is_dead_invokes_nobody(runtime):
    dead = lambda_client(runtime, "DEAD")
    runtime._aws.callers.revoke("DEAD")
    with pytest.raises(ClientError) as error:
        dead.invoke(FunctionName=name(runtime, "echo"), InvocationType="Event", Payload=b'"from the dead"')
    dead.close()
    assert error_code(error.value) == "UnrecognizedClientException"
    call(runtime, "echo", "from the living", InvocationType="Event")
    eventually(lambda: got(runtime, "from the living") == 1)
    assert got(runtime, "from the dead") == 0


# --- loops -----------------------------------------------------------------------------------------------------


def test_function_that_goes_on_by_itself_is_stopped_after_16_rounds_and_its_event_is_reported(runtime, api):
    letters(runtime)
    payload = json.dumps({"left": 30, "kind": "Event"})
    api.invoke(FunctionName=name(runtime, "looping"), InvocationType="Event", Payload=payload)
    (letter,) = eventually(lambda: letters(runtime), 240)
    assert letter["requestPayload"]["left"] == 30 - 16
    eventually(lambda: not runtime.functions.running("looping"))  # the last has written the letter's cause, and ends
    assert ran(runtime, "looping") == 16


def test_function_that_may_loop_goes_on(runtime, api):
    payload = json.dumps({"left": 20, "kind": "Event"})
    api.invoke(FunctionName=name(runtime, "redrive"), InvocationType="Event", Payload=payload)
    eventually(lambda: ran(runtime, "redrive") == 21, 240)


def test_call_that_closes_a_loop_is_refused_to_who_waits_for_it(runtime, api):
    payload = json.dumps({"left": 30, "kind": "RequestResponse"})
    api.invoke(FunctionName=name(runtime, "looping"), Payload=payload)
    errors = [outcome.error for outcome in list(runtime.functions.history) if outcome.function == "looping"]
    assert len(errors) == 16
    assert errors[0] is not None  # the innermost ends first
    assert errors[0]["errorType"] == "RecursiveInvocationException"
    assert not any(errors[1:])


def test_names_and_codes_of_the_service_are_read_by_boto3(api):
    with pytest.raises(ClientError) as error:
        api.invoke(FunctionName="nobody")
    assert error_code(error.value) == "ResourceNotFoundException"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
