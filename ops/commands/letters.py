"""Commands about dead letters: what is dead and why, bring it back, repair it or let it go, and who decided what."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Literal

import typer
from rich.status import Status

from ops import inputs, watching
from ops.api import Json
from ops.commands.sweeps import NoWait
from ops.exits import Exit, usage
from ops.invocation import Invocation
from ops.output import clean, dollars

LetterId = Annotated[str, typer.Argument(metavar="ID", help="The letter, as the groups name it.")]
Queue = Annotated[
    Literal["work", "urgent", "inbox", "deliveries"] | None, typer.Option(help="Which dead-letter queue.")
]
Reason = Annotated[str, typer.Option(help="Why, for the review.")]
GROUP_COLUMNS = ("GROUP", "QUEUE", "COUNT", "REASON", "TASK", "COST", "LAST SEEN", "NOTES", "ERROR", "LETTERS")
COUNTED = ("would_move", "moved", "stale", "skipped", "failed")
REVIEW_COLUMNS = ("LETTER", "QUEUE", "STATUS", "JOB", "AT", "WHO", "WHY", "REASON")


def groups(run: Invocation, queue: Queue = None) -> None:
    """List what is dead, in groups of one cause. Same as `dead-letters` alone."""
    found = run.api.dead_letters(queue)
    if run.out.as_json:
        run.out.json(found)
        return
    run.out.table(GROUP_COLUMNS, [_group(group) for group in found["groups"]])
    if not found["groups"]:
        run.out.note("no dead letters")
    if not found.get("complete", True):
        run.out.note(f"{found.get('scanned')} of about {found.get('total')} letters were read: there may be more")


def show(run: Invocation, letter_id: LetterId, queue: Queue = None) -> None:
    """Show one letter, whole."""
    _told(run, run.api.dead_letter(letter_id, queue))


def discard(run: Invocation, letter_id: LetterId, reason: Reason, queue: Queue = None) -> None:
    """Let a letter go. The review keeps who did it and why."""
    _told(run, run.api.discard(letter_id, reason, queue))


def repair(
    run: Invocation,
    letter_id: LetterId,
    patch: Annotated[str, typer.Option(metavar="FILE|-|JSON", help="JSON patch (RFC 6902) of the letter's message.")],
    reason: Reason,
    queue: Queue = None,
) -> None:
    """Repair a message that could not be read, and send it back."""
    _told(run, run.api.repair(letter_id, inputs.json_text(patch, "--patch"), reason, queue))


def redrive(
    run: Invocation,
    *,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Letters.")] = None,
    group: Annotated[str | None, typer.Option(metavar="GROUP", help="Instead: all letters of a group.")] = None,
    queue: Queue = None,
    rate: Annotated[float | None, typer.Option(min=0.01, help="Letters a second, at most.")] = None,
    canary: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="First N; go on only if they complete.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, send nothing.")] = False,
    no_wait: NoWait = False,
) -> int | None:
    """Bring dead letters back: a group, or single ones. Exits 1 if not all could be, or its canary stopped it."""
    if bool(ids) == bool(group):
        raise usage("what is to be brought back? Name letters, or a group with --group (see: dead-letters)")
    started = run.api.start_redrive(
        group=group, ids=ids or None, queue=queue, rate=rate, canary=canary, dry_run=dry_run or None
    )
    redrive_id = str(started["redrive_id"])
    if no_wait:
        if run.out.as_json:
            run.out.json(started)
        else:
            run.out.line(redrive_id)
        return None
    run.out.note(f"redrive {redrive_id}")
    with run.out.waiting("Bringing back …") as status:
        end = watching.end_of(lambda: run.api.redrive(redrive_id), lambda seen: _progress(status, seen))
    _told(run, end)
    return _outcome(run, end)


def _outcome(run: Invocation, end: Json) -> Exit:
    """A group or letters that are not there (a typing error, or gone by now) are no success."""
    if watching.ended_badly(end) or end.get("failed") or end.get("skipped"):
        return Exit.BAD
    found = sum(int(end.get(name) or 0) for name in ("moved", "would_move", "stale"))
    if not found:
        run.out.note("no such letters are there")
        return Exit.NOT_FOUND
    named = set(end.get("ids") or ())
    if found < len(named):
        run.out.note(f"{found} of {len(named)} letters were there")
        return Exit.BAD
    return Exit.OK


def review(
    run: Invocation,
    status: Annotated[Literal["open", "repaired", "discarded"] | None, typer.Option(help="Only those.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="How many at most; 0 is all.")] = 100,
) -> None:
    """List what waits for a human, and what humans decided, and why."""
    reviews = islice(run.api.reviews(status), limit or None)
    if run.out.as_json:
        for one in reviews:
            run.out.json(one)
        return
    names = ("letter_id", "queue", "status", "job_id", "at", "who", "why", "reason")
    run.out.table(REVIEW_COLUMNS, [[one.get(name) for name in names] for one in reviews])


def _told(run: Invocation, answer: Json) -> None:
    if run.out.as_json:
        run.out.json(answer)
    else:
        run.out.record({name: value for name, value in answer.items() if name != "links"})


def _progress(status: Status | None, seen: Json) -> None:
    if status:
        numbers = [f"{name} {seen[name]}" for name in COUNTED if seen.get(name)]
        status.update(clean(f"Bringing back … {seen.get('phase', '')} {', '.join(numbers)}"))


def _group(group: Json) -> list[object]:
    never = "never attempted" if group.get("zero_attempts") else ""
    stale = f"{group['stale']} stale" if group.get("stale") else ""
    names = ("group", "queue", "count", "reason", "task")
    cost, notes = dollars(group.get("cost_micros")), ", ".join(note for note in (never, stale) if note)
    ids = " ".join(str(one) for one in group.get("ids", ()))
    return [*(group.get(name) for name in names), cost, group.get("last_seen"), notes, group.get("error"), ids]
