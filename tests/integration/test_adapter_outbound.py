"""The Poster port: one POST to a checked address under one deadline, whatever a stranger's server does."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lambdas.adapters import answered, outbound
from lambdas.adapters.outbound import CheckedPoster, look_up
from lambdas.core.webhooks.ports import Answer, Undelivered
from tests.integration.receivers import (
    Authority,
    Behave,
    Receiver,
    authority,
    ending,
    endless,
    never_closing,
    receiving,
    saying,
)

SOON_S = 0.4  # the deadline of an attempt that is expected to miss it
ENOUGH_S = 60.0  # nobody waits for it
HEADERS = {"content-type": "application/json", "webhook-id": "m1"}
BODY = b'{"b":1.0,"a":"Gr\xc3\xbc\xc3\x9fe"}'
PUBLIC, NAME = "93.184.216.34", "hooks.example.com"


def post(receiver: Receiver, timeout_s: float = ENOUGH_S) -> Answer:
    return CheckedPoster(local=True).post(receiver.url, HEADERS, BODY, timeout_s)


def why(behave: Behave, timeout_s: float = ENOUGH_S) -> str:
    with receiving(behave) as receiver, pytest.raises(Undelivered) as caught:
        post(receiver, timeout_s)
    assert "key=1" not in caught.value.detail
    return caught.value.why


def heard(behave: Behave, timeout_s: float = ENOUGH_S) -> Answer:
    with receiving(behave) as receiver:
        return post(receiver, timeout_s)


class World:
    """Names, and where they lead: every address is the receiver on loopback, and who connected to what is seen."""

    def __init__(self, receiver: Receiver, *answers: Sequence[str]) -> None:
        self.receiver = receiver
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []
        self.connected: list[tuple[str, int]] = []
        self.dead: set[str] = set()

    def resolve(self, name: str, port: int, timeout_s: float) -> Sequence[str]:
        assert timeout_s > 0
        self.asked.append((name, port))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def connect(self, address: str, port: int, timeout_s: float) -> socket.socket:
        self.connected.append((address, port))
        if address in self.dead:
            raise ConnectionRefusedError(111, "Connection refused")
        return socket.create_connection(("127.0.0.1", self.receiver.port), timeout_s)

    def poster(self, trust: Any = None, *, local: bool = False) -> CheckedPoster:
        return CheckedPoster(local=local, resolve=self.resolve, connect=self.connect, trust=trust)


# --- what is sent, and what comes back --------------------------------------------------------------
def test_the_request_is_sent_to_the_byte_and_the_answer_read() -> None:
    said = b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\ncontent-length: 5\r\n\r\nlater"
    with receiving(saying(said)) as receiver:
        answer = post(receiver)
    assert (answer.status, answer.retry_after, answer.excerpt) == (503, "120", "later")
    assert answer.ms >= 0
    (request,) = receiver.requests
    head, _, body = request.partition(b"\r\n\r\n")
    assert body == BODY
    assert head.split(b"\r\n") == [
        b"POST /hook?key=1 HTTP/1.1",
        f"host: 127.0.0.1:{receiver.port}".encode(),
        b"user-agent: Neverdrop-Webhooks/1",
        b"accept: */*",
        b"accept-encoding: identity",
        b"content-type: application/json",
        b"webhook-id: m1",
        f"content-length: {len(BODY)}".encode(),
        b"connection: close",
    ]


def test_a_body_that_no_buffer_holds_is_sent_whole() -> None:
    body = b"0123456789abcdef" * 500_000
    with receiving(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as receiver:
        CheckedPoster(local=True).post(receiver.url, HEADERS, body, ENOUGH_S)
    assert receiver.requests[0].endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize(("said", "status", "excerpt"), [
    (b"HTTP/1.1 200 OK\r\n\r\nuntil it closes", 200, "until it closes"),
    (b"HTTP/1.0 200\r\n\r\n", 200, ""),
    (b"HTTP/1.1 204 No Content\r\ncontent-length: 99\r\n\r\n", 204, ""),
    (b"HTTP/1.1 200 OK\nX: lines end so, too\n\nok", 200, "ok"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, "abcde"),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 202 OK\r\n\r\n", 202, ""),
    (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", 101, ""),
    (b"HTTP/1.1 200 OK\r\nno colon here\r\n folded: x\r\n: empty\r\n\r\nok", 200, "ok"),
    (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08", 200, ""),
    (b"HTTP/1.1 500 \xff\xfe\r\ncontent-length: nonsense\r\n\r\n\xff\xfeno text", 500, "no text"),
    (b"HTTP/1.1 999 Denied\r\ncontent-length: 5\r\n\r\ndenied", 999, "denie"),
])  # fmt: skip
def test_answers_in_many_forms(said: bytes, status: int, excerpt: str) -> None:
    answer = heard(saying(said))
    assert (answer.status, answer.excerpt) == (status, excerpt)


@pytest.mark.parametrize("body", [
    b"content-length: 100\r\n\r\nonly this",
    b"transfer-encoding: chunked\r\n\r\nff\r\nonly this",
    b"transfer-encoding: chunked\r\n\r\nnonsense\r\n",
    b"transfer-encoding: chunked\r\n\r\n" + b"0" * 100_000,
])  # fmt: skip
def test_an_answer_stands_though_its_body_is_cut_or_nonsense(body: bytes) -> None:
    assert heard(saying(b"HTTP/1.1 200 OK\r\n" + body)).status == 200


def test_an_excerpt_is_short_and_a_header_is_not_kept_for_its_length() -> None:
    answer = heard(saying(b"HTTP/1.1 400 No\r\nRetry-After: " + b"9" * 20_000 + b"\r\n\r\n" + b"\xc3\xbc" * 5_000))
    assert (len(answer.excerpt.encode()), len(answer.retry_after)) == (answered.EXCERPT_BYTES, 100)


@pytest.mark.parametrize("said", [
    b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 000 OK\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.9\r\n", b"\r\n\r\n", b"<html>\n", b"\x16\x03\x01\x02\x00\x01\n", b"ICY 200 OK\r\n\r\n",
    b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 +99 OK\r\n\r\n", "HTTP/1.1 ٢٠٠ OK\r\n\r\n".encode(),
])  # fmt: skip
def test_what_is_no_http_is_no_answer(said: bytes) -> None:
    assert why(saying(said)) == "malformed"


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nx: y\r\n", b"HTT"])
def test_a_connection_that_ends_before_the_headers_do_is_cut(said: bytes) -> None:
    assert why(saying(said) if said else ending) == "cut"


# --- one deadline for all of it ---------------------------------------------------------------------
class Time:
    """Of the poster: it passes when the test says so, and not because a machine is slow."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def monotonic(self) -> float:
        return self.at


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr("lambdas.adapters.outbound.time", made)
    return made


