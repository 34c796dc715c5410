"""The schedules, and whoever asks for a sweep: what is stuck or was never recorded is put back, and certified."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from lambdas.adapters import clock
from lambdas.adapters.clients import client, single_attempt_client
from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.executions import executions_of
from lambdas.adapters.functions import LambdaFunctions
from lambdas.adapters.inventory import DynamoInventory
from lambdas.adapters.ledger import DynamoLedger
from lambdas.adapters.listing import S3Listing
from lambdas.adapters.log import StepLog, emit_metrics
from lambdas.adapters.outbox import outbox_of
from lambdas.adapters.pipeline import Pace, Pipeline
from lambdas.adapters.s3 import S3Objects, S3Uploads
from lambdas.adapters.secrets import SecretsManager
from lambdas.adapters.sns import SnsTopic
from lambdas.adapters.sqs import SqsQueue
from lambdas.adapters.sqs_letters import dead_letters_of, queues_of
from lambdas.contracts import names
from lambdas.contracts.sources import Source
from lambdas.contracts.workflows import load as workflows_of_this_build
from lambdas.core import times
from lambdas.core.changes import LEASE_MARGIN_S
from lambdas.core.inbox.listing import Ask, Page
from lambdas.core.inbox.uploads import Yard
from lambdas.core.inbox.webhooks import Reception
from lambdas.core.intake import Door
from lambdas.core.job import Job
from lambdas.core.letters.stray_letters import StrayLetters
from lambdas.core.ports import Ledger, Unavailable
from lambdas.core.sweeping import listeners, triggers
from lambdas.core.sweeping.accounts import Window
from lambdas.core.sweeping.asking import DELIVERIES, DRIFT, LETTERS, STUCK, Order, order_of
from lambdas.core.sweeping.deliveries import GIVEN_UP, Deliveries
from lambdas.core.sweeping.drift import Drift
from lambdas.core.sweeping.listed import Absent, Listed
from lambdas.core.sweeping.machines import Machines
from lambdas.core.sweeping.report import Part, Report, Stepwise
from lambdas.core.sweeping.rounds import Rounds
from lambdas.core.sweeping.stuck import Stuck
from lambdas.core.sweeping.uploads import Uploads
from lambdas.core.tasks import policy_of
from lambdas.core.times import Instant
from lambdas.core.webhooks.delivery import DeliveryLimits
from lambdas.sources import PLUGIN, BadPlugin
from lambdas.sources import load as load_plugin
from lambdas.tasks import job_types, load

UNKNOWN = 1_000_000
USUAL = (STUCK, DELIVERIES, LETTERS)
ANSWER_S = 30  # within which a source must have told a page of its list
QUICK_S = 2  # for an answer that a sweep can do without
LISTENING_S = 3 * (3 + QUICK_S)  # three such calls, each with the time to connect


@dataclass(frozen=True)
class Audience:
    """Who listens to job events: with clients that try once, because nobody's job waits for it."""

    topic: SnsTopic
    ledger: Ledger


@dataclass(frozen=True)
class Parts:
    """`parts`: what can be swept, by name."""

    parts: dict[str, Part]
    ledger: DynamoLedger
    certificates: S3Objects
    functions: LambdaFunctions
    audience: Audience
    tail_s: float
    log: StepLog


@dataclass(frozen=True)
class _Kit:
    """What several parts are made of."""

    environment: Environment
    log: StepLog

    def text(self, name: str) -> str:
        return self.environment.text(name)

    @property
    def store(self) -> DynamoJobStore:
        return DynamoJobStore(client("dynamodb"), self.text(names.JOBS_TABLE))

    @property
    def inventory(self) -> DynamoInventory:
        return DynamoInventory(client("dynamodb"), self.text(names.JOBS_TABLE))

    @property
    def ledger(self) -> DynamoLedger:
        return DynamoLedger(client("dynamodb"), self.text(names.JOBS_TABLE))

    @property
    def workers(self) -> Pipeline:
        """Each part has its own pace: one source that throttles holds up no other."""
        number = self.environment.number
        return Pipeline(number(names.SWEEP_WIDTH, 8), Pace(number(names.SWEEP_RATE, 200)))

    @property
    def window(self) -> Window:
        number = self.environment.number
        return Window(number(names.SWEEP_WINDOW_DAYS, 30), number(names.SOURCE_GRACE_S, 900))

    @property
    def page(self) -> int:
        return self.environment.number(names.SWEEP_PAGE, 1_000)

    def door(self) -> Door:
        checks, _ = job_types()
        inputs = S3Objects(client("s3"), self.text(names.INPUTS_BUCKET))
        return Door(self.store, inputs, checks, self.environment.limits, clock.now, lambda: uuid.uuid4().hex)


