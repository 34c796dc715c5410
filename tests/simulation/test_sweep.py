"""The sweep on the whole stack: a thousand uploads of which some were never told, and what a sweep costs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from lambdas.adapters.attributes import to_item
from lambdas.contracts import names
from lambdas.contracts.names import COMPLETED
from local.aws.lock import MOTO
from local.aws.tables import find_table, stored_item
from local.runtime import Runtime
from tests.e2e.target import eventually
from tests.simulation.outside import SETTINGS, Outside, a_word
from tests.simulation.watch import poll

pytestmark = pytest.mark.slow

UPLOADS, DROPPED, DOUBLED, REORDERED = 1_000, 37, 11, 5


class Logs:
    """What the functions write, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, *told: Any) -> None:
        self.lines += [str(one) for one in told if isinstance(one, str)]

    def metric(self, name: str) -> list[int]:
        """All values of a metric, in the order in which they were told."""
        found = []
        for line in self.lines:
            _, brace, rest = line.partition("{")
            if brace and '"_aws"' in line and f'"{name}"' in line:
                value = json.loads(brace + rest)[name]
                found.append(int(value[0] if isinstance(value, list) else value))
        return found


@pytest.fixture(scope="module")
def logs() -> Logs:
    return Logs()


@pytest.fixture(scope="module")
def outside(logs: Logs) -> Iterator[Outside]:
    settings = {**SETTINGS, "source_grace_s": "60"}
    with Runtime(settings, write_log=logs) as runtime:
        stack = Outside(runtime)
        yield stack
        stack.close()


def sweep(outside: Outside, *parts: str) -> dict[str, Any]:
    """As an operator asks for it; its certificate."""
    answer = outside.target.post("/admin/sweeps", {"parts": list(parts)})
    assert answer.status == 202, answer
    place = answer.json()["links"]["self"]
    found: dict[str, Any] = eventually(
        lambda: outside.target.get(place).json(), lambda seen: seen["status"] != "RUNNING", patience_s=300
    )
    outside.quiet()  # then it has also told its metrics
    return found


def all_done(outside: Outside, job_ids: list[str], number: int) -> None:
    """Until so many of them are."""
    eventually(lambda: completed(outside, job_ids), lambda done: done >= number, patience_s=900)


def completed(outside: Outside, job_ids: list[str]) -> int:
    """Seen where moto keeps them: to ask for a thousand records at each look is half of this module's work."""
    table = find_table("us-east-1", outside.target.outputs["JobsTableName"])
    assert table is not None
    with MOTO:
        found = [stored_item(table, to_item({"pk": job_id, "sk": names.JOB_SK})) for job_id in job_ids]
    return sum(item is not None and item["status"] == {"S": COMPLETED} for item in found)


def test_after_one_sweep_every_upload_is_a_completed_job_and_the_certificate_says_which_were_missing(
    outside: Outside, logs: Logs
) -> None:
    word = a_word()
    marks = ["lost"] * DROPPED + ["doubled"] * DOUBLED + ["mixed"] * REORDERED
    marks += ["plain"] * (UPLOADS - len(marks))
    outside.runtime.notifications.drop(DROPPED, f"{word}-lost")
    outside.runtime.notifications.duplicate(DOUBLED, f"{word}-doubled")
    outside.runtime.notifications.reorder(REORDERED, f"{word}-mixed")
    jobs = {
        outside.put(f"uploads/acme/summarize/{word}-{mark}-{number}", f"ANN: {word} {number}".encode()): mark
        for number, mark in enumerate(marks)
    }
    outside.runtime.notifications.release()
    told = [job_id for job_id, mark in jobs.items() if mark != "lost"]
    all_done(outside, told, len(told))
    outside.skip(61)

    certificate = sweep(outside, "uploads")
    part = certificate["parts"]["uploads"]
    assert (certificate["status"], certificate["repaired"], certificate["troubles"]) == ("DONE", DROPPED, 0)
    assert (part["source"], part["completed"], part["retriggered"], part["balanced"]) == (
        UPLOADS, UPLOADS - DROPPED, DROPPED, True,
    )  # fmt: skip
    assert set(part["repaired_ids"]) == {job_id for job_id, mark in jobs.items() if mark == "lost"}
    assert logs.metric(names.SWEEP_REPAIRED)[-1] == logs.metric(names.SOURCE_MISSING)[-1] == DROPPED

    everybody = list(jobs)
    all_done(outside, everybody, UPLOADS)
    found = outside.records(everybody).values()
    assert {(record["attempt"], record["tries"]) for record in found} == {(1, 1)}
    assert len(outside.model_calls(word)) == UPLOADS

    again = sweep(outside, "uploads")
    assert (again["repaired"], again["parts"]["uploads"]["completed"]) == (0, UPLOADS)
    assert logs.metric(names.SWEEP_REPAIRED)[-1] == 0


