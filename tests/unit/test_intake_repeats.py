"""One key stands for one job; and when the store is in trouble, nothing is said that is not so."""

from __future__ import annotations

from typing import Any

import pytest

from lambdas.core import ids
from lambdas.core.canonical import canonical, sha256
from lambdas.core.intake import Accepted, ForeignRecord
from lambdas.core.job import UnreadableRecord
from lambdas.core.problems import Problem
from tests.builders import TENANT, any_body, any_request
from tests.fakes import Trouble
from tests.unit.entrance import Entrance, refused, text_of


def test_hole_1_another_body_under_the_same_key_does_not_overwrite_the_accepted_input() -> None:
    entrance = Entrance()
    first = entrance.accepted(key="k", input=text_of(9_000))
    kept = dict(entrance.inputs.objects)
    second = entrance.send(key="k", input={"text": "b" * 9_000})
    assert isinstance(second, Problem)
    assert second.status == 422
    assert kept.items() <= entrance.inputs.objects.items()
    assert entrance.store.records == {first["pk"]: first}


# --- one key, one job ------------------------------------------------------------------------------
def test_api_06_the_same_key_and_body_get_the_same_job_and_write_nothing_again() -> None:
    entrance = Entrance()
    once, again = entrance.send(key="k"), entrance.send(key="k")
    assert isinstance(once, Accepted)
    assert isinstance(again, Accepted)
    assert (once.job_id, once.new) == (again.job_id, True)
    assert not again.new
    assert len(entrance.store.images) == 1


def test_idem_09_spaces_and_the_order_of_names_make_no_other_body() -> None:
    entrance = Entrance()
    one = b'{"type":"summarize","input":{"text":"a","language":"en"}}'
    other = b' {"input" : {"language":"\\u0065n", "text":"a"}, "type":"summarize"}'
    assert isinstance(entrance.send(one, key="k"), Accepted)
    assert isinstance(entrance.send(other, key="k"), Accepted)
    assert len(entrance.store.records) == 1


@pytest.mark.parametrize(
    "over",
    [
        {"input": {"text": "b"}},
        {"type": "anything"},
        {"fresh": True},
        {"urgent": True},
        {"not_before": "2026-12-01T00:00:00Z"},
    ],
)
def test_api_06_the_same_key_with_another_body_is_422(over: dict[str, Any]) -> None:
    entrance = Entrance()
    entrance.accepted(key="k")
    outcome = entrance.send(key="k", **over)
    assert isinstance(outcome, Problem)
    assert (outcome.status, outcome.kind) == (422, "key-reused")
    assert len(entrance.store.images) == 1


@pytest.mark.parametrize("status", ["PROCESSING", "COMPLETED", "FAILED", "CANCELLED"])
def test_hole_5_a_key_stands_for_its_job_whatever_became_of_it(status: str) -> None:
    entrance = Entrance()
    record = entrance.accepted(key="k")
    record["status"] = status
    assert isinstance(entrance.send(key="k"), Accepted)
    other = entrance.send(key="k", input={"text": "b"})
    assert isinstance(other, Problem)
    assert other.status == 422


def test_idem_06_events_without_a_key_are_jobs_of_their_own() -> None:
    entrance = Entrance()
    assert entrance.accepted()["pk"] != entrance.accepted()["pk"]


def test_api_08_another_tenant_has_its_own_job_under_the_same_key() -> None:
    entrance = Entrance()
    ours, theirs = entrance.accepted(key="k"), entrance.accepted(key="k", tenant="globex", input={"text": "b"})
    assert ours["pk"] != theirs["pk"]
    assert (ours["tenant"], theirs["tenant"]) == (TENANT, "globex")


def test_hole_3_another_tenants_record_under_our_id_is_never_answered() -> None:
    entrance = Entrance()
    entrance.accepted(key="k")["tenant"] = "globex"
    with pytest.raises(ForeignRecord):
        entrance.send(key="k")


def test_n1_a_deleted_job_is_gone_also_under_its_key_and_with_any_body() -> None:
    entrance = Entrance()
    entrance.accepted(key="k")["status"] = "DELETED"
    for body in (any_body(), any_body(input={"text": "b"})):
        outcome = entrance.send(body, key="k")
        assert isinstance(outcome, Problem)
        assert outcome.status == 410


