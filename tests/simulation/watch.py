"""Looks at a stack and changes nothing: what is under way, what is recorded, what lies in its queues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import cached_property
from typing import Any

from lambdas.adapters.attributes import from_item
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.contracts.names import ANSWER_KEY, CHUNK_SK
from local.compute.environment import Environment
from local.compute.invocation import Invocation
from local.events.queues import QueueMapping
from local.events.sources import client
from local.events.streams import StreamMapping
from local.runtime import Runtime
from tests.e2e.target import Answer, Target
from tests.simulation.resting import moving

PATIENCE_S = 180.0


class Watch:
    """Sees a runtime from outside and, where the outside does not show it, from inside."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.target = Target(runtime.api, runtime.outputs, runtime.aws, runtime.model)
        self.dynamodb, self.sqs, self.sns, self.s3 = (
            client(name, runtime.aws, "us-east-1") for name in ("dynamodb", "sqs", "sns", "s3")
        )
        self.asked: list[tuple[str, Future[Any]]] = []
        """Who was asked by the test, and has perhaps not answered yet."""

    def close(self) -> None:
        for one in (self.dynamodb, self.sqs, self.sns, self.s3):
            one.close()

    def now(self) -> float:
        return self.runtime.clock.now().timestamp()

    def get(self, path: str, tenant: str) -> Answer:
        return self.target.get(path, tenant)

    # --- what is under way ---------------------------------------------------------------------------------

    def environments(self, role: str | None = None) -> list[Environment]:
        """Those that are busy."""
        functions = self.runtime.functions
        found = (functions.environment_of(request_id) for request_id in functions.running(role))
        return [environment for environment in found if environment is not None]

    def calling(self, word: str) -> Environment:
        """The worker that waits for the model's answer to a prompt with this word."""
        found: list[Environment] = []

        def look() -> bool:
            keys = {call["caller"] for call in self.model_calls(word) if call["status"] is None}
            found[:] = [one for one in self.environments("worker") if one.access_key_id in keys]
            return bool(found)

        poll(look, lambda: f"nobody asks about {word}")
        return found[0]

    def frozen(self, role: str | None = None) -> list[Environment]:
        """Those that stand still until they are thawed, or until time ends them."""
        return [environment for environment in self.environments(role) if self._stands(environment)]

    def _held(self, role: str) -> int:
        """How many stand still that somebody waits for: nobody waits for a late delivery."""
        running = [environment.running for environment in self.frozen(role)]
        return sum(one is not None and not self.runtime.faults.is_late(one.request_id) for one in running)

    def _stands(self, environment: Environment) -> bool:
        running = environment.running
        if running is None or not environment.frozen:
            return False
        return running.outlives or running.deadline_s > self.now()

    def check_answers(self) -> None:
        """Raise what the test's own threads have met."""
        answered = [future for _, future in self.asked if future.done()]
        self.asked = [one for one in self.asked if one[1] not in answered]
        for future in answered:
            future.result()

    def quiet(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until nothing moves by itself any more, until time passes or somebody is thawed."""
        poll(self._is_quiet, lambda: f"still busy: {self._busy()}", patience_s)
        self.check_answers()

    def alone(self, role: str) -> None:
        """Wait until nobody but this function is at work: others would not live to see its time pass."""
        poll(lambda: self._is_quiet(role), lambda: f"still busy: {self._busy(role)}")

    def skip(self, seconds: float) -> None:
        """Time passes when nothing moves any more, so that nobody meets his deadline by it."""
        self.quiet()
        with self.runtime.functions.at_rest(20):
            self.runtime.clock.advance(seconds)

    def _is_quiet(self, but: str = "") -> bool:
        """Twice, and nobody has ended from the first look to the last: what moves on behind a look, from where it is
        still to be looked for to where it was, takes somebody to move it."""
        ended = self.last_ended()
        return not self._busy(but) and not self._busy(but) and self.last_ended() is ended

    def last_ended(self) -> Invocation | None:
        history = self.runtime.functions.history
        return history[-1] if history else None

    def _busy(self, but: str = "") -> list[str]:
        roles = [role for role in self.runtime.functions.roles if role != but]
        running = [one for one in self.environments() if one.definition.role != but]
        busy = [f"{one.definition.role} runs" for one in running if not self._stands(one)]
        busy += [f"{role} begins or ends" for role in roles if self._under_way(role) > len(self.environments(role))]
        busy += [f"{role} is asked" for role in roles if self._waiting_for(role) > self._held(role)]
        return busy or self._busy_queues(but) or self._busy_stream() or list(moving(self.runtime))

    def _under_way(self, role: str) -> int:
        """Those that wait for their environment to start, too: nobody may be waiting for their answer."""
        return self.runtime.functions._pools[role].busy

    def _waiting_for(self, role: str) -> int:
        return sum(asked == role and not future.done() for asked, future in self.asked)

    def _busy_queues(self, but: str = "") -> list[str]:
        for mapping in self.queue_mappings:
            if mapping.role != but and (busy := self._busy_queue(mapping)):
                return busy
        return []

    def _busy_queue(self, mapping: QueueMapping) -> list[str]:
        if self.runtime.functions.paused(mapping.role) or self._is_taken_up(mapping.role):
            return self._served(mapping.role)  # and nothing is received
        if not mapping._between_looks.acquire(timeout=1):
            return ["a queue is being looked at"]
        try:
            return ["a queue has messages"] * bool(self._depth(mapping._url, "")) or self._served(mapping.role)
        finally:
            mapping._between_looks.release()

    def _is_taken_up(self, role: str) -> bool:
        """Whether everybody who could receive something stands frozen."""
        return len(self.frozen(role)) >= self.runtime.functions.concurrency(role)

    def _served(self, role: str) -> list[str]:
        batches = sum(len(mapping._invoking) for mapping in self.queue_mappings if mapping.role == role)
        return [f"a batch is served by {role}"] * (batches > self._held(role))

    def _busy_stream(self) -> list[str]:
        return [f"the stream has records for {one.role}" for one in self.stream_mappings if self._is_behind(one)]

    def _is_behind(self, mapping: StreamMapping) -> bool:
        """Whether it has something to hand over, and somebody to hand it to."""
        if not mapping.enabled or self._held(mapping.role) or self.runtime.functions.paused(mapping.role):
            return False
        return bool(mapping._reader.read(mapping.done_up_to, 1))

    def depth(self, kind: str = "all", queue: str = "WorkQueueUrl") -> int:
        """Messages in a queue, which is named by its output: those that are visible (""), or all."""
        return self._depth(self.target.outputs[queue], kind)

    def _depth(self, url: str, kind: str) -> int:
        names = [f"ApproximateNumberOfMessages{part}" for part in ("", "NotVisible", "Delayed")]
        answer = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)
        counts = {name: int(value) for name, value in answer["Attributes"].items()}
        return sum(counts.values()) if kind == "all" else counts[names[0]]

    def mappings(self, role: str) -> list[Any]:
        return [mapping for mapping in self.runtime.sources.mappings if mapping.role == role]

    @cached_property
    def queue_mappings(self) -> list[QueueMapping]:
        return [mapping for mapping in self.runtime.sources.mappings if isinstance(mapping, QueueMapping)]

    @cached_property
    def stream_mappings(self) -> list[StreamMapping]:
        return [mapping for mapping in self.runtime.sources.mappings if isinstance(mapping, StreamMapping)]

    @cached_property
    def stream_mapping(self) -> StreamMapping:
        """The dispatcher's."""
        (found,) = [mapping for mapping in self.stream_mappings if mapping.role == "dispatch"]
        return found

    # --- what there is -----------------------------------------------------------------------------------------

    @cached_property
    def jobs(self) -> DynamoJobStore:
        """For writes of the protocol that no route makes yet."""
        return DynamoJobStore(self.dynamodb, self.target.outputs["JobsTableName"])

    def record(self, job_id: str) -> dict[str, Any]:
        found = self.jobs.read(job_id)
        assert found is not None, f"there is no job {job_id}"
        return dict(found)

    def records(self, job_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Those that exist, by id."""
        return {str(found["pk"]): dict(found) for found in self.jobs.read_many(list(job_ids))}

    def all_handed_over(self, job_ids: Iterable[str]) -> bool:
        wanted = set(job_ids)
        found = self.records(wanted)
        return found.keys() == wanted and all(is_settled(record) for record in found.values())

    def answer_row(self, key: str) -> dict[str, Any] | None:
        """A row of the answers table, as plain values."""
        answer = self.dynamodb.get_item(
            TableName=self.target.outputs["AnswersTableName"], Key={ANSWER_KEY: {"S": key}}, ConsistentRead=True
        )
        return from_item(answer["Item"]) if "Item" in answer else None

    def result_object(self, key: str) -> bytes:
        body = self.s3.get_object(Bucket=self.target.outputs["ResultsBucketName"], Key=key)["Body"].read()
        return bytes(body)

    def chunks(self, job_id: str) -> list[tuple[int, int, str]]:
        """Streamed text as it is stored: attempt, number, text."""
        found = self.dynamodb.query(
            TableName=self.target.outputs["JobsTableName"],
            KeyConditionExpression="pk = :pk AND begins_with(sk, :chunk)",
            ExpressionAttributeValues={":pk": {"S": job_id}, ":chunk": {"S": CHUNK_SK}},
            ConsistentRead=True,
        )
        keys = [
            (*map(int, item["sk"]["S"].removeprefix(CHUNK_SK).split("#")), item["text"]["S"]) for item in found["Items"]
        ]
        return [(attempt, n, text) for attempt, n, text in keys]

    def model_calls(self, word: str) -> list[dict[str, Any]]:
        """The calls whose prompt has this word, answered or not."""
        return [call for call in self.runtime.model_server.calls.listed() if word in call["prompt"]]


def is_settled(record: Mapping[str, Any]) -> bool:
    """Final, told to everybody, and nothing that the sweep would look at."""
    return "handed_over_at" in record and "due_shard" not in record


def poll(done: Callable[[], bool], still: Callable[[], str], patience_s: float = PATIENCE_S) -> None:
    """AssertionError that says `still()` when it takes longer than that."""
    ends = time.monotonic() + patience_s
    while not done():
        assert time.monotonic() < ends, still()
        time.sleep(0.01)
