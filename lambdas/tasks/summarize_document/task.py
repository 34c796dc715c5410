"""A document arrived: what it says. A long one gets a summary of the summaries of its pieces."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lambdas.core.documents import Question, Reading, ask, items_in, read_document, shown, text_in, text_of, usable
from lambdas.core.tasks import Context, task

OUTPUT = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))["output"]
CHARACTERS, POINTS, POINT = 1_500, 8, 300  # the summaries of the most pieces still fit into one question

RULES = """summary: what the document is, what it says and what it decides, in at most six sentences.
key_points: the facts, figures, decisions and duties that a reader must know, one sentence each, the weightiest first.
Say nothing that the document does not say."""
TOGETHER = (
    "The document is made of the summaries of consecutive pieces of a longer one: write about that one as a whole.\n"
)


@task("summarize-document")
def summarize_document(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Summary and key points of a document of any length."""
    language = task_input.get("language", "")
    readings = read_document(task_input["text"], ctx, _question(RULES, language))
    told = readings[0].told
    if len(readings) > 1:
        told = ask(_summaries(readings), ctx, _question(TOGETHER + RULES, language), again=True)
    return {**told, "pieces": len(readings)}


def _question(rules: str, language: str) -> Question[Mapping[str, Any]]:
    wish = f"\nWrite in the language {language}." if language else ""
    role = "You summarize documents for people who have no time to read them."
    return Question(role, shown(OUTPUT, without=("pieces",)), rules + wish, _read, max_tokens=1_500)


def _read(answer: Mapping[str, Any], _: str) -> Mapping[str, Any]:
    points = usable(items_in(answer, "key_points", POINTS), lambda one: text_of(one, "key_points", POINT))
    return {"summary": text_in(answer, "summary", CHARACTERS), "key_points": points}


def _summaries(readings: Sequence[Reading[Mapping[str, Any]]]) -> str:
    """All pieces' summaries, in the order of the document."""
    return "\n\n".join(
        "\n".join([one.told["summary"], *(f"- {p}" for p in one.told["key_points"])]) for one in readings
    )
