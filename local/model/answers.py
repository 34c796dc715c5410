"""Answers without any model: extractive, deterministic, in the shape that the prompt asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from local.model.content import Content, Detail
from local.model.extract import Extract, joined
from local.model.fill import fill
from local.model.message import is_asked_for, message
from local.model.reply import CHARACTERS_PER_TOKEN, Reply
from local.model.requests import ModelRequest

_SCHEMA: Final = re.compile(r"^[ \t]*<schema>[ \t]*\n(.*?)\n[ \t]*</schema>[ \t]*$", re.DOTALL | re.MULTILINE)
_TAG: Final = re.compile(r"^<([a-z_]{2,30})>[ \t]*$", re.MULTILINE)

# From talkative to terse: the first that fits into max_tokens is said.
_DETAILS: Final = (Detail(4, 6, 200), Detail(2, 4, 120), Detail(1, 2, 80))


def answer(request: ModelRequest) -> Reply:
    """The default answer: a tool call, an object for the schema in the prompt, a message, or a short summary."""
    if tool := _wanted_tool(request):
        return Reply(text="", stop_reason="tool_use", tool=tool)
    extract = Extract(_document(request.last_user))
    room = request.max_tokens * CHARACTERS_PER_TOKEN if request.max_tokens else None
    text = ""
    for detail in _DETAILS:
        text = _text(request, extract, detail)
        if room is None or len(text) <= room:
            break
    return _stopped(text, room, (request.body.get("inferenceConfig") or {}).get("stopSequences") or [])


def schema_of(request: ModelRequest) -> Mapping[str, Any] | None:
    """The JSON Schema between `<schema>` lines of the system prompt, or that of `outputConfig`."""
    config = request.body.get("outputConfig") or {}
    formatted = ((config.get("textFormat") or {}).get("structure") or {}).get("jsonSchema") or {}
    found = _SCHEMA.search(request.system)
    text = formatted.get("schema") or (found[1] if found else "")
    try:
        schema = json.loads(text)
    except (ValueError, TypeError):
        return None
    return schema if isinstance(schema, Mapping) else None


def _text(request: ModelRequest, extract: Extract, detail: Detail) -> str:
    schema = schema_of(request)
    if schema is None and is_asked_for(request.system):
        return message(extract, detail)
    if schema is None:
        return joined(extract.summary(detail.sentences)) or "There is nothing to say."
    content = Content(extract, _SCHEMA.sub("", request.system), request.last_user, detail)
    return json.dumps(fill(schema, content), ensure_ascii=False)


def _stopped(text: str, room: int | None, stop_sequences: list[str]) -> Reply:
    """Ends where a stop sequence begins or where the tokens end, whichever comes first."""
    places = [place for place in (text.find(sequence) for sequence in stop_sequences) if place >= 0]
    reason = "end_turn"
    if places:
        text, reason = text[: min(places)], "stop_sequence"
    if room is not None and len(text) > room:
        text, reason = text[:room], "max_tokens"
    return Reply(text, reason)


def _document(user: str) -> str:
    """What the user message is about: inside its tags, or the strings of its JSON; else all of it."""
    for tag in dict.fromkeys(_TAG.findall(user)[:20]):
        start, end = user.find(f"<{tag}>"), user.rfind(f"</{tag}>")
        if end - start > len(user) / 2:
            return _document(user[start + len(tag) + 2 : end].strip())
    if user.lstrip()[:1] in ("{", "["):
        try:
            return "\n".join(_strings(json.loads(user)))
        except (ValueError, RecursionError):
            return user
    return user


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]


def _wanted_tool(request: ModelRequest) -> dict[str, Any] | None:
    """A call of the tool that the last user text names (or that `toolChoice` forces), made from that text."""
    config = request.body.get("toolConfig") or {}
    tools = [tool["toolSpec"] for tool in config.get("tools") or [] if tool.get("toolSpec")]
    specs = {tool["name"]: tool for tool in tools}
    last = request.body["messages"][-1]
    if not specs or any("toolResult" in block for block in last["content"]):
        return None
    name = _named_tool(request.last_user, specs, config.get("toolChoice") or {})
    if name is None:
        return None
    schema = specs[name].get("inputSchema", {}).get("json") or {}
    user = request.last_user
    arguments = fill(schema, Content(Extract(user), request.system, user, _DETAILS[0]))
    given = arguments if isinstance(arguments, dict) else {}
    return {"toolUseId": f"tooluse_{request.sha256[:22]}", "name": name, "input": given}


def _named_tool(user: str, specs: Mapping[str, Any], choice: Mapping[str, Any]) -> str | None:
    forced = (choice.get("tool") or {}).get("name")
    if forced in specs:
        return str(forced)
    spoken = user.lower()
    named = (name for name in specs if name.lower() in spoken or name.lower().replace("_", " ") in spoken)
    return next(named, next(iter(specs)) if "any" in choice else None)
