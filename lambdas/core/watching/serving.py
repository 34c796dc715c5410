"""Brings those who watch a job up to date: the one way in which anything of it is sent, whoever woke us.

Watches are read first, then the record, then the chunks of its attempt: a chunk that is stored later wakes us again
and finds the watch; a record that is final has all its chunks. A cursor is saved when everything before it was sent:
a chunk may come twice, which its number tells, and none is left out. A workflow's progress is told as it stands: what
came and went between two looks is told by the later one, and the end tells the last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lambdas.core.job import Job
from lambdas.core.lookup import job_of
from lambdas.core.ports import JobStore, Missing, Notice, Results, Unavailable
from lambdas.core.problems import Problem
from lambdas.core.streaming.ports import Chunks
from lambdas.core.streaming.reading import said_since
from lambdas.core.watching import frames
from lambdas.core.watching.ports import Connections, Gone, Posted, Postman, Sent, Trouble, Watch
from lambdas.core.workflows.progress import Progress, is_under_way, progress_of

PAGE_BYTES = 250_000  # of text read at once
LINK_ABOVE = 131_072  # bytes of a result: a message has no more on AWS
LINK_S = 300

Act = Callable[[Watch], Unavailable | None]


def one_by_one(act: Act, watches: Sequence[Watch]) -> Iterable[Unavailable | None]:
    return [act(watch) for watch in watches]


@dataclass(frozen=True)
class Relay:
    """What jobs are relayed with. `together`: acts on each of many watches, and answers in their order."""

    store: JobStore
    chunks: Chunks
    results: Results
    connections: Connections
    postman: Postman
    notice: Notice
    together: Callable[[Act, Sequence[Watch]], Iterable[Unavailable | None]] = field(default=one_by_one)


@dataclass(frozen=True)
class Greeting:
    """The watch is new, and is told where it begins. `void`: what its client has is no part of this attempt."""

    void: bool = False


@dataclass(frozen=True)
class Story:
    """A job as it stands: its text from chunk `first` on, and the frames of its end, none while it is open. `come`: how
    far a workflow under way is."""

    job: Job
    first: int
    texts: Sequence[str]
    ending: Sequence[bytes]
    come: Progress | None = None


def serve(watches: Sequence[Watch], relay: Relay, greeting: Greeting | None = None) -> None:
    """All that these watches of one job have not been sent yet. Trouble with one of them touches no other. Raises
    UnreadableRecord, and Unavailable when a store could not be reached: after everybody was served who could be."""
    if not watches:
        return
    job = job_of(watches[0].tenant, watches[0].job_id, relay.store)
    story = None
    if not isinstance(job, Problem):
        story = _story(job, min(_start(watch, job) for watch in watches), relay)
    _each(watches, lambda one: _bring(one, story, greeting, relay) if story else _dismiss(one, relay), relay)


def probe(watches: Sequence[Watch], relay: Relay) -> None:
    """Forgets those of them whose connection is gone. Raises Unavailable."""
    _each(
        watches, lambda one: _conclude(one, relay.postman.post(one.connection_id, frames.pong()), False, relay), relay
    )


def _each(watches: Sequence[Watch], act: Callable[[Watch], None], relay: Relay) -> None:
    """One's trouble is told when all have had their turn."""

    def tried(watch: Watch) -> Unavailable | None:
        try:
            act(watch)
        except Unavailable as trouble:
            return trouble
        return None

    for trouble in [*relay.together(tried, watches)]:
        if trouble is not None:
            raise trouble


def _start(watch: Watch, job: Job) -> int:
    """Cursors count the chunks of one attempt."""
    return watch.next if watch.attempt == job.attempt else 0


def _story(job: Job, first: int, relay: Relay) -> Story:
    texts = list(_texts(job, first, relay.chunks)) if job.stream else []
    ending = _ending(job, first + len(texts), relay.results) if job.is_final else []
    return Story(job, first, texts, ending, progress_of(job) if is_under_way(job) else None)


def _texts(job: Job, first: int, chunks: Chunks) -> Iterator[str]:
    while page := chunks.read(job.id, job.attempt, first, PAGE_BYTES, said_since(job)):
        for chunk in page:
            if chunk.n != first:  # its writer is not there yet, and comes back to what is missing
                return
            yield chunk.text
            first += 1


def _ending(job: Job, count: int, results: Results) -> list[bytes]:
    """A result that cannot be had just now, or is no text, is linked to: its job has ended all the same."""
    if job.result_key is None or job.result_bytes is None:
        return frames.ending(job, count, None, None)
    try:
        if job.result_bytes <= LINK_ABOVE:
            return frames.ending(job, count, results.get(job.result_key).decode(), None)
    except Missing:
        return frames.ending(job, count, None, None)
    except (Unavailable, UnicodeDecodeError):
        pass
    return frames.ending(job, count, None, results.link(job.result_key, LINK_S))


def _bring(watch: Watch, story: Story, greeting: Greeting | None, relay: Relay) -> None:
    at = watch.attempt, watch.next
    posted: Posted = Sent()
    for frame, behind in _frames(watch, story, greeting):
        posted = relay.postman.post(watch.connection_id, frame)
        if not isinstance(posted, Sent):
            break
        at = story.job.attempt, behind
    moved = at != (watch.attempt, watch.next) and not isinstance(posted, Gone)
    if moved and not relay.connections.advance(watch, *at):
        return  # nobody waits for it any more, or another watch has begun
    if story.come and isinstance(posted, Sent):
        posted = _tell(watch, story.job, story.come, relay)
    for frame in story.ending:
        if not isinstance(posted, Sent):
            break
        posted = relay.postman.post(watch.connection_id, frame)
    _conclude(watch, posted, bool(story.ending), relay)


def _tell(watch: Watch, job: Job, come: Progress, relay: Relay) -> Posted:
    """Each stage once to each watcher; again only when it is not certain that it was sent."""
    stage = stage_of(job, come)
    if stage <= watch.told:
        return Sent()
    posted = relay.postman.post(watch.connection_id, frames.progress(job, come))
    if isinstance(posted, Sent):
        relay.connections.tell(watch, stage)
    return posted


def stage_of(job: Job, come: Progress) -> str:
    """Rises as the job comes further: with each attempt, and in it with each branch that is over."""
    return f"{job.attempt:06d}.{come.settled:03d}"


def _frames(watch: Watch, story: Story, greeting: Greeting | None) -> Iterator[tuple[bytes, int]]:
    """Each with the number of the first chunk that is not sent with it."""
    job, start = story.job, _start(watch, story.job)
    if greeting:
        yield frames.watching(job, start), start
    if 0 < watch.attempt < job.attempt or (greeting and greeting.void):  # before the first attempt there is no text
        yield frames.restarted(job), 0
    yield from frames.chunks(job, start, story.texts[start - story.first :])


def _conclude(watch: Watch, posted: Posted, ended: bool, relay: Relay) -> None:
    match posted:
        case Sent():
            if ended:
                relay.connections.unwatch(watch)
        case Gone():
            relay.notice("watcher_gone", tenant=watch.tenant, job_id=watch.job_id)
            relay.connections.unwatch(watch)
            relay.connections.close(watch.connection_id)
        case Trouble(reason):  # its next ping, or the job's next chunk, brings what is missing
            relay.notice("watcher_trouble", tenant=watch.tenant, job_id=watch.job_id, reason=reason)


def _dismiss(watch: Watch, relay: Relay) -> None:
    """The job was deleted meanwhile."""
    told = frames.error("not_found", "There is no such job any more.", watch.job_id)
    _conclude(watch, relay.postman.post(watch.connection_id, told), True, relay)
