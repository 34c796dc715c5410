"""One child process as the runtime sees it: what it is sent, and the lines that it writes."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from local.compute.frames import Frames, encode

_LONGEST_LINE = 256 * 1024  # CloudWatch cuts longer events, too


class Owner(Protocol):
    """Who hears of a child; called on the reading thread, which must not be kept waiting."""

    def on_message(self, message: dict[str, Any]) -> None:
        """The child answered."""

    def on_output(self, stream: str, line: str) -> None:
        """The child wrote a line to `stdout` or `stderr`."""

    def on_exit(self, status: int) -> None:
        """The child is gone; its exit status, negative for a signal. Nothing comes after this."""


@dataclass(eq=False)
class Process:
    """One child, named by a token instead of a process id, which the system may give to somebody else."""

    token: int
    owner: Owner
    control: socket.socket
    pid: int | None = None
    frames: Frames = field(default_factory=Frames)
    sending: threading.Lock = field(default_factory=threading.Lock)

    def send(self, message: dict[str, Any]) -> None:
        """Give the child a message; one that is gone does not mind."""
        with self.sending, contextlib.suppress(OSError):
            self.control.sendall(encode(message))

    def resident_bytes(self) -> int:
        """Memory in use, 0 where the system does not tell."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        except (OSError, IndexError):  # gone, or no Linux
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Pipe:
    """A child's output, cut into lines."""

    def __init__(self, process: Process, stream: str, descriptor: int) -> None:
        self.process, self.stream, self.descriptor = process, stream, descriptor
        self._rest = b""
        os.set_blocking(descriptor, False)

    def read(self) -> bool:
        """Everything there is; False at the end."""
        while True:
            try:
                data = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                return True
            except OSError:
                data = b""
            *lines, self._rest = (self._rest + data).split(b"\n")
            if self._rest and (not data or len(self._rest) > _LONGEST_LINE):
                lines, self._rest = [*lines, self._rest], b""
            for line in lines:
                self.process.owner.on_output(self.stream, line.decode("utf-8", "replace"))
            if not data:
                return False

    def flush(self) -> None:
        """Read what there is, and count an unfinished line as one."""
        self.read()
        if self._rest:
            line, self._rest = self._rest, b""
            self.process.owner.on_output(self.stream, line.decode("utf-8", "replace"))
