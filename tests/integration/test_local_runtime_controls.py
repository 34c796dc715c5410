"""`/_local/*`: time, pausing, concurrency, mappings, schedules, and what they report."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.compute.invocation import Invocation
from local.events.messages import Message
from local.events.queues import QueueMapping
from local.events.sources import client
from local.faults import Fault
from local.runtime import Runtime
from tests.integration.local_toys import Reply, Toy, eventually, request

HANDLER = """
import boto3, json, os, time

def handler(event, context):
    if "Records" in event:
        event = json.loads(event["Records"][0]["body"])
    while event.get("until") and not os.path.exists(event["until"]):
        time.sleep(0.02)
    if event.get("fail"):
        raise ValueError(event["part"])
    if event.get("write"):
        boto3.client("dynamodb").put_item(TableName=os.environ["TABLE"], Item={"pk": {"S": "x"}})
    return event.get("part") or time.time()
"""
PARTS = ("stuck", "sources", "drift")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    toy = Toy(tmp_path_factory.mktemp("controls"))
    toy.table("Table")
    toy.queue("Queue", VisibilityTimeout=200)
    toy.function("work", HANDLER, environment={"TABLE": {"Ref": "Table"}}, Timeout=200)
    toy.function("timed", HANDLER, environment={"TABLE": {"Ref": "Table"}}, Timeout=200)
    toy.mapping("work", "Queue")
    toy.schedule("timed", "rate(1 day)", {"write": True})
    toy.function("sweep", HANDLER, Timeout=200)
    for part in PARTS:
        toy.schedule("sweep", "rate(2 days)", {"part": part}, f"Sweep{part.title()}")
    toy.function("broken", HANDLER, Timeout=200)
    for part, fails in (("a", False), ("b", True), ("c", False)):
        toy.schedule("broken", "rate(300 days)", {"part": part, "fail": fails}, f"Broken{part.upper()}")
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        yield runtime


@pytest.fixture(autouse=True)
def _at_rest(runtime: Runtime) -> Iterator[None]:
    """Nothing that a test has begun goes on in the next one."""
    yield
    with runtime.functions.at_rest(60) as at_rest:
        assert at_rest


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A file that `until` waits for."""
    return tmp_path / "open"


def begun(runtime: Runtime, gate: Path) -> str:
    """The request id of an invocation that is under way until the gate is there."""
    threading.Thread(target=runtime.functions.invoke, args=("work", {"until": str(gate)}), daemon=True).start()
    (request_id,) = eventually(lambda: runtime.functions.running("work"))
    return request_id


def control(runtime: Runtime, method: str, name: str, body: object = None, **headers: str) -> Reply:
    data = None if body is None else json.dumps(body).encode()
    return request(method, f"{runtime.api}/_local/{name}", data, headers)


def test_clock_skips_for_the_runtime_and_for_the_functions(runtime):
    before = runtime.functions.invoke("work", {}).result
    answer = control(runtime, "POST", "clock", {"advance_seconds": 3600})
    assert answer.json["offset_s"] >= 3600
    assert runtime.functions.invoke("work", {}).result - before >= 3600


@pytest.mark.parametrize("seconds", [-1, "1", None, True, 1e12])
def test_clock_refuses_what_is_no_skip(runtime, seconds):
    answer = control(runtime, "POST", "clock", {"advance_seconds": seconds})
    assert answer.status == 400
    assert "advance_seconds" in answer.json["message"]


@contextmanager
def patient_skip(runtime: Runtime) -> Iterator[Future[Reply]]:
    """By an hour, which has been asked for and waits until nothing is under way."""
    with ThreadPoolExecutor(1) as pool:
        skip = pool.submit(control, runtime, "POST", "clock", {"advance_seconds": 3600, "patience_s": 60})
        eventually(lambda: runtime.functions._pools["work"]._held)
        yield skip
        assert skip.result(120).json["at_rest"] is True


def test_a_patient_skip_of_the_clock_falls_between_invocations(runtime, gate):
    """What is under way ends before it, what would begin begins after it: nobody meets a deadline."""
    before = runtime.clock.now().timestamp()
    request_id = begun(runtime, gate)
    with patient_skip(runtime):
        gate.touch()
    (outcome,) = [one for one in runtime.functions.history if one.request_id == request_id]
    assert outcome.ok
    assert outcome.result - before < 3600
    assert runtime.functions.invoke("work", {}).result - before >= 3600


@pytest.fixture
def send(runtime: Runtime) -> Iterator[Callable[[Path], None]]:
    """Have a queue invoke the function, which waits for the gate."""
    sqs = client("sqs", runtime.aws, "us-east-1")
    body = '{"until": "%s"}'
    yield lambda gate: sqs.send_message(QueueUrl=runtime.outputs["Queue"], MessageBody=body % gate)
    sqs.close()


def ended(runtime: Runtime) -> list[Invocation]:
    return [one for one in list(runtime.functions.history) if one.function == "work"]


