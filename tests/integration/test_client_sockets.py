"""A stream over WebSockets: whatever the server repeats, reorders, leaves out, garbles or breaks off, the text is
whole."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from neverdrop_client import Client, Final, JobFailed, NotFound, NotPermitted, Text
from neverdrop_client import sockets as client_sockets
from neverdrop_client import streaming as client_streaming
from tests.integration.client_time import PATIENT_S, passing, patient_sockets
from tests.integration.command_line import job
from tests.integration.scripted_api import Reply, ScriptedApi, gateway, problem
from tests.integration.scripted_sockets import Line, Script, ScriptedSockets
from tests.integration.streams import bare_final, chunks, final, part, polled, restarted, told, watching

WHOLE = ["Houston, ", "we've had ", "a problem."]

Serve = Callable[..., ScriptedSockets]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between connections take no time."""
    patient_sockets(monkeypatch)
    return passing(monkeypatch, "http", "streaming")


@pytest.fixture
def client(api: ScriptedApi) -> Iterator[Client]:
    with Client(api.url) as made:
        yield made


@pytest.fixture
def sockets(api: ScriptedApi) -> Iterator[Serve]:
    """Serve by scripts, one for each connection; each ticket is another one."""
    made: list[ScriptedSockets] = []

    def serve(*scripts: Script, tls: ssl.SSLContext | None = None) -> ScriptedSockets:
        server = ScriptedSockets(*scripts, tls=tls)
        made.append(server)
        tickets = [Reply(201, {"ticket": str(n), "url": f"{server.url}?ticket={n}"}) for n in range(50)]
        api.on("POST /tickets", *tickets)
        return server

    yield serve
    for server in made:
        server.end()


def honest(line: Line) -> None:
    """Says what it is asked for."""
    start = line.heard()["from"]
    line.say(watching(start=start), chunks(*WHOLE[start:], start=start), final(len(WHOLE), result={"done": True}))
    line.wait()


def saying(*frames: Any) -> Script:
    """Hears one watch, says this, and waits."""

    def script(line: Line) -> None:
        line.heard()
        line.say(*frames)
        line.wait()

    return script


def test_a_stream_is_its_texts_in_order_and_the_end(client: Client, sockets: Serve, api: ScriptedApi) -> None:
    server = sockets(honest)
    *texts, end = client.stream("j1")
    assert texts == [Text(1, n, text) for n, text in enumerate(WHOLE)]
    assert isinstance(end, Final)
    assert (end.attempt, end.chunks, end.result, end.job["status"]) == (1, 3, {"done": True}, "COMPLETED")
    assert server.heard[0] == {"action": "watch", "job_id": "j1", "from": 0}
    assert api.of("POST /tickets")[0].json() == {"job_ids": ["j1"]}
    assert client.stream("j1").text() == "".join(WHOLE)


def test_what_is_repeated_comes_once_and_what_is_reordered_in_order(client: Client, sockets: Serve) -> None:
    def script(line: Line) -> None:
        line.heard()
        line.say(
            watching(), chunks("a"), chunks("a", "b"), chunks("d", start=3), chunks("c", start=2), chunks("e", start=4)
        )
        again = line.heard()
        line.say(watching(start=again["from"]), chunks("d", "e", start=3), final(5), final(5))
        line.wait()

    server = sockets(script)
    assert told(list(client.stream("j1"))) == [*"abcde", "COMPLETED"]
    assert [one["from"] for one in server.heard] == [0, 2]
    assert server.heard[1]["attempt"] == 1


def test_a_gap_is_asked_for_on_the_same_connection_and_once(client: Client, sockets: Serve, api: ScriptedApi) -> None:
    def script(line: Line) -> None:
        line.heard()
        line.say(
            watching(), chunks("a"), *(chunks(text, start=n) for n, text in ((2, "c"), (3, "d"), (4, "e"))), final(5)
        )
        start = line.heard()["from"]
        line.say(watching(start=start), chunks(*"bcde", start=1), final(5))
        line.wait()

    server = sockets(script)
    assert told(list(client.stream("j1"))) == [*"abcde", "COMPLETED"]
    assert len(server.heard) == 2
    assert len(api.of("POST /tickets")) == 1


