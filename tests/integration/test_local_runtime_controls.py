"""`/_local/*`: time, pausing, concurrency, mappings, schedules, and what they report."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest

from local.runtime import Runtime
from tests.integration.local_toys import Reply, Toy, eventually, request

HANDLER = """
import boto3, os, time

def handler(event, context):
    if event.get("sleep"):
        time.sleep(event["sleep"])
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
    toy.queue("Queue")
    toy.function("work", HANDLER, environment={"TABLE": {"Ref": "Table"}})
    toy.function("timed", HANDLER, environment={"TABLE": {"Ref": "Table"}})
    toy.mapping("work", "Queue")
    toy.schedule("timed", "rate(1 day)", {"write": True})
    toy.function("sweep", HANDLER)
    for part in PARTS:
        toy.schedule("sweep", "rate(2 days)", {"part": part}, f"Sweep{part.title()}")
    toy.function("broken", HANDLER)
    for part, fails in (("a", False), ("b", True), ("c", False)):
        toy.schedule("broken", "rate(300 days)", {"part": part, "fail": fails}, f"Broken{part.upper()}")
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        yield runtime


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


def test_a_patient_skip_of_the_clock_falls_between_invocations(runtime):
    """What is under way ends before it, what would begin begins after it: nobody meets a deadline."""
    before = runtime.clock.now().timestamp()
    threading.Thread(target=runtime.functions.invoke, args=("work", {"sleep": 0.5}), daemon=True).start()
    (request_id,) = eventually(lambda: runtime.functions.running("work"))
    answer = control(runtime, "POST", "clock", {"advance_seconds": 3600, "patience_s": 20})
    assert answer.json["at_rest"] is True
    (outcome,) = [one for one in runtime.functions.history if one.request_id == request_id]
    assert outcome.ok
    assert outcome.result - before < 3600
    assert runtime.functions.invoke("work", {}).result - before >= 3600


def test_a_patient_skip_goes_over_who_is_still_under_way_and_says_so(runtime):
    threading.Thread(target=runtime.functions.invoke, args=("work", {"sleep": 30}), daemon=True).start()
    (request_id,) = eventually(lambda: runtime.functions.running("work"))
    answer = control(runtime, "POST", "clock", {"advance_seconds": 3600, "patience_s": 1})
    assert answer.json["at_rest"] is False
    eventually(lambda: [one for one in runtime.functions.history if one.request_id == request_id and one.timed_out])


def test_paused_function_waits_for_resume(runtime):
    assert control(runtime, "POST", "pause", {"function": "work"}).json == {"function": "work", "paused": True}
    assert runtime.functions.invoke("work", {}).throttled
    control(runtime, "POST", "resume", {"function": "work"})
    assert runtime.functions.invoke("work", {}).ok


def test_function_may_be_named_by_its_arn(runtime):
    arn = runtime.functions.definition("work").arn
    assert control(runtime, "POST", "resume", {"function": arn}).json["function"] == "work"


@pytest.mark.parametrize("name", ["pause", "resume", "mappings/disable", "schedules/run", "freeze", "concurrency"])
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


def test_schedules_are_listed_with_their_input(runtime):
    listed = control(runtime, "GET", "schedules").json["schedules"]
    drift = next(one for one in listed if one["schedule"] == "SweepDrift")
    assert (drift["function"], json.loads(drift["input"]), drift["enabled"]) == ("sweep", {"part": "drift"}, True)
    assert drift["due"] > runtime.clock.now().isoformat()


def test_invocation_is_frozen_and_thawed(runtime):
    threading.Thread(target=runtime.functions.invoke, args=("work", {"sleep": 0.3}), daemon=True).start()
    (request_id,) = eventually(lambda: runtime.functions.running("work"))
    assert control(runtime, "POST", "freeze", {"request_id": request_id}).json == {"frozen": 1}
    control(runtime, "POST", "clock", {"advance_seconds": 600})
    assert runtime.functions.running("work") == [request_id]
    assert control(runtime, "POST", "thaw", {"function": "work"}).json == {"thawed": 1}
    eventually(lambda: not runtime.functions.running("work"))
    assert control(runtime, "POST", "thaw", {"request_id": request_id}).status == 400


def test_invocation_is_killed_in_the_middle(runtime):
    control(runtime, "DELETE", "invocations")
    threading.Thread(target=runtime.functions.invoke, args=("work", {"sleep": 5}), daemon=True).start()
    eventually(lambda: runtime.functions.running("work"))
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