def keep_finished(outside: Outside, number: int) -> None:
    """So many more jobs that are done and were handed over, put into the table itself: through the door and the stream
    they would take an hour."""
    job_id = outside.target.submit("summarize", {"text": f"ANN: {a_word()}"})
    outside.target.final(job_id)
    outside.quiet()
    template = to_item(outside.record(job_id))
    assert "due_shard" not in template
    table = find_table("us-east-1", outside.target.outputs["JobsTableName"])
    assert table is not None
    with MOTO:
        stream, table.stream_shard = table.stream_shard, None
        for _ in range(number):
            table.put_item({**template, "pk": {"S": uuid.uuid4().hex}})
        table.stream_shard = stream


def read_units_of_a_sweep(outside: Outside, stuck: int) -> tuple[float, int]:
    """Of one that finds so many jobs without a message; and how many calls it made."""
    word = a_word()
    for mapping in outside.mappings("dispatch"):
        mapping.disable()
    outside.runtime.functions.pause("worker")
    jobs = [outside.target.submit("summarize", {"text": f"ANN: {word} {number}"}) for number in range(stuck)]
    outside.skip(150)
    outside.runtime.meter.reset()
    outcome = outside.runtime.functions.invoke("sweep", {"parts": ["stuck"]})
    assert outcome.result["parts"]["stuck"]["sent"] == stuck
    calls = [call for call in outside.runtime.meter.calls() if call.function == "sweep"]
    outside.runtime.functions.resume("worker")
    for mapping in outside.mappings("dispatch"):
        mapping.enable()
    all_done(outside, jobs, stuck)
    outside.quiet()
    return sum(call.read_units for call in calls), len(calls)


def test_what_a_sweep_reads_depends_on_what_is_stuck_and_not_on_what_is_kept(outside: Outside) -> None:
    keep_finished(outside, 1_000)
    few = read_units_of_a_sweep(outside, 100)
    keep_finished(outside, 99_000)
    many = read_units_of_a_sweep(outside, 100)
    assert few == many
    assert few[0] <= 100 + 16 + 16  # each job once, each shard once, and its own books


def work_off(outside: Outside, jobs: list[str], target: int) -> None:
    """Until so many are done; nobody is in the middle of one afterwards."""
    outside.runtime.functions.resume("worker")
    all_done(outside, jobs, target)
    outside.runtime.functions.pause("worker")
    poll(lambda: not outside.environments("worker"), lambda: "somebody works on and on")


def test_a_backlog_that_drains_over_many_sweeps_costs_at_most_two_messages_a_job(outside: Outside) -> None:
    """The model's burst of 60,000 (tests/unit/test_sweep_backlog.py), on the runtime: a batch of work, then a sweep."""
    backlog, batch = 240, 40
    word = a_word()
    outside.runtime.functions.pause("worker")
    jobs = [outside.target.submit("summarize", {"text": f"ANN: {word} {number}"}) for number in range(backlog)]
    poll(lambda: outside.depth() == backlog, lambda: f"{outside.depth()} messages")
    outside.runtime.meter.reset()
    sent = rounds = 0
    while completed(outside, jobs) < backlog:
        rounds += 1
        assert rounds < 20
        outside.skip(300)
        part = outside.runtime.functions.invoke("sweep", {"parts": ["stuck"]}).result["parts"]["stuck"]
        sent += part["sent"]
        work_off(outside, jobs, min(backlog, rounds * batch))
    outside.runtime.functions.resume("worker")
    assert backlog + sent <= 2 * backlog
    found = outside.records(jobs).values()
    assert {record["tries"] for record in found} == {1}
    assert len(outside.model_calls(word)) == backlog
