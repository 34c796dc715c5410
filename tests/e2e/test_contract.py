"""The contract against the running stack: whatever schemathesis makes of `openapi.json`, right or wrong, is answered
by something that the contract knows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
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

CONFORMANCE = [status_code_conformance, content_type_conformance, response_schema_conformance]
DELAY_S = 50  # that the model takes, unless time is helped on
EXAMPLES = 12  # of each operation, besides the boundary cases that schemathesis adds by itself
CHECKS = [not_a_server_error, negative_data_rejection, *CONFORMANCE]


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
    for item in contract["paths"].values():  # the local gateway lets everybody in, as an operator too
        for operation in item.values():
            if isinstance(operation, dict) and operation.get("security") == [{"sigv4": []}]:
                del operation["security"]
    return contract


def _input_of(path: Any) -> Any:
    return json.loads(path.read_text("utf-8"))["input"]


@pytest.fixture(scope="module", autouse=True)
def _no_endpoint_is_left(stack: Target) -> Iterator[None]:
    """What was registered in here would hear of the jobs of all tests behind."""
    yield
    for endpoint in stack.get("/webhooks").json()["webhooks"]:
        stack.request("DELETE", endpoint["links"]["self"])


@pytest.fixture(autouse=True)
def _no_worker_is_left_with_the_model(stack: Target) -> Iterator[None]:
    """Tests behind would wait for it."""
    yield
    if any(call["status"] is None for call in stack.model_calls()):
        stack.script()
        stack.answer_after(DELAY_S, "worker")


contract = schemathesis.openapi.from_dict(contract_with_tasks())
contract.config.generation.update(modes=list(GenerationMode), deterministic=True)


@contract.parametrize()
@settings(max_examples=EXAMPLES)
def test_whatever_is_sent_the_answer_is_one_of_the_contract(case: Case[Any], stack: Target) -> None:
    answer = sent(case, stack)
    case.validate_response(answer, checks=CONFORMANCE if is_in_hand(answer) else CHECKS)


@pytest.mark.parametrize("path", ["/jobs/{id}", "/jobs/{id}/result", "/jobs/{id}/events", "/jobs/{id}/chunks"])
@pytest.mark.parametrize("status", ["PENDING", "PROCESSING", "COMPLETED", "FAILED"])
def test_a_job_in_each_state_is_answered_by_the_contract(target: Target, nonce: str, path: str, status: str) -> None:
    job_id = job_that_is(status, target, nonce)
    case = contract[path]["GET"].Case(path_parameters={"id": job_id})
    case.validate_response(sent(case, target), checks=CHECKS)
    assert target.job(job_id)["status"] == status  # it did not go on meanwhile


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/jobs/{id}/cancel"), ("POST", "/jobs/{id}/retry"), ("DELETE", "/jobs/{id}")]
)
@pytest.mark.parametrize("status", ["PENDING", "PROCESSING", "COMPLETED", "FAILED"])
def test_a_job_in_each_state_is_changed_or_refused_by_the_contract(
    target: Target, nonce: str, method: str, path: str, status: str
) -> None:
    job_id = job_that_is(status, target, nonce)
    if status in ("COMPLETED", "FAILED"):
        target.final(job_id)
    answers = {
        "PENDING": (202, 409, 409),
        "PROCESSING": (202, 409, 409),
        "COMPLETED": (409, 409, 204),
        "FAILED": (409, 202, 204),
    }
    wanted = dict(zip(("cancel", "retry", "{id}"), answers[status], strict=True))[path.rpartition("/")[2]]
    assert conforming(method, path, target, path_parameters={"id": job_id}) == wanted


def test_what_the_gateway_itself_answers_is_in_the_contract_too(target: Target) -> None:
    large = {"type": "summarize", "input": {"text": "x" * 7_000_000}}
    assert conforming("POST", "/jobs", target, body=large) == 413
    for function in ("accept", "query", "control", "webhooks"):
        target.control("POST", "pause", {"function": function})  # as when Lambda has no room
    assert conforming("POST", "/jobs", target, body={"type": "summarize", "input": {"text": "a"}}) == 503
    assert conforming("GET", "/jobs", target) == 503
    for path in ("/jobs/{id}", "/jobs/{id}/result", "/jobs/{id}/events"):
        assert conforming("GET", path, target, path_parameters={"id": "a"}) == 503
    assert conforming("GET", "/health", target) == 503
    assert conforming("GET", "/webhooks", target) == 503
    changing = (("POST", "/jobs/{id}/cancel"), ("POST", "/jobs/{id}/retry"), ("DELETE", "/jobs/{id}"))
    for method, path in (*changing, ("POST", "/jobs/{id}/redeliver"), ("DELETE", "/webhooks/{id}")):
        assert conforming(method, path, target, path_parameters={"id": "a"}) == 503


def conforming(method: str, path: str, target: Target, **request: Any) -> int:
    """The status of the answer, which the contract must know."""
    if "body" in request:
        request["media_type"] = "application/json"
    case = contract[path][method].Case(**request)
    answer = sent(case, target)
    case.validate_response(answer, checks=CONFORMANCE)
    return answer.status_code


def sent(case: Case[Any], stack: Target) -> Response:
    """The answer to a case. A throttled one (429, at 50 a second) is sent again: it is in the contract too, but most
    of what is tested would be the throttle."""
    for _ in range(100):
        answer = case.call(base_url=stack.api)
        if answer.status_code != 429:
            break
        time.sleep(0.2)
    return answer


def is_in_hand(answer: Response) -> bool:
    """Letters that another test looks at just now are hidden: the one asked for may be among them, so ask again."""
    return answer.status_code == 503 and b"urn:neverdrop:problem:not-found-yet" in answer.content


def job_that_is(status: str, target: Target, nonce: str) -> str:
    """A job that stays in this state for as long as the test needs."""
    if status == "PENDING":
        target.control("POST", "pause", {"function": "worker"})
    if status == "PROCESSING":
        target.script({"match": nonce, "delay_s": DELAY_S})
    if status == "FAILED":
        target.script({"match": nonce, "error": "ValidationException"})
    job_id = target.submit("summarize", {"text": f"ANN: {nonce}"})
    eventually(lambda: target.job(job_id), lambda job: job["status"] == status)
    return job_id