def build(environment: Environment) -> Parts:
    log = StepLog("sweep")
    kit = _Kit(environment, log)
    parts: dict[str, Part] = {
        STUCK: _stuck(kit), DELIVERIES: _deliveries(kit), LETTERS: _letters(kit), names.UPLOADS: _uploads(kit),
    }  # fmt: skip
    listed = {name: _listed(name, source, kit) for name, source in environment.sources.items() if source.list}
    certificates = S3Objects(client("s3"), environment.text(names.RESULTS_BUCKET))
    drift = Drift(kit.inventory, kit.store, certificates, clock.now, log.notice, kit.workers, kit.page)
    return Parts(
        parts={**parts, **listed, DRIFT: drift},
        ledger=kit.ledger,
        certificates=certificates,
        functions=LambdaFunctions(client("lambda")),
        audience=_audience(environment),
        tail_s=2 * environment.limits.settle_s,
        log=log,
    )


def _audience(environment: Environment) -> Audience:
    sns, dynamodb = (single_attempt_client(service, QUICK_S) for service in ("sns", "dynamodb"))
    return Audience(
        SnsTopic(sns, environment.text(names.JOB_EVENTS_TOPIC_ARN)),
        DynamoLedger(dynamodb, environment.text(names.JOBS_TABLE)),
    )


def _stuck(kit: _Kit) -> Stuck:
    limits, outbox = kit.environment.limits, outbox_of(kit.environment)
    tasks, broken = load()
    for type_, why in broken.items():
        kit.log.trouble("broken_task", type=type_, detail=why)

    workflows, unusable = workflows_of_this_build()
    for type_, why in unusable.items():
        kit.log.trouble("broken_workflow", type=type_, detail=why)

    def max_tries(job: Job) -> int:
        """Of what is not here (a deploy is under way, or it is broken) the worker decides, or the deadline."""
        if job.type in workflows:
            return limits.retry.max_attempts
        task = tasks.get(job.type)
        return policy_of(task, limits.retry).max_attempts if task else UNKNOWN

    return Stuck(
        store=kit.store,
        outbox=outbox,
        queue=outbox.work,
        limits=limits,
        now=clock.now,
        max_tries=max_tries,
        notice=kit.log.notice,
        workers=kit.workers,
        machines=Machines(executions_of(kit.environment), workflows, random.random),
    )


def _deliveries(kit: _Kit) -> Deliveries:
    return Deliveries(
        store=DynamoDeliveries(client("dynamodb"), kit.text(names.JOBS_TABLE)),
        queue=SqsQueue(client("sqs"), kit.text(names.DELIVERIES_QUEUE_URL)),
        limits=DeliveryLimits(kit.environment.limits),
        now=clock.now,
        notice=kit.log.notice,
        workers=kit.workers,
    )


def _letters(kit: _Kit) -> Stepwise:
    boxes, queues = dead_letters_of(kit.environment), queues_of(kit.environment)
    return Stepwise(StrayLetters(boxes, kit.store, outbox_of(kit.environment), queues, clock.now))


def _uploads(kit: _Kit) -> Uploads:
    bucket = kit.text(names.UPLOADS_BUCKET)
    yard = Yard(kit.door(), S3Uploads(client("s3"), bucket), bucket)
    return Uploads(
        listing=S3Listing(client("s3"), bucket),
        inventory=kit.inventory,
        trigger=triggers.of_uploads(yard),
        window=kit.window,
        now=clock.now,
        notice=kit.log.notice,
        workers=kit.workers,
        page=kit.page,
    )