def test_a_patient_skip_waits_until_what_a_queue_has_delivered_is_deleted(runtime, gate, send, monkeypatch):
    """Else the skip shows it again, and it is delivered twice."""
    (mapping,) = [one for one in runtime.sources.mappings if isinstance(one, QueueMapping)]
    delete, deleting, go_on = mapping._delete, threading.Event(), threading.Event()

    def slowly(messages: list[Message]) -> None:
        if messages:
            deleting.set()
            go_on.wait(60)
        delete(messages)

    monkeypatch.setattr(mapping, "_delete", slowly)
    runtime.functions.history.clear()
    gate.touch()
    send(gate)
    assert deleting.wait(60)
    with patient_skip(runtime) as skip:
        assert not wait([skip], 0.2).done
        go_on.set()
    eventually(lambda: not mapping._invoking)
    assert len(ended(runtime)) == 1


def test_a_patient_skip_comes_after_the_duplicate_of_what_is_under_way(runtime, gate, send):
    runtime.functions.history.clear()
    runtime.faults.add(Fault("work", "duplicate", "after", service="handler"))
    before = runtime.clock.now().timestamp()
    send(gate)
    eventually(lambda: runtime.functions.running("work"))
    with patient_skip(runtime):
        gate.touch()
    assert [one.ok and one.result - before < 3600 for one in ended(runtime)] == [True, True]


def test_a_patient_skip_goes_over_who_is_still_under_way_and_says_so(runtime, gate):
    request_id = begun(runtime, gate)
    answer = control(runtime, "POST", "clock", {"advance_seconds": 3600, "patience_s": 1})
    assert answer.json["at_rest"] is False
    history = runtime.functions.history
    eventually(lambda: [one for one in list(history) if one.request_id == request_id and one.timed_out])


def test_paused_function_waits_for_resume(runtime):
    assert control(runtime, "POST", "pause", {"function": "work"}).json == {"function": "work", "paused": True}
    assert runtime.functions.invoke("work", {}).throttled
    control(runtime, "POST", "resume", {"function": "work"})
    assert runtime.functions.invoke("work", {}).ok


def test_function_may_be_named_by_its_arn(runtime):
    arn = runtime.functions.definition("work").arn
    assert control(runtime, "POST", "resume", {"function": arn}).json["function"] == "work"


@pytest.mark.parametrize(
    "name", ["pause", "resume", "mappings/disable", "schedules/run", "schedules/disable", "freeze", "concurrency"]
)
def test_unknown_function_is_a_400_that_lists_the_known(runtime, name):
    answer = control(runtime, "POST", name, {"function": "nobody"})
    assert answer.status == 400
    assert "['work', 'timed', 'sweep', 'broken']" in answer.json["message"]


def test_concurrency_is_raised_and_lowered(runtime):
    assert control(runtime, "POST", "concurrency", {"function": "work", "maximum": 50}).json["maximum"] == 50
    assert runtime.functions.concurrency("work") == 50
    assert control(runtime, "POST", "concurrency", {"function": "work", "maximum": 0}).status == 400
    control(runtime, "POST", "concurrency", {"function": "work", "maximum": 10})


def test_invocations_are_listed_with_what_came_of_them(runtime):
    control(runtime, "DELETE", "invocations")
    outcome = runtime.functions.invoke("work", {})
    (listed,) = control(runtime, "GET", "invocations").json["invocations"]
    assert (listed["function"], listed["request_id"], listed["ok"]) == ("work", outcome.request_id, True)


def test_a_mapping_is_busy_with_what_it_has_delivered(runtime, gate, send):
    def busy() -> bool:
        return bool(control(runtime, "GET", "mappings").json["mappings"][0]["busy"])

    eventually(lambda: not busy())
    send(gate)
    eventually(busy)
    gate.touch()
    eventually(lambda: not busy())


def test_mappings_are_switched_off_and_on(runtime):
    off = control(runtime, "POST", "mappings/disable", {"function": "work"}).json["mappings"]
    assert [(mapping["kind"], mapping["enabled"]) for mapping in off] == [("sqs", False)]
    control(runtime, "POST", "mappings/enable", {"function": "work"})
    assert control(runtime, "GET", "mappings").json["mappings"][0]["enabled"] is True
    assert control(runtime, "POST", "mappings/disable", {"function": "timed"}).status == 400


def test_schedule_runs_when_asked_and_its_calls_are_metered(runtime):
    control(runtime, "DELETE", "calls")
    answer = control(runtime, "POST", "schedules/run", {"function": "timed"})
    assert answer.json["ok"] is True
    (call,) = control(runtime, "GET", "calls").json["calls"]
    assert (call["function"], call["service"], call["operation"]) == ("timed", "dynamodb", "PutItem")
    assert call["write_units"] == 1
    assert control(runtime, "POST", "schedules/run", {"function": "work"}).status == 400


def parts_of(runtime: Runtime, role: str) -> list[object]:
    return [outcome.result for outcome in list(runtime.functions.history) if outcome.function == role]


