"""The client's own limits on a real wire: a wait that is over although nobody answers, and what is never sent."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import httpx
import pytest

from neverdrop_client import BadArgument, Client, NoAnswer, NotFound, NotYet, Retry, Throttled, Unavailable
from tests.integration.client_time import PATIENT_S, passing
from tests.integration.command_line import job
from tests.integration.scripted_api import Reply, ScriptedApi, gateway, problem
from tests.integration.streams import polled, told


@pytest.fixture
def silent() -> Iterator[str]:
    """Takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each request may take: it is answered, and waits for that. A pause takes no time, and passes all the
    same."""
    allowed: list[float] = []
    request = httpx.Client.request

    def seen(self: httpx.Client, *args: object, **more: object) -> httpx.Response:
        timeout = more["timeout"]
        assert isinstance(timeout, httpx.Timeout)
        allowed.append(timeout.read or 0)
        return request(self, *args, **{**more, "timeout": httpx.Timeout(PATIENT_S)})  # type: ignore[arg-type]

    monkeypatch.setattr(httpx.Client, "request", seen)
    passing(monkeypatch, "http", "client")
    return allowed


def test_a_wait_is_over_in_its_time_where_the_api_takes_a_request_and_stays_silent(
    silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neverdrop_client.http.LEAST_S", 0.05)
    with Client(silent) as client, pytest.raises(NotYet) as caught:
        client.wait("j1", timeout=0.2)
    assert isinstance(caught.value.error, NoAnswer)
    assert caught.value.job == {"job_id": "j1"}


def test_no_request_of_a_wait_may_take_longer_than_is_left(api: ScriptedApi, asked_for: list[float]) -> None:
    api.on("GET /jobs/j1", job(status="PENDING"))
    with Client(api.url) as client, pytest.raises(NotYet, match="it is PENDING"):
        client.wait("j1", timeout=3)
    held = [int(seen.query["wait"]) for seen in api.requests]
    assert all(hold < most <= 3 for hold, most in zip(held, asked_for, strict=True))
    assert asked_for == sorted(asked_for, reverse=True)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [(gateway(429, "slow"), Throttled), (gateway(503, "down"), Unavailable), (Reply(is_cut=True), NoAnswer)],
)
def test_a_wait_that_is_over_tells_how_the_job_was_seen_last_and_why_it_no_longer_is(
    api: ScriptedApi, asked_for: list[float], reply: Reply, kind: type[Exception]
) -> None:
    api.on("GET /jobs/j1", job(status="PROCESSING"), reply)
    with Client(api.url) as client, pytest.raises(NotYet, match="it is PROCESSING; ") as caught:
        client.wait("j1", timeout=5)
    assert type(caught.value.error) is kind
    assert len(asked_for) > 2


@pytest.mark.usefixtures("asked_for")
def test_a_wait_at_a_closed_port_is_over_in_its_time() -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(NotYet):
        client.wait("j1", timeout=3)


@pytest.mark.usefixtures("asked_for")
def test_a_wait_goes_on_behind_a_passing_failure_and_stops_at_a_lasting_one(api: ScriptedApi) -> None:
    api.on("GET /jobs/j1", gateway(429, "slow"), job(status="PENDING"), problem(404, "There is no job"))
    with Client(api.url) as client, pytest.raises(NotFound):
        client.wait("j1", timeout=60)
    api.on("GET /jobs/j1", Reply(501, {"message": "no"}))
    with Client(api.url) as client, pytest.raises(Unavailable):
        client.wait("j1", timeout=60)


def _never(retry: Retry) -> None:
    pytest.fail(f"asked once more after {retry.error!r}")


class Careless(httpx.Auth):
    """Writes a header that cannot be sent."""

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = "Bearer sekret\n"
        yield request


@pytest.mark.parametrize("act", [lambda client: client.job("j1"), lambda client: client.retry("j1")])
def test_a_header_that_http_cannot_carry_is_sent_not_even_once_and_not_shown(
    api: ScriptedApi, act: Callable[[Client], object]
) -> None:
    with Client(api.url, auth=Careless(), on_retry=_never) as client, pytest.raises(BadArgument) as caught:
        act(client)
    assert "sekret" not in str(caught.value)
    assert caught.value.__context__ is None
    assert api.requests == []


def test_a_ticket_that_leads_to_no_host_is_none(api: ScriptedApi) -> None:
    api.on("POST /tickets", Reply(201, {"url": "wss://x.example/\ud800"}))
    api.on("GET /jobs/j1/chunks", polled("a", is_final=True))
    api.on("GET /jobs/j1", job(status="FAILED"))
    with Client(api.url) as client:
        assert told(list(client.stream("j1"))) == ["a", "FAILED"]
