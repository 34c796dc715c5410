"""A document arrived: who and what is named in it, and how often."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lambdas.core.documents import Question, choice_in, items_in, objects_shown, read_document, text_in, usable
from lambdas.core.tasks import Context, task

OUTPUT = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))["output"]
TYPES = tuple(OUTPUT["properties"]["entities"]["items"]["properties"]["type"]["enum"])
MOST, NAME = 40, 200

RULES = """entities: who and what the document names, each once, the most important first; at most 40.
name: as the document writes it, without title or article.
type: amount is a sum of money or a measured quantity; other is a proper name that fits nowhere else."""

Entity = tuple[str, str]


@task("extract-entities")
def extract_entities(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Entities of a document of any length, the most mentioned first."""
    text = task_input["text"]
    readings = read_document(text, ctx, QUESTION)
    found = merged(one.told for one in readings)
    counted = zip(found, mentions(text, [name for name, _ in found]), strict=True)
    entities = [{"name": name, "type": type_, "mentions": count} for (name, type_), count in counted]
    return {"entities": sorted(entities, key=lambda one: -one["mentions"]), "pieces": len(readings)}


def merged(pieces: Iterable[list[Entity]]) -> list[Entity]:
    """Each name once, as it was first written, with the type that most pieces give it."""
    names: dict[str, str] = {}
    types: dict[str, Counter[str]] = {}
    for name, type_ in (entity for entities in pieces for entity in entities):
        names.setdefault(_key(name), name)
        types.setdefault(_key(name), Counter())[type_] += 1
    return [(name, types[key].most_common(1)[0][0]) for key, name in names.items()]


def mentions(text: str, names: list[str]) -> list[int]:
    """How often each name stands in the text as whole words, whatever its case and line breaks."""
    document = _key(text)
    return [_count(document, _key(name)) for name in names]


def _count(document: str, name: str) -> int:
    """By `find`: a regular expression takes fifty times as long for what is seldom there."""
    found, at = 0, document.find(name)
    while at >= 0:
        end = at + len(name)
        found += not (document[max(0, at - 1) : at].isalnum() or document[end : end + 1].isalnum())
        at = document.find(name, end)
    return found


def _key(written: str) -> str:
    return re.sub(r"\s+", " ", written).strip().casefold()


def _read(answer: Mapping[str, Any], _: str) -> list[Entity]:
    def entity(item: Any) -> Entity:
        return text_in(item, "name", NAME), choice_in(item, "type", TYPES)

    return list(dict.fromkeys(usable(items_in(answer, "entities", MOST), entity)))


QUESTION: Question[list[Entity]] = Question(
    role="You find the names in documents for people who look for who and what is in them.",
    schema=objects_shown("entities", OUTPUT, MOST, without=("mentions",)),
    rules=RULES,
    read=_read,
    max_tokens=2_500,
)
