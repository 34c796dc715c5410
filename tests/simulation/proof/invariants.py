"""What must hold however a job was struck. Each says in words what it found; nothing found is nothing said."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, PROCESSING
from tests.simulation.proof import told
from tests.simulation.proof.evidence import Ask, Evidence, State, fact, is_final

Complaints = Iterator[str]
Invariant = Callable[[Evidence], Complaints]
_NOT_LEFT = ("due_at", "due_shard")


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold, and what shows it."""

    case: str
    invariant: str
    why: str


def violations(evidence: Evidence) -> list[Violation]:
    """All that is wrong with a job."""
    return [
        Violation(evidence.case, invariant.__name__, why) for invariant in INVARIANTS for why in invariant(evidence)
    ]


def struck_where_it_was_to_be(seen: Evidence) -> Complaints:
    """A case that never met its fault proves nothing. Of two, the first may have led it past the second."""
    if not seen.struck:
        yield "the fault never found its boundary"


def accepted_under_one_id(seen: Evidence) -> Complaints:
    """However often its request is repeated, it is one job."""
    if set(seen.accepted_as) - {seen.job_id}:
        yield f"its requests were answered with {set(seen.accepted_as)}, not with {seen.job_id} alone"


def one_final_state(seen: Evidence) -> Complaints:
    """Every accepted event reaches exactly one final state, once for each opening."""
    if not seen.states:
        yield "it was accepted, and there is no record"
        return
    finals: dict[int, list[str]] = {}
    before: State | None = None
    for state in seen.states:
        if is_final(state.record) and (before is None or fact(before.record) != fact(state.record)):
            finals.setdefault(state.record.get("run", 0), []).append(fact(state.record))
        if before is not None and _leaves_its_end(before, state):
            yield f"{fact(before.record)} became {fact(state.record)} without being opened again"
        before = state
    for run, facts in finals.items():
        if len(facts) > 1:
            yield f"opening {run} ended {len(facts)} times: {facts}"
    if not is_final(seen.record):
        yield f"it is {seen.record['status']} in the end"


def _leaves_its_end(before: State, after: State) -> bool:
    reopened = after.record.get("run", 0) > before.record.get("run", 0)
    return is_final(before.record) and fact(before.record) != fact(after.record) and not reopened


def ends_as_its_story_says(seen: Evidence) -> Complaints:
    """No single fault changes how a story ends. Two may: then its tries can be used up."""
    if seen.blows > 1:
        return
    reason = seen.record.get("error", {}).get("code", "") if seen.record.get("status") == FAILED else ""
    if (seen.record.get("status"), reason) != seen.ends:
        yield f"it ended {seen.record.get('status')} {reason}, not {' '.join(seen.ends)}"
    if len(seen.facts) != seen.openings:
        yield f"its final states are {seen.facts}, not {seen.openings} of them"


def result_is_what_the_model_answered(seen: Evidence) -> Complaints:
    """Readable when COMPLETED, and to the byte; else there is none to be read."""
    if seen.record.get("status") != COMPLETED:
        if seen.result.status != 409:
            yield f"its result answers {seen.result.status} although it is {seen.record.get('status')}"
        return
    if seen.result.status != 200:
        yield f"its result answers {seen.result.status}"
        return
    if seen.result.body != seen.result_object or len(seen.result.body) != seen.record["result_bytes"]:
        yield "what is read is not what was stored"
    if not seen.record["result_key"].endswith(f"/{seen.record['attempt']}"):
        yield f"the result of another attempt: {seen.record['result_key']}"
    kept = _kept(seen)
    if kept is None or json.loads(seen.result.body) != {"text": kept.answer}:
        yield f"{seen.result.body[:80]!r} is not the answer that was kept: {kept.answer if kept else None!r:.80}"


def _kept(seen: Evidence) -> Ask | None:
    """The last that was asked before an answer was stored for the first time."""
    if not seen.stored:
        return None
    asked = [ask for ask in seen.asks if ask.number < seen.stored[0] and ask.answer is not None]
    return asked[-1] if asked else None