# --- troubles of the store: API-09, hole 4 ---------------------------------------------------------
def _problem(outcome: Accepted | Problem) -> Problem:
    assert isinstance(outcome, Problem)
    return outcome


def test_a_certain_refusal_of_the_store_is_503_not_accepted_and_nothing_is_recorded() -> None:
    entrance = Entrance()
    entrance.store.troubles.add("create", Trouble.REFUSED)
    problem = refused(entrance, key="k")
    assert (problem.status, problem.kind) == (503, "not-accepted")


def test_an_unknown_outcome_that_a_read_decides_is_the_ordinary_answer() -> None:
    entrance = Entrance()
    entrance.store.troubles.add("create", Trouble.UNHEARD)
    outcome = entrance.send(key="k")
    assert isinstance(outcome, Accepted)
    assert outcome.job_id in entrance.store.records


def test_an_unknown_outcome_that_a_read_finds_to_be_another_body_is_422() -> None:
    entrance = Entrance()
    entrance.accepted(key="k")
    entrance.store.troubles.add("create", Trouble.UNSENT)
    assert _problem(entrance.send(key="k", input={"text": "b"})).status == 422


def test_an_unknown_outcome_that_a_read_does_not_find_stays_unknown_and_carries_the_job_id() -> None:
    entrance = Entrance()
    entrance.store.troubles.add("create", Trouble.UNSENT)
    problem = refused(entrance, key="k")
    assert (problem.status, problem.kind) == (503, "unknown")
    assert problem.job_id == ids.job_id_from_key(TENANT, "POST", "/jobs", "k")


def test_an_unknown_outcome_that_nobody_can_read_is_503_unknown_and_carries_the_job_id() -> None:
    entrance = Entrance()
    entrance.store.troubles.add("create", Trouble.UNHEARD)
    entrance.store.troubles.add("read", Trouble.REFUSED)
    problem = _problem(entrance.send(key="k"))
    assert (problem.status, problem.kind) == (503, "unknown")
    assert problem.body()["job_id"] in entrance.store.records
    assert "same Idempotency-Key" in problem.detail


def test_a_record_that_nobody_can_read_is_503_unknown_and_no_acknowledgement() -> None:
    entrance = Entrance()

    def spoilt(call: str) -> None:
        raise UnreadableRecord("an attribute of a kind that no record of ours has")

    entrance.store.before = spoilt
    problem = _problem(entrance.send(key="k"))
    assert (problem.status, problem.kind) == (503, "unknown")
    assert problem.job_id == ids.job_id_from_key(TENANT, "POST", "/jobs", "k")


def test_a_certain_refusal_of_a_repeat_still_answers_the_job_that_stands_there() -> None:
    entrance = Entrance()
    first = entrance.accepted(key="k")
    entrance.store.troubles.add("create", Trouble.REFUSED)
    outcome = entrance.send(key="k")
    assert isinstance(outcome, Accepted)
    assert outcome.job_id == first["pk"]


@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.UNSENT])
@pytest.mark.parametrize("readable", [True, False])
def test_an_input_that_could_not_be_stored_is_503_not_accepted_and_no_record_is_tried(
    trouble: Trouble, readable: bool
) -> None:
    entrance = Entrance()
    entrance.inputs.troubles.add("put", trouble)
    if not readable:
        entrance.store.troubles.add("read", Trouble.REFUSED)
    problem = refused(entrance, input=text_of(9_000))
    assert (problem.status, problem.kind) == (503, "not-accepted")
    assert "create" not in entrance.order


def test_ddb_05_the_lost_reply_of_the_put_is_our_own_record() -> None:
    entrance = Entrance()
    entrance.store.troubles.add("create", Trouble.LOST_REPLY)
    assert isinstance(entrance.send(key="k"), Accepted)
    assert len(entrance.store.images) == 1


def test_the_hash_on_the_record_is_that_of_the_whole_canonical_request() -> None:
    assert Entrance().accepted()["body_sha"] == sha256(canonical(any_request()))
