"""Brings dead letters back: takes a handful, sends it at its rate, deletes it then; a letter is never only in flight.

Dying at any point leaves a letter twice, which is harmless: it names its attempt, and reopens nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lambdas.core import times
from lambdas.core.letters import canary, redrive
from lambdas.core.letters import letter as letters
from lambdas.core.letters.dead_letters import Boxes, Looking
from lambdas.core.letters.letter import Letter, message_of
from lambdas.core.letters.redrive import (
    CANARY_SENDING,
    CANARY_WAITING,
    DONE,
    FAILED,
    FIRST_IDS,
    MOVING,
    PASSED,
    STOPPED,
    Run,
)
from lambdas.core.ports import JobStore, Ledger, Notice, Now, Sender

HIDE_S = 180  # covers a look and the sending of what it found
LOOK_S = 45
SHOW_S = 0.003  # to show one of what was hidden: ten in one call
HANDFUL_S = 30  # a handful is what the rate allows in so long
HANDFUL_MAX = 500
SEEN_MAX = 100_000  # SQS has no more than 120,000 in flight
BATCH = 10
SEND_S = 30  # for one batch that SQS is slow to accept
POLL_S = 5.0
RESERVE_S = 20.0  # kept free at an invocation's end: save, call the next one
LEASE_MARGIN_S = 60
REFUSALS_MAX = 3  # looks in a row in which nothing could be sent
LEFT_MAX = 30  # letters that were sent and could not be removed: they would be sent again by every later round


@dataclass
class Redriver:
    """What redriving works with. `queues`: where letters go back to, by the same names as `boxes`."""

    ledger: Ledger
    store: JobStore
    boxes: Boxes
    queues: Mapping[str, Sender]
    now: Now
    sleep: Callable[[float], None]
    time_left_s: Callable[[], float]
    notice: Notice

    def go_on(self, run: Run) -> Run:
        """As far as the time goes: RUNNING in what it answers means that another invocation has to go on. Raises
        Unavailable: then the same invocation, repeated, goes on from what was saved."""
        if run.round > redrive.ROUNDS_MAX:
            return self._saved(run, state=FAILED, why=f"not done after {redrive.ROUNDS_MAX} rounds")
        while run.left and run.state == redrive.RUNNING and self._in_time():
            lease, until = f"redrive-{run.left[0]}", times.after(self.now(), self.time_left_s() + LEASE_MARGIN_S)
            if self.ledger.take(lease, run.id, self.now(), until) is None:
                run = self._saved(run)  # another redrive is at this queue
                self._wait(POLL_S)
                continue
            run = _Queue(self, run, run.left[0]).empty()
            if run.state != redrive.RUNNING or run.left[:1] != (lease.removeprefix("redrive-"),):
                self.ledger.give_back(lease, run.id, {})
        return run if run.left or run.state != redrive.RUNNING else self._saved(run, state=DONE)

    def _in_time(self, hidden: int = 0) -> bool:
        """`hidden`: so many have to be shown again."""
        return self.time_left_s() > RESERVE_S + hidden * SHOW_S

    def _wait(self, seconds: float) -> None:
        self.sleep(max(0.0, min(seconds, self.time_left_s() - RESERVE_S)))

    def _saved(self, run: Run, **changes: Any) -> Run:
        run = replace(run, **changes)
        redrive.save(run, self.now(), self.ledger)
        return run


@dataclass
class _Taken:
    """What a look took. `due`: to be sent, by id with its copies. `unknown`: ids of those whose job has no record that
    can be read. `since`: when the first of them was hidden."""

    due: dict[str, list[Letter]] = field(default_factory=dict)
    stale: list[Letter] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    since: times.Instant | None = None

    @property
    def held(self) -> list[Letter]:
        return [*self.stale, *(copy for copies in self.due.values() for copy in copies)]


class _Queue:
    """One queue of one run, under its lease."""

    def __init__(self, redriver: Redriver, run: Run, queue: str) -> None:
        self.own, self.run, self.queue = redriver, run, queue
        self.box = redriver.boxes[queue]
        self._empty_since: times.Instant | None = None
        self._left: set[str] = set()  # sent, and not removed

    def empty(self) -> Run:
        """Until nothing that was asked for is left in it, or the time is over."""
        refusals = 0
        while self.run.state == redrive.RUNNING and self.own._in_time():
            if self.run.phase == CANARY_WAITING:
                self._look_at_canaries()
                continue
            if not self._may_send():
                continue
            taken, looking = self._take()
            if taken.due:
                self._empty_since = None
                refusals = 0 if self._send(taken) else refusals + 1
                if refusals >= REFUSALS_MAX:
                    why = f"the queue {self.queue} does not take them"
                    self._save(state=FAILED, why=why, failed=len(taken.due))
                if len(self._left) >= LEFT_MAX:
                    self._save(
                        state=FAILED, why=f"they were sent, and cannot be removed from the letters of {self.queue}"
                    )
            elif (self.run.dry_run or self._is_empty(looking)) and self._is_through():
                return self.run
        return self.run

    def _save(self, **changes: Any) -> None:
        self.run = self.own._saved(self.run, **changes)

    def _is_empty(self, looking: Looking) -> bool:
        """Whether nothing that was asked for is left. What others hide (a listing, a sweep) comes back in their time
        and is waited for; no longer than that, because SQS knows only about how many there are."""
        if not looking.reached_end or looking.complete:
            return looking.complete
        self._empty_since = self._empty_since or self.own.now()
        if times.seconds_between(self._empty_since, self.own.now()) >= HIDE_S:
            return True
        self.own._wait(POLL_S)
        return False

    def _is_through(self) -> bool:
        """Nothing more to send. A canary that was recorded and is not there was sent before a crash: wait for it."""
        if self.run.phase == CANARY_SENDING:
            self._save(phase=CANARY_WAITING, canary_at=self.own.now())
            return False
        self._save(left=self.run.left[1:])
        return True

    # --- taking ----------------------------------------------------------------------------------

    def _room(self) -> int:
        run = self.run
        if run.dry_run:
            return SEEN_MAX
        if run.canary and run.phase in (MOVING, CANARY_SENDING):
            return run.canary
        return max(1, min(HANDFUL_MAX, int(run.rate * HANDFUL_S)))

    def _take(self) -> tuple[_Taken, Looking]:
        """What is to be sent, hidden until then. What is stale is removed on the way, and noted."""
        began, taken, room = self.own.now(), _Taken(), self._room()

        def in_time() -> bool:
            ends = times.after(taken.since, LOOK_S) if taken.since else times.after(began, HIDE_S)
            early = self.run.dry_run or self.own.now() < ends
            return early and len(taken.due) < room and self.own._in_time(looking.scanned)

        with Looking(self.queue, self.box, in_time, hide_s=HIDE_S, most=SEEN_MAX) as looking:
            for page in looking.pages():
                for letter in filter(self._is_wanted, page):
                    self._sort(letter, taken, room)
                if taken.held and not taken.since:
                    taken.since = self.own.now()
            if not self.run.dry_run:
                for letter in taken.held:
                    looking.keep(letter)
        self._note_stale(taken)
        if self.run.dry_run:
            why = self.run.why if looking.complete else "not all letters were looked at"
            self._save(moved=self.run.moved + len(taken.due), first=(*self.run.first, *taken.due)[:FIRST_IDS], why=why)
            return _Taken(), looking
        return taken, looking

    def _is_wanted(self, letter: Letter) -> bool:
        if self.run.phase == CANARY_SENDING:
            return letter.id in {one.letter_id for one in self.run.canaries} and letter.found.sent_at <= self.run.at
        return self.run.selects(letter)

    def _sort(self, letter: Letter, taken: _Taken, room: int) -> None:
        if letter.id in taken.due:
            taken.due[letter.id].append(letter)
            return
        if letter.id in self._left:
            taken.stale.append(letter)
            return
        record = letters.record_of(letter.job_id, self.own.store) if letter.kind in ("job", "hint") else None
        match letters.standing(letter, record):
            case "stale":
                taken.stale.append(letter)
            case "unknown":
                taken.unknown.add(letter.id)
            case "due" if len(taken.due) < room:
                taken.due[letter.id] = [letter]

    def _note_stale(self, taken: _Taken) -> None:
        names = {letter.id for letter in taken.stale}
        if not self.run.dry_run:
            for letter in taken.stale:
                self.own.notice("stale_letter_removed", job_id=letter.job_id, letter=letter.id, queue=self.queue)
            self.box.remove([letter.found.receipt for letter in taken.stale])
        if names or taken.unknown:
            self._save(stale=self.run.stale + len(names), skipped=max(self.run.skipped, len(taken.unknown)))

    # --- sending ---------------------------------------------------------------------------------

    def _may_send(self) -> bool:
        """The rate holds from one handful to the next, too."""
        due = self.run.next_at
        wait_s = times.seconds_between(self.own.now(), due) if due else 0.0
        if wait_s > 0:
            self.own._wait(wait_s)
        return self.own._in_time() and (due is None or self.own.now() >= due)

    def _send(self, taken: _Taken) -> bool:
        """Whether any was accepted. What could not be sent is shown again."""
        is_canary = bool(self.run.canary) and self.run.phase in (MOVING, CANARY_SENDING)
        if is_canary and self.run.phase == MOVING:  # recorded before it is sent: no crash may double the canary
            chosen = tuple(canary.canary_of(copies[0]) for copies in taken.due.values())
            self._save(phase=CANARY_SENDING, canaries=chosen)
        sent, refused = self._paced(taken)
        if is_canary and sent and len(sent) + len(refused) == len(taken.due):
            waited_for = tuple(one for one in self.run.canaries if one.letter_id not in refused)
            self._save(phase=CANARY_WAITING, canary_at=self.own.now(), canaries=waited_for)
        return bool(sent)

    def _paced(self, taken: _Taken) -> tuple[set[str], set[str]]:
        """The letters that were accepted and those that were refused, by id; for the rest the time was over: of this
        invocation, or the one for which they are hidden."""
        size, copies = max(1, min(BATCH, int(self.run.rate))), list(taken.due.values())
        until = times.after(taken.since or self.own.now(), HIDE_S - SEND_S)
        sent: set[str] = set()
        kept: set[str] = set()
        for start in range(0, len(copies), size):
            if not self._may_send() or self.own.now() >= until:
                self._show([one for letter in copies[start:] for one in letter])
                break
            batch = copies[start : start + size]
            refused = self.own.queues[self.queue].send([message_of(letter[0]) for letter in batch])
            gone = [letter for position, letter in enumerate(batch) if position not in refused]
            self._show([one for position in refused for one in batch[position]])
            self._remove([one for letter in gone for one in letter])
            sent |= {letter[0].id for letter in gone}
            kept |= {batch[position][0].id for position in refused}
            self._count(gone)
        self._save()
        return sent, kept

    def _remove(self, copies: Sequence[Letter]) -> None:
        left = self.box.remove([one.found.receipt for one in copies])
        self._left |= {copies[position].id for position in left}

    def _count(self, gone: Sequence[Sequence[Letter]]) -> None:
        for letter in gone:
            self.own.notice("redriven", job_id=letter[0].job_id, letter=letter[0].id, queue=self.queue)
        self.run = replace(
            self.run,
            moved=self.run.moved + len(gone),
            first=(*self.run.first, *(letter[0].id for letter in gone))[:FIRST_IDS],
            next_at=times.after(self.own.now(), len(gone) / self.run.rate),
        )

    def _show(self, copies: Sequence[Letter]) -> None:
        self.box.show([one.found.receipt for one in copies])

    # --- canary ----------------------------------------------------------------------------------

    def _look_at_canaries(self) -> None:
        run, now = self.run, self.own.now()
        sent_at = run.canary_at or run.updated_at or run.at
        back = self._back(canary.without_job(run.canaries), sent_at)
        found = canary.verdicts(run.canaries, back, self.own.store, sent_at=sent_at, now=now)
        bad = [f"{one.letter_id}: {verdict.why}" for one, verdict in found if isinstance(verdict, canary.Bad)]
        if bad:
            self.own.notice("canary_died", redrive=run.id, detail="; ".join(bad)[:500])
            self._save(state=STOPPED, why=f"the canary did not live: {'; '.join(bad)}"[:1_000])
        elif all(isinstance(verdict, canary.Good) for _, verdict in found):
            self._save(phase=PASSED)
        else:
            self._save()
            self.own._wait(POLL_S)

    def _back(self, wanted: set[str], sent_at: times.Instant) -> set[str] | None:
        """Subjects of letters that have come since the redrive was asked for; None if some could not be seen."""
        if not wanted or times.seconds_between(sent_at, self.own.now()) < canary.QUIET_S:
            return set()
        found: set[str] = set()
        with Looking(self.queue, self.box, self.own._in_time, most=SEEN_MAX) as looking:
            for page in looking.pages():
                found |= {one.subject for one in page if one.found.sent_at > self.run.at}
        return found & wanted if looking.complete or found & wanted else None
