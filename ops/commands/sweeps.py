"""The command that starts a sweep and shows its certificate."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.status import Status

from ops import watching
from ops.api import Json
from ops.exits import Exit
from ops.invocation import Invocation
from ops.output import clean

PART_COLUMNS = ("PART", "STATE", "REPAIRED", "TROUBLES", "COUNTS", "WHY")
TOLD_APART = ("repaired", "would_repair", "troubles")
NoWait = Annotated[bool, typer.Option("--no-wait", help="Only start it; prints its id.")]


def sweep(
    run: Invocation,
    part: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="stuck, deliveries, letters, uploads, drift or a source; else all."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, repair nothing.")] = False,
    no_wait: NoWait = False,
) -> int | None:
    """Look for what was missed and bring it back; prints the certificate. Exits 1 if the sweep failed."""
    started = run.api.start_sweep(part or [], dry_run=dry_run)
    sweep_id = str(started["sweep_id"])
    if no_wait:
        if run.out.as_json:
            run.out.json(started)
        else:
            run.out.line(sweep_id)
        return None
    run.out.note(f"sweep {sweep_id}")
    with run.out.waiting("Sweeping …") as status:
        certificate = watching.end_of(lambda: run.api.sweep(sweep_id), lambda seen: _progress(status, seen))
    if run.out.as_json:
        run.out.json(certificate)
    else:
        _show(run, certificate)
    return Exit.BAD if watching.ended_badly(certificate) else Exit.OK


def _show(run: Invocation, certificate: Json) -> None:
    """The certificate for people: a row for each part, of its counts those that are not 0, and what was repaired."""
    parts: dict[str, Json] = certificate.get("parts", {})
    run.out.record({name: value for name, value in certificate.items() if name not in ("parts", "links")})
    run.out.line("")
    run.out.table(PART_COLUMNS, [_row(name, part) for name, part in parts.items()])
    for name, part in parts.items():
        for ids in ("repaired_ids", "would_repair_ids"):
            for one in part.get(ids) or ():
                run.out.line(f"{name} {ids.removesuffix('_ids').replace('_', ' ')}  {one}")


def _row(name: str, part: Json) -> list[object]:
    found = part.get("would_repair", part.get("repaired"))
    told = {name: value for name, value in part.items() if type(value) is int and name not in TOLD_APART}
    counts = ", ".join(f"{name} {count}" for name, count in told.items() if count)
    balance = {True: "", False: "NOT BALANCED ", None: ""}[part.get("balanced")]
    return [name, watching.state_of(part), found, part.get("troubles"), f"{balance}{counts}", part.get("why")]


def _progress(status: Status | None, seen: Json) -> None:
    if status:
        parts = [f"{name} {watching.state_of(part)}" for name, part in seen.get("parts", {}).items()]
        status.update(clean(f"Sweeping … {', '.join(parts)}"))
