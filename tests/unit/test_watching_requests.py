"""Watching a job: what may be asked over a connection, and what is answered to everything else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.contracts.names import DELETED
from lambdas.core.watching.conversation import CONNECTION_S, WATCHERS_MAX, closed, heard
from lambdas.core.watching.requests import MESSAGE_MAX
from tests.builders import JOB_ID, NOW, held_record
from tests.unit.studio import ANNA, BEN, OTHER_JOB, Studio


@pytest.fixture
def studio() -> Studio:
    studio = Studio()
    studio.connect(ANNA, BEN)
    return studio


# --- what may be asked ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"\xff", b"\xef\xbb\xbf{}", b"[" * 4_000, b'{"action": NaN}', b'{"action":"watch","action":"ping"}'],
)
def test_what_is_no_json_is_answered(studio: Studio, raw: bytes) -> None:
    heard(ANNA, raw, studio.board)
    (frame,) = studio.postman.sent[ANNA]
    assert (frame["type"], frame["code"]) == ("error", "bad_request")


@pytest.mark.parametrize("message", [[], "watch", 1, None, {}, {"action": 1}, {"action": "sing"}, {"action": []}])
def test_an_unknown_action_is_answered(studio: Studio, message: Any) -> None:
    heard(ANNA, json.dumps(message).encode(), studio.board)
    assert [(frame["type"], frame["code"]) for frame in studio.postman.sent[ANNA]] == [("error", "unknown_action")]


@pytest.mark.parametrize("name", ["from", "attempt"])
@pytest.mark.parametrize("number", [-1, 1.0, 1.5, "1", True, None, [], 1_000_000, 10**50])
def test_what_is_no_whole_number_is_refused(studio: Studio, name: str, number: Any) -> None:
    (frame,) = studio.watch(ANNA, **{name: number})
    assert (frame["code"], frame["job_id"]) == ("bad_request", JOB_ID)
    assert studio.connections.watches == {}


@pytest.mark.parametrize("job_id", [None, 1, "", "x" * 129, [], {}])
@pytest.mark.parametrize("action", ["watch", "unwatch"])
def test_what_is_no_job_id_is_refused(studio: Studio, action: str, job_id: Any) -> None:
    assert [frame["code"] for frame in studio.say(ANNA, action=action, job_id=job_id)] == ["bad_request"]


def test_a_field_that_is_not_known_is_refused(studio: Studio) -> None:
    assert [frame["code"] for frame in studio.watch(ANNA, form=3)] == ["bad_request"]
    assert [frame["code"] for frame in studio.say(ANNA, action="ping", job_id=JOB_ID)] == ["bad_request"]


def test_a_message_that_is_too_large_is_refused_unread(studio: Studio) -> None:
    heard(ANNA, b" " * (MESSAGE_MAX + 1), studio.board)
    assert [frame["code"] for frame in studio.postman.sent[ANNA]] == ["too_large"]


def test_a_job_outside_the_ticket_is_not_there(studio: Studio) -> None:
    studio.becomes(held_record(pk=OTHER_JOB, stream=True))
    (frame,) = studio.watch(ANNA, OTHER_JOB)
    assert (frame["code"], frame["job_id"]) == ("not_found", OTHER_JOB)


@pytest.mark.parametrize("record", [{"tenant": "eve"}, {"status": DELETED}, None])
def test_a_job_of_another_tenant_or_a_deleted_one_is_not_there(studio: Studio, record: dict[str, Any] | None) -> None:
    if record is None:
        studio.store.records.clear()
    else:
        studio.becomes(held_record(stream=True, **record))
    (frame,) = studio.watch(ANNA)
    assert frame["code"] == "not_found"
    assert studio.connections.watches == {}


def test_a_job_that_is_deleted_meanwhile_is_said_goodbye_to(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.becomes(held_record(status=DELETED))
    studio.push()
    assert studio.postman.sent[ANNA][-1]["code"] == "not_found"
    assert studio.connections.watches == {}


def test_a_job_has_so_many_watchers_and_no_more(studio: Studio) -> None:
    names = [f"c{n:03}=" for n in range(WATCHERS_MAX + 1)]
    studio.connect(*names)
    for name in names[:-1]:
        assert studio.watch(name)[0]["type"] == "watching"
    assert studio.watch(names[-1])[0]["code"] == "too_many_watchers"
    assert studio.watch(names[3])[0]["type"] == "watching"  # it is one of them
    studio.say(names[0], action="unwatch", job_id=JOB_ID)
    assert studio.watch(names[-1])[0]["type"] == "watching"


def test_who_went_without_a_word_keeps_no_place_from_others(studio: Studio) -> None:
    names = [f"c{n:03}=" for n in range(WATCHERS_MAX)]
    studio.connect(*names)
    for name in names:
        studio.watch(name)
    studio.postman.gone |= {names[3], names[7]}
    assert studio.watch(ANNA)[0]["type"] == "watching"
    assert {names[3], names[7]}.isdisjoint(studio.connections.connections)
    assert studio.postman.types(names[0]) == ["watching", "pong"]
    assert studio.watch(BEN)[0]["type"] == "watching"
    assert studio.postman.types(names[0]) == ["watching", "pong"]  # there was room


def test_several_jobs_over_one_connection_are_told_apart(studio: Studio) -> None:
    studio.connect(ANNA, job_ids=(JOB_ID, OTHER_JOB))
    studio.becomes(held_record(pk=OTHER_JOB, stream=True))
    studio.watch(ANNA)
    studio.watch(ANNA, OTHER_JOB)
    studio.stored("one")
    studio.stored("two", job_id=OTHER_JOB)
    studio.push(JOB_ID)
    studio.push(OTHER_JOB)
    found = {frame["job_id"]: frame["texts"] for frame in studio.postman.sent[ANNA] if frame["type"] == "chunks"}
    assert found == {JOB_ID: ["one"], OTHER_JOB: ["two"]}


def test_who_unwatches_hears_no_more_of_it(studio: Studio) -> None:
    studio.watch(ANNA)
    assert studio.say(ANNA, action="unwatch", job_id=JOB_ID) == [{"type": "unwatched", "job_id": JOB_ID}]
    studio.stored("a")
    studio.push()
    assert studio.postman.types(ANNA) == ["watching", "unwatched"]
    assert studio.say(ANNA, action="unwatch", job_id=JOB_ID)[0]["type"] == "unwatched"


def test_a_connection_that_closes_is_sent_nothing_more(studio: Studio) -> None:
    studio.watch(ANNA)
    closed(ANNA, studio.board)
    closed(ANNA, studio.board)
    studio.stored("a")
    studio.push()
    assert studio.postman.types(ANNA) == ["watching"]
    assert studio.watch(ANNA)[0]["code"] == "unknown_connection"


def test_ws_02_everything_of_a_connection_outlives_the_longest_one_and_then_expires(studio: Studio) -> None:
    studio.watch(ANNA)
    latest = int(NOW.timestamp()) + CONNECTION_S
    assert studio.connections.connections[ANNA].expires_at == latest
    assert studio.connections.expiries == {(JOB_ID, ANNA): latest}
    assert CONNECTION_S >= 7_200 + 300


def test_a_ping_is_answered_and_nothing_else_is_sent_when_all_is_there(studio: Studio) -> None:
    studio.stored("a")
    studio.watch(ANNA)
    assert studio.say(ANNA, action="ping") == [{"type": "pong"}]


def test_a_ping_finds_out_that_the_speaker_is_gone(studio: Studio) -> None:
    studio.postman.gone.add(ANNA)
    studio.say(ANNA, action="ping")
    assert ANNA not in studio.connections.connections
