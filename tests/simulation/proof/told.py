"""What must hold of who is told: of watchers of a job's text while it comes, and of receivers of its end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

from lambdas.contracts.names import CANCELLED, COMPLETED, PROCESSING
from tests.simulation.proof.evidence import Evidence, Text

Complaints = Iterator[str]


# --- what is told while it comes -----------------------------------------------------------------------------------
def its_text_is_in_chunks(seen: Evidence) -> Complaints:
    """Those of each attempt are numbered from 0 without a gap; those of the attempt that was COMPLETED are the text of
    its result, byte for byte; of any other, the beginning of one thing that the model said."""
    if seen.text is None:
        return
    for attempt, chunks in seen.text.chunks.items():
        if [n for n, _ in chunks] != list(range(len(chunks))):
            yield f"the chunks of attempt {attempt} are {[n for n, _ in chunks]}"
        text = "".join(text for _, text in chunks)
        if not any(said.startswith(text) for said in seen.text.said):
            yield f"attempt {attempt} has text that the model did not say so: {text[:80]!r}"
    if seen.record.get("status") == COMPLETED:
        text = _text_of(seen.text, seen.record["attempt"])
        if text != json.loads(seen.result.body)["text"]:
            yield f"its chunks have {len(text)} characters: {text[:80]!r}, and not the text of its result"


def _text_of(text: Text, attempt: int) -> str:
    return "".join(piece for _, piece in text.chunks.get(attempt, ()))


def watchers_have_its_text(seen: Evidence) -> Complaints:
    """Each, whether it stayed or came back, was told the end, and has put together what is stored; of one that was
    cancelled, as much of it as there was at the end of the job."""
    for heard in seen.text.heard if seen.text else ():
        if heard.final is None:
            yield f"a watcher was not told the end; it has {heard.text[:80]!r}"
            continue
        if (heard.final["job"]["status"], heard.attempt) != (seen.record["status"], seen.record["attempt"]):
            yield f"a watcher was told {heard.final['job']['status']} of attempt {heard.attempt}"
        assert seen.text is not None
        stored = _text_of(seen.text, seen.record["attempt"])
        if heard.text != stored and not (seen.record["status"] == CANCELLED and stored.startswith(heard.text)):
            yield f"a watcher has {len(heard.text)} characters of {len(stored)}: {heard.text[:80]!r}"
        linked = "result_url" in heard.final  # whoever told it could not read the result just then
        if seen.record["status"] == COMPLETED and not linked and heard.result != json.loads(seen.result.body):
            yield f"a watcher was told another result: {heard.result!r:.80}"


def no_text_is_mixed(seen: Evidence) -> Complaints:
    """Whatever a watcher had at any time is the beginning of one thing that the model said; and nothing that it was
    sent contradicts what it has."""
    for heard in seen.text.heard if seen.text else ():
        assert seen.text is not None
        yield from heard.wrong
        for had in (heard.text, *heard.voided):
            if not any(said.startswith(had) for said in seen.text.said):
                yield f"a watcher had what the model did not say so: {had[:80]!r}"


def cancelled_in_its_midst_it_keeps_what_was_said(seen: Evidence) -> Complaints:
    """Whoever was cut off may have said less, but what is stored stays."""
    if seen.text is None or seen.record.get("status") != CANCELLED or seen.cut_off:
        return
    if not _text_of(seen.text, seen.record["attempt"]):
        yield "it was cancelled after a part of its text was said, and nothing of it is kept"


# --- what is delivered ---------------------------------------------------------------------------------------------
def each_event_is_delivered(seen: Evidence) -> Complaints:
    """One delivery for each event and endpoint, no delivery without an event; in the end the receiver has taken it."""
    if seen.delivered is None:
        return
    records = seen.delivered.records.values()
    told = [one["event_id"] for one in records]
    if sorted(told) != sorted(seen.facts):
        yield f"there are deliveries of {sorted(told)}, and the facts are {seen.facts}"
    for one in records:
        if one["status"] != COMPLETED:
            yield f"the delivery of {one['event_id']} is {one['status']}: {one.get('error')}"
        if {"due_at", "due_shard"} & one.keys():
            yield f"the delivery of {one['event_id']} is still due"
        posts = [post for post in seen.delivered.posts if post.id == one["event_id"]]
        if len(posts) <= seen.delivered.refused:
            yield f"its receiver was called {len(posts)} times about {one['event_id']}"


def a_delivery_is_the_same_each_time(seen: Evidence) -> Complaints:
    """One id, and the bytes that are on record; each signed so that its receiver can tell; nobody else hears."""
    if seen.delivered is None:
        return
    bodies = {one["event_id"]: one["body"].encode() for one in seen.delivered.records.values()}
    for post in seen.delivered.posts:
        if bodies.get(post.id) != post.body:
            yield f"{post.id} came with other bytes: {post.body[:80]!r}"
        if not post.verifies:
            yield f"{post.id} came with a signature that does not verify"
    if seen.delivered.strangers:
        yield f"a stranger's receiver was called {seen.delivered.strangers} times"


def a_receiver_that_has_taken_it_is_left_alone(seen: Evidence) -> Complaints:
    """Each claim calls once; when it is on record that it was taken, nobody begins to call again. So there is one call
    more for each fault, at most."""
    if seen.delivered is None:
        return
    states = seen.delivered.states
    for by, number in Counter(post.by for post in seen.delivered.posts).items():
        if number > 1:
            yield f"invocation {by} called {number} times"
    ended = next((one.number for one in states if one.record["status"] == COMPLETED), None)
    claims = {one.by: one.number for one in states if one.record["status"] == PROCESSING}
    for post in seen.delivered.posts:
        if ended is not None and post.number > ended and claims.get(post.by, ended) >= ended:
            yield f"{post.by} called after it was on record that it was taken"
    most = seen.delivered.refused + 1 + seen.blows
    if len(seen.delivered.posts) > most:
        yield f"{len(seen.delivered.posts)} calls, where {most} are the most that {seen.blows} faults explain"


def its_record_is_untouched_by_deliveries(seen: Evidence) -> Complaints:
    """Byte for byte: none of its states was written by who delivers, and it stands as its last writer left it."""
    for state in seen.states:
        if seen.functions.get(state.by) == "deliver":
            yield f"deliver wrote the job's record: {state.record}"
    if seen.found is not None and seen.found != seen.record:
        yield f"it is not as it was written: {seen.found}"
