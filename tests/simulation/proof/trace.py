"""The boundaries of a scenario, as a clean run of it went through them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from local.faults import HANDLER, INVOKE
from tests.simulation.proof.boundaries import CONVERSE, MODEL, SERIAL, Boundary
from tests.simulation.proof.chronicle import Asked, Began, Called
from tests.simulation.proof.run import Run

OF_READERS = ("query",)  # they change nothing, and nobody waits for what they tell


def boundaries_of(run: Run) -> list[Boundary]:
    """In the order in which they were met."""
    functions = dict.fromkeys(one.function for one in run.chronicle.began if one.number > run.since)
    found = [
        (one.number, boundary)
        for function in functions
        if function not in OF_READERS
        for turn, one in enumerate(run.invocations(function), 1)
        for boundary in _of_invocation(run, one, turn)
    ]
    found.sort(key=lambda one: one[0])
    return [boundary for _, boundary in found]


def _of_invocation(run: Run, invocation: Began, turn: int) -> Iterator[Boundary]:
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
        place = (MODEL, CONVERSE) if isinstance(call, Asked) else (call.service, call.operation)
        named = _names(run, call)
        counts[place] += named or (serial and (place[1] != "Query" or _asks_for_its_shard(run, call)))
        if named or (serial and _is_kept(run, invocation, call)):
            yield Boundary(invocation.function, *place, nth=counts[place], turn=turn)


def _in_order(run: Run, invocation: Began) -> list[Called | Asked]:
    chronicle = run.chronicle
    calls = [one for one in chronicle.called if one.request_id == invocation.request_id]
    asked = [one for one in chronicle.asked if one.request_id == invocation.request_id]
    return sorted([*calls, *asked], key=lambda one: one.number)


def _names(run: Run, call: Called | Asked) -> bool:
    if isinstance(call, Asked):
        return run.key in call.request.prompt
    return any(name in call.request for name in run.said_names)


def _asks_for_its_shard(run: Run, call: Called | Asked) -> bool:
    return isinstance(call, Called) and any(shard in call.request for shard in run.shards)


def _is_kept(run: Run, invocation: Began, call: Called | Asked) -> bool:
    """A read that tells of it; and once, where the scenario shows them, the invocation's own books."""
    if isinstance(call, Asked):
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
