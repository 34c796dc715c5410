"""Live watching, message by message: tickets, what is told to whom, and what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from urllib.request import urlopen

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.audience import Listener
from tests.e2e.target import Target, eventually

FRAME_MAX = 32_767
PATIENCE_S = 180.0
FRAME_S = 0.4  # between two pieces that the model says, unless time is helped on
DELTAS = [f"word {n}, ü " for n in range(40)]

Frame = dict[str, Any]


class Watcher:
    """One connection, heard frame by frame."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.frames: list[Frame] = []

    def say(self, **message: Any) -> None:
        self._connection.send(json.dumps(message))

    def watch(self, job_id: str, **more: Any) -> Frame:
        self.say(action="watch", job_id=job_id, **more)
        return self.until(lambda frame: frame["type"] in ("watching", "error"))

    def until(self, wanted: Callable[[Frame], bool], patience_s: float = PATIENCE_S) -> Frame:
        ends = time.monotonic() + patience_s
        while True:
            data = self._connection.recv(max(0, ends - time.monotonic()))
            assert isinstance(data, str)
            assert len(data.encode()) <= FRAME_MAX
            self.frames.append(json.loads(data))
            if wanted(self.frames[-1]):
                return self.frames[-1]

    def final(self, job_id: str) -> Frame:
        """Its end, if it has not come yet."""
        ends = [frame for frame in self.frames if is_end(frame, job_id)]
        return ends[0] if ends else self.until(lambda frame: is_end(frame, job_id))

    def heard(self, job_id: str) -> Listener:
        """What a client of this job has made of the frames: a gap raises."""
        listener = Listener()
        for frame in self.frames:
            if frame.get("job_id") == job_id:
                listener.hear(frame)
        return listener


def is_end(frame: Frame, job_id: str) -> bool:
    return (frame["type"], frame.get("job_id")) == ("final", job_id)


def ticket(target: Target, *job_ids: str) -> str:
    answer = target.post("/tickets", {"job_ids": job_ids})
    assert answer.status == 201, answer
    return str(answer.json()["url"])


def opened(url: str) -> ClientConnection:
    return connect(url, open_timeout=60, compression=None, ping_interval=None, close_timeout=1)


def status_of(url: str) -> int:
    """What a connection is refused with."""
    with pytest.raises(InvalidStatus) as refused:
        opened(url)
    return int(refused.value.response.status_code)


Open = Callable[..., Watcher]


@pytest.fixture
def watcher(target: Target) -> Iterator[Open]:
    """Opens a connection with a ticket for these jobs."""
    with ExitStack() as ending:
        yield lambda *job_ids: Watcher(ending.enter_context(opened(ticket(target, *job_ids))))


def submitted(target: Target, nonce: str, **more: Any) -> str:
    return target.submit("reply", {"text": f"ANN: {nonce}. BOB: I will call back."}, stream=True, **more)


def test_a_job_is_watched_from_its_first_word_to_its_result(target: Target, watcher: Open, nonce: str) -> None:
    job_id = submitted(target, nonce)
    anna = watcher(job_id)
    assert anna.watch(job_id)["type"] == "watching"
    final = anna.final(job_id)
    listener = anna.heard(job_id)
    assert listener.final is not None
    assert final["result"] == json.loads(target.get(f"/jobs/{job_id}/result").body) == {"text": listener.text}
    assert final["job"]["status"] == "COMPLETED"


def test_a_finished_job_answers_at_once_and_from_any_chunk(target: Target, watcher: Open, nonce: str) -> None:
    job_id = submitted(target, nonce)
    target.final(job_id)
    anna = watcher(job_id)
    anna.watch(job_id)
    final = anna.final(job_id)
    ben = watcher(job_id)
    ben.watch(job_id, attempt=final["attempt"], **{"from": final["chunks"]})
    assert ben.final(job_id) == final
    assert [frame["type"] for frame in ben.frames] == ["watching", "final"]


