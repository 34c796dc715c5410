"""Clients that watch a job's text over the WebSocket API: they ask again, ping, and come back, as clients must."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from tests.simulation.stage import Stage

REPEATS = 90
PATIENCE_S = 2.0  # real seconds until a client says it again
_GLANCE_S = 0.01


@dataclass
class Heard:
    """What a client has put together by the rules of docs/streaming.md. `voided`: text of attempts that were given up,
    as far as it had come; `wrong`: what no client may ever be sent."""

    attempt: int = 0
    texts: list[str] = field(default_factory=list)
    voided: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    final: Mapping[str, Any] | None = None
    wrong: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def result(self) -> Any:
        """As it came with the end; None if none did."""
        assert self.final is not None
        return json.loads("".join(self.parts)) if "parts" in self.final else self.final.get("result")

    def hear(self, frame: Mapping[str, Any]) -> None:
        if self.final is not None or "attempt" not in frame or frame["attempt"] < self.attempt:
            return
        if frame["type"] == "restarted" or (frame["attempt"] > self.attempt and frame["type"] != "watching"):
            self._begin_anew(frame["attempt"])
        match frame["type"]:
            case "chunks":
                for number, text in enumerate(frame["texts"], frame["from"]):
                    self._chunk(number, text)
            case "result" if frame["part"] == len(self.parts):
                self.parts.append(frame["text"])
            case "final":
                self._end(frame)

    def _begin_anew(self, attempt: int) -> None:
        if self.texts:
            self.voided.append(self.text)
        self.attempt, self.texts, self.parts = attempt, [], []

    def _chunk(self, number: int, text: str) -> None:
        if number == len(self.texts):
            self.texts.append(text)
        elif number > len(self.texts):
            self.wrong.append(f"chunk {number} came after {len(self.texts)} of attempt {self.attempt}")
        elif self.texts[number] != text:
            self.wrong.append(
                f"chunk {number} of attempt {self.attempt} is {self.texts[number]!r:.30} and {text!r:.30}"
            )

    def _end(self, frame: Mapping[str, Any]) -> None:
        if frame["chunks"] != len(self.texts):
            self.wrong.append(f"the end came after {len(self.texts)} of {frame['chunks']} chunks")
        self.final = frame


class Watcher:
    """A client of one job. One that `leaves` is cut off by its first chunk, until somebody has it come back."""

    def __init__(self, stage: Stage, job_id: str, tenant: str, *, leaves: bool = False) -> None:
        self._stage, self._job_id, self._tenant = stage, job_id, tenant
        self.heard = Heard()
        self.away = False
        self._leaves = leaves
        self._told = threading.Event()  # that it watches
        self._wire: ClientConnection | None = None

    @property
    def is_done(self) -> bool:
        return self.heard.final is not None

    def come(self) -> None:
        """Connect, and watch on from where it stands. Returns when it was told so, or has the end."""
        for _ in range(REPEATS):
            if self._open() and self._ask():
                return
        raise AssertionError(f"{self._job_id} cannot be watched")

    def come_back(self) -> None:
        """For good."""
        self._leaves = self.away = False
        self.close()
        self.come()

    def look(self) -> None:
        """Is there anything that it was not sent? Whoever lost the connection opens another one."""
        if self._wire is None:
            self.come()
            return
        with suppress(WebSocketException, OSError):
            self._wire.send(json.dumps({"action": "ping"}))

    def close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _open(self) -> bool:
        if self._wire is not None:
            return True
        body = {"job_ids": [self._job_id]}
        answer = self._stage.target.post("/tickets", body, x_local_tenant=self._tenant)
        if answer.status != 201:
            return False
        opened = threading.Event()
        threading.Thread(target=self._hold, args=(answer.json()["url"], opened), name="watcher", daemon=True).start()
        opened.wait()
        return self._wire is not None

    def _ask(self) -> bool:
        wire = self._wire
        if wire is None:
            return False
        self._told.clear()
        at = {"attempt": self.heard.attempt, "from": len(self.heard.texts)} if self.heard.attempt else {}
        with suppress(WebSocketException, OSError):
            wire.send(json.dumps({"action": "watch", "job_id": self._job_id, **at}))
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends and wire is self._wire and not self._told.wait(_GLANCE_S):
            pass
        return self._told.is_set() or self.is_done

    def _hold(self, url: str, opened: threading.Event) -> None:
        """A connection, until it is closed, by whomever."""
        try:
            with (
                suppress(WebSocketException, OSError),
                connect(url, open_timeout=60, close_timeout=0.2, ping_interval=None, max_size=32_768) as wire,
            ):
                self._wire = wire
                opened.set()
                self._listen(wire)
                if self._wire is wire:
                    self._wire = None
        finally:
            opened.set()

    def _listen(self, wire: ClientConnection) -> None:
        with suppress(WebSocketException, OSError):
            for message in wire:
                frame = {"type": "", **json.loads(message)}  # what API Gateway itself says has none
                if frame["type"] == "watching":
                    self._told.set()
                if not self.away:
                    self.heard.hear(frame)
                if self._leaves and self.heard.texts:
                    self.away = True
                    return
