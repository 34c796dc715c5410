"""The delivery contract on a template of somebody else: each breach is found, one at a time, and nothing besides."""

from __future__ import annotations

import pytest

from infra.delivery.contract import check
from tests.infrastructure.broken import (
    Body,
    Change,
    Found,
    add,
    both,
    found,
    new_findings,
    put,
    remove,
    rewrite,
)

PAGE = ("Definition", "States", "Pages", "ItemProcessor", "States", "Page")
PUT_ITEM = "arn:aws:states:::dynamodb:putItem"
SHARED = {"deadLetterTargetArn": {"Fn::GetAtt": ["OrderLetters", "Arn"]}, "maxReceiveCount": 5}


def test_a_template_in_yaml_that_keeps_the_contract_has_nothing_to_mend(foreign: Body) -> None:
    """Numbers as texts, names and ARNs instead of references, conditions, sums and composites of alarms."""
    report = check(foreign)
    assert (report.findings, report.notes) == ([], [])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        # queues
        (remove("Orders", "VisibilityTimeout"), {("visibility", "Orders")}),
        (put("Worker", "Timeout", to="62"), {("visibility", "Orders")}),
        (put("WorkerMapping", "MaximumBatchingWindowInSeconds", to=11), {("visibility", "Orders")}),
        (put("Orders", "RedrivePolicy", "maxReceiveCount", to="4"), {("receive-count", "Orders")}),
        (remove("Orders", "RedrivePolicy", "maxReceiveCount"), {("receive-count", "Orders")}),
        (put("Orders", "MessageRetentionPeriod", to=1850), {("receive-count", "Orders")}),
        (remove("Orders", "RedrivePolicy"), {("dead-letters", "Orders")}),
        (add("Plain", "SQS::Queue"), {("dead-letters", "Plain")}),
        (add("Elsewhere", "SQS::Queue", RedriveAllowPolicy={"redrivePermission": "allowAll"}), set()),
        (
            put("Audit", "RedrivePolicy", to=SHARED),
            {("own-dead-letters", "OrderLetters"), ("kind-of-letters", "OrderLetters"), ("letters-retention", "Audit")},
        ),
        (remove("AuditLetters", "FifoQueue"), {("kind-of-letters", "AuditLetters"), ("letters-retention", "Audit")}),
        (put("Letters", "FifoQueue", to="true"), {("kind-of-letters", "Letters")}),
        (put("News", "FifoTopic", to=True), {("kind-of-letters", "Letters")}),
        # dead letters
        (put("OrderLetters", "MessageRetentionPeriod", to="1209599"), {("letters-retention", "OrderLetters")}),
        (
            put("Orders", "MessageRetentionPeriod", to=1209600),
            {("letters-retention", "Orders"), ("idempotency", "Worker")},
        ),
        (remove("OrderLettersAlarm"), {("letters-alarm", "OrderLetters")}),
        (put("OrderLettersAlarm", "Threshold", to="1"), {("letters-alarm", "OrderLetters")}),
        (put("OrderLettersAlarm", "Namespace", to="AWS/Lambda"), {("letters-alarm", "OrderLetters")}),
        (
            put("LettersAlarm", "Metrics", 0, "Expression", to="RATE(one + two)"),
            {("letters-alarm", "Letters"), ("letters-alarm", "AuditLetters")},
        ),
        (
            put("LettersAlarm", "Metrics", 1, "MetricStat", "Metric", "MetricName", to="NumberOfMessagesSent"),
            {("letters-alarm", "Letters")},
        ),
        (
            put("LettersAlarm", "Metrics", 1, "MetricStat", "Stat", to="SampleCount"),
            {("letters-alarm", "Letters")},
        ),
        (
            put("LettersAlarm", "Metrics", 1, "MetricStat", "Period", to="3601"),
            {("letters-alarm", "Letters")},
        ),
        (remove("AnyLetters"), {("letters-alarm", "Letters"), ("letters-alarm", "AuditLetters")}),
        (remove("AnyLetters", "AlarmActions"), {("letters-alarm", "Letters"), ("letters-alarm", "AuditLetters")}),
        # mappings
        (remove("WorkerMapping", "FunctionResponseTypes"), {("batch-failures", "WorkerMapping")}),
        (remove("ClicksMapping", "FunctionResponseTypes"), {("batch-failures", "ClicksMapping")}),
        (put("WorkerMapping", "ScalingConfig", "MaximumConcurrency", to="11"), {("reserved-concurrency", "Worker")}),
        (remove("WorkerMapping", "ScalingConfig"), {("reserved-concurrency", "Worker")}),
        (put("Worker", "ReservedConcurrentExecutions", to=0), {("reserved-concurrency", "Worker")}),
        (remove("Worker", "ReservedConcurrentExecutions"), set()),
        (put("WorkerMapping", "ScalingConfig", "MaximumConcurrency", to=1), {("concurrency", "WorkerMapping")}),
        (put("WorkerMapping", "BatchSize", to="10001"), {("batch-size", "WorkerMapping")}),
        (put("WorkerMapping", "Enabled", to="false"), {("mapping-enabled", "WorkerMapping")}),
        (put("ClicksMapping", "MaximumRetryAttempts", to="-1"), {("stream-caps", "ClicksMapping")}),
        (put("ClicksMapping", "MaximumRecordAgeInSeconds", to=172800), {("stream-age", "ClicksMapping")}),
        (remove("Clicks", "RetentionPeriodHours"), {("stream-age", "ClicksMapping")}),
        (put("ClicksMapping", "BisectBatchOnFunctionError", to="false"), {("stream-bisect", "ClicksMapping")}),
        (remove("ClicksMapping", "StartingPosition"), {("stream-start", "ClicksMapping")}),
        (put("ClicksMapping", "DestinationConfig", to={}), {("stream-letters", "ClicksMapping")}),
        # what services send
        (remove("NewsToReactor", "RedrivePolicy"), {("subscription-letters", "NewsToReactor")}),
        (put("NewsToReactor", "RedrivePolicy", to="{}"), {("subscription-letters", "NewsToReactor")}),
        (put("NewsToPeople", "Protocol", to="https"), {("subscription-letters", "NewsToPeople")}),
        (
            put("News", "Subscription", to=[{"Protocol": "sqs", "Endpoint": "arn:aws:sqs:eu-west-1:111122223333:x"}]),
            {("subscription-letters", "News")},
        ),
        (remove("Nightly", "Target", "DeadLetterConfig"), {("schedule-letters", "Nightly")}),
        (remove("Nightly", "Target", "RetryPolicy"), {("schedule-letters", "Nightly")}),
        (remove("Uploaded", "Targets", 0, "DeadLetterConfig"), {("rule-letters", "Uploaded")}),
        (remove("Uploaded", "Targets", 0, "RetryPolicy"), {("rule-letters", "Uploaded")}),
        (remove("ReactorLetters"), {("invoke-letters", "Reactor")}),
        (remove("LiveLetters"), {("invoke-letters", "Reactor")}),
        (put("ReactorLetters", "DestinationConfig", to={"OnSuccess": {}}), {("invoke-letters", "Reactor")}),
        (
            both(
                remove("ReactorLetters"),
                remove("LiveLetters"),
                put("Reactor", "DeadLetterConfig", to={"TargetArn": {"Ref": "Alerts"}}),
            ),
            set(),
        ),
        (
            add("Logs", "Lambda::Permission", Principal="logs.amazonaws.com", FunctionName={"Ref": "Worker"}),
            {("invoke-letters", "Worker")},
        ),
        (add("Door", "Lambda::Permission", Principal="apigateway.amazonaws.com", FunctionName="x-worker"), set()),
        # what services may
        (remove("LettersPolicy"), {("reach", "Letters")}),
        (put("LettersPolicy", "PolicyDocument", "Statement", 0, "Effect", to="Deny"), {("reach", "Letters")}),
        (put("Letters", "KmsMasterKeyId", to="alias/aws/sqs"), {("reach", "Letters")}),
        (
            put("Key", "KeyPolicy", "Statement", 0, "Principal", "Service", to=["sns.amazonaws.com"]),
            {("reach", "Key")},
        ),
        (
            put(
                "Files",
                "NotificationConfiguration",
                "QueueConfigurations",
                to=[{"Event": "s3:ObjectCreated:*", "Queue": {"Fn::GetAtt": ["Orders", "Arn"]}}],
            ),
            {("reach", "Orders")},
        ),
        # state machines
        (remove("Report", "Definition", "TimeoutSeconds"), {("machine-timeouts", "Report")}),
        (remove("Report", *PAGE, "TimeoutSeconds"), {("machine-timeouts", "Report")}),
        (
            both(remove("Report", *PAGE, "TimeoutSeconds"), put("Report", *PAGE, "TimeoutSecondsPath", to="$.most")),
            set(),
        ),
        (put("Report", *PAGE, "Resource", to="x.waitForTaskToken"), {("machine-timeouts", "Report")}),
        (remove("Report", *PAGE, "Retry"), {("machine-throttles", "Report")}),
        (put("Report", *PAGE, "Retry", 0, "ErrorEquals", to=["States.Timeout"]), {("machine-throttles", "Report")}),
        (both(remove("Report", *PAGE, "Retry"), put("Report", *PAGE, "Resource", to=PUT_ITEM)), set()),
        (rewrite("Checkout", '"TimeoutSeconds": 900, ', ""), {("machine-timeouts", "Checkout")}),
        (rewrite("Checkout", "HeartbeatSecondsPath", "Heartbeat"), {("machine-timeouts", "Checkout")}),
        (rewrite("Checkout", "Lambda.TooManyRequestsException", "Lambda.Unknown"), {("machine-throttles", "Checkout")}),
        (
            both(rewrite("Checkout", '"TimeoutSeconds": 900, ', ""), put("Checkout", "StateMachineType", to="EXPRESS")),
            set(),
        ),
        (remove("CheckoutEnds"), {("machine-bad-ends", "Checkout")}),
        (put("CheckoutEnds", "EventPattern", "source", to=["aws.s3"]), {("machine-bad-ends", "Checkout")}),
        (put("CheckoutEnds", "EventBusName", to="ours"), {("machine-bad-ends", "Checkout")}),
        (put("CheckoutEnds", "Targets", to=[]), {("machine-bad-ends", "Checkout")}),
        (
            put("CheckoutEnds", "EventPattern", "detail", "stateMachineArn", to=[{"Ref": "Report"}]),
            {("machine-bad-ends", "Checkout")},
        ),
        (put("CheckoutEnds", "EventPattern", "detail", "status", to=["FAILED"]), {("machine-bad-ends", "Checkout")}),
        (remove("CheckoutEnds", "EventPattern", "detail"), set()),
        (remove("ReportAlarm"), {("machine-bad-ends", "Report")}),
        (put("ReportAlarm", "AlarmActions", to=[]), {("machine-bad-ends", "Report")}),
        (
            put("ReportAlarm", "Metrics", 2, "MetricStat", "Metric", "MetricName", to="ExecutionsStarted"),
            {("machine-bad-ends", "Report")},
        ),
        (both(remove("ReportAlarm"), put("CheckoutEnds", "EventPattern", to={"source": ["aws.states"]})), set()),
        # idempotency: 14 days, 4 days, 370 s
        (
            put("Worker", "Environment", "Variables", "IDEMPOTENCY_EXPIRES_AFTER_SECONDS", to="1555570"),
            {("idempotency", "Worker")},
        ),
        (put("Worker", "Environment", "Variables", "IDEMPOTENCY_EXPIRES_AFTER_SECONDS", to="1555571"), set()),
        (put("Worker", "Environment", "Variables", to={"DEDUP_TTL_HOURS": 400}), {("idempotency", "Worker")}),
        (put("Worker", "Environment", "Variables", to={"DEDUP_TTL_DAYS": 19}), set()),
    ],
)
def test_each_breach_is_found_where_it_is_to_be_mended(foreign: Body, change: Change, expected: Found) -> None:
    assert found(foreign, change) == expected