def test_an_end_before_the_last_chunks_is_a_gap_too(client: Client, sockets: Serve) -> None:
    def script(line: Line) -> None:
        line.heard()
        line.say(watching(), chunks("a"), final(2))
        line.heard()
        line.say(watching(start=1), chunks("b", start=1), final(2))

    sockets(script)
    assert told(list(client.stream("j1"))) == ["a", "b", "COMPLETED"]


def test_who_leaves_gaps_for_good_is_left_and_polled(client: Client, sockets: Serve, api: ScriptedApi) -> None:
    def script(line: Line) -> None:
        while True:
            line.heard()
            line.say(watching(), chunks("c", start=2))

    server = sockets(script)
    api.on("GET /jobs/j1/chunks", polled(*WHOLE, is_final=True))
    api.on("GET /jobs/j1", job())
    api.on("GET /jobs/j1/result", {})
    assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]
    assert len(server.heard) == client_streaming.FRUITLESS * (1 + client_sockets.MOST_GAPS)


# --- attempts ----------------------------------------------------------------------------------------------------


def test_a_new_attempt_voids_what_came_however_it_is_noticed(client: Client, sockets: Serve) -> None:
    begun = [watching(), chunks("a", "b")]
    for frames in (
        [restarted(2), chunks("x", attempt=2), final(1, attempt=2)],
        [chunks("x", attempt=2), final(1, attempt=2)],  # the word was lost
        [restarted(2), restarted(2), chunks("x", attempt=2), restarted(2), restarted(1), final(1, attempt=2)],
        [restarted(2), chunks("c", start=2), chunks("x", attempt=2), chunks("a", "b", "c"), final(1, attempt=2)],
    ):
        sockets(saying(*begun, *frames))
        assert told(list(client.stream("j1"))) == ["a", "b", "!2", "x", "COMPLETED"]


def test_a_restart_in_the_middle_of_which_all_was_missed_is_asked_for(client: Client, sockets: Serve) -> None:
    def script(line: Line) -> None:
        line.heard()
        line.say(watching(), chunks("a"), chunks("z", start=2, attempt=3))
        assert line.heard() == {"action": "watch", "job_id": "j1", "from": 1, "attempt": 1}
        line.say(watching(attempt=3), restarted(3), chunks(*"xyz", attempt=3), final(3, attempt=3))
        line.wait()

    sockets(script)
    assert told(list(client.stream("j1"))) == ["a", "!3", "x", "y", "z", "COMPLETED"]


def test_a_restart_before_any_text_is_not_worth_a_word(client: Client, sockets: Serve) -> None:
    sockets(saying(watching(attempt=0), restarted(1), chunks("a"), final(1)))
    assert told(list(client.stream("j1"))) == ["a", "COMPLETED"]


def test_an_end_that_was_reopened_since_is_not_the_end(client: Client, sockets: Serve) -> None:
    def script(line: Line) -> None:
        line.heard()
        line.say(watching(attempt=3), chunks("a", attempt=3), final(0, status="FAILED", attempt=1))
        line.heard()
        line.say(watching(attempt=3, start=1), chunks("b", start=1, attempt=3), final(2, attempt=3))

    sockets(script)
    assert told(list(client.stream("j1"))) == ["a", "b", "COMPLETED"]


def test_a_failed_attempt_without_text_ends_what_an_earlier_one_began(client: Client, sockets: Serve) -> None:
    sockets(saying(watching(), chunks("a"), final(0, status="FAILED", attempt=2)))
    assert told(list(client.stream("j1"))) == ["a", "!2", "FAILED"]


def test_what_a_client_counted_in_something_else_is_void(client: Client, sockets: Serve) -> None:
    """The API has no such chunk: it tells the attempt from its beginning."""
    sockets(saying(watching(start=0), restarted(1), chunks("a", "b"), final(2)))
    assert told(list(client.stream("j1", after=Text(1, 6, "of another job")))) == ["!1", "a", "b", "COMPLETED"]


