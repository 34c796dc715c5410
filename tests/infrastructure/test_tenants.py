"""Who is whose: principals as the door sees them, and maps that would put tenants together."""

from __future__ import annotations

import json

import pytest

from infra import tenants
from infra.limits import problems
from infra.settings import Settings
from lambdas.core.identity import tenant_of

ACCOUNT = "arn:aws:iam::111122223333"
SSO = "AWSReservedSSO_Shop_0123456789abcdef"


def refused(of: dict[str, str]) -> list[str]:
    return problems(Settings(tenants=of, region="us-east-1"))


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        (f"{ACCOUNT}:role/a", f"{ACCOUNT}:role/a"),
        (f"{ACCOUNT}:role/team/a", f"{ACCOUNT}:role/a"),
        (f"{ACCOUNT}:role/aws-reserved/sso.amazonaws.com/eu-west-1/{SSO}", f"{ACCOUNT}:role/{SSO}"),
        (f"{ACCOUNT}:user/team/eve", f"{ACCOUNT}:user/team/eve"),
        (f"{ACCOUNT}:root", f"{ACCOUNT}:root"),
        ("arn:aws-us-gov:iam::111122223333:role/x/y/z", "arn:aws-us-gov:iam::111122223333:role/z"),
    ],
)
def test_a_role_loses_its_path_and_nobody_else_does(written: str, seen: str) -> None:
    assert tenants.principal(written) == seen


def test_who_has_assumed_a_role_with_a_path_is_its_tenant_and_not_its_account() -> None:
    principals = json.loads(tenants.environment({f"{ACCOUNT}:role/team/a": "a", f"{ACCOUNT}:role/team/b": "b"}))
    for name in ("a", "b"):
        arn = f"arn:aws:sts::111122223333:assumed-role/{name}/session"
        caller = {"iam": {"accountId": "111122223333", "userArn": arn}}
        assert tenant_of(caller, principals) == name


def test_roles_that_only_a_path_tells_apart_cannot_have_different_tenants() -> None:
    (told,) = refused({f"{ACCOUNT}:role/one/a": "one", f"{ACCOUNT}:role/two/a": "two"})
    assert "different tenants, but callers carry no path" in told
    assert f"{ACCOUNT}:role/a" in told
    assert refused({f"{ACCOUNT}:role/one/a": "same", f"{ACCOUNT}:role/two/a": "same"}) == []
    assert refused({f"{ACCOUNT}:role/a": "one", "arn:aws:iam::444455556666:role/a": "two"}) == []
    assert refused({f"{ACCOUNT}:user/one/a": "one", f"{ACCOUNT}:user/two/a": "two"}) == []


def test_a_session_is_no_identity_because_whoever_assumes_the_role_names_it() -> None:
    (told,) = refused({"arn:aws:sts::111122223333:assumed-role/shop/alice": "alice"})
    assert "whoever assumes a role chooses the session's name" in told
    assert "name the role" in told


@pytest.mark.parametrize("tenant", ["", ".", "..", "a shop", "a/b", "x" * 65, "shop\n"])
def test_a_tenant_that_is_no_segment_of_a_key_is_refused(tenant: str) -> None:
    (told,) = refused({f"{ACCOUNT}:role/x": tenant})
    assert f"the tenant {tenant!r}: it must match" in told


@pytest.mark.parametrize("tenant", ["...", ".a", "a.", "A-1_b.c", "x" * 64])
def test_a_tenant_may_have_dots_among_other_characters(tenant: str) -> None:
    assert refused({f"{ACCOUNT}:role/x": tenant}) == []


def test_a_map_that_a_functions_environment_cannot_hold_is_refused_with_advice() -> None:
    def roles(count: int) -> dict[str, str]:
        return {f"{ACCOUNT}:role/team/r{number:03}": f"t{number:03}" for number in range(count)}

    fits = max(count for count in range(100) if len(tenants.environment(roles(count))) <= tenants.MAX_BYTES)
    assert refused(roles(fits)) == []
    (told,) = refused(roles(fits + 1))
    assert "has room for 3000 of them: use tokens (jwt_issuer)" in told
