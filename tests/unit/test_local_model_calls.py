"""The list of calls is bounded; a rule's shape survives the checks."""

from __future__ import annotations

from datetime import UTC, datetime

from local.model import requests, script
from local.model.calls import Calls
from local.model.requests import ModelRequest

AT = datetime(2026, 11, 29, 15, 30, 44, 5000, tzinfo=UTC)


def request(text: str = "x") -> ModelRequest:
    body = f'{{"messages": [{{"role": "user", "content": [{{"text": "{text}"}}]}}]}}'
    made = requests.read(
        "/model/a%2Fb/converse-stream",
        body.encode(),
        "AWS4-HMAC-SHA256 Credential=AK/20261129/eu-west-1/bedrock/aws4_request, …",
    )
    assert made is not None
    return made


def test_the_oldest_calls_are_forgotten_and_the_numbers_go_on() -> None:
    calls = Calls(kept=3)
    for _ in range(5):
        calls.add(request(), AT)
    assert [call["n"] for call in calls.listed()] == [3, 4, 5]


def test_what_is_listed_is_a_copy() -> None:
    calls = Calls()
    calls.add(request(), AT)
    calls.listed()[0]["status"] = 1
    assert calls.listed()[0]["status"] is None


def test_a_request_knows_its_model_caller_region_and_operation() -> None:
    made = request()
    assert (made.model, made.caller, made.region, made.operation) == ("a/b", "AK", "eu-west-1", "ConverseStream")
    assert Calls().add(made, AT)["at"] == "2026-11-29T15:30:44.005Z"


def test_what_a_rule_does_not_give_is_told_from_what_it_gives_as_null() -> None:
    empty, null = script.parse([{}, {"stop_reason": None, "usage": None}])
    assert "stop_reason" not in empty.given
    assert {"stop_reason", "usage"} <= null.given


def test_an_answer_that_is_an_object_becomes_json_text() -> None:
    (rule,) = script.parse([{"answer": {"a": ["ü"]}}])
    assert rule.answer == '{"a": ["ü"]}'


def test_a_rule_in_force_is_taken_as_often_as_its_times_say() -> None:
    rules = script.Script()
    rules.replace([{"match": "a", "times": 2}, {"match": "b"}])
    taken = [rules.take(prompt) for prompt in ("a", "ab", "ab", "a", "c")]
    assert [rule.index if rule else None for rule in taken] == [0, 0, 1, None, None]