def test_a_stream_goes_on_behind_a_text_that_was_seen(client: Client, sockets: Serve) -> None:
    server = sockets(honest)
    first = next(client.stream("j1"))
    assert isinstance(first, Text)
    assert told(list(client.stream("j1", after=first))) == [*WHOLE[1:], "COMPLETED"]
    assert server.heard[-1] == {"action": "watch", "job_id": "j1", "from": 1, "attempt": 1}


def test_the_text_of_a_job_that_ended_badly_comes_with_the_error(client: Client, sockets: Serve) -> None:
    ended = final(2, status="CANCELLED")
    sockets(saying(watching(), chunks("half ", "of it"), ended))
    with pytest.raises(JobFailed) as caught:
        client.stream("j1").text()
    assert (caught.value.text, caught.value.status) == ("half of it", "CANCELLED")


# --- broken connections --------------------------------------------------------------------------------------------

GARBAGE: list[Any] = [
    "", "no JSON", "[]", "null", "3", b"\x00\xff", "[" * 5_000, '{"type": "chunks"}',
    {**chunks("x", start=1), "texts": "x"}, {**chunks("x", start=1), "texts": [None]}, {**chunks("x"), "from": -1},
    {**chunks("x"), "from": "0"}, {**chunks("x"), "attempt": True}, {**final(1), "job": None},
    {**final(1), "chunks": 1.0}, final(1, status="PROCESSING"), {**part(0, 1, "x"), "part": 1}, part(0, 10**6, "x"),
    "x" * 200_000,
    {"type": "error", "code": "unavailable", "detail": "x", "job_id": "j1"},
    {"type": "error", "code": "x", "detail": "x"}, {}, {"message": "Internal server error", "requestId": "r"},
]  # fmt: skip


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda one: repr(one)[:40])
def test_what_is_no_frame_costs_the_connection_and_nothing_else(
    client: Client, sockets: Serve, api: ScriptedApi, garbage: Any
) -> None:
    sockets(saying(watching(), chunks(WHOLE[0]), garbage), honest)
    assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]
    assert len(api.of("POST /tickets")) == 2


def test_what_is_about_others_or_not_known_yet_is_passed_over(client: Client, sockets: Serve) -> None:
    others = [{**frame, "job_id": "j2"} for frame in (chunks("no"), restarted(9), final(0))]
    later = [{"type": "pong"}, {"type": "unwatched", "job_id": "j1"}, {"type": "of next year", "job_id": "j1"}]
    sockets(saying(watching(), *others, *later, *(chunks(text, start=n) for n, text in enumerate(WHOLE)), final(3)))
    assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]


@pytest.mark.parametrize("is_clean", [True, False], ids=["closed", "broken off"])
def test_a_connection_lost_after_each_chunk_is_replaced_with_a_new_ticket(
    client: Client, sockets: Serve, hurry: list[float], is_clean: bool
) -> None:
    texts = [f"{n} " for n in range(20)]

    def script(line: Line) -> None:
        start = line.heard()["from"]
        line.say(watching(start=start), *(chunks(text, start=start) for text in texts[start : start + 1]))
        if start == len(texts):
            line.say(final(len(texts)))
        elif not is_clean:
            line.cut()

    server = sockets(script)
    assert told(list(client.stream("j1"))) == [*texts, "COMPLETED"]
    assert [one["from"] for one in server.heard] == [*range(21)]
    assert len(set(server.paths)) == 21
    assert hurry == []  # news is no reason to hesitate


def test_connections_that_bring_nothing_are_spaced_out_and_then_polled(
    client: Client, sockets: Serve, api: ScriptedApi, hurry: list[float]
) -> None:
    server = sockets(lambda line: line.cut())
    api.on("GET /jobs/j1/chunks", polled(*WHOLE, is_final=True))
    api.on("GET /jobs/j1", job())
    api.on("GET /jobs/j1/result", {"done": 1})
    *_, end = client.stream("j1")
    assert isinstance(end, Final)
    assert (end.result, end.chunks) == ({"done": 1}, 3)
    assert len(server.paths) == client_streaming.FRUITLESS == 1 + len(hurry)