def test_several_schedules_of_a_function_fire_each_with_its_own_input(runtime):
    runtime.functions.history.clear()
    runtime.clock.advance(2 * 86_400 + 1)
    eventually(lambda: len(parts_of(runtime, "sweep")) == 3 and parts_of(runtime, "timed"))
    assert sorted(map(str, parts_of(runtime, "sweep"))) == sorted(PARTS)


@pytest.mark.parametrize("named", ["SweepDrift", '"part": "drift"', "drift"])
def test_one_of_several_schedules_is_run_by_its_name_or_by_its_input(runtime, named):
    runtime.functions.history.clear()
    answer = control(runtime, "POST", "schedules/run", {"function": "sweep", "schedule": named}).json
    assert (answer["ok"], answer["result"], answer["schedule"]) == (True, "drift", "SweepDrift")
    assert "runs" not in answer
    assert parts_of(runtime, "sweep") == ["drift"]


def test_all_schedules_of_a_function_are_run_when_none_is_named(runtime):
    runtime.functions.history.clear()
    answer = control(runtime, "POST", "schedules/run", {"function": "sweep"}).json
    assert [(run["schedule"], run["result"]) for run in answer["runs"]] == [
        ("SweepStuck", "stuck"),
        ("SweepSources", "sources"),
        ("SweepDrift", "drift"),
    ]
    assert (answer["ok"], answer["result"]) == (True, "stuck")
    assert parts_of(runtime, "sweep") == list(PARTS)


def test_failure_among_several_schedules_is_what_is_told(runtime):
    answer = control(runtime, "POST", "schedules/run", {"function": "broken"}).json
    assert (answer["ok"], answer["error"]["errorMessage"]) == (False, "b")
    assert [run["ok"] for run in answer["runs"]] == [True, False, True]
    outcome = runtime.sources.schedules.run("broken")
    assert (outcome.error or {})["errorMessage"] == "b"


@pytest.mark.parametrize("wanted", ["nothing", 3])
def test_schedule_that_is_not_there_is_a_400(runtime, wanted):
    answer = control(runtime, "POST", "schedules/run", {"function": "sweep", "schedule": wanted})
    assert answer.status == 400
    assert "schedule" in answer.json["message"]


def test_disabled_schedules_fire_when_asked_only_until_they_are_enabled(runtime):
    runtime.functions.history.clear()
    listed = control(runtime, "POST", "schedules/disable", {"function": "sweep", "schedule": "drift"}).json["schedules"]
    assert [one["schedule"] for one in listed if not one["enabled"]] == ["SweepDrift"]
    runtime.clock.advance(2 * 86_400 + 1)
    eventually(lambda: len(parts_of(runtime, "sweep")) == 2)
    assert control(runtime, "POST", "schedules/run", {"function": "sweep", "schedule": "drift"}).json["ok"]
    control(runtime, "POST", "schedules/enable", {"function": "sweep"})
    assert sorted(map(str, parts_of(runtime, "sweep"))) == sorted(PARTS)
    runtime.clock.advance(2 * 86_400 + 1)
    eventually(lambda: len(parts_of(runtime, "sweep")) == 6)
    assert sorted(map(str, parts_of(runtime, "sweep"))) == sorted([*PARTS, *PARTS])


def test_schedules_are_listed_with_their_input(runtime):
    def drift() -> dict[str, object]:
        listed = control(runtime, "GET", "schedules").json["schedules"]
        return dict(next(one for one in listed if one["schedule"] == "SweepDrift"))

    told = drift()
    assert (told["function"], json.loads(str(told["input"])), told["enabled"]) == ("sweep", {"part": "drift"}, True)
    eventually(lambda: str(drift()["due"]) > runtime.clock.now().isoformat())


def test_invocation_is_frozen_and_thawed(runtime, gate):
    request_id = begun(runtime, gate)
    assert control(runtime, "POST", "freeze", {"request_id": request_id}).json == {"frozen": 1}
    control(runtime, "POST", "clock", {"advance_seconds": 600})
    assert runtime.functions.running("work") == [request_id]
    assert control(runtime, "POST", "thaw", {"function": "work"}).json == {"thawed": 1}
    gate.touch()
    eventually(lambda: not runtime.functions.running("work"))
    assert control(runtime, "POST", "thaw", {"request_id": request_id}).status == 400


def test_invocation_is_killed_in_the_middle(runtime, gate):
    control(runtime, "DELETE", "invocations")
    begun(runtime, gate)
    assert control(runtime, "POST", "kill", {"function": "work"}).json == {"killed": 1}
    (listed,) = eventually(lambda: control(runtime, "GET", "invocations").json["invocations"])
    assert (listed["crashed"], listed["reason"]) == (True, "crash")


def test_unknown_control_is_a_404_that_lists_the_known(runtime):
    answer = control(runtime, "GET", "nothing")
    assert answer.status == 404
    assert "POST clock" in answer.json["controls"]


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"'])
def test_body_that_is_no_object_is_a_400(runtime, body):
    assert request("POST", f"{runtime.api}/_local/pause", body).status == 400


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.test"}, {"Host": "evil.test"}])
def test_web_pages_have_no_control(runtime, headers):
    assert control(runtime, "GET", "clock", None, **headers).status == 403
