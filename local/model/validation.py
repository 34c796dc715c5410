"""Refuses what Bedrock refuses, in its words, before any rule or model sees the request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from local.model import models
from local.model.errors import invalid
from local.model.requests import ModelRequest

_STARTS_WITH_USER: Final = (
    "A conversation must start with a user message. Try again with a conversation that starts with a user message."
)
_ALTERNATES: Final = (
    "A conversation must alternate between user and assistant roles. "
    "Make sure the conversation alternates between user and assistant roles and try again."
)
_NO_TOOL_CONFIG: Final = "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def check(request: ModelRequest) -> None:
    """Raises ValidationException for the first thing that is wrong."""
    model = models.check(request.model, request.region)
    messages = request.body.get("messages") or []
    _check_roles(messages)
    for where, message in enumerate(messages):
        _check_content(where, message["content"])
    _check_system(request.body.get("system") or [])
    _check_numbers(request.body.get("inferenceConfig") or {}, models.largest_answer(model))
    _check_tools(messages, bool(request.body.get("toolConfig")))


def _check_roles(messages: list[dict[str, Any]]) -> None:
    roles = [message.get("role") for message in messages]
    for where, role in enumerate(roles):
        if role not in {"user", "assistant"}:
            raise _constraint(role, f"messages.{where + 1}.member.role", "enum value set: [user, assistant]")
    if not roles or roles[0] != "user":
        raise invalid(_STARTS_WITH_USER)
    if any(one == other for one, other in pairwise(roles)):
        raise invalid(_ALTERNATES)


def _check_content(where: int, content: list[dict[str, Any]]) -> None:
    if not content:
        raise invalid(
            f"The content field in the Message object at messages.{where} is empty. "
            "Add a ContentBlock object to the content field and try again."
        )
    for number, block in enumerate(content):
        if "text" in block and not str(block["text"]).strip():
            raise invalid(
                f"The text field in the ContentBlock object at messages.{where}.content.{number} is blank. "
                "Add text to the text field, and try again."
            )


def _check_system(system: list[dict[str, Any]]) -> None:
    for number, block in enumerate(system):
        if "text" in block and not str(block["text"]).strip():
            raise invalid(
                f"The text field in the SystemContentBlock object at system.{number} is blank. "
                "Add text to the text field, and try again."
            )


def _check_numbers(config: Mapping[str, Any], largest_answer: int) -> None:
    tokens = config.get("maxTokens")
    if tokens is not None and (not isinstance(tokens, int) or tokens < 1):
        raise _constraint(tokens, "inferenceConfig.maxTokens", "value greater than or equal to 1")
    if tokens is not None and tokens > largest_answer:
        raise invalid(
            f"The maximum tokens you requested exceeds the model limit of {largest_answer}. "
            f"Try again with a maximum tokens value that is lower than {largest_answer}."
        )
    for name in ("temperature", "topP"):
        value = config.get(name)
        if value is not None and not 0 <= value <= 1:
            bound = "less than or equal to 1" if value > 1 else "greater than or equal to 0"
            raise _constraint(value, f"inferenceConfig.{name}", f"value {bound}")


def _check_tools(messages: list[dict[str, Any]], configured: bool) -> None:
    asked: set[str] = set()  # by the turn before
    for where, message in enumerate(messages):
        results = dict(_ids(message["content"], "toolResult"))
        used = dict(_ids(message["content"], "toolUse"))
        if (results or used) and not configured:
            raise invalid(_NO_TOOL_CONFIG)
        if missing := sorted(asked - set(results)):
            raise invalid(
                f"Expected toolResult blocks at messages.{where}.content for the following Ids: " + ", ".join(missing)
            )
        if set(results) - asked:
            raise invalid(
                f"The number of toolResult blocks at messages.{where}.content exceeds the number of toolUse "
                "blocks of previous turn."
            )
        _check_results(where, results)
        asked = set(used)


def _check_results(where: int, results: Mapping[str, tuple[int, dict[str, Any]]]) -> None:
    for number, block in results.values():
        for part, content in enumerate(block.get("content") or []):
            if "json" in content and not isinstance(content["json"], dict):
                raise invalid(
                    f"The format of the value at messages.{where}.content.{number}.toolResult.content.{part}"
                    ".json is invalid. Provide a json object for the field and try again."
                )


def _ids(content: list[dict[str, Any]], kind: str) -> Iterator[tuple[str, tuple[int, dict[str, Any]]]]:
    for number, block in enumerate(content):
        if isinstance(block.get(kind), dict):
            yield str(block[kind].get("toolUseId")), (number, block[kind])


def _constraint(value: object, where: str, rule: str) -> Exception:
    return invalid(
        f"1 validation error detected: Value '{value}' at '{where}' failed to satisfy constraint: "
        f"Member must {'satisfy' if rule.startswith('enum') else 'have'} {rule}"
    )
