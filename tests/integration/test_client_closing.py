"""A stream that is closed from another thread, asked for its text at any time, or told to begin again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from neverdrop_client import Client, Event, JobFailed, Stream, StreamClosed, Text
from tests.integration.client_time import patient_sockets
from tests.integration.command_line import job
from tests.integration.scripted_api import Reply, ScriptedApi, Seen, gateway
from tests.integration.scripted_sockets import Line, ScriptedSockets
from tests.integration.streams import chunks, final, polled, restarted, told, watching

WHOLE = ["a", "b", "c"]


@pytest.fixture
def client(api: ScriptedApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    patient_sockets(monkeypatch)
    with Client(api.url) as made:
        yield made


@contextmanager
def socket_of(api: ScriptedApi, script: Callable[[Line], None]) -> Iterator[ScriptedSockets]:
    server = ScriptedSockets(script)
    api.on("POST /tickets", Reply(201, {"url": f"{server.url}?ticket=t"}))
    try:
        yield server
    finally:
        server.end()


class Reader:
    """Reads a stream in a thread of its own."""

    def __init__(self, stream: Stream) -> None:
        self.events: list[Event] = []
        self.errors: list[BaseException] = []
        self.has_some = threading.Event()
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            for event in self._stream:
                self.events.append(event)
                self.has_some.set()
        except BaseException as error:
            self.errors.append(error)

    def ends(self) -> bool:
        self._thread.join(60)
        return not self._thread.is_alive()


# --- closed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_stream_is_closed_while_another_thread_waits_for_its_next_piece(
    client: Client, api: ScriptedApi, *, says_goodbye: bool
) -> None:
    over = threading.Event()

    def script(line: Line) -> None:
        line.heard()
        line.say(watching(), chunks("a"))
        if says_goodbye:
            line.wait()
        else:
            over.wait(300)

    with socket_of(api, script) as server:
        stream = client.stream("j1")
        reader = Reader(stream)
        try:
            assert reader.has_some.wait(60)
            stream.close()
            assert reader.ends()
        finally:
            over.set()
    assert (told(reader.events), reader.errors) == (["a"], [])
    assert len(server.paths) == 1  # and it does not come back


def test_a_stream_that_polls_is_closed_between_two_answers(client: Client, api: ScriptedApi) -> None:
    api.on("GET /jobs/j1/chunks", polled("a"), polled(start=1))
    stream = client.stream("j1")
    reader = Reader(stream)
    assert reader.has_some.wait(60)
    stream.close()
    assert reader.ends()
    assert (told(reader.events), reader.errors) == (["a"], [])


def test_a_stream_that_polls_is_closed_while_an_answer_is_under_way_and_hands_out_nothing_of_it(
    client: Client, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.on("GET /jobs/j1/chunks", polled("a"))
    answer = api.answer

    def closing(seen: Seen) -> Reply:
        if seen.path.endswith("/chunks"):
            stream.close()
        return answer(seen)

    monkeypatch.setattr(api, "answer", closing)
    stream = client.stream("j1")
    assert list(stream) == []
    assert len(api.of("GET /jobs/j1/chunks")) == 1


def test_a_stream_is_closed_while_it_waits_to_ask_an_api_that_is_away(
    api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neverdrop_client.http.LONGEST_PAUSE_S", 600.0)
    api.on("GET /jobs/j1/chunks", polled("a"), gateway(503, "down", Retry_After="600"))
    waits = threading.Event()
    with Client(api.url, on_retry=lambda _retry: waits.set()) as client:
        stream = client.stream("j1")
        reader = Reader(stream)
        assert waits.wait(60)
        stream.close()
        assert reader.ends()
    assert (told(reader.events), reader.errors) == (["a"], [])


def test_a_stream_that_is_closed_asks_nothing_and_ends_only_once(client: Client, api: ScriptedApi) -> None:
    stream = client.stream("j1")
    stream.close()
    stream.close()
    assert list(stream) == []
    assert api.requests == []


def test_a_stream_that_is_closed_by_who_hears_of_its_retries_ends(api: ScriptedApi) -> None:
    streams: list[Stream] = []
    api.on("POST /tickets", gateway(503, "down"))
    with Client(api.url, on_retry=lambda _retry: streams[0].close()) as client:
        streams.append(client.stream("j1"))
        assert list(streams[0]) == []
    assert len(api.requests) == 1


# --- its text --------------------------------------------------------------------------------------------------------


@pytest.fixture
def finished(api: ScriptedApi) -> ScriptedApi:
    """A job of three pieces, told from where it is asked for. Its chunks come one by one, by polling."""
    api.on("GET /jobs/j1/chunks", polled(*WHOLE, is_final=True))
    api.on("GET /jobs/j1", job())
    api.on("GET /jobs/j1/result", {})
    return api


@pytest.mark.usefixtures("finished")
def test_all_of_the_text_is_told_also_when_some_of_it_was_read(client: Client) -> None:
    stream = client.stream("j1")
    assert next(stream) == Text(1, 0, "a")
    assert stream.text() == "abc"
    assert stream.text() == "abc"
    read = client.stream("j1")
    assert told(list(read)) == [*WHOLE, "COMPLETED"]
    assert read.text() == "abc"
    assert client.stream("j1", after=Text(1, 1, "b")).text() == "abc"


@pytest.mark.usefixtures("finished")
def test_the_text_of_a_stream_that_was_closed_is_an_error_and_not_a_part_of_it(client: Client) -> None:
    with client.stream("j1") as stream:
        next(stream)
    with pytest.raises(StreamClosed, match="stream of job j1"):
        stream.text()
    unread = client.stream("j1")
    unread.close()
    with pytest.raises(StreamClosed):
        unread.text()


def test_a_stream_that_is_closed_while_its_text_is_read_has_none(client: Client, api: ScriptedApi) -> None:
    def script(line: Line) -> None:
        line.heard()
        line.say(watching(), chunks("a"))
        stream.close()

    with socket_of(api, script):
        stream = client.stream("j1")
        with pytest.raises(StreamClosed):
            stream.text()


def test_the_text_of_a_job_that_failed_is_all_of_it_too(client: Client, finished: ScriptedApi) -> None:
    finished.on("GET /jobs/j1", job(status="FAILED"))
    stream = client.stream("j1")
    next(stream)
    with pytest.raises(JobFailed) as caught:
        stream.text()
    assert caught.value.text == "abc"


# --- begun again within an attempt -----------------------------------------------------------------------------------

FAR = Text(1, 499, "of something else")


def test_a_poll_from_behind_the_end_begins_again_with_the_same_attempt(client: Client, finished: ScriptedApi) -> None:
    finished.on("GET /jobs/j1/chunks", polled("a", "b", is_restarted=True), polled("c", start=2, is_final=True))
    assert told(list(client.stream("j1", after=FAR))) == ["!1", "a", "b", "c", "COMPLETED"]
    assert [one.query["from"] for one in finished.of("GET /jobs/j1/chunks")] == ["500", "2"]


def test_a_watch_from_behind_the_end_begins_again_with_the_same_attempt_whatever_is_lost(
    client: Client, api: ScriptedApi
) -> None:
    answer = [watching(start=0), restarted(1), chunks(*WHOLE), final(3)]
    for lost in range(-1, 2):
        left = [frame for n, frame in enumerate(answer) if n != lost]

        def script(line: Line, frames: list[dict[str, Any]] = left) -> None:
            line.heard()
            line.say(*frames)
            line.wait()

        with socket_of(api, script):
            assert told(list(client.stream("j1", after=FAR))) == ["!1", *WHOLE, "COMPLETED"]


def test_an_end_with_fewer_pieces_than_were_counted_voids_them(client: Client, api: ScriptedApi) -> None:
    def script(line: Line) -> None:
        line.heard()
        line.say(watching(start=500), final(3))
        assert line.heard()["from"] == 0
        line.say(watching(), chunks(*WHOLE), final(3))
        line.wait()

    with socket_of(api, script):
        assert told(list(client.stream("j1", after=FAR))) == ["!1", *WHOLE, "COMPLETED"]
