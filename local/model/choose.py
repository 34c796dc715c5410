"""Picks the value of an enumeration that a text speaks for, and the sentence that says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from local.model.extract import Extract, Sentence
from local.model.words import HINTS, NEUTRAL, SHAPES, VAGUE

_LIST: Final = re.compile(
    r"\b(?:categor(?:y|ies)|labels?|options?|choices|classes|types?|one of)\b[^:\n]{0,60}:[ \t]*([^\n]*)",
    re.IGNORECASE,
)
_BULLET: Final = re.compile(r"[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+([^\n:]{1,60})")
_BETWEEN: Final = re.compile(r"\s*(?:[,;|/]|\bor\b|\band\b)\s*")
_PART: Final = re.compile(r"[^\W_]+")

_FEELINGS: Final = [
    re.compile(rf"\b(?:{'|'.join(HINTS[name].split())})", re.IGNORECASE) for name in ("positive", "negative")
]
_DEGREES: Final = frozenset(("low", "minor", "medium", "normal", "moderate", "high", "major", "critical", "severe"))

# Strings that are as good as an enumeration, by the name of their field.
SCALES: Final = {
    "urgency": ["low", "normal", "high"],
    "priority": ["low", "normal", "high"],
    "severity": ["low", "normal", "high"],
    "sentiment": ["positive", "neutral", "negative"],
}


def choose(values: Sequence[Any], extract: Extract) -> Any:
    """The value with most words in its favour; without any, a neutral one; else the first."""
    scores = [(score(value, extract.text), -number) for number, value in enumerate(values)]
    best, place = max(scores)
    if best:
        return values[-place]
    return next((value for value in values if str(value).lower() in NEUTRAL), values[0])


def score(value: Any, text: str) -> int:
    """How many words speak for the value: its own name counts double, and so does each repetition."""
    beginnings = _beginnings(value)
    lowered = text.lower()
    found = {start: len(re.findall(rf"\b{re.escape(start)}", lowered)) for start in beginnings}
    seen = sum(3 for shape in _shapes(value) if shape.search(text))
    return seen + sum(min(count, 3) * beginnings[start] for start, count in found.items())


def kind_of(name: str, values: Sequence[Any]) -> Any:
    """The value that says what kind of thing has this name; None when it does not show."""
    if not name or len(name) > 60:
        return None
    told = [(score(value, name), value) for value in values]
    best = max(told, key=lambda pair: pair[0], default=(0, None))
    if best[0]:
        return best[1]
    is_full_name = re.fullmatch(r"[A-Z][\w.'-]+(?: [A-Z][\w.'-]*){1,3}", name) is not None
    return "person" if is_full_name and "person" in values else None


def attitude(extract: Extract) -> float:
    """From -1, all words of feeling are bad ones, to 1; near 0 where there are few of them for so long a text."""
    good, bad = (len(words.findall(extract.text)) for words in _FEELINGS)
    return (good - bad) / (good + bad + 2 + len(extract.sentences) / 10)


def evidence(values: Sequence[Any], extract: Extract) -> Sentence | None:
    """The sentence that says most for these values."""
    scored = [(sum(score(value, one.text) for value in values), one) for one in extract.ranked[:200]]
    best = max(scored, key=lambda pair: pair[0], default=None)
    return best[1] if best and best[0] else None


def speaking(values: Sequence[Any], extract: Extract) -> Iterator[Sentence]:
    """The sentences that say something for one of these values, in the order of the text."""
    beginnings = {re.escape(start) for value in values for start in _beginnings(value)}
    words = re.compile(rf"\b(?:{'|'.join(sorted(beginnings))})" if beginnings else r"(?!)", re.IGNORECASE)
    shapes = [shape for value in values for shape in _shapes(value)]
    for one in extract.sentences:
        if words.search(one.text) or any(shape.search(one.text) for shape in shapes):
            yield one


def are_degrees(values: Sequence[Any]) -> bool:
    """How much, not what: low, medium, high."""
    return all(str(value).lower() in _DEGREES for value in values)


def listed_options(name: str, instructions: str, user: str) -> list[str]:
    """The values for this field that the prompt lists: "Categories: billing or sales", bullets, or JSON."""
    return _json_options(name, user) or _text_options(instructions) or _text_options(user)


def _beginnings(value: Any) -> dict[str, int]:
    weights: dict[str, int] = {}
    for part in _PART.findall(str(value).lower()):
        hints = HINTS.get(part) or HINTS.get(part.removesuffix("s"), "")
        weights.update(dict.fromkeys(hints.split(), 1))
        if len(part) > 2 and part not in NEUTRAL and part not in VAGUE:
            weights[part.removesuffix("s")] = 2
    return weights


def _shapes(value: Any) -> list[re.Pattern[str]]:
    return [SHAPES[part] for part in _PART.findall(str(value).lower()) if part in SHAPES]


def _json_options(name: str, user: str) -> list[str]:
    if not user.lstrip().startswith("{"):
        return []
    try:
        fields = json.loads(user)
    except ValueError:
        return []
    if not isinstance(fields, Mapping):
        return []
    plural = f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
    for key in (plural, "categories", "labels", "options"):
        values = fields.get(key)
        if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
            return values
    return []


def _text_options(text: str) -> list[str]:
    for found in _LIST.finditer(text[:20_000]):
        line = found[1].strip()
        parts = _BETWEEN.split(line) if line else _bullets(text[found.end() :])
        options = [part.strip(" .\"'`*()[]") for part in parts]
        options = [option for option in options if option]
        if len(options) > 1 and all(len(option) <= 40 for option in options):
            return options
    return []


def _bullets(text: str) -> list[str]:
    options: list[str] = []
    for line in text.strip("\n").splitlines():
        bullet = _BULLET.match(line)
        if not bullet:
            break
        options.append(bullet[1])
    return options
