"""The job record: what it holds, how it is read from and written as plain values, and its capped history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from lambdas.contracts.names import FINAL, JOB_SK, OPEN, PROCESSING
from lambdas.core import times
from lambdas.core.times import Instant

HISTORY_HEAD = 3
HISTORY_TAIL = 7
NOTE_BYTES = 200


class UnreadableRecord(Exception):
    """An item of the Jobs table that is no job record, or lacks what every job record has."""


@dataclass(frozen=True)
class Job:
    """A job as its record says. Times are UTC instants, money is micro-dollars, `input` is canonical JSON text
    or None when it was too large and lies in S3 under the tenant, the job and `body_sha`, or is an `upload`: the object
    {key, version, etag, bytes} of the uploads bucket. `source`: what the event came from, empty for `POST /jobs`.
    `stream`: its text is shown while it comes. `callback_url`: where its end is delivered to, empty for nowhere.

    Of a workflow: `parts`, what became of each branch in the run `parts_run` (core/workflows/parts.py), None while none
    was ever started; `runs`, executions of this opening that ended badly; `partial`, completed without all parts;
    `booked_by`, whose cost was booked last, by branch: in whichever run that was."""

    id: str
    tenant: str
    type: str
    status: str
    attempt: int
    tries: int
    created_at: Instant
    not_before: Instant
    deadline_at: Instant
    body_sha: str
    crashes: int = 0
    run: int = 0
    sample: int = 0
    unusable: int = 0
    waits: int = 0
    backoff_ms: int = 0
    cost: int = 0
    late_cost: int = 0
    fresh: bool = False
    urgent: bool = False
    source: str = ""
    stream: bool = False
    callback_url: str = ""
    upload: Mapping[str, Any] | None = None
    input: str | None = None
    trace_id: str = ""
    claim_id: str | None = None
    claimed_at: Instant | None = None
    lease_until: Instant | None = None
    finished_at: Instant | None = None
    handed_over_at: Instant | None = None
    due_at: Instant | None = None
    expires_at: int | None = None
    result_key: str | None = None
    result_bytes: int | None = None
    error: Mapping[str, str] | None = None
    parts: Mapping[str, Mapping[str, Any]] | None = None
    parts_run: int | None = None
    runs: int = 0
    partial: bool = False
    progress_at: Instant | None = None
    booked_by: Mapping[str, str] | None = None
    history: tuple[Mapping[str, Any], ...] = ()
    history_left_out: int = 0

    @property
    def total_cost(self) -> int:
        """What is told of its cost, everywhere. A later opening books the late part under `cost` and forgets it."""
        return self.cost + self.late_cost

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def is_handed_over(self) -> bool:
        """Everybody who must hear of the final state has been told: nobody need look at it again."""
        return self.is_final and self.due_at is None


# every attribute that a job's item may have
RECORD_FIELDS = frozenset(one.name for one in fields(Job)) - {"id"} | {
    "pk", "sk", "tenant_shard", "due_shard", "upload_shard", "upload_key",
}  # fmt: skip

_INSTANTS = (
    "created_at", "not_before", "deadline_at", "claimed_at", "lease_until", "finished_at", "handed_over_at", "due_at",
    "progress_at",
)  # fmt: skip
_KINDS: Mapping[type, tuple[str, ...]] = {
    str: ("tenant", "type", "status", "body_sha", "input", "trace_id", "claim_id", "result_key", "source",
        "callback_url",
    ),
    int: (
        "attempt", "tries", "crashes", "run", "sample", "unusable", "waits", "backoff_ms", "cost", "late_cost",
        "expires_at", "result_bytes", "history_left_out",
        "parts_run", "runs",
    ),
    bool: ("fresh", "urgent", "stream", "partial"),
    dict: ("error", "upload", "parts", "booked_by"),
}  # fmt: skip


def from_record(record: Mapping[str, Any]) -> Job:
    """Read a record. UnreadableRecord when it is none: nobody may guess what a broken record meant."""
    try:
        if record["sk"] != JOB_SK or record["status"] not in (*OPEN, *FINAL):
            raise UnreadableRecord(f"not a job record: sk = {record['sk']!r}, status = {record['status']!r}")
        values = {
            name: _plain(record, name, kind) for kind, fields in _KINDS.items() for name in fields if name in record
        }
        if record["status"] == PROCESSING and "lease_until" not in record:
            raise UnreadableRecord(f"{record['pk']}: held by nobody: PROCESSING without lease_until")
        if "error" in values:
            _ = [_plain(values["error"], name, str) for name in ("code", "message")]
        for part in values.get("parts", {}).values():
            _part(part)
        if "upload" in values:
            _ = [_plain(values["upload"], name, str) for name in ("key", "version", "etag")]
        instants: dict[str, Any] = {name: times.instant(record[name]) for name in _INSTANTS if name in record}
        return Job(id=record["pk"], history=tuple(record.get("history", ())), **values, **instants)
    except (KeyError, TypeError, ValueError, AttributeError) as broken:
        raise UnreadableRecord(f"{record.get('pk', '?')}: {type(broken).__name__}: {broken}") from broken


def _part(entry: Mapping[str, Any]) -> None:
    """Whoever shows a workflow's branches must be able to read them."""
    _plain(entry, "state", str)
    if "at" in entry:
        times.instant(entry["at"])


def _plain(record: Mapping[str, Any], name: str, kind: type) -> Any:
    value = record[name]
    if type(value) is not kind:
        raise TypeError(f"{name} is {value!r}, not {kind.__name__}")
    return value


def entry(at: Instant, what: str, attempt: int, note: str = "") -> dict[str, Any]:
    """One line of a job's history. A note is cut to 200 bytes: a record must never grow out of its limit."""
    line: dict[str, Any] = {"at": times.text(at), "what": what, "attempt": attempt}
    if note:
        line["note"] = cut(note, NOTE_BYTES)
    return line


class Remembering(Protocol):
    """What has a capped history: a job, and each delivery of its end."""

    @property
    def history(self) -> tuple[Mapping[str, Any], ...]: ...

    @property
    def history_left_out(self) -> int: ...


def history_with(job: Remembering, *lines: Mapping[str, Any]) -> dict[str, Any]:
    """The fields to set so that the history has these lines too: the first few, the last few, the rest counted."""
    whole = [*job.history, *lines]
    excess = len(whole) - HISTORY_HEAD - HISTORY_TAIL
    if excess <= 0:
        return {"history": whole}
    kept = [*whole[:HISTORY_HEAD], *whole[-HISTORY_TAIL:]]
    return {"history": kept, "history_left_out": job.history_left_out + excess}


def cut(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, whole characters, and no half surrogate."""
    clean = text.encode("utf-8", "replace")
    return text if len(clean) <= limit and clean.decode() == text else clean[:limit].decode("utf-8", "ignore")
