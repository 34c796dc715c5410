"""What is said over a connection, from its opening to its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lambdas.core.job import Job, UnreadableRecord
from lambdas.core.lookup import job_of
from lambdas.core.ports import Now, Unavailable
from lambdas.core.problems import Problem
from lambdas.core.streaming.reading import said_since
from lambdas.core.times import milliseconds
from lambdas.core.watching import frames, requests
from lambdas.core.watching.ports import Connection, Gone, Grant, Watch
from lambdas.core.watching.requests import Ping, Refused, UnwatchJob, WatchJob
from lambdas.core.watching.serving import Greeting, Relay, probe, serve

CONNECTION_S = 7_200 + 600  # AWS ends a connection after two hours; its `$disconnect` may never come
WATCHERS_MAX = 50  # of one job: each is sent every chunk

NOT_YOURS = "There is no such job, or your ticket is not for it."


@dataclass(frozen=True)
class Switchboard:
    """`draw`: a new mark for a watch."""

    relay: Relay
    now: Now
    draw: Callable[[], str]


def opened(connection_id: str, grant: Grant, board: Switchboard) -> None:
    """Raises Unavailable: then there must be no connection."""
    expires_at = milliseconds(board.now()) // 1000 + CONNECTION_S
    board.relay.connections.open(Connection(connection_id, grant, expires_at))


def closed(connection_id: str, board: Switchboard) -> None:
    """Raises Unavailable: then what is left of it is found when something is sent, or by its time to live."""
    board.relay.connections.close(connection_id)


def heard(connection_id: str, raw: bytes, board: Switchboard) -> None:
    """Answers one message, over the connection. Raises nothing that a client, a job or a store can cause."""
    asked = requests.read(raw)
    try:
        refused = asked if isinstance(asked, Refused) else _answer(connection_id, asked, board)
    except Unavailable as trouble:
        board.relay.notice("store_unavailable", detail=str(trouble))
        refused = Refused("unavailable", "A store cannot be reached. Ask again in a moment.", _about(asked))
    except UnreadableRecord as broken:
        board.relay.notice("unreadable_record", job_id=_about(asked), detail=str(broken))
        refused = Refused("unreadable", "Somebody changed the record of this job by hand.", _about(asked))
    if refused:
        _say(connection_id, frames.error(refused.code, refused.detail, refused.job_id), board)


def _about(asked: WatchJob | UnwatchJob | Ping | Refused) -> str:
    return "" if isinstance(asked, Ping) else asked.job_id


def _answer(connection_id: str, asked: WatchJob | UnwatchJob | Ping, board: Switchboard) -> Refused | None:
    connection = board.relay.connections.find(connection_id)
    if connection is None:
        return Refused("unknown_connection", "This connection is over. Open another one, with a new ticket.")
    match asked:
        case WatchJob():
            return _watch(connection, asked, board)
        case UnwatchJob(job_id):
            _unwatch(connection_id, job_id, board)
        case Ping():
            _say(connection_id, frames.pong(), board)
            _catch_up(connection_id, board)
    return None


def _watch(connection: Connection, asked: WatchJob, board: Switchboard) -> Refused | None:
    relay, job_id = board.relay, asked.job_id
    if job_id not in connection.grant.job_ids:
        return Refused("not_found", NOT_YOURS, job_id)
    job = job_of(connection.grant.tenant, job_id, relay.store)
    if isinstance(job, Problem):
        return Refused("not_found", NOT_YOURS, job_id)
    attempt = job.attempt if asked.attempt is None else asked.attempt
    if attempt > job.attempt:
        return Refused("bad_request", f"The job is at attempt {job.attempt}.", job_id)
    if not _has_room(job_id, connection.id, relay):
        return Refused("too_many_watchers", f"A job has at most {WATCHERS_MAX} watchers at once.", job_id)
    void = attempt == job.attempt and not _has(job, asked.start, relay)
    watch = Watch(connection.id, job_id, connection.grant.tenant, board.draw(), attempt, 0 if void else asked.start)
    relay.connections.watch(watch, connection.expires_at)  # before anything is read that is sent
    serve([watch], relay, Greeting(void))
    return None


def _has_room(job_id: str, connection_id: str, relay: Relay) -> bool:
    """For this one. Those who have gone without a word keep no place from others."""
    watchers = relay.connections.watchers_of(job_id)
    if _is_full(watchers, connection_id):
        probe(watchers, relay)
        watchers = relay.connections.watchers_of(job_id)
    return not _is_full(watchers, connection_id)


def _is_full(watchers: Sequence[Watch], connection_id: str) -> bool:
    return len(watchers) >= WATCHERS_MAX and all(one.connection_id != connection_id for one in watchers)


def _has(job: Job, count: int, relay: Relay) -> bool:
    """Whether this attempt has so many chunks: else what the client counted is something else's."""
    return count == 0 or bool(relay.chunks.read(job.id, job.attempt, count - 1, 1, said_since(job)))


def _unwatch(connection_id: str, job_id: str, board: Switchboard) -> None:
    watch = board.relay.connections.watch_of(connection_id, job_id)
    if watch is not None:
        board.relay.connections.unwatch(watch)
    _say(connection_id, frames.unwatched(job_id), board)


def _catch_up(connection_id: str, board: Switchboard) -> None:
    """What a push could not deliver. One job's trouble does not hide the others; the last one's is told."""
    relay, trouble = board.relay, None
    for job_id in relay.connections.jobs_of(connection_id):
        watch = relay.connections.watch_of(connection_id, job_id)
        try:
            serve([watch] if watch else [], relay)
        except Unavailable as unavailable:
            trouble = unavailable
        except UnreadableRecord as broken:
            relay.notice("unreadable_record", job_id=job_id, detail=str(broken))
    if trouble:
        raise trouble


def _say(connection_id: str, frame: bytes, board: Switchboard) -> None:
    """A word to somebody who has just spoken; who is gone by now needs none."""
    if isinstance(board.relay.postman.post(connection_id, frame), Gone):
        with suppress(Unavailable):  # then its time to live ends it
            board.relay.connections.close(connection_id)
