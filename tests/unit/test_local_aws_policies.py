"""Identity policies are evaluated as IAM does it."""

from __future__ import annotations

from typing import Any

import pytest

from local.aws.policies import UnknownConditionError, allows, denies

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/Jobs"


def document(*statements: dict[str, Any]) -> Any:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(action: object, resource: object = TABLE, **more: object) -> Any:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: object, resource: object = TABLE, **more: object) -> Any:
    return {**allow(action, resource, **more), "Effect": "Deny"}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (allow("dynamodb:PutItem"), True),
        (allow(["dynamodb:GetItem", "dynamodb:PutItem"], [TABLE, "x"]), True),
        (allow("DynamoDB:putitem"), True),
        (allow("dynamodb:Put*"), True),
        (allow("dynamodb:???Item"), True),
        (allow("*", "*"), True),
        (allow("dynamodb:PutItem", f"{TABLE}*"), True),
        (allow("dynamodb:GetItem"), False),
        (allow("dynamodb:PutItems"), False),
        (allow("dynamodb:PutItem", f"{TABLE}/index/*"), False),
        (allow("dynamodb:PutItem", TABLE.lower()), False),
        (allow("s3:*", "*"), False),
    ],
)
def test_an_action_needs_a_statement_that_names_it_and_its_resource(statement, expected):
    assert allows([document(statement)], "dynamodb:PutItem", TABLE) is expected


def test_nothing_is_allowed_by_default():
    assert not allows([], "dynamodb:PutItem", TABLE)


def test_a_deny_in_any_policy_wins():
    documents = [document(allow("*", "*")), document(deny("dynamodb:Delete*"))]
    assert allows(documents, "dynamodb:PutItem", TABLE)
    assert not allows(documents, "dynamodb:DeleteItem", TABLE)
    assert denies(documents, "dynamodb:DeleteItem", TABLE)
    assert not denies([], "dynamodb:DeleteItem", TABLE)


def test_a_single_statement_need_not_be_a_list():
    assert allows([{"Statement": allow("dynamodb:PutItem")}], "dynamodb:PutItem", TABLE)


@pytest.mark.parametrize(
    ("condition", "context", "expected"),
    [
        ({"StringEquals": {"s3:prefix": "a/"}}, {"s3:prefix": "a/"}, True),
        ({"StringEquals": {"s3:prefix": ["b/", "a/"]}}, {"s3:prefix": "a/"}, True),
        ({"StringEquals": {"s3:prefix": "a/"}}, {"s3:prefix": "b/"}, False),
        ({"StringEquals": {"s3:prefix": "a/"}}, {}, False),
        ({"StringLike": {"S3:Prefix": "a/*"}}, {"s3:prefix": "a/b"}, True),
        ({"StringLike": {"s3:prefix": "a/*"}}, {"s3:prefix": "b"}, False),
        ({"StringLikeIfExists": {"s3:prefix": "a/*"}}, {}, True),
        ({"StringNotLike": {"s3:prefix": "a/*"}}, {"s3:prefix": "a/b"}, False),
        ({"StringNotEquals": {"s3:prefix": "a/"}}, {}, True),
        ({"ForAllValues:StringLike": {"s3:prefix": ["a/*", "b"]}}, {"s3:prefix": "a/x\nb"}, True),
        ({"ForAllValues:StringLike": {"s3:prefix": ["a/*", "b"]}}, {"s3:prefix": "a/x\nc"}, False),
        ({"ForAllValues:StringLike": {"s3:prefix": ["a/*"]}}, {}, True),
        ({"Bool": {"aws:SecureTransport": "true"}}, {}, True),
        ({"Bool": {"aws:SecureTransport": "false"}}, {}, False),
    ],
)
def test_conditions_hold_by_their_operator(condition, context, expected):
    documents = [document(allow("s3:ListBucket", "*", Condition=condition))]
    assert allows(documents, "s3:ListBucket", "arn:aws:s3:::box", context) is expected


def test_a_condition_that_is_not_known_is_an_error():
    documents = [document(allow("s3:*", "*", Condition={"NumericLessThan": {"s3:max-keys": "10"}}))]
    with pytest.raises(UnknownConditionError, match="NumericLessThan"):
        allows(documents, "s3:ListBucket", "arn:aws:s3:::box")