@contextmanager
def listening(handle: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that speaks no protocol at all; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                kept.append(connection)
                handle(connection)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in kept:
                connection.close()


HEAD = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: wrong\r\n\r\n"
)


@pytest.mark.parametrize(
    "said", [None, b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", HEAD]
)
def test_where_nobody_speaks_websocket_it_is_polled(
    client: Client, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch, said: bytes | None
) -> None:
    if said is None:
        monkeypatch.setattr(client_sockets, "OPENING_S", 0.2)

    def handle(connection: socket.socket) -> None:
        if said is not None:
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)

    api.on("GET /jobs/j1/chunks", polled(*WHOLE, is_final=True))
    api.on("GET /jobs/j1", job())
    api.on("GET /jobs/j1/result", {})
    with listening(handle) as port:
        api.on("POST /tickets", Reply(201, {"url": f"ws://127.0.0.1:{port}/live?ticket=t"}))
        assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]


def test_an_opening_that_stalls_is_tried_once_more(
    client: Client, sockets: Serve, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = sockets(honest)
    monkeypatch.setattr(client_sockets, "OPENING_S", 0.2)

    def stall(_: socket.socket) -> None:
        monkeypatch.setattr(client_sockets, "OPENING_S", PATIENT_S)  # for the next

    with listening(stall) as port:
        places = f"ws://127.0.0.1:{port}/live?ticket=0", f"{server.url}?ticket=1"
        api.on("POST /tickets", *(Reply(201, {"url": url}) for url in places))
        assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]
    assert len(server.paths) == 1
    assert api.of("GET /jobs/j1/chunks") == []


def through(server: ScriptedSockets, bytes_: int) -> Callable[[socket.socket], None]:
    """A wire that breaks after so many bytes from the server, the first time; the others are whole."""
    first = [True]

    def pump(source: socket.socket, sink: socket.socket, left: int | None) -> None:
        try:
            while (left is None or left > 0) and (data := source.recv(65_536)):
                sink.sendall(data[:left])
                left = None if left is None else left - len(data)
        except OSError:
            pass
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def down(upstream: socket.socket, connection: socket.socket, left: int | None) -> None:
        with upstream:
            pump(upstream, connection, left)

    def handle(connection: socket.socket) -> None:
        host, port = server.url.split("/")[2].split(":")
        upstream = socket.create_connection((host, int(port)))
        left = bytes_ if first else None
        first.clear()
        threading.Thread(target=pump, args=(connection, upstream, None), daemon=True).start()
        threading.Thread(target=down, args=(upstream, connection, left), daemon=True).start()

    return handle


def test_a_wire_may_break_at_any_byte(client: Client, sockets: Serve, api: ScriptedApi) -> None:
    def script(line: Line) -> None:
        start = line.heard()["from"]
        line.say(watching(start=start), *(chunks(text, start=n) for n, text in enumerate(WHOLE) if n >= start))
        line.say(final(len(WHOLE), result="ü"))
        line.wait()

    server = sockets(script)
    for bytes_ in range(0, 1_000, 23):
        with listening(through(server, bytes_)) as port:
            api.on("POST /tickets", Reply(201, {"url": f"ws://127.0.0.1:{port}/live?ticket=t"}))
            *texts, end = client.stream("j1")
            assert [(one.n, one.text) for one in texts if isinstance(one, Text)] == [*enumerate(WHOLE)], bytes_
            assert isinstance(end, Final)
            assert end.result == "ü"


def in_silence(patch: pytest.MonkeyPatch, *after: int, begins: threading.Event) -> list[float]:
    """When so many messages have come, nobody says more until the client asks again: there its patience is over at
    once. Answers how long it was each time."""
    stock, come, left, patience = client_sockets._Socket.next, [0], list(after), list[float]()

    def next_(socket_: Any, timeout_s: float) -> Any:
        assert begins.wait(60)
        if come[0] in left:
            left.remove(come[0])
            patience.append(timeout_s)
            timeout_s = 0.01
        message = stock(socket_, timeout_s)
        come[0] += message is not None
        return message

    patch.setattr(client_sockets._Socket, "next", next_)
    return patience


