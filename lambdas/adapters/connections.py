"""Tickets, connections and what they watch, in a table of their own: nothing in it must survive.

A watch stands in it twice: under its job, with the cursor, for whoever has something to send; and under its connection,
for whoever closes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from lambdas.adapters.attributes import from_item, to_attribute, to_item
from lambdas.adapters.clients import as_unavailable, code_of
from lambdas.contracts import names
from lambdas.core.watching.ports import Connection, Grant, Watch

EXPIRES = names.CONNECTIONS_TTL_ATTRIBUTE


class DynamoTickets:
    """The Tickets port."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def put(self, digest: str, grant: Grant, expires_at: int) -> None:
        with as_unavailable("storing a ticket"):
            self._client.put_item(
                TableName=self._table, Item=to_item({**_ticket(digest), **_granted(grant), EXPIRES: expires_at})
            )

    def take(self, digest: str, now: int) -> Grant | None:
        with as_unavailable("taking a ticket"):
            try:
                answer = self._client.delete_item(
                    TableName=self._table,
                    Key=to_item(_ticket(digest)),
                    # the table forgets late: what is expired may still be there
                    ConditionExpression="#expires > :now",
                    ExpressionAttributeNames={"#expires": EXPIRES},
                    ExpressionAttributeValues={":now": to_attribute(now)},
                    ReturnValues="ALL_OLD",
                )
            except ClientError as error:
                if code_of(error) != "ConditionalCheckFailedException":
                    raise
                return None
        return _grant(from_item(answer["Attributes"]))