class Dripping(socket.socket):
    """A connection on which each byte that comes takes a second."""

    def __init__(self, plain: socket.socket, time: Time) -> None:
        super().__init__(fileno=plain.detach())
        self.time = time
        self.come = 0

    def recv(self, _most: int, _flags: int = 0) -> bytes:
        found = super().recv(1)
        self.come += len(found)
        self.time.at += len(found)
        return found


@pytest.fixture
def dripping(time: Time) -> tuple[CheckedPoster, list[Dripping]]:
    """A poster, and the connections that it has made."""
    made: list[Dripping] = []

    def connect(address: str, port: int, timeout_s: float) -> socket.socket:
        made.append(Dripping(outbound.connected(address, port, timeout_s), time))
        return made[-1]

    return CheckedPoster(local=True, connect=connect), made


def test_wh_11_a_byte_at_a_time_does_not_outlast_the_deadline(dripping: tuple[CheckedPoster, list[Dripping]]) -> None:
    text = b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100 + b"\r\n"
    poster, connections = dripping
    with receiving(saying(text)) as receiver, pytest.raises(Undelivered) as caught:
        poster.post(receiver.url, HEADERS, BODY, ENOUGH_S)
    assert caught.value.why == "timeout"
    assert [one.come for one in connections] == [ENOUGH_S], "each of them came in time for any timeout of one read"


