"""Starts another function, or this one once more, without waiting for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lambdas.adapters.clients import as_unavailable


class LambdaFunctions:
    """Asynchronous invocations."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def start(self, name: str, payload: Mapping[str, Any]) -> None:
        """It will run soon, at least once. Raises Unavailable."""
        with as_unavailable(f"starting {name}"):
            self._client.invoke(FunctionName=name, InvocationType="Event", Payload=json.dumps(payload).encode())
