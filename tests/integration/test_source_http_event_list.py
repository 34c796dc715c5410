"""The plug-in that reads a list over HTTP, against a server that keeps to nothing."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lambdas.core import times
from lambdas.core.inbox.listing import Ask, Event, Page
from lambdas.core.ports import Unavailable
from lambdas.sources import BadPlugin, fetching, load, names
from lambdas.sources.http_event_list.source import pages
from tests.builders import later

Script = Callable[[socket.socket, str], None]
PATIENCE_S = 60.0  # for a peer that was expected


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its reads may take that long, too."""
    monkeypatch.setattr(fetching, "CONNECT_S", PATIENCE_S)


class Server:
    """Answers each connection by the script; `requests`: what was asked; `left`: a client has gone in mid-answer."""

    def __init__(self, script: Script) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.requests: list[str] = []
        self._script, self._stopping, self.left = script, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/list"

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(PATIENCE_S)
                asked = connection.recv(65_536).decode()
                self.requests.append(asked)
                try:
                    self._script(connection, asked)
                except OSError:
                    self.left.set()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Script], Server]]:
    servers: list[Server] = []

    def start(script: Script) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def answering(body: Any, status: str = "200 OK", headers: str = "") -> Script:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(raw)}\r\n{headers}\r\n".encode()
    return lambda connection, _: connection.sendall(head + raw)


def ask(url: str, *, cursor: str = "", token: str = "", seconds: float = PATIENCE_S) -> Page:
    return pages(Ask({"url": url}, token, later(days=-30), later(-900), cursor, seconds))


AN_EVENT = {"id": "e-1", "time": "2026-11-29T14:00:00Z", "body": '{"a": 1}'}


def test_a_page_has_the_events_and_what_to_ask_for_next(serve: Callable[[Script], Server]) -> None:
    server = serve(answering({"events": [AN_EVENT, {**AN_EVENT, "id": "e-2", "body": {"a": "ü"}}], "cursor": "next"}))
    page = ask(f"{server.url}?kind=order#part", cursor="a b", token="secret")
    at = times.instant("2026-11-29T14:00:00Z")
    assert page == Page([Event("e-1", at, b'{"a": 1}'), Event("e-2", at, '{"a":"ü"}'.encode())], "next")
    (asked,) = server.requests
    assert asked.startswith(
        "GET /list?kind=order&since=2026-10-30T15%3A30%3A44.123Z&until=2026-11-29T15%3A15%3A44.123Z&cursor=a+b HTTP/1.1"
    )
    assert "Authorization: Bearer secret\r\n" in asked


def test_without_a_token_none_is_sent(serve: Callable[[Script], Server]) -> None:
    server = serve(answering({"events": []}))
    assert ask(server.url) == Page([], "")
    assert "uthorization" not in server.requests[0]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no json",
        [],
        {},
        {"events": "e-1"},
        b'{"events": [], "events": []}',
        {"events": None},
        {"events": [], "cursor": 5},
        {"events": [], "cursor": "x" * 5_000},
    ],
)
def test_a_page_that_is_not_as_agreed_is_refused(serve: Callable[[Script], Server], body: Any) -> None:
    with pytest.raises(Unavailable) as refused:
        ask(serve(answering(body)).url)
    assert not refused.value.throttled


@pytest.mark.parametrize(
    ("status", "throttled"),
    [("429 Slow down", True), ("503 Busy", True), ("502 Bad", True), ("500 Broken", False), ("401 Who", False)],
)
def test_any_other_status_is_no_page(serve: Callable[[Script], Server], status: str, throttled: bool) -> None:
    with pytest.raises(Unavailable, match=status[:3]) as refused:
        ask(serve(answering({"events": []}, status)).url)
    assert refused.value.throttled is throttled


def test_a_redirect_is_not_followed(serve: Callable[[Script], Server]) -> None:
    elsewhere = serve(answering({"events": []}))
    server = serve(answering(b"", "302 Found", f"Location: {elsewhere.url}\r\n"))
    with pytest.raises(Unavailable, match="302"):
        ask(server.url, token="secret")
    assert elsewhere.requests == []


def drip(connection: socket.socket, _: str) -> None:
    """For two minutes, or until the client goes."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    for _n in range(6_000):
        connection.sendall(b" ")
        time.sleep(0.02)


def drip_headers(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    for _n in range(6_000):
        connection.sendall(b"x")
        time.sleep(0.02)


@pytest.mark.parametrize("script", [drip, drip_headers])
def test_an_answer_that_drips_is_cut_when_its_time_is_over(serve: Callable[[Script], Server], script: Script) -> None:
    server = serve(script)
    with pytest.raises(Unavailable, match=r"no whole answer within 0\.2 s"):
        ask(server.url, seconds=0.2)
    assert not any(isinstance(thread, threading.Timer) for thread in threading.enumerate())
    assert server.left.wait(PATIENCE_S), "it had more to say"


def test_who_thinks_longer_than_a_connection_may_take_is_waited_for(
    serve: Callable[[Script], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "CONNECT_S", 0.2)

    def think(connection: socket.socket, request: str) -> None:
        time.sleep(0.5)
        answering({"events": []})(connection, request)

    assert not ask(serve(think).url).events


def test_a_page_above_its_bound_is_not_read_to_its_end(
    serve: Callable[[Script], Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lambdas.sources.http_event_list.source.PAGE_BYTES", 1_000)
    with pytest.raises(Unavailable, match="more than 1,000 bytes"):
        ask(serve(answering(b" " * 200_000)).url)


def test_a_page_that_was_cut_is_no_page(serve: Callable[[Script], Server]) -> None:
    def cut(connection: socket.socket, _: str) -> None:
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"events": []}')

    with pytest.raises(Unavailable, match="IncompleteRead"):
        ask(serve(cut).url)


def test_nobody_there_is_an_outage() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unavailable, match="ConnectionRefusedError"):
        ask(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize("url", ["http://shop.example.com/list", "ftp://127.0.0.1/", "file:///etc/passwd", "shop", ""])
def test_a_list_is_read_over_https_alone(url: str) -> None:
    with pytest.raises(Unavailable, match="over https"):
        ask(url)


def test_plug_ins_are_found_by_their_folders() -> None:
    assert "http_event_list" in names()
    assert load("http_event_list") is pages
    for name in ("no_such", "../tasks", ""):
        with pytest.raises(BadPlugin, match="there is no"):
            load(name)


def test_the_connection_is_checked_against_known_authorities() -> None:
    assert fetching._trust().check_hostname
