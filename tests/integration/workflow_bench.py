"""The functions of an execution as Step Functions and the bus call them, on one stack, and a job for them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from lambdas.adapters import clock
from lambdas.contracts import workflows
from lambdas.core import ids, times
from lambdas.core.job import from_record
from lambdas.core.workflows import changes
from local.model.server import ModelServer
from tests.builders import any_task
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.records import pending, processing

TYPE = "analyze-document"
WORKFLOW = workflows.load()[0][TYPE]
BRANCHES = [branch.name for branch in WORKFLOW.branches]
TEXT = "ANNA: The pump is broken."


@dataclasses.dataclass
class WorkflowBench:
    """`load`: starts a function. Each branch asks the model one question of its own."""

    load: Load
    cloud: Cloud
    model: ModelServer
    lines: Lines

    def __post_init__(self) -> None:
        self.branches: ModuleType = self.load("branch")
        self.collector: ModuleType = self.load("collect")
        for branch in WORKFLOW.branches:
            self.task(branch.task)

    def task(self, type_: str, run: Any = None, **more: Any) -> None:
        """Another function for this task; without one it asks."""
        asks = lambda task_input, ctx: {"said": ctx.model.ask(f"{type_}: {task_input['text']}").text}  # noqa: E731
        self.branches.parts().working.worker.tasks[type_] = any_task(run or asks, type_=type_, **more)

    def job(self, *, run: int = 0, **over: Any) -> dict[str, Any]:
        """Claimed, prepared and started."""
        request = {"type": TYPE, "input": {"text": TEXT}}
        record = processing(pending(request=request, run=run))
        prepared = changes.prepare(from_record(record), BRANCHES).applied_to(record)
        lease = times.after(clock.now(), 1_860)
        started = changes.adopt(from_record(prepared), now=clock.now(), lease=lease).applied_to(prepared)
        return self.cloud.put({**started, **over})

    def branch(self, job: Mapping[str, Any], name: str, **context: Any) -> str:
        event = {"job": job["pk"], "run": job["run"], "branch": name}
        return str(self.branches.handler(event, Context(**context))["state"])

    def collect(self, job: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self.collector.handler({"job": job["pk"], "run": job["run"]}, Context())
        return answer

    def record(self, job: Mapping[str, Any]) -> dict[str, Any]:
        return self.cloud.record(job["pk"])

    def result(self, job: Mapping[str, Any]) -> Any:
        own = ids.run_results(job["tenant"], job["pk"], job["run"])
        (body,) = [body for key, body in self.cloud.objects(self.cloud.results_bucket).items() if key.startswith(own)]
        return json.loads(body)

    @property
    def calls(self) -> int:
        """Model calls seen by the provider."""
        return len(self.model.calls.listed())


def ended_event(job: Mapping[str, Any], status: str = "FAILED", **detail: Any) -> dict[str, Any]:
    """As Step Functions tells the default bus."""
    name = ids.execution_name(job["pk"], job["run"])
    return {
        "version": "0",
        "id": "315c1398-40ff-a850-213b-158f73e60175",
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "account": "111122223333",
        "time": "2026-11-29T15:30:44Z",
        "region": "us-east-1",
        "resources": [f"arn:aws:states:us-east-1:111122223333:execution:Machine:{name}"],
        "detail": {
            "executionArn": f"arn:aws:states:us-east-1:111122223333:execution:Machine:{name}",
            "stateMachineArn": "arn:aws:states:us-east-1:111122223333:stateMachine:Machine",
            "name": name,
            "status": status,
            "startDate": 1795966244123,
            "stopDate": 1795966245123,
            "input": json.dumps({"job": job["pk"], "run": job["run"]}),
            "output": None,
            "inputDetails": {"included": True},
            "outputDetails": None,
            **detail,
        },
    }
