"""Faults at a named call: what has an effect, what the function hears, and that nothing follows a crash."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from local.aws.calls import Call, Caller, Response
from local.compute.invocation import Invocation
from local.events.sources import client
from local.faults import Fault, Faults
from local.runtime import Runtime
from tests.integration.local_toys import Toy, eventually, request

# Makes three writes, and tries to undo the first when one fails. Its threads write for as long as they are let.
WRITE = """
import boto3, itertools, os, threading
from botocore.config import Config
table = boto3.client("dynamodb", config=Config(retries={"total_max_attempts": 2}))
sqs = boto3.client("sqs", config=Config(retries={"total_max_attempts": 1}))

def put(name, job):
    table.put_item(TableName=os.environ["TABLE"], Item={"pk": {"S": name}, "job": {"S": job}})

def write(number, job):
    for count in itertools.count():
        put(f"{number}-{count}", job)

def handler(event, context):
    job = event["job"]
    count = 4 if event.get("threads") else 0
    others = [threading.Thread(target=write, args=(n, job)) for n in range(count)]
    for thread in others:
        thread.start()
    try:
        for name in ("one", "two", "three"):
            put(name, job)
        for thread in others:
            thread.join()
        return "done"
    finally:
        put("finally", job)
"""


class Stage:
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.dynamodb = client("dynamodb", runtime.aws, "us-east-1")

    def items(self) -> set[str]:
        found = self.dynamodb.scan(TableName=self.runtime.outputs["Table"], ConsistentRead=True)["Items"]
        return {item["pk"]["S"] for item in found}

    def fault(self, **fault: Any) -> None:
        answer = request("POST", f"{self.runtime.api}/_local/faults", {"function": "write", **fault})
        assert answer.status == 200, answer.body

    def invoke(self, **event: Any) -> Invocation:
        return self.runtime.functions.invoke("write", {"job": "j1", **event})


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    toy = Toy(tmp_path_factory.mktemp("faults"))
    toy.table("Table")
    toy.function("write", WRITE, environment={"TABLE": {"Ref": "Table"}}, Timeout=600)
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        stage = Stage(runtime)
        yield stage
        stage.dynamodb.close()


@pytest.fixture
def stage(running: Stage) -> Stage:
    running.runtime.faults.clear()
    for name in running.items():
        running.dynamodb.delete_item(TableName=running.runtime.outputs["Table"], Key={"pk": {"S": name}})
    return running


def test_without_faults_everything_is_written(stage):
    assert stage.invoke().result == "done"
    assert stage.items() == {"one", "two", "three", "finally"}


@pytest.mark.parametrize(("when", "written"), [("before", {"one"}), ("after", {"one", "two"})])
def test_crash_ends_the_function_there_and_no_finally_undoes_anything(stage, when, written):
    stage.fault(operation="PutItem", nth=2, when=when, kind="crash")
    outcome = stage.invoke()
    assert (outcome.crashed, outcome.reason) == (True, "crash")
    assert stage.items() == written


def test_crash_stops_every_thread_of_the_invocation(stage):
    stage.fault(service="dynamodb", operation="PutItem", nth=20, when="before", kind="crash")
    assert stage.invoke(threads=True).crashed
    then = stage.items()
    eventually(lambda: not stage.runtime.functions.running())
    assert stage.items() == then


def test_fault_strikes_as_often_as_asked_and_once_by_default(stage):
    stage.fault(operation="PutItem", nth=1, kind="crash")
    assert [stage.invoke().crashed, stage.invoke().crashed] == [True, False]
    stage.fault(operation="PutItem", nth=1, kind="crash", times=2)
    assert [stage.invoke().crashed for _ in range(3)] == [True, True, False]


def test_fault_strikes_an_invocation_once_so_that_the_repetition_passes(stage):
    stage.fault(operation="PutItem", nth=2, kind="throttle", times=2)
    assert [stage.invoke().ok, stage.invoke().ok] == [True, True]
    assert stage.runtime.faults.describe()[0]["fired"] == 2


@pytest.mark.parametrize("kind", ["crash", "timeout"])
def test_call_is_not_answered_before_its_caller_is_gone(kind):
    """Else a quick caller could repeat it, or go on with an error, before the signal reaches it."""
    struck: list[str] = []
    gone = threading.Event()
    environment = SimpleNamespace(gone=gone, kill=struck.append, freeze=lambda outlives: struck.append("freeze"))
    functions: Any = SimpleNamespace(environment_of=lambda request_id: environment)
    faults = Faults(functions, lambda call: Response(200, {}))
    faults.add(Fault("write", kind, "before"))
    call = Call(Caller("write", "role", "r1"), "sqs", "SendMessage", b"", {}, "/")
    answered = threading.Event()

    def ask() -> None:
        faults.before(call)
        answered.set()

    run(ask)
    eventually(lambda: struck)
    assert not answered.wait(0.1)
    gone.set()
    assert answered.wait(60)


def test_nth_counts_the_matching_calls_of_one_invocation(stage):
    stage.fault(operation="PutItem", nth=5, kind="crash")
    assert [stage.invoke().ok for _ in range(3)] == [True] * 3


def test_fault_for_a_job_leaves_the_others_alone(stage):
    stage.fault(operation="PutItem", job_id="j2", kind="crash")
    assert stage.invoke(job="j1").ok
    assert stage.invoke(job="j2").crashed


def test_timeout_holds_the_function_until_its_deadline(stage):
    stage.fault(operation="PutItem", nth=2, when="after", kind="timeout")
    outcomes: list[Invocation] = []
    run(lambda: outcomes.append(stage.invoke()))
    eventually(lambda: stage.items() == {"one", "two"})
    stage.runtime.clock.advance(300)
    assert stage.runtime.functions.running("write")
    stage.runtime.clock.advance(301)
    eventually(lambda: outcomes)
    assert (outcomes[0].timed_out, outcomes[0].reason) == (True, "timeout")
    assert stage.items() == {"one", "two"}


def test_throttle_is_an_error_of_the_service_that_the_sdk_repeats(stage):
    stage.fault(operation="PutItem", nth=2, kind="throttle")
    assert stage.invoke().result == "done"
    stage.fault(operation="PutItem", nth=2, kind="throttle")
    stage.fault(operation="PutItem", nth=3, kind="throttle")
    outcome = stage.invoke()
    assert outcome.error is not None
    assert outcome.error["errorType"] == "ProvisionedThroughputExceededException"


def test_lost_reply_has_its_effect_and_the_sdk_asks_again(stage):
    stage.runtime.meter.reset()
    stage.fault(operation="PutItem", nth=2, kind="lost_reply")
    assert stage.invoke().result == "done"
    puts = [call.subject for call in stage.runtime.meter.calls() if call.operation == "PutItem"]
    assert puts == ["one", "two", "two", "three", "finally"]


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ({"kind": "explode"}, "crash"),
        ({"kind": "crash", "when": "during"}, "before"),
        ({"kind": "throttle", "when": "after"}, "before"),
        ({"kind": "lost_reply", "when": "before"}, "after"),
        ({"kind": "crash", "nth": 0}, "nth"),
        ({"kind": "crash", "times": "two"}, "times"),
        ({"kind": "crash", "operation": 5}, "operation"),
        ({"kind": "crash", "operatoin": "PutItem"}, "operatoin"),
        ({"kind": "crash", "function": "nobody"}, "write"),
    ],
)
def test_fault_that_makes_no_sense_is_refused_with_a_hint(stage, fault, hint):
    answer = request("POST", f"{stage.runtime.api}/_local/faults", {"function": "write", **fault})
    assert answer.status == 400
    assert hint in answer.json["message"]


def test_faults_can_be_listed_and_taken_back(stage):
    url = f"{stage.runtime.api}/_local/faults"
    stage.fault(operation="PutItem", kind="crash", nth=7)
    (listed,) = request("GET", url).json["faults"]
    assert (listed["nth"], listed["fired"], listed["when"]) == (7, 0, "before")
    request("DELETE", url)
    assert request("GET", url).json["faults"] == []


def run(action: Callable[[], Any]) -> None:
    threading.Thread(target=action, daemon=True).start()
