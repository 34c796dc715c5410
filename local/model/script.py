"""What the model shall do next: a list of rules, checked strictly and taken atomically."""

from __future__ import annotations

import base64
import json
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from local.model import frames
from local.model.errors import STATUS, BedrockError


class ScriptError(ValueError):
    """The script cannot be used; the message names the rule and the field."""


@dataclass(frozen=True)
class Rule:
    """One rule, as checked. What `given` does not name is left to the default answer."""

    index: int
    given: frozenset[str]
    match: str = ""
    answer: str | None = None
    deltas: tuple[str, ...] = ()  # the answer, in the very pieces in which a stream says it
    delta_chars: int | None = None
    frame_s: float = 0.0
    corrupt: int | None = None
    error: BedrockError | None = None
    raw: bytes | None = None  # body of a Converse answer
    raw_frames: tuple[bytes, ...] = ()  # the same for a stream
    delay_s: float = 0.0
    cut_after: int | None = None
    stop_reason: str | None = None
    usage: Mapping[str, int] | None = None
    times: int | None = None


@dataclass
class Script:
    """The rules in force. The first that matches and is not used up is taken."""

    _rules: list[Rule] = field(default_factory=list)
    _taken: dict[int, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def replace(self, rules: object) -> int:
        """Takes a new script (its JSON value) and answers how many rules it has. Raises ScriptError."""
        checked = parse(rules)
        with self._lock:
            self._rules, self._taken = checked, {}
        return len(checked)

    def take(self, prompt: str) -> Rule | None:
        """The rule for this prompt, counted as used; None when the default answer is wanted."""
        with self._lock:
            for rule in self._rules:
                used = self._taken.get(rule.index, 0)
                if rule.match in prompt and (rule.times is None or used < rule.times):
                    self._taken[rule.index] = used + 1
                    return rule
        return None


def parse(rules: object) -> list[Rule]:
    """Raises ScriptError for anything that is not a list of rules."""
    if not isinstance(rules, list):
        raise ScriptError("the script must be a JSON list of rules")
    return [_rule(index, rule) for index, rule in enumerate(rules)]


def _rule(index: int, fields: object) -> Rule:
    if not isinstance(fields, dict):
        raise ScriptError(f"rule {index}: must be an object")
    for name, value in fields.items():
        if name not in _CHECKS:
            raise ScriptError(f'rule {index}, field "{name}": unknown; a rule has {", ".join(_CHECKS)}')
        test, wanted = _CHECKS[name]
        if not test(value):
            raise ScriptError(f'rule {index}, field "{name}": must be {wanted}')
    outcomes = [name for name in ("answer", "error", "raw") if name in fields]
    if len(outcomes) > 1:
        raise ScriptError(f'rule {index}, field "{outcomes[1]}": a rule has one of answer, error, raw')
    if "deltas" in fields and {"answer", "raw"} & set(fields):
        raise ScriptError(f'rule {index}, field "deltas": they are the answer; leave out answer and raw')
    values = {name: value for name, value in fields.items() if name not in {"answer", "error", "raw", "deltas"}}
    return Rule(
        index=index,
        given=frozenset(fields),
        answer=_text(fields["answer"]) if "answer" in fields else None,
        deltas=tuple(fields.get("deltas", ())),
        error=_error(fields["error"]) if "error" in fields else None,
        **(_raw(fields["raw"]) if "raw" in fields else {}),
        **values,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _error(value: str | Mapping[str, Any]) -> BedrockError:
    if isinstance(value, str):
        return BedrockError(value)
    return BedrockError(value["code"], value.get("message"), value.get("status"))


def _raw(value: object) -> dict[str, Any]:
    if isinstance(value, list):
        encoded = tuple(frames.from_script(item) for item in value)
        return {"raw": b"".join(encoded), "raw_frames": encoded}
    body = _text(value).encode("utf-8", "surrogatepass")
    return {"raw": body, "raw_frames": (body,)}


def _whole(least: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_delay(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_error(value: object) -> bool:
    if isinstance(value, str):
        return value in STATUS
    if not isinstance(value, dict) or set(value) - {"code", "status", "message"}:
        return False
    code, status = value.get("code"), value.get("status")
    if not isinstance(code, str) or not code or not _is_text(value.get("message", "")):
        return False
    return code in STATUS if status is None else _whole(400)(status) and status < 600


def _is_usage(value: object) -> bool:
    counts = {"inputTokens", "outputTokens", "totalTokens", "cacheReadInputTokens", "cacheWriteInputTokens"}
    return value is None or (
        isinstance(value, dict) and set(value) <= counts and all(_whole(0)(count) for count in value.values())
    )


def _is_raw(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_frame(item) for item in value)
    return isinstance(value, str | dict)


def _is_frame(item: object) -> bool:
    if not isinstance(item, dict) or len({"event", "exception", "base64"} & set(item)) != 1:
        return False
    if set(item) - {"event", "payload", "exception", "message", "base64"}:
        return False
    if not isinstance(item.get("payload", {}), dict):
        return False
    try:
        base64.b64decode(item.get("base64", ""), validate=True)
    except (ValueError, TypeError):
        return False
    return all(_is_text(item.get(name, "")) for name in ("event", "exception", "message"))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_CHECKS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "match": (_is_text, "a string (part of the prompt)"),
    "answer": (
        lambda value: isinstance(value, str | dict | list),
        "a string, or an object to send as JSON text",
    ),
    "error": (_is_error, f'one of {", ".join(STATUS)}, or {{"code", "status" (400 to 599), "message"}}'),
    "raw": (
        _is_raw,
        'a string, an object, or a list of {"event", "payload"}, {"exception", "message"}, {"base64"}',
    ),
    "deltas": (
        lambda value: isinstance(value, list) and bool(value) and all(map(_is_text, value)),
        "a list of strings: the answer in the pieces of a stream",
    ),
    "delta_chars": (_whole(1), "a whole number, 1 or more (characters of each piece of a stream)"),
    "frame_s": (_is_delay, "a number of seconds, 0 or more (before each further frame of a stream)"),
    "corrupt": (_whole(0), "a whole number, 0 or more (the frame of a stream whose checksum is wrong)"),
    "delay_s": (_is_delay, "a number of seconds, 0 or more"),
    "cut_after": (_whole(0), "a whole number, 0 or more (bytes; frames of a stream)"),
    "stop_reason": (lambda value: value is None or _is_text(value), "a string, or null to send none"),
    "usage": (_is_usage, "an object of token counts (inputTokens, outputTokens, …), or null to send none"),
    "times": (_whole(1), "a whole number, 1 or more"),
}