def test_a_ticket_is_good_once_and_no_other_word_is(target: Target, nonce: str) -> None:
    job_id = submitted(target, nonce)
    url = ticket(target, job_id)
    with opened(url):
        assert status_of(url) == 403
    door = url.partition("?")[0]
    assert status_of(door) == 401
    assert status_of(f"{door}?ticket=") == 401
    assert status_of(f"{door}?ticket={'x' * 43}") == 403
    assert status_of(f"{url}x") == 403


def test_a_job_that_the_ticket_does_not_name_is_not_there(target: Target, watcher: Open, nonce: str) -> None:
    own, other = submitted(target, nonce), submitted(target, f"{nonce} too")
    anna = watcher(own)
    assert anna.watch(other)["code"] == "not_found"
    assert anna.watch("0" * 32)["code"] == "not_found"
    assert target.post("/tickets", {"job_ids": [own, "0" * 32]}).status == 404
    assert anna.watch(own)["type"] == "watching"


def test_several_jobs_over_one_connection_and_one_of_them_no_more(target: Target, watcher: Open, nonce: str) -> None:
    jobs = [submitted(target, f"{nonce} {n}") for n in range(3)]
    anna = watcher(*jobs)
    for job_id in jobs[1:]:
        anna.watch(job_id)
    anna.say(action="unwatch", job_id=jobs[0])  # it was not watched: that is no error
    assert anna.until(lambda frame: frame["type"] == "unwatched")["job_id"] == jobs[0]
    for job_id in jobs[1:]:
        final = anna.final(job_id)
        assert final["result"] == {"text": anna.heard(job_id).text}
    assert not [frame for frame in anna.frames if frame["job_id"] == jobs[0] and frame["type"] != "unwatched"]


def test_what_makes_no_sense_is_answered_and_does_no_harm(target: Target, watcher: Open, nonce: str) -> None:
    job_id = submitted(target, nonce)
    anna = watcher(job_id)
    for said, code in (
        ("{", "bad_request"),
        ("[]", "unknown_action"),
        ('{"action": "$connect"}', "unknown_action"),
        ('{"action": "watch"}', "bad_request"),
        (json.dumps({"action": "watch", "job_id": job_id, "from": -1}), "bad_request"),
        (json.dumps({"action": "ping", "padding": "x" * 5_000}), "too_large"),
    ):
        anna._connection.send(said)
        assert anna.until(lambda frame: frame["type"] == "error")["code"] == code
    anna.say(action="ping")
    anna.until(lambda frame: frame["type"] == "pong")
    anna.watch(job_id)
    assert anna.final(job_id)["job"]["status"] == "COMPLETED"


# --- what only the stack on this machine can be made to do ---------------------------------------------------------


def speak_on(target: Target, watcher: Watcher, job_id: str) -> None:
    """The model says the rest, piece by piece, as fast as it is heard."""
    while not is_end(watcher.until(lambda frame: frame["type"] in ("chunks", "final")), job_id):
        target.advance(FRAME_S)


@pytest.mark.local_only
def test_who_comes_in_the_middle_and_who_leaves_are_none_of_each_other_s_business(
    target: Target, watcher: Open, nonce: str
) -> None:
    target.script({"match": nonce, "deltas": DELTAS, "frame_s": FRAME_S})
    job_id = submitted(target, nonce)
    anna, ben = watcher(job_id), watcher(job_id)
    anna.watch(job_id)
    anna.until(lambda frame: frame["type"] == "chunks")
    ben.watch(job_id)
    ben.until(lambda frame: frame["type"] == "chunks")
    ben.say(action="unwatch", job_id=job_id)
    ben.until(lambda frame: frame["type"] == "unwatched")
    speak_on(target, anna, job_id)
    assert anna.heard(job_id).text == "".join(DELTAS)
    assert len({frame["from"] for frame in anna.frames if frame["type"] == "chunks"}) > 1  # it came while it was said
    assert "".join(DELTAS).startswith(ben.heard(job_id).text)
    ben.say(action="ping")
    ben.until(lambda frame: frame["type"] == "pong")
    assert not [frame for frame in ben.frames if frame["type"] == "final"]
    ben.watch(job_id)
    ben.final(job_id)
    assert ben.heard(job_id).text == "".join(DELTAS)


