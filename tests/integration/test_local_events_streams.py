"""Stream mappings: order, retries, bisecting, giving up. Against a list as stream and a function that is told what
to answer, so that each step can be looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from local.clock import VirtualClock
from local.compute.boundaries import OpenBoundaries
from local.compute.invocation import Invocation
from local.events.bells import Bell
from local.events.streams import StreamMapping, trim_what_all_have_done
from local.stack.errors import TemplateError

ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/T/stream/2026"
POISON = "poison"


class ListedStream:
    """A stream reader over a list."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.records: list[dict[str, Any]] = []
        self.trimmed_to = "none"

    def write(self, *keys: str) -> None:
        for key in keys:
            change = {
                "Keys": {"pk": {"S": key}},
                "SequenceNumber": str(100 + len(self.records)),
                "ApproximateCreationDateTime": self._clock.now().timestamp(),
            }
            self.records.append({"eventName": "INSERT", "dynamodb": change})

    def read(self, after_sequence: str | int | None = None, limit: int = 1000) -> list[dict[str, Any]]:
        start = 0 if after_sequence is None else int(after_sequence) - 99
        return self.records[start : start + limit]

    def latest(self) -> str:
        return str(99 + len(self.records))

    def trim(self, up_to_sequence: str | int) -> None:
        self.trimmed_to = str(up_to_sequence)


