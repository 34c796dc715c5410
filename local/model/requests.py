"""Reads a Converse request: who asks which model what, in plain values."""

from __future__ import annotations

import hashlib
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from local.model.errors import BedrockError

_PATH: Final = re.compile(r"/model/([^/]+)/(converse|converse-stream)")
_OPERATIONS: Final = {"converse": "Converse", "converse-stream": "ConverseStream"}
_SCOPE: Final = re.compile(r"Credential=([^/]+)/[0-9]{8}/([a-z0-9-]+)/")


@dataclass(frozen=True)
class ModelRequest:
    """One call: `conversation` is the text of all messages, `last_user` that of the last user message."""

    model: str
    operation: str
    body: Mapping[str, Any]
    caller: str | None  # the access key id that signed the call
    region: str | None
    system: str
    conversation: str
    last_user: str

    @property
    def prompt(self) -> str:
        """Everything that the model would read."""
        return f"{self.conversation}\n{self.system}"

    @property
    def max_tokens(self) -> int | None:
        value = (self.body.get("inferenceConfig") or {}).get("maxTokens")
        return value if isinstance(value, int) else None

    @property
    def streams(self) -> bool:
        return self.operation == "ConverseStream"

    @property
    def sha256(self) -> str:
        """Equal for equal questions: model and body as canonical JSON."""
        whole = {"modelId": self.model, **self.body}
        return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read(raw_path: str, body: bytes, authorization: str) -> ModelRequest | None:
    """None when the path is no operation of ours. Raises SerializationException for another body's shape."""
    path = _PATH.fullmatch(raw_path.partition("?")[0])
    if not path:
        return None
    fields = _fields(body)
    messages, system = fields.get("messages") or [], fields.get("system") or []
    scope = _SCOPE.search(authorization)
    of_user = [message for message in messages if message.get("role") == "user"]
    return ModelRequest(
        model=urllib.parse.unquote(path[1]),
        operation=_OPERATIONS[path[2]],
        body=fields,
        caller=scope[1] if scope else None,
        region=scope[2] if scope else None,
        system="\n".join(_texts(system)),
        conversation="\n".join(text for message in messages for text in _texts(message["content"])),
        last_user="\n".join(_texts(of_user[-1]["content"])) if of_user else "",
    )


def _fields(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body or b"{}")
    except ValueError as error:
        raise BedrockError("SerializationException") from error
    if not isinstance(fields, dict) or not _well_shaped(fields):
        raise BedrockError("SerializationException")
    return fields


def _well_shaped(fields: Mapping[str, Any]) -> bool:
    """What botocore guarantees and another client may not: lists of objects where the API has them."""
    messages = fields.get("messages") or []
    if not _objects(messages) or not _objects(fields.get("system") or []):
        return False
    settings = (fields.get("inferenceConfig") or {}, fields.get("toolConfig") or {})
    return all(_objects(message.setdefault("content", [])) for message in messages) and all(
        isinstance(setting, dict) for setting in settings
    )


def _objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _texts(blocks: list[Mapping[str, Any]]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block.get("text"), str):
            yield block["text"]
        elif isinstance(block.get("toolResult"), dict):
            yield from _texts(block["toolResult"].get("content") or [])
        elif "json" in block:
            yield json.dumps(block["json"], ensure_ascii=False)
