"""The Secrets port on AWS Secrets Manager."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from lambdas.adapters import clock
from lambdas.adapters.clients import as_unavailable
from lambdas.core.ports import Unavailable
from lambdas.core.times import Instant, seconds_between


class SecretsManager:
    """Keeps what it read for this execution environment: a secret costs a call, and every event needs one."""

    def __init__(self, client: Callable[[], Any]) -> None:
        """`client`: made when the first secret is read; a deployment without sources reads none."""
        self._client = client
        self._kept: dict[str, tuple[Instant, tuple[str, ...]]] = {}

    def read(self, name: str, age_s: float) -> tuple[str, ...]:
        kept = self._kept.get(name)
        now = clock.now()
        if kept is None or seconds_between(kept[0], now) > age_s:
            kept = self._kept[name] = (now, self._read(name))
        return kept[1]

    def _read(self, name: str) -> tuple[str, ...]:
        with as_unavailable(f"reading the secret {name}"):
            answer = self._client().get_secret_value(SecretId=name)
        found = _secrets_in(answer.get("SecretString", ""))
        if not found:
            raise Unavailable(f"the secret {name} is neither one text nor a JSON list of texts", unknown=False)
        return found


def _secrets_in(text: str) -> tuple[str, ...]:
    """One secret as it is, or a JSON list of those that count while one is replaced by another. Keys and values, which
    the console writes unless it is told otherwise, are neither: taken for a text they would refuse every event."""
    try:
        found = json.loads(text) if text.lstrip().startswith(("[", "{")) else [text]
    except ValueError:
        return ()
    listed = [one.strip() if isinstance(one, str) else "" for one in found] if isinstance(found, list) else []
    return tuple(listed) if all(listed) else ()