@pytest.mark.local_only
def test_an_expired_ticket_opens_nothing(target: Target, nonce: str) -> None:
    url = ticket(target, submitted(target, nonce))
    target.leap(61)
    assert status_of(url) == 403


@pytest.mark.local_only
def test_another_tenant_gets_no_ticket(target: Target, tenant: str, nonce: str) -> None:
    job_id = target.submit("reply", {"text": f"ANN: {nonce}"}, tenant=tenant)
    assert target.post("/tickets", {"job_ids": [job_id]}).status == 404
    assert target.post("/tickets", {"job_ids": [job_id]}, x_local_tenant=tenant).status == 201
    target.final(job_id, tenant)
    gone = target.request("DELETE", f"/jobs/{job_id}", headers={"x-local-tenant": tenant})
    assert gone.status == 204
    assert target.post("/tickets", {"job_ids": [job_id]}, x_local_tenant=tenant).status == 410


@pytest.mark.local_only
@pytest.mark.parametrize(("size", "how"), [(60_000, "parts"), (200_000, "result_url")])
def test_ws_04_a_large_result_comes_in_parts_and_a_larger_one_as_a_link(
    target: Target, watcher: Open, nonce: str, size: int, how: str
) -> None:
    said = f'"{nonce}" ' + "ü" * (size // 2)
    target.script({"match": nonce, "answer": said, "delta_chars": 8_000})
    job_id = submitted(target, nonce)
    target.final(job_id)
    anna = watcher(job_id)
    anna.watch(job_id)
    final = anna.final(job_id)
    listener = anna.heard(job_id)
    assert listener.text == said
    stored = target.request("GET", f"/jobs/{job_id}/result").body
    if how == "parts":
        assert "".join(listener.parts).encode() == stored
        assert len(listener.parts) == final["parts"] > 1
    else:
        with urlopen(final["result_url"]) as answer:
            assert answer.read() == stored


@pytest.mark.local_only
def test_a_job_deleted_after_its_ticket_is_not_there(target: Target, watcher: Open, nonce: str) -> None:
    job_id = submitted(target, nonce)
    target.final(job_id)
    anna = watcher(job_id)
    assert target.request("DELETE", f"/jobs/{job_id}").status == 204
    assert anna.watch(job_id)["code"] == "not_found"


@pytest.mark.local_only
def test_whoever_is_gone_is_forgotten_though_nobody_said_so(target: Target, watcher: Open, nonce: str) -> None:
    """WS-02: a connection that API Gateway loses without `$disconnect`."""
    target.script({"match": nonce, "deltas": DELTAS, "frame_s": FRAME_S})
    job_id = submitted(target, nonce)
    anna, ben = watcher(job_id), watcher(job_id)
    anna.watch(job_id)
    (lost,) = [
        one["connection_id"]
        for one in target.control("GET", "connections")["connections"]
        if job_id in json.dumps(rows(target, f"conn#{one['connection_id']}", f"job#{job_id}"))
    ]
    ben.watch(job_id)
    target.control("POST", "connections/lose", {"connection_id": lost})
    speak_on(target, ben, job_id)
    assert ben.heard(job_id).text == "".join(DELTAS)
    for pk in (f"conn#{lost}", f"job#{job_id}"):
        eventually(lambda pk=pk: rows(target, pk), lambda found: found == [])  # type: ignore[misc]


def rows(target: Target, pk: str, sk: str = "") -> list[Any]:
    """What the table of connections has of it."""
    found: list[Any] = target.client("dynamodb").query(
        TableName=target.outputs["ConnectionsTableName"],
        KeyConditionExpression="pk = :pk AND begins_with(sk, :sk)" if sk else "pk = :pk",
        ExpressionAttributeValues={":pk": {"S": pk}, **({":sk": {"S": sk}} if sk else {})},
        ConsistentRead=True,
    )["Items"]
    return found
