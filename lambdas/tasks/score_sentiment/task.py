"""A document arrived: how whoever speaks in it feels about what it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lambdas.core.documents import Question, Reading, mean, read_document, shown, text_in, whole_in
from lambdas.core.tasks import Context, task

OUTPUT = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))["output"]
CLEAR = 20  # from here on it is not neutral any more

RULES = """score: the attitude of whoever speaks in the document: -100 is hostile or desperate, 0 matter-of-fact, 100
delighted. Bad news that is told calmly is near 0.
reason: one sentence that names what in the document decided it."""

Told = tuple[int, str]


@task("score-sentiment")
def score_sentiment(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Sentiment of a document of any length."""
    readings = read_document(task_input["text"], ctx, QUESTION)
    score, reason = balanced(readings)
    sentiment = "positive" if score >= CLEAR else "negative" if score <= -CLEAR else "neutral"
    return {"sentiment": sentiment, "score": score, "reason": reason, "pieces": len(readings)}


def balanced(readings: Sequence[Reading[Told]]) -> Told:
    """The mean over the document, with the reason of the piece that comes nearest to it; of such the longest."""
    score = mean((one.told[0], one.weight) for one in readings)
    nearest = min(readings, key=lambda one: (abs(one.told[0] - score), -one.weight))
    return score, nearest.told[1]


def _read(answer: Mapping[str, Any], _: str) -> Told:
    return whole_in(answer, "score", -100, 100), text_in(answer, "reason", 500)


QUESTION: Question[Told] = Question(
    role="You judge the sentiment of documents.",
    schema=shown(OUTPUT, without=("sentiment", "pieces")),
    rules=RULES,
    read=_read,
    max_tokens=300,
)