class DynamoConnections:
    """The Connections port."""

    def __init__(self, client: Any, table: str) -> None:
        self._client, self._table = client, table

    def open(self, connection: Connection) -> None:
        item = {**_connection(connection.id), **_granted(connection.grant), EXPIRES: connection.expires_at}
        with as_unavailable("recording a connection"):
            self._client.put_item(TableName=self._table, Item=to_item(item))

    def find(self, connection_id: str) -> Connection | None:
        found = self._read(_connection(connection_id))
        return Connection(connection_id, _grant(found), found[EXPIRES]) if found else None

    def close(self, connection_id: str) -> None:
        with as_unavailable("closing a connection"):
            self._delete(_connection(connection_id))
            for job_id in self.jobs_of(connection_id):
                self._delete(_under_job(job_id, connection_id))
                self._delete(_under_connection(job_id, connection_id))  # last: it is how the other one is found

    def watch(self, watch: Watch, expires_at: int) -> None:
        mark = {"mark": watch.mark, EXPIRES: expires_at}
        cursor = {"tenant": watch.tenant, "attempt": watch.attempt, "next": watch.next}
        at = watch.job_id, watch.connection_id
        with as_unavailable("recording a watch"):
            # first, so that whoever closes the connection finds both
            self._client.put_item(TableName=self._table, Item=to_item({**_under_connection(*at), **mark}))
            self._client.put_item(TableName=self._table, Item=to_item({**_under_job(*at), **mark, **cursor}))

    def unwatch(self, watch: Watch) -> None:
        at = watch.job_id, watch.connection_id
        with as_unavailable("ending a watch"):
            for key in (_under_job(*at), _under_connection(*at)):
                self._delete(key, mark=watch.mark)

    def advance(self, watch: Watch, attempt: int, next_chunk: int) -> bool:
        with as_unavailable("saving a cursor"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=to_item(_under_job(watch.job_id, watch.connection_id)),
                    UpdateExpression="SET #attempt = :attempt, #next = :next",
                    ConditionExpression=(
                        "#mark = :mark AND (#attempt < :attempt OR (#attempt = :attempt AND #next < :next))"
                    ),
                    ExpressionAttributeNames={"#mark": "mark", "#attempt": "attempt", "#next": "next"},
                    ExpressionAttributeValues=to_item({":mark": watch.mark, ":attempt": attempt, ":next": next_chunk}),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
            except ClientError as error:
                if code_of(error) != "ConditionalCheckFailedException":
                    raise
                standing = from_item(error.response.get("Item", {}))  # type: ignore[arg-type]
                return bool(standing.get("mark") == watch.mark)  # somebody else was as far already
        return True

    def tell(self, watch: Watch, told: str) -> None:
        with as_unavailable("saving what was told"):
            try:
                self._client.update_item(
                    TableName=self._table,
                    Key=to_item(_under_job(watch.job_id, watch.connection_id)),
                    UpdateExpression="SET #told = :told",
                    ConditionExpression="#mark = :mark AND (attribute_not_exists(#told) OR #told < :told)",
                    ExpressionAttributeNames={"#mark": "mark", "#told": "told"},
                    ExpressionAttributeValues=to_item({":mark": watch.mark, ":told": told}),
                )
            except ClientError as error:  # another watch, or somebody else was as far already
                if code_of(error) != "ConditionalCheckFailedException":
                    raise

    def watch_of(self, connection_id: str, job_id: str) -> Watch | None:
        found = self._read(_under_job(job_id, connection_id))
        return _watch(found) if found else None

    def jobs_of(self, connection_id: str) -> list[str]:
        pk = _connection(connection_id)["pk"]
        found = self._query(pk, names.WATCHED_PK)
        return [row["sk"].removeprefix(names.WATCHED_PK) for row in found]

    def watchers_of(self, job_id: str) -> list[Watch]:
        return [_watch(row) for row in self._query(names.WATCHED_PK + job_id, names.CONNECTION_PK)]

    def _read(self, key: Mapping[str, str]) -> dict[str, Any] | None:
        with as_unavailable("reading a connection"):
            answer = self._client.get_item(TableName=self._table, Key=to_item(key), ConsistentRead=True)
        return from_item(answer["Item"]) if "Item" in answer else None

    def _query(self, pk: str, prefix: str) -> Iterator[dict[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            with as_unavailable("reading connections"):
                answer = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
                    ExpressionAttributeValues=to_item({":pk": pk, ":prefix": prefix}),
                    ConsistentRead=True,
                    **start,
                )
            yield from map(from_item, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    def _delete(self, key: Mapping[str, str], *, mark: str | None = None) -> None:
        """Whatever is there, or only what bears this mark."""
        only: dict[str, Any] = {}
        if mark is not None:
            only = {
                "ConditionExpression": "#mark = :mark",
                "ExpressionAttributeNames": {"#mark": "mark"},
                "ExpressionAttributeValues": to_item({":mark": mark}),
            }
        try:
            self._client.delete_item(TableName=self._table, Key=to_item(key), **only)
        except ClientError as error:
            if code_of(error) != "ConditionalCheckFailedException":
                raise


def _ticket(digest: str) -> dict[str, str]:
    return {"pk": names.TICKET_PK + digest, "sk": names.TICKET_SK}


def _connection(connection_id: str) -> dict[str, str]:
    return {"pk": names.CONNECTION_PK + connection_id, "sk": names.CONNECTION_SK}


def _under_connection(job_id: str, connection_id: str) -> dict[str, str]:
    return {"pk": names.CONNECTION_PK + connection_id, "sk": names.WATCHED_PK + job_id}


def _under_job(job_id: str, connection_id: str) -> dict[str, str]:
    return {"pk": names.WATCHED_PK + job_id, "sk": names.CONNECTION_PK + connection_id}


def _granted(grant: Grant) -> dict[str, Any]:
    return {"tenant": grant.tenant, "job_ids": list(grant.job_ids)}


def _grant(row: Mapping[str, Any]) -> Grant:
    return Grant(row["tenant"], tuple(row["job_ids"]))


def _watch(row: Mapping[str, Any]) -> Watch:
    return Watch(
        connection_id=row["sk"].removeprefix(names.CONNECTION_PK),
        job_id=row["pk"].removeprefix(names.WATCHED_PK),
        tenant=row["tenant"],
        mark=row["mark"],
        attempt=row["attempt"],
        next=row["next"],
        told=row.get("told", ""),
    )
