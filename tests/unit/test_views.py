"""What a client sees of a job: its record, its timeline in order, why there is no result, and pages that end."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED, FINAL, OPEN, PENDING, PROCESSING, WAITING
from lambdas.contracts.validation import Check, compile_schema, load
from lambdas.core import ids, times, views
from lambdas.core.job import from_record
from lambdas.core.problems import Problem
from lambdas.core.views import Page, page_of
from tests.builders import (
    FINALS,
    JOB_ID,
    NOW,
    TENANT,
    any_job,
    any_record,
    final_job,
    handed_over,
    held_job,
    later,
)
from tests.fakes import FakeJobStore

STATUSES = (*OPEN, *FINAL)


@cache
def _contract(name: str) -> Check:
    """The check of a schema of the published contract, its references resolved."""
    schemas = load("openapi.json")["components"]["schemas"]
    text = json.dumps({"$ref": f"#/definitions/{name}", "definitions": schemas})
    return compile_schema(json.loads(text.replace("#/components/schemas/", "#/definitions/")))


# --- one job ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("status", STATUSES)
def test_a_shown_job_keeps_the_published_contract(status: str) -> None:
    assert _contract("Job")(views.job(final_job(status))) is None


def test_a_shown_job_tells_its_counters_and_what_it_cost_late_answers_included() -> None:
    shown = views.job(held_job(attempt=3, tries=2, crashes=1, waits=4, sample=1, cost=100, late_cost=20))
    assert (shown["job_id"], shown["status"], shown["attempt"], shown["tries"]) == (JOB_ID, PROCESSING, 3, 2)
    assert (shown["crashes"], shown["waits"], shown["sample"], shown["cost_micros"]) == (1, 4, 1, 120)
    assert shown["links"]["result"] == f"/jobs/{JOB_ID}/result"


@pytest.mark.parametrize("status", STATUSES)
def test_a_job_links_to_what_may_be_done_with_it_in_its_state(status: str) -> None:
    offered = views.job(final_job(status))["links"].keys() - {"self", "result", "events"}
    assert offered == {
        *(["cancel"] if status in OPEN else []),
        *(["retry"] if status in (FAILED, CANCELLED) else []),
        *(["redeliver"] if status in FINAL else []),
    }


def test_an_urgent_job_says_so() -> None:
    assert views.job(any_job(urgent=True))["urgent"] is True
    assert "urgent" not in views.job(any_job())


def test_a_job_whose_text_is_streamed_says_so_and_where() -> None:
    shown = views.job(any_job(stream=True))
    assert (shown["stream"], shown["links"]["chunks"]) == (True, f"/jobs/{JOB_ID}/chunks")
    assert _contract("Job")(shown) is None
    assert views.changed(any_job(stream=True))["links"]["chunks"] == f"/jobs/{JOB_ID}/chunks"
    plain = views.job(any_job())
    assert "stream" not in plain
    assert "chunks" not in plain["links"]


def test_a_changed_job_is_answered_by_the_published_contract() -> None:
    assert _contract("Accepted")(views.changed(final_job(CANCELLED))) is None


def test_a_shown_job_tells_how_and_when_it_ended() -> None:
    done, failed = views.job(final_job(COMPLETED)), views.job(final_job(FAILED))
    assert (done["result_bytes"], done["finished_at"], done["trace_id"]) == (42, times.text(NOW), JOB_ID)
    assert failed["error"] == {"code": "TASK_ERROR", "message": "ValueError: no"}
    assert "error" not in done
    assert "result_bytes" not in failed
    assert "finished_at" not in views.job(any_job())


def test_a_shown_job_tells_nothing_of_its_input_its_holder_or_its_tenant() -> None:
    shown = json.dumps(views.job(held_job()))
    assert "Houston" not in shown
    assert "claim" not in shown
    assert TENANT not in shown


@pytest.mark.parametrize(("job", "told"), [(final_job(), False), (from_record(handed_over()), True), (any_job(), None)])
def test_a_final_job_tells_whether_it_was_handed_over(job: Any, told: bool | None) -> None:
    assert views.job(job).get("handed_over") is told


def test_the_answer_to_an_accepted_event_does_not_depend_on_what_became_of_it() -> None:
    assert views.accepted("j") == {"job_id": "j", "status": PENDING, "links": views.links("j", PENDING)}
    assert _contract("Accepted")(views.accepted("j")) is None


@pytest.mark.parametrize("status", [PENDING, PROCESSING, WAITING])
def test_an_open_job_has_no_result_yet(status: str) -> None:
    found = views.no_result(any_job(status=status, lease_until=later(130)))
    assert found == {"job_id": JOB_ID, "status": status, "links": views.links(JOB_ID, status)}


def test_a_completed_job_has_a_result() -> None:
    assert views.no_result(final_job(COMPLETED)) is None


@pytest.mark.parametrize(("status", "words"), [(FAILED, "TASK_ERROR: ValueError: no"), (CANCELLED, "was cancelled")])
def test_a_job_that_ended_badly_says_why_there_is_no_result(status: str, words: str) -> None:
    found = views.no_result(final_job(status))
    assert isinstance(found, Problem)
    assert (found.status, found.job_id) == (409, JOB_ID)
    assert words in found.detail


# --- the timeline ----------------------------------------------------------------------------------
def test_the_timeline_is_the_history_from_receipt_to_delivery() -> None:
    lines = [
        {"at": times.text(later(n)), "what": what, "attempt": 1}
        for n, what in enumerate(("accepted", "claimed", "completed"))
    ]
    told = views.timeline(from_record(handed_over(history=lines, handed_over_at=later(5), history_left_out=2)))
    assert [event["what"] for event in told["events"]] == ["accepted", "claimed", "completed", "handed_over"]
    assert told["left_out"] == 2
    ats = [event["at"] for event in told["events"]]
    assert ats == sorted(ats)
    assert _contract("Timeline")(told) is None


def test_the_timeline_of_a_running_job_ends_with_its_claim() -> None:
    events = views.timeline(held_job(attempt=2))["events"]
    assert events[-1] == {"at": times.text(NOW), "what": "claimed", "attempt": 2}


def test_a_job_that_was_not_handed_over_does_not_say_so() -> None:
    assert [event["what"] for event in views.timeline(final_job())["events"]] == ["accepted"]


# --- which page ------------------------------------------------------------------------------------
def test_a_page_is_asked_for_by_status_type_and_limit() -> None:
    assert page_of({"limit": "7", "status": "FAILED", "type": "summarize"}, STATUSES) == Page(7, "FAILED", "summarize")
    assert page_of({}, STATUSES) == Page(20, None, None, None)


@pytest.mark.parametrize(
    "limit", ["0", "101", "-1", "1.5", "", "x", "٣", "1e1", "0000501", "000050" + "9" * 5_000, "9" * 5_000, "1 "]
)
def test_a_limit_that_is_no_number_from_1_to_100_is_refused(limit: str) -> None:
    found = page_of({"limit": limit}, STATUSES)
    assert isinstance(found, Problem)
    assert found.status == 400


@pytest.mark.parametrize("limit", ["1", "100"])
def test_the_bounds_of_the_limit_are_taken(limit: str) -> None:
    assert page_of({"limit": limit}, STATUSES) == Page(int(limit))


@pytest.mark.parametrize(
    "query", [{"status": "DONE"}, {"status": "DELETED"}, {"status": ""}, {"page": "2"}, {"Limit": "2"}]
)
def test_a_query_that_means_nothing_is_refused(query: dict[str, str]) -> None:
    assert isinstance(page_of(query, STATUSES), Problem)


def _written(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


AT = times.text(NOW)
ID = "0123456789abcdef" * 2
GARBAGE = [
    "",
    "x",
    "not base64!",
    "é",
    _written(None),
    _written([]),
    _written({"0": None}),
    _written({"0": "ab"}),
    _written({"0": [AT]}),
    _written({"0": [AT, ID, "more"]}),
    _written({"0": {"a": 1}}),
    _written({"4": [AT, ID]}),
    _written({"0": ["yesterday", ID]}),
    _written({"0": ["9999-12-31T23:59:59-01:00", ID]}),
    _written({"0": [AT, ""]}),
    _written({"0": [AT, ID * 129]}),
    _written({"0": [7, ID]}),
    _written({"0": [AT, ID[1:]]}),
    _written({"0": [AT, ID + "0"]}),
    _written({"0": [AT, ID.upper()]}),
    _written({"0": [AT, ID + "\n"]}),
    _written({"0": [AT, "\ud800"]}),
    _written({"0": [AT, "٣" * 32]}),
    _written({"0": ["2026-11-29T16:30:44.123+01:00", ID]}),
    _written({"0": ["2026-11-29T15:30:44Z", ID]}),
    _written({"0": ["2026-11-29t15:30:44.123z", ID]}),
    _written({"0": ["2026-11-29T15:30:44.123000Z", ID]}),
    _written({"0": ["2026-W48-7T15:30:44.123Z", ID]}),
    _written({"0": [AT, ID], "1": [AT, "j"]}),
    base64.urlsafe_b64encode(b"\xff\xfe").decode(),
    base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    base64.urlsafe_b64encode(b'{"0":' + b"9" * 5_000 + b"}").decode(),
]


def test_a_cursor_as_this_route_gives_it_out_is_taken() -> None:
    assert page_of({"cursor": _written({"0": [AT, ID], "3": [AT, ID]})}, STATUSES) == Page(
        20, cursor={"0": (AT, ID), "3": (AT, ID)}
    )


@pytest.mark.parametrize("cursor", GARBAGE, ids=range(len(GARBAGE)))
def test_a_cursor_that_this_route_did_not_give_out_is_refused(cursor: str) -> None:
    found = page_of({"cursor": cursor}, STATUSES)
    assert isinstance(found, Problem)
    assert found.status == 400


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from("0123x"), parts, max_size=3),
)


@given(
    st.text(max_size=40) | JSON.map(_written) | st.binary(max_size=30).map(lambda raw: base64.b64encode(raw).decode())
)
def test_no_cursor_whatever_raises(cursor: str) -> None:
    page_of({"cursor": cursor}, STATUSES)


# --- the list --------------------------------------------------------------------------------------
def _store(count: int, **over: Any) -> FakeJobStore:
    """So many jobs of the tenant, three of them in each millisecond; and one of another tenant."""
    ours = [any_record(pk=f"{n:032x}", created_at=later(n // 3 / 1000), **over) for n in range(count)]
    return FakeJobStore(*ours, any_record(pk="f" * 32, tenant="globex"))


def _pages(store: FakeJobStore, limit: int, **query: str) -> list[list[dict[str, Any]]]:
    pages, cursor = [], None
    while True:
        page = page_of({"limit": str(limit), **query, **({"cursor": cursor} if cursor else {})}, STATUSES)
        assert isinstance(page, Page)
        told = views.list_jobs(TENANT, page, store)
        assert _contract("JobPage")(told) is None
        pages.append(told["jobs"])
        cursor = told.get("cursor")
        if cursor is None:
            return pages
        assert len(pages) < 200


@given(st.integers(0, 40), st.integers(1, 12))
def test_all_pages_together_are_the_tenants_jobs_each_once_and_newest_first(count: int, limit: int) -> None:
    pages = _pages(_store(count), limit)
    assert all(len(page) <= limit for page in pages)
    shown = [job for page in pages for job in page]
    assert {job["job_id"] for job in shown} == {f"{n:032x}" for n in range(count)}
    assert len(shown) == count
    created = [job["created_at"] for job in shown]
    assert created == sorted(created, reverse=True)


def test_a_tenant_whose_jobs_all_lie_in_one_shard_is_paged_to_the_end() -> None:
    shard = ids.tenant_shard(TENANT, "0" * 32)
    pks = [pk for pk in (f"{n:032x}" for n in range(100)) if ids.tenant_shard(TENANT, pk) == shard][:6]
    store = FakeJobStore(*(any_record(pk=pk) for pk in pks))
    assert sorted(job["job_id"] for page in _pages(store, 2) for job in page) == sorted(pks)


def test_filters_make_pages_short_and_lose_nothing() -> None:
    store = _store(30)
    for n in range(0, 30, 10):
        store.records[f"{n:032x}"]["status"] = FAILED
    pages = _pages(store, 4, status=FAILED)
    assert sorted(job["job_id"] for page in pages for job in page) == [f"{n:032x}" for n in range(0, 30, 10)]
    assert _pages(store, 50, type="classify") == [[]]


def test_one_page_reads_a_bounded_number_of_entries() -> None:
    store = _store(40)
    views.list_jobs(TENANT, Page(3), store)
    assert store.calls.count("of_tenant") == ids.TENANT_SHARDS
    assert store.calls.count("read_many") == 1


def test_tombstones_unreadable_and_foreign_records_are_not_listed() -> None:
    store = _store(3)
    store.records[f"{0:032x}"] = {
        "pk": f"{0:032x}", "sk": "job", "status": "DELETED", "created_at": AT,
        "tenant_shard": ids.tenant_shard(TENANT, f"{0:032x}"), "tenant": TENANT,
    }  # fmt: skip
    store.records[f"{1:032x}"]["tenant"] = "globex"
    assert [job["job_id"] for page in _pages(store, 10) for job in page] == [f"{2:032x}"]


def test_a_full_last_page_may_be_followed_by_an_empty_one_and_then_ends() -> None:
    pages = _pages(_store(1), 1)
    assert [len(page) for page in pages][:1] == [1]
    assert len(pages) <= 2


@pytest.mark.parametrize("status", FINALS)
def test_the_page_after_the_last_has_no_cursor(status: str) -> None:
    assert "cursor" not in views.list_jobs(TENANT, Page(10), _store(3, status=status))
    assert "cursor" not in views.list_jobs(TENANT, Page(10), _store(0))


def test_a_job_tells_where_it_came_from_unless_it_was_posted() -> None:
    assert views.job(any_job(source="crm"))["source"] == "crm"
    assert "source" not in views.job(any_job())