def test_who_never_answers_and_never_closes_is_left() -> None:
    assert why(never_closing(), SOON_S) == "timeout"
    assert why(never_closing(b"HTTP/1.1 200 OK\r\n"), SOON_S) == "timeout"


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\nsome"])
def test_who_has_answered_and_never_closes_has_answered(
    time: Time, monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    stock = answered._read_body

    def nearly_too_late(*given: Any) -> None:
        time.at += ENOUGH_S - SOON_S
        stock(*given)

    monkeypatch.setattr(answered, "_read_body", nearly_too_late)
    assert heard(never_closing(head), ENOUGH_S).status == 200


def test_a_body_that_drips_changes_nothing_about_the_answer(dripping: tuple[CheckedPoster, list[Dripping]]) -> None:
    poster, connections = dripping
    with receiving(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n" + b"x" * 400)) as receiver:
        assert poster.post(receiver.url, HEADERS, BODY, ENOUGH_S).status == 200
    assert [one.come for one in connections] == [ENOUGH_S]


def test_who_does_not_read_what_it_is_sent_is_left() -> None:
    def deaf(own: Receiver, peer: socket.socket) -> None:
        own.over.wait()

    with receiving(deaf) as receiver:
        with pytest.raises(Undelivered) as caught:
            CheckedPoster(local=True).post(receiver.url, HEADERS, b"x" * 20_000_000, SOON_S)
        receiver.over.set()
    assert caught.value.why == "timeout"


def test_a_large_body_arrives_whole_though_its_receiver_is_slow() -> None:
    body = bytes(range(256)) * 40_000  # more than the buffers between them hold

    def slow(own: Receiver, peer: socket.socket) -> None:
        own.over.wait(0.1)
        saying(b"HTTP/1.1 200 OK\r\n\r\n")(own, peer)

    with receiving(slow) as receiver:
        assert CheckedPoster(local=True).post(receiver.url, HEADERS, body, ENOUGH_S).status == 200
    assert receiver.requests[0].partition(b"\r\n\r\n")[2] == body


def test_the_deadline_is_over_before_anything_was_done() -> None:
    world = World(Receiver(0), [PUBLIC])
    with pytest.raises(Undelivered) as caught:
        world.poster().post(f"https://{NAME}/", HEADERS, BODY, 0)
    assert (caught.value.why, world.asked, world.connected) == ("timeout", [], [])


# --- never more than a bounded part -----------------------------------------------------------------
@pytest.mark.parametrize("head", [
    b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
])  # fmt: skip
def test_of_a_gigabyte_a_little_is_read_and_the_rest_is_not_waited_for(head: bytes) -> None:
    with receiving(endless(head, b"x" * 65_536)) as receiver:
        assert post(receiver).status == 200
    assert receiver.sent < 2**25, "what the two buffers between them hold"


@pytest.mark.parametrize(
    "block", [b"1\r\nx\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n", b"1;" + b"y" * 30_000 + b"\r\nx\r\n"]
)
def test_nor_of_one_in_chunks(block: bytes) -> None:
    with receiving(endless(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", block)) as receiver:
        assert post(receiver).status == 200
    assert receiver.sent < 2**25


@pytest.mark.parametrize("block", [b"x: y\r\n", b"x" * 65_536, b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_headers_without_an_end_are_no_answer(block: bytes) -> None:
    head = b"" if block.startswith(b"HTTP") else b"HTTP/1.1 200 OK\r\n"
    with receiving(endless(head, block)) as receiver, pytest.raises(Undelivered) as caught:
        post(receiver)
    assert caught.value.why == "malformed"
    assert receiver.sent < 2**25


# --- where it goes ----------------------------------------------------------------------------------
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_wh_04_a_redirect_is_an_answer_and_is_not_followed(status: int) -> None:
    with receiving(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as inside:
        location = f"HTTP/1.1 {status} Moved\r\nLocation: {inside.url}\r\ncontent-length: 0\r\n\r\n"
        with receiving(saying(location.encode())) as receiver:
            assert post(receiver).status == status
    assert (receiver.connections, inside.connections) == (1, 0)


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("authority"))


def test_wh_02_the_address_that_was_checked_is_the_one_connected_to(ca: Authority) -> None:
    with receiving(saying(b"HTTP/1.1 200 OK\r\n\r\n"), tls=ca.server(NAME)) as receiver:
        world = World(receiver, [PUBLIC], ["169.254.169.254"])
        poster = world.poster(ca.trust)
        assert poster.post(f"https://{NAME}:8443/x", HEADERS, BODY, ENOUGH_S).status == 200
        assert (world.asked, world.connected) == ([(f"{NAME}.", 8443)], [(PUBLIC, 8443)])
        with pytest.raises(Undelivered) as caught:
            poster.post(f"https://{NAME}:8443/x", HEADERS, BODY, ENOUGH_S)
    assert (caught.value.why, world.connected) == ("address", [(PUBLIC, 8443)])
    assert receiver.names == [NAME]
    assert f"host: {NAME}:8443".encode() in receiver.requests[0]


@pytest.mark.parametrize("addresses", [
    ["127.0.0.1"], ["::1"], ["10.0.0.1"], ["169.254.169.254"], ["fd00:ec2::254"], ["::ffff:127.0.0.1"], ["0.0.0.0"],
    ["64:ff9b::a9fe:a9fe"], ["2002:7f00:1::1"], ["fe80::1%eth0"], ["100.64.0.1"], ["224.0.0.1"], [],
    [PUBLIC, "10.0.0.1"], ["2606:2800::1", "::1"], ["nonsense"],
])  # fmt: skip
def test_wh_01_where_a_name_leads_inside_nothing_is_connected_to(addresses: list[str]) -> None:
    world = World(Receiver(0), addresses)
    with pytest.raises(Undelivered) as caught:
        world.poster().post(f"https://{NAME}/", HEADERS, BODY, ENOUGH_S)
    assert (caught.value.why, world.connected) == ("address", [])


@pytest.mark.parametrize("url", [
    "http://hooks.example.com/", "https://127.0.0.1/", "https://2130706433/", "https://127.1/", "https://[::1]/",
    "https://[::ffff:7f00:1]/", "https://user@hooks.example.com/", "https://hooks.example.com:22/", "https://localhost/",
    "https://hooks.example.com\\@127.0.0.1/", "https://0/", "file:///etc/passwd", "",
])  # fmt: skip
def test_wh_01_a_url_that_may_not_be_called_is_not_even_looked_up(url: str) -> None:
    world = World(Receiver(0), [PUBLIC])
    with pytest.raises(Undelivered) as caught:
        world.poster().post(url, HEADERS, BODY, ENOUGH_S)
    assert (caught.value.why, world.asked, world.connected) == ("address", [], [])


def test_an_address_that_is_written_out_is_not_looked_up(ca: Authority) -> None:
    with receiving(ending, tls=ca.server(NAME)) as receiver:
        world = World(receiver, ["10.0.0.1"])
        with pytest.raises(Undelivered):
            world.poster(ca.trust).post(f"https://{PUBLIC}/", HEADERS, BODY, ENOUGH_S)
    assert (world.asked, world.connected) == ([], [(PUBLIC, 443)])


def test_on_a_developers_machine_loopback_is_called_and_the_network_around_it_is_not() -> None:
    with receiving(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as receiver:
        world = World(receiver, ["127.0.0.1"], ["192.168.1.1"])
        poster = world.poster(local=True)
        assert poster.post(f"http://receiver:{receiver.port}/", HEADERS, BODY, ENOUGH_S).status == 200
        with pytest.raises(Undelivered):
            poster.post("http://receiver/", HEADERS, BODY, ENOUGH_S)
    assert world.asked == [("receiver", receiver.port), ("receiver", 80)]
    assert world.connected == [("127.0.0.1", receiver.port)]


def test_the_next_address_is_tried_when_one_refuses() -> None:
    with receiving(saying(b"HTTP/1.1 200 OK\r\n\r\n")) as receiver:
        world = World(receiver, ["127.0.0.1", "127.0.0.2", "127.0.0.3"])
        world.dead = {"127.0.0.1"}
        assert world.poster(local=True).post("http://receiver/", HEADERS, BODY, ENOUGH_S).status == 200
    assert [address for address, _ in world.connected] == ["127.0.0.1", "127.0.0.2"]


def test_when_all_refuse_nobody_was_reached() -> None:
    world = World(Receiver(0), ["127.0.0.1", "127.0.0.2"])
    world.dead = {"127.0.0.1", "127.0.0.2"}
    with pytest.raises(Undelivered) as caught:
        world.poster(local=True).post("http://receiver/", HEADERS, BODY, ENOUGH_S)
    assert (caught.value.why, len(world.connected)) == ("connect", 2)


def test_a_port_where_nobody_listens_is_no_answer() -> None:
    with receiving(ending) as receiver:
        pass
    with pytest.raises(Undelivered) as caught:
        post(receiver)
    assert caught.value.why == "connect"


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert heard(saying(b"HTTP/1.1 200 OK\r\n\r\n")).status == 200


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nb", "", "\x00", "ü", " leading", "a\x7f"])
def test_a_header_that_could_end_another_is_not_sent(value: str) -> None:
    with receiving(ending) as receiver, pytest.raises(ValueError, match="webhook-id"):
        CheckedPoster(local=True).post(receiver.url, {"webhook-id": value}, BODY, ENOUGH_S)
    assert receiver.connections == 0


# --- TLS --------------------------------------------------------------------------------------------
def tls_trouble(
    ca: Authority, server: Any, trust: Any = None, behave: Behave = ending, timeout_s: float = ENOUGH_S
) -> str:
    with receiving(behave, tls=server) as receiver, pytest.raises(Undelivered) as caught:
        World(receiver, [PUBLIC]).poster(trust or ca.trust).post(f"https://{NAME}/", HEADERS, BODY, timeout_s)
    assert receiver.requests == [], "nothing is said to who has not proved who it is"
    return caught.value.why


def test_a_certificate_of_another_name_does_not_hold(ca: Authority) -> None:
    assert tls_trouble(ca, ca.server("other.example.com")) == "tls"


def test_a_certificate_whose_time_is_over_does_not_hold(ca: Authority) -> None:
    assert tls_trouble(ca, ca.server(NAME, days=-2)) == "tls"


def test_a_certificate_of_an_unknown_authority_does_not_hold(ca: Authority, tmp_path: Path) -> None:
    assert tls_trouble(ca, authority(tmp_path).server(NAME)) == "tls"
    assert tls_trouble(ca, ca.server(NAME), outbound.public_trust) == "tls"


def test_who_speaks_no_tls_gets_nothing(ca: Authority) -> None:
    def plain(own: Receiver, peer: socket.socket) -> None:
        peer.recv(65_536)
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")

    assert tls_trouble(ca, None, behave=plain) == "tls"


def test_a_handshake_that_never_ends_is_left(ca: Authority) -> None:
    def silent(own: Receiver, peer: socket.socket) -> None:
        peer.settimeout(60)
        while peer.recv(65_536):
            pass

    assert tls_trouble(ca, None, behave=silent, timeout_s=SOON_S) == "timeout"


def test_public_trust_checks_names_and_certificates() -> None:
    context = outbound.public_trust()
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"
    assert context.minimum_version.name == "TLSv1_2"
    assert len(context.get_ca_certs()) > 50


# --- the lookup -------------------------------------------------------------------------------------
def test_a_name_leads_to_each_of_its_addresses_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(name: str, port: int, **_: Any) -> list[Any]:
        assert (name, port) == ("a.example.", 443)
        return [(0, 0, 0, "", (address, port)) for address in ("1.1.1.1", "2606:4700::1", "1.1.1.1")]

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    assert look_up("a.example.", 443, ENOUGH_S) == ["1.1.1.1", "2606:4700::1"]


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
def test_a_name_that_leads_nowhere_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def asked(*_: Any, **__: Any) -> list[Any]:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    with pytest.raises(Undelivered) as caught:
        look_up("a.example.", 443, ENOUGH_S)
    assert caught.value.why == "lookup"


@pytest.mark.usefixtures("time")
def test_a_lookup_that_hangs_does_not_outlast_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    freed = threading.Event()

    def asked(*_: Any, **__: Any) -> list[Any]:
        freed.wait(ENOUGH_S)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    with pytest.raises(Undelivered) as caught:
        CheckedPoster().post(f"https://{NAME}/", HEADERS, BODY, SOON_S)
    left_behind = [thread for thread in threading.enumerate() if thread.name == "lookup"]
    freed.set()
    for thread in left_behind:
        thread.join(ENOUGH_S)
    assert caught.value.why == "timeout"
    assert [thread.daemon for thread in left_behind] == [True], "it keeps no process from ending"