def one_call_for_each_ask(seen: Evidence) -> Complaints:
    """No invocation asks the model twice."""
    for by, number in Counter(ask.by for ask in seen.asks).items():
        if number > 1:
            yield f"invocation {by} made {number} calls"


def no_call_once_its_answer_is_stored(seen: Evidence) -> Complaints:
    late = [ask for ask in seen.asks if seen.stored and ask.number > seen.stored[0]]
    if late:
        yield f"{len(late)} calls came after the answer was stored"


def called_again_only_when_the_answer_was_lost(seen: Evidence) -> Complaints:
    """Nothing is paid twice unless somebody died, stood still, or could not keep what he had."""
    for ask in seen.asks[:-1]:
        if ask.answer is not None and ask.by not in seen.cut_off:
            yield f"{len(seen.asks)} calls, although {ask.by} had its answer and was not cut off"


def books_cover_what_was_called(seen: Evidence) -> Complaints:
    """Cost on record + uncertain calls >= calls that the provider saw >= recorded calls; equal if nothing crashed."""
    booked = seen.record.get("cost", 0) + seen.record.get("late_cost", 0)
    called = sum(ask.cost for ask in seen.asks)
    uncertain = sum(ask.cost for ask in seen.asks if _is_uncertain(seen, ask))
    if booked + uncertain < called:
        yield f"{booked} booked and {uncertain} uncertain do not cover {called}"
    if booked > sum(ask.most for ask in seen.asks):
        yield f"{booked} booked, and {len(seen.asks)} calls cost {called}"
    if not uncertain and booked != called and all(_is_exact(seen, ask) for ask in seen.asks):
        yield f"nothing is uncertain, and {booked} is booked for {called}"


def _is_exact(seen: Evidence, ask: Ask) -> bool:
    """Whether its caller knows what it cost: not behind an answer that was cut, nor in the midst of one."""
    return ask.answer is not None and not (seen.text and ask.by in seen.cut_off)


def _is_uncertain(seen: Evidence, ask: Ask) -> bool:
    """Its claim lapsed; or its holder was cut off after a cancellation, and never came back to book what it cost."""
    own = [claim for claim in claims_of(seen) if claim.by == ask.by]
    if any(claim.lapsed for claim in own):
        return True
    booked = any(state.by == ask.by and state.record["status"] == CANCELLED for state in seen.states)
    return ask.by in seen.cut_off and any(claim.cancelled for claim in own) and not booked


@dataclass(frozen=True)
class Claim:
    """Which invocation held it, for the last time, and who ended that: itself, a cancellation, or (lapsed) another."""

    by: str
    run: int
    lapsed: bool
    cancelled: bool


def claims_of(seen: Evidence) -> list[Claim]:
    """In their order. One that nobody has ended is lapsed: its holder is gone."""
    found: list[Claim] = []
    held: State | None = None
    for state in seen.states:
        if held is not None and _changes(held, state):
            cancelled = state.record["status"] == CANCELLED
            found.append(Claim(held.by, held.record.get("run", 0), not cancelled and state.by != held.by, cancelled))
            held = None
        if held is None and state.record["status"] == PROCESSING:
            held = state
    return [*found, Claim(held.by, held.record.get("run", 0), lapsed=True, cancelled=False)] if held else found


def _changes(before: State, after: State) -> bool:
    return any(before.record.get(name) != after.record.get(name) for name in ("status", "attempt", "claim_id"))


def nobody_lapses_who_was_not_cut_off(seen: Evidence) -> Complaints:
    """A claim lapses only if its holder was killed, stood still, or could not reach the store."""
    for claim in claims_of(seen):
        if claim.lapsed and claim.by not in seen.cut_off:
            yield f"the claim of {claim.by} lapsed, which was not cut off"


def told_of_each_fact(seen: Evidence) -> Complaints:
    """At least one notification of each final state, all of one fact under one event id."""
    told = {event["event_id"] for event in seen.events}
    if told != set(seen.facts):
        yield f"told of {sorted(told)}, and the facts are {seen.facts}"
    for event in seen.events:
        if event["event_id"].rpartition(".")[2] != event["payload"]["status"]:
            yield f"{event['event_id']} tells of {event['payload']['status']}"


