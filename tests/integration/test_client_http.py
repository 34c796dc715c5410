"""The client over HTTP: what is sent, what is sent again, and what a refusal becomes; streams by polling."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from neverdrop_client import (
    BadArgument,
    BearerAuth,
    Client,
    Conflict,
    Final,
    Gone,
    Invalid,
    JobFailed,
    NeverdropError,
    NoAnswer,
    NoSuchRoute,
    NotFound,
    NotPermitted,
    NotYet,
    Refused,
    Retry,
    Throttled,
    Unavailable,
    Unexpected,
)
from neverdrop_client.request import is_local
from tests.integration.client_time import passing, patient_requests
from tests.integration.command_line import job
from tests.integration.scripted_api import Reply, ScriptedApi, gateway, problem
from tests.integration.streams import polled, told

ACCEPTED = Reply(202, {"job_id": "j1", "status": "PENDING", "links": {"self": "/jobs/j1"}})


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """They take no time, and pass all the same."""
    patient_requests(monkeypatch)
    return passing(monkeypatch, "http", "client", "polling")


@pytest.fixture
def client(api: ScriptedApi) -> Iterator[Client]:
    with Client(api.url) as made:
        yield made


# --- submitting ----------------------------------------------------------------------------------------------------


def test_a_submission_says_what_is_wished_and_no_more(client: Client, api: ScriptedApi) -> None:
    api.on("POST /jobs", ACCEPTED)
    wishes: dict[str, Any] = {
        "stream": True, "callback_url": "https://x.example/", "not_before": "2026-12-01T00:00:00Z", "fresh": True,
        "urgent": True,
    }  # fmt: skip
    assert client.submit("t", {"ü": 1}, key="call 4711", **wishes)["job_id"] == "j1"
    client.submit("t", [])
    first, second = api.requests
    assert first.json() == {"type": "t", "input": {"ü": 1}, **wishes}
    assert second.json() == {"type": "t", "input": []}
    assert first.headers["idempotency-key"] == "call 4711"
    assert len(second.headers["idempotency-key"]) == 36


def test_every_repetition_of_a_submission_has_the_same_key(
    client: Client, api: ScriptedApi, pauses: list[float]
) -> None:
    api.on("POST /jobs", Reply(is_cut=True), gateway(500, "died"), problem(503, "unknown", Retry_After="2"), ACCEPTED)
    client.submit("t", {})
    assert len(api.requests) == 4
    assert len({(seen.headers["idempotency-key"], seen.body) for seen in api.requests}) == 1
    assert pauses[-1] == 2.0


def test_a_submission_that_failed_can_be_repeated_by_its_key(client: Client, api: ScriptedApi) -> None:
    api.on("POST /jobs", problem(503, "not known"))
    with pytest.raises(Unavailable) as caught:
        client.submit("t", {})
    assert {seen.headers["idempotency-key"] for seen in api.requests} == {caught.value.idempotency_key}


@pytest.mark.parametrize("key", ["", " led", "trailing ", "tab\there", "ümlaut", "x" * 256])
def test_a_key_that_no_header_can_carry_is_not_sent(client: Client, api: ScriptedApi, key: str) -> None:
    with pytest.raises(BadArgument):
        client.submit("t", {}, key=key)
    assert api.requests == []


# --- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind", "told_"),
    [
        (problem(400, "wait is wrong"), Invalid, "wait is wrong"),
        (problem(422, "must be string", "/input/text"), Invalid, "must be string (at /input/text)"),
        (gateway(401, "Unauthorized"), NotPermitted, "Unauthorized"),
        (gateway(403, "Forbidden"), NotPermitted, "Forbidden"),
        (problem(404, "There is no job"), NotFound, "There is no job"),
        (gateway(404, "Not Found"), NoSuchRoute, "no such route"),
        (problem(409, "It is COMPLETED"), Conflict, "It is COMPLETED"),
        (problem(410, "deleted"), Gone, "deleted"),
        (gateway(429, "slow"), Throttled, "429: slow"),
        (gateway(503, "down"), Unavailable, "503: down"),
        (Reply(418, b"<html>"), Invalid, "<html>"),
    ],
)
def test_a_refusal_is_an_exception_of_its_kind_with_the_problem(
    client: Client, api: ScriptedApi, reply: Reply, kind: type[Refused], told_: str
) -> None:
    api.on("GET /jobs/j1", reply)
    with pytest.raises(kind, match=told_.replace("(", r"\(").replace(")", r"\)")) as caught:
        client.job("j1")
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.problem) == (reply.status, {} if reply.status == 418 else reply.body)


@pytest.mark.parametrize("reply", [Reply(200, b"<html>"), Reply(200, ["list"]), Reply(200, {"status": "ok"})])
def test_an_answer_that_is_none_of_neverdrops_is_said_to_be(client: Client, api: ScriptedApi, reply: Reply) -> None:
    api.on("GET /jobs/j1", reply)
    with pytest.raises(Unexpected):
        client.job("j1")


@pytest.mark.parametrize("trouble", [gateway(500, "dead"), Reply(is_cut=True)])
def test_what_may_have_been_done_is_not_done_again(client: Client, api: ScriptedApi, trouble: Reply) -> None:
    for route, act in (
        ("POST /jobs/j1/retry", lambda: client.retry("j1")),
        ("POST /webhooks/w1/ping", lambda: client.webhooks.ping("w1")),
        ("POST /webhooks/w1/rotate", lambda: client.webhooks.rotate("w1", at_once=True)),
    ):
        api.on(route, trouble)
        with pytest.raises(NeverdropError, match="look before you repeat"):
            act()
        assert len(api.of(route)) == 1


@pytest.mark.parametrize(
    ("written", "least", "most"),
    [
        ("7", 7, 7), ("86400", 30, 30), ("soon", 0, 1), ("-1", 0, 1), ("", 0, 1),
        (format_datetime(datetime.now(UTC) + timedelta(days=9), usegmt=True), 30, 30),
        (format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True), 0, 1), ("Mon, 99 Foo", 0, 1),
    ],
    ids=["seconds", "too-many", "a-word", "negative", "empty", "a-date-ahead", "a-date-behind", "no-date"],
)  # fmt: skip
def test_retry_after_is_kept_to_within_reason(
    api: ScriptedApi, pauses: list[float], written: str, least: float, most: float
) -> None:
    heard: list[Retry] = []
    api.on("GET /jobs/j1", gateway(429, "slow", Retry_After=written), job())
    with Client(api.url, on_retry=heard.append) as client:
        client.job("j1")
    assert [one.pause_s for one in heard] == pauses
    assert least <= pauses[0] <= most
    assert isinstance(heard[0].error, Throttled)


def test_an_api_that_is_not_there_is_told_without_doubt(pauses: list[float]) -> None:
    with Client("http://127.0.0.1:1") as client, pytest.raises(NoAnswer) as caught:
        client.retry("j1")
    assert not caught.value.in_doubt
    assert len(pauses) == 4  # it never left: even this may be repeated


@pytest.mark.parametrize(
    "url",
    ["http://api.example.com", "ftp://127.0.0.1", "https://", "https://a:b@x.example", "https://x.example?a=b", "x"],
)
def test_an_address_that_leaks_or_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(BadArgument):
        Client(url)


def test_an_id_cannot_leave_its_place_in_the_path(client: Client, api: ScriptedApi) -> None:
    with pytest.raises(NoSuchRoute):
        client.cancel("../x?y#z ü")
    assert api.requests[0].path == "/jobs/..%2Fx%3Fy%23z%20%C3%BC/cancel"
    for none in ("..", ".", "", "x" * 300):
        for act in (client.job, client.stream, client.result, client.webhooks.get):
            with pytest.raises(BadArgument):
                act(none)
    assert len(api.requests) == 1


def test_a_token_is_asked_for_with_each_request(api: ScriptedApi) -> None:
    tokens = iter(["one", "two", "three"])
    api.on("GET /jobs/j1", gateway(503, "x"), job())
    with Client(api.url, auth=BearerAuth(lambda: next(tokens))) as client:
        client.job("j1")
    assert [seen.headers["authorization"] for seen in api.requests] == ["Bearer one", "Bearer two"]


# --- waiting and results -------------------------------------------------------------------------------------------


def test_wait_holds_on_until_the_job_is_completed(client: Client, api: ScriptedApi, pauses: list[float]) -> None:
    api.on("GET /jobs/j1", job(status="PENDING"), gateway(503, "x"), job(status="PROCESSING"), job())
    assert client.wait("j1")["status"] == "COMPLETED"
    assert {seen.query["wait"] for seen in api.requests} == {"20"}
    assert all(pause <= 1 for pause in pauses)


@pytest.mark.parametrize("status", ["FAILED", "CANCELLED"])
def test_wait_for_a_job_that_ends_badly_raises_its_error(client: Client, api: ScriptedApi, status: str) -> None:
    api.on("GET /jobs/j1", job(status=status, error={"code": "MODEL_PERMANENT", "message": "no"}))
    with pytest.raises(JobFailed, match=f"job j1 is {status}: MODEL_PERMANENT: no") as caught:
        client.wait("j1")
    assert (caught.value.code, caught.value.message, caught.value.status) == ("MODEL_PERMANENT", "no", status)


def test_wait_ends_with_its_time(client: Client, api: ScriptedApi) -> None:
    api.on("GET /jobs/j1", job(status="WAITING"))
    with pytest.raises(NotYet, match="it is WAITING"):
        client.wait("j1", timeout=3)
    assert len(api.requests) in (3, 4)
    assert [int(seen.query["wait"]) for seen in api.requests] == sorted(
        (int(seen.query["wait"]) for seen in api.requests), reverse=True
    )
    with pytest.raises(NotYet):
        client.wait("j1", timeout=0)


def test_wait_ends_with_its_time_also_where_nobody_answers(
    client: Client, api: ScriptedApi, pauses: list[float]
) -> None:
    api.on("GET /jobs/j1", gateway(503, "down", Retry_After="25"))
    with pytest.raises(NotYet, match="it was not seen; the API answered 503: down") as caught:
        client.wait("j1", timeout=7)
    assert caught.value.job == {"job_id": "j1"}
    assert 6 < sum(pauses) <= 7


def test_an_api_that_is_away_is_waited_for_as_long_as_is_reasonable(
    client: Client, api: ScriptedApi, pauses: list[float]
) -> None:
    api.on("GET /jobs/j1", gateway(503, "down"))
    with pytest.raises(Unavailable):
        client.wait("j1")
    assert 50 < sum(pauses) <= 60


def test_a_result_of_any_size_is_its_json(client: Client, api: ScriptedApi) -> None:
    api.on("GET /jobs/j1/result", {"a": 1}, Reply(303, {}, {"Location": f"{api.url}/bucket/k?X-Amz-Signature=abc"}))
    api.on("GET /bucket/k", Reply(500), Reply(is_cut=True), ["large"])
    with Client(api.url, auth=BearerAuth(lambda: "secret")) as signed:
        assert signed.result("j1") == {"a": 1}
        assert signed.result("j1") == ["large"]
    assert all("authorization" not in seen.headers for seen in api.of("GET /bucket/k"))


def test_a_result_that_is_not_there_is_said_so(client: Client, api: ScriptedApi) -> None:
    api.on("GET /jobs/j1/result", Reply(202, job(status="PENDING")), problem(409, "it failed"))
    with pytest.raises(NotYet):
        client.result("j1")
    with pytest.raises(Conflict):
        client.result("j1")


def test_a_presigned_url_is_in_no_message_and_no_log(
    client: Client, api: ScriptedApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for place in (f"{api.url}/bucket/k", "http://127.0.0.1:1/k", "nowhere"):
        api.on("GET /jobs/j1/result", Reply(303, {}, {"Location": f"{place}?X-Amz-Signature=s3cret"}))
        api.on("GET /bucket/k", Reply(403, b"<Error>s3cret</Error>"))
        with pytest.raises(NoAnswer) as caught:
            client.result("j1")
        assert "s3cret" not in str(caught.value)
    assert "s3cret" not in " ".join(record.getMessage() for record in caplog.records)


# --- endpoints -----------------------------------------------------------------------------------------------------


def test_endpoints_are_registered_looked_at_and_let_go(client: Client, api: ScriptedApi) -> None:
    one = {"id": "w1", "url": "https://x.example/"}
    api.on("POST /webhooks", Reply(201, {**one, "secret": "whsec_x"}))
    api.on("GET /webhooks", {"webhooks": [one]})
    api.on("GET /webhooks/w1", one)
    api.on("GET /webhooks/w1/secret", {"id": "w1", "secret": "whsec_x"})
    api.on("DELETE /webhooks/w1", Reply(204))
    api.on("POST /webhooks/w1/rotate", {"id": "w1", "secret": "whsec_y", "previous": "whsec_x"})
    api.on("POST /webhooks/w1/ping", Reply(202, {"id": "w1", "event_id": "e1"}))
    for action in ("disable", "enable"):
        api.on(f"POST /webhooks/w1/{action}", one)
        assert getattr(client.webhooks, action)("w1") == one
    assert client.webhooks.ping("w1") == "e1"
    assert client.webhooks.rotate("w1")["previous"] == "whsec_x"
    client.webhooks.rotate("w1", at_once=True)
    assert [seen.body for seen in api.of("POST /webhooks/w1/rotate")] == [b"", b'{"at_once": true}']
    assert client.webhooks.create("https://x.example/", events=["job.failed"], description="d")["secret"] == "whsec_x"
    assert api.of("POST /webhooks")[0].json() == {
        "url": "https://x.example/", "events": ["job.failed"], "description": "d",
    }  # fmt: skip
    assert client.webhooks.list() == [one]
    assert client.webhooks.get("w1") == one
    assert client.webhooks.secret("w1")["secret"] == "whsec_x"
    client.webhooks.delete("w1")


def test_a_job_is_delivered_once_more_to_all_or_to_one(client: Client, api: ScriptedApi) -> None:
    told_ = {"job_id": "j1", "event_id": "e1", "deliveries": [{"endpoint": "w1", "status": "PENDING"}]}
    api.on("POST /jobs/j1/redeliver", gateway(500, "died"), Reply(202, told_))
    assert client.redeliver("j1") == told_
    assert client.redeliver("j1", endpoint="callback") == told_
    assert [seen.body for seen in api.requests] == [b"", b"", b'{"endpoint": "callback"}']


# --- streams without WebSockets ------------------------------------------------------------------------------------


def test_a_stream_by_polling_goes_on_from_where_it_is(client: Client, api: ScriptedApi) -> None:
    api.on(
        "GET /jobs/j1/chunks", polled("a", "b"), polled(start=2), gateway(503, "x"), polled("b", "c", start=1),
        polled("x", attempt=2, is_restarted=True), polled(start=1, attempt=2, is_final=True),
    )  # fmt: skip
    api.on("GET /jobs/j1", job(attempt=2))
    api.on("GET /jobs/j1/result", {"done": True})
    events = list(client.stream("j1"))
    assert told(events) == ["a", "b", "c", "!2", "x", "COMPLETED"]
    assert isinstance(events[-1], Final)
    assert events[-1].result == {"done": True}
    asked = [seen.query for seen in api.of("GET /jobs/j1/chunks")]
    assert asked[0] == {"from": "0", "wait": "20"}
    assert [(one["from"], one["attempt"]) for one in asked[1:]] == [
        ("2", "1"), ("2", "1"), ("2", "1"), ("3", "1"), ("1", "2"),
    ]  # fmt: skip


def test_polling_asks_again_for_what_was_left_out_and_not_for_ever(client: Client, api: ScriptedApi) -> None:
    api.on("GET /jobs/j1/chunks", polled("b", start=1), polled("a", "b", is_final=True))
    api.on("GET /jobs/j1", job(status="FAILED"))
    assert told(list(client.stream("j1"))) == ["a", "b", "FAILED"]
    api.on("GET /jobs/j1/chunks", polled("b", start=1))
    with pytest.raises(Unexpected):
        list(client.stream("j1"))


def test_an_end_that_is_reopened_between_two_answers_is_not_the_end(client: Client, api: ScriptedApi) -> None:
    api.on(
        "GET /jobs/j1/chunks", polled("a", is_final=True), polled(attempt=2, is_restarted=True),
        polled("x", attempt=3, is_restarted=True, is_final=True),
    )  # fmt: skip
    api.on("GET /jobs/j1", job(status="PENDING", attempt=2), job(status="FAILED", attempt=3))
    assert told(list(client.stream("j1"))) == ["a", "!2", "x", "FAILED"]


@pytest.mark.parametrize("reply", [{**polled(), "texts": "x"}, {**polled(), "from": None}, {"final": False}, []])
def test_polling_takes_no_answer_that_is_none(client: Client, api: ScriptedApi, reply: Any) -> None:
    api.on("GET /jobs/j1/chunks", reply)
    with pytest.raises(Unexpected):
        list(client.stream("j1"))


def test_where_answers_are_not_held_the_pause_is_the_clients(
    client: Client, api: ScriptedApi, pauses: list[float]
) -> None:
    api.on("GET /jobs/j1/chunks", polled(), polled(), polled("a", is_final=True))
    api.on("GET /jobs/j1", job(status="FAILED"))
    assert told(list(client.stream("j1"))) == ["a", "FAILED"]
    assert len(pauses) == 2
    assert all(0.5 < pause <= 1 for pause in pauses)


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:8080", True), ("http://localhost:8080", True), ("http://[::1]:8080", True),
        ("https://127.0.0.1:8080", False), ("https://localhost", False), ("https://api.example.com", False),
    ],
)  # fmt: skip
def test_who_speaks_tls_is_a_host_like_any_other_whose_certificate_the_environment_may_vouch_for(url: str, here: bool):
    assert is_local(url) is here
