"""Event filter patterns, malformed partial responses and schedule expressions: the rules without any process."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.events.cron import BadExpressionError, next_after
from local.events.filters import BadPatternError, Filters
from local.events.partial import failed_items

JOB: dict[str, Any] = {
    "eventName": "MODIFY",
    "dynamodb": {
        "Keys": {"pk": {"S": "j1"}, "sk": {"S": "job"}},
        "NewImage": {"status": {"S": "PENDING"}, "due_shard": {"S": "07"}, "tries": {"N": "3"}},
        "SizeBytes": 300,
    },
}


def passes(*patterns: Any, record: Any = JOB) -> bool:
    return Filters({"Filters": [{"Pattern": json.dumps(pattern)} for pattern in patterns]}).pass_(record)


def image(**rules: Any) -> dict[str, Any]:
    return {"dynamodb": {"NewImage": {name: {"S": rule} for name, rule in rules.items()}}}


def test_mapping_without_filters_lets_everything_pass():
    assert Filters(None).pass_(JOB)


def test_value_must_be_one_of_the_listed():
    assert passes(image(status=["PENDING", "FAILED"]))
    assert not passes(image(status=["FAILED"]))


def test_all_keys_of_a_pattern_must_match_and_any_of_the_patterns():
    right, wrong = image(status=["PENDING"]), {"dynamodb": {"Keys": {"sk": {"S": ["event"]}}}}
    assert not passes({"dynamodb": right["dynamodb"] | wrong["dynamodb"]})
    assert passes(wrong, right)


def test_exists_looks_at_leaves():
    assert passes(image(due_shard=[{"exists": True}]))
    assert not passes(image(claim_id=[{"exists": True}]))
    assert passes(image(claim_id=[{"exists": False}]))
    assert not passes(image(due_shard=[{"exists": False}]))
    assert not passes({"dynamodb": {"NewImage": [{"exists": True}]}})


def test_removed_item_has_no_new_image_to_match():
    removed = {"eventName": "REMOVE", "dynamodb": {"Keys": JOB["dynamodb"]["Keys"]}}
    assert not passes(image(status=["PENDING"]), record=removed)
    assert passes(image(status=[{"exists": False}]), record=removed)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"prefix": "PEN"}, True),
        ({"prefix": "FAI"}, False),
        ({"suffix": "ING"}, True),
        ({"equals-ignore-case": "pending"}, True),
        ({"anything-but": ["FAILED"]}, True),
        ({"anything-but": ["PENDING", "FAILED"]}, False),
        ({"anything-but": {"prefix": "PEN"}}, False),
    ],
)
def test_rules_for_text(rule, expected):
    assert passes(image(status=[rule])) is expected


def test_anything_but_needs_the_value_to_be_there():
    assert not passes(image(claim_id=[{"anything-but": ["x"]}]))


@pytest.mark.parametrize(
    ("rule", "expected"), [([">", 299], True), ([">", 0, "<=", 299], False), (["=", 300], True), ([">=", 301], False)]
)
def test_numeric_compares_numbers(rule, expected):
    assert passes({"dynamodb": {"SizeBytes": [{"numeric": rule}]}}) is expected


def test_numeric_never_matches_dynamodbs_numbers_which_are_text():
    assert not passes({"dynamodb": {"NewImage": {"tries": {"N": [{"numeric": [">", 0]}]}}}})


def test_null_and_booleans_match_only_themselves():
    assert passes({"a": [None]}, record={"a": None})
    assert not passes({"a": [None]}, record={})
    assert passes({"a": [True]}, record={"a": True})
    assert not passes({"a": [1]}, record={"a": True})


def test_or_takes_any_alternative():
    assert passes({"$or": [{"eventName": ["INSERT"]}, {"eventName": ["MODIFY"]}]})
    assert not passes({"$or": [{"eventName": ["INSERT"]}, {"eventName": ["REMOVE"]}]})


@pytest.mark.parametrize(
    "pattern",
    [
        "{",
        "[]",
        "{}",
        '{"a": "text"}',
        '{"a": []}',
        '{"a": [{"like": "x"}]}',
        '{"a": [{"numeric": [">"]}]}',
        '{"a": [{"exists": "yes"}]}',
        '{"a": [{"prefix": ""}]}',
        '{"a": [{"prefix": ["x"]}]}',
        '{"a": ["' + "x" * 4096 + '"]}',
    ],
)
def test_pattern_that_aws_refuses_is_refused(pattern):
    with pytest.raises(BadPatternError):
        Filters({"Filters": [{"Pattern": pattern}]})


def test_sixth_filter_is_refused():
    """https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html"""
    Filters({"Filters": [{"Pattern": '{"a": ["b"]}'}] * 5})
    with pytest.raises(BadPatternError, match="at most 5"):
        Filters({"Filters": [{"Pattern": '{"a": ["b"]}'}] * 6})


@pytest.mark.parametrize(
    ("sk", "stream", "passes"),
    [
        ("chunk#000001#000000", None, True),
        ("job", True, True),
        ("job", False, False),
        ("job", None, False),
        ("x", True, 0),
    ],
)
def test_prefix_on_keys_and_booleans_in_images(sk, stream, passes):
    patterns = [
        {"dynamodb": {"Keys": {"sk": {"S": [{"prefix": "chunk#"}]}}}},
        {"dynamodb": {"Keys": {"sk": {"S": ["job"]}}, "NewImage": {"stream": {"BOOL": [True]}}}},
    ]
    image = {"sk": {"S": sk}, **({} if stream is None else {"stream": {"BOOL": stream}})}
    record = {"dynamodb": {"Keys": {"sk": {"S": sk}}, "NewImage": image}}
    filters = Filters({"Filters": [{"Pattern": json.dumps(one)} for one in patterns]})
    assert filters.pass_(record) is bool(passes)
    del record["dynamodb"]["NewImage"]  # it was removed
    assert filters.pass_(record) is sk.startswith("chunk#")


# --- BATCH-10 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [None, {}, [], "", {"batchItemFailures": []}, {"batchItemFailures": None}])
def test_batch_10_empty_answers_are_a_complete_success(result):
    assert failed_items(result, ["a", "b"]) == set()


@pytest.mark.parametrize(
    "result",
    [
        {"batchItemFailures": [{"itemIdentifier": ""}]},
        {"batchItemFailures": [{"itemIdentifier": None}]},
        {"batchItemFailures": [{"id": "a"}]},
        {"batchItemFailures": [{"itemIdentifier": "unknown"}]},
        {"batchItemFailures": [{"itemIdentifier": "a"}, {"itemIdentifier": 7}]},
        {"batchItemFailures": "x"},
        {"batchItemFailures": {"itemIdentifier": "a"}},
        {"batchItemFailures": ["a"]},
        "done",
        True,
        0,
        [1],
    ],
)
def test_batch_10_malformed_answers_fail_the_whole_batch(result):
    assert failed_items(result, ["a", "b"]) is None


def test_reported_items_are_the_failed_ones():
    assert failed_items({"batchItemFailures": [{"itemIdentifier": "b"}]}, ["a", "b"]) == {"b"}


# --- schedules -------------------------------------------------------------------------------------------

START = datetime(2026, 1, 31, 10, 7, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("rate(5 minutes)", "2026-01-31T10:12:30"),
        ("rate(1 day)", "2026-02-01T10:07:30"),
        ("cron(0/15 * * * ? *)", "2026-01-31T10:15:00"),
        ("cron(0 9 ? * MON-FRI *)", "2026-02-02T09:00:00"),
        ("cron(30 10 L * ? *)", "2026-01-31T10:30:00"),
        ("cron(0 0 29 FEB ? *)", "2028-02-29T00:00:00"),
        ("cron(5,10 10 31 1 ? 2026-2027)", "2026-01-31T10:10:00"),
        ("at(2026-03-01T00:00:00)", "2026-03-01T00:00:00"),
    ],
)
def test_schedule_fires_next_at(expression, expected):
    assert next_after(expression, START)(START) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_rate_keeps_its_rhythm_after_a_gap():
    following = next_after("rate(5 minutes)", START)
    assert following(START + timedelta(minutes=17)) == START + timedelta(minutes=20)


def test_at_fires_once():
    assert next_after("at(2026-01-31T10:00:00)", START)(START) is None


def test_cron_follows_its_time_zone():
    following = next_after("cron(0 9 * * ? *)", START, "America/New_York")
    assert following(START) == datetime(2026, 1, 31, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "expression", ["rate(0 minutes)", "every day", "cron(0 0 * * * *)", "cron(61 * * * ? *)", "cron(0 0 ? * 6#3 *)"]
)
def test_expression_that_is_not_understood_is_refused(expression):
    with pytest.raises(BadExpressionError):
        next_after(expression, START)
