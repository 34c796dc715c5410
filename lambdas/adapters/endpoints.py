"""The EndpointStore port: a tenant's endpoints, and how they are doing, in one partition of the Jobs table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambdas.adapters.attributes import record_in, to_attribute, to_item
from lambdas.adapters.clients import as_unavailable
from lambdas.adapters.ledger import DynamoLedger
from lambdas.contracts.names import CIRCUIT_SK, ENDPOINT_SK, TENANT_PK


class DynamoEndpoints:
    """Conditional writes are those of the ledger, which knows its own effect behind a lost reply."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table
        self._ledger = DynamoLedger(client, table)

    def of_tenant(self, tenant: str) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        more: dict[str, Any] = {}
        while True:
            with as_unavailable(f"reading the endpoints of {tenant}"):
                answer = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk AND begins_with(sk, :start)",
                    ExpressionAttributeValues={
                        ":pk": to_attribute(TENANT_PK + tenant),
                        ":start": to_attribute(ENDPOINT_SK),
                    },
                    ConsistentRead=True,
                    **more,
                )
            found += [record_in(item) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return found
            more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def read(self, tenant: str, endpoint_id: str) -> Mapping[str, Any] | None:
        return self._ledger.read(TENANT_PK + tenant, ENDPOINT_SK + endpoint_id)

    def circuit(self, tenant: str, endpoint_id: str) -> Mapping[str, Any]:
        return self._ledger.read(TENANT_PK + tenant, CIRCUIT_SK + endpoint_id) or {}

    def create(self, record: Mapping[str, Any]) -> bool:
        fields = {name: value for name, value in record.items() if name not in ("pk", "sk")}
        return self._ledger.create(record["pk"], record["sk"], fields)

    def save(self, tenant: str, endpoint_id: str, fields: Mapping[str, Any], when: Mapping[str, Any]) -> bool:
        return self._ledger.save(TENANT_PK + tenant, ENDPOINT_SK + endpoint_id, fields, when)

    def remove(self, tenant: str, endpoint_id: str) -> None:
        """Its circuit first: who asks again, because the second reply was lost, finds no endpoint any more."""
        for sk in (CIRCUIT_SK, ENDPOINT_SK):
            with as_unavailable(f"removing an endpoint of {tenant}"):
                self._client.delete_item(
                    TableName=self._table, Key=to_item({"pk": TENANT_PK + tenant, "sk": sk + endpoint_id})
                )
