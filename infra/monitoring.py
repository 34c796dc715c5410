"""What wakes somebody, and where they look: alarms with their topic, and the query that follows one job."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import workflow_alarms
from infra.admin import Admin
from infra.alarms import BELOW, FIVE_MINUTES, LOUD, Alarms, errors_period, filled, growth
from infra.api import STAGE, Api
from infra.deliveries import Deliveries
from infra.dispatch import Dispatch
from infra.function import Function
from infra.inbox import Inbox
from infra.notifications import Notifications
from infra.processing import Processing
from infra.queues import Queues
from infra.settings import Settings
from infra.streaming import Streaming
from infra.subscribers import Subscribers
from infra.sweep import Sweep
from infra.webhooks import Webhooks
from infra.workflows import Workflows
from lambdas.contracts import names

# fields of the log lines, as lambdas/ writes them
_WHAT = ("timestamp", "function", "step", "level", "ms")
_WHOSE = ("job_id", "tenant", "attempt", "trace_id", "request_id")
_WHY = ("reason", "detail", "cost_micros")


class Monitoring(Construct):
    """`alerts`, every alarm with it as its action, and the saved query."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        queues: Queues,
        notifications: Notifications,
        subscribers: Subscribers,
        webhooks: Webhooks,
        api: Api,
        inbox: Inbox,
        dispatch: Dispatch,
        processing: Processing,
        workflows: Workflows,
        deliveries: Deliveries,
        streaming: Streaming,
        sweep: Sweep,
        admin: Admin,
    ) -> None:
        super().__init__(scope, construct_id)
        self.alerts = _alerts(self, settings)
        self._alarms = Alarms(self, self.alerts)
        functions = {
            "Accept": api.accept,
            "Query": api.query,
            "Control": api.control,
            "Webhooks": webhooks.webhooks,
            "Ingest": inbox.ingest,
            "Dispatch": dispatch.dispatch,
            "Worker": processing.worker,
            "Ended": workflows.ended,
            "Deliver": deliveries.deliver,
            "Ticket": streaming.ticket,
            "Connect": streaming.connect,
            "Socket": streaming.socket,
            "Push": streaming.push,
            "Sweep": sweep.sweep,
            "Admin": admin.admin,
            "Redrive": admin.redrive,
        }
        retried = {"Branch": workflows.branch, "Collect": workflows.collect}
        self._watch_dead_letters("Work", queues.work_dead_letters)
        self._watch_dead_letters("Urgent", queues.urgent_dead_letters)
        self._watch_dead_letters("Inbox", queues.inbox_dead_letters)
        self._watch_dead_letters("Deliveries", queues.deliveries_dead_letters)
        self._watch_dead_letters("Dispatch", dispatch.dead_letters)
        self._watch_dead_letters("Push", streaming.dead_letters)
        self._watch_dead_letters("Sweep", sweep.dead_letters)
        self._watch_dead_letters("Redrive", admin.dead_letters)
        self._watch_dead_letters("Ended", workflows.dead_letters)
        for name, letters in subscribers.dead_letters.items():
            self._watch_dead_letters(f"Subscribers-{name}-", letters)
        self._watch_messages(settings, queues)
        self._watch_age(settings, dispatch.dispatch)
        self._watch_deliveries()
        self._watch_sweeps(settings)
        self._watch_answers(api)
        self._watch_records()
        self._watch_listeners(settings, notifications)
        workflow_alarms.watch(
            self._alarms, workflows, retried=retried, lost=self._reported(names.PARTS_LOST, 300, "Sum")
        )
        for name, function in functions.items():
            self._watch_errors(name, function)
        everything = {**functions, **retried}
        for name, function in everything.items():
            self._watch_throttles(name, function)
        _timeline_of_a_job(self, list(everything.values()))

    def _watch_dead_letters(self, name: str, queue: sqs.Queue) -> None:
        """One alarm on letters lying there, one on more of them: the first stays red and says nothing new.

        Letters that SQS moves itself are not counted as sent, so both look at what is visible.
        """
        lying = queue.metric_approximate_number_of_messages_visible(period=FIVE_MINUTES, statistic="Maximum")
        self._alarms.add(f"{name}DeadLetters", lying, 1, "Dead letters are waiting.")
        self._alarms.add(f"{name}DeadLettersGrowing", growth(lying), 1, "More dead letters than five minutes ago.")

    def _watch_messages(self, settings: Settings, queues: Queues) -> None:
        """How long the oldest message has been lying in each queue that somebody must empty."""
        usual, urgent = settings.oldest_message_alarm_s, settings.oldest_urgent_alarm_s
        for name, queue, age_s, what in (
            ("Work", queues.work, usual, "Work waits too long: raise max_concurrency, or look why the worker is slow."),
            (
                "Urgent",
                queues.urgent,
                urgent,
                "Urgent work waits: raise urgent_concurrency, or make less of it urgent.",
            ),
            (
                "Inbox",
                queues.inbox,
                usual,
                "Events from outside wait to become jobs: look why ingest does not take them.",
            ),
            (
                "Deliveries",
                queues.deliveries,
                usual,
                "Events wait to be delivered: raise deliver_concurrency, or look why deliver is slow.",
            ),
        ):
            age = queue.metric_approximate_age_of_oldest_message(period=FIVE_MINUTES, statistic="Maximum")
            self._alarms.add(f"Oldest{name}Message", age, age_s, what)

    def _watch_deliveries(self) -> None:
        """An endpoint that is down is its tenant's; what could not be delivered in all its time somebody must know."""
        self._alarms.add(
            "DeliveriesFailed",
            self._reported(names.DELIVERIES_FAILED, 300, "Sum"),
            1,
            "Deliveries were given up: an endpoint has refused them, or was not there in all their time.",
        )

    def _watch_age(self, settings: Settings, dispatch: Function) -> None:
        self._alarms.add(
            "DispatchLag",
            dispatch.resource.metric("IteratorAge", period=FIVE_MINUTES, statistic="Maximum"),
            settings.due_grace_s * 1000,
            "Dispatch lags behind the stream: the sweep has begun to send what it should have sent.",
        )
        self._alarms.add(
            "OldestOpenJob",
            # one period, as long as three sweeps: a job that waits long is looked at ever more rarely, so that one
            # report must do; and only silence of that length is silence. Every sweep reports: silence is the worse news
            filled(self._reported(names.OLDEST_OPEN_JOB, 3 * settings.sweep_period_s), settings.oldest_job_alarm_s),
            settings.oldest_job_alarm_s,
            "A job has been open for too long, or three sweeps in a row have not reported.",
            missing=LOUD,
        )

    def _watch_sweeps(self, settings: Settings) -> None:
        """What sweeps put back, what they could not, and schedules that are silent: each part that gets to its end
        tells a number of its kind, so that its absence is heard."""
        self._alarms.add(
            "SweepRepairs",
            self._reported(names.SWEEP_REPAIRED, 300, "Sum"),
            1,
            "A sweep has put back what had fallen out of the way, or was never recorded.",
        )
        self._alarms.add(
            "SweepTroubles",
            self._reported(names.SWEEP_TROUBLES, 2 * settings.sweep_period_s),  # red from one sweep to the next
            1,
            "A sweep has failed, could not read or write a job, or does not add up.",
        )
        self._alarms.add(
            "DriftFound",
            self._reported(names.DRIFT_FOUND, settings.drift_sweep_period_s),
            1,
            "Jobs are COMPLETED, and their results are gone.",
        )
        for alarm, metric, period_s, what in (
            ("SweepSilence", names.DUE_JOBS, settings.sweep_period_s, "due jobs"),
            ("SourceSweepSilence", names.SOURCE_MISSING, settings.source_sweep_period_s, "events never recorded"),
            ("DriftSweepSilence", names.DRIFT_FOUND, settings.drift_sweep_period_s, "results that are gone"),
        ):
            self._alarms.add(
                alarm,
                filled(self._reported(metric, period_s, "SampleCount"), 0),
                1,
                f"No sweep has looked for {what} for two of its periods.",
                missing=LOUD,
                compare=BELOW,
                periods=2,
            )

    def _watch_answers(self, api: Api) -> None:
        """A function that answers 503 has not failed as Lambda counts: only the gateway sees it."""
        errors = cloudwatch.Metric(
            namespace="AWS/ApiGateway",
            metric_name="5xx",
            dimensions_map={"ApiId": api.http_api.api_id, "Stage": STAGE},
            period=FIVE_MINUTES,
            statistic="Sum",
        )
        self._alarms.add("ApiErrors", errors, 1, "The API has answered 500 or above: events may have been refused.")

    def _watch_records(self) -> None:
        self._alarms.add(
            "RecordsLost",
            self._reported(names.RECORDS_LOST, 300, "Sum"),
            1,
            "Records of jobs were removed before their time: nobody will come to these jobs any more.",
        )

    def _watch_listeners(self, settings: Settings, notifications: Notifications) -> None:
        """What is published to nobody is published all right: nothing else here would notice."""
        self._alarms.add(
            "ListenersLost",
            self._reported(names.LISTENERS_LOST, 2 * settings.sweep_period_s),  # red from one sweep to the next
            1,
            "A subscription of job events is gone.",
        )
        failed = notifications.job_events.metric_number_of_notifications_failed(period=FIVE_MINUTES, statistic="Sum")
        self._alarms.add("NotificationsFailed", failed, 1, "A subscriber of job events could not be notified.")

    def _reported(self, metric: str, period_s: int, statistic: str = "Maximum") -> cloudwatch.Metric:
        """A metric that our functions write into their logs."""
        return cloudwatch.Metric(
            namespace=names.METRIC_NAMESPACE,
            metric_name=metric,
            dimensions_map={names.METRIC_DIMENSION: Stack.of(self).stack_name},
            period=Duration.seconds(period_s),
            statistic=statistic,
        )

    def _watch_errors(self, name: str, function: Function) -> None:
        errors = function.resource.metric_errors(period=errors_period(function.timeout_s))
        self._alarms.add(f"{name}Errors", errors, 1, "A function raised, timed out or could not start.")

    def _watch_throttles(self, name: str, function: Function) -> None:
        throttles = function.resource.metric_throttles(period=FIVE_MINUTES)
        what = "Lambda's concurrency is used up: raise the account's quota."
        self._alarms.add(f"{name}Throttles", throttles, 1, what)


