"""A document arrived: which passages somebody must look at before it goes any further, and where they stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lambdas.core.documents import Question, Reading, choice_in, items_in, objects_shown, read_document, text_in, usable
from lambdas.core.tasks import Context, task

OUTPUT = json.loads(Path(__file__).with_name("schema.json").read_text("utf-8"))["output"]
SEVERITIES = tuple(OUTPUT["properties"]["flags"]["items"]["properties"]["severity"]["enum"])
MOST, QUOTE, REASON = 25, 300, 300  # so many fit into an answer of the smallest models: 4,096 tokens

RULES = {
    "personal_data": "private addresses, telephone numbers, e-mail addresses, birth dates, numbers of documents",
    "payment_data": "numbers of cards and bank accounts",
    "credentials": "passwords, keys, tokens",
    "health_data": "somebody's state of health",
    "confidential": "what is marked as confidential, secret or not to be passed on",
    "legal_risk": "threats of legal action, admissions of liability, promises and guarantees without a limit",
    "abuse": "insults, threats, harassment, discrimination",
    "fraud": "bribery, deception, forged documents, hidden payments",
}
FIELDS = f"""flags: the passages that a rule speaks of, in the order of the document: none, or at most {MOST}.
quote: the passage to the letter, as short as it can be.
severity: high when it must be stopped, medium when somebody must decide, low when it is enough to know.
reason: why, in at most fifteen words."""


@dataclass(frozen=True)
class Flag:
    """`start` and `end` are characters of the text that was asked about, later of the document."""

    rule: str
    severity: str
    quote: str
    reason: str
    start: int | None = None
    end: int | None = None


@task("flag-compliance")
def flag_compliance(task_input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Compliance flags of a document of any length, with their places."""
    readings = read_document(task_input["text"], ctx, _question(task_input.get("rules", RULES)))
    return {"flags": [vars(flag) for flag in united(readings)], "pieces": len(readings)}


def united(readings: Sequence[Reading[list[Flag]]]) -> list[Flag]:
    """In the order of the document. What two pieces see where they overlap is one flag."""
    flags: dict[tuple[str, Any], Flag] = {}
    for one in readings:
        for flag in (_moved(flag, one.piece.start) for flag in one.told):
            place = (flag.start, flag.end) if flag.start is not None else flag.quote
            flags.setdefault((flag.rule, place), flag)
    return sorted(flags.values(), key=lambda flag: (flag.start is None, flag.start or 0))


def _moved(flag: Flag, by: int) -> Flag:
    if flag.start is None or flag.end is None:
        return flag
    return replace(flag, start=flag.start + by, end=flag.end + by)


def located(flags: Iterable[Flag], text: str) -> list[Flag]:
    """Each with the place of its quote: of the next one, where the same is quoted again."""
    ends: dict[tuple[str, str], int] = {}
    found: list[Flag] = []
    for flag in flags:
        place = _place(text, flag.quote, ends.get((flag.rule, flag.quote), 0))
        if place:
            ends[flag.rule, flag.quote] = place[1]
            found.append(replace(flag, start=place[0], end=place[1]))
        elif (flag.rule, flag.quote) not in ends:
            found.append(flag)
    return found


def _place(text: str, quote: str, after: int) -> tuple[int, int] | None:
    """To the letter, else but for case and white space."""
    at = text.find(quote, after)
    if at >= 0:
        return at, at + len(quote)
    words = r"\s+".join(re.escape(word) for word in quote.removesuffix("…").split())
    match = re.compile(words, re.IGNORECASE).search(text, after) if words else None
    return match.span() if match else None


def _question(rules: Mapping[str, str]) -> Question[list[Flag]]:
    names = tuple(rules)

    def read(answer: Mapping[str, Any], text: str) -> list[Flag]:
        return located(usable(items_in(answer, "flags", MOST), flag), text)

    def flag(item: Any) -> Flag:
        severity, quote = choice_in(item, "severity", SEVERITIES), text_in(item, "quote", QUOTE)
        return Flag(choice_in(item, "rule", names), severity, quote, text_in(item, "reason", REASON))

    return Question(
        role="You look through documents for passages that a compliance officer must see.",
        schema=objects_shown("flags", OUTPUT, MOST, without=("start", "end"), rule={"enum": list(names)}),
        rules="\n".join([FIELDS, "The rules:", *(f"- {name}: {meaning}" for name, meaning in rules.items())]),
        read=read,
        max_tokens=4_000,
    )
