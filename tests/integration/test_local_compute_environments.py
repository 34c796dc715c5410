"""What a function sees and what becomes of it: processes, limits, crashes, time."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.aws.calls import Callers
from local.clock import VirtualClock
from local.compute.environments import Functions
from local.compute.frames import encode
from local.compute.invocation import Invocation
from local.compute.process import Process
from local.compute.processes import Processes
from local.stack.errors import TemplateError
from tests.integration.local_toys import eventually

ARN = "arn:aws:lambda:us-east-1:123456789012:function:toy"
HANDLER = """
import json, os, resource, sys, threading, time
COUNT = 0

def handler(event, context):
    global COUNT
    COUNT += 1
    do = event.get("do")
    if do == "sleep":
        time.sleep(event["s"])
    elif do == "raise":
        raise ValueError("no such luck")
    elif do == "sys.exit":
        sys.exit(3)
    elif do == "os._exit":
        try:
            os._exit(0)
        finally:
            print("finally")
    elif do == "set":
        return {1, 2}
    elif do == "nan":
        return float("nan")
    elif do == "large":
        return "x" * 6_300_000
    elif do == "allocate":
        kept = []
        while True:
            kept.append(bytearray(b"x" * 1_000_000))
    elif do == "wait":
        while not os.path.exists(event["for"]):
            time.sleep(0.01)
    elif do == "thread":
        threading.Thread(target=time.sleep, args=(300,), name="left-behind", daemon=event["daemon"]).start()
    elif do == "recurse":
        return handler(event, context)
    elif do == "time":
        left, end = context.get_remaining_time_in_millis(), time.monotonic() + 100
        print("looks at the clock")
        while left - context.get_remaining_time_in_millis() < event["until_ms"] and time.monotonic() < end:
            time.sleep(0.01)
        return {"now": time.time(), "left": left, "left_after": context.get_remaining_time_in_millis()}
    elif do == "print":
        print(json.dumps({"level": "INFO"}))
        print("to stderr", file=sys.stderr)
        sys.stdout.write("no newline")
    elif do == "context":
        return {name: str(getattr(context, name)) for name in event["names"]}
    elif do == "environment":
        return dict(os.environ)
    elif do == "modules":
        return sorted(name for name in sys.modules if name.split(".")[0] in event["names"])
    return {"event": event, "count": COUNT, "pid": os.getpid(), "key": os.environ["AWS_ACCESS_KEY_ID"]}
