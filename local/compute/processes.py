"""The runtime's side of its child processes: starts them through the zygote and reads everything they say."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from local.compute.process import Owner, Pipe, Process

_log = logging.getLogger(__name__)
_REPOSITORY = Path(__file__).resolve().parents[2]


class StoppingError(RuntimeError):
    """No process can be started any more."""


class Processes:
    """All children of one runtime, and the one thread that listens to them."""

    def __init__(self, tick: Callable[[], float]) -> None:
        """`tick` is called after every event; it returns for how many seconds it need not be called again."""
        self._tick = tick
        self._lock = threading.Lock()
        self._children: dict[int, Process] = {}
        self._pipes: dict[int, list[Pipe]] = {}
        self._last_token = 0
        self._events = b""
        self._stopping = False
        self._thread = threading.Thread(target=self._listen, name="processes", daemon=True)

    def start(self) -> None:
        """Start the zygote; children can be asked for at once."""
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._zygote = subprocess.Popen(
                [sys.executable, "-X", "utf8", "-m", "local.compute.zygote", str(theirs.fileno())],
                cwd=_REPOSITORY,
                env={
                    "PATH": os.environ.get("PATH", os.defpath),
                    "MALLOC_ARENA_MAX": "2",  # each arena reserves address space, which children have little of
                    "OBJC_DISABLE_INITIALIZE_FORK_SAFETY": "YES",  # macOS ends forked children otherwise
                },
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the runtime alone
            )
        self._woken.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._on_wake)
        self._selector.register(self._orders, selectors.EVENT_READ, self._on_zygote)
        self._thread.start()

    def stop(self) -> None:
        """Kill every child and wait until all are gone."""
        with self._lock:  # whoever is asking for a child is heard, or refused
            self._stopping = True
            self._orders.shutdown(socket.SHUT_WR)  # the zygote kills its children, then ends
        self._zygote.wait()
        self.wake()
        self._thread.join()
        for child in list(self._children.values()):
            self._forget(child, -9)
        for end in (self._orders, self._woken, self._waker):
            end.close()
        self._selector.close()

    def wake(self) -> None:
        """Have `tick` called now."""
        with contextlib.suppress(OSError):
            self._waker.send(b"!")

    def spawn(self, owner: Owner) -> Process:
        """A new child, still without a function: that comes with the first message to it. StoppingError at the end."""
        with self._lock:
            if self._stopping:
                raise StoppingError
            control, theirs = socket.socketpair()
            (out_read, out_write), (err_read, err_write) = os.pipe(), os.pipe()
            self._last_token += 1
            process = Process(self._last_token, owner, control)
            pipes = [Pipe(process, "stdout", out_read), Pipe(process, "stderr", err_read)]
            self._children[process.token] = process
            self._pipes[process.token] = pipes
            self._selector.register(control, selectors.EVENT_READ, lambda: self._on_message(process))
            for pipe in pipes:
                self._selector.register(pipe.descriptor, selectors.EVENT_READ, self._reader(pipe))
            order = json.dumps({"spawn": process.token}).encode() + b"\n"
            socket.send_fds(self._orders, [order], [theirs.fileno(), out_write, err_write])
        theirs.close()
        os.close(out_write)
        os.close(err_write)
        return process

    def signal(self, process: Process, number: int) -> None:
        """Send a signal to the child and all it started; nothing happens when it is gone."""
        with self._lock, contextlib.suppress(OSError):
            self._orders.sendall(json.dumps({"signal": process.token, "number": number}).encode() + b"\n")

    def drain(self, process: Process) -> None:
        """Take what the child has written so far as its own. On the reading thread only."""
        for pipe in self._pipes.get(process.token, ()):
            pipe.flush()

    def _reader(self, pipe: Pipe) -> Callable[[], None]:
        def read() -> None:
            if not pipe.read():
                self._selector.unregister(pipe.descriptor)

        return read

    def _listen(self) -> None:
        while not (self._stopping and self._zygote.poll() is not None):
            for key, _ in self._selector.select(self._tick()):
                now = self._selector.get_map().get(key.fd)
                # an earlier event of this round may have closed it, and a new child may have got its number
                if now is not None and now.data is key.data:
                    self._heed(key.data)

    @staticmethod
    def _heed(event: Callable[[], object]) -> None:
        """One event; whatever it raises must not end the one thread that listens."""
        try:
            event()
        except Exception:
            _log.exception("an event of a child process was lost")

    def _on_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)

    def _on_zygote(self) -> None:
        data = self._orders.recv(1 << 16)
        if not data:
            self._on_zygotes_death()
            return
        *lines, self._events = (self._events + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            process = self._children.get(event.get("born", event.get("exited")))
            if process is None:
                continue
            if "born" in event:
                process.pid = event["pid"]
            else:
                self._forget(process, event["status"])

    def _on_zygotes_death(self) -> None:
        self._selector.unregister(self._orders)
        if not self._stopping:
            _log.error("the process that all functions are forked from is gone: start again")
            self._stopping = True
        for child in list(self._children.values()):
            self._forget(child, -9)

    def _on_message(self, process: Process) -> bool:
        """What it has said; False when there is no more for now, or for ever."""
        try:
            data = process.control.recv(1 << 18, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(process.control)
            return False
        for message in process.frames.feed(data):
            self.drain(process)
            process.owner.on_message(message)
        return True

    def _forget(self, process: Process, status: int) -> None:
        while process.control in self._selector.get_map() and self._on_message(process):
            pass  # its last words, when its end is heard of before them
        with self._lock:
            del self._children[process.token]
            pipes = self._pipes.pop(process.token)
            for descriptor in (process.control.fileno(), *(pipe.descriptor for pipe in pipes)):
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(descriptor)
        for pipe in pipes:
            pipe.read()
            os.close(pipe.descriptor)
        with process.sending:
            process.control.close()
        process.owner.on_exit(status)
