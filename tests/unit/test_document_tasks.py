"""The five analyses: each of a text of any length, each by itself, merged out of pieces without losing any."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lambdas.core.documents import Reading
from lambdas.core.outcomes import Rejected
from lambdas.core.prices import estimate_tokens
from lambdas.core.splitting import PIECES_MAX, Piece
from lambdas.core.tasks import Context, task
from lambdas.tasks import load
from lambdas.tasks.classify_document.task import LABELS, Vote, elected
from lambdas.tasks.extract_entities.task import mentions, merged
from lambdas.tasks.flag_compliance.task import Flag, located, united
from lambdas.tasks.score_sentiment.task import balanced
from lambdas.tasks.summarize_document.task import CHARACTERS, POINT, POINTS
from local.model import answers, requests
from tests.unit.test_documents import LONG, SHORT, Reader, reading

ROOT = Path(__file__).resolve().parents[2]
ANALYSES = ("summarize-document", "extract-entities", "classify-document", "score-sentiment", "flag-compliance")
CALL = (ROOT / "samples" / "calls" / "apollo11-landing.txt").read_text("utf-8")
GOOD: dict[str, dict[str, Any]] = {
    "summarize-document": {"summary": "s", "key_points": ["k"]},
    "extract-entities": {"entities": [{"name": "Ann", "type": "person"}]},
    "classify-document": {"label": "report", "confidence": 90, "reason": "r"},
    "score-sentiment": {"score": -40, "reason": "r"},
    "flag-compliance": {"flags": [{"rule": "abuse", "severity": "low", "quote": "short text", "reason": "r"}]},
}
RESULTS: dict[str, dict[str, Any]] = {
    "summarize-document": {"summary": "s", "key_points": ["k"], "pieces": 1},
    "extract-entities": {"entities": [{"name": "Ann", "type": "person", "mentions": 0}], "pieces": 1},
    "classify-document": {"label": "report", "confidence": 90, "reason": "r", "pieces": 1},
    "score-sentiment": {"sentiment": "negative", "score": -40, "reason": "r", "pieces": 1},
    "flag-compliance": {
        "flags": [{"rule": "abuse", "severity": "low", "quote": "short text", "reason": "r", "start": 2, "end": 12}],
        "pieces": 1,
    },
}  # fmt: skip


def run(type_: str, text: str, says: Callable[[str], Any], **more: Any) -> tuple[dict[str, Any], Reader]:
    """What the task makes of it, if that satisfies its schema."""
    made, reader = load()[0][type_], Reader(says)
    task_input = {"text": text, **more}
    assert made.check_input(task_input) is None
    result = json.loads(json.dumps(made.run(task_input, reading(reader))))
    assert made.check_output(result) is None
    return result, reader


@pytest.mark.parametrize("type_", ANALYSES)
def test_a_document_that_fits_is_one_question(type_: str) -> None:
    result, reader = run(type_, SHORT, lambda prompt: GOOD[type_])
    assert result == RESULTS[type_]
    assert len(reader.asked) == 1


@pytest.mark.parametrize("type_", ANALYSES)
def test_a_long_document_says_in_how_many_pieces_it_was_read(type_: str) -> None:
    result, reader = run(type_, LONG, lambda prompt: GOOD[type_])
    assert result["pieces"] == 3
    assert len(reader.asked) == (4 if type_ == "summarize-document" else 3)


@pytest.mark.parametrize("said", ["no JSON", "[]", "{}", '{"a": NaN}'])
@pytest.mark.parametrize("type_", ANALYSES)
def test_an_answer_that_is_no_good_is_rejected(type_: str, said: str) -> None:
    with pytest.raises(Rejected):
        run(type_, SHORT, lambda prompt: said)


@pytest.mark.parametrize("type_", ANALYSES)
def test_the_answer_in_a_code_fence_is_one(type_: str) -> None:
    assert run(type_, SHORT, lambda prompt: f"```json\n{json.dumps(GOOD[type_])}\n```")[0] == RESULTS[type_]


@pytest.mark.parametrize("type_", ANALYSES)
def test_what_the_model_is_shown_is_a_part_of_the_result(type_: str) -> None:
    _, reader = run(type_, SHORT, lambda prompt: GOOD[type_])
    schema = json.loads(reader.asked[0]["system"].partition("<schema>\n")[2].partition("\n</schema>")[0])
    assert set(schema["required"]) == set(schema["properties"]) == set(GOOD[type_])
    output = json.loads((ROOT / "lambdas" / "tasks" / type_.replace("-", "_") / "schema.json").read_text("utf-8"))[
        "output"
    ]
    assert set(schema["properties"]) < set(output["properties"])


@pytest.mark.parametrize("type_", ANALYSES)
def test_the_local_model_answers_what_the_analyses_ask(type_: str) -> None:
    def say(prompt: str) -> str:
        body: dict[str, Any] = {"messages": [{"role": "user", "content": [{"text": prompt}]}]}
        asked = reader.asked[-1]
        body |= {"system": [{"text": asked["system"]}], "inferenceConfig": {"maxTokens": asked["max_tokens"]}}
        request = requests.read("/model/m/converse", json.dumps(body).encode(), "")
        assert request is not None
        reply = answers.answer(request)
        assert reply.stop_reason == "end_turn"
        return reply.text

    made, reader = load()[0][type_], Reader(say)
    for text in (CALL, CALL * 12, "x", "\u0301"):
        assert made.check_output(made.run({"text": text}, reading(reader))) is None


# --- a summary ---------------------------------------------------------------------------------------
def test_a_long_document_gets_a_summary_of_the_summaries_of_its_pieces() -> None:
    def say(prompt: str) -> Any:
        piece = re.match(r"This is piece (\d)", prompt)
        return {"summary": f"part {piece[1]}" if piece else "whole", "key_points": [f"k{piece[1]}"] if piece else []}

    result, reader = run("summarize-document", LONG, say, language="de")
    assert result == {"summary": "whole", "key_points": [], "pieces": 3}
    assert reader.asked[-1]["prompt"] == "<document>\npart 1\n- k1\n\npart 2\n- k2\n\npart 3\n- k3\n</document>"
    assert "summaries of consecutive pieces" in reader.asked[-1]["system"]
    assert "summaries of consecutive pieces" not in reader.asked[0]["system"]
    assert all("Write in the language de." in asked["system"] for asked in reader.asked)


def test_the_last_summary_is_asked_for_once_more_before_all_others_are_thrown_away() -> None:
    said = GOOD["summarize-document"]
    result, reader = run(
        "summarize-document", LONG, lambda prompt: said if "piece" in prompt or "good" in prompt else {}
    )
    assert result["summary"] == "s"
    assert len(reader.asked) == 5


def test_the_summaries_of_the_most_pieces_fit_into_one_question_of_a_small_model() -> None:
    longest = "\u00fc" * (CHARACTERS + POINTS * (POINT + 3) + 2)
    assert estimate_tokens(longest * PIECES_MAX) < 100_000


def test_an_answer_that_says_too_much_is_cut_not_rejected() -> None:
    said = {"summary": "s " * 5_000, "key_points": ["k " * 500] * 50, "more": 1}
    result, _ = run("summarize-document", SHORT, lambda prompt: said)
    assert (len(result["summary"]), len(result["key_points"])) == (CHARACTERS, POINTS)


# --- entities ----------------------------------------------------------------------------------------
def test_entities_are_united_whatever_their_case_and_counted_in_the_document() -> None:
    pieces = [[("Neil Armstrong", "person"), ("Eagle", "product")], [("NEIL  ARMSTRONG", "person"), ("Eagle", "other")]]
    assert merged([*pieces, [("eagle", "other")]]) == [("Neil Armstrong", "person"), ("Eagle", "other")]
    text = "Neil\nArmstrong and the Eagle; eagles, EAGLE-1, and Neil armstrong's flag, all beagle."
    assert mentions(text, ["Neil Armstrong", "Eagle", "nobody"]) == [2, 2, 0]


def test_the_most_mentioned_come_first_and_one_that_cannot_be_read_takes_no_other_with_it() -> None:
    said = [{"name": "Rare", "type": "place"}, {"name": "x", "type": "alien"}, "y", {"name": "Often", "type": "Person"}]
    result, _ = run("extract-entities", "Often, often, Rare.", lambda prompt: {"entities": [*said, said[0]]})
    assert [(one["name"], one["type"], one["mentions"]) for one in result["entities"]] == [
        ("Often", "person", 2), ("Rare", "place", 1),
    ]  # fmt: skip


def test_a_document_without_names_has_none() -> None:
    assert run("extract-entities", SHORT, lambda prompt: {"entities": []})[0] == {"entities": [], "pieces": 1}


# --- what is weighed -----------------------------------------------------------------------------------
def readings(*told: tuple[Any, int]) -> list[Reading[Any]]:
    return [Reading(Piece(0, 0, 1, n, len(told)), one, weight) for n, (one, weight) in enumerate(told, 1)]


def test_a_label_is_elected_by_how_much_of_the_document_says_it_and_how_surely() -> None:
    votes = readings(
        (Vote("report", 40, "weak"), 100), (Vote("manual", 90, "short"), 30), (Vote("report", 60, "r"), 70)
    )
    assert elected(votes) == Vote("report", 41, "r")
    assert elected(readings((Vote("report", 0, "r"), 5))) == Vote("report", 0, "r")


def test_the_input_may_bring_its_own_labels() -> None:
    said = {"label": "Tender Offer", "confidence": 70, "reason": "r"}
    result, reader = run("classify-document", SHORT, lambda prompt: said, labels=["tender offer", "other"])
    assert result["label"] == "tender offer"
    assert '"enum": ["tender offer", "other"]' in reader.asked[0]["system"]
    with pytest.raises(Rejected):
        run("classify-document", SHORT, lambda prompt: said)
    assert "transcript" in LABELS


def test_a_score_is_the_mean_over_the_document_with_the_reason_of_the_nearest_piece() -> None:
    assert balanced(readings(((-80, "bad"), 1), ((10, "calm"), 8), ((90, "good"), 1))) == (9, "calm")


@pytest.mark.parametrize(
    ("score", "sentiment"),
    [(20, "positive"), (19, "neutral"), (-19, "neutral"), (-20, "negative"), (400, "positive"), (-100.0, "negative")],
)
def test_the_word_for_a_score_cannot_contradict_it(score: float, sentiment: str) -> None:
    result, _ = run("score-sentiment", SHORT, lambda prompt: {"score": score, "reason": "r", "sentiment": "positive"})
    assert result["sentiment"] == sentiment


# --- flags ---------------------------------------------------------------------------------------------
def flag(quote: str, rule: str = "abuse", **place: int) -> Flag:
    return Flag(rule, "low", quote, "r", **place)


def test_a_flag_has_the_place_of_its_quote_of_the_next_one_when_it_is_quoted_again() -> None:
    text = "An Idiot said: idiot!\nYou are an\n  idiot. (a.b)"
    quotes = ["idiot", "AN IDIOT", "idiot", "a.b", "you are an idiot…", "aXb"]
    found = located([flag(quote) for quote in quotes], text)
    assert [None if one.start is None else text[one.start : one.end] for one in found] == [
        "idiot", "An Idiot", "idiot", "a.b", "You are an\n  idiot", None,
    ]  # fmt: skip
    assert [one.start for one in found[:3]] == [15, 0, 35]


def test_a_quote_that_is_repeated_more_often_than_it_stands_there_is_one_flag() -> None:
    assert [one.start for one in located([flag("idiot"), flag("idiot"), flag("…")], "an idiot")] == [3, None]


def test_flags_of_two_pieces_that_overlap_are_one_and_all_stand_in_the_documents_order() -> None:
    seen_first = [flag("no place"), flag("b", start=90, end=95), flag("a", start=1, end=2)]
    seen_next = [flag("b", start=10, end=15), flag("b", "fraud", start=10, end=15), flag("c", start=30, end=31)]
    first = Reading(Piece(0, 0, 100, 1, 2), seen_first, 1)
    second = Reading(Piece(80, 100, 200, 2, 2), [*seen_next, flag("no place")], 1)
    assert [(one.rule, one.quote, one.start, one.end) for one in united([first, second])] == [
        ("abuse", "a", 1, 2), ("abuse", "b", 90, 95), ("fraud", "b", 90, 95), ("abuse", "c", 110, 111),
        ("abuse", "no place", None, None),
    ]  # fmt: skip


def test_places_are_those_of_the_whole_document() -> None:
    text = LONG[:90_000] + "my password is hunter2. " + LONG[90_000:]
    flags = [{"rule": "credentials", "severity": "high", "quote": "password is hunter2", "reason": "r"}]
    result, _ = run("flag-compliance", text, lambda prompt: {"flags": flags if "hunter2" in prompt else []})
    (one,) = result["flags"]
    assert text[one["start"] : one["end"]] == one["quote"] == "password is hunter2"


def test_the_input_may_bring_its_own_rules() -> None:
    said = {"flags": [{"rule": "no_smoking", "severity": "High", "quote": "A short", "reason": "r"}]}
    result, reader = run("flag-compliance", SHORT, lambda prompt: said, rules={"no_smoking": "where somebody smokes"})
    assert (result["flags"][0]["rule"], result["flags"][0]["severity"]) == ("no_smoking", "high")
    assert "- no_smoking: where somebody smokes" in reader.asked[0]["system"]
    with pytest.raises(Rejected):
        run("flag-compliance", SHORT, lambda prompt: said)


# --- a task of one's own -------------------------------------------------------------------------------
def test_the_example_of_the_page_about_tasks_reads_a_document_of_any_length() -> None:
    page = (ROOT / "docs" / "writing-a-task.md").read_text("utf-8")
    (example,) = (code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "read_document" in code)
    names: dict[str, Any] = {"Context": Context, "task": task}
    exec(example, names)
    for text, pieces in ((SHORT, 1), (LONG, 3)):
        reader = Reader(lambda prompt: {"score": 80 if "piece 1" in prompt else 40, "reason": "r"})
        found = names["rate_readability"]({"text": text}, reading(reader))
        assert found == {"score": 40 if pieces == 1 else found["score"], "reason": "r", "pieces": pieces}
        assert 40 <= found["score"] < 80
