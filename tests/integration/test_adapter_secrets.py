"""The Secrets port: Secrets Manager, read seldom, and at once when somebody doubts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.secrets import SecretsManager
from lambdas.core.ports import Unavailable
from tests.integration.cloud import Cloud

Later = Callable[[float], None]


@pytest.fixture
def secrets(cloud: Cloud) -> SecretsManager:
    for one in cloud.client("secretsmanager").list_secrets()["SecretList"]:
        cloud.client("secretsmanager").delete_secret(SecretId=one["ARN"], ForceDeleteWithoutRecovery=True)
    return SecretsManager(lambda: client("secretsmanager"))


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Moves the time that the adapter sees."""
    now = clock.now()

    def at(seconds: float) -> None:
        monkeypatch.setattr("lambdas.adapters.clock.now", lambda: now + timedelta(seconds=seconds))

    at(0)
    return at


def put(cloud: Cloud, text: str) -> None:
    cloud.client("secretsmanager").create_secret(Name="neverdrop/crm", SecretString=text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("whsec_abc", ("whsec_abc",)),
        ("  whsec_abc\n", ("whsec_abc",)),
        ('["new", "old"]', ("new", "old")),
        (' ["one"]', ("one",)),
        ('["new\\n", " old"]', ("new", "old")),
        ('["{in brackets"]', ("{in brackets",)),
    ],
)
def test_a_secret_is_a_text_or_a_list_of_texts(
    cloud: Cloud, secrets: SecretsManager, text: str, found: tuple[str, ...]
):
    put(cloud, text)
    assert secrets.read("neverdrop/crm", 300) == found


@pytest.mark.parametrize(
    "text", [" ", "[]", '["a", 5]', '["a", ""]', "[1]", "[not JSON", '["a", " "]', '{"crm": "whsec_abc"}', "{not JSON"]
)
def test_what_can_be_no_secret_is_unavailable(cloud: Cloud, secrets: SecretsManager, text: str):
    put(cloud, text)
    with pytest.raises(Unavailable, match="neverdrop/crm"):
        secrets.read("neverdrop/crm", 300)


def test_a_secret_that_is_not_there_is_unavailable_until_it_is(cloud: Cloud, secrets: SecretsManager):
    with pytest.raises(Unavailable):
        secrets.read("neverdrop/crm", 300)
    put(cloud, "s")
    assert secrets.read("neverdrop/crm", 300) == ("s",)


def test_it_is_read_again_when_it_is_older_than_somebody_will_have_it(
    cloud: Cloud, secrets: SecretsManager, later: Later
):
    put(cloud, "old")
    assert secrets.read("neverdrop/crm", 300) == ("old",)
    cloud.client("secretsmanager").put_secret_value(SecretId="neverdrop/crm", SecretString="new")
    later(30)
    assert secrets.read("neverdrop/crm", 300) == ("old",)
    assert secrets.read("neverdrop/crm", 30) == ("old",)
    later(31)
    assert secrets.read("neverdrop/crm", 300) == ("old",)
    assert secrets.read("neverdrop/crm", 30) == ("new",)
    assert cloud.wire.count(operation="GetSecretValue") == 2


def test_without_a_secret_to_read_there_is_no_client():
    def no_client() -> Any:
        raise AssertionError

    SecretsManager(no_client)