def nothing_is_left_open(seen: Evidence) -> Complaints:
    """Nothing in flight, leased or in the `due` index; nobody need look at it again."""
    left = [name for name in _NOT_LEFT if name in seen.record]
    if left:
        yield f"the record still has {left}"
    if "handed_over_at" not in seen.record:
        yield "it was never handed over"
    for where, what in seen.left.things.items():
        if what:
            yield f"{where}: {what[:3]}"


def each_failed_job_has_its_letter(seen: Evidence) -> Complaints:
    """FAILED: a letter of this very attempt. Letters of earlier attempts may lie around; of others there are none."""
    attempt = seen.record.get("attempt", 0)
    named = {(letter["payload"]["attempt"], letter["payload"]["reason"]) for letter in seen.letters}
    if seen.record.get("status") == FAILED and (attempt, seen.record["error"]["code"]) not in named:
        yield f"FAILED, and its letters are {sorted(named)}"
    failed = {state.record["attempt"] for state in seen.states if state.record["status"] == FAILED}
    strange = [found for found in named if found[0] not in failed]
    if strange:
        yield f"letters of what did not fail: {strange}"


def claims_are_counted(seen: Evidence) -> Complaints:
    """Of this opening: each crash is a claim that lapsed; each lapsed claim is charged, and no more than were made."""
    claims = [claim for claim in claims_of(seen) if claim.run == seen.record.get("run", 0)]
    lapsed = sum(claim.lapsed for claim in claims)
    if seen.record.get("crashes", 0) > lapsed:
        yield f"{seen.record['crashes']} crashes on record, {lapsed} claims lapsed"
    if not lapsed <= seen.record.get("tries", 0) <= len(claims):
        yield f"{seen.record.get('tries', 0)} tries charged for {len(claims)} claims, of which {lapsed} lapsed"


def no_tenant_sees_anothers(seen: Evidence) -> Complaints:
    """By id it is not there for others; in lists it is its own tenant's alone; what is told names its tenant."""
    if set(seen.by_others) != {404}:
        yield f"others are answered {seen.by_others}"
    if seen.listed_for != (seen.tenant,):
        yield f"it is listed for {seen.listed_for}, not for {seen.tenant} alone"
    named = {one["tenant_id"] for one in (*seen.events, *seen.letters)}
    if named - {seen.tenant}:
        yield f"told as {sorted(named)}"


INVARIANTS: tuple[Invariant, ...] = (
    struck_where_it_was_to_be,
    accepted_under_one_id,
    one_final_state,
    ends_as_its_story_says,
    result_is_what_the_model_answered,
    one_call_for_each_ask,
    no_call_once_its_answer_is_stored,
    called_again_only_when_the_answer_was_lost,
    books_cover_what_was_called,
    told_of_each_fact,
    nothing_is_left_open,
    each_failed_job_has_its_letter,
    nobody_lapses_who_was_not_cut_off,
    claims_are_counted,
    no_tenant_sees_anothers,
    told.its_text_is_in_chunks,
    told.watchers_have_its_text,
    told.no_text_is_mixed,
    told.cancelled_in_its_midst_it_keeps_what_was_said,
    told.each_event_is_delivered,
    told.a_delivery_is_the_same_each_time,
    told.a_receiver_that_has_taken_it_is_left_alone,
    told.its_record_is_untouched_by_deliveries,
)


def accounts_balance(evidence: Iterable[Evidence]) -> Complaints:
    """Of all together: accepted = COMPLETED + FAILED + CANCELLED."""
    ends = Counter(one.record.get("status", "nowhere") for one in evidence)
    open_ = {status: number for status, number in ends.items() if status not in (COMPLETED, FAILED, CANCELLED)}
    if open_:
        yield f"{sum(ends.values())} were accepted, and {open_} are neither COMPLETED nor FAILED nor CANCELLED"
