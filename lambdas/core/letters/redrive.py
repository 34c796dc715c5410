"""A redrive: what an operator has asked to be brought back, how far it has come, and what it may still do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from lambdas.contracts.names import REDRIVE_SK
from lambdas.core import times
from lambdas.core.letters import letter as letters
from lambdas.core.letters.letter import Letter
from lambdas.core.policy import DAY_S
from lambdas.core.ports import Ledger, Unavailable
from lambdas.core.times import Instant

RUNNING, DONE, STOPPED, FAILED = "RUNNING", "DONE", "STOPPED", "FAILED"
MOVING, CANARY_SENDING, CANARY_WAITING, PASSED = "MOVING", "CANARY_SENDING", "CANARY_WAITING", "PASSED"

RATE_DEFAULT = 10.0
FIRST_IDS = 10
ROUNDS_MAX = 500  # a function that calls itself must have an end
SILENT_S = 900  # one that goes on writes within a minute or two, and Lambda repeats one that died within three


@dataclass(frozen=True)
class Order:
    """What is asked for: a group, or letters by their ids. `rate`: letters a second. `canary`: so many first."""

    redrive_id: str
    by: str
    group: str | None = None
    ids: Sequence[str] = ()
    queue: str | None = None
    rate: float = RATE_DEFAULT
    canary: int = 0
    dry_run: bool = False


@dataclass(frozen=True)
class Canary:
    """One of the first letters; with `job_id`, the job that must complete after `attempt`. `kind`, `subject`: the
    letter's."""

    letter_id: str
    queue: str
    kind: str
    job_id: str
    attempt: int
    subject: str = ""


class Superseded(Exception):
    """Another invocation goes on with this run."""


@dataclass(frozen=True)
class Run:
    """How far it has come. Counts are of letters, copies counted once; a crash may lose the last few from them."""

    id: str
    by: str
    at: Instant
    queues: tuple[str, ...]
    group: str | None = None
    ids: tuple[str, ...] = ()
    rate: float = RATE_DEFAULT
    canary: int = 0
    dry_run: bool = False
    state: str = RUNNING
    phase: str = MOVING
    round: int = 0
    holder: str = ""
    moved: int = 0
    stale: int = 0
    skipped: int = 0
    failed: int = 0
    first: tuple[str, ...] = ()
    why: str = ""
    canaries: tuple[Canary, ...] = ()
    canary_at: Instant | None = None
    next_at: Instant | None = None
    updated_at: Instant | None = None
    left: tuple[str, ...] = field(default=())

    def selects(self, letter: Letter) -> bool:
        """Of this cause or name, and from before this redrive began: what fails again is not brought back by the same
        redrive, or it would never end."""
        named = letter.id in self.ids if self.ids else letter.group == self.group
        return named and letter.found.sent_at <= self.at

    @property
    def waits_for_canary(self) -> bool:
        return self.phase in (CANARY_SENDING, CANARY_WAITING)


def ask(
    order: Order, *, now: Instant, ledger: Ledger, start: Callable[[Mapping[str, Any]], None], keep_days: int
) -> Run:
    """Recorded first, started then. Raises Unavailable; then it is not going on, and says so."""
    queues = (order.queue,) if order.queue else letters.QUEUES
    run = Run(
        id=order.redrive_id,
        by=order.by,
        at=now,
        queues=queues,
        left=queues,
        group=order.group,
        ids=tuple(order.ids),
        rate=order.rate,
        canary=order.canary,
        dry_run=order.dry_run,
    )
    expires = {"expires_at": int(now.timestamp()) + keep_days * DAY_S}
    ledger.create(_pk(run.id), REDRIVE_SK, {**_written(run, now), **expires})
    try:
        start({"redrive_id": run.id, "round": 1})
    except Unavailable:
        with suppress(Superseded):  # it was started all the same
            save(replace(run, state=FAILED, why="it could not be started"), now, ledger)
        raise
    return run


def begin(redrive_id: str, round_: int, holder: str, *, now: Instant, ledger: Ledger) -> Run | None:
    """The run, for this invocation alone; None when it has ended, or another invocation has this round. Lambda repeats
    a failed invocation under the same request id, which goes on where it was. Raises Unavailable."""
    run = find(redrive_id, ledger)
    if run is None or run.state != RUNNING:
        return None
    if (run.round, run.holder) == (round_, holder):
        return run
    mine = replace(run, round=round_, holder=holder)
    before = {"round": round_ - 1, "state": RUNNING}
    return mine if ledger.save(_pk(redrive_id), REDRIVE_SK, _written(mine, now), before) else None


def save(run: Run, now: Instant, ledger: Ledger) -> None:
    """Raises Superseded, Unavailable."""
    if not ledger.save(_pk(run.id), REDRIVE_SK, _written(run, now), {"round": run.round, "holder": run.holder}):
        raise Superseded(run.id)


def find(redrive_id: str, ledger: Ledger) -> Run | None:
    """Raises Unavailable."""
    item = ledger.read(_pk(redrive_id), REDRIVE_SK)
    if item is None:
        return None
    known = {one.name for one in fields(Run)}
    values: dict[str, Any] = {name: value for name, value in item.items() if name in known}
    values |= {name: tuple(values[name]) for name in ("queues", "ids", "first", "left")}
    values |= {name: times.instant(values[name]) for name in _INSTANTS if name in values}
    canaries = tuple(Canary(**canary) for canary in values["canaries"])
    return Run(**{**values, "rate": float(values["rate"]), "canaries": canaries})


def shown(run: Run, now: Instant) -> dict[str, Any]:
    """For the operator. `stalled`: it is RUNNING, and nobody seems to be at it any more."""
    last = run.updated_at or run.at
    told: dict[str, Any] = {
        "redrive_id": run.id,
        "state": run.state,
        "phase": run.phase,
        "by": run.by,
        "at": times.text(run.at),
        "updated_at": times.text(last),
        "queues": list(run.queues),
        "rate": run.rate,
        "canary": run.canary,
        "dry_run": run.dry_run,
        "would_move" if run.dry_run else "moved": run.moved,
        "stale": run.stale,
        "skipped": run.skipped,
        "failed": run.failed,
        "first": list(run.first),
        "links": links(run.id),
    }
    if run.group:
        told["group"] = run.group
    if run.ids:
        told["ids"] = list(run.ids)
    if run.canaries:
        told["canaries"] = [{"letter_id": one.letter_id, "job_id": one.job_id or None} for one in run.canaries]
    if run.why:
        told["why"] = run.why
    if run.state == RUNNING and times.seconds_between(last, now) > SILENT_S:
        told |= {"stalled": True, "why": "nobody goes on with it: see RedriveDeadLetters, and ask for it again"}
    return told


def links(redrive_id: str) -> dict[str, str]:
    return {"self": f"/admin/redrives/{redrive_id}"}


_INSTANTS = ("at", "canary_at", "next_at", "updated_at")


def _pk(redrive_id: str) -> str:
    return f"redrive#{redrive_id}"


def _written(run: Run, now: Instant) -> dict[str, Any]:
    """As plain values: no floats, no nothing."""
    values = {**asdict(run), "updated_at": now, "rate": str(run.rate)}
    values |= {name: times.text(values[name]) for name in _INSTANTS if values[name] is not None}
    lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
    return {name: value for name, value in {**values, **lists}.items() if value is not None}
