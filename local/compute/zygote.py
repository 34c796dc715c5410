"""The process that every execution environment is forked from: the AWS SDK is imported and its data read here, once,
and nothing else.

A fork of its own instead of multiprocessing's fork server: that one imports the parent's `__main__` into each child
(all of moto, or pytest), keeps one server for the whole process, and cannot say how a child ended.
Started as `python -m local.compute.zygote <descriptor>`, it takes JSON lines from that socket:
  {"spawn": token} with three descriptors (control, stdout, stderr) and {"signal": token, "number": n},
and answers {"born": token, "pid": n} and {"exited": token, "status": n}. When the socket closes, everything dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

_DESCRIPTORS_PER_CHILD = 3
_SERVICES = ("bedrock-runtime", "dynamodb", "lambda", "s3", "secretsmanager", "sesv2", "sns", "sqs")
_PR_SET_PDEATHSIG = 1


def preload() -> None:
    """Import what every function would import first anyway; clients and sessions belong to the children."""

    for name in ("boto3.session", "botocore.auth", "botocore.httpsession", "botocore.retryhandler"):
        importlib.import_module(name)
    sys.modules["pytest"] = None  # type: ignore[assignment]  # time-machine would bring it along
    importlib.import_module("local.compute.bootstrap")
    del sys.modules["pytest"]
    _read_service_models()
    gc.collect()
    gc.freeze()  # shared pages stay shared when a child's collector runs


def _read_service_models() -> None:
    """What describes the services is half of the time that a function takes to start. Read once, by a session that is
    thrown away; the SDK only reads it afterwards, and shares it among the clients of a session anyway."""
    loaders: Any = importlib.import_module("botocore.loaders")
    session: Any = importlib.import_module("boto3.session")
    loaders.JSONFileLoader.load_file = _remembering(loaders.JSONFileLoader.load_file)
    shown = session.Session(aws_access_key_id="none", aws_secret_access_key="none", region_name="us-east-1")
    for service in _SERVICES:
        shown.client(service).close()


def _remembering(load_file: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    found: dict[str, Any] = {}

    def load(loader: Any, path: str) -> Any:
        if path not in found:
            found[path] = load_file(loader, path)
        return found[path]

    return load


class Zygote:
    """Forks children on request, passes signals on to those still alive, and reports how each ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pids: dict[int, int] = {}
        self._buffer = b""
        self._descriptors: list[int] = []
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def serve(self) -> None:
        """Until the runtime closes its end."""
        woken, waker = socket.socketpair()
        woken.setblocking(False)
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if woken in ready:
                    with contextlib.suppress(BlockingIOError):
                        woken.recv(4096)
                self._reap()
                if self._control in ready and not self._take_orders():
                    return

    def kill_all(self) -> None:
        """No child outlives this process."""
        signal.set_wakeup_fd(-1)
        for token in list(self._pids):
            self._signal(token, signal.SIGKILL)

    def _take_orders(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._control, 1 << 16, 30)
        if not data:
            return False
        self._descriptors += descriptors
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            if "spawn" in order:
                self._spawn(order["spawn"])
            else:
                self._signal(order["signal"], order["number"])
        return True

    def _spawn(self, token: int) -> None:
        mine = self._descriptors[:_DESCRIPTORS_PER_CHILD]
        del self._descriptors[:_DESCRIPTORS_PER_CHILD]
        try:
            pid = os.fork()
        except OSError:
            self._report({"exited": token, "status": -1})
        else:
            if pid == 0:
                self._become_child(*mine)
            with contextlib.suppress(OSError):  # the child may have done it first
                os.setpgid(pid, pid)
            self._pids[token] = pid
            self._report({"born": token, "pid": pid})
        finally:
            for descriptor in mine:
                os.close(descriptor)

    def _become_child(self, control: int, stdout: int, stderr: int) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            os.setpgid(0, 0)  # so that what a handler starts is killed with it
            self._die_with_parent()
            self._control.close()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            from local.compute import bootstrap  # noqa: PLC0415 (imported by `preload`)

            status = bootstrap.run(socket.socket(fileno=os.dup(control)))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def _die_with_parent(self) -> None:
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def _signal(self, token: int, number: int) -> None:
        """To the child's whole group; only while it is not reaped, so that the number cannot belong to another."""
        pid = self._pids.get(token)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)

    def _reap(self) -> None:
        for token, pid in list(self._pids.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)  # what the handler left running
                del self._pids[token]
                self._report({"exited": token, "status": os.waitstatus_to_exitcode(status)})

    def _report(self, event: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the runtime is gone; `serve` sees it too
            self._control.sendall(json.dumps(event).encode() + b"\n")


def main() -> None:
    """Serve the runtime that started this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runtime decides when to end
    preload()
    zygote = Zygote(socket.socket(fileno=int(sys.argv[1])))
    try:
        zygote.serve()
    finally:
        zygote.kill_all()


if __name__ == "__main__":
    main()
