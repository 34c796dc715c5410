"""The tasks that users copy, called as they would call their own in a test: a function of its input and a context."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from lambdas.core.asking import Answer
from lambdas.core.outcomes import Rejected
from lambdas.core.tasks import Context
from lambdas.tasks import load
from lambdas.tasks.classify.task import classify
from lambdas.tasks.notify_by_email.task import notify_by_email
from lambdas.tasks.reply.task import reply
from lambdas.tasks.summarize.task import summarize


class Model:
    """Answers what it was given, and remembers what it was asked."""

    def __init__(self, said: Any) -> None:
        self.said = said if isinstance(said, str) else json.dumps(said)
        self.asked: list[dict[str, Any]] = []

    def ask(self, prompt: str, **more: Any) -> Answer:
        self.asked.append({"prompt": prompt, **more})
        return Answer(self.said, "model", 1, 1, 1, False)


class Mail:
    """Keeps what was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, str]] = []

    def send(self, **mail: str) -> str:
        self.sent.append(mail)
        return f"m-{len(self.sent)}"


def context(model: Model, mail: Mail | None = None) -> Context:
    def effect(name: str, payload: Any, act: Callable[[Any, str], Any], *, once: bool = False) -> Any:
        return act(payload, f"key of {name}")

    return Context(
        job_id="j", tenant="t", attempt=1, model=cast("Any", model), effect=effect, mail=cast("Any", mail),
        fetch=lambda key: b"", remaining_s=lambda: 60.0, log=lambda *_, **__: None,
    )  # fmt: skip


def test_a_summary_shows_the_model_its_schema_and_the_transcript_as_data() -> None:
    said = {"summary": "s", "participants": ["ANN"], "action_items": []}
    model = Model(said)
    assert summarize({"text": "ANN: hello"}, context(model)) == said
    (asked,) = model.asked
    assert asked["prompt"] == "ANN: hello"
    schema = asked["system"].partition("<schema>\n")[2].partition("\n</schema>")[0]
    assert set(json.loads(schema)["required"]) == set(said)


def test_a_summary_is_asked_for_in_the_language_that_the_input_names() -> None:
    model = Model({})
    summarize({"text": "ANN: hello", "language": "de"}, context(model))
    assert "language de" in model.asked[0]["system"]


def test_a_form_is_shown_field_by_field_and_answered_without_chance() -> None:
    said = {"category": "billing", "urgency": "high", "reason": "r"}
    model = Model("```json\n" + json.dumps(said) + "\n```")
    form = {"form": "support", "fields": {"subject": "invoice", "seats": 4}}
    assert classify(form, context(model)) == said
    assert model.asked[0]["prompt"] == "Form: support\nsubject: invoice\nseats: 4"
    assert model.asked[0]["temperature"] == 0.0


def test_an_email_is_sent_under_the_effects_key_with_a_subject_of_one_line() -> None:
    model, mail = Model({"subject": "Down\r\nBcc: all@example.com", "text": "It is down."}), Mail()
    result = notify_by_email({"to": "ops@example.com", "about": "it is down"}, context(model, mail))
    assert mail.sent == [
        {
            "to": "ops@example.com",
            "subject": "Down Bcc: all@example.com",
            "text": "It is down.",
            "key": "key of notification",
        }
    ]
    assert result == {"message_id": "m-1", "subject": "Down Bcc: all@example.com"}


@pytest.mark.parametrize(
    "said", [{"subject": "s"}, {"subject": "s", "text": ""}, {"subject": 1, "text": "t"}, "no JSON"]
)
def test_an_email_without_a_subject_or_a_text_is_written_anew_and_not_sent(said: Any) -> None:
    mail = Mail()
    with pytest.raises(Rejected):
        notify_by_email({"to": "ops@example.com", "about": "x"}, context(Model(said), mail))
    assert mail.sent == []


def test_a_reply_is_what_the_model_said_to_the_character() -> None:
    said = "Hello,\n\n  thank you. \U0001f600\n"
    model = Model(said)
    assert reply({"text": "ANN: hello"}, context(model)) == {"text": said}
    (asked,) = model.asked
    assert asked["prompt"] == "<transcript>\nANN: hello\n</transcript>"
    assert "show" not in asked


def test_what_a_reply_shall_be_like_stands_outside_the_transcript() -> None:
    model = Model("Hallo")
    reply({"text": "ANN: hello", "instructions": "Be brief.", "language": "de"}, context(model))
    outside = model.asked[0]["prompt"].partition("</transcript>\n")[2]
    assert outside == "Be brief.\nWrite in the language de."


@pytest.mark.parametrize("type_", ["summarize", "classify", "notify-by-email", "reply"])
def test_each_sample_checks_its_output(type_: str) -> None:
    loaded, broken = load()
    assert broken == {}
    assert loaded[type_].check_output({}) is not None
