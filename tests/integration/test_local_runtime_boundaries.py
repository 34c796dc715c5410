"""Faults where invocations begin and end, and those whose effect comes later: what runs, and how often."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from local.aws.calls import Call, Caller, Response
from local.aws.streams import StreamReader
from local.faults import BadRequestError, Fault, Faults
from local.runtime import Runtime
from tests.integration.local_boundaries import DEADLINE_S, HIDDEN_S, Stage, toys
from tests.integration.local_toys import eventually, request


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    toy = toys(tmp_path_factory.mktemp("boundaries"))
    with Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None) as runtime:
        stage = Stage(runtime)
        yield stage
        stage.close()


@pytest.fixture
def stage(running: Stage) -> Iterator[Stage]:
    until_read(running)
    running.runtime.functions.history.clear()
    running.job = f"job-{uuid.uuid4().hex}"
    yield running
    running.runtime.faults.clear()
    for environment in running.standing():
        environment.kill("crash")
    running.empty()


def until_read(stage: Stage) -> None:
    """Until the stream has nothing left that the function has not had, of this test and those before it."""
    stream = StreamReader(stage.runtime.outputs["Source"])
    eventually(lambda: stage.records() >= int(stream.latest()))
    stage.until_idle()


def until_shown_again(stage: Stage) -> None:
    """Until the queue delivers once more what nobody has deleted; what is under way is not cut off."""
    with stage.runtime.functions.at_rest(60):
        stage.runtime.clock.advance(HIDDEN_S + 1)


# --- an invocation that ends before its handler begins, or after it has returned -------------------------------------


@pytest.mark.parametrize(("when", "runs"), [("before", 1), ("after", 2)])
def test_an_invocation_that_crashes_at_a_boundary_is_repeated_by_its_queue(stage: Stage, when: str, runs: int) -> None:
    fault = stage.at_handler("work", "crash", when)
    stage.send()
    eventually(lambda: stage.ended("work") == ["crash"])
    assert (len(stage.noted("work")), fault.fired) == (runs - 1, 1)
    until_shown_again(stage)
    stage.until_noted("work", runs)
    eventually(lambda: stage.depth() == 0)
    assert stage.ended("work") == ["crash", ""]


@pytest.mark.parametrize(("when", "runs"), [("before", 0), ("after", 1)])
def test_an_invocation_that_times_out_at_a_boundary_stands_until_its_deadline(
    stage: Stage, when: str, runs: int
) -> None:
    stage.at_handler("work", "timeout", when)
    stage.send()
    stage.frozen("work")
    assert len(stage.noted("work")) == runs
    stage.runtime.clock.advance(DEADLINE_S - 60)
    assert stage.runtime.functions.running("work")
    stage.runtime.clock.advance(61)
    eventually(lambda: stage.ended("work") == ["timeout"])
    assert len(stage.noted("work")) == runs
    until_shown_again(stage)
    stage.until_noted("work", runs + 1)


def test_who_asks_over_http_hears_of_a_crash_after_the_work_was_done(stage: Stage) -> None:
    stage.at_handler("accept", "crash", "after")
    assert stage.ask()[0] == 500
    assert len(stage.noted("accept")) == 1
    assert stage.ask()[0] == 200


def test_a_throttled_invocation_never_was(stage: Stage) -> None:
    stage.at_handler("accept", "throttle", "before")
    assert stage.ask()[0] == 503
    assert (stage.noted("accept"), stage.ended("accept")) == ([], [])
    assert stage.ask()[0] == 200


def test_a_throttled_queue_gets_its_message_back(stage: Stage) -> None:
    fault = stage.at_handler("work", "throttle", "before")
    stage.send()
    eventually(lambda: fault.spent)
    assert stage.depth() == 1
    until_shown_again(stage)
    stage.until_noted("work", 1)
    eventually(lambda: stage.depth() == 0)
    assert stage.ended("work") == [""]


def test_a_throttle_is_no_failure_that_a_stream_would_give_up_after(stage: Stage) -> None:
    """This mapping allows no retry, and halves what fails."""
    stage.letters()  # of what the other tests' skips of the clock have ended
    fault = stage.at_handler("dispatch", "throttle", "before", times=3)
    other = f"{stage.job}0"
    stage.write(stage.job, other)
    stage.until_noted("dispatch", 1)
    assert fault.spent
    assert stage.noted("dispatch") == stage.noted("dispatch", other)  # still one batch
    assert stage.letters() == []


def test_nth_and_times_count_the_invocations_that_fit(stage: Stage) -> None:
    fault = stage.at_handler("accept", "crash", "before", nth=2, times=2)
    other = f"job-{uuid.uuid4().hex}"
    assert [stage.ask(job)[0] for job in ("", other, "", "", "")] == [200, 200, 500, 500, 200]
    assert fault.fired == 2


@pytest.mark.parametrize(
    ("kind", "when", "status"), [("throttle", "before", 503), ("crash", "before", 500), ("crash", "after", 500)]
)
def test_of_two_faults_that_each_end_the_invocation_the_second_is_for_the_next(
    stage: Stage, kind: str, when: str, status: int
) -> None:
    faults = [stage.at_handler("accept", kind, when) for _ in range(2)]
    fired = [(stage.ask()[0], *(fault.fired for fault in faults)) for _ in range(3)]
    assert fired == [(status, 1, 0), (status, 1, 1), (200, 1, 1)]


# --- the same event once more --------------------------------------------------------------------------------------


def test_a_duplicate_of_a_message_is_another_invocation(stage: Stage) -> None:
    stage.at_handler("work", "duplicate", "after")
    stage.send()
    stage.until_noted("work", 2)
    assert len(set(stage.noted("work"))) == 2
    eventually(lambda: stage.depth() == 0)


def test_a_duplicate_of_a_request_is_answered_to_nobody(stage: Stage) -> None:
    stage.at_handler("accept", "duplicate", "after")
    status, answer = stage.ask()
    first, second = stage.noted("accept")
    assert (status, answer.decode()) == (200, first)
    assert second != first


def test_a_duplicate_of_a_batch_of_records_comes_before_the_next_batch(stage: Stage) -> None:
    stage.at_handler("dispatch", "duplicate", "after")
    stage.write()
    stage.until_noted("dispatch", 2)
    other = f"job-{uuid.uuid4().hex}"
    stage.write(other)
    stage.until_noted("dispatch", 1, other)
    assert len(stage.noted("dispatch")) == 2


def test_a_duplicate_comes_of_an_invocation_that_failed_too(stage: Stage) -> None:
    stage.at_handler("accept", "crash", "before")
    stage.at_handler("accept", "duplicate", "after")
    assert stage.ask()[0] == 500
    assert len(stage.noted("accept")) == 1


def test_a_late_delivery_comes_when_it_is_told_to_after_others(stage: Stage) -> None:
    fault = stage.at_handler("work", "late", "after")
    stage.send()
    stage.until_noted("work", 1)
    eventually(lambda: stage.depth() == 0)
    other = f"job-{uuid.uuid4().hex}"
    stage.send(other)
    stage.until_noted("work", 1, other)
    assert (len(stage.noted("work")), fault.fired) == (1, 1)
    assert stage.control("faults/late") == {"delivered": 1}
    assert len(stage.noted("work")) == 2  # that waited for it
    assert stage.control("faults/late") == {"delivered": 0}


def test_a_late_delivery_waits_for_a_function_that_is_paused(stage: Stage) -> None:
    stage.at_handler("accept", "late", "after")
    stage.ask()
    stage.runtime.functions.pause("accept")
    assert stage.runtime.faults.deliver_late() == 0
    stage.runtime.functions.resume("accept")
    assert stage.runtime.faults.deliver_late() == 1
    assert len(stage.noted("accept")) == 2


def test_a_late_delivery_that_stands_still_is_not_waited_for(stage: Stage) -> None:
    stage.at_handler("accept", "late", "after")
    stage.at_handler("accept", "timeout", "after", nth=2)
    stage.ask()
    assert stage.runtime.faults.deliver_late() == 1
    running = stage.frozen("accept").running
    assert running is not None
    assert stage.runtime.faults.is_late(running.request_id)
    stage.runtime.clock.advance(DEADLINE_S + 1)
    eventually(lambda: stage.ended("accept") == ["", "timeout"])
    eventually(lambda: not stage.runtime.faults.is_late(running.request_id))


def test_what_was_to_come_late_or_again_is_forgotten_with_the_faults(stage: Stage) -> None:
    stage.at_handler("accept", "late", "after")
    stage.strike("accept", "ghost", "after", operation="PutItem")
    stage.ask()
    stage.runtime.faults.clear()
    assert (stage.control("faults/late"), stage.control("faults/haunt")) == ({"delivered": 0}, {"haunted": 0})


# --- a record that is lost -------------------------------------------------------------------------------------------


def test_a_dropped_record_is_lost_and_the_others_of_its_batch_are_not(stage: Stage) -> None:
    lost = stage.at_handler("dispatch", "drop", "before", job_id=f"{stage.job}a")
    stage.write(f"{stage.job}0", f"{stage.job}a", f"{stage.job}1")
    stage.until_noted("dispatch", 1, f"{stage.job}0")
    assert [len(stage.noted("dispatch", f"{stage.job}{name}")) for name in "0a1"] == [1, 0, 1]
    assert lost.spent


def test_a_stream_goes_on_after_a_record_that_was_dropped_alone(stage: Stage) -> None:
    lost = stage.at_handler("dispatch", "drop", "before")
    stage.write()
    eventually(lambda: lost.spent)
    stage.write(f"{stage.job}0")
    stage.until_noted("dispatch", 1, f"{stage.job}0")
    assert stage.noted("dispatch") == []


@pytest.mark.parametrize("kind", ["throttle", "crash"])
def test_a_record_is_counted_once_however_often_its_batch_is_tried(stage: Stage, kind: str) -> None:
    again = stage.at_handler("dispatch", kind, "before")
    lost = stage.at_handler("dispatch", "drop", "before", nth=3)
    names = [f"{stage.job}{number}" for number in range(3)]
    stage.write(*names[:2])
    for name in names[:2]:
        stage.until_noted("dispatch", 1, name)
    assert (again.fired, lost.fired) == (1, 0)
    stage.write(names[2])
    eventually(lambda: lost.spent)
    stage.until_idle()
    assert stage.noted("dispatch", names[2]) == []


# --- a call that has its effect twice --------------------------------------------------------------------------------


def test_a_ghost_writes_once_more_what_was_deleted_since(stage: Stage) -> None:
    stage.strike("accept", "ghost", "after", operation="PutItem", service="dynamodb", nth=2)
    stage.ask()
    written = stage.row()
    assert written is not None
    assert written["seen"] == {"N": "1"}
    stage.dynamodb.delete_item(TableName=stage.runtime.outputs["Source"], Key={"pk": {"S": stage.job}})
    stage.until_idle()
    assert stage.control("faults/haunt") == {"haunted": 1}
    assert stage.row() == {name: value for name, value in written.items() if name != "seen"}


def test_ghosts_come_in_their_order_and_feed_the_stream(stage: Stage) -> None:
    stage.strike("accept", "ghost", "after", operation="PutItem", service="dynamodb", nth=2)
    stage.strike("accept", "ghost", "after", operation="UpdateItem", service="dynamodb")
    stage.ask()
    eventually(lambda: stage.noted("dispatch"))
    stage.dynamodb.delete_item(TableName=stage.runtime.outputs["Source"], Key={"pk": {"S": stage.job}})
    until_read(stage)
    before = stage.records()
    assert stage.runtime.faults.haunt() == 2
    row = stage.row()
    assert row is not None
    assert row["seen"] == {"N": "1"}
    eventually(lambda: stage.records() > before)


def test_a_ghost_keeps_to_the_conditions_of_its_call(stage: Stage) -> None:
    stage.strike("accept", "ghost", "after", operation="UpdateItem", service="dynamodb")
    stage.ask()
    sealed = {"pk": {"S": stage.job}, "sealed": {"BOOL": True}}
    stage.dynamodb.put_item(TableName=stage.runtime.outputs["Source"], Item=sealed)
    assert stage.runtime.faults.haunt() == 1
    assert stage.row() == sealed


def test_a_ghost_outlives_its_caller_and_is_none_of_its_calls(stage: Stage) -> None:
    stage.strike("tell", "ghost", "after", operation="SendMessage")
    stage.strike("tell", "crash", "after", operation="SendMessage")
    answer = request("POST", f"{stage.runtime.api}/told", {"job": stage.job})
    assert answer.status == 500
    stage.until_noted("work", 1)
    metered = len(stage.runtime.meter.calls())
    assert stage.runtime.faults.haunt() == 1
    stage.until_noted("work", 2)
    assert not [one for one in stage.runtime.meter.calls()[metered:] if one.function == "tell"]


@pytest.mark.parametrize("kind", ["throttle", "crash"])
def test_a_call_that_was_ended_before_its_effect_leaves_its_ghost_for_the_next(stage: Stage, kind: str) -> None:
    point = {"operation": "UpdateItem", "service": "dynamodb"}
    ghost = stage.strike("accept", "ghost", "after", **point)
    end = stage.strike("accept", kind, "before", **point)
    assert stage.ask()[0] == 500
    assert (end.fired, ghost.fired, stage.runtime.faults.haunt()) == (1, 0, 0)
    assert stage.ask()[0] == 200
    assert (end.fired, ghost.fired, stage.runtime.faults.haunt()) == (1, 1, 1)


def test_of_two_crashes_after_a_call_the_second_is_for_the_next(stage: Stage) -> None:
    faults = [stage.strike("accept", "crash", "after", operation="UpdateItem") for _ in range(2)]
    fired = [(stage.ask()[0], *(fault.fired for fault in faults)) for _ in range(3)]
    assert fired == [(500, 1, 0), (500, 1, 1), (200, 1, 1)]


def test_of_two_calls_at_once_that_fit_one_is_struck() -> None:
    faults = alone()
    fault = Fault("accept", "lost_reply", "after")
    faults.add(fault)
    calls = [called(), called()]
    assert [faults.before(call) for call in calls] == [None, None]
    assert [faults.after(call, Response(200, {})).lost for call in calls] == [True, False]
    assert fault.fired == 1


def test_what_was_not_carried_out_has_no_ghost() -> None:
    faults = alone()
    fault = Fault("accept", "ghost", "after")
    faults.add(fault)
    for carried_out in (False, True):
        call = called()
        faults.before(call)
        faults.after(call, Response(200, {}, carried_out=carried_out))
        assert (fault.fired, faults.haunt()) == (carried_out, carried_out)


def test_a_call_that_failed_on_its_way_leaves_nothing_to_strike_another() -> None:
    """What comes later may well have its identity."""
    faults = alone()
    fault = Fault("accept", "lost_reply", "after", times=50)
    faults.add(fault)
    for _ in range(50):
        faults.before(called())
        assert not faults.after(called("other"), Response(200, {})).lost
    assert fault.fired == 0


def test_what_is_to_strike_a_call_under_way_is_forgotten_with_the_faults() -> None:
    faults = alone()
    fault = Fault("accept", "lost_reply", "after")
    faults.add(fault)
    call = called()
    faults.before(call)
    faults.clear()
    assert not faults.after(call, Response(200, {})).lost
    assert fault.fired == 0


def test_a_ghost_that_fails_does_not_keep_the_others_away() -> None:
    come: list[str] = []
    faults = alone(come)
    faults.add(Fault("accept", "ghost", "after", times=3))
    for name in ("one", "bad", "two"):
        call = called(path=name)
        faults.before(call)
        faults.after(call, Response(200, {}))
    with pytest.raises(ExceptionGroup, match="1 of 3"):
        faults.haunt()
    assert (come, faults.haunt()) == (["one", "two"], 0)


def test_a_late_delivery_that_fails_does_not_keep_the_others_away() -> None:
    come: list[str] = []
    functions = toy_functions(come)
    faults = Faults(functions, lambda call: Response(200, {}))
    faults.add(Fault("work", "late", "after", times=3, service="handler"))
    for name in ("one", "bad", "two"):
        functions.boundaries.at("work", name, "").over()
    with pytest.raises(ExceptionGroup, match="1 of 3"):
        faults.deliver_late()
    assert (come, faults.deliver_late()) == (["one", "two"], 0)


# --- a process that stands still and goes on ------------------------------------------------------------------------


@pytest.mark.parametrize(("when", "seen"), [("before", False), ("after", True)])
def test_a_call_of_a_frozen_process_arrives_or_is_answered_when_it_is_thawed(
    stage: Stage, when: str, seen: bool
) -> None:
    stage.strike("accept", "freeze", when, operation="UpdateItem")
    answers = asked(stage.ask)
    environment = stage.frozen("accept")
    stage.runtime.clock.advance(DEADLINE_S + 1)  # long after its deadline
    assert stage.runtime.functions.running("accept")
    assert ("seen" in (stage.row() or {})) is seen
    assert not answers
    environment.thaw()
    eventually(lambda: answers)
    assert answers[0][0] == 200
    assert (stage.row() or {})["seen"] == {"N": "1"}


def test_a_call_of_a_process_that_was_killed_while_it_stood_never_arrives(stage: Stage) -> None:
    stage.strike("accept", "freeze", "before", operation="UpdateItem")
    answers = asked(stage.ask)
    stage.frozen("accept").kill("crash")
    eventually(lambda: answers)
    assert answers[0][0] == 500
    assert "seen" not in (stage.row() or {})


@pytest.mark.parametrize(("when", "runs"), [("before", 0), ("after", 1)])
def test_a_handler_that_is_frozen_at_its_boundary_goes_on_when_it_is_thawed(stage: Stage, when: str, runs: int) -> None:
    stage.at_handler("accept", "freeze", when)
    answers = asked(stage.ask)
    environment = stage.frozen("accept")
    stage.runtime.clock.advance(DEADLINE_S + 1)
    assert (len(stage.noted("accept")), answers) == (runs, [])
    environment.thaw()
    eventually(lambda: answers)
    assert (answers[0][0], len(stage.noted("accept"))) == (200, 1)
    assert stage.ask()[0] == 200  # and its process serves on


# --- what is asked for -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "hint"),
    [
        ({"kind": "ghost", "service": "handler"}, "handler"),
        ({"kind": "lost_reply", "service": "handler"}, "handler"),
        ({"kind": "duplicate"}, '"service": "handler"'),
        ({"kind": "late", "service": "sqs"}, '"service": "handler"'),
        ({"kind": "drop", "service": "handler", "when": "after"}, "before"),
        ({"kind": "duplicate", "service": "handler", "when": "before"}, "after"),
        ({"kind": "ghost", "when": "before"}, "after"),
        ({"kind": "throttle", "service": "handler", "when": "after"}, "before"),
        ({"kind": "crash", "service": "handler", "operation": "PutItem"}, "Invoke"),
        ({"kind": "drop", "service": "handler"}, "stream"),
    ],
)
def test_a_fault_that_means_nothing_is_refused_with_a_hint(stage: Stage, fault: dict[str, Any], hint: str) -> None:
    answer = request("POST", f"{stage.runtime.api}/_local/faults", {"function": "work", **fault})
    assert answer.status == 400
    assert hint in answer.json["message"]
    assert stage.runtime.faults.describe() == []


def test_a_test_cannot_ask_for_what_means_nothing_either(stage: Stage) -> None:
    with pytest.raises(BadRequestError, match="handler"):
        stage.strike("work", "duplicate", "after", operation="PutItem")


def test_a_fault_at_a_handler_is_listed_with_the_others(stage: Stage) -> None:
    url = f"{stage.runtime.api}/_local/faults"
    asked_for = {"function": "dispatch", "kind": "drop", "service": "handler", "job_id": "job-1"}
    assert request("POST", url, asked_for).status == 200
    (listed,) = request("GET", url).json["faults"]
    assert listed == {**asked_for, "when": "before", "nth": 1, "times": 1, "fired": 0}


def called(function: str = "accept", path: str = "/") -> Call:
    """A call of a new invocation."""
    return Call(Caller(function, "role", uuid.uuid4().hex), "sqs", "SendMessage", b"", {}, path)


def alone(come: list[str] | None = None) -> Faults:
    """The gate without a stack: `come` hears of what it repeats."""
    heard: list[str] = [] if come is None else come

    def repeat(call: Call) -> Response:
        note(heard, call.path)
        return Response(200, {})

    return Faults(toy_functions(heard), repeat)


def toy_functions(come: list[str]) -> Any:
    def invoke(role: str, event: str, **_: str) -> Any:
        note(come, event)
        return SimpleNamespace(throttled=False)

    return SimpleNamespace(invoke=invoke, environment_of=lambda request_id: None)


def note(come: list[str], name: str) -> None:
    if name == "bad":
        raise RuntimeError(name)
    come.append(name)


def asked(action: Callable[[], Any]) -> list[Any]:
    """Do it on another thread; what it answered, when it did."""
    answers: list[Any] = []
    threading.Thread(target=lambda: answers.append(action()), daemon=True).start()
    return answers
