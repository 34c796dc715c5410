"""The boundaries of a scenario, as a clean run of it went through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from local.faults import HANDLER, INVOKE
from tests.simulation.proof.boundaries import MODEL, POST, RECEIVER, SERIAL, TURNLESS, Boundary
from tests.simulation.proof.chronicle import Asked, Began, Called, Came
from tests.simulation.proof.run import Run

Met = Called | Asked | Came
# where nobody counts invocations: the nth of the calls of a kind that the first one to come so far is sure to make
_SURE = {"Query": 2, "DeleteItem": 2}


def boundaries_of(run: Run) -> list[Boundary]:
    """In the order in which they were met; of those whom the scenario has struck."""
    found = [
        (one.number, boundary)
        for function in run.scenario.struck
        for turn, one in enumerate(run.invocations(function), 1)
        if _is_struck(run, one)
        for boundary in _of_invocation(run, one, turn)
    ]
    found.sort(key=lambda one: one[0])
    return list(dict.fromkeys(boundary for _, boundary in found if _is_sure(boundary)))


def _is_struck(run: Run, invocation: Began) -> bool:
    """Where it is about a job's deliveries, what others do for the job itself is as in any other scenario."""
    if not run.scenario.delivered or invocation.function not in ("dispatch", "sweep"):
        return True
    return "delivery#" in invocation.event or '"deliveries"' in invocation.event


def _is_sure(boundary: Boundary) -> bool:
    return boundary.function not in TURNLESS or boundary.nth <= _SURE.get(boundary.operation, 1)


def _of_invocation(run: Run, invocation: Began, turn: int) -> Iterator[Boundary]:
    if invocation.function in TURNLESS:
        if not run.is_watched_at(invocation):
            return
        turn = 1
    calls = list(_calls(run, invocation, turn))
    if calls or invocation.function not in SERIAL:
        yield Boundary(invocation.function, HANDLER, INVOKE, turn=turn)
    yield from calls


def _calls(run: Run, invocation: Began, turn: int) -> Iterator[Boundary]:
    """Those that name the job, its answer or its failure. Of an invocation that is about every job, all calls are
    counted, and a read counts too if its answer names it; its own books, once, if the scenario is to show them."""
    counts: Counter[tuple[str, str]] = Counter()
    serial = invocation.function in SERIAL
    for call in _in_order(run, invocation):
        place = _place(call)
        named = _names(run, call)
        counts[place] += named or (serial and (place[1] != "Query" or _asks_for_its_shard(run, call)))
        if named or (serial and _is_kept(run, invocation, call)):
            yield Boundary(invocation.function, *place, nth=counts[place], turn=turn)


def _place(call: Met) -> tuple[str, str]:
    match call:
        case Asked():
            return MODEL, call.request.operation
        case Came():
            return RECEIVER, POST
        case Called():
            return call.service, call.operation


def _in_order(run: Run, invocation: Began) -> list[Met]:
    chronicle = run.chronicle
    met: tuple[Met, ...] = (*chronicle.called, *chronicle.asked, *chronicle.came)
    return sorted((one for one in met if one.request_id == invocation.request_id), key=lambda one: one.number)


def _names(run: Run, call: Met) -> bool:
    match call:
        case Asked():
            return run.key in call.request.prompt
        case Came():
            return call.place == run.key
        case Called():
            return any(name in call.request for name in run.said_names)


def _asks_for_its_shard(run: Run, call: Met) -> bool:
    return isinstance(call, Called) and any(shard in call.request for shard in run.shards)


def _is_kept(run: Run, invocation: Began, call: Met) -> bool:
    """A read that tells of it; and once, where the scenario shows them, the invocation's own books."""
    if not isinstance(call, Called):
        return False
    if any(name in call.response for name in run.said_names):
        return True
    own = run.scenario.books and call.operation != "Query"
    return own and invocation is _first_to_meet(run, invocation.function)


def _first_to_meet(run: Run, function: str) -> Began | None:
    """The first invocation that has to do with the job at all."""
    return next((one for one in run.invocations(function) if _meets_it(run, one)), None)


def _meets_it(run: Run, invocation: Began) -> bool:
    """Whether this invocation has to do with the job at all."""
    return any(
        name in call.request or name in call.response
        for call in run.chronicle.called
        if call.request_id == invocation.request_id
        for name in run.said_names
    )
