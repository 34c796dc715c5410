"""A stack whose tasks are those of this folder beside the shipped ones, and time that passes as fast as it may.
Nothing sweeps by itself: what a test looks at, a schedule's own sweep might have taken up, or have in hand."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lambdas.adapters.attributes import from_item
from lambdas.contracts.names import OPEN, PENDING, PROCESSING
from tests.e2e.target import PATIENCE_S, ROOT, LocalStack, Target

HAND_OVER_AGE = timedelta(seconds=120)
TASKS = Path(__file__).with_name("tasks")
Record = Mapping[str, Any]
Saw = Callable[[Record], None]


def code_with_own_tasks(folder: Path) -> Path:
    """A copy of what ships, with the tasks of this folder put in."""
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "lambdas", folder / "lambdas", ignore=without)
    for task in sorted(place for place in TASKS.iterdir() if (place / "task.py").exists()):
        shutil.copytree(task, folder / "lambdas" / "tasks" / task.name, ignore=without)
    return folder


@contextmanager
def running(folder: Path, *settings: str) -> Iterator[LiveStack]:
    """The stack with such code and settings, until the end of the block."""
    code = code_with_own_tasks(folder)
    local = LocalStack("--code", str(code), *(["--settings", *settings] if settings else []))
    try:
        target = local.ready()
        target.control("POST", "schedules/disable", {"function": "sweep"})
        yield LiveStack(target.api, target.outputs, target.aws, target.model, code=code)
    finally:
        local.end()


@dataclass(frozen=True)
class LiveStack(Target):
    """A running stack, its code, and a hand on its clock."""

    code: Path = field(default_factory=Path)

    def found(self, job_id: str) -> Record:
        """The record as plain values."""
        return from_item(self.record(job_id))

    def sweep(self) -> dict[str, Any]:
        """One sweep of what is stuck, now; what it says that it did."""
        outcome = self.control("POST", "schedules/run", {"function": "sweep", "schedule": "stuck"})
        assert outcome["ok"], outcome
        result: dict[str, Any] = outcome["result"]
        assert result["parts"]["stuck"]["state"] == "DONE", result
        return {"complete": result["complete"], **result["parts"]["stuck"]}

    def busy(self, *functions: str) -> bool:
        running = self.control("GET", "invocations")["running"]
        return any(running[function] for function in functions or running)

    def empty(self, queue: str) -> list[dict[str, Any]]:
        """Take all that is visible off a queue."""
        url, found = self.outputs[queue], list[dict[str, Any]]()
        while messages := self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []):
            found += messages
            for message in messages:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    def arn(self, queue: str) -> str:
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.outputs[queue], AttributeNames=["QueueArn"])
        return str(attributes["Attributes"]["QueueArn"])

    def depth(self, queue: str = "WorkQueueUrl") -> dict[str, int]:
        """Messages that are visible, in flight and delayed."""
        names = {"visible": "", "in_flight": "NotVisible", "delayed": "Delayed"}
        found = self.sqs.get_queue_attributes(QueueUrl=self.outputs[queue], AttributeNames=["All"])["Attributes"]
        return {name: int(found[f"ApproximateNumberOfMessages{part}"]) for name, part in names.items()}

    def calm(self) -> None:
        """No more faults, scripts, pauses, and messages that came to nothing: those of a killed worker stay hidden."""
        self.script()
        self.purge("WorkQueueUrl")
        self.control("DELETE", "faults")
        for function in ("accept", "query", "control", "dispatch", "worker", "ingest"):
            self.control("POST", "resume", {"function": function})
        self.control("POST", "concurrency", {"function": "worker", "maximum": 5})

    def purge(self, *queues: str) -> None:
        """Also what is hidden just now, or delayed."""
        if full := [queue for queue in queues if any(self.depth(queue).values())]:
            self.leap(61)  # as SQS wants it between two purges
            for queue in full:
                self.sqs.purge_queue(QueueUrl=self.outputs[queue])

    def reload(self) -> None:
        self.control("POST", "reload", {})

    # --- time --------------------------------------------------------------------------------------------------

    def settle(self, *job_ids: str, saw: Saw = lambda record: None, hangs: bool = False) -> list[Record]:
        """Skip from one moment that matters to the next until all are final and handed over. `saw` gets each state of
        a record that was met between two skips; `hangs`: an invocation that does nothing is helped over its deadline.
        """
        return self.pass_time(job_ids, lambda record: "handed_over_at" in record, saw, hangs)

    def pass_time(
        self,
        job_ids: Sequence[str],
        wanted: Callable[[Record], bool],
        saw: Saw = lambda record: None,
        hangs: bool = False,
    ) -> list[Record]:
        """The same, until all records are as wanted."""
        ends = time.monotonic() + 2 * PATIENCE_S
        seen: dict[str, Record] = {}
        changed_at = time.monotonic()
        while True:
            records = [self.found(job_id) for job_id in job_ids]
            for record in records:
                if seen.get(record["pk"]) != record:
                    seen[record["pk"]], changed_at = record, time.monotonic()
                    saw(record)
            left = [record for record in records if not wanted(record)]
            if not left:
                return records
            assert time.monotonic() < ends, [dict(record) for record in left]
            quiet_s = time.monotonic() - changed_at
            hung = hangs and quiet_s > 1.0 and any(record["status"] == PROCESSING for record in left)
            if hung or _all_wait(left, self.now) or (quiet_s > 0.5 and self._stands_still()):
                self._skip(left, self.advance if hung else self.leap)
                changed_at = time.monotonic()
            else:
                time.sleep(0.05)

    def _stands_still(self) -> bool:
        """Nobody works, nothing lies there to be worked on, and nobody has worked from the first look to the last."""
        at_first = self._working()
        return not any(at_first["running"].values()) and not self._waits() and self._working() == at_first

    def _working(self) -> dict[str, Any]:
        """Who is at work, and who was the last to end it."""
        found = self.control("GET", "invocations")
        running = {function: found["running"][function] for function in ("worker", "dispatch")}
        return {"running": running, "ended": [one["request_id"] for one in found["invocations"][-1:]]}

    def _waits(self) -> bool:
        mappings = self.control("GET", "mappings")["mappings"]
        busy = any(one["busy"] for one in mappings if one["function"] in ("worker", "dispatch"))
        return busy or any(self.depth(queue)["visible"] for queue in ("WorkQueueUrl", "UrgentQueueUrl"))

    def _skip(self, records: Sequence[Record], go_to: Callable[[float], None]) -> None:
        """To the first moment at which something is to happen, with a sweep if it takes one."""
        now = self.now
        moment, by_message = min(_next_moment(record, now) for record in records)
        go_to(max(0.0, (moment - now).total_seconds()) + 2)
        if not by_message:
            self.sweep()


def _all_wait(records: Sequence[Record], now: datetime) -> bool:
    return all(
        record["status"] == PENDING and (_at(record, "not_before") - now).total_seconds() > 1 for record in records
    )


def _next_moment(record: Record, now: datetime) -> tuple[datetime, bool]:
    """When this record is to move, and whether a message sees to it (else a sweep must)."""
    if record["status"] == PENDING and _at(record, "not_before") > now:
        return _at(record, "not_before"), (_at(record, "not_before") - now).total_seconds() < 900
    if record["status"] == PROCESSING and _at(record, "lease_until") > now:
        return _at(record, "lease_until"), False
    return (_at(record, "due_at") if record["status"] in OPEN else _at(record, "finished_at") + HAND_OVER_AGE), False


def _at(record: Record, name: str) -> datetime:
    return datetime.fromisoformat(record[name])
