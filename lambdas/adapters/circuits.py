"""The Circuits port on the table of jobs: one row per endpoint, beside its tenant's endpoints."""

from __future__ import annotations

from typing import Any

from lambdas.adapters.records import Records
from lambdas.core.webhooks.places import Places


class DynamoCircuits(Places):
    """Each step is one conditional write. `places`: how many may call one endpoint at once."""

    def __init__(self, client: Any, table: str, *, places: int) -> None:
        super().__init__(Records(client, table), places)
