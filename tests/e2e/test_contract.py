"""The contract against the running stack: whatever schemathesis makes of `openapi.json`, right or wrong, is answered
by something that the contract knows."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from schemathesis import Case, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from tests.e2e.target import ROOT, Target, eventually

pytestmark = [pytest.mark.local_only, pytest.mark.slow]

EXAMPLES = 25  # of each operation, besides the boundary cases that schemathesis adds by itself
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]


def contract_with_tasks() -> dict[str, Any]:
    """The contract, with the inputs of this deployment's tasks where it says "what the task's own schema asks for":
    else nothing that is made from it would ever be accepted."""
    contract: dict[str, Any] = json.loads((ROOT / "lambdas" / "contracts" / "openapi.json").read_text("utf-8"))
    request = contract["components"]["schemas"]["JobRequest"]
    tasks = sorted((ROOT / "lambdas" / "tasks").glob("*/schema.json"))
    request["oneOf"] = [
        {"properties": {"type": {"const": path.parent.name.replace("_", "-")}, "input": _input_of(path)}}
        for path in tasks
    ]
    return contract


def _input_of(path: Any) -> Any:
    return json.loads(path.read_text("utf-8"))["input"]


contract = schemathesis.openapi.from_dict(contract_with_tasks())
contract.config.generation.update(modes=list(GenerationMode), deterministic=True)


@contract.parametrize()
@settings(max_examples=EXAMPLES)
def test_whatever_is_sent_the_answer_is_one_of_the_contract(case: Case[Any], stack: Target) -> None:
    case.validate_response(sent(case, stack), checks=CHECKS)


@pytest.mark.parametrize("path", ["/jobs/{id}", "/jobs/{id}/result", "/jobs/{id}/events"])
@pytest.mark.parametrize("status", ["PENDING", "PROCESSING", "COMPLETED", "FAILED"])
def test_a_job_in_each_state_is_answered_by_the_contract(target: Target, nonce: str, path: str, status: str) -> None:
    job_id = job_that_is(status, target, nonce)
    case = contract[path]["GET"].Case(path_parameters={"id": job_id})
    case.validate_response(sent(case, target), checks=CHECKS)
    assert target.job(job_id)["status"] == status  # it did not go on meanwhile


def sent(case: Case[Any], stack: Target) -> Response:
    """The answer to a case. A throttled one (429, at 50 a second) is sent again: it is in the contract too, but most
    of what is tested would be the throttle."""
    for _ in range(100):
        answer = case.call(base_url=stack.api)
        if answer.status_code != 429:
            break
        time.sleep(0.2)
    return answer


def job_that_is(status: str, target: Target, nonce: str) -> str:
    """A job that stays in this state for as long as the test needs."""
    if status == "PENDING":
        target.control("POST", "pause", {"function": "worker"})
    if status == "PROCESSING":
        target.script({"match": nonce, "delay_s": 30})
    if status == "FAILED":
        target.script({"match": nonce, "error": "ValidationException"})
    job_id = target.submit("summarize", {"text": f"ANN: {nonce}"})
    eventually(lambda: target.job(job_id), lambda job: job["status"] == status)
    return job_id
