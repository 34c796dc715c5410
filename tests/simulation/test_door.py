"""Whatever a stranger sends to the door is answered by the right refusal with the place of what is wrong, and leaves
nothing behind: no record, no object, no 5xx."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.e2e.target import Answer, LocalStack, Target, eventually

PROBLEM, JSON = "application/problem+json", "application/json"
NOT_FOUND, TOO_LARGE = {"message": "Not Found"}, {"message": "Request Entity Too Large"}
WIRES = {
    "as-json": {"content-type": JSON},
    "as-base64": {},
    "as-form": {"content-type": "application/x-www-form-urlencoded"},
}
GOOD = b'{"type": "summarize", "input": {"text": "ANN: hello"}}'


@pytest.fixture(scope="module")
def door() -> Iterator[Target]:
    """A stack that works on nothing: what is let in stays where it is."""
    for stack in _stack():
        stack.control("POST", "pause", {"function": "worker"})
        yield stack


@pytest.fixture(scope="module")
def jwt_door() -> Iterator[Target]:
    yield from _stack("jwt_issuer=https://issuer.test", 'jwt_audience=["neverdrop"]')


def _stack(*settings: str) -> Iterator[Target]:
    local = LocalStack("--settings", "throttle_rate=1000", "throttle_burst=2000", *settings)
    try:
        target = local.ready()
        target.control("POST", "schedules/disable", {"function": "sweep"})  # it keeps books: more than the door wrote
        yield target
    finally:
        local.end()


@pytest.fixture(scope="module")
def count(door: Target) -> Callable[[], tuple[int, int]]:
    return counting(door)


@pytest.fixture
def untouched(door: Target, count: Callable[[], tuple[int, int]]) -> Iterator[Target]:
    """The stack; after the test it holds what it held before, and no function has failed."""
    door.control("DELETE", "invocations")
    before = count()
    yield door
    assert count() == before
    assert [one for one in door.control("GET", "invocations")["invocations"] if not one["ok"]] == []


def counting(stack: Target) -> Callable[[], tuple[int, int]]:
    """Counts what the door writes: records, and inputs in S3."""
    dynamodb, s3 = stack.client("dynamodb"), stack.client("s3")

    def count() -> tuple[int, int]:
        records = dynamodb.scan(TableName=stack.outputs["JobsTableName"], Select="COUNT")["Count"]
        return records, s3.list_objects_v2(Bucket=stack.outputs["InputsBucketName"])["KeyCount"]

    return count


def send(
    stack: Target, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str | bytes] | None = None
) -> Answer:
    """One request exactly as written: no header and no escape is added that a well-behaved client would add."""
    connection = http.client.HTTPConnection(urlsplit(stack.api).netloc, timeout=90)
    try:
        connection.putrequest(method, path)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def post(stack: Target, body: bytes, **headers: str | bytes) -> Answer:
    return send(stack, "POST", "/jobs", body, {name.replace("_", "-"): value for name, value in headers.items()})


def problem(answer: Answer, status: int) -> dict[str, Any]:
    """The problem that an answer is; AssertionError if it is none, or of another status."""
    assert (answer.status, answer.headers["content-type"]) == (status, PROBLEM), answer
    found: dict[str, Any] = answer.json()
    assert found["status"] == status
    assert found["type"].startswith("urn:neverdrop:problem:")
    assert found["title"]
    assert found["detail"]
    return found


# --- bodies ------------------------------------------------------------------------------------------------------


def summarize(task_input: str, more: str = "") -> bytes:
    return f'{{"type": "summarize", "input": {task_input}{more}}}'.encode()


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


NO_JSON = {
    "nothing": b"",
    "half an object": b"{bad",
    "two values": GOOD + GOOD,
    "a byte order mark": b"\xef\xbb\xbf" + GOOD,
    "UTF-16": GOOD.decode().encode("utf-16"),
    "no UTF-8": b'{"type": "summarize", "input": {"text": "\xff"}}',
    "a surrogate as bytes": b'{"type": "summarize", "input": {"text": "\xed\xa0\x80"}}',
    "100,000 brackets": b"[" * 100_000,
    "a document 900 deep": summarize(nested(900)),
    "an integer of 5,000 digits": summarize('{"text": ' + "9" * 5_000 + "}"),
    "NaN": summarize('{"text": NaN}'),
    "Infinity": summarize('{"text": Infinity}'),
    "-Infinity": summarize('{"text": -Infinity}'),
    "a number beyond a float": summarize('{"text": 1e400}'),
    "a name that stands twice": summarize('{"text": "a", "text": "b"}'),
    "a type that stands twice": b'{"type": "summarize", "type": "classify", "input": {}}',
    "a list": b"[]",
    "a text": b'"summarize"',
    "a number": b"7",
    "null": b"null",
}


@pytest.mark.parametrize("wire", ["as-json", "as-base64"])
@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_what_is_no_request_at_all_is_refused_as_a_whole(untouched: Target, body: bytes, wire: str) -> None:
    found = problem(send(untouched, "POST", "/jobs", body, WIRES[wire]), 400)
    assert found["errors"][0]["pointer"] in ("", "/input/0/0/0")  # a depth is found inside


BROKEN = {
    "half a surrogate pair": (summarize('{"text": "\\ud800"}'), 400, "/input/text"),
    "a pair the wrong way round": (summarize('{"text": "\\udc00\\ud800"}'), 400, "/input/text"),
    "half a pair in a name": (summarize('{"\\ud800": "a"}'), 400, "/input"),
    "a document 40 deep": (summarize(nested(40)), 400, "/input/0/0/0"),
    "no type": (b'{"input": {}}', 400, "/type"),
    "no input": (b'{"type": "summarize"}', 400, "/input"),
    "a type that is a number": (b'{"type": 7, "input": {}}', 400, "/type"),
    "a type that is null": (b'{"type": null, "input": {}}', 400, "/type"),
    "an empty type": (b'{"type": "", "input": {}}', 400, "/type"),
    "a type of 65 letters": (b'{"type": "' + b"t" * 65 + b'", "input": {}}', 400, "/type"),
    "a field that nobody knows": (summarize("{}", ', "colour": "red"'), 400, "/colour"),
    "a field whose name needs escapes": (summarize("{}", ', "a/b~c": 1'), 400, "/a~1b~0c"),
    "a tenant in the body": (summarize("{}", ', "tenant": "other"'), 400, "/tenant"),
    "fresh as a text": (summarize("{}", ', "fresh": "yes"'), 400, "/fresh"),
    "a time in words": (summarize('{"text": "a"}', ', "not_before": "yesterday"'), 400, "/not_before"),
    "a time without a zone": (summarize('{"text": "a"}', ', "not_before": "2026-12-01T00:00:00"'), 400, "/not_before"),
    "a time after all times": (summarize("{}", ', "not_before": "9999-12-31T23:59:59-01:00"'), 400, "/not_before"),
    "a day without a time": (summarize('{"text": "a"}', ', "not_before": "2026-12-01"'), 400, "/not_before"),
    "a time too far ahead": (summarize('{"text": "a"}', ', "not_before": "2099-01-01T00:00:00Z"'), 422, "/not_before"),
    "a webhook into a private network": (
        summarize('{"text": "a"}', ', "callback_url": "https://10.0.0.1/"'), 422, "/callback_url",
    ),
    "a webhook that is no URL": (summarize('{"text": "a"}', ', "callback_url": "a"'), 422, "/callback_url"),
    "a stream that is no yes or no": (summarize('{"text": "a"}', ', "stream": "yes"'), 400, "/stream"),
    "a budget, which comes later": (summarize("{}", ', "max_cost": "1.00"'), 400, "/max_cost"),
    "a task that nobody knows": (b'{"type": "no-such-task", "input": {}}', 422, "/type"),
    "a task's folder instead of its name": (b'{"type": "notify_by_email", "input": {}}', 422, "/type"),
    "an input that lacks a field": (summarize("{}"), 422, "/input/text"),
    "an input with one field too many": (summarize('{"text": "a", "b": 1}'), 422, "/input/b"),
    "an input of another kind": (summarize('"a"'), 422, "/input"),
    "an empty text": (summarize('{"text": ""}'), 422, "/input/text"),
    "a number where a text belongs": (summarize('{"text": 1}'), 422, "/input/text"),
    "an address that is none": (
        b'{"type": "notify-by-email", "input": {"to": "nobody", "about": "a"}}', 422, "/input/to",
    ),
    "an input above a million bytes": (summarize('{"text": "' + "x" * 1_000_000 + '"}'), 413, "/input"),
    "an input of four million bytes": (summarize('{"text": "' + "x" * 4_000_000 + '"}'), 413, "/input"),
}  # fmt: skip


@pytest.mark.parametrize("wire", ["as-json", "as-base64"])
@pytest.mark.parametrize(("body", "status", "pointer"), BROKEN.values(), ids=BROKEN)
def test_a_wrong_request_is_refused_with_the_place_of_what_is_wrong(
    untouched: Target, body: bytes, status: int, pointer: str, wire: str
) -> None:
    found = problem(send(untouched, "POST", "/jobs", body, WIRES[wire]), status)
    assert found["errors"][0]["pointer"] == pointer
    assert found["errors"][0]["detail"]


@pytest.mark.parametrize("megabytes", [7, 11])
def test_what_the_gateway_itself_does_not_take_is_refused_in_its_words(untouched: Target, megabytes: int) -> None:
    answer = post(untouched, summarize('{"text": "' + "x" * megabytes * 2**20 + '"}'), content_type=JSON)
    assert (answer.status, answer.json()) == (413, TOO_LARGE)


def test_a_body_means_the_same_however_it_is_wrapped(door: Target, nonce: str) -> None:
    """API-01: what has no content type of text arrives as base64, and its hash is that of the plain one."""
    answers = [post(door, GOOD, idempotency_key=nonce, **headers) for headers in _python_names(WIRES)]
    assert [answer.status for answer in answers] == [202] * 3
    assert len({answer.json()["job_id"] for answer in answers}) == 1


def _python_names(wires: Mapping[str, Mapping[str, str]]) -> list[dict[str, str]]:
    return [{name.replace("-", "_"): value for name, value in headers.items()} for headers in wires.values()]


# --- keys --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    ["", "   ", "k" * 256, "caf\xe9", "caf\xe9".encode(), b"\xff\xfe", "a\tb", "a\x7fb", "a\x01b"],
    ids=["empty", "blank", "256 letters", "latin-1", "UTF-8", "bytes", "tab", "delete", "control"],
)
def test_a_key_that_is_not_visible_ascii_of_255_at_most_is_refused(untouched: Target, key: str | bytes) -> None:
    assert "Idempotency-Key" in problem(post(untouched, GOOD, idempotency_key=key), 400)["detail"]


def test_a_key_of_255_letters_is_a_key(door: Target, nonce: str) -> None:
    assert post(door, GOOD, idempotency_key=nonce.ljust(255, "k")).status == 202


def test_a_keys_header_may_be_spelled_in_any_case(door: Target, nonce: str) -> None:
    names = ("idempotency-key", "Idempotency-Key", "IDEMPOTENCY-KEY")
    answers = [send(door, "POST", "/jobs", GOOD, {name: nonce}) for name in names]
    assert [answer.status for answer in answers] == [202] * 3
    assert len({answer.body for answer in answers}) == 1


def test_a_key_used_for_another_body_is_refused_and_goes_on_meaning_its_job(door: Target, nonce: str) -> None:
    first = post(door, GOOD, idempotency_key=nonce)
    refused = problem(post(door, GOOD.replace(b"hello", b"good-bye"), idempotency_key=nonce), 422)
    assert (refused["type"], refused["job_id"]) == ("urn:neverdrop:problem:key-reused", first.json()["job_id"])
    assert post(door, GOOD, idempotency_key=nonce).body == first.body


# --- methods, paths, queries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/jobs"), ("DELETE", "/jobs"), ("PATCH", "/jobs"), ("POST", "/jobs/a"), ("PUT", "/jobs/a"),
        ("POST", "/jobs/a/result"), ("POST", "/health"), ("GET", "/"), ("GET", "/nothing"), ("GET", "/jobs/a/nothing"),
        ("GET", "/jobs/a/b/result"), ("POST", "/JOBS"), ("BREW", "/jobs"),
    ],
)  # fmt: skip
def test_what_is_no_route_is_the_gateways_own_404(untouched: Target, method: str, path: str) -> None:
    answer = send(untouched, method, path, GOOD if method != "GET" else None, {"content-type": JSON})
    assert (answer.status, answer.headers["content-type"], answer.json()) == (404, JSON, NOT_FOUND)


QUERIES = [
    *(f"/jobs?limit={limit}" for limit in ("", "0", "101", "-1", "1.5", "1e1", "+5", "%205", "0005", "x", "%EF%BC%95")),
    "/jobs?limit=1&limit=2",
    f"/jobs?limit={'9' * 5_000}",
    *(f"/jobs?status={status}" for status in ("", "completed", "DELETED", "COMPLETED,FAILED", "%00")),
    *(f"/jobs?cursor={cursor}" for cursor in ("", "x", "%00", "e30%3D%3D%3D", "W10", "bnVsbA", "eyIwIjogWzFdfQ")),
    "/jobs?cursor=eyIwIjogWyI5OTk5LTEyLTMxVDIzOjU5OjU5LTAxOjAwIiwgImEiXX0",  # a time after all times
    f"/jobs?cursor={'W1tb' * 1_500}",  # brackets in brackets
    "/jobs?colour=red",
    "/jobs?Limit=5",
    *(f"/jobs/a?wait={wait}" for wait in ("", "21", "-1", "1.5", "x", "00002", "9" * 5_000, "%F0%9D%9F%8F")),
    "/jobs/a?weit=1",
]


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path[:40])
def test_a_query_that_cannot_be_meant_is_refused(untouched: Target, path: str) -> None:
    problem(send(untouched, "GET", path), 400)


IDS = [
    *("a", "null", "x" * 128, "x" * 129, "x" * 5_000, quote("😀"), "job%231", "'%20OR%201=1"),
    *("%00", "%20", "%25", "%2E%2E", "..%2F..%2Fetc", "%FF%FE", "%ED%A0%80", "a%0D%0Ab"),
]


@pytest.mark.parametrize("job_id", IDS, ids=lambda job_id: job_id[:20])
def test_an_id_that_is_none_is_a_job_that_is_not_there(untouched: Target, job_id: str) -> None:
    for rest in ("", "/result", "/events"):
        found = problem(send(untouched, "GET", f"/jobs/{job_id}{rest}"), 404)
        assert found["type"] == "urn:neverdrop:problem:no-such-job"


# --- tenants -----------------------------------------------------------------------------------------------------

NO_TENANTS = ["a b", "x" * 65, "caf\xe9", "a/b", "../a", "a|b", "a,b", "*"]


@pytest.mark.parametrize("tenant", NO_TENANTS)
def test_an_identity_without_a_proper_tenant_is_refused_everywhere(untouched: Target, tenant: str) -> None:
    as_tenant = {"x-local-tenant": tenant}
    problem(send(untouched, "POST", "/jobs", GOOD, as_tenant), 403)
    for path in ("/jobs", "/jobs/a", "/jobs/a/result", "/jobs/a/events"):
        assert problem(send(untouched, "GET", path, headers=as_tenant), 403)["type"].endswith(":no-tenant")


def test_with_tokens_the_tenant_is_their_claim(jwt_door: Target, nonce: str) -> None:
    job_id = jwt_door.submit("summarize", {"text": f"ANN: {nonce}"}, tenant="acme", key=nonce)
    assert jwt_door.record(job_id)["tenant"]["S"] == "acme"
    assert eventually(lambda: jwt_door.job(job_id, "acme"), lambda job: job["status"] == "COMPLETED")
    assert jwt_door.get(f"/jobs/{job_id}", "other").status == 404
    assert jwt_door.submit("summarize", {"text": f"ANN: {nonce}"}, tenant="other", key=nonce) != job_id


def test_with_tokens_a_claim_that_is_no_tenant_is_refused_and_records_nothing(jwt_door: Target) -> None:
    count = counting(jwt_door)
    before = count()
    for tenant in NO_TENANTS:
        found = problem(send(jwt_door, "POST", "/jobs", GOOD, {"x-local-tenant": tenant}), 403)
        assert "claim `tenant_id`" in found["detail"]
    assert count() == before


def test_health_and_contract_need_no_identity(jwt_door: Target) -> None:
    for path in ("/health", "/openapi.json"):
        assert send(jwt_door, "GET", path, headers={"x-local-tenant": "a b"}).status == 200