def test_a_watch_that_nobody_answers_is_made_over_another_connection(
    client: Client, sockets: Serve, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = threading.Event()

    def silent(line: Line) -> None:
        line.heard()
        heard.set()
        line.wait()

    monkeypatch.setattr(client_sockets, "ANSWER_S", 90.0)
    patience = in_silence(monkeypatch, 0, begins=heard)
    sockets(silent, honest)
    assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]
    assert len(api.of("POST /tickets")) == 2
    assert patience == [90.0]


def test_who_hears_nothing_for_long_asks_again_over_the_same_connection(
    client: Client, sockets: Serve, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push was lost: nobody would ever tell."""
    monkeypatch.setattr(client_sockets, "LONGEST_IDLE_S", 300.0)
    heard = threading.Event()
    patience = in_silence(monkeypatch, 2, 3, 4, begins=heard)

    def script(line: Line) -> None:
        line.heard()
        heard.set()
        line.say(watching(), chunks(WHOLE[0]))
        for _ in range(2):
            start = line.heard()["from"]
            line.say(watching(start=start))
        start = line.heard()["from"]
        line.say(watching(start=start), chunks(*WHOLE[1:], start=1), final(3))
        line.wait()

    server = sockets(script)
    assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]
    assert [one["from"] for one in server.heard] == [0, 1, 1, 1]
    assert len(api.of("POST /tickets")) == 1
    assert patience == [client_sockets.IDLE_S, 2 * client_sockets.IDLE_S, 300.0]


def test_what_nobody_reads_waits_in_the_network(client: Client, sockets: Serve) -> None:
    """The server is held up, instead of the client filling its memory."""
    sent = [0]
    frame = json.dumps(chunks("x" * 30_000))

    def script(line: Line) -> None:
        line.heard()
        line.say(watching(), chunks("first"))
        for _ in range(20_000):
            line.say(frame)
            sent[0] += 1

    sockets(script)
    with client.stream("j1") as events:
        next(events)
        before = -1
        while before != sent[0] or not before:
            before = sent[0]
            time.sleep(0.2)
    assert before < 1_000


def test_a_stream_that_is_left_ends_its_connection(client: Client, sockets: Serve) -> None:
    gone = threading.Event()

    def script(line: Line) -> None:
        line.heard()
        line.say(watching(), chunks("a"))
        line.wait()
        gone.set()

    sockets(script)
    with client.stream("j1") as events:
        next(events)
    assert gone.wait(60)
    assert list(events) == []


# --- TLS -----------------------------------------------------------------------------------------------------------


def certificate(folder: Path) -> Path:
    """Of `localhost`, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "both.pem").write_bytes(made.public_bytes(Encoding.PEM) + key.private_bytes(*plain))
    return folder / "both.pem"


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_certificate_is_checked_as_that_of_the_api_is(
    client: Client,
    sockets: Serve,
    api: ScriptedApi,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    is_trusted: bool,
) -> None:
    both = certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.num_tickets = 0  # one thread of `websockets` reads them while another writes, which may stall
    tls.load_cert_chain(both)
    server = sockets(honest, tls=tls)
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(both))
    api.on("GET /jobs/j1/chunks", polled(*WHOLE, is_final=True))
    api.on("GET /jobs/j1", job())
    api.on("GET /jobs/j1/result", {})
    assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]
    assert len(server.paths) == (1 if is_trusted else 0)


