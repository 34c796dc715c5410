"""The door: what is recorded of an event, and what is refused and how."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core import ids, times
from lambdas.core.canonical import sha256
from lambdas.core.intake import Accepted
from lambdas.core.job import from_record
from lambdas.core.policy import DAY_S
from lambdas.core.problems import Problem
from tests.builders import NOW, TENANT, any_request, later
from tests.unit.entrance import Entrance, refused, text_of


# --- the record ------------------------------------------------------------------------------------
def test_an_event_becomes_a_pending_record_in_one_write() -> None:
    entrance = Entrance()
    record = entrance.accepted()
    job = from_record(record)
    assert (job.status, job.attempt, job.tries, job.run, job.sample, job.cost) == ("PENDING", 0, 0, 0, 0, 0)
    assert (job.created_at, job.not_before, job.deadline_at, job.due_at) == (NOW, NOW, later(days=1), later(120))
    assert (job.tenant, job.type) == (TENANT, "summarize")
    assert [record[name] for name in ("attempt", "tries", "crashes", "run", "sample", "cost")] == [0] * 6
    assert record["history"] == [{"at": times.text(NOW), "what": "accepted", "attempt": 0}]
    assert record["due_shard"] == ids.due_shard(job.id)
    assert record["tenant_shard"] == ids.tenant_shard(TENANT, job.id)
    assert [line["what"] for line in job.history] == ["accepted"]
    assert entrance.order == ["create"]


def test_hole_6_an_open_record_never_expires() -> None:
    assert "expires_at" not in Entrance().accepted()


def test_ddb_01_numbers_with_fractions_and_huge_ones_are_kept_as_json_text() -> None:
    wanted = {"temperature": 30.40, "huge": 10**99, "tiny": 1e-300, "list": [0.1, -0.0]}
    record = Entrance().accepted(type="anything", input=wanted)
    assert json.loads(record["input"]) == wanted
    assert not any(isinstance(value, float) for value in record.values())


@pytest.mark.parametrize("name", ["fresh", "urgent", "stream"])
def test_fresh_urgent_and_stream_are_recorded_when_they_are_asked_for(name: str) -> None:
    assert Entrance().accepted(**{name: True})[name] is True
    assert name not in Entrance().accepted(**{name: False})


@pytest.mark.parametrize(
    ("trace", "trace_id"),
    [
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", None),
        ("nonsense", None),
        ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
        ("00-00000000000000000000000000000000-0000000000000000-00", None),
        ("00-00000000000000000000000000000001-00f067aa0ba902b7-01", "00000000000000000000000000000001"),
        ("00-0bf92f3577b34da6a3ce929d0e0e4730-00f067aa0ba902b7-01", "0bf92f3577b34da6a3ce929d0e0e4730"),
        ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\n", None),
        (None, None),
    ],
)
def test_a_callers_trace_goes_on_and_any_other_job_is_its_own_trace(trace: str | None, trace_id: str | None) -> None:
    record = Entrance().accepted(trace=trace)
    assert record["trace_id"] == (trace_id or record["pk"])


# --- not_before ------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("not_before", "starts", "due"),
    [
        (later(-3_600), NOW, later(120)),
        (later(600), later(600), later(720)),
        (later(900), later(900), later(1_020)),
        (later(901), later(901), later(901)),
        (later(days=30), later(days=30), later(days=30)),
    ],
)
def test_a_job_starts_no_earlier_than_asked_and_its_deadline_counts_from_there(
    not_before: Any, starts: Any, due: Any
) -> None:
    job = from_record(Entrance().accepted(not_before=times.text(not_before)))
    assert (job.not_before, job.due_at) == (starts, due)
    assert job.deadline_at == times.after(starts, DAY_S)


@pytest.mark.parametrize("not_before", ["2026-12-29T15:30:45Z", "2099-01-01T00:00:00Z", "9999-12-31T23:59:59+00:00"])
def test_a_start_too_far_ahead_is_refused(not_before: str) -> None:
    problem = refused(Entrance(), not_before=not_before)
    assert (problem.status, problem.pointer) == (422, "/not_before")


@pytest.mark.parametrize(
    "not_before",
    ["tomorrow", "2026-12-01", "2026-12-01T00:00:00", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00:00+01:00", 7, ""],
)
def test_a_start_that_is_no_instant_is_refused(not_before: Any) -> None:
    problem = refused(Entrance(), not_before=not_before)
    assert (problem.status, problem.pointer) == (400, "/not_before")


# --- what is refused -------------------------------------------------------------------------------
BAD_BODIES = {
    "no body": b"",
    "no JSON": b"{bad",
    "byte order mark": b"\xef\xbb\xbf{}",
    "not UTF-8": b'{"type":"\xff"}',
    "NaN": b'{"type":"anything","input":NaN}',
    "beyond a float": b'{"type":"anything","input":1e400}',
    "5,000 digits": b'{"type":"anything","input":' + b"9" * 5_000 + b"}",
    "a name twice": b'{"type":"anything","type":"anything","input":1}',
    "half a surrogate": b'{"type":"anything","input":"\\ud800"}',
    "100,000 deep": b'{"type":"anything","input":' + b"[" * 100_000 + b"}",
    "40 deep": b'{"type":"anything","input":' + b"[" * 40 + b"]" * 40 + b"}",
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_api_04_a_body_that_is_no_good_json_is_400(body: bytes) -> None:
    problem = refused(Entrance(), body=body)
    assert problem.status == 400
    assert problem.body()["type"].startswith("urn:neverdrop:problem:")


@pytest.mark.parametrize(
    ("over", "pointer"),
    [
        ({"type": None}, "/type"),
        ({"input": None}, "/input"),
        ({"type": 7}, "/type"),
        ({"type": ""}, "/type"),
        ({"type": "x" * 65}, "/type"),
        ({"fresh": "yes"}, "/fresh"),
        ({"urgent": 1}, "/urgent"),
        ({"stream": "true"}, "/stream"),
        ({"tenant_id": "globex"}, "/tenant_id"),
    ],
)
def test_a_request_that_breaks_the_contract_is_400_and_says_where(over: dict[str, Any], pointer: str) -> None:
    problem = refused(Entrance(), **over)
    assert (problem.status, problem.pointer) == (400, pointer)


def test_where_its_end_is_delivered_to_is_recorded_as_it_was_written() -> None:
    url = "https://hooks.acme.test:8443/done?order=7"
    assert Entrance().accepted(callback_url=url)["callback_url"] == url
    assert from_record(Entrance().accepted(callback_url=url)).callback_url == url
    assert "callback_url" not in Entrance().accepted()


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.acme.test/", "https://user:pass@hooks.acme.test/", "https://hooks.acme.test:22/",
        "https://10.0.0.1/", "https://169.254.169.254/", "https://[::ffff:7f00:1]/", "https://0x7f000001/",
        "https://localhost/", "https://hooks.acme.test/#done", "ftp://hooks.acme.test/", "hooks.acme.test",
        "https://hooks.acme.test\\@evil.test/", "https:///done", "https://hooks .acme.test/",
    ],
)  # fmt: skip
def test_a_callback_url_that_nothing_may_be_delivered_to_is_422_and_says_where(url: str) -> None:
    entrance = Entrance()
    problem = refused(entrance, callback_url=url)
    assert (problem.status, problem.pointer) == (422, "/callback_url")
    assert entrance.order == []


@pytest.mark.parametrize("url", [None, 7, "", "https://a.test/" + "x" * 2_048])
def test_a_callback_url_of_another_shape_is_400(url: Any) -> None:
    problem = refused(Entrance(), body=json.dumps({**any_request(), "callback_url": url}).encode())
    assert (problem.status, problem.pointer) == (400, "/callback_url")


def test_the_same_key_with_another_callback_url_is_another_request() -> None:
    entrance = Entrance()
    entrance.accepted(key="k", callback_url="https://a.test/")
    problem = entrance.send(key="k", callback_url="https://b.test/")
    assert isinstance(problem, Problem)
    assert (problem.status, problem.kind) == (422, "key-reused")


@pytest.mark.parametrize("field", ["max_cost"])
def test_a_field_of_later_work_is_400_and_told_to_be_so(field: str) -> None:
    problem = refused(Entrance(), **{field: "x"})
    assert (problem.status, problem.pointer) == (400, f"/{field}")
    assert "not supported yet" in problem.detail


@pytest.mark.parametrize("body", [b"null", b"[]", b"7", b'"text"', b"true"])
def test_a_body_that_is_no_object_is_400(body: bytes) -> None:
    assert refused(Entrance(), body=body).status == 400


def test_a_type_that_nobody_knows_is_422_and_tells_the_known_ones() -> None:
    problem = refused(Entrance(), type="translate")
    assert (problem.status, problem.pointer) == (422, "/type")
    assert "anything, summarize" in problem.detail


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({}, "/input/text"),
        ({"text": ""}, "/input/text"),
        ({"text": 7}, "/input/text"),
        ([], "/input"),
        ({"text": "a", "b/c": 1}, "/input/b~1c"),
    ],
)
def test_an_input_that_its_tasks_schema_refuses_is_422_and_says_where(wrong: Any, pointer: str) -> None:
    problem = refused(Entrance(), input=wrong)
    assert (problem.status, problem.pointer) == (422, pointer)
    assert problem.body()["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("key", ["", " ", " k", "k ", "k\n", "é", "k\x00", "x" * 256, "\x7f"])
def test_a_key_that_is_no_visible_ascii_text_is_400(key: str) -> None:
    assert refused(Entrance(), key=key).status == 400


@pytest.mark.parametrize("key", ["k", "a b", "x" * 255, "!~"])
def test_a_key_of_visible_ascii_is_taken(key: str) -> None:
    assert isinstance(Entrance().send(key=key), Accepted)


@given(
    st.binary(max_size=80)
    | st.dictionaries(
        st.sampled_from(["type", "input", "fresh", "not_before", "x"]), st.none() | st.text() | st.integers()
    ).map(lambda d: json.dumps(d).encode())
)
def test_whatever_comes_is_accepted_or_refused_and_never_raises(body: bytes) -> None:
    entrance = Entrance()
    outcome = entrance.send(body)
    assert isinstance(outcome, Accepted) == bool(entrance.store.records)
    assert isinstance(outcome, Accepted) or 400 <= outcome.status < 500


# --- size ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("size", "status"), [(1_000_000, 202), (1_000_001, 413)])
def test_an_input_may_have_a_million_bytes_and_no_more(size: int, status: int) -> None:
    entrance = Entrance()
    body = json.dumps(any_request(input=text_of(size)), ensure_ascii=False).encode()
    outcome = entrance.send(body)
    if status == 202:
        assert isinstance(outcome, Accepted)
    else:
        problem = refused(Entrance(), body=body)
        assert (problem.status, problem.pointer) == (413, "/input")
        assert "/uploads" in problem.detail


def test_api_10_a_huge_body_is_413_before_it_is_read() -> None:
    assert refused(Entrance(), body=b"[" + b" " * 6_000_000).status == 413


def test_spaces_and_escapes_do_not_count_against_the_size() -> None:
    body = json.dumps(any_request(input={"text": "é" * 400_000})).encode() + b" " * 100_000
    assert len(body) > 2_000_000
    assert isinstance(Entrance().send(body), Accepted)


@pytest.mark.parametrize(("size", "inline"), [(2_048, True), (2_049, False)])
def test_an_input_above_two_kib_lies_in_s3_under_the_bodys_hash(size: int, inline: bool) -> None:
    entrance = Entrance()
    record = entrance.accepted(input=text_of(size))
    assert ("input" in record) is inline
    assert len(entrance.inputs.objects) == (0 if inline else 1)
    if not inline:
        (key,), (body,) = entrance.inputs.objects.keys(), entrance.inputs.objects.values()
        assert key == ids.input_key(TENANT, record["pk"], record["body_sha"])
        assert sha256(body.decode()) == record["body_sha"]
        assert json.loads(body)["input"] == text_of(size)


def test_hole_1_the_large_input_is_stored_before_the_record_makes_it_count() -> None:
    entrance = Entrance()
    entrance.accepted(input=text_of(9_000))
    assert entrance.order == ["put", "create"]
