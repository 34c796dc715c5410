"""What lies in queues and indexes when nothing moves any more: what must be there, and what must not."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.core import ids
from tests.simulation.stage import Stage

Body = dict[str, Any]
QUEUES = ("WorkQueueUrl", "UrgentQueueUrl", "InboxQueueUrl", "DeliveriesQueueUrl")


@dataclass
class Mail:
    """What a subscriber and an operator found in their queues; gathered before it is too old to lie there."""

    events: list[Body] = field(default_factory=list)
    letters: list[Body] = field(default_factory=list)
    others: dict[str, list[Body]] = field(default_factory=dict)

    def gather(self, stage: Stage) -> None:
        self.events += stage.take_all(stage.inbox)
        for name, url in stage.dead_letter_queues.items():
            kept = self.letters if name == "work" else self.others.setdefault(name, [])
            kept += stage.take_all(url)


@dataclass(frozen=True)
class Left:
    """What lies around on the whole stage, by where; each must be empty."""

    things: dict[str, list[str]]


def left_on(stage: Stage, mine: Collection[str], letters: Mapping[str, list[Body]], strangers: list[str]) -> Left:
    """What a stage has of these jobs, and of anybody's, that should be gone. `letters`: those of all other queues."""
    due = [job_id for shard in ids.due_shards() for _, job_id in stage.jobs.due(shard, _far(stage), None, 1_000)]
    deliveries = DynamoDeliveries(stage.dynamodb, stage.target.outputs["JobsTableName"])
    open_ = [key for shard in ids.delivery_shards() for _, key in deliveries.due(shard, _far(stage), None, 1_000)]
    depths = {name: stage.depth("all", name) for name in QUEUES}
    return Left(
        {
            "the due index": [job_id for job_id in due if job_id in mine],
            "deliveries that are due": [sk for job_id, sk in open_ if job_id in mine],
            "in flight": [f"{name}: {depth}" for name, depth in depths.items() if depth],
            "told of strangers": strangers,
            "frozen": [one.definition.role for one in stage.frozen()],
            "leases": _leases(stage),
            **{
                f"dead letters of {name}": [message["Body"][:300] for message in found]
                for name, found in letters.items()
            },
        }
    )


def _leases(stage: Stage) -> list[str]:
    """Of sweeps: a lease that somebody holds, or that waits to be gone on with."""
    table = stage.target.outputs["JobsTableName"]
    found = []
    for part in ("stuck", "deliveries", "letters", "uploads"):
        key = {"pk": {"S": f"lease#sweep/{part}"}, "sk": {"S": "lease"}}
        item = stage.dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {})
        if "lease_until" in item or item.get("state", {}).get("M"):
            found.append(f"{part}: {item}")
    return found


def _far(stage: Stage) -> Any:
    now = stage.runtime.clock.now()
    return now.replace(year=now.year + 1)


def by_job(messages: Iterable[dict[str, Any]]) -> dict[str, list[Body]]:
    """Envelopes, by the job that they are about."""
    found: dict[str, list[Body]] = {}
    for message in messages:
        body = json.loads(message["Body"])
        found.setdefault(str(body.get("run_id")), []).append(body)
    return found