def _alerts(scope: Construct, settings: Settings) -> sns.Topic:
    # no key: CloudWatch cannot use the one that AWS manages, and alarms tell no secrets (ADR-0005)
    alerts = sns.Topic(scope, "Alerts", display_name="Neverdrop alerts", enforce_ssl=True)
    # any policy replaces the default one, which had let CloudWatch in
    alerts.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["sns:Publish"],
            resources=[alerts.topic_arn],
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            conditions={"StringEquals": {"aws:SourceAccount": Stack.of(scope).account}},
        )
    )
    if settings.alert_email:
        alerts.add_subscription(subscriptions.EmailSubscription(settings.alert_email))
    return alerts


def _timeline_of_a_job(scope: Construct, functions: list[Function]) -> None:
    """The saved query of CloudWatch Logs Insights that shows one job across all functions."""
    logs.QueryDefinition(
        scope,
        "Timeline",
        query_definition_name=f"{Stack.of(scope).stack_name}/One job, receipt to delivery",
        log_groups=[function.log_group for function in functions],
        query_string=logs.QueryString(
            fields=[*_WHAT, *_WHOSE, *_WHY],
            filter_statements=['job_id = "PUT THE JOB ID HERE"'],
            sort="@timestamp asc",
            limit=1000,
        ),
    )
