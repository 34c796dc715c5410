"""JSON and text from a file, from stdin or from the command line, as text that can be sent on as it is written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ops.exits import Failure, usage

STDIN = "-"
JSON_STARTS = ("{", "[", '"')


def json_text(word: str, option: str) -> str:
    """The JSON that `word` is, or that the file of this name has, or `-` for stdin. Failure USAGE if it is none."""
    if word.lstrip().startswith(JSON_STARTS):
        return _checked(word, option, "the word")
    content = _content(word, option)
    try:
        text = content.decode(json.detect_encoding(content)).lstrip("\ufeff")
    except UnicodeDecodeError as error:
        raise usage(f"{option}: {word} is no text: {error.reason} at byte {error.start}") from None
    return _checked(text, option, "stdin" if word == STDIN else word)


def text_of(word: str, option: str) -> str:
    """What the UTF-8 file of this name holds, or `-` for stdin."""
    try:
        return _content(word, option).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{option}: {word} is not UTF-8: {error.reason} at byte {error.start}") from None


def _content(word: str, option: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if word == STDIN else Path(word).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise usage(f"{option}: cannot read {word}: {why}") from None


def _checked(text: str, option: str, where: str) -> str:
    """One JSON value that can be written as UTF-8: what the API would refuse for other reasons is for it to say."""
    failure: Failure | None = None
    try:
        json.loads(text)
        text.encode()
    except json.JSONDecodeError as error:
        failure = usage(f"{option}: {where} is no JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except (ValueError, RecursionError) as error:
        failure = usage(f"{option}: {where} is no JSON that can be sent: {error}")
    if failure:
        raise failure
    return text
