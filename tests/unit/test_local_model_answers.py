"""The default answers: right shape for any schema, right content for the sample tasks, quick, within max_tokens."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import fastjsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.model import answers, requests
from local.model.content import Content, Detail
from local.model.extract import Extract, shorten
from local.model.fill import fill
from local.model.reply import Reply

DETAIL = Detail(3, 6, 200)
SUMMARY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "summary": {"type": "string", "minLength": 1},
        "participants": {"type": "array", "items": {"type": "string"}},
        "action_items": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["summary", "participants", "action_items"],
    "additionalProperties": False,
}
URGENCY = {"type": "string", "enum": ["low", "normal", "high"]}
CLASSIFIED = {
    "type": "object",
    "properties": {"category": {"type": "string"}, "urgency": URGENCY, "reason": {"type": "string"}},
    "required": ["category", "urgency", "reason"],
    "additionalProperties": False,
}
APOLLO = """[02:07:52:58] CC: 13, we've got one more item for you. We'd like you to stir up your cryo tanks.
[02:07:53:12] CMP: Okay. Stand by.
[02:07:55:35] CDR: Houston, we've had a problem. We've had a MAIN B BUS UNDERVOLT.
[02:07:55:42] CC: Roger. MAIN B UNDERVOLT.
[02:07:56:10] LMP (ODYSSEY): And we had a pretty large bang associated with the CAUTION AND WARNING there.
[02:08:00:35] CC: Verify that quad Delta is open. O<sub>2</sub> is low."""


def reply(user: str, schema: object = None, instructions: str = "", **config: Any) -> Reply:
    system = instructions + (f"\n<schema>\n{json.dumps(schema, indent=2)}\n</schema>\n" if schema else "")
    body = {
        "messages": [{"role": "user", "content": [{"text": user}]}],
        "system": [{"text": system}] if system else [],
        "inferenceConfig": config,
    }
    request = requests.read("/model/m/converse", json.dumps(body).encode(), "")
    assert request is not None
    return answers.answer(request)


def classified(form: str, categories: str = "Categories: billing, technical, sales, other") -> dict[str, str]:
    answer: dict[str, str] = json.loads(reply(form, CLASSIFIED, f"Classify the form.\n{categories}").text)
    return answer


# --- summarize -----------------------------------------------------------------------------------------


def test_a_transcript_gives_its_speakers_its_requests_and_its_alarms() -> None:
    answer = json.loads(reply(APOLLO, SUMMARY).text)
    assert answer["participants"] == ["CC", "CMP", "CDR", "LMP (ODYSSEY)"]
    assert set(answer["action_items"]) == {
        "CC: We'd like you to stir up your cryo tanks.",
        "CC: Verify that quad Delta is open.",
    }
    assert "large bang" in answer["summary"]
    assert "[02:" not in answer["summary"]


def test_lines_without_speakers_and_markup_are_read_too() -> None:
    extract = Extract("The O<sub>2</sub> tank leaks. Please close the valve.\nMaria Lopez knows why.")
    assert extract.sentences[0].text == "The O2 tank leaks."
    assert extract.speakers == []
    assert extract.names == ["Maria Lopez"]
    assert [sentence.text for sentence in extract.requests] == ["Please close the valve."]


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        ("Please send the contract to Ben.", True),
        ("Okay, check the invoice again tomorrow.", True),
        ("Could you call the customer back?", True),
        ("We need to replace the pump this week.", True),
        ("Say again, please, you are breaking up.", False),
        ("RESTART and a light on the panel.", False),
        ("The weather in London is fine.", False),
        ("Send it.", False),
    ],
)
def test_requests_are_told_from_statements(sentence: str, asked: bool) -> None:
    assert Extract(sentence).sentences[0].is_request is asked


def test_labels_of_a_form_are_no_speakers() -> None:
    extract = Extract("Name: Jane Roe\nEmail: jane@example.com\nMessage: The lamp is broken.")
    assert extract.speakers == []
    assert extract.sentences[-1].text == "The lamp is broken."


def test_a_summary_has_sentences_in_the_order_of_the_text_without_repetition() -> None:
    text = "The pump failed at noon. The pump failed at noon today. We ordered a new pump. Nobody was hurt there."
    told = [sentence.index for sentence in Extract(text).summary(3)]
    assert told == sorted(told)
    assert not {0, 1} <= set(told)


def test_the_document_inside_tags_or_json_is_what_counts() -> None:
    inside = reply(f"Summarize this:\n<transcript>\n{APOLLO}\n</transcript>\nThank you.", SUMMARY)
    as_json = reply(json.dumps({"language": 5, "call": {"text": APOLLO}}), SUMMARY)
    plain = reply(APOLLO, SUMMARY)
    assert inside.text == as_json.text == plain.text


def test_without_a_schema_the_answer_is_plain_text_from_the_message() -> None:
    assert reply("The server is down. It rains. We restart the server now.").text.startswith("The server is down.")
    assert reply("...").text == "There is nothing to say."


def test_the_schema_of_output_config_is_used_like_that_of_the_system_prompt() -> None:
    structure = {
        "jsonSchema": {
            "name": "n",
            "schema": json.dumps(
                {"type": "object", "required": ["urgent"], "properties": {"urgent": {"type": "boolean"}}}
            ),
        }
    }
    body = {
        "messages": [{"role": "user", "content": [{"text": "x"}]}],
        "outputConfig": {"textFormat": {"type": "json_schema", "structure": structure}},
    }
    request = requests.read("/model/m/converse", json.dumps(body).encode(), "")
    assert request is not None
    assert json.loads(answers.answer(request).text) == {"urgent": False}


# --- classify ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "category", "urgency"),
    [
        ("I was charged twice on my invoice, please refund the second payment.", "billing", "normal"),
        ("Our production site is down, nobody can log in. This is urgent!", "technical", "high"),
        ("Just wondering whether you have a demo and a price list. No rush.", "sales", "low"),
        ("I like trains.", "other", "normal"),
    ],
)
def test_a_form_gets_the_category_and_urgency_that_its_words_speak_for(form: str, category: str, urgency: str) -> None:
    answer = classified(f"Name: Jane Roe\nEmail: jane@example.com\nMessage: {form}")
    assert (answer["category"], answer["urgency"]) == (category, urgency)
    assert answer["reason"].rstrip(".") in form


@pytest.mark.parametrize(
    "categories",
    [
        "Choose one of the following categories:\n- gardening\n- plumbing\n- roofing",
        "Category (one of): gardening | plumbing | roofing",
        "The label is one of: 'gardening', 'plumbing' or 'roofing'.",
    ],
)
def test_categories_are_found_however_the_prompt_lists_them(categories: str) -> None:
    assert classified("The plumbing leaks in our kitchen.", categories)["category"] == "plumbing"


def test_categories_in_the_json_of_the_user_are_found() -> None:
    form = json.dumps({"categories": ["cats", "dogs"], "message": "My dogs bark. The dogs are loud."})
    assert classified(form, "")["category"] == "dogs"


def test_equal_questions_get_equal_answers() -> None:
    assert reply(APOLLO, SUMMARY) == reply(APOLLO, SUMMARY)


# --- limits --------------------------------------------------------------------------------------------


def test_a_small_budget_makes_the_answer_terse_before_it_is_cut() -> None:
    full = reply(APOLLO, SUMMARY)
    terse = reply(APOLLO, SUMMARY, maxTokens=len(full.text) // 4 - 1)
    assert terse.stop_reason == "end_turn"
    assert set(json.loads(terse.text)) == set(SUMMARY["required"])
    cut = reply(APOLLO, SUMMARY, maxTokens=5)
    assert (len(cut.text), cut.stop_reason) == (20, "max_tokens")


def test_a_stop_sequence_ends_the_answer() -> None:
    answer = reply("Alpha beta gamma delta epsilon zeta eta theta.", stopSequences=["gamma"])
    assert (answer.text, answer.stop_reason) == ("Alpha beta ", "stop_sequence")


@pytest.mark.parametrize(("size", "limit_s"), [(10_000, 2), (200_000, 30)])
def test_an_answer_costs_little_processor_time(size: int, limit_s: int) -> None:
    chosen = random.Random(7)
    words = ["pump", "Please", "invoice", "send", "Maria", "the", "is", "broken", "and", "today", "we", "of", "urgent"]
    lines = (f"[00:{n:02d}] S{n % 9}: {' '.join(chosen.choices(words, k=12))}." for n in range(size // 60))
    text = "\n".join(lines)[:size]
    began = time.process_time()
    json.loads(reply(text, {**SUMMARY, "properties": {**SUMMARY["properties"], "urgency": URGENCY}}).text)
    assert time.process_time() - began < limit_s


@pytest.mark.parametrize("piece", ["a", "A ", "1:", "[1", "<a", "A: ", ". ", "{", "category: ", "- x\n", "Ab Cd "])
def test_hostile_text_costs_no_more_than_plain_text(piece: str) -> None:
    began = time.process_time()
    reply(piece * (100_000 // len(piece)), SUMMARY)
    classified(piece * (100_000 // len(piece)))
    assert time.process_time() - began < 30  # what is not linear takes minutes


def test_shorten_cuts_between_words() -> None:
    assert shorten("one two three", 9) == "one two…"
    assert shorten("one two three", 13) == "one two three"
    assert shorten("onetwothree", 4) == "one…"
    assert shorten("one", 0) == ""


# --- schemas -------------------------------------------------------------------------------------------

names = st.sampled_from(["summary", "reason", "name", "category", "participants", "actions", "notes", "count", "tags"])


@st.composite
def bounds(draw: st.DrawFn, low: str, high: str, most: int) -> dict[str, int]:
    least = draw(st.integers(0, most))
    chosen = {low: least, high: draw(st.integers(least, 2 * most))}
    return {key: chosen[key] for key in draw(st.sets(st.sampled_from([low, high])))}


strings = bounds("minLength", "maxLength", 30).map(lambda limits: {"type": "string", **limits})
scalars = st.one_of(
    strings,
    bounds("minimum", "maximum", 50).map(lambda limits: {"type": "integer", **limits}),
    bounds("minimum", "maximum", 50).map(lambda limits: {"type": "number", **limits}),
    st.just({"type": "integer", "minimum": 3, "multipleOf": 4}),
    st.just({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
    st.just({"type": "boolean"}),
    st.just({"type": ["null", "string"]}),
    st.just({"const": {"fixed": [1]}}),
    st.lists(st.one_of(st.text(max_size=8), st.integers(), st.none()), min_size=1, max_size=4).map(
        lambda values: {"enum": values}
    ),
    st.just({"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]}),
    st.just({"type": "string", "format": "date-time"}),
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = st.tuples(inner, bounds("minItems", "maxItems", 5)).map(
        lambda pair: {"type": "array", "items": pair[0], **pair[1]}
    )
    objects = st.dictionaries(names, inner, max_size=5).map(
        lambda properties: {
            "type": "object",
            "properties": properties,
            "required": sorted(properties)[:2],
            "additionalProperties": False,
        }
    )
    return st.one_of(arrays, objects)


@settings(max_examples=150, deadline=None)
@given(schema=st.recursive(scalars, nested, max_leaves=8), text=st.sampled_from([APOLLO, "", "One line only", "? - ."]))
def test_the_answer_satisfies_whatever_the_schema_demands(schema: dict[str, Any], text: str) -> None:
    value = fill(schema, Content(Extract(text), "", text, DETAIL))
    fastjsonschema.compile(schema)(json.loads(json.dumps(value)))


def test_unique_items_are_unique_when_the_text_has_too_few() -> None:
    schema = {"type": "array", "items": {"type": "string", "minLength": 3}, "minItems": 5, "uniqueItems": True}
    value = fill(schema, Content(Extract("One sentence is all."), "", "", DETAIL))
    assert len(set(value)) == len(value) == 5


def test_references_and_merged_parts_are_followed_and_recursion_ends() -> None:
    schema = {
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "allOf": [
            {"type": "object", "properties": {"flag": {"type": "boolean"}}, "required": ["flag"]},
            {"properties": {"root": {"$ref": "#/$defs/node"}}, "required": ["root"]},
        ],
    }
    value = fill(schema, Content(Extract("x"), "", "", DETAIL))
    assert value["flag"] is False
    assert isinstance(value["root"]["next"], dict)


def test_a_schema_that_requires_itself_ends_nevertheless() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    assert "a" in fill(schema, Content(Extract("x"), "", "", DETAIL))


# --- a message -----------------------------------------------------------------------------------
def test_a_call_gets_a_message_that_says_what_was_said_and_what_happens_next() -> None:
    system = "You write the message that follows up a call."
    text = reply(f"<transcript>\n{APOLLO}\n</transcript>\nBe brief.", instructions=system).text
    assert text.startswith("Hello,\n\nThank you for the call. In short: ")
    assert "What happens next:\n- CC: " in text
    assert "stir up your cryo tanks" in text
    assert text.endswith("Kind regards")


# --- lists of objects, and scales ------------------------------------------------------------------
LETTER = """On 12 March 2026 Acme Corp charged me $1,250.00 twice. My card is 4111 1111 1111 1111.
I am very unhappy. The password is hunter2! Write to jane.roe@example.com today.
If nobody answers, my lawyer Peter Grant will sue. John Smith promised an answer in Berlin."""
ENTITY = {
    "type": "object",
    "required": ["name", "type"],
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "type": {"enum": ["person", "organization", "place", "date", "amount", "other"]},
    },
}
FLAG = {
    "type": "object",
    "required": ["rule", "severity", "quote"],
    "properties": {
        "severity": {"enum": ["low", "medium", "high"]},
        "rule": {"enum": ["personal_data", "payment_data", "credentials", "legal_risk", "health_data"]},
        "quote": {"type": "string", "minLength": 1},
    },
}


def listed(name: str, item: dict[str, Any], text: str, **bounds: int) -> list[dict[str, Any]]:
    array = {"type": "array", "items": item, **bounds}
    schema = {"type": "object", "required": [name], "properties": {name: array}}
    found: list[dict[str, Any]] = json.loads(reply(text, schema).text)[name]
    return found


def test_a_list_of_named_things_has_each_once_with_its_kind() -> None:
    found = {one["name"]: one["type"] for one in listed("entities", ENTITY, LETTER)}
    assert found == {
        "Acme Corp": "organization", "Peter Grant": "person", "John Smith": "person", "Berlin": "other",
        "12 March 2026": "date", "$1,250.00": "amount",
    }  # fmt: skip


def test_a_list_of_passages_has_those_that_speak_for_a_value_to_the_letter() -> None:
    found = listed("flags", FLAG, LETTER)
    assert {(one["rule"], one["quote"]) for one in found} >= {
        ("payment_data", "My card is 4111 1111 1111 1111."),
        ("credentials", "The password is hunter2!"),
        ("personal_data", "Write to jane.roe@example.com today."),
        ("legal_risk", "If nobody answers, my lawyer Peter Grant will sue."),
    }
    assert all(one["quote"] in LETTER for one in found)
    assert "health_data" not in {one["rule"] for one in found}


def test_where_nothing_speaks_for_a_value_a_list_is_empty_but_for_what_the_schema_demands() -> None:
    assert listed("flags", FLAG, "The weather is fine.") == []
    assert len(listed("flags", FLAG, "The weather is fine.", minItems=2)) == 2
    assert len(listed("flags", FLAG, LETTER, maxItems=1)) == 1


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("A great team, excellent work. We love it, thank you!", 20, 100),
        ("Terrible. The worst service, I am angry and disappointed.", -100, -20),
        ("The meeting is on Monday. Bring the plan.", 0, 0),
    ],
)
def test_a_score_is_a_place_on_its_scale_by_the_words_of_feeling(text: str, low: int, high: int) -> None:
    bounds = {"type": "integer", "minimum": -100, "maximum": 100}
    schema = {"type": "object", "required": ["score"], "properties": {"score": bounds}}
    assert low <= json.loads(reply(text, schema).text)["score"] <= high


def test_how_sure_it_is_fits_its_scale_and_a_count_stays_a_count() -> None:
    properties = {
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
        "probability": {"type": "number", "minimum": 0, "maximum": 1},
        "speakers": {"type": "integer", "minimum": 0, "maximum": 100},
    }
    found = json.loads(reply(APOLLO, {"type": "object", "required": [*properties], "properties": properties}).text)
    assert found == {"confidence": 75, "probability": 0.75, "speakers": 4}


@pytest.mark.parametrize("piece", ["a", "A ", "Ab Cd ", "1234 ", "a@", "$1", "1 A", "[00:00] A: b\n", "password "])
def test_hostile_text_costs_lists_and_scores_no_more_than_plain_text(piece: str) -> None:
    began = time.process_time()
    listed("flags", FLAG, piece * (100_000 // len(piece)))
    listed("entities", ENTITY, piece * (100_000 // len(piece)))
    assert time.process_time() - began < 30  # what is not linear takes minutes
