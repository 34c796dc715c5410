"""Ids, shards and object keys: pure functions of what they name, and nothing else is named by them."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lambdas.core import ids

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


NAMED = st.tuples(ANY, ANY, ANY)


@given(NAMED, NAMED)
def test_job_ids_of_other_tenants_routes_or_keys_never_collide(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (ids.job_id_from_key(one[0], "POST", *one[1:]) == ids.job_id_from_key(other[0], "POST", *other[1:])) == (
        one == other
    )


def test_a_separator_moved_from_the_key_into_the_tenant_makes_another_job() -> None:
    shifted = [
        ("a", "/jobs", "x|POST|/jobs|y"),
        ("a|POST|/jobs|x", "/jobs", "y"),
        ('a","POST', "/jobs", "y"),
        ("a", "/jobs", "y"),
    ]
    assert len({ids.job_id_from_key(tenant, "POST", route, key) for tenant, route, key in shifted}) == len(shifted)


def test_the_method_is_part_of_the_job_id() -> None:
    assert ids.job_id_from_key("a", "POST", "/jobs", "k") != ids.job_id_from_key("a", "PUT", "/jobs", "k")


def test_a_job_id_keeps_128_bits_and_is_the_same_each_time() -> None:
    once, again = (ids.job_id_from_key("a", "POST", "/jobs", "k") for _ in range(2))
    assert once == again
    assert len(once) == 32
    assert int(once, 16) >= 0


def test_a_claim_is_named_by_its_invocation_and_its_message() -> None:
    claims = {ids.claim_id(request, message) for request in ("r1", "r2") for message in ("m1", "m2")}
    assert len(claims) == 4
    assert ids.claim_id("r1", "m1") in claims
    assert ids.claim_id("r1m", "1") != ids.claim_id("r1", "m1")


@given(ANY, ANY)
def test_every_job_lies_in_a_shard_that_is_looked_through(tenant: str, job_id: str) -> None:
    assert ids.due_shard(job_id) in ids.due_shards()
    assert ids.tenant_shard(tenant, job_id) in ids.tenant_shards(tenant)


def test_jobs_are_spread_over_all_shards() -> None:
    jobs = [f"{n:032x}" for n in range(1_000)]
    assert {ids.due_shard(job) for job in jobs} == set(ids.due_shards())
    assert {ids.tenant_shard("t", job) for job in jobs} == set(ids.tenant_shards("t"))


def test_a_fact_has_one_event_id_whoever_publishes_it() -> None:
    assert ids.event_id("j", 3, "FAILED") == "j.3.FAILED"


def test_object_keys_name_tenant_job_and_what_must_not_be_overwritten() -> None:
    assert ids.input_key("t", "j", "abc") == "inputs/t/j/abc"
    assert ids.result_key("t", "j", 7) == "results/t/j/7"
    assert ids.answer_key("t", "k") == "answers/t/k"
    assert ids.context_key("t", "calls/7.txt") == "context/t/calls/7.txt"


def test_an_upload_id_proves_itself_for_its_tenant_and_its_type_alone() -> None:
    name = ids.upload_id("acme", "summarize", "0123456789abcdef" * 2)
    assert re.fullmatch(r"[0-9a-f]{32}", name)
    assert name[:20] == "0123456789abcdef0123"
    assert ids.is_upload_id("acme", "summarize", name)
    assert not ids.is_upload_id("globex", "summarize", name)
    assert not ids.is_upload_id("acme", "classify", name)
    for position in range(32):
        digit = "0" if name[position] != "0" else "1"
        assert not ids.is_upload_id("acme", "summarize", name[:position] + digit + name[position + 1 :])
    for other in ("", name[:-1], name + "0", name.upper(), "é" * 32):
        assert not ids.is_upload_id("acme", "summarize", other)


def test_each_version_of_an_object_is_a_job_of_its_own() -> None:
    found = {
        ids.object_job_id(*parts) for parts in (("b", "k", "1"), ("b", "k", "2"), ("b", "k1", ""), ("bk", "", "1"))
    }
    assert len(found) == 4
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in found)


def test_an_execution_is_named_by_its_job_and_run_and_by_nothing_else() -> None:
    name = ids.execution_name("job", 3)
    assert re.fullmatch(r"[0-9a-f]{64}", name)  # Step Functions takes up to 80, of few characters
    assert name == ids.execution_name("job", 3)
    assert len({name, ids.execution_name("job", 4), ids.execution_name("job3", 3), ids.execution_name("jo", 3)}) == 4


def test_what_a_branch_gave_lies_under_its_question_whatever_the_run() -> None:
    sha = ids.part_sha("summary", "summarize", '{"text":""}')
    assert re.fullmatch(r"[0-9a-f]{32}", sha)
    others = [("summar", "ysummarize", '{"text":""}'), ("summary", "classify", '{"text":""}'),
              ("summary", "summarize", '{"text":"x"}'), ("facts", "summarize", '{"text":""}')]  # fmt: skip
    assert sha not in {ids.part_sha(*other) for other in others}
    assert ids.part_key("acme", "j", "summary", sha) == f"results/acme/j/parts/summary/{sha}"


def test_the_results_of_a_run_of_an_attempt_and_of_a_branch_never_meet() -> None:
    runs = [ids.run_result_key("acme", "j", *one) for one in ((1, "{}"), (1, "[]"), (11, "{}"))]
    keys = [*runs, ids.result_key("acme", "j", 1), ids.part_key("acme", "j", "run-1", "1")]
    assert len(set(keys)) == 5
    assert [key.startswith(ids.run_results("acme", "j", 1)) for key in keys] == [True, True, False, False, False]
    assert all(key.startswith(ids.job_objects("acme", "j")) for key in keys)
    assert not ids.job_objects("acme", "j").startswith(ids.job_objects("acme", "job"))
