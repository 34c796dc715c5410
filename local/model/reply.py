"""What a model says, and its two forms on the wire: one JSON document, or a stream of frames."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local.model import frames

CHARACTERS_PER_TOKEN: Final = 4  # the usual estimate for English text
_MOST_DELTAS: Final = 400  # a long answer comes in larger pieces, not in more of them


@dataclass(frozen=True)
class Reply:
    """`stop_reason` and `usage` of None are left out of the answer, as broken servers do."""

    text: str
    stop_reason: str | None = "end_turn"
    usage: Mapping[str, int] | None = None
    tool: Mapping[str, Any] | None = None  # {"toolUseId", "name", "input"}
    deltas: Sequence[str] = ()  # the text as a stream says it; by default in runs of whole words

    def document(self, latency_ms: int) -> bytes:
        """The body of a Converse answer."""
        content: list[dict[str, Any]] = [{"text": self.text}] if self.text or not self.tool else []
        if self.tool:
            content.append({"toolUse": dict(self.tool)})
        fields: dict[str, Any] = {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": self.stop_reason,
            "usage": self.usage and dict(self.usage),
            "metrics": {"latencyMs": latency_ms},
        }
        present = {name: value for name, value in fields.items() if value is not None}
        return json.dumps(present).encode()

    def frames(self, latency_ms: int) -> Iterator[bytes]:
        """The events of a ConverseStream answer, usage last; as on Bedrock text has no start event."""
        yield frames.event("messageStart", {"role": "assistant"})
        index = 0
        if self.text or not self.tool:
            for piece in self.deltas or pieces(self.text):
                yield _delta(index, {"text": piece})
            yield frames.event("contentBlockStop", {"contentBlockIndex": index})
            index += 1
        if self.tool:
            yield from self._tool_frames(index, self.tool)
        if self.stop_reason is not None:
            yield frames.event("messageStop", {"stopReason": self.stop_reason})
        if self.usage is not None:
            yield frames.event("metadata", {"usage": dict(self.usage), "metrics": {"latencyMs": latency_ms}})

    def _tool_frames(self, index: int, tool: Mapping[str, Any]) -> Iterator[bytes]:
        start = {"toolUse": {"toolUseId": tool["toolUseId"], "name": tool["name"]}}
        yield frames.event("contentBlockStart", {"contentBlockIndex": index, "start": start})
        if tool["input"]:  # a call without arguments has no delta at all
            yield _delta(index, {"toolUse": {"input": json.dumps(tool["input"])}})
        yield frames.event("contentBlockStop", {"contentBlockIndex": index})


def cut(text: str, size: int) -> list[str]:
    """The text in pieces of so many characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def usage(prompt: str, text: str, given: Mapping[str, int]) -> dict[str, int]:
    """Token counts: those given, the others estimated from lengths."""
    counts = {"inputTokens": tokens(prompt), "outputTokens": tokens(text), **given}
    counts.setdefault("totalTokens", counts["inputTokens"] + counts["outputTokens"])
    return counts


def tokens(text: str) -> int:
    return max(1, -(-len(text) // CHARACTERS_PER_TOKEN))


def pieces(text: str) -> Iterator[str]:
    """The text in runs of whole words; together exactly the text."""
    words = re.findall(r"\s*\S+\s*", text) or [text]
    size = max(3, -(-len(words) // _MOST_DELTAS))
    for start in range(0, len(words), size):
        yield "".join(words[start : start + size])


def _delta(index: int, delta: Mapping[str, Any]) -> bytes:
    return frames.event("contentBlockDelta", {"contentBlockIndex": index, "delta": dict(delta)})
