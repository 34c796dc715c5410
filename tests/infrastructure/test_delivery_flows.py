"""Our template, once more: breaches where messages are taken, sent and remembered, and what synthesis says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.broken import DAY_S, Change, both, found, mappings, new_findings, put, queues, remove
from tests.infrastructure.conftest import ROOT, Synthesize
from tests.infrastructure.templates import Template

# --- mappings ---------------------------------------------------------------------------------------------------------


def test_a_mapping_that_does_not_report_its_failures_one_by_one_is_found(prod: Template) -> None:
    for name in prod.of_type("Lambda::EventSourceMapping"):
        assert found(prod.body, remove(name, "FunctionResponseTypes")) == {("batch-failures", name)}
        assert found(prod.body, put(name, "FunctionResponseTypes", to=[])) == {("batch-failures", name)}


def test_a_concurrency_that_cannot_be_is_found(prod: Template) -> None:
    """SQS-03, SQS-04, SQS-06. All mappings of a function share what is reserved for it."""
    taken: dict[str, int] = {}
    for name, mapping, _ in mappings(prod, "queue"):
        function = mapping["FunctionName"]["Ref"]
        taken[function] = taken.get(function, 0) + mapping["ScalingConfig"]["MaximumConcurrency"]
        for impossible in (1, 1001):
            change = put(name, "ScalingConfig", "MaximumConcurrency", to=impossible)
            assert found(prod.body, change) == {("concurrency", name)}
    for function, most in taken.items():
        for reserved, expected in ((0, True), (1, True), (most - 1, True), (most, False)):
            change = put(function, "ReservedConcurrentExecutions", to=reserved)
            assert found(prod.body, change) == ({("reserved-concurrency", function)} if expected else set())
    for name, mapping, _ in mappings(prod, "queue"):
        function = mapping["FunctionName"]["Ref"]
        change = both(remove(name, "ScalingConfig"), put(function, "ReservedConcurrentExecutions", to=900))
        assert found(prod.body, change) == {("reserved-concurrency", function)}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda name: remove(name, "MaximumRetryAttempts"), "stream-caps"),
        (lambda name: put(name, "MaximumRetryAttempts", to=-1), "stream-caps"),
        (lambda name: remove(name, "MaximumRecordAgeInSeconds"), "stream-caps"),
        (lambda name: put(name, "MaximumRecordAgeInSeconds", to=DAY_S), "stream-age"),
        (lambda name: remove(name, "BisectBatchOnFunctionError"), "stream-bisect"),
        (lambda name: put(name, "StartingPosition", to="LATEST"), "stream-start"),
        (lambda name: remove(name, "DestinationConfig"), "stream-letters"),
    ],
)
def test_a_stream_that_blocks_skips_or_drops_is_found(prod: Template, change: Any, rule: str) -> None:
    """STR-01, STR-02."""
    assert list(mappings(prod, "stream"))
    for name, _, _ in mappings(prod, "stream"):
        assert found(prod.body, change(name)) == {(rule, name)}


# --- invocations ------------------------------------------------------------------------------------------------------


def test_a_schedule_without_dead_letters_or_with_the_retries_of_a_day_is_found(prod: Template) -> None:
    """EB-03."""
    assert prod.of_type("Scheduler::Schedule")
    for name in prod.of_type("Scheduler::Schedule"):
        for part in ("DeadLetterConfig", "RetryPolicy"):
            assert found(prod.body, remove(name, "Target", part)) == {("schedule-letters", name)}


def test_a_function_that_is_invoked_without_waiting_and_drops_what_fails_is_found(prod: Template) -> None:
    configs = prod.of_type("Lambda::EventInvokeConfig")
    assert configs
    for name, one in configs.items():
        function = one["Properties"]["FunctionName"]["Ref"]
        for change in (remove(name), remove(name, "DestinationConfig")):
            assert found(prod.body, change) == {("invoke-letters", function)}


def test_a_function_that_invokes_itself_needs_a_place_for_what_fails(prod: Template) -> None:
    def itself(body: dict[str, Any]) -> None:
        worker = prod.id_of(prod.function("worker"))
        role = prod.function("worker")["Properties"]["Role"]["Fn::GetAtt"][0]
        (policy,) = (
            one
            for one in body["Resources"].values()
            if one["Type"] == "AWS::IAM::Policy" and {"Ref": role} in one["Properties"]["Roles"]
        )
        allowed = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": {"Fn::GetAtt": [worker, "Arn"]}}
        policy["Properties"]["PolicyDocument"]["Statement"].append(allowed)

    assert found(prod.body, itself) == {("invoke-letters", prod.id_of(prod.function("worker")))}


# --- idempotency ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ANSWER_DAYS", "RECORD_DAYS"])
def test_answers_that_are_forgotten_before_the_last_redelivery_are_found(prod: Template, name: str) -> None:
    """14 days as a letter, then the 4 days of the work queue again, and hidden once more."""
    worker = prod.id_of(prod.function("worker"))
    short: Change = put(worker, "Environment", "Variables", name, to="18")
    (finding,) = new_findings(prod.body, short)
    assert (finding.rule, finding.resource) == ("idempotency", worker)
    assert name in finding.message
    assert found(prod.body, put(worker, "Environment", "Variables", name, to="19")) == set()


# --- at synth ---------------------------------------------------------------------------------------------------------


def test_a_finding_names_the_construct_where_cdk_wrote_it_down(prod: Template) -> None:
    queue = next(iter(queues(prod)))

    def name(body: dict[str, Any]) -> None:
        body["Resources"][queue]["Metadata"] = {"aws:cdk:path": "neverdrop-prod/Queues/Work/Resource"}

    (finding,) = new_findings(prod.body, both(name, remove(queue, "RedrivePolicy")))
    assert str(finding).startswith(f"dead-letters: {queue} (neverdrop-prod/Queues/Work/Resource): ")


def test_a_stack_that_breaks_the_contract_cannot_be_synthesized(
    monkeypatch: pytest.MonkeyPatch, synthesize: Synthesize
) -> None:
    from aws_cdk import aws_lambda

    from infra.synthesis import DeliveryError

    mapping = aws_lambda.EventSourceMapping

    def silent(*place: Any, **properties: Any) -> Any:
        return mapping(*place, **{**properties, "report_batch_item_failures": False})

    monkeypatch.setattr(aws_lambda, "EventSourceMapping", silent)
    with pytest.raises(DeliveryError) as refused:
        synthesize()
    told = str(refused.value)
    assert told.startswith("neverdrop-prod breaks the delivery contract:\n  * batch-failures: ")
    assert "ProcessingWork" in told
    assert "set FunctionResponseTypes to [ReportBatchItemFailures]" in told


def test_the_app_ends_with_everything_that_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so does the local runtime, which runs it."""
    import app
    from infra import synthesis

    def refuse(*_: Any, **__: Any) -> None:
        raise synthesis.DeliveryError("neverdrop-prod breaks the delivery contract:\n  * visibility: Work")

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.argv", ["app.py"])
    monkeypatch.setattr(synthesis, "synthesize", refuse)
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == "error: neverdrop-prod breaks the delivery contract:\n  * visibility: Work"


def test_what_was_refused_cannot_be_deployed_from_its_folder(tmp_path: Path) -> None:
    from infra.synthesis import DeliveryError, refuse_breaches

    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    template = tmp_path / "one.template.json"
    template.write_text(json.dumps({"Resources": {"Q": {"Type": "AWS::SQS::Queue"}}}), encoding="utf-8")
    with pytest.raises(DeliveryError, match="dead-letters: Q"):
        refuse_breaches(tmp_path, {"one": template})
    assert not (tmp_path / "manifest.json").exists()
