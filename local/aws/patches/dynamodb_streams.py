"""Stream records as AWS writes them: none for a write that changes nothing, one for an upsert, trimmable.

Stock moto writes a record for every write (MOTO-12), two INSERTs for an upsert, counts sequence numbers by the
length of a list that only grows, and hands `StreamRecord`s that share memory with nothing it could let go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto.dynamodb.models.dynamo_type import Item
from moto.dynamodb.models.table import StreamRecord, StreamShard

from local.aws.patches.patch import Patch

KEPT = 100_000
"""Records kept when nobody trims. AWS keeps them for 24 hours; a clock that skips would drop unread ones."""


def _add(shard: StreamShard, old: Item | None, new: Item | None) -> None:
    collected = shard.__dict__.get("_collected")
    if collected is not None:
        collected.append((old, new))
        return
    if old is not None and new is not None and old.attrs == new.attrs:
        return
    name = "INSERT" if old is None else "REMOVE" if new is None else "MODIFY"
    sequence = next_sequence(shard)
    view = (shard.table.stream_specification or {})["StreamViewType"]
    shard.items.append(StreamRecord(shard.table, view, name, old, new, sequence))
    shard.__dict__["_next"] = sequence + 1
    if len(shard.items) > KEPT:
        del shard.items[: len(shard.items) - KEPT]


def next_sequence(shard: StreamShard) -> int:
    """The sequence number that the next record will get."""
    return int(shard.__dict__.get("_next", shard.starting_sequence_number))


def first_position(shard: StreamShard) -> int:
    """The sequence number of the oldest record that is still there, or of the next one to come."""
    return next_sequence(shard) - len(shard.items)


def trim(shard: StreamShard, up_to: int) -> None:
    """Forget the records up to and including sequence number `up_to`."""
    del shard.items[: max(0, up_to + 1 - first_position(shard))]


def records(shard: StreamShard, start: int, limit: int) -> list[dict[str, Any]]:
    """At most `limit` records from sequence number `start` on; trimmed ones are skipped."""
    begin = max(0, start - first_position(shard))
    return [item.to_json() for item in shard.items[begin : begin + limit]]


def _get(shard: StreamShard, start: int, quantity: int) -> list[dict[str, Any]]:
    return records(shard, int(start), quantity)


@contextmanager
def one_record(shard: StreamShard | None, silent: bool = False) -> Iterator[None]:
    """Whatever is written inside becomes one record, from the first old image to the last new one.

    None if the block raises, or is `silent`: what undoes a failed write never happened."""
    if shard is None:
        yield
        return
    collected: list[tuple[Item | None, Item | None]] = []
    shard.__dict__["_collected"] = collected
    try:
        yield
    finally:
        del shard.__dict__["_collected"]
    if collected and not silent:
        shard.add(collected[0][0], collected[-1][1])


PATCHES = (
    Patch(StreamShard, "add", _add),
    Patch(StreamShard, "get", _get),
)