"""
TIMEOUT_S = 900
"""In virtual time, which a test skips; far more than a slow machine needs in real time."""
BROKEN = {
    "missing": ("import nowhere_to_be_found", "Runtime.ImportModuleError"),
    "unspeakable": ("def handler(:", "Runtime.UserCodeSyntaxError"),
    "nameless": ("x = 1", "Runtime.HandlerNotFound"),
    "raising": ("raise KeyError('TABLE')", "KeyError"),
    "leaving": ("import sys\nsys.exit(4)", "Runtime.ExitError"),
}


class ToyStack:
    """Functions only, and as much of a stack as they need."""

    region = "us-east-1"

    def __init__(self, **functions: dict[str, Any]) -> None:
        self._resources = [
            SimpleNamespace(
                type="AWS::Lambda::Function",
                logical_id=role.title(),
                ref=role,
                attributes={"Arn": ARN.replace("toy", role)},
                properties={"Runtime": "python3.13", "Handler": f"handlers.{role}.handler", **properties},
            )
            for role, properties in functions.items()
        ]

    def of_type(self, name: str) -> list[Any]:
        return [resource for resource in self._resources if resource.type == name]


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "handlers").mkdir()
    for role in ("toy", "hasty"):
        (folder / "handlers" / f"{role}.py").write_text(HANDLER)
    for role, (source, _) in BROKEN.items():
        (folder / "handlers" / f"{role}.py").write_text(source)
    return folder


@pytest.fixture(scope="module")
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


@pytest.fixture(scope="module")
def callers() -> Callers:
    return Callers()


@pytest.fixture(scope="module")
def functions(code: Path, clock: VirtualClock, callers: Callers) -> Iterator[Functions]:
    toy = {"Timeout": TIMEOUT_S, "MemorySize": 128, "Environment": {"Variables": {"NAME": "value"}}}
    stack: Any = ToyStack(toy=toy, hasty={"Timeout": 2}, **{role: {"Timeout": TIMEOUT_S} for role in BROKEN})
    aws: Any = SimpleNamespace(url="http://aws.test", callers=callers)
    functions = Functions(stack, aws, clock, "http://model.test", code=code, write_log=lambda *_: None)
    functions.start()
    yield functions
    functions.stop()


@pytest.fixture
def invoke(functions: Functions) -> Callable[..., Invocation]:
    return lambda **event: functions.invoke("toy", event)


class Held:
    """Invocations that end when they are let go."""

    def __init__(self, functions: Functions, gate: Path) -> None:
        self._functions = functions
        self._gate = gate
        self._threads: list[threading.Thread] = []
        self.outcomes: list[Invocation] = []

    def invoke(self, **event: Any) -> threading.Thread:
        def run() -> None:
            held = {**event, "do": "wait", "for": str(self._gate)}
            self.outcomes.append(self._functions.invoke("toy", held, wait_s=300))

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()
        return thread

    def until_running(self, number: int) -> list[str]:
        eventually(lambda: len(self._functions.running("toy")) == number)
        return self._functions.running("toy")

    def until_waiting(self, number: int) -> None:
        """In front of the function, because there is no room for them."""
        eventually(lambda: len(self._functions._pools["toy"]._queue) == number)

    def let_go(self) -> list[Invocation]:
        """When all have ended."""
        self._gate.touch()
        for thread in self._threads:
            thread.join(120)
        assert len(self.outcomes) == len(self._threads)
        return self.outcomes


@pytest.fixture
def held(functions: Functions, tmp_path: Path) -> Iterator[Held]:
    held = Held(functions, tmp_path / "gate")
    yield held
    held.let_go()
    functions.set_concurrency("toy", None)


def kind(outcome: Invocation) -> str:
    assert outcome.error is not None
    return str(outcome.error["errorType"])


def test_environment_holds_the_functions_variables_and_lambdas_and_nothing_of_the_parent(invoke, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "x")
    seen = invoke(do="environment").result
    assert seen["NAME"] == "value"
    assert seen["AWS_LAMBDA_FUNCTION_NAME"] == "toy"
    assert seen["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "128"
    assert seen["AWS_ENDPOINT_URL"] == "http://aws.test"
    assert seen["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"] == "http://model.test"
    assert seen["_HANDLER"] == "handlers.toy.handler"
    assert seen["TZ"] == ":UTC"
    assert not {"SECRET_OF_THE_PARENT", "HOME", "PYTHONPATH", "MALLOC_ARENA_MAX"} & set(seen)


def test_child_imports_neither_moto_nor_pytest_nor_powertools(invoke):
    assert invoke(do="modules", names=["moto", "pytest", "aws_lambda_powertools", "werkzeug"]).result == []


def test_one_environment_serves_one_invocation_after_another(functions, invoke):
    functions.reload()
    first, second = invoke().result, invoke().result
    assert (second["count"], second["pid"]) == (first["count"] + 1, first["pid"])


def test_invocations_at_once_have_an_environment_and_an_access_key_each(held):
    for _ in range(3):
        held.invoke()
    held.until_running(3)
    results = [outcome.result for outcome in held.let_go()]
    assert len({result["pid"] for result in results}) == 3
    assert len({result["key"] for result in results}) == 3
    assert all(result["key"].startswith("ASIA") for result in results)


def test_what_is_over_is_in_the_history_before_it_runs_no_more(functions, invoke, monkeypatch):
    class Watched(deque[Invocation]):
        def append(self, outcome: Invocation) -> None:
            super().append(outcome)
            running.extend(functions.running("toy"))

    running: list[str] = []
    monkeypatch.setattr(functions, "history", Watched())
    outcome = invoke()
    assert [one.request_id for one in functions.history] == running == [outcome.request_id]


def test_context_says_who_runs_and_for_how_long(functions, invoke):
    names = ["aws_request_id", "function_name", "memory_limit_in_mb", "invoked_function_arn", "log_group_name"]
    outcome = invoke(do="context", names=names)
    assert outcome.result == {
        "aws_request_id": outcome.request_id,
        "function_name": "toy",
        "memory_limit_in_mb": "128",
        "invoked_function_arn": ARN,
        "log_group_name": "/aws/lambda/toy",
    }


def test_exception_is_an_error_with_type_message_and_trace_and_keeps_the_environment(invoke):
    before = invoke().result["pid"]
    outcome = invoke(do="raise")
    assert outcome.error is not None
    assert (outcome.error["errorType"], outcome.error["errorMessage"]) == ("ValueError", "no such luck")
    assert "toy.py" in "".join(outcome.error["stackTrace"])
    assert "[ERROR] ValueError: no such luck" in outcome.logs
    assert invoke().result["pid"] == before


@pytest.mark.parametrize("do", ["set", "nan"])
def test_result_that_is_no_json_is_a_marshal_error(invoke, do):
    assert kind(invoke(do=do)) == "Runtime.MarshalError"


def test_response_above_six_megabytes_is_refused(invoke):
    assert kind(invoke(do="large")) == "Function.ResponseSizeTooLarge"


def test_endless_recursion_is_an_ordinary_error(invoke):
    assert kind(invoke(do="recurse")) == "RecursionError"


@pytest.mark.parametrize("do", ["sys.exit", "os._exit", "allocate"])
def test_process_that_ends_itself_is_an_exit_error_and_is_replaced(invoke, callers, do):
    before = invoke(do="environment").result["AWS_ACCESS_KEY_ID"]
    outcome = invoke(do=do)
    assert (kind(outcome), outcome.crashed, outcome.timed_out) == ("Runtime.ExitError", True, False)
    assert "finally" not in outcome.logs
    assert callers.is_revoked(before)
    assert invoke(do="environment").result["AWS_ACCESS_KEY_ID"] != before


def test_function_is_killed_at_its_deadline_and_its_key_with_it(functions, callers):
    revoked, began = set(callers._revoked), time.monotonic()
    outcome = functions.invoke("hasty", {"do": "sleep", "s": 300})
    assert (kind(outcome), outcome.timed_out) == ("Sandbox.Timedout", True)
    assert "timed out after 2.00 seconds" in outcome.error["errorMessage"]
    assert 1.9 < time.monotonic() - began < 120
    assert len(callers._revoked - revoked) == 1


def test_deadline_is_counted_in_virtual_time(held, clock):
    thread = held.invoke()
    held.until_running(1)
    clock.advance(TIMEOUT_S + 1)
    thread.join(120)
    assert held.outcomes[0].timed_out


def test_clock_moves_under_a_running_handler(functions, clock):
    outcomes: list[Invocation] = []
    event = {"do": "time", "until_ms": 300_000}
    thread = threading.Thread(target=lambda: outcomes.append(functions.invoke("toy", event)))
    functions.logs.clear()
    thread.start()
    eventually(lambda: [line for _, _, line in list(functions.logs) if line == "looks at the clock"])
    before = clock.now().timestamp()
    clock.advance(300)
    thread.join(120)
    seen = outcomes[0].result
    assert before + 299 < seen["now"] < clock.now().timestamp() + 1  # each process has a clock of its own
    assert seen["left"] - seen["left_after"] >= 300_000


@pytest.mark.parametrize("daemon", [True, False])
def test_thread_left_behind_is_an_error_that_names_it_and_ends_the_environment(invoke, daemon):
    before = invoke().result["pid"]
    outcome = invoke(do="thread", daemon=daemon)
    assert kind(outcome) == "Local.LiveThread"
    assert "left-behind" in outcome.error["errorMessage"]
    assert invoke().result["pid"] != before


@pytest.mark.parametrize("role", BROKEN)
def test_error_of_the_init_phase_is_the_invocations(functions, role):
    assert kind(functions.invoke(role, {})) == BROKEN[role][1]
    assert kind(functions.invoke(role, {})) == BROKEN[role][1]


def test_last_words_of_a_process_are_heard_before_its_end():
    heard: list[Any] = []
    owner: Any = SimpleNamespace(on_message=lambda message: heard.append(message["type"]), on_exit=heard.append)
    processes = Processes(lambda: 5.0)
    ours, theirs = socket.socketpair()
    process = Process(1, owner, ours)
    with theirs, selectors.DefaultSelector() as processes._selector:
        processes._children[1], processes._pipes[1] = process, []
        processes._selector.register(ours, selectors.EVENT_READ)
        theirs.sendall(encode({"type": "init_error"}))
        processes._forget(process, 1)
    assert heard == ["init_error", 1]


def test_output_is_kept_line_by_line_as_it_was_written(invoke):
    assert sorted(invoke(do="print").logs) == ["no newline", "to stderr", '{"level": "INFO"}']
    assert invoke().logs == ()


def test_event_and_result_pass_through_json(functions):
    assert functions.invoke("toy", {"a": [1, None, "ü", (2, 3)]}).result["event"] == {"a": [1, None, "ü", [2, 3]]}


def test_no_more_run_at_once_than_allowed_and_the_rest_wait_in_line(functions, held):
    functions.set_concurrency("toy", 2)
    for _ in range(6):
        held.invoke()
    held.until_running(2)
    held.until_waiting(4)
    assert len(functions.running("toy")) == 2
    assert all(outcome.ok for outcome in held.let_go())
    assert functions.invoke("toy", {}, wait_s=0.1).ok


def test_a_limit_set_by_hand_is_for_all_sources_together_until_that_of_the_template_is_restored(functions):
    """Two mappings of one function have a share each; a test that says how many may run means all of them."""
    functions.set_concurrency("toy", None)
    assert (functions.concurrency("toy"), functions.share("toy", 5), functions.share("toy", None)) == (10, 5, None)
    functions.set_concurrency("toy", 3)
    assert (functions.concurrency("toy"), functions.share("toy", 5)) == (3, None)
    functions.set_concurrency("toy", None)
    assert (functions.concurrency("toy"), functions.share("toy", 5)) == (10, 5)


def test_who_waits_longest_runs_next(functions, held):
    functions.set_concurrency("toy", 1)
    functions.history.clear()
    held.invoke(number=0)
    held.until_running(1)
    for number in range(1, 5):
        held.invoke(number=number)
        held.until_waiting(number)
    held.let_go()
    assert [outcome.result["event"]["number"] for outcome in functions.history] == [0, 1, 2, 3, 4]


def test_who_finds_no_room_in_time_is_throttled(functions, held):
    functions.set_concurrency("toy", 1)
    held.invoke()
    held.until_running(1)
    outcome = functions.invoke("toy", {}, wait_s=0.1)
    assert outcome.throttled
    assert kind(outcome) == "TooManyRequestsException"
    assert held.let_go()[0].ok


def test_paused_function_starts_nothing_until_resumed(functions):
    functions.pause("toy")
    assert functions.invoke("toy", {}).throttled
    assert functions.acquire("toy", 0.05) is None
    functions.resume("toy")
    assert functions.invoke("toy", {}).ok


def test_reload_imports_changed_code(functions, code):
    file = code / "handlers" / "toy.py"
    functions.invoke("toy", {})
    try:
        file.write_text("def handler(event, context):\n    return 'changed'\n")
        assert functions.invoke("toy", {}).result != "changed"
        functions.reload()
        assert functions.invoke("toy", {}).result == "changed"
    finally:
        file.write_text(HANDLER)
        functions.reload()


def test_frozen_invocation_outlives_its_deadline_and_goes_on_when_thawed(functions, clock, held, tmp_path):
    thread = held.invoke()
    (request_id,) = held.until_running(1)
    environment = functions.environment_of(request_id)
    environment.freeze(outlives=True)
    eventually(lambda: _state(environment._process.pid) in ("T", UNKNOWN))
    clock.advance(TIMEOUT_S + 1)
    (tmp_path / "gate").touch()
    time.sleep(0.5)
    assert thread.is_alive()
    environment.thaw()
    assert held.let_go()[0].ok


def test_a_process_that_stood_still_can_be_waited_for_until_it_shows_the_time_of_now(functions, clock, held):
    held.invoke()
    (request_id,) = held.until_running(1)
    environment = functions.environment_of(request_id)
    environment.freeze(outlives=True)
    eventually(lambda: _state(environment._process.pid) in ("T", UNKNOWN))
    clock.advance(100)
    environment.thaw()
    environment.wait_for_its_clock()
    assert environment._offset_s == clock.offset_s
    environment.kill("crash")
    assert environment.gone.wait(60)
    environment.wait_for_its_clock()  # for nobody


def test_killed_invocation_is_reported_as_a_crash_with_its_reason(functions, held):
    thread = held.invoke()
    (request_id,) = held.until_running(1)
    functions.environment_of(request_id).kill("crash")
    thread.join(120)
    (outcome,) = held.outcomes
    assert (outcome.crashed, outcome.reason, kind(outcome)) == (True, "crash", "Runtime.ExitError")


@pytest.mark.parametrize("variables", [{"AWS_REGION": "x"}, {"A": "one letter"}, {"NUMBER": 5}, {"LONG": "x" * 4097}])
def test_environment_variables_that_lambda_refuses_are_refused(code, clock, callers, variables):
    stack: Any = ToyStack(toy={"Environment": {"Variables": variables}})
    aws: Any = SimpleNamespace(url="http://aws.test", callers=callers)
    with pytest.raises(TemplateError, match="Toy"):
        Functions(stack, aws, clock, "http://model.test", code=code)


def test_nothing_is_left_when_the_runtime_is_killed(tmp_path, code):
    """The parent gets SIGKILL, so nobody cleans up: the children have to notice by themselves."""
    script = tmp_path / "parent.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys, threading, time
        from pathlib import Path
        from types import SimpleNamespace
        from local.aws.calls import Callers
        from local.clock import VirtualClock
        from local.compute.environments import Functions
        from tests.integration.test_local_compute_environments import ToyStack
        clock = VirtualClock()
        clock.start()
        functions = Functions(ToyStack(toy={{"Timeout": 900}}), SimpleNamespace(url="", callers=Callers()), clock, "",
                              code=Path({str(code)!r}), write_log=lambda *_: None)
        functions.start()
        pid = functions.invoke("toy", {{}}).result["pid"]
        threading.Thread(target=functions.invoke, args=("toy", {{"do": "sleep", "s": 600}}), daemon=True).start()
        while not functions.running("toy"):
            time.sleep(0.01)
        print(pid, flush=True)
        time.sleep(600)
        """)
    )
    repository = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, cwd=repository,
                          env={**os.environ, "PYTHONPATH": str(repository)}) as parent:  # fmt: skip
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return _state(pid) in ("Z", UNKNOWN)

    eventually(gone)


UNKNOWN = ""


def _state(pid: int | None) -> str:
    """As the system tells it, where it does."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return UNKNOWN
