"""GET /jobs/{id}/chunks: a reader without a socket gets all of the text, once, of the attempt that counts."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters.chunks import DynamoChunks
from lambdas.contracts import names
from lambdas.core.streaming.ports import Chunk
from lambdas.core.streaming.reading import MOST_BYTES
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Load
from tests.integration.events import GLOBEX, http
from tests.integration.records import an_id, cancelled, completed, failed, pending, processing
from tests.integration.waits import Waits

ROUTE = "GET /jobs/{id}/chunks"


@pytest.fixture
def query(load_handler: Load) -> ModuleType:
    return load_handler("query")


@pytest.fixture
def waits(query: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Waits:
    made = Waits()
    monkeypatch.setattr(query, "time", made)
    return made


@pytest.fixture
def chunks(cloud: Cloud) -> DynamoChunks:
    return DynamoChunks(cloud.client("dynamodb"), cloud.jobs_table)


def ask(function: ModuleType, job_id: str, authorizer: Any = None, **query: str) -> dict[str, Any]:
    more = {"authorizer": authorizer} if authorizer else {}
    event = http(ROUTE, path={"id": job_id}, query=query or None, **more)
    answer: dict[str, Any] = function.handler(event, Context(29))
    answer["json"] = json.loads(answer["body"])
    return answer


def say(chunks: DynamoChunks, job_id: str, *texts: str, attempt: int = 1, first: int = 0) -> None:
    for n, text in enumerate(texts, first):
        chunks.append(job_id, Chunk(attempt, n, text), 2_000_000_000)


def test_text_is_answered_from_where_it_is_asked_for(cloud: Cloud, query: ModuleType, chunks: DynamoChunks):
    job_id = cloud.put(processing(stream=True))["pk"]
    say(chunks, job_id, "One ", "two \U0001f600 ", "three")
    answer = ask(query, job_id, **{"from": "1", "attempt": "1"})
    links = answer["json"].pop("links")
    assert (answer["statusCode"], answer["json"]) == (
        200,
        {
            "job_id": job_id, "status": names.PROCESSING, "attempt": 1, "restarted": False, "from": 1,
            "texts": ["two \U0001f600 ", "three"], "next": 3, "final": False,
        },
    )  # fmt: skip
    assert (links["chunks"], links["cancel"]) == (f"/jobs/{job_id}/chunks", f"/jobs/{job_id}/cancel")


def test_the_record_is_read_before_the_text_and_both_consistently(
    cloud: Cloud, query: ModuleType, chunks: DynamoChunks
):
    """Else a final record could come with text that is not all there."""
    job_id = cloud.put(processing(stream=True))["pk"]
    say(chunks, job_id, "text")
    cloud.wire.clear()
    ask(query, job_id)
    assert [one.operation for one in cloud.wire.sent] == ["GetItem", "Query"]
    assert all(json.loads(one.body)["ConsistentRead"] for one in cloud.wire.sent)


@pytest.mark.parametrize("make", [completed, failed, cancelled])
def test_a_final_job_gives_all_of_its_text_and_says_so(
    cloud: Cloud, query: ModuleType, chunks: DynamoChunks, waits: Waits, make: Any
):
    job_id = cloud.put(make(stream=True))["pk"]
    say(chunks, job_id, "One ", "two")
    answer = ask(query, job_id, wait="20")["json"]
    assert (answer["texts"], answer["final"]) == (["One ", "two"], True)
    assert ask(query, job_id, **{"from": "2", "wait": "20"})["json"]["final"]
    assert waits.made == []


def test_more_text_than_one_answer_may_have_comes_in_several(cloud: Cloud, query: ModuleType, chunks: DynamoChunks):
    job_id = cloud.put(completed(stream=True))["pk"]
    said = [str(n % 10) * 20_000 for n in range(30)]
    say(chunks, job_id, *said)
    got: list[str] = []
    answer: dict[str, Any] = {"final": False}
    while not answer["final"]:
        answer = ask(query, job_id, **{"from": str(len(got))})["json"]
        assert sum(map(len, answer["texts"])) <= MOST_BYTES
        got += answer["texts"]
    assert got == said


def test_text_of_an_attempt_that_is_over_is_void(cloud: Cloud, query: ModuleType, chunks: DynamoChunks):
    job_id = cloud.put(processing(stream=True, attempt=2))["pk"]
    say(chunks, job_id, "old", "and old")
    say(chunks, job_id, "new", attempt=2)
    answer = ask(query, job_id, **{"from": "2", "attempt": "1"})["json"]
    assert (answer["restarted"], answer["attempt"], answer["from"], answer["texts"]) == (True, 2, 0, ["new"])


def test_a_job_that_is_not_streamed_has_no_text(cloud: Cloud, query: ModuleType):
    open_, done = cloud.put(processing())["pk"], cloud.put(completed())["pk"]
    cloud.wire.clear()
    answers = [ask(query, job_id)["json"] for job_id in (open_, done)]
    assert [(answer["texts"], answer["next"], answer["final"]) for answer in answers] == [([], 0, False), ([], 0, True)]
    assert "chunks" not in answers[0]["links"]
    assert cloud.wire.count("Query") == 0


# --- waiting -----------------------------------------------------------------------------------------
def test_wait_ends_when_text_comes(cloud: Cloud, query: ModuleType, chunks: DynamoChunks, waits: Waits):
    job_id = cloud.put(processing(stream=True))["pk"]
    say(chunks, job_id, "One ")
    waits.happens[2] = lambda: say(chunks, job_id, "two", first=1)
    answer = ask(query, job_id, **{"from": "1", "wait": "20"})["json"]
    assert (answer["texts"], answer["next"]) == (["two"], 2)
    assert waits.made == [0.5, 0.5]


@pytest.mark.parametrize("now", [completed, lambda **over: processing(attempt=2, **over)])
def test_wait_ends_when_there_is_nothing_more_to_wait_for(cloud: Cloud, query: ModuleType, waits: Waits, now: Any):
    """The job is final, or has begun its text anew."""
    record = cloud.put(processing(stream=True))
    waits.happens[1] = lambda: cloud.put({**now(stream=True), "pk": record["pk"]})
    answer = ask(query, record["pk"], attempt="1", wait="20")["json"]
    assert answer["final"] or answer["restarted"]
    assert waits.made == [0.5]


def test_wait_ends_with_what_is_known(cloud: Cloud, query: ModuleType, waits: Waits):
    answer = ask(query, cloud.put(pending(stream=True))["pk"], wait="1")
    assert (answer["statusCode"], answer["json"]["texts"]) == (200, [])
    assert waits.made == [0.5, 0.5]


def test_a_job_that_is_deleted_meanwhile_is_gone(cloud: Cloud, query: ModuleType, waits: Waits):
    job_id = cloud.put(processing(stream=True))["pk"]
    tombstone = {"pk": job_id, "sk": "job", "tenant": "acme", "status": names.DELETED, "attempt": 1}
    waits.happens[1] = lambda: cloud.put(tombstone)
    assert ask(query, job_id, wait="20")["statusCode"] == 410
    assert waits.made == [0.5]


# --- what is refused ---------------------------------------------------------------------------------
NUMBERS = ["-1", "1.5", "x", "", "\u0663", "1,2", "1e1", "01", "1000000", "9" * 5_000]
BAD = [
    *((name, value) for name in ("from", "attempt", "wait") for value in NUMBERS),
    ("wait", "21"),
    ("attempt", "2"),
    ("form", "1"),
    ("After", "1"),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=lambda part: ascii(part[:9]))
def test_a_parameter_that_is_wrong_is_400(cloud: Cloud, query: ModuleType, name: str, value: str):
    answer = ask(query, cloud.put(completed(stream=True))["pk"], **{name: value})
    assert answer["statusCode"] == 400
    assert answer["headers"]["content-type"] == "application/problem+json"


def test_another_tenants_text_is_404_just_like_one_that_is_not_there(
    cloud: Cloud, query: ModuleType, chunks: DynamoChunks
):
    job_id = cloud.put(completed(stream=True))["pk"]
    say(chunks, job_id, "secret")
    theirs, none = ask(query, job_id, GLOBEX), ask(query, an_id())
    assert (theirs["statusCode"], none["statusCode"]) == (404, 404)
    assert theirs["body"] == none["body"]


@pytest.mark.parametrize("operation", ["GetItem", "Query"])
def test_a_table_that_cannot_be_read_is_503(cloud: Cloud, query: ModuleType, operation: str):
    job_id = cloud.put(completed(stream=True))["pk"]
    cloud.wire.refuse(operation, "InternalServerError", status=500)
    assert ask(query, job_id)["statusCode"] == 503
