"""How the runtime starts, refuses to start, and ends: templates that AWS would refuse, the command line, reloading."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from local.runtime import Runtime
from local.stack.errors import TemplateError
from local.synthesis import SynthesisError, synthesize
from tests.integration.local_toys import Toy, eventually, request

REPOSITORY = Path(__file__).parents[2]
NOTHING = "def handler(event, context):\n    return 'old'\n"


def start(toy: Toy, **more: Any) -> Runtime:
    return Runtime(assembly=toy.write(), code=toy.code, write_log=lambda *_: None, **more)


@pytest.mark.parametrize(
    ("function", "queue", "mapping"),
    [
        ({"Timeout": 60}, {"VisibilityTimeout": 30}, {}),
        ({}, {}, {"BatchSize": 11}),
        ({}, {}, {"ScalingConfig": {"MaximumConcurrency": 1}}),
    ],
)
def test_moto_22_mapping_that_lambda_refuses_is_refused(tmp_path, function, queue, mapping):
    toy = Toy(tmp_path)
    toy.function("work", NOTHING, **function)
    toy.queue("Queue", **queue)
    toy.mapping("work", "Queue", **mapping)
    with pytest.raises(TemplateError, match="WorkQueue"):
        start(toy).start()


def test_mapping_of_a_stream_without_permission_to_list_streams_is_refused(tmp_path):
    """https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-eventsourcemapping.html"""
    toy = Toy(tmp_path)
    toy.function("follow", NOTHING)
    toy.table("Table")
    toy.mapping("follow", "Table", "StreamArn", StartingPosition="LATEST")
    statement = toy.resources["Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"][0]
    statement["Action"] = [f"dynamodb:{action}" for action in ("DescribeStream", "GetRecords", "GetShardIterator")]
    with pytest.raises(TemplateError, match="dynamodb:ListStreams"):
        start(toy).start()


def test_mapping_without_permission_to_consume_is_refused(tmp_path):
    toy = Toy(tmp_path)
    toy.function("work", NOTHING)
    toy.queue("Queue")
    toy.mapping("work", "Queue")
    statement = toy.resources["Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"][0]
    statement["Action"] = ["sqs:ReceiveMessage", "sqs:GetQueueAttributes"]
    with pytest.raises(TemplateError, match="sqs:DeleteMessage"):
        start(toy).start()


def test_failure_destination_that_is_not_played_is_refused(tmp_path):
    toy = Toy(tmp_path)
    toy.function("work", NOTHING)
    toy.resources["Config"] = {
        "Type": "AWS::Lambda::EventInvokeConfig",
        "Properties": {
            "FunctionName": {"Ref": "Work"},
            "Qualifier": "$LATEST",
            "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["Work", "Arn"]}}},
        },
    }
    with pytest.raises(TemplateError, match=r"Config.* kind lambda"):
        start(toy).start()


def test_schedule_that_may_not_invoke_is_refused(tmp_path):
    toy = Toy(tmp_path)
    toy.function("timed", NOTHING)
    toy.schedule("timed", "rate(1 day)", {})
    statement = toy.resources["Role"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"][0]
    statement["Action"] = ["sqs:*"]
    with pytest.raises(TemplateError, match="lambda:InvokeFunction"):
        start(toy).start()


def test_route_that_may_not_invoke_its_function_is_refused(tmp_path):
    toy = Toy(tmp_path)
    toy.function("echo", NOTHING)
    toy.api({"GET /a": "echo", "GET /b": "echo"})
    del toy.resources["Permission1"]
    with pytest.raises(TemplateError, match="GET /b"):
        start(toy).start()


def test_integration_that_is_not_played_here_is_refused(tmp_path):
    toy = Toy(tmp_path)
    toy.function("echo", NOTHING)
    toy.api({"POST /events": "echo"})
    toy.resources["Integration0"]["Properties"]["IntegrationSubtype"] = "SQS-SendMessage"
    with pytest.raises(TemplateError, match="POST /events"):
        start(toy).start()


def test_runtime_leaves_no_thread_and_can_be_started_again_after_a_refusal(tmp_path):
    before = set(threading.enumerate())
    for attempt in range(2):
        toy = Toy(tmp_path / str(attempt))
        toy.function("echo", NOTHING)
        toy.api({"GET /": "echo"})
        with start(toy) as runtime:
            assert request("GET", runtime.api).body == b"old"
    eventually(lambda: not set(threading.enumerate()) - before)


def test_taken_port_is_an_os_error_and_nothing_stays_open(tmp_path):
    toy = Toy(tmp_path)
    toy.function("echo", NOTHING)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        start(toy, model_port=taken.getsockname()[1]).start()


def test_reload_picks_up_code_that_changed_within_a_second_and_has_the_same_size(tmp_path):
    toy = Toy(tmp_path)
    toy.function("echo", NOTHING)
    (toy.code / "lambdas").symlink_to(toy.code / "handlers")
    with start(toy, reload=True) as runtime:
        assert runtime.functions.invoke("echo", {}).result == "old"
        file = toy.code / "handlers" / "echo.py"
        written_ns = file.stat().st_mtime_ns
        same_second_ns = written_ns + (1 if written_ns % 10**9 < 10**9 - 1 else -1)
        file.write_text(NOTHING.replace("old", "new"))
        os.utime(file, ns=(same_second_ns, same_second_ns))
        eventually(lambda: runtime.functions.invoke("echo", {}).result == "new")


def test_settings_that_the_app_refuses_are_told_in_its_words():
    with pytest.raises(SynthesisError, match="wrokers"):
        synthesize({"wrokers": "3"})


# --- the command line ----------------------------------------------------------------------------------------


@contextmanager
def command(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """`python -m local …`; killed if the test did not end it."""
    with subprocess.Popen(
        [sys.executable, "-m", "local", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_command_says_when_it_is_ready_and_ends_cleanly_on_a_signal(number):
    with command("run", AWS_PROFILE="of-the-developer", AWS_ENDPOINT_URL="http://elsewhere.test") as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["ready"] is True
        assert ready["outputs"]["ApiUrl"].startswith(ready["api"])
        assert ready["websocket"] == ready["outputs"]["WebSocketUrl"]
        assert ready["management"].startswith(ready["aws"])
        children = _children(process.pid)
        process.send_signal(number)
        rest, log = process.communicate(timeout=300)
        assert (process.returncode, rest) == (0, "")
        assert "ready after" in log
        assert "Traceback" not in log
        assert children
        # whoever inherits the killed ones may take a moment to bury them
        eventually(lambda: not [pid for pid in children if Path(f"/proc/{pid}").exists()])


def test_taken_port_is_one_line_and_exit_code_2():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with command("run", "--port", port) as process:
            output, log = process.communicate(timeout=300)
    assert (process.returncode, output) == (2, "")
    assert log.count("\n") == 1
    assert port in log


@pytest.mark.parametrize(
    "arguments", [["run", "--settings", "nonsense"], ["run", "--model-url", "http://x", "--model-script", "y"], []]
)
def test_wrong_arguments_are_told(arguments):
    with command(*arguments) as process:
        _, log = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "usage:" in log


def _children(pid: int) -> list[int]:
    """Descendants, where the system tells."""
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            child = int(stat.parent.name)
            found += [child, *_children(child)]
    return found