@pytest.mark.parametrize("service", ["events", "sns"])
def test_every_service_that_writes_to_a_queue_needs_its_key(foreign: Body, service: str) -> None:
    """CDK-02, CDK-03."""

    def shut_out(body: Body) -> None:
        allowed = body["Resources"]["Key"]["Properties"]["KeyPolicy"]["Statement"][0]["Principal"]["Service"]
        allowed.remove(f"{service}.amazonaws.com")

    told = new_findings(foreign, shut_out)
    assert {(one.rule, one.resource) for one in told} == {("reach", "Key")}
    assert all(f"{service}.amazonaws.com" in one.message for one in told)


def test_what_cdk_makes_of_bucket_notifications_is_looked_at(foreign: Body) -> None:
    def notify(body: Body) -> None:
        body["Resources"]["Notifications"] = {
            "Type": "Custom::S3BucketNotifications",
            "Properties": {
                "NotificationConfiguration": {
                    "LambdaFunctionConfigurations": [{"LambdaFunctionArn": {"Fn::GetAtt": ["Worker", "Arn"]}}],
                    "QueueConfigurations": [{"QueueArn": {"Fn::GetAtt": ["Orders", "Arn"]}}],
                }
            },
        }

    assert found(foreign, notify) == {("invoke-letters", "Worker"), ("reach", "Orders")}