class ToldFunction:
    """Stands for local.compute's Functions; fails a batch that contains the poison, or answers what it was told."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.answers: list[Any] = []
        self.room = True
        self.boundaries = OpenBoundaries()

    def role(self, name: str) -> str:
        return name

    def definition(self, role: str) -> Any:
        return SimpleNamespace(arn="arn:aws:lambda:us-east-1:123456789012:function:toy")

    def paused(self, role: str) -> bool:
        return False

    def acquire(self, role: str, timeout_s: float) -> Any:
        return SimpleNamespace(release=lambda: None) if self.room else None

    def use(self, slot: Any, event: dict[str, Any]) -> Invocation:
        keys = [record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]]
        self.batches.append(keys)
        if self.answers:
            return Invocation("toy", "r", result=self.answers.pop(0))
        failed = POISON in keys
        return Invocation("toy", "r", error={"errorType": "ValueError"} if failed else None)


class Bench:
    """A mapping under test, run step by step."""

    def __init__(self, clock: VirtualClock, **properties: Any) -> None:
        self.clock = clock
        self.stream = ListedStream(clock)
        self.function = ToldFunction()
        self.letters: list[dict[str, Any]] = []
        self.properties = {
            "FunctionName": "toy",
            "EventSourceArn": ARN,
            "StartingPosition": "TRIM_HORIZON",
            **properties,
        }
        self.mapping = self.make()

    def make(self) -> StreamMapping:
        functions: Any = self.function
        return StreamMapping(
            "Mapping",
            self.properties,
            functions,
            Bell(self.clock),
            reader=self.stream,
            give_up=lambda _, letter: self.letters.append(json.loads(letter)),
        )

    def run(self, steps: int = 1) -> list[list[str]]:
        """The batches of so many looks."""
        before = len(self.function.batches)
        for _ in range(steps):
            self.mapping._look()
        return self.function.batches[before:]


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def failures(*sequences: int) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": str(sequence)} for sequence in sequences]}


PARTIAL = {"FunctionResponseTypes": ["ReportBatchItemFailures"]}
ON_FAILURE = {"DestinationConfig": {"OnFailure": {"Destination": "arn:aws:sqs:us-east-1:123456789012:letters"}}}


def test_records_come_in_order_in_batches_of_the_declared_size(clock):
    bench = Bench(clock, BatchSize=2)
    bench.stream.write("a", "b", "c")
    assert bench.run(3) == [["a", "b"], ["c"]]


def test_trim_horizon_starts_with_the_oldest_record_and_latest_with_the_next(clock):
    bench = Bench(clock, StartingPosition="LATEST")
    bench.stream.write("old")
    bench.mapping = bench.make()
    bench.stream.write("new")
    assert bench.run(2) == [["new"]]


def test_filtered_records_never_reach_the_function_and_are_done_with(clock):
    pattern = json.dumps({"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "job"}]}}}})
    bench = Bench(clock, FilterCriteria={"Filters": [{"Pattern": pattern}]})
    bench.stream.write("job1", "noise", "job2", "noise")
    assert bench.run(2) == [["job1", "job2"]]
    assert bench.mapping.done_up_to == "103"


def test_failed_batch_is_repeated_before_anything_newer(clock):
    bench = Bench(clock, BatchSize=2)
    bench.stream.write("a", POISON, "c")
    assert bench.run(3) == [["a", POISON]] * 3


def test_batch_09_retry_starts_at_the_lowest_failed_record(clock):
    bench = Bench(clock, **PARTIAL)
    bench.stream.write("a", "b", "c")
    bench.function.answers = [failures(102, 101), failures()]
    assert bench.run(3) == [["a", "b", "c"], ["b", "c"]]


def test_partial_answer_counts_for_nothing_when_the_mapping_does_not_ask_for_it(clock):
    bench = Bench(clock)
    bench.stream.write("a", "b")
    bench.function.answers = [failures(101)]
    assert bench.run(2) == [["a", "b"]]


def test_malformed_partial_answer_repeats_the_whole_batch(clock):
    bench = Bench(clock, **PARTIAL)
    bench.stream.write("a", "b")
    bench.function.answers = [{"batchItemFailures": [{"itemIdentifier": "999"}]}, None]
    assert bench.run(3) == [["a", "b"], ["a", "b"]]


def test_bisecting_isolates_the_poison_and_the_others_get_through(clock):
    bench = Bench(clock, BisectBatchOnFunctionError=True, MaximumRetryAttempts=1, **ON_FAILURE)
    bench.stream.write("a", "b", POISON, "d")
    assert bench.run(8) == [
        ["a", "b", POISON, "d"],
        ["a", "b"],
        [POISON, "d"],
        [POISON],
        [POISON],
        ["d"],
    ]
    assert [letter["DDBStreamBatchInfo"]["startSequenceNumber"] for letter in bench.letters] == ["102"]


def test_without_bisecting_all_records_of_the_batch_are_given_up_with_the_poison(clock):
    bench = Bench(clock, MaximumRetryAttempts=1, **ON_FAILURE)
    bench.stream.write("a", POISON, "c")
    bench.run(2)
    (letter,) = bench.letters
    assert letter["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert letter["requestContext"]["approximateInvokeCount"] == 2
    assert letter["DDBStreamBatchInfo"]["batchSize"] == 3
    assert letter["DDBStreamBatchInfo"]["streamArn"] == ARN
    bench.stream.write("d")
    assert bench.run() == [["d"]]


def test_letter_names_the_place_in_the_stream_and_holds_no_record(clock):
    bench = Bench(clock, MaximumRetryAttempts=0, **ON_FAILURE)
    bench.stream.write(POISON)
    bench.run()
    assert POISON not in json.dumps(bench.letters)


def test_records_older_than_the_cap_are_given_up_without_another_try(clock):
    bench = Bench(clock, MaximumRecordAgeInSeconds=3600, **ON_FAILURE)
    bench.stream.write(POISON)
    bench.run()
    clock.advance(3000)
    bench.stream.write("young")
    clock.advance(1000)
    assert bench.run(2) == [["young"]]
    assert bench.letters[0]["requestContext"]["condition"] == "RecordAgeExceeded"


def test_unlimited_retries_go_on_and_slow_down(clock):
    bench = Bench(clock)
    bench.stream.write(POISON)
    pauses = [bench.mapping._look() for _ in range(8)]
    assert pauses == sorted(pauses)
    assert pauses[0] > 0
    assert pauses[-1] == 2.0


def test_records_beyond_a_day_are_gone_from_the_stream(clock):
    bench = Bench(clock)
    bench.stream.write("lost")
    clock.advance(25 * 3600)
    bench.stream.write("kept")
    assert bench.run() == [["kept"]]


def test_busy_function_loses_nothing(clock):
    bench = Bench(clock)
    bench.stream.write("a")
    bench.function.room = False
    assert bench.run() == []
    bench.function.room = True
    assert bench.run() == [["a"]]


def test_stream_is_trimmed_to_what_the_slowest_mapping_has_done(clock):
    fast, slow = Bench(clock), Bench(clock)
    for bench in (fast, slow):
        bench.stream.write("a", POISON)
    fast.function.answers = [None]
    slow.properties["BatchSize"] = 1
    slow.mapping = slow.make()
    fast.run(2)
    slow.run(2)
    trim_what_all_have_done(fast.stream, [fast.mapping, slow.mapping])
    assert fast.stream.trimmed_to == "100"


def test_batching_window_waits_in_virtual_time_for_more(clock):
    bench = Bench(clock, MaximumBatchingWindowInSeconds=60)
    bench.stream.write("a")
    slept = bench.mapping._bell

    def sleep_until(moment_s: float, *_: Any, **__: Any) -> None:
        bench.stream.write("b")
        clock.advance(120)

    slept.sleep_until = sleep_until  # type: ignore[method-assign]
    assert bench.run() == [["a", "b"]]


def test_parallelization_that_is_not_played_here_is_refused(clock):
    with pytest.raises(TemplateError, match="ParallelizationFactor"):
        Bench(clock, ParallelizationFactor=2)
