"""A document arrived: what kind of document it is, out of a list that the input may bring."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lambdas.core.documents import Question, Reading, choice_in, mean, read_document, shown, text_in, whole_in
from lambdas.core.tasks import Context, task

OUTPUT = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))["output"]
LABELS = (
    "contract", "invoice", "correspondence", "report", "minutes", "transcript", "manual", "policy", "article", "form",
    "other",
)  # fmt: skip

RULES = """label: the one that fits the document as a whole, by what it is for, not by what it is about.
confidence: from 0, a guess, to 100, beyond doubt.
reason: one sentence that names what in the document decided it."""


@dataclass(frozen=True)
class Vote:
    """What one piece says."""

    label: str
    confidence: int
    reason: str


@task("classify-document")
def classify_document(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """The kind of a document of any length."""
    labels = tuple(task_input.get("labels", LABELS))
    readings = read_document(task_input["text"], ctx, _question(labels))
    return {**vars(elected(readings)), "pieces": len(readings)}


def elected(readings: Sequence[Reading[Vote]]) -> Vote:
    """The label that most of the document speaks for, with the reason of the piece that says most for it."""
    votes: Counter[str] = Counter()
    for one in readings:
        votes[one.told.label] += one.weight * one.told.confidence
    label = votes.most_common(1)[0][0]
    best = max((one for one in readings if one.told.label == label), key=lambda one: one.weight * one.told.confidence)
    confidence = mean((one.told.confidence if one.told.label == label else 0, one.weight) for one in readings)
    return Vote(label, confidence, best.told.reason)


def _question(labels: tuple[str, ...]) -> Question[Vote]:
    def read(answer: Mapping[str, Any], _: str) -> Vote:
        confidence = whole_in(answer, "confidence", 0, 100)
        return Vote(choice_in(answer, "label", labels), confidence, text_in(answer, "reason", 500))

    schema = shown(OUTPUT, without=("pieces",), label={"enum": list(labels)})
    return Question("You sort documents into kinds.", schema, RULES, read, max_tokens=300)
