"""DynamoDB stream event source mappings: in order, retried from the first failure, given up on only as declared."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable
from collections.abc import Mapping as Properties
from dataclasses import dataclass
from typing import Any, Protocol

from local.compute.environments import Functions
from local.compute.invocation import Invocation
from local.events.bells import Bell
from local.events.filters import Filters
from local.events.letters import Record, letter, sequence, written_at
from local.events.mapping import EVENT_LIMIT_BYTES, Mapping
from local.events.partial import failed_items
from local.stack.errors import TemplateError

_log = logging.getLogger(__name__)
_IDLE_S = 0.2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_KEPT_S = 24 * 3600  # how long a stream keeps its records
_FOR_EVER = -1


class Reader(Protocol):
    """A stream: local.aws.streams.StreamReader."""

    def read(self, after_sequence: str | int | None = None, limit: int = 1000) -> list[Record]: ...
    def latest(self) -> str: ...
    def trim(self, up_to_sequence: str | int) -> None: ...


@dataclass
class Batch:
    """Records that are invoked together, and how often they were."""

    records: list[Record]
    failures: int = 0
    invocations: int = 0


class StreamMapping(Mapping):
    """Serves one function from one table's stream: one batch at a time, the next when the last is done with."""

    kind = "dynamodb"
    asked_first = ("dynamodb:ListStreams", "dynamodb:DescribeStream", "dynamodb:GetShardIterator")

    def __init__(
        self,
        logical_id: str,
        properties: Properties[str, Any],
        functions: Functions,
        bell: Bell,
        *,
        reader: Reader,
        give_up: Callable[[str, str], None],
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        """`give_up(destination ARN, message)` delivers to the on-failure destination."""
        super().__init__(logical_id, properties, functions, bell)
        if int(properties.get("ParallelizationFactor", 1)) != 1:
            raise TemplateError("ParallelizationFactor other than 1 is not played on this machine").at(logical_id)
        self._reader = reader
        self._give_up = give_up
        self._on_progress = on_progress
        self._filters = Filters(properties.get("FilterCriteria"))
        self._batch_size = int(properties.get("BatchSize", 100))
        self._window_s = float(properties.get("MaximumBatchingWindowInSeconds", 0))
        self._retries = int(properties.get("MaximumRetryAttempts", _FOR_EVER))
        self._oldest_s = int(properties.get("MaximumRecordAgeInSeconds", _FOR_EVER))
        self._bisect = bool(properties.get("BisectBatchOnFunctionError", False))
        self._on_failure = properties.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        self._todo: list[Batch] = []
        self._read_up_to: str | None = reader.latest() if properties["StartingPosition"] == "LATEST" else None
        self._sifted_up_to = -1
        self._pause_s = 0.0
        self._guard = threading.Lock()
        self.batch_ended: Callable[[str, float], object] = lambda role, age_s: None
        """Hears how old the last record of each batch was that has come to an end, good or bad."""

    @property
    def done_up_to(self) -> str | None:
        """The sequence number up to which nothing is left to do; None at the beginning of the stream."""
        with self._guard:
            if self._todo:
                return str(int(sequence(self._todo[0].records[0])) - 1)
            return self._read_up_to

    def _is_busy(self) -> bool:
        return self.enabled and bool(self._reader.read(self.done_up_to, 1))

    def _look(self) -> float:
        if not self._todo and not self._read():
            return _IDLE_S
        slot = self._functions.acquire(self.role, 0.5)
        if slot is None:
            return 0.05
        batch = self._todo[0]
        if self._drop_what_is_too_old(batch) or self._lose(batch):
            slot.release()
            return 0.0
        outcome = self._functions.use(slot, {"Records": batch.records})
        batch.invocations += not outcome.throttled
        if outcome.throttled:  # the records have not reached the function: no failure of theirs, and never given up
            self._slow_down()
        else:
            ended_s = outcome.ended_s or self._bell.now()
            self.batch_ended(self.role, ended_s - written_at(batch.records[-1]))
            self._settle(batch, outcome)
        return self._pause_s

    # --- reading -----------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Take the next batch from the stream; False if there is nothing for the function."""
        wanted, position = self._collect([], self._read_up_to)
        close_at = self._bell.now() + self._window_s
        while wanted and len(wanted) < self._batch_size and self._bell.now() < close_at and not self._must_hurry():
            self._bell.sleep_until(close_at, self._stopping, longest_s=_IDLE_S)
            wanted, position = self._collect(wanted, position)
        with self._guard:
            self._read_up_to = position
            self._todo = [Batch(part) for part in _within_event_limit(wanted)]
        self._on_progress()
        return bool(wanted)

    def _collect(self, wanted: list[Record], position: str | None) -> tuple[list[Record], str | None]:
        """Add what passes the filters, until the batch is full or the stream is at its end."""
        while len(wanted) < self._batch_size:
            records = self._reader.read(position, self._batch_size - len(wanted))
            if not records:
                break
            self.exercise("dynamodb:GetRecords", self.source_arn)
            position = sequence(records[-1])
            kept_since = self._bell.now() - _KEPT_S
            wanted += [record for record in records if self._filters.pass_(record) and written_at(record) > kept_since]
        return wanted, position

    def _must_hurry(self) -> bool:
        return self._stopping.is_set() or not self.enabled or self._functions.paused(self.role)

    # --- after an invocation -------------------------------------------------------------------------------

    def _settle(self, batch: Batch, outcome: Invocation) -> None:
        first_failed = self._first_failed(batch, outcome)
        if first_failed is None:
            self._pause_s = 0.0
            self._replace_first([])
            return
        self._slow_down()
        if first_failed > 0:  # what came before is done; the rest begins anew
            failures = batch.failures + (0 if self._bisect else 1)  # splitting there is no retry either
            self._replace_first([Batch(batch.records[first_failed:], failures, batch.invocations)])
        elif self._bisect and len(batch.records) > 1:  # halving is no retry
            middle = len(batch.records) // 2
            halves = batch.records[:middle], batch.records[middle:]
            self._replace_first([Batch(half, batch.failures, batch.invocations) for half in halves])
            return
        else:
            batch.failures += 1
        batch = self._todo[0]
        if self._retries != _FOR_EVER and batch.failures > self._retries:
            self._abandon(batch, batch.records, "RetryAttemptsExhausted")

    def _slow_down(self) -> None:
        self._pause_s = min(max(_FIRST_PAUSE_S, self._pause_s * 2), _LONGEST_PAUSE_S)

    def _first_failed(self, batch: Batch, outcome: Invocation) -> int | None:
        """The place of the first record to be repeated; None if all went well."""
        if not outcome.ok:
            return 0
        if not self.partial:
            return None
        sequences = [sequence(record) for record in batch.records]
        failed = failed_items(outcome.result, sequences)
        if failed is None:
            _log.warning("%s: malformed partial batch response: %.200r", self.logical_id, outcome.result)
            return 0
        return min((sequences.index(sequence) for sequence in failed), default=None)

    def _drop_what_is_too_old(self, batch: Batch) -> bool:
        """Records beyond the age cap go to the destination without another try."""
        if self._oldest_s == _FOR_EVER:
            return False
        limit = self._bell.now() - self._oldest_s
        old = [record for record in batch.records if written_at(record) < limit]
        if old:
            self._abandon(batch, old, "RecordAgeExceeded")
        return bool(old)

    def _lose(self, batch: Batch) -> bool:
        """A fault takes records away: as if the function had been done with them. Each record is asked about once,
        however often it is tried."""
        last = int(sequence(batch.records[-1]))
        if last <= self._sifted_up_to:
            return False
        self._sifted_up_to = last
        kept = self._functions.boundaries.kept(self.role, batch.records)
        if len(kept) == len(batch.records):
            return False
        self._replace_first([Batch(kept, batch.failures, batch.invocations)] if kept else [])
        return True

    def _abandon(self, batch: Batch, records: list[Record], condition: str) -> None:
        _log.warning("%s: gives up %d records: %s", self.logical_id, len(records), condition)
        if self._on_failure:
            self._give_up(self._on_failure, self._letter(batch, records, condition))
        rest = [record for record in batch.records if record not in records]
        self._replace_first([Batch(rest, batch.failures, batch.invocations)] if rest else [])

    def _letter(self, batch: Batch, records: list[Record], condition: str) -> str:
        arn = self._functions.definition(self.role).arn
        return letter(
            records,
            condition,
            function_arn=arn,
            stream_arn=self.source_arn,
            count=batch.invocations,
            now_s=self._bell.now(),
        )

    def _replace_first(self, batches: list[Batch]) -> None:
        with self._guard:
            self._todo[:1] = batches
        self._on_progress()


def trim_what_all_have_done(reader: Reader, mappings: Iterable[StreamMapping]) -> None:
    """Forget the records that no mapping of this table will read again."""
    positions = [mapping.done_up_to for mapping in mappings]
    if positions and all(position is not None for position in positions):
        reader.trim(str(min(int(position) for position in positions if position is not None)))


def _within_event_limit(records: list[Record]) -> list[list[Record]]:
    parts: list[list[Record]] = []
    used = 0
    for record in records:
        size = len(json.dumps(record))
        if not parts or used + size > EVENT_LIMIT_BYTES:
            parts.append([])
            used = 0
        parts[-1].append(record)
        used += size
    return parts
