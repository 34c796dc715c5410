"""The child's side of an execution environment: what the Lambda runtime does around a handler."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TextIO

from local.clock import VirtualClock
from local.compute.context import LambdaContext
from local.compute.frames import encode, receive

RESPONSE_LIMIT_BYTES = 6_291_556
Handler = Callable[[Any, LambdaContext], Any]


class _HandlerMissingError(Exception):
    """The handler setting names nothing that can be called."""


def run(connection: socket.socket) -> int:
    """Initialise, then serve one invocation after another until the runtime is gone; returns the exit status."""
    start = receive(connection)
    if start is None:
        return 0
    _settle(start)
    child = _Child(connection, VirtualClock(start["offset_s"]))
    return child.serve(start["handler"])


def _settle(start: dict[str, Any]) -> None:
    """Only the function's environment and code are left of what the parent had."""
    os.environ.clear()
    os.environ.update(start["environment"])
    time.tzset()
    os.chdir(start["code"])
    sys.path[:] = [start["code"], *(path for path in sys.path if path != start["forget_path"])]
    sys.argv[:] = ["bootstrap"]
    sys.stdout, sys.stderr = _line_writer(1), _line_writer(2)
    if start["address_space_bytes"]:
        limit = start["address_space_bytes"]
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _line_writer(descriptor: int) -> TextIO:
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


class _Child:
    """One environment: a control thread that listens, and the main thread that runs the handler."""

    def __init__(self, connection: socket.socket, clock: VirtualClock) -> None:
        self._connection = connection
        self._clock = clock
        self._saying = threading.Lock()
        self._work: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def serve(self, handler_name: str) -> int:
        self._clock.start()
        threading.Thread(target=self._listen, name="runtime-control", daemon=True).start()
        try:
            handler = _load(handler_name)
        except SystemExit as leaving:
            return _exit_status(leaving)
        except BaseException as error:
            self._say({"type": "init_error", "error": _init_error(error)})
            return 1
        self._say({"type": "ready"})
        while True:
            order = self._work.get()
            answer = _invoke(handler, order)
            if isinstance(answer, int):
                return answer
            self._say(answer)

    def _listen(self) -> None:
        """Orders come at any time, so that the clock moves also under a running handler; the runtime is told when it
        has."""
        while True:
            message = None
            with contextlib.suppress(OSError):
                message = receive(self._connection)
            if message is None:
                os.kill(os.getpid(), signal.SIGKILL)  # the runtime is gone: no `finally` may still act
            elif message["type"] == "clock":
                self._clock.synchronise(message["offset_s"])
                with contextlib.suppress(OSError):
                    self._send(message)
            else:
                self._clock.synchronise(message["offset_s"])
                self._work.put(message)

    def _say(self, message: dict[str, Any]) -> None:
        _flush()
        self._send(message)

    def _send(self, message: dict[str, Any]) -> None:
        with self._saying:
            self._connection.sendall(encode(message))


def _load(name: str) -> Handler:
    module_name, _, attribute = name.rpartition(".")
    module = importlib.import_module(module_name.replace("/", "."))
    handler = getattr(module, attribute, None)
    if not callable(handler):
        raise _HandlerMissingError(f"Handler '{attribute}' missing on module '{module_name}'")
    return handler  # type: ignore[no-any-return]


def _init_error(error: BaseException) -> dict[str, Any]:
    described = _describe(error)
    kinds = {
        _HandlerMissingError: "Runtime.HandlerNotFound",
        ImportError: "Runtime.ImportModuleError",
        SyntaxError: "Runtime.UserCodeSyntaxError",
    }
    for kind, name in kinds.items():
        if isinstance(error, kind):
            described["errorType"] = name
    _log(described)
    return described


def _invoke(handler: Handler, order: dict[str, Any]) -> dict[str, Any] | int:
    """The answer of one invocation, or the status with which the process must end."""
    request_id = order["request_id"]
    os.environ["_X_AMZN_TRACE_ID"] = order["trace_id"]
    before = set(threading.enumerate())
    try:
        answer = _answer(handler(order["event"], LambdaContext(order)))
    except SystemExit as leaving:
        return _exit_status(leaving)
    except MemoryError as error:
        _log(_describe(error))
        return 137  # as if the kernel had killed it: nothing of this process is to be trusted now
    except BaseException as error:
        described = _describe(error)
        _log(described)
        answer = {"error": described}
    left = sorted(thread.name for thread in threading.enumerate() if thread not in before and thread.is_alive())
    return {"type": "result", "request_id": request_id, "threads": left, **answer}


def _answer(result: Any) -> dict[str, Any]:
    try:
        text = json.dumps(result, default=_number, allow_nan=False)
    except Exception as error:
        return {"error": {"errorType": "Runtime.MarshalError", "errorMessage": f"Unable to marshal response: {error}"}}
    if len(text.encode("utf-8", "surrogatepass")) > RESPONSE_LIMIT_BYTES:
        message = f"Response payload size exceeded maximum allowed payload size ({RESPONSE_LIMIT_BYTES} bytes)."
        return {"error": {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": message}}
    return {"result": json.loads(text)}


def _number(value: Any) -> Any:
    """The one thing that Lambda's own encoder adds to JSON."""
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _describe(error: BaseException) -> dict[str, Any]:
    lines = traceback.format_exception(type(error), error, error.__traceback__, limit=-20)
    return {"errorType": type(error).__name__, "errorMessage": str(error), "stackTrace": lines[1:-1]}


def _log(described: dict[str, Any]) -> None:
    print(f"[ERROR] {described['errorType']}: {described['errorMessage']}")  # noqa: T201
    print("".join(described["stackTrace"]), end="")  # noqa: T201


def _exit_status(leaving: SystemExit) -> int:
    _flush()
    if leaving.code is None:
        return 0
    return leaving.code & 0xFF if isinstance(leaving.code, int) else 1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a handler may have closed them
            stream.flush()
