"""A seeded part of the proof that `make prove` gives in full, and a few pairs of faults, of every scenario."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.simulation.proof.boundaries import Boundary
from tests.simulation.proof.cases import Case, cases_of, faults_at, parse
from tests.simulation.proof.pairs import pairs_of, sample_of_pairs
from tests.simulation.proof.proving import Prover, Verdict, proving, sample
from tests.simulation.proof.scenarios import SCENARIOS
from tests.simulation.proof.table import shown

pytestmark = pytest.mark.slow

SEED, SHARE, PAIRS = "a part", 0.02, 1
SLOWER, LESS = ("stream", "stream-cancelled", "webhook", "webhook-unheard"), 0.01


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proof")


@pytest.fixture(scope="module")
def prover(code: Path) -> Iterator[Prover]:
    with proving(code) as prover:
        yield prover


def assert_proven(verdicts: list[Verdict]) -> None:
    found = [shown(vars(violation)) for verdict in verdicts for violation in verdict.violations]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_job_that_is_struck_ends_as_if_it_were_not(prover: Prover, scenario: str) -> None:
    every = prover.cases(scenario)
    singles = sample(every, LESS if scenario in SLOWER else SHARE, f"{SEED}/{scenario}")
    assert_proven(prover.prove([*singles, *sample_of_pairs(every, PAIRS, f"{SEED}/{scenario}")]))


# --- the harness itself ---------------------------------------------------------------------------------------------
@contextmanager
def changed(prover: Prover, file: Path, was: str, now: str) -> Iterator[None]:
    """The functions run with other code meanwhile."""
    as_shipped = file.read_text()
    assert was in as_shipped
    try:
        file.write_text(as_shipped.replace(was, now))
        prover.player.stage.runtime.functions.reload()
        yield
    finally:
        file.write_text(as_shipped)
        prover.player.stage.runtime.functions.reload()


def test_a_call_that_is_added_to_a_function_is_a_boundary(prover: Prover, code: Path) -> None:
    before = prover.record("plain")
    put = "self._client.put_object(Bucket=self._bucket, Key=key, Body=body, ContentType=JSON)"
    with changed(prover, code / "lambdas" / "adapters" / "s3.py", put, f"{put}; {put}"):
        after = prover.record("plain")
    assert set(after) - set(before) == {Boundary("worker", "s3", "PutObject", nth=2)}


def test_a_job_that_is_marked_though_nobody_was_told_is_found(prover: Prover, code: Path) -> None:
    """A safety line less: what could not be published counts as published."""
    case = parse("plain@dispatch.2:sns.PublishBatch#1/refused")
    publish = "failed |= _send(routes, lambda r: r.event, outbox.publish, failed)"
    with changed(prover, code / "lambdas" / "core" / "dispatching.py", publish, publish.replace("failed |= ", "")):
        (verdict,) = prover.prove([case])
    assert [violation.invariant for violation in verdict.violations] == ["told_of_each_fact"]
    assert_proven(prover.prove([case]))


def test_a_job_that_nobody_works_on_any_more_is_found(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the harness does for the job is taken away: no sweep comes. The proof must say so, and not hang."""
    case = parse("plain@worker:dynamodb.UpdateItem#1/crash_after")
    monkeypatch.setattr(type(prover.player), "_sweep", lambda player: None)
    monkeypatch.setattr(type(prover.player), "rounds", 3)
    (verdict,) = prover.prove([case])
    assert [violation.invariant for violation in verdict.violations] == ["comes_to_rest"]


def test_every_boundary_is_struck_with_everything_that_means_something_there() -> None:
    send, read = Boundary("dispatch", "sqs", "SendMessageBatch"), Boundary("worker", "s3", "GetObject", turn=2)
    trace = [send, read, Boundary("dispatch", "handler", "Invoke"), Boundary("worker", "bedrock", "Converse")]
    cases = cases_of("plain", trace)
    assert {case.blows[0].boundary for case in cases} == set(trace)
    assert ("ghost" in faults_at(send), "ghost" in faults_at(read)) == (True, False)
    assert [parse(str(case)) for case in cases] == cases
    assert str(cases[0]) == "plain@dispatch:sqs.SendMessageBatch#1/crash_before"
    assert parse("redriven@worker.2:s3.GetObject#1/throttle+worker.2:model/crash").blows[1].boundary.turn == 2


def test_all_pairs_are_of_two_boundaries_and_a_sample_is_of_them() -> None:
    cases = cases_of("plain", [Boundary("accept", "dynamodb", "PutItem"), Boundary("worker", "bedrock", "Converse")])
    pairs = list(pairs_of(cases))
    assert len(pairs) == len(faults_at(cases[0].blows[0].boundary)) * (len(faults_at(cases[-1].blows[0].boundary)) - 1)
    drawn = sample_of_pairs(cases, 9, "seed")
    assert (len(drawn), drawn) == (9, sample_of_pairs(cases, 9, "seed"))
    assert set(drawn) <= set(pairs)


def test_text_that_is_not_all_stored_is_found(prover: Prover, code: Path) -> None:
    """A safety line less: what the store did not take while the model spoke is not made up for."""
    case = parse("stream@worker:dynamodb.PutItem#3/throttle")
    recorder = code / "lambdas" / "core" / "streaming" / "recorder.py"
    with changed(prover, recorder, "        self._store()\n", "        self._store_quietly()\n"):
        (verdict,) = prover.prove([case])
    assert "its_text_is_in_chunks" in [violation.invariant for violation in verdict.violations]
    assert_proven(prover.prove([case]))


def test_an_event_that_comes_under_another_id_each_time_is_found(prover: Prover, code: Path) -> None:
    """Then its receiver takes it for another one."""
    case = parse("webhook@deliver.3:receiver/lost_reply")
    calling, id_ = code / "lambdas" / "core" / "webhooks" / "calling.py", '"webhook-id": delivery.event_id,'
    with changed(prover, calling, id_, f"{id_[:-1]} + str(delivery.attempt),"):
        (verdict,) = prover.prove([case])
    assert "a_delivery_is_the_same_each_time" in [violation.invariant for violation in verdict.violations]
    assert_proven(prover.prove([case]))


@pytest.mark.parametrize("name", ["plain@worker:handler/ghost", "plain@worker/crash", "plain@query:s3.GetObject/ghost"])
def test_a_case_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"means nothing|is no boundary"):
        parse(name)


def test_a_scenario_alone_is_the_case_without_a_blow() -> None:
    assert parse("plain") == Case("plain", ())
