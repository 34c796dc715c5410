"""How a job that was struck must end: what is counted, what is told, and where a second call is paid for."""

from __future__ import annotations

from tests.simulation.plays import Evidence, Scenario
from tests.simulation.points import ANSWER, KILLS, MODEL, SAVE

# The answer was given, and nothing durable holds it: from the start of the call to its first durable write.
PAID_TWICE = {
    *(Scenario(SAVE, strike) for strike in ("crash_before", "timeout_before", "refused")),
    *(Scenario(ANSWER, strike, "large") for strike in ("crash_before", "timeout_before", "refused")),
    *(Scenario(MODEL, strike) for strike in ("crash", "timeout", "lost_reply")),
}
# The worker lived to see that it could not keep what it paid for (or may have): that try counts.
CHARGED = {
    *(Scenario(SAVE, strike, size) for size in ("plain", "large") for strike in ("refused", "unheard")),
    *(Scenario(ANSWER, strike, "large") for strike in ("refused", "unheard")),
    Scenario(MODEL, "lost_reply"),
}
FAILS = {"failing": "MODEL_PERMANENT", "failed": "MODEL_PERMANENT", "late": "DEADLINE_EXCEEDED"}


def crashes(scenario: Scenario) -> int:
    """How often somebody held the job and was not heard of again."""
    point, strike = scenario.point, scenario.strike
    if scenario.situation == "crashed":
        return 1
    if point is MODEL:
        return int(strike in ("crash", "timeout"))
    if point.function != "worker":
        return 0
    ends = point.name in ("complete", "fail")
    if strike in KILLS:
        before_holding = point.name == "claim" and strike.endswith("before")
        return int(not before_holding and not (ends and strike.endswith("after")))
    return int((ends and strike == "refused") or (point.name == "claim" and strike == "unheard"))


def assert_ends_right(scenario: Scenario, evidence: Evidence) -> None:
    """The right final state, one result, told, left alone, counted and paid for as it must be."""
    assert evidence.struck
    assert_settled(evidence)
    if scenario.situation in FAILS:
        assert_failed(evidence, FAILS[scenario.situation])
    else:
        assert_completed(evidence)
    record = evidence.record
    assert record["crashes"] == crashes(scenario)
    assert record["tries"] == (scenario.situation != "late") + record["crashes"] + (scenario in CHARGED)
    assert evidence.calls == (0 if scenario.situation in FAILS else 2 if scenario in PAID_TWICE else 1)
    assert_cost_covers(evidence, scenario)


def assert_settled(evidence: Evidence) -> None:
    """Nobody need look at it again, and who must hear of it has heard, perhaps more than once, of one fact."""
    record = evidence.record
    assert "handed_over_at" in record
    assert not {"due_at", "due_shard"} & record.keys()
    fact = f"{record['pk']}.{record['attempt']}.{record['status']}"
    assert {event["event_id"] for event in evidence.events} == {fact}
    assert {event["payload"]["status"] for event in evidence.events} == {record["status"]}


def assert_completed(evidence: Evidence) -> None:
    record = evidence.record
    assert record["status"] == "COMPLETED"
    assert evidence.result_status == 200
    assert evidence.result_bytes == evidence.stored_bytes
    assert len(evidence.result_bytes) == record["result_bytes"]
    assert record["result_key"].endswith(f"/{record['attempt']}")
    assert evidence.letters == []


def assert_failed(evidence: Evidence, reason: str) -> None:
    record = evidence.record
    assert (record["status"], record["error"]["code"]) == ("FAILED", reason)
    assert evidence.result_status == 409
    assert evidence.stored_bytes is None
    named = {(letter["payload"]["attempt"], letter["payload"]["reason"]) for letter in evidence.letters}
    assert named == {(record["attempt"], reason)}


def assert_cost_covers(evidence: Evidence, scenario: Scenario) -> None:
    """What is booked, and one call for each claim of which nothing more was heard, cover the calls that were seen."""
    one_call = 587 if scenario.situation == "large" else 4
    booked = evidence.record["cost"]
    assert booked + evidence.record["crashes"] * one_call >= evidence.calls * one_call
    if evidence.record["crashes"] == 0 and scenario.point is not MODEL:
        assert booked == evidence.calls * one_call
