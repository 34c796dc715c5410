"""What the client sends, what it refuses to send, and which answers it takes for one."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from neverdrop_client import (
    BadArgument,
    BearerAuth,
    Client,
    Conflict,
    NeverdropError,
    NoAnswer,
    NotFound,
    Retry,
    SigV4,
    Unexpected,
)
from neverdrop_client.http import fetch

PROBLEM = {"content-type": "application/problem+json"}
NONE = httpx.Response(404, headers=PROBLEM, json={"detail": "There is no such endpoint."})
SECRET = "sekret-token-123"
Step = httpx.Response | Exception


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neverdrop_client.http.time", SimpleNamespace(sleep=lambda _seconds: None, monotonic=lambda: 0))


class Api:
    """Answers one after the other, the last one for good, and keeps what it was asked."""

    def __init__(self, *steps: Step) -> None:
        self.steps, self.asked = list(steps), list[httpx.Request]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, Exception):
            raise step
        return step

    def client(self, **more: Any) -> Client:
        return Client("https://api.example.com", transport=httpx.MockTransport(self), **more)


def _never(retry: Retry) -> None:
    pytest.fail(f"asked once more after {retry.error!r}")


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# --- what cannot be written ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [f"{SECRET}\x00", f"{SECRET}\n2", f"{SECRET}é", f"{SECRET}\ud800", "", " \n", None])
def test_a_token_that_no_header_can_carry_is_refused_without_being_shown(token: Any) -> None:
    api = Api(httpx.Response(200))
    with pytest.raises(BadArgument) as caught:
        api.client(auth=BearerAuth(lambda: token), on_retry=_never).job("j1")
    assert SECRET not in "".join(traceback.format_exception_only(caught.value))
    assert not any(SECRET in repr(one) + repr(one.args) for one in chain(caught.value))
    assert api.asked == []


@pytest.mark.parametrize("token", [f"{SECRET}\n", f" {SECRET}", f"{SECRET}\r\n"])
def test_white_space_around_a_token_is_none_of_it(token: str) -> None:
    api = Api(httpx.Response(200, json={"job_id": "j1", "status": "PENDING"}))
    api.client(auth=BearerAuth(lambda: token)).job("j1")
    assert api.asked[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    "headers", [{"X-Api-Key": f"{SECRET}\n"}, {"X-Api-Key": f"{SECRET}é"}, {"X Api": "k"}, {"X-Api-Key": b"k"}]
)
def test_headers_that_cannot_be_written_are_refused_before_anything_is_asked(headers: Any) -> None:
    with pytest.raises(BadArgument) as caught:
        Api(httpx.Response(200)).client(headers=headers)
    assert not any(SECRET in repr(one) + repr(one.args) for one in chain(caught.value))


@pytest.mark.parametrize(
    "error",
    [
        httpx.LocalProtocolError(f"Illegal header value b'Bearer {SECRET}\\n'"),
        httpx.UnsupportedProtocol(SECRET),
        httpx.InvalidURL(SECRET),
        UnicodeEncodeError("ascii", f"{SECRET}é", 16, 17, "ordinal not in range"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_was_never_sent_is_neither_repeated_nor_in_doubt_nor_shown(error: Exception) -> None:
    api = Api(error)
    client = api.client(on_retry=_never)
    for act in (client.job, client.retry):
        with pytest.raises(BadArgument) as caught:
            act("j1")
        assert "not known" not in str(caught.value)
        assert not any(SECRET in repr(one) + repr(one.args) for one in chain(caught.value))
    assert len(api.asked) == 2


def test_a_proxy_that_lets_nobody_through_leaves_no_doubt() -> None:
    with pytest.raises(NoAnswer) as caught:
        Api(httpx.ProxyError("503 Service Unavailable")).client().retry("j1")
    assert not caught.value.in_doubt


@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.job("\ud800"),
        lambda client: client.stream("\ud800"),
        lambda client: client.webhooks.get("\ud800"),
        lambda client: client.submit_json('{"a": "\ud800"}'),
        lambda client: client.submit("t", b"bytes"),
        lambda client: client.submit("t", float("nan")),
        lambda client: client.submit("t", {}, key="k\ud800"),
    ],
)
def test_what_json_or_utf_8_cannot_say_is_not_sent(act: Callable[[Client], Any]) -> None:
    api = Api(httpx.Response(200))
    with pytest.raises(BadArgument) as caught:
        act(api.client())
    assert [*chain(caught.value)] == [caught.value]
    assert api.asked == []


@pytest.mark.parametrize("url", ["https://x.example/\ud800", f"https://user:{SECRET}"])
def test_an_address_that_is_none_is_not_shown(url: str) -> None:
    with pytest.raises(BadArgument) as caught:
        Client(url)
    assert not any(SECRET in str(one) for one in chain(caught.value))


@pytest.mark.parametrize("place", ["nowhere", "ftp://x.example/k", "https://x.example/\ud800", "https://x:y"])
def test_an_address_of_a_result_that_is_none_is_asked_for_once_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr("neverdrop_client.http.time", SimpleNamespace(sleep=pytest.fail))
    with pytest.raises(NoAnswer) as caught:
        fetch(f"{place}?X-Amz-Signature={SECRET}")
    assert not any(SECRET in str(one) for one in chain(caught.value))


# --- what is left out, and what is empty ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.redeliver("j1", endpoint=""),
        lambda client: client.webhooks.create("https://x.example/", events=[]),
        lambda client: client.webhooks.create("https://x.example/", events="job.failed"),
    ],
)
def test_an_empty_choice_is_not_that_of_everything(act: Callable[[Client], Any]) -> None:
    api = Api(httpx.Response(200))
    with pytest.raises(BadArgument):
        act(api.client())
    assert api.asked == []


def test_what_is_empty_and_may_be_is_sent_as_it_is() -> None:
    api = Api(httpx.Response(201, json={"id": "w1", "job_id": "j1"}))
    api.client().webhooks.create("https://x.example/", events=("job.failed",), description="")
    api.client().submit("t", {}, callback_url="", not_before="")
    api.client().submit_json("", key="k")
    created, submitted, empty = api.asked
    assert json.loads(created.content) == {"url": "https://x.example/", "events": ["job.failed"], "description": ""}
    assert json.loads(submitted.content) == {"type": "t", "input": {}, "callback_url": "", "not_before": ""}
    assert (empty.content, empty.headers["content-type"]) == (b"", "application/json")


def test_an_empty_region_is_not_the_hosts_own() -> None:
    with pytest.raises(BadArgument, match="which region"):
        SigV4(region="")._region_of("x.execute-api.us-east-1.amazonaws.com")


# --- answers -------------------------------------------------------------------------------------------------------

LOGIN = httpx.Response(302, headers={"location": "https://login.example.com/"})
ACTS: list[Callable[[Client], Any]] = [
    lambda client: client.delete("j1"),
    lambda client: client.webhooks.delete("w1"),
    lambda client: client.job("j1"),
    lambda client: client.result("j1"),
    lambda client: client.cancel("j1"),
    lambda client: client.submit("t", {}),
]


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("answer", [LOGIN, httpx.Response(200, text="<html>"), httpx.Response(304)])
def test_an_answer_that_neverdrop_does_not_give_is_not_taken_for_success(
    act: Callable[[Client], Any], answer: httpx.Response
) -> None:
    api = Api(answer)
    with pytest.raises(Unexpected):
        act(api.client())
    assert len(api.asked) == 1


@pytest.mark.parametrize("act", ACTS[:2])
def test_what_is_deleted_is_answered_with_204(act: Callable[[Client], Any]) -> None:
    act(Api(httpx.Response(204)).client())


@pytest.mark.parametrize("lost", [httpx.ReadTimeout("x"), httpx.Response(502), httpx.ReadError("x")])
def test_an_endpoint_that_is_gone_when_it_is_removed_once_more_was_removed(lost: Step) -> None:
    Api(lost, NONE).client().webhooks.delete("w1")


@pytest.mark.parametrize("before", [(), (httpx.Response(429),), (httpx.ConnectError("x"),)])
def test_an_endpoint_that_never_was_is_not_removed(before: tuple[Step, ...]) -> None:
    with pytest.raises(NotFound):
        Api(*before, NONE).client().webhooks.delete("w1")


@pytest.mark.parametrize(("before", "is_said"), [(httpx.ReadTimeout("x"), True), (httpx.Response(429), False)])
def test_a_conflict_may_be_of_ones_own_doing_only_where_something_may_have_been_done(
    before: Step, *, is_said: bool
) -> None:
    conflict = httpx.Response(409, headers=PROBLEM, json={"detail": "It is CANCELLED."})
    with pytest.raises(Conflict) as caught:
        Api(before, conflict).client().cancel("j1")
    assert caught.value.asked_before is is_said
    assert ("may have done it" in str(caught.value)) is is_said


def test_a_client_that_was_closed_asks_nothing() -> None:
    api = Api(httpx.Response(200))
    client = api.client()
    stream = client.stream("j1")
    client.close()
    for act in (lambda: client.job("j1"), lambda: next(stream)):
        with pytest.raises(BadArgument, match="closed"):
            act()
    assert api.asked == []


@pytest.mark.parametrize("before", [httpx.Response(503), httpx.Response(429), httpx.ConnectError("x")])
def test_a_client_that_is_closed_by_who_hears_of_its_retries_says_so_and_asks_no_more(before: Step) -> None:
    api, clients = Api(before), list[Client]()
    clients.append(api.client(on_retry=lambda _retry: clients[0].close()))
    with pytest.raises(NeverdropError) as caught:
        clients[0].cancel("j1")
    was_asked = isinstance(before, httpx.Response) and before.status_code == 503  # and it may have been carried out
    assert (type(caught.value), str(caught.value)) == (NoAnswer if was_asked else BadArgument, "this client was closed")
    assert len(api.asked) == 1


def test_a_client_that_is_closed_at_that_moment_by_another_thread_says_so() -> None:
    def closed_first(_request: httpx.Request) -> httpx.Response:
        client.close()
        raise RuntimeError("Cannot send a request, as the client has been closed.")

    client = Client("https://api.example.com", transport=httpx.MockTransport(closed_first))
    with pytest.raises(BadArgument, match="closed"):
        client.job("j1")


def test_what_else_is_wrong_in_a_program_is_not_taken_for_that() -> None:
    with pytest.raises(RuntimeError, match="of its own"):
        Api(RuntimeError("of its own")).client().job("j1")


def test_every_error_is_one_of_the_clients() -> None:
    for act in ACTS:
        with pytest.raises(NeverdropError):
            act(Api(httpx.DecodingError("x")).client())
