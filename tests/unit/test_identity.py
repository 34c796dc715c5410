"""The tenant comes from what was verified and from nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.core.identity import tenant_of
from lambdas.core.problems import Problem

USER = "arn:aws:iam::111122223333:user/mia"
ROLE = "arn:aws:iam::111122223333:role/Form"
SESSION = "arn:aws:sts::111122223333:assumed-role/Form/session-1"


def iam(arn: str = USER, account: str = "111122223333") -> dict[str, Any]:
    return {"iam": {"userArn": arn, "accountId": account}}


def jwt(**claims: Any) -> dict[str, Any]:
    return {"jwt": {"claims": claims}}


def test_the_tenant_of_a_token_is_its_claim() -> None:
    assert tenant_of(jwt(tenant_id="acme"), {}) == "acme"


def test_the_tenant_of_an_iam_identity_is_its_account() -> None:
    assert tenant_of(iam(), {}) == "111122223333"


@pytest.mark.parametrize(
    ("arn", "named", "tenant"),
    [
        (USER, USER, "acme"),
        (SESSION, SESSION, "acme"),
        (SESSION, ROLE, "acme"),
        ("arn:aws-us-gov:sts::1:assumed-role/R/s", "arn:aws-us-gov:iam::1:role/R", "acme"),
        (SESSION, "arn:aws:iam::111122223333:role/Other", "111122223333"),
        (SESSION, "arn:aws:iam::999999999999:role/Form", "111122223333"),
        (USER, ROLE, "111122223333"),
    ],
)
def test_a_declared_principal_has_its_tenant_and_any_other_its_account(arn: str, named: str, tenant: str) -> None:
    assert tenant_of(iam(arn), {named: "acme"}) == tenant


def test_the_session_counts_before_its_role() -> None:
    assert tenant_of(iam(SESSION), {ROLE: "acme", SESSION: "globex"}) == "globex"


@pytest.mark.parametrize(
    "tenant", ["", " ", "a b", "a/b", "a|b", "a#1", "é", "a\n", "x" * 65, ".", "..", None, ["a"], {"a": 1}]
)
def test_a_claim_that_is_no_tenant_id_is_403(tenant: Any) -> None:
    found = tenant_of(jwt(tenant_id=tenant), {})
    assert isinstance(found, Problem)
    assert found.status == 403


@pytest.mark.parametrize("tenant", ["a", "A.b-c_9", "x" * 64, "111122223333", "...", ".a", "..a", "a.."])
def test_a_claim_that_is_a_tenant_id_is_taken(tenant: str) -> None:
    assert tenant_of(jwt(tenant_id=tenant), {}) == tenant


@pytest.mark.parametrize(
    "authorizer", [{}, {"iam": None}, {"jwt": None}, {"lambda": {"tenant_id": "acme"}}, {"jwt": {}}, {"iam": {}}]
)
def test_without_a_verified_identity_nobody_comes_in(authorizer: dict[str, Any]) -> None:
    found = tenant_of(authorizer, {})
    assert isinstance(found, Problem)
    assert found.status == 403


def test_a_token_that_carries_no_tenant_does_not_fall_back_to_anything_else() -> None:
    assert isinstance(tenant_of({**jwt(sub="mia"), **iam()}, {}), Problem)