# --- tickets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind"), [(problem(404, "no such job"), NotFound), (gateway(403, "Forbidden"), NotPermitted)]
)
def test_a_job_that_one_may_not_watch_is_an_error(
    client: Client, api: ScriptedApi, reply: Reply, kind: type[Exception]
) -> None:
    api.on("POST /tickets", reply)
    with pytest.raises(kind):
        next(client.stream("j1"))
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        gateway(404, "Not Found"), gateway(503, "down"), gateway(429, "slow"), Reply(is_cut=True),
        Reply(201, {"url": None}), Reply(201, b"<html>"), Reply(201, {"url": "ws://[broken"}), Reply(201, {"url": "ws://127.0.0.1:1/live?ticket=t"}),
        Reply(201, {"url": "https://127.0.0.1:1/live"}),
    ],
)  # fmt: skip
def test_where_no_ticket_can_be_had_it_is_polled(client: Client, api: ScriptedApi, reply: Reply) -> None:
    api.on("POST /tickets", reply)
    api.on("GET /jobs/j1/chunks", polled(*WHOLE, is_final=True))
    api.on("GET /jobs/j1", job())
    api.on("GET /jobs/j1/result", {})
    assert told(list(client.stream("j1"))) == [*WHOLE, "COMPLETED"]


def test_a_ticket_is_in_no_log(client: Client, sockets: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    sockets(lambda line: line.cut(), honest)
    list(client.stream("j1"))
    for record in caplog.records:
        if not record.name.startswith("websockets.server"):
            assert "ticket=" not in record.getMessage()


# --- results -------------------------------------------------------------------------------------------------------


def test_a_result_in_parts_is_put_together(client: Client, sockets: Serve) -> None:
    sockets(saying(watching(), part(1, 2, '"ö"}'), part(0, 2, '{"a":'), part(0, 2, '{"a":'), bare_final(0, parts=2)))
    (end,) = client.stream("j1")
    assert isinstance(end, Final)
    assert end.result == {"a": "ö"}


def test_parts_of_an_attempt_that_is_over_are_no_parts_of_the_result(client: Client, sockets: Serve) -> None:
    void = [part(n, 3, "void") for n in range(3)]
    whole = [part(0, 2, '{"a":', attempt=2), part(1, 2, "1}", attempt=2)]
    frames = [chunks("a"), *void, restarted(2), chunks("b", attempt=2), *whole, void[1]]
    sockets(saying(watching(), *frames, bare_final(1, attempt=2, parts=2)))
    *_, end = client.stream("j1")
    assert isinstance(end, Final)
    assert end.result == {"a": 1}


def test_a_large_result_is_fetched_without_an_identity(client: Client, sockets: Serve, api: ScriptedApi) -> None:
    api.on("GET /bucket/key", {"large": True})
    sockets(saying(watching(), bare_final(0, result_url=f"{api.url}/bucket/key?X-Amz-Signature=abc")))
    with Client(api.url, headers={"x-local-tenant": "alpha"}) as tenant:
        (end,) = tenant.stream("j1")
    assert isinstance(end, Final)
    assert end.result == {"large": True}
    assert "x-local-tenant" in api.of("POST /tickets")[0].headers
    assert "x-local-tenant" not in api.of("GET /bucket/key")[0].headers


@pytest.mark.parametrize(
    "frames",
    [
        [part(0, 2, "{"), bare_final(0, parts=2)], [part(0, 1, "{"), bare_final(0, parts=1)], [bare_final(0)],
        [bare_final(0, result_url="http://127.0.0.1:1/gone")],
    ],
)  # fmt: skip
def test_a_result_that_did_not_come_along_is_asked_for(
    client: Client, sockets: Serve, api: ScriptedApi, frames: list[Any]
) -> None:
    api.on("GET /jobs/j1/result", {"asked": "for"})
    sockets(saying(watching(), *frames))
    (end,) = client.stream("j1")
    assert isinstance(end, Final)
    assert end.result == {"asked": "for"}


def test_a_result_that_is_gone_is_none(client: Client, sockets: Serve, api: ScriptedApi) -> None:
    api.on("GET /jobs/j1/result", problem(410, "The result is gone"))
    sockets(saying(watching(), chunks("a"), bare_final(1)))
    assert told(list(client.stream("j1"))) == ["a", "COMPLETED"]
