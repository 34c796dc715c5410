"""What a job has left behind, everywhere, when nothing moved any more; invariants look at nothing else."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lambdas.core.prices import cost_micros, estimate_tokens
from local.model.script import Rule
from tests.e2e.target import Answer
from tests.simulation.proof.chronicle import Asked, Chronicle
from tests.simulation.proof.leftovers import Left, Mail, by_job, left_on
from tests.simulation.proof.receivers import STRANGER
from tests.simulation.proof.run import TENANTS, Run
from tests.simulation.proof.watchers import Heard
from tests.simulation.stage import Stage
from tests.simulation.tasks.steady.task import MAX_TOKENS

Record = dict[str, Any]
Body = dict[str, Any]


@dataclass(frozen=True)
class State:
    """The record after one of its writes, and which invocation wrote it ("" if none did: a ghost)."""

    number: int
    by: str
    record: Record


@dataclass(frozen=True)
class Ask:
    """A call that the provider did not refuse. `cost`, and the `most` that may be booked for it: who never hears how
    much it was assumes the most."""

    number: int
    by: str
    answer: str | None
    cost: int
    most: int


@dataclass(frozen=True)
class Text:
    """What is streamed of a job: its chunks by attempt, with their numbers; what the model said to it, whole or cut;
    what each watcher has put together."""

    chunks: Mapping[int, tuple[tuple[int, str], ...]]
    said: tuple[str, ...]
    heard: tuple[Heard, ...]


@dataclass(frozen=True)
class Post:
    """A call that the receiver got. `verifies`: with the secret that its tenant was told."""

    number: int
    by: str
    id: str
    body: bytes
    verifies: bool


@dataclass(frozen=True)
class Delivered:
    """What became of a job's deliveries: their records after each write; each call at the receiver; when a delivery was
    claimed, by whom; how often the receiver of a stranger was called; how often this one refused."""

    states: tuple[State, ...]
    posts: tuple[Post, ...]
    strangers: int
    refused: int

    @property
    def records(self) -> dict[str, Record]:
        """By their sort keys, as they stand."""
        return {one.record["sk"]: one.record for one in self.states}


@dataclass(frozen=True)
class Evidence:
    """Of one job. `cut_off`: invocations that were killed, stood still or could not reach a store. `stored`: when its
    answer was kept. `found`: the record as it was read in the end, and `functions` by their invocations."""

    case: str
    job_id: str
    tenant: str
    ends: tuple[str, str]
    openings: int
    blows: int
    cut_off: frozenset[str]
    struck: bool
    accepted_as: tuple[str, ...]
    states: tuple[State, ...]
    asks: tuple[Ask, ...]
    stored: tuple[int, ...]
    events: tuple[Body, ...]
    letters: tuple[Body, ...]
    result: Answer
    result_object: bytes | None
    by_others: tuple[int, ...]
    listed_for: tuple[str, ...]
    left: Left = field(default_factory=lambda: Left({}))
    found: Record | None = None
    functions: Mapping[str, str] = field(default_factory=dict)
    text: Text | None = None
    delivered: Delivered | None = None

    @property
    def record(self) -> Record:
        return self.states[-1].record if self.states else {}

    @property
    def facts(self) -> list[str]:
        """The event ids of its final states, one for each opening."""
        return list(dict.fromkeys(fact(one.record) for one in self.states if is_final(one.record)))


def fact(record: Record) -> str:
    return f"{record['pk']}.{record['attempt']}.{record['status']}"


def is_final(record: Record) -> bool:
    return record["status"] in ("COMPLETED", "FAILED", "CANCELLED")


def collect(
    stage: Stage, chronicle: Chronicle, runs: Sequence[Run], mail: Mail, known: Collection[str]
) -> list[Evidence]:
    """Look everywhere, once for all of them. `mail`: what was gathered so far; `known`: every job that ever was."""
    mail.gather(stage)
    events, letters = by_job(mail.events), by_job(mail.letters)
    mine = {run.job_id for run in runs}
    strangers = [job_id for job_id in (*events, *letters) if job_id not in known]
    if any(blow.stops_push for run in runs for blow in run.case.blows):
        mail.others.pop("push", None)  # hints that are too old to be of any use, as is their end
    left = left_on(stage, mine, mail.others, strangers)
    tenants = dict.fromkeys((*TENANTS, *(run.tenant for run in runs)))
    listed = {tenant: _listed(stage, tenant, mine) for tenant in tenants}
    found = Found(events, letters, listed, left)
    return [_of_run(stage, chronicle, run, found) for run in runs]


@dataclass(frozen=True)
class Found:
    """What lay in the queues and stood in the lists: of all jobs together."""

    events: dict[str, list[Body]]
    letters: dict[str, list[Body]]
    listed: dict[str, set[str]]
    left: Left


def _of_run(
    stage: Stage,
    chronicle: Chronicle,
    run: Run,
    found: Found,
) -> Evidence:
    states = tuple(
        State(one.number, one.request_id, one.record) for one in chronicle.became if one.job_id == run.job_id
    )
    key = states[-1].record.get("result_key") if states else None
    others = [tenant for tenant in TENANTS if tenant != run.tenant][:2]
    return Evidence(
        case=str(run.case) if run.mate_of is None else f"{run.mate_of.case} (its mate)",
        job_id=run.job_id,
        tenant=run.tenant,
        ends=run.ends,
        openings=run.scenario.openings,
        blows=len(run.case.blows),
        cut_off=run.cut_off,
        struck=run.is_struck,
        accepted_as=tuple(one.result() for one in run.sent),
        states=states,
        asks=_asks(chronicle, run),
        stored=_stored(chronicle, run),
        events=tuple(found.events.get(run.job_id, ())),
        letters=tuple(found.letters.get(run.job_id, ())),
        result=stage.get(f"/jobs/{run.job_id}/result", run.tenant),
        result_object=stage.result_object(key) if key else None,
        by_others=tuple(
            stage.get(f"/jobs/{run.job_id}{what}", tenant).status
            for tenant, what in zip(others, ("", "/result"), strict=True)
        ),
        listed_for=tuple(tenant for tenant, jobs in found.listed.items() if run.job_id in jobs),
        left=found.left,
        found=run.record,
        functions={one.request_id: one.function for one in chronicle.began},
        text=_text(chronicle, run) if run.scenario.told else None,
        delivered=_delivered(chronicle, run) if run.scenario.delivered else None,
    )


def _text(chronicle: Chronicle, run: Run) -> Text:
    rules = {rule.index: rule for rule in run.stage.runtime.model_server.script._rules}
    asked = [one for one in chronicle.asked if run.key in one.request.prompt]
    said = [rules[one.line["rule"]] for one in asked if one.line["rule"] in rules]
    chunks: dict[int, list[tuple[int, str]]] = {}
    for attempt, n, text in run.stage.chunks(run.job_id):
        chunks.setdefault(attempt, []).append((n, text))
    return Text(
        chunks={attempt: tuple(found) for attempt, found in chunks.items()},
        said=tuple("".join(rule.deltas) or rule.answer or "" for rule in said),
        heard=tuple(one.heard for one in run.watchers),
    )


def _delivered(chronicle: Chronicle, run: Run) -> Delivered:
    secret = run.stage.get("/webhooks/callback/secret", run.tenant).json()["secret"]
    came = [one for one in chronicle.came if one.place == run.key]
    return Delivered(
        states=tuple(State(one.number, one.request_id, one.record) for one in run.delivery_states),
        posts=tuple(
            Post(one.number, one.request_id, one.delivered.id, one.delivered.body, one.delivered.is_signed_with(secret))
            for one in came
        ),
        strangers=sum(one.place == STRANGER for one in chronicle.came),
        refused=min(len(came), 1),
    )


def _asks(chronicle: Chronicle, run: Run) -> tuple[Ask, ...]:
    rules = {rule.index: rule for rule in run.stage.runtime.model_server.script._rules}
    asked = [one for one in chronicle.asked if run.key in one.request.prompt and _is_begun(one)]
    usual = max((_cost(one) for one in asked), default=0)
    cut_off = run.cut_off if run.scenario.told else ()  # they may have heard the beginning alone
    found = ((one, _ask(one, rules.get(one.line["rule"]), usual)) for one in asked)
    return tuple(replace(ask, most=max(ask.most, _most(one))) if ask.by in cut_off else ask for one, ask in found)


def _is_begun(asked: Asked) -> bool:
    """Not refused; or only in the midst of the answer."""
    return asked.line["error"] is None or asked.line["status"] == 200


def _ask(asked: Asked, rule: Rule | None, usual: int) -> Ask:
    heard, most = asked.line["status"] is not None, _most(asked)
    if heard and not (rule and rule.deltas):  # these are the pieces of what is cut
        cost = _cost(asked)
        return Ask(asked.number, asked.request_id, rule.answer if rule else None, cost, cost)
    cost = min(_cost(asked) or usual, most)  # nobody is billed for more than he allowed
    return Ask(asked.number, asked.request_id, None, cost, most)


def _most(asked: Asked) -> int:
    sent = estimate_tokens(asked.request.system) + estimate_tokens(asked.request.conversation)
    return cost_micros(asked.request.model, sent, asked.request.max_tokens or MAX_TOKENS)


def _cost(asked: Asked) -> int:
    usage = asked.line["usage"]
    return cost_micros(asked.request.model, usage["inputTokens"], usage["outputTokens"]) if usage else 0


def _stored(chronicle: Chronicle, run: Run) -> tuple[int, ...]:
    """When the answer was kept: in its row, or, if it is large, in S3."""
    row, key = run.row.encode(), run.answer_key.encode()
    return tuple(
        one.number
        for one in chronicle.called
        if one.status == 200
        and (
            (one.service == "dynamodb" and one.operation == "UpdateItem" and row in one.request)
            or (one.service == "s3" and one.operation == "PutObject" and key in one.request)
        )
    )


def _listed(stage: Stage, tenant: str, mine: set[str]) -> set[str]:
    """What a tenant sees in his list, page by page, until he sees none of these jobs: the newest come first."""
    found: set[str] = set()
    path = "/jobs?limit=100"
    while path:
        page = stage.get(path, tenant).json()
        shown = {job["job_id"] for job in page["jobs"]}
        found |= shown
        path = f"/jobs?limit=100&cursor={page['cursor']}" if "cursor" in page and shown & mine else ""
    return found
