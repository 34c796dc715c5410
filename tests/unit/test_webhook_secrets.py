"""Secrets that nobody stores: each made from the master, and each endpoint's and version's another one."""

from __future__ import annotations

import base64
from itertools import product

from lambdas.core.webhooks import secrets
from tests.builders import NOW, later
from tests.fakes_webhooks import any_endpoint


def test_a_secret_is_a_key_of_32_bytes_as_standard_webhooks_writes_it() -> None:
    found = secrets.secret("master", "acme", "e1", 1)
    assert found.startswith("whsec_")
    assert len(base64.b64decode(found.removeprefix("whsec_"), validate=True)) == 32


def test_the_derivation_never_changes_or_every_receiver_would_refuse_what_we_send() -> None:
    assert secrets.secret("master", "acme", "e1", 1) == "whsec_ybcIQ8x1pRFgYqFxiq6SwlOOweALUKL7LVLkcxvfcLA="


def test_each_part_makes_another_secret_and_parts_never_run_together() -> None:
    parts = product(("m", "n"), ("a", "a,b", 'a"'), ("b", "b,c"), (1, 11))
    made = [secrets.secret(*part) for part in parts]
    assert len(set(made)) == len(made)
    assert secrets.secret("m", "ab", "c", 1) != secrets.secret("m", "a", "bc", 1)


def test_the_newest_version_under_the_newest_master_is_the_current_one() -> None:
    endpoint = any_endpoint(secret_version=7, previous_until=later(60))
    assert secrets.current(("new", "old"), endpoint) == secrets.secret("new", endpoint.tenant, endpoint.id, 7)


def test_one_secret_signs_while_nothing_is_rotated() -> None:
    endpoint = any_endpoint(secret_version=7)
    assert secrets.signing(("m",), endpoint, NOW) == (secrets.current(("m",), endpoint),)


def test_after_a_rotation_the_one_before_signs_along_for_its_time() -> None:
    endpoint = any_endpoint(secret_version=7, previous_until=later(60))
    both = tuple(secrets.secret("m", endpoint.tenant, endpoint.id, version) for version in (7, 6))
    assert secrets.signing(("m",), endpoint, NOW) == both
    assert secrets.signing(("m",), endpoint, later(60)) == both[:1]


def test_while_the_master_is_changed_those_of_both_sign() -> None:
    endpoint = any_endpoint(secret_version=2, previous_until=later(60))
    found = secrets.signing(("new", "old"), endpoint, NOW)
    assert len(set(found)) == len(found) == 4
    assert found[0] == secrets.current(("new", "old"), endpoint)
    assert set(found) > set(secrets.signing(("old",), endpoint, NOW))


def test_a_master_that_is_listed_twice_signs_once() -> None:
    assert len(secrets.signing(("m", "m"), any_endpoint(), NOW)) == 1
