"""From an object in the uploads bucket to a job: one for each version, one for each form."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.names import UPLOADS_PREFIX
from lambdas.core import ids, times
from lambdas.core.inbox import uploads
from lambdas.core.inbox.uploads import Place, place_of
from lambdas.core.job import from_record
from lambdas.core.ports import Stored, Unavailable
from tests.builders import NOW, TENANT, later, record_bytes
from tests.fakes import Trouble
from tests.unit.mailroom import BUCKET, Mailroom, a_record, notification

KEY = "uploads/acme/summarize/2026/Anna & Ben +1 100%25 é.txt"
GIVEN = ids.upload_id(TENANT, "summarize", "ab" * 16)
GIVEN_KEY = f"uploads/{TENANT}/summarize/{GIVEN}"


@pytest.fixture
def room() -> Mailroom:
    return Mailroom()


# --- objects that others put there ---------------------------------------------------------------
def test_an_object_is_a_job_of_the_tenant_and_the_type_in_its_key(room: Mailroom) -> None:
    stored = room.uploaded.put(KEY, b"ANNA: Hello.", "text/plain")
    room.notified(stored)
    job = from_record(room.job)
    assert (job.id, job.tenant, job.type, job.source) == (
        ids.object_job_id(BUCKET, KEY, "version-1"), "acme", "summarize", "uploads",
    )  # fmt: skip
    assert job.upload == {"key": KEY, "version": "version-1", "etag": "etag-1", "bytes": 12}
    assert job.input is None
    assert (room.job["upload_shard"], room.job["upload_key"]) == (ids.upload_shard(job.id), f"{KEY}\0version-1")
    assert [line["what"] for line in job.history] == ["received", "accepted"]
    assert room.entrance.order == ["create"]  # nothing goes to the inputs bucket


def test_the_record_of_a_usual_upload_stays_small(room: Mailroom) -> None:
    room.notified(room.uploaded.put(GIVEN_KEY, b"x"))
    assert record_bytes(room.job) <= 1_024


@pytest.mark.parametrize("name", ["a b", "a+b", "100%25", "é", "a/b", "%", "a\nb", "\u2028", "a%2Fb", "+", "🚀"])
def test_s3_01_a_key_is_decoded_once(room: Mailroom, name: str) -> None:
    stored = room.uploaded.put(f"uploads/acme/summarize/{name}")
    room.notified(stored)
    assert room.job["upload"]["key"] == stored.key


def test_a_notification_that_comes_twice_is_one_job(room: Mailroom) -> None:
    stored = room.uploaded.put(KEY)
    room.notified(stored, stored)
    room.notified(stored)
    assert room.job["pk"] == ids.object_job_id(BUCKET, KEY, stored.version)


def test_hole_39_every_version_is_a_job_in_whatever_order_they_are_told(room: Mailroom) -> None:
    first, second = room.uploaded.put(KEY, b"1"), room.uploaded.put(KEY, b"2")
    room.notified(second)
    room.notified(first)
    assert {job["upload"]["version"] for job in room.jobs} == {"version-1", "version-2"}


def test_without_versions_each_content_is_a_job(room: Mailroom) -> None:
    for etag in ("a" * 32, "b" * 32, "a" * 32):
        stored = Stored(KEY, "", etag, 5)
        room.take(notification(a_record(stored, versionId="null", eTag=f'"{etag}"')))
    assert {job["upload"]["etag"] for job in room.jobs} == {"a" * 32, "b" * 32}
    assert all(job["upload"]["version"] == "" for job in room.jobs)


def test_one_message_with_several_records_is_settled_as_a_whole(room: Mailroom) -> None:
    good, bad = room.uploaded.put(KEY), room.uploaded.put("uploads/acme/nothing")
    room.take(notification(a_record(good), a_record(bad), {"eventSource": "aws:sqs"}))
    assert len(room.jobs) == 1
    assert [message.attributes["reason"] for message in room.letters.sent] == ["INVALID_KEY", "MALFORMED_MESSAGE"]
    about = json.loads(json.loads(room.letters.sent[0].body)["payload"]["body"])
    assert about == {"Records": [a_record(bad)]}


def test_while_one_record_cannot_be_settled_no_letter_is_sent(room: Mailroom) -> None:
    bad, good = room.uploaded.put("uploads/acme/nothing"), room.uploaded.put(KEY)
    room.store.troubles.add("create", Trouble.REFUSED)
    message = notification(a_record(bad), a_record(good))
    with pytest.raises(Unavailable):
        room.take(message)
    assert (room.jobs, room.letters.sent) == ([], [])
    room.take(message)
    assert (len(room.jobs), len(room.letters.sent)) == (1, 1)


BAD_KEYS = {
    "no type": "uploads/acme/call.txt",
    "no name": "uploads/acme/summarize/",
    "no tenant": "uploads//summarize/call.txt",
    "another prefix": "results/acme/summarize/call.txt",
    "a tenant that is none": "uploads/a b/summarize/call.txt",
    "a step": "uploads/../summarize/call.txt",
    "too long": f"uploads/acme/summarize/{'é' * 450}",
    "a zero byte": "uploads/acme/summarize/a\0b",
    "a type with a control character": "uploads/acme/sum\x01/call.txt",
    "a type with a space": "uploads/acme/sum up/call.txt",
    "a type that is longer than any": f"uploads/acme/{'t' * 65}/call.txt",
}


@pytest.mark.parametrize("key", BAD_KEYS.values(), ids=BAD_KEYS)
def test_an_object_in_the_wrong_place_is_a_letter(room: Mailroom, key: str) -> None:
    room.notified(room.uploaded.put(key, b"x"))
    assert room.reason == "INVALID_KEY"
    assert isinstance(place_of(key), str)


def test_a_type_that_is_not_there_yet_is_a_letter_that_can_be_redriven(room: Mailroom) -> None:
    stored = room.uploaded.put("uploads/acme/soon/call.txt")
    room.notified(stored)
    assert room.reason == "UNKNOWN_TYPE"
    assert room.letters.sent[0].attributes["tenant"] == "acme"


def test_a_folder_is_nothing(room: Mailroom) -> None:
    for key in ("uploads/", "uploads/acme/", "uploads/acme/summarize/"):
        room.notified(room.uploaded.put(key, b""))
    assert (room.jobs, room.letters.sent) == ([], [])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"bucket": "another"}, "FOREIGN_BUCKET"),
        ({"key": "uploads/%FF"}, "MALFORMED_MESSAGE"),
        ({"key": 5}, "MALFORMED_MESSAGE"),
        ({"size": "many"}, "MALFORMED_MESSAGE"),
    ],
)
def test_a_record_that_is_none_of_our_bucket_is_a_letter(room: Mailroom, change: dict[str, Any], reason: str) -> None:
    room.take(notification(a_record(room.uploaded.put(KEY), **change)))
    assert room.reason == reason


def test_what_is_no_new_object_is_ignored(room: Mailroom) -> None:
    room.take(notification(a_record(room.uploaded.put(KEY), name="ObjectRemoved:Delete")))
    assert (room.jobs, room.letters.sent) == ([], [])


# --- keys that POST /uploads gave out ------------------------------------------------------------
def test_the_upload_is_the_job_that_its_form_named(room: Mailroom) -> None:
    room.notified(room.uploaded.put(GIVEN_KEY, b'{"text":"x"}'))
    assert (room.job["pk"], room.job["tenant"], room.job["type"]) == (GIVEN, TENANT, "summarize")


def test_a_second_upload_under_a_form_changes_nothing(room: Mailroom) -> None:
    first = room.uploaded.put(GIVEN_KEY, b"1")
    room.notified(first)
    before = dict(room.job)
    room.notified(room.uploaded.put(GIVEN_KEY, b"22"))
    assert room.job == before
    assert room.notices.of("ignored")["reason"] == "a later upload to a key that was given out for one"


def test_the_first_upload_counts_even_if_the_second_is_told_first(room: Mailroom) -> None:
    first, second = room.uploaded.put(GIVEN_KEY, b"1"), room.uploaded.put(GIVEN_KEY, b"22")
    room.notified(second)
    assert room.job["upload"]["version"] == first.version
    room.notified(first)
    assert room.job["upload"]["version"] == first.version


def test_a_first_upload_that_was_deleted_before_it_was_told_ends_visibly(room: Mailroom) -> None:
    stored = room.uploaded.put(GIVEN_KEY, b"1")
    room.uploaded.lose(stored)
    room.notified(stored)
    assert room.job["upload"]["version"] == stored.version  # its job will find nothing, and say so


def test_a_name_that_only_looks_given_out_is_a_foreign_one(room: Mailroom) -> None:
    for key in (f"uploads/globex/summarize/{GIVEN}", f"uploads/acme/anything/{GIVEN}", f"{GIVEN_KEY}x", GIVEN_KEY[:-1]):
        room.notified(room.uploaded.put(key))
    assert GIVEN not in {job["pk"] for job in room.jobs}
    assert len(room.jobs) == 4


@pytest.mark.parametrize("drawn", ["review#../a\x01/b c d e"[:20], "AB" * 10, "é" * 20])
def test_a_name_with_the_right_check_but_no_id_is_a_foreign_one(room: Mailroom, drawn: str) -> None:
    """Anybody can compute the check; the name of a job is none that a stranger words."""
    assert len(drawn) == 20
    room.notified(
        room.uploaded.put(f"uploads/{TENANT}/summarize/{ids.upload_id(TENANT, 'summarize', drawn + '0' * 12)}")
    )
    assert re.fullmatch("[0-9a-f]{32}", room.job["pk"])
    assert not ids.is_upload_id(TENANT, "summarize", room.job["upload"]["key"].rpartition("/")[2])


def test_while_the_versions_cannot_be_listed_the_message_stays(room: Mailroom) -> None:
    stored = room.uploaded.put(GIVEN_KEY)
    room.uploaded.troubles.add("first", Trouble.REFUSED)
    with pytest.raises(Unavailable):
        room.notified(stored)
    assert room.letters.sent == []


# --- for the sweep --------------------------------------------------------------
def test_the_job_of_an_object_is_known_before_it_is_made(room: Mailroom) -> None:
    for key in (KEY, GIVEN_KEY):
        stored = room.uploaded.put(key)
        expected = uploads.job_id_of(stored, room.yard)
        outcome = uploads.take(stored, later(-60), room.yard)
        assert getattr(outcome, "job_id", None) == expected
    assert times.text(later(-60)) in {job["history"][0]["at"] for job in room.jobs}


@given(text=st.text(st.characters(codec="utf-8")), tenant=st.from_regex(r"[a-z.]{1,3}", fullmatch=True))
def test_a_key_is_a_place_exactly_when_it_can_be_put_together_again(text: str, tenant: str) -> None:
    keys = (text, UPLOADS_PREFIX + text, f"uploads/{tenant}/{text}", f"uploads/{tenant}/summarize/{text * 99}")
    for key in keys:
        place = place_of(key)
        if isinstance(place, Place):
            assert f"uploads/{place.tenant}/{place.type}/{place.name}" == key
            assert place.tenant not in ("", ".", "..")
            assert len(ids.upload_order(key, "v" * 100).encode()) <= 1_024
    assert isinstance(place_of(keys[-1]), Place) == (
        bool(text) and "\0" not in text and tenant not in (".", "..") and len(keys[-1].encode()) <= 900
    )


def test_now_is_not_taken_for_the_time_of_receipt(room: Mailroom) -> None:
    room.clock.advance(60)
    room.notified(room.uploaded.put(KEY))
    assert [line["at"] for line in room.job["history"]] == [times.text(NOW), times.text(later(60))]