def _listed(name: str, source: Source, kit: _Kit) -> Part:
    secrets = SecretsManager(lambda: client("secretsmanager"))
    reception = Reception(kit.door(), kit.environment.sources, secrets, kit.ledger)
    config = dict(source.list or {})
    try:
        pages = load_plugin(str(config.get(PLUGIN)))
    except BadPlugin as broken:
        return Absent(str(broken))
    secret = str(config.pop("token", ""))

    def page(since: Instant, until: Instant, cursor: str) -> Page:
        token = secrets.read(secret, ANSWER_S)[0] if secret else ""
        return pages(Ask(config, token, since, until, cursor, ANSWER_S))

    return Listed(
        pages=page,
        job_id=triggers.listed_job_id(name, reception),
        store=kit.store,
        trigger=triggers.of_events(name, reception),
        window=kit.window,
        now=clock.now,
        notice=kit.log.notice,
        workers=kit.workers,
    )


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    own = parts()
    own.log.started(context)
    order = order_of(event, request_id=context.aws_request_id, usual=USUAL)

    def left_s() -> float:
        return float(context.get_remaining_time_in_millis()) / 1000

    rounds = Rounds(
        parts=own.parts,
        ledger=own.ledger,
        certificates=own.certificates,
        start=lambda payload: own.functions.start(context.function_name, payload),
        now=clock.now,
        holder=context.aws_request_id,
        until=times.after(clock.now(), left_s() + LEASE_MARGIN_S),
        in_time=lambda: left_s() >= own.tail_s,
        tell=_tell,
        notice=own.log.notice,
    )
    complete = rounds.run(order)
    shown = {name: report.shown() for name, report in rounds.over.items()}
    own.log.notice("swept", sweep_id=order.sweep_id, complete=complete, parts=[*shown])
    if _asks_for_listeners(order) and left_s() >= LISTENING_S:
        _tell_listeners(context.aws_request_id)
    return {"sweep_id": order.sweep_id, "complete": complete, "parts": shown}


def _tell(report: Report) -> None:
    """A part that has ended. That it got to its end is told by a number of its kind, 0 or not."""
    emit_metrics(
        {names.SWEEP_REPAIRED: report.found, names.SWEEP_TROUBLES: report.all_troubles, **_own_number(report)},
        MetricUnit.Count,
    )
    if report.part == STUCK and report.is_done:
        emit_metrics({names.OLDEST_OPEN_JOB: report.counts.get("oldest_s", 0)}, MetricUnit.Seconds)


def _asks_for_listeners(order: Order) -> bool:
    """Once in each sweep of what is stuck, however far that part got."""
    return STUCK in order.parts and not order.dry_run


def _tell_listeners(holder: str) -> None:
    """A subscription that somebody has removed makes no noise: what is published to nobody is published all right.

    When all else is saved: it may fail, or hang, and takes nothing with it."""
    audience = parts().audience
    try:
        lost = listeners.missing(audience.ledger, audience.topic.listeners, clock.now, holder)
    except Unavailable as trouble:
        parts().log.trouble("listeners_unknown", detail=str(trouble))
        emit_metrics({names.SWEEP_TROUBLES: 1}, MetricUnit.Count)
        return
    if lost is not None:
        emit_metrics({names.LISTENERS_LOST: lost}, MetricUnit.Count)


def _own_number(report: Report) -> dict[str, int]:
    if report.part == DELIVERIES:  # what it has given up was given up, whether it got to its end or not
        given_up = report.counts.get(GIVEN_UP, 0)
        return {names.DELIVERIES_FAILED: given_up} if given_up else {}
    if not report.is_done or report.part == LETTERS:
        return {}
    kinds: dict[str, Callable[[], tuple[str, int]]] = {
        STUCK: lambda: (names.DUE_JOBS, report.counts.get("due", 0)),
        DRIFT: lambda: (names.DRIFT_FOUND, report.counts.get("lost", 0)),
    }
    name, number = kinds.get(report.part, lambda: (names.SOURCE_MISSING, report.found))()
    return {name: number}
