"""Looking until something has ended: a job by its timeline, a sweep or a redrive by its state."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator

from ops.api import Api, Json
from ops.exits import Exit, Failure

FINAL = ("COMPLETED", "FAILED", "CANCELLED")
GOING_ON = ("RUNNING",)
LOOK_S = 1.0
HAND_OVER_S = 5.0  # a final job is told to others within a second or two; who follows it need not wait for outages
ARRIVAL_S = 60.0


def timeline(api: Api, job_id: str) -> Iterator[Json]:
    """The job's events as they come, each once, until it is final and handed over (or not handed over for long)."""
    told: Counter[str] = Counter()
    final_since: float | None = None
    while True:
        seen = api.events(job_id)
        yield from _new(seen["events"], told)
        if seen["status"] in FINAL:
            final_since = final_since or time.monotonic()
            handed_over = any(event.get("what") == "handed_over" for event in seen["events"])
            if handed_over or time.monotonic() - final_since > HAND_OVER_S:
                return
            time.sleep(LOOK_S / 2)
            continue
        asked = time.monotonic()
        job = api.job(job_id, wait_s=int(LOOK_S))  # a deployment may not hold answers: then the pause is ours
        if job["status"] not in FINAL:
            time.sleep(max(0.0, LOOK_S - (time.monotonic() - asked)))


def _new(events: list[Json], told: Counter[str]) -> Iterator[Json]:
    """Those not told yet. By content: a long timeline loses lines in its middle."""
    found: Counter[str] = Counter()
    for event in events:
        name = json.dumps(event, sort_keys=True)
        found[name] += 1
        if found[name] > told[name]:
            told[name] = found[name]
            yield event


def arrival(api: Api, job_id: str) -> Json:
    """The job that an upload becomes. Failure NOT_FOUND if it does not within a minute."""
    until = time.monotonic() + ARRIVAL_S
    while True:
        try:
            return api.job(job_id)
        except Failure as failure:
            if failure.code != Exit.NOT_FOUND or time.monotonic() > until:
                raise
        time.sleep(LOOK_S)


def end_of(look: Callable[[], Json], show: Callable[[Json], None]) -> Json:
    """What is seen when it no longer goes on, or nobody is at it any more."""
    while True:
        seen = look()
        show(seen)
        if state_of(seen) not in GOING_ON or seen.get("stalled"):
            return seen
        time.sleep(LOOK_S)


def outcome(job: Json) -> Exit:
    """A job that ended without its result ended badly; one that has not ended did not."""
    return Exit.BAD if job.get("status") in ("FAILED", "CANCELLED") else Exit.OK


def state_of(seen: Json) -> str:
    """Redrives and parts of sweeps have a state, sweeps a status."""
    return str(seen.get("state") or seen.get("status") or "")


def ended_badly(seen: Json) -> bool:
    """Did a sweep or a redrive fail, stop or die, or a part of it?"""
    parts = seen.get("parts")
    inner = [part for part in parts.values() if isinstance(part, dict)] if isinstance(parts, dict) else []
    return any(state_of(one) in ("FAILED", "STOPPED") or one.get("stalled") for one in (seen, *inner))
