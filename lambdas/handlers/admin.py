"""/admin: what is dead and why, bringing it back, repairing, discarding, and sweeps. For operators, of all tenants."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.adapters import clock, http
from lambdas.adapters.clients import client
from lambdas.adapters.dynamodb import DynamoJobStore
from lambdas.adapters.environment import Environment, on_start
from lambdas.adapters.functions import LambdaFunctions
from lambdas.adapters.ledger import DynamoLedger
from lambdas.adapters.log import StepLog
from lambdas.adapters.s3 import S3Objects
from lambdas.adapters.sqs_letters import dead_letters_of, queues_of
from lambdas.contracts import names
from lambdas.core import operator
from lambdas.core.inbox.repaired_events import Fits
from lambdas.core.job import UnreadableRecord
from lambdas.core.letters import dead_letters, redrive, review, reviews
from lambdas.core.letters.dead_letters import Boxes, InTime
from lambdas.core.ports import JobStore, Ledger, Results, Sender, Unavailable
from lambdas.core.problems import Problem
from lambdas.core.sweeping import asking
from lambdas.tasks import job_types

ANSWER_S = 8.0  # kept free of looking: to give back what was hidden, and to answer
OPERATION_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Parts:
    ledger: Ledger
    store: JobStore
    boxes: Boxes
    queues: Mapping[str, Sender]
    fits: Fits
    functions: LambdaFunctions
    redrive_function: str
    sweep_function: str
    sweep_parts: tuple[str, ...]
    certificates: Results
    record_days: int
    log: StepLog


@dataclass(frozen=True)
class Asked:
    """A request of an operator, with the time that is left for it."""

    event: Mapping[str, Any]
    by: str
    in_time: InTime

    @property
    def query(self) -> Mapping[str, str]:
        return self.event.get("queryStringParameters") or {}

    @property
    def id(self) -> str:
        return http.path_parameter(self.event, "id")

    @property
    def body(self) -> bytes:
        return http.body_of(self.event)


def build(environment: Environment) -> Parts:
    table = environment.text(names.JOBS_TABLE)
    return Parts(
        ledger=DynamoLedger(client("dynamodb"), table),
        store=DynamoJobStore(client("dynamodb"), table),
        boxes=dead_letters_of(environment),
        queues=queues_of(environment),
        fits=Fits(environment.sources, job_types()[0]),
        functions=LambdaFunctions(client("lambda")),
        redrive_function=environment.text(names.REDRIVE_FUNCTION),
        sweep_function=environment.text(names.SWEEP_FUNCTION),
        sweep_parts=asking.known_parts({name: source for name, source in environment.sources.items() if source.list}),
        certificates=S3Objects(client("s3"), environment.text(names.RESULTS_BUCKET)),
        record_days=environment.limits.record_days,
        log=StepLog("admin"),
    )


parts = on_start(build)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    log = parts().log
    log.started(context)
    by = operator.who(http.authorizer_of(event))
    if isinstance(by, Problem):
        return http.problem(by)
    route = str(event.get("routeKey", ""))
    asked = Asked(event, by, lambda: context.get_remaining_time_in_millis() / 1000 > ANSWER_S)
    try:
        status, answer = ROUTES[route](asked)
    except Unavailable as trouble:
        log.trouble("store_unavailable", route=route, who=by, detail=str(trouble))
        detail = "It may have happened all the same. To ask for it once more is harmless."
        answer = Problem(503, "unavailable", "A store cannot be reached", detail)
    except UnreadableRecord as broken:
        log.trouble("unreadable_record", route=route, who=by, detail=str(broken))
        answer = Problem(
            503, "unreadable", "A record cannot be read", "Somebody changed it by hand: the log says which."
        )
    if isinstance(answer, Problem):
        log.notice("refused", route=route, who=by, status=answer.status, reason=answer.kind, detail=answer.detail)
        return http.problem(answer, **({"Retry_After": "2"} if answer.status == 503 else {}))
    if route.startswith("POST "):
        about = asked.id or answer.get("redrive_id") or answer.get("sweep_id")
        log.notice("operated", route=route, who=by, about=about)
    return http.answer(status, answer)


Answer = tuple[int, Mapping[str, Any] | Problem]


def _dead_letters(asked: Asked) -> Answer:
    queues = operator.queues_of(asked.query)
    if isinstance(queues, Problem):
        return 400, queues
    return 200, dead_letters.listing(_boxes(queues), parts().store, asked.in_time)


def _dead_letter(asked: Asked) -> Answer:
    queues = operator.queues_of(asked.query)
    if isinstance(queues, Problem):
        return 400, queues
    found = dead_letters.take(asked.id, _boxes(queues), asked.in_time)
    if isinstance(found, dead_letters.NotFound):
        return 404, review.no_such_letter(found)
    found.show()
    return 200, dead_letters.whole(found, parts().store)


def _redrive(asked: Asked) -> Answer:
    own = parts()
    order = operator.redrive_order(asked.body, uuid.uuid4().hex, asked.by)
    if isinstance(order, Problem):
        return 400, order
    run = redrive.ask(
        order,
        now=clock.now(),
        ledger=own.ledger,
        start=lambda payload: own.functions.start(own.redrive_function, payload),
        keep_days=own.record_days,
    )
    return 202, {"redrive_id": run.id, "state": run.state, "links": redrive.links(run.id)}


def _redrive_progress(asked: Asked) -> Answer:
    run = redrive.find(asked.id, parts().ledger) if OPERATION_ID.fullmatch(asked.id) else None
    if run is None:
        return 404, Problem(404, "no-such-redrive", "No such redrive", "There is no redrive with this id.")
    return 200, redrive.shown(run, clock.now())


def _repair(asked: Asked) -> Answer:
    return _decided(operator.decision(asked.body, asked.id, asked.by, repairs=True), asked)


def _discard(asked: Asked) -> Answer:
    return _decided(operator.decision(asked.body, asked.id, asked.by, repairs=False), asked)


def _decided(decision: review.Decision | Problem, asked: Asked) -> Answer:
    if isinstance(decision, Problem):
        return 400, decision
    own = parts()
    desk = review.Desk(
        ledger=own.ledger,
        store=own.store,
        boxes=own.boxes,
        queues=own.queues,
        fits=own.fits,
        now=clock.now,
        in_time=asked.in_time,
        keep_days=own.record_days,
    )
    outcome = review.decide(decision, desk)
    return (outcome.status, outcome) if isinstance(outcome, Problem) else (200, reviews.shown(outcome))


def _reviews(asked: Asked) -> Answer:
    page = operator.review_page(asked.query)
    if isinstance(page, Problem):
        return 400, page
    own, (status, cursor) = parts(), page
    lying = reviews.open_(own.boxes, own.ledger, asked.in_time) if status in (None, reviews.OPEN) and not cursor else {}
    if status == reviews.OPEN:
        return 200, lying or {"reviews": []}
    decided = reviews.decided(status, cursor, own.ledger)
    return 200, {**lying, **decided, "reviews": [*lying.get("reviews", []), *decided["reviews"]]}


def _sweep(asked: Asked) -> Answer:
    own, sweep_id = parts(), uuid.uuid4().hex
    order = operator.sweep_order(asked.body, sweep_id, asked.by, own.sweep_parts)
    if isinstance(order, Problem):
        return order.status, order

    def start(event: Mapping[str, Any]) -> None:
        own.functions.start(own.sweep_function, event)

    asking.ask(order, now=clock.now(), ledger=own.ledger, start=start)
    return 202, {"sweep_id": sweep_id, "links": {"self": f"/admin/sweeps/{sweep_id}"}}


def _certificate(asked: Asked) -> Answer:
    own = parts()
    known = asking.certificate_of(asked.id, now=clock.now(), ledger=own.ledger, certificates=own.certificates)
    if known is None:
        return 404, Problem(404, "no-such-sweep", "No such sweep", "There is no sweep with this id.")
    return 200, {"state": known["status"], **known}


def _boxes(queues: tuple[str, ...]) -> Boxes:
    return {name: box for name, box in parts().boxes.items() if name in queues}


ROUTES: dict[str, Callable[[Asked], Answer]] = {
    "GET /admin/dead-letters": _dead_letters,
    "GET /admin/dead-letters/{id}": _dead_letter,
    "POST /admin/dead-letters/redrive": _redrive,
    "POST /admin/dead-letters/{id}/repair": _repair,
    "POST /admin/dead-letters/{id}/discard": _discard,
    "GET /admin/redrives/{id}": _redrive_progress,
    "GET /admin/review": _reviews,
    "POST /admin/sweeps": _sweep,
    "GET /admin/sweeps/{id}": _certificate,
}
