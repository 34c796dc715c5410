"""A stack of one's own, its clock in the test's hand: who asks it, what strikes it, and how time passes for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from lambdas.core import ids
from local.compute.environments import REPOSITORY
from local.compute.invocation import Invocation
from local.faults import Fault
from local.runtime import Runtime
from tests.e2e.target import Answer
from tests.simulation.watch import Watch, poll

TASKS = Path(__file__).parent / "tasks"
LEASE_S = 130  # of the default settings: the worker's timeout and ten seconds
SWEEP_PERIOD_S = 300
SWEEP_LEASE_S = 131  # a sweep's timeout, ten seconds, and one
VISIBILITY_S = 720


class Stage(Watch):
    """The stack, its clock in the test's hand. Nothing sweeps but `sweep`."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self.threads = ThreadPoolExecutor(24, "stage")
        self.inbox = self._subscribe()
        runtime.sources.schedules.switch("sweep", on=False)

    def reset(self) -> None:
        """No fault, no script, everything switched on, nobody frozen: as it was in the beginning."""
        self.asked.clear()
        self.runtime.faults.clear()
        self.runtime.model_server.script.replace([])
        self.runtime.meter.reset()
        for environment in self.frozen():
            environment.kill("crash")
        for role in self.runtime.functions.roles:
            self.runtime.functions.resume(role)
        for role in self.runtime.functions.roles:
            self.runtime.functions.set_concurrency(role, None)
        self.enable("dispatch")
        self.batches_of(10, 100)

    # --- clients -----------------------------------------------------------------------------------------

    def ask(self, role: str, action: Callable[[], Any]) -> Future[Any]:
        """Do it on another thread; as long as it is not done, the stack is busy, unless `role` stands frozen."""
        self.check_answers()
        future = self.threads.submit(action)
        self.asked.append((role, future))
        return future

    def submit(self, type_: str, task_input: Any, *, key: str, tenant: str, **more: Any) -> Future[str]:
        """A client that repeats its request under the same key until it is accepted; the job's id."""
        return self.ask("accept", lambda: self._insist({"type": type_, "input": task_input, **more}, key, tenant))

    def _insist(self, body: Any, key: str, tenant: str) -> str:
        for _ in range(10):
            try:
                answer = self.target.post("/jobs", body, idempotency_key=key, x_local_tenant=tenant)
            except OSError:  # cut off: nobody knows, so the same once more
                continue
            if answer.status == 202:
                return str(answer.json()["job_id"])
            assert answer.status >= 500, answer
        raise AssertionError(f"{key} was not accepted in ten requests")

    def cancel(self, job_id: str, tenant: str) -> Answer:
        return self._act("POST", f"/jobs/{job_id}/cancel", tenant)

    def retry(self, job_id: str, tenant: str) -> Answer:
        return self._act("POST", f"/jobs/{job_id}/retry", tenant)

    def delete(self, job_id: str, tenant: str) -> Answer:
        return self._act("DELETE", f"/jobs/{job_id}", tenant)

    def _act(self, method: str, path: str, tenant: str) -> Answer:
        return self.target.request(method, path, headers={"x-local-tenant": tenant})

    @staticmethod
    def job_id(key: str, tenant: str) -> str:
        """The job that a key will mean, to be known before it is used."""
        return ids.job_id_from_key(tenant, "POST", "/jobs", key)

    # --- time ------------------------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        self.runtime.clock.advance(seconds)

    def sweep(self) -> Invocation | None:
        """One sweep of what is stuck to its end, or until it stands frozen (None)."""
        future = self.ask("sweep", lambda: self.runtime.sources.schedules.run("sweep", "stuck"))
        poll(lambda: future.done() or bool(self.frozen("sweep")), lambda: "the sweep goes on and on")
        return future.result() if future.done() else None

    def pass_time(self, seconds: float = LEASE_S + 20) -> None:
        """One round: who stands frozen comes to its deadline; else `seconds` go by, and a sweep after them. A sweep
        that died is followed by the next as soon as its lease is over."""
        self.quiet()
        deadlines = [one.running.deadline_s for one in self.frozen() if one.running and not one.running.outlives]
        dying = bool(self.frozen("sweep"))
        if deadlines:
            self.advance(max(0.0, min(deadlines) - self.now()) + 0.1)
        elif self.frozen():
            self.advance(seconds)
        else:
            self.skip(seconds)
        self.quiet()
        if dying:
            self.advance(11)  # what is left of its lease
        while (dying or not deadlines) and (outcome := self.sweep()) is not None and not outcome.ok:
            self.quiet()
            self.advance(SWEEP_LEASE_S)
        self.quiet()

    def pass_time_until(self, done: Callable[[], bool], rounds: int = 40) -> int:
        """How many rounds it took. AssertionError when so many are not enough."""
        self.quiet()
        for number in range(rounds):
            if done():
                return number
            self.pass_time()
        assert done(), f"not done after {rounds} rounds"
        return rounds

    # --- stepping in -----------------------------------------------------------------------------------------

    def strike(self, fault: Fault) -> Fault:
        self.runtime.faults.add(fault)
        return fault

    def script(self, *rules: Mapping[str, Any]) -> None:
        self.runtime.model_server.script.replace(list(rules))

    def batches_of(self, messages: int, records: int) -> None:
        """How many messages and stream records are handed over at once from now on."""
        for mapping in self.queue_mappings:
            mapping._batch_size = messages
        for reader in self.stream_mappings:
            reader._batch_size = records

    def enable(self, role: str) -> None:
        for mapping in self.mappings(role):
            mapping.enable()

    def disable(self, role: str) -> None:
        for mapping in self.mappings(role):
            mapping.disable()

    # --- queues ------------------------------------------------------------------------------------------------

    def take_all(self, queue_url: str) -> list[dict[str, Any]]:
        """What lies in a queue; it is empty afterwards."""
        found = []
        while messages := self.sqs.receive_message(
            QueueUrl=queue_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages", []):
            for message in messages:
                found.append(message)
                self.sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
        return found

    @cached_property
    def dead_letter_queues(self) -> dict[str, str]:
        """URLs by what they are for: `work` is the operator's inbox."""
        urls = self.sqs.list_queues().get("QueueUrls", [])
        served = {self.inbox, *(mapping._url for mapping in self.queue_mappings), self.target.outputs["InboxQueueUrl"]}
        others = {url: url.rsplit("/", 1)[-1] for url in urls if url not in served}
        names = ("work", "urgent", "inbox", "deliveries", "dispatch", "push", "sweep")
        known = {self.target.outputs[f"{name.capitalize()}DlqUrl"]: name for name in names}
        return {known.get(url, name): url for url, name in others.items()}

    def _subscribe(self) -> str:
        """A consumer of `job-events`."""
        url = str(self.sqs.create_queue(QueueName="stage-inbox")["QueueUrl"])
        arn = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        self.sns.subscribe(
            TopicArn=self.target.outputs["JobEventsTopicArn"], Protocol="sqs", Endpoint=arn,
            Attributes={"RawMessageDelivery": "true"},
        )  # fmt: skip
        return url


# The SDK's own pauses pass in real time, and a function that is refused three times sits through two of them. Where it
# allows a call a second or two, a slow machine would be taken for a store that is away; and so for a slow receiver.
_PACE = """
import os
from botocore.httpsession import URLLib3Session
from botocore.retries.standard import ExponentialBackoff
ExponentialBackoff.delay_amount = lambda self, context: 0.01
_session = URLLib3Session.__init__
def _patient(self, *args, timeout=None, **more):
    if isinstance(timeout, tuple):
        timeout = tuple(seconds if seconds >= 5 else 20 for seconds in timeout)
    _session(self, *args, timeout=timeout, **more)
URLLib3Session.__init__ = _patient
if "WEBHOOK_TIMEOUT_S" in os.environ:
    os.environ["WEBHOOK_TIMEOUT_S"] = "30"
"""


@contextmanager
def staged(folder: Path, *tasks: str) -> Iterator[Stage]:
    """The stack of this repository with some tasks of `tests/simulation/tasks` beside its own; its code in `folder`."""
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "lambdas", folder / "lambdas", ignore=without)
    with (folder / "lambdas" / "__init__.py").open("a") as module:
        module.write(_PACE)
    for task in tasks:
        shutil.copytree(TASKS / task, folder / "lambdas" / "tasks" / task, ignore=without)
    with Runtime(code=folder, write_log=lambda *_: None) as runtime:
        stage = Stage(runtime)
        try:
            yield stage
        finally:
            stage.close()
    stage.threads.shutdown(cancel_futures=True)
