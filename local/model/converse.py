"""Answers one call: refused, scripted, forwarded, or by the default answers; in time, cut or whole."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from local.model import answers, frames, validation
from local.model.calls import Calls
from local.model.errors import BedrockError
from local.model.forward import Forwarder
from local.model.reply import Reply, cut, usage
from local.model.requests import ModelRequest
from local.model.script import Rule, Script
from local.model.web import Client, DroppedError, Response, counted

_POLL_S: Final = 0.02  # real seconds between two looks at a virtual clock, or at a client that may have gone
_NO_RULE: Final = Rule(index=-1, given=frozenset())
_log: Final = logging.getLogger(__name__)

# (access key id, model id, operation) -> why the caller may not ask, or None
Authorize = Callable[[str | None, str, str], str | None]


class Clock(Protocol):
    """Whose seconds `delay_s` counts."""

    def now(self) -> datetime: ...


@dataclass
class Conversations:
    """Everything that calls share. `stopping` ends all waits."""

    script: Script
    calls: Calls
    stopping: threading.Event
    clock: Clock | None = None
    forwarder: Forwarder | None = None
    authorize: Authorize | None = None

    def answer(self, request: ModelRequest, client: Client) -> Response:
        """Raises DroppedError when the connection is to break before the first byte."""
        line = self.calls.add(request, self._now())
        rule = _NO_RULE
        try:
            self._admit(request)
            rule = self.script.take(request.prompt) or _NO_RULE
            self.calls.update(line, rule=rule.index if rule is not _NO_RULE else None)
            began = time.monotonic()
            self._wait(rule.delay_s, client)
            return self._paced(self._outcome(request, rule, line, began), rule, client)
        except BedrockError as error:
            return self._refused(error, rule, line)
        except ConnectionError:
            raise
        except Exception:
            _log.exception("the local model has no answer to request %s", line["request_id"])
            return self._refused(BedrockError("InternalServerException"), rule, line)

    def _admit(self, request: ModelRequest) -> None:
        refusal = self.authorize and self.authorize(request.caller, request.model, request.operation)
        if refusal:
            raise BedrockError("AccessDeniedException", refusal)
        validation.check(request)

    def _wait(self, seconds: float, client: Client) -> None:
        """Raises DroppedError when the server stops or the client has gone: there is nobody to answer."""
        began = self._seconds()
        while self._seconds() - began < seconds:
            if self.stopping.wait(_POLL_S) or client.is_gone():
                raise DroppedError

    def _paced(self, response: Response, rule: Rule, client: Client) -> Response:
        return replace(response, chunks=self._in_time(response.chunks, rule, client)) if rule.frame_s else response

    def _in_time(self, parts: Iterable[bytes], rule: Rule, client: Client) -> Iterator[bytes]:
        for number, part in enumerate(parts):
            try:
                self._wait(rule.frame_s if number else 0, client)
            except DroppedError:
                client.drop()
                raise
            yield part

    def _outcome(self, request: ModelRequest, rule: Rule, line: dict[str, Any], began: float) -> Response:
        if rule.cut_after == 0:
            raise DroppedError
        if rule.error and not (rule.cut_after and request.streams):
            raise rule.error
        if rule.raw is not None:
            self.calls.update(line, status=200)
            parts = _with_corrupt(rule.raw_frames, rule.corrupt) if request.streams else (rule.raw,)
            return _accepted(request, line, parts, rule.cut_after)
        reply = self._reply(request, rule)
        code = rule.error.code if rule.error else None
        self.calls.update(line, status=200, error=code, stop_reason=reply.stop_reason, usage=reply.usage)
        latency_ms = int((time.monotonic() - began) * 1000)
        if not request.streams:
            return _accepted(request, line, (reply.document(latency_ms),), rule.cut_after)
        parts = _with_corrupt(tuple(reply.frames(latency_ms)), rule.corrupt)
        if rule.error:
            broken = frames.exception(rule.error.stream_code, rule.error.message)
            return _accepted(request, line, (*parts[: rule.cut_after], broken))
        return _accepted(request, line, parts, rule.cut_after)

    def _reply(self, request: ModelRequest, rule: Rule) -> Reply:
        """The scripted text as it stands, or what the model says; the rule's stop reason and usage on top."""
        reply = self._said(request, rule)
        if "stop_reason" in rule.given:
            reply = replace(reply, stop_reason=rule.stop_reason)
        if "usage" in rule.given and rule.usage is None:
            return replace(reply, usage=None)
        said = reply.text + (json.dumps(reply.tool) if reply.tool else "")
        counts = usage(request.prompt, said, {**(reply.usage or {}), **(rule.usage or {})})
        return replace(reply, usage=counts)

    def _said(self, request: ModelRequest, rule: Rule) -> Reply:
        if rule.deltas:
            return Reply("".join(rule.deltas), deltas=rule.deltas)
        reply = Reply(rule.answer) if rule.answer is not None else self._model(request)
        return replace(reply, deltas=cut(reply.text, rule.delta_chars)) if rule.delta_chars else reply

    def _model(self, request: ModelRequest) -> Reply:
        return self.forwarder.ask(request) if self.forwarder else answers.answer(request)

    def _refused(self, error: BedrockError, rule: Rule, line: dict[str, Any]) -> Response:
        self.calls.update(line, status=error.status, error=error.code)
        return refused(error, line["request_id"], rule.cut_after)

    def _now(self) -> datetime:
        return self.clock.now() if self.clock else datetime.now(UTC)

    def _seconds(self) -> float:
        return self.clock.now().timestamp() if self.clock else time.monotonic()


def refused(error: BedrockError, request_id: str, cut_after: int | None = None) -> Response:
    headers = [("x-amzn-RequestId", request_id), ("Content-Type", "application/json"), error.header]
    return counted(error.status, headers, error.body, cut_after)


def _with_corrupt(parts: tuple[bytes, ...], corrupt: int | None) -> tuple[bytes, ...]:
    return tuple(frames.corrupted(part) if number == corrupt else part for number, part in enumerate(parts))


def _accepted(
    request: ModelRequest, line: dict[str, Any], parts: tuple[bytes, ...], cut_after: int | None = None
) -> Response:
    kind = frames.CONTENT_TYPE if request.streams else "application/json"
    headers = [("x-amzn-RequestId", line["request_id"]), ("Content-Type", kind)]
    if not request.streams:
        return counted(200, headers, b"".join(parts), cut_after)
    breaks = cut_after is not None and cut_after < len(parts)
    return Response(200, headers, parts[:cut_after], breaks=breaks)
