"""What the actors do to a delivery: the core's functions, with the model's store behind them.

An attempt is cut where its endpoint is called: a worker may be killed on either side of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lambdas.core import times
from lambdas.core.batch import Early
from lambdas.core.conditions import holds
from lambdas.core.ports import Applied, Message, Refused
from lambdas.core.protocol import Change
from lambdas.core.sweeping.deliveries import Deliveries
from lambdas.core.sweeping.report import Report
from lambdas.core.webhooks import attempting, circuits, planning, redelivery, routing
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks.calling import Courier
from lambdas.core.webhooks.messages import Event, Hint
from lambdas.core.webhooks.ports import Answer, Busy, Entered, Key, Undelivered
from tests.builders import NOW, TENANT, handed_over, later
from tests.fakes import FakeEndpoints, FakeJobStore, FakeTurn, FakeWorkers
from tests.fakes_webhooks import FakeSigner
from tests.simulation.races.delivery_record import EVENT, JOB, KEY, LIMITS, USED, known_endpoints, planner, quiet
from tests.simulation.races.law import Store
from tests.simulation.races.record import INVOCATION_S, Rec

# what an endpoint does: `lost`, it takes the event and its answer never comes
TAKEN, LATER, GONE, LOST = "taken", "not now", "gone", "taken, unheard"
STATUSES = {TAKEN: 200, LATER: 500, GONE: 410}
PLACE = 0


class Held(BaseException):
    """It is claimed: here its endpoint would be called."""


class Shelf:
    """The DeliveryStore and the queue of hints, on the model's store. `claimed`: what a claim answers, without a
    write: it was made before."""

    def __init__(self, store: Store, claimed: Mapping[str, Any] | None = None) -> None:
        self.store, self.claimed = store, claimed

    def create(self, record: Mapping[str, Any]) -> Mapping[str, Any] | None:
        there = self.store.record or None
        if not holds(self.store.law.rules["accept"].condition, there, {}):
            return there
        self.store.put("accept", {**record, "tries": USED}, -1)
        return None

    def apply(self, key: Key, change: Change) -> Applied | Refused:
        if self.claimed is not None and change.rule.name == "claim":
            return Applied(self.claimed)
        return self.store.apply(key[0], change)

    def read(self, key: Key) -> Mapping[str, Any] | None:
        return self.store.read(key[0]) or None

    def due(self, shard: str, before: object, after: object, limit: int) -> list[tuple[str, Key]]:
        return [(at, KEY) for at, _ in self.store.due(shard, before, after, limit)]

    def beside(self, job_id: str) -> list[Mapping[str, Any]]:
        return []  # nobody who acts here tells a timeline

    def depth(self) -> int:
        return 0

    def send(self, sent: Sequence[Message]) -> set[int]:
        return self.store.send_work(sent)


# --- what is done to it ----------------------------------------------------------------------------------


def plan(store: Store) -> str:
    """The event of its job's end comes, perhaps once more."""
    return "planned" if planning.plan(Event(EVENT), planner(Shelf(store)), notice=quiet) else "there already"


def dispatch(store: Store, image: Rec) -> str:
    found = deliveries.read(store.law.record(image))
    return "failed" if routing.send([found], now=NOW, queue=Shelf(store), notice=quiet) else "sent"


def sweep(store: Store) -> str:
    shelf = Shelf(store)
    Deliveries(shelf, shelf, LIMITS, lambda: NOW, quiet, FakeWorkers()).run(Report("sweep", "deliveries"), FakeTurn())
    return "swept"


def redeliver(store: Store) -> str:
    """A human wants it sent once more: acted on what was read, some time later."""
    post = redelivery.Post(
        FakeJobStore(handed_over()), Shelf(store), known_endpoints(), LIMITS, lambda: NOW, quiet
    )  # fmt: skip
    found = redelivery.redeliver(TENANT, JOB.id, b"", post)
    return "done" if isinstance(found, redelivery.Redelivery) else "refused"


def next_claim(rec: Rec) -> int:
    return rec.attempt + 1


def claim(store: Store, attempt: int, time_s: int = INVOCATION_S) -> str:
    """A hint comes, with so much time left."""

    class _Asked(FakeEndpoints):
        def read(self, tenant: str, endpoint_id: str) -> Any:
            raise Held

    courier = _courier(Shelf(store), _Asked())
    claim_id = f"claim {next_claim(store.rec)}"
    try:
        came = attempting.attempt(
            Hint(KEY, attempt, 0), claim_id=claim_id, ends=later(time_s), courier=courier, notice=quiet
        )
    except Held:
        return "claimed"
    return "early" if isinstance(came, Early) else "acknowledged"


def end(store: Store, held: Rec, came: str) -> str:
    """The attempt of this holder, as if its endpoint had done that; `busy`: no place was free."""
    shelf = Shelf(store, store.law.record(held))
    courier = _courier(shelf, known_endpoints(), came)
    done = attempting.attempt(
        Hint(KEY, held.attempt, 0), claim_id=f"claim {held.claim}", ends=later(INVOCATION_S), courier=courier,
        notice=quiet,
    )  # fmt: skip
    return done.how if not isinstance(done, Early) else "early"


class _Door:
    """The circuit: whether there is a place is the model's to say."""

    def __init__(self, came: str) -> None:
        self.came = came

    def enter(self, *_: object, **__: object) -> Entered | Busy:
        return Busy() if self.came == "busy" else Entered(PLACE)

    def leave(self, *_: object, **__: object) -> None:
        pass

    def release(self, *_: object, **__: object) -> None:
        pass

    def reset(self, *_: object, **__: object) -> None:
        pass


class _Poster:
    def __init__(self, came: str) -> None:
        self.came = came

    def post(self, *_: object) -> Answer:
        if self.came == LOST:
            raise Undelivered("timeout", "no answer")
        return Answer(STATUSES[self.came], "", "", 1)


def _courier(shelf: Shelf, asked: FakeEndpoints, came: str = TAKEN) -> Courier:
    return Courier(
        store=shelf, endpoints=asked, circuits=_Door(came), poster=_Poster(came), signer=FakeSigner(),
        masters=lambda: ("master",), limits=LIMITS, now=lambda: NOW, draw=lambda: 0.5,
    )  # fmt: skip


# --- places ----------------------------------------------------------------------------------------------


def place_row(by: int, *, over: bool) -> dict[str, Any]:
    return {"place_0_holder": f"claim {by}", "place_0_until": times.text(later(-1 if over else INVOCATION_S))}


def enters(row: Mapping[str, Any] | None, by: int) -> bool:
    change = circuits.enter(PLACE, holder=f"claim {by}", now=NOW, until=later(INVOCATION_S))
    return change.may(row)


def leaves(row: Mapping[str, Any] | None, by: int) -> bool:
    return circuits.leave_behind(PLACE, holder=f"claim {by}").may(row)
