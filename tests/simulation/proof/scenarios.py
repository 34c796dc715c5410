"""What happens to a job when nothing is struck: who sends it, what the model says, who steps in, how it ends.

To add one, put it into SCENARIOS: its boundaries are recorded by themselves. What is to come has its place here: a
workflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import CANCELLED, COMPLETED, FAILED
from tests.simulation.proof import acts
from tests.simulation.proof.acts import Act

LARGE_INPUT, LARGE_ANSWER = "x" * 3_000, "y" * 9_000
PIECE = 2_100  # characters of a piece that a streamed answer comes in: each of them is a chunk at once
ON_THE_WAY = ("accept", "ingest", "control", "dispatch", "worker", "sweep")
"""Functions that a job needs. Beside them there is who tells of it; of `query`, `ticket` and `connect` nothing is
struck: they change nothing that lasts, and whoever asked asks again."""
Input = Callable[[str], Mapping[str, Any]]


def _text(key: str) -> Mapping[str, Any]:
    return {"text": key}


@dataclass(frozen=True)
class Scenario:
    """One job's story. `model`: what it says first, before it answers; `acts`: who does what, one after the other, each
    when its moment has come; `given`: what strikes the job in any case. `sweeps`: the parts that are swept whenever
    time passes. Without `stream` nobody listens to the stream, and only sweeps move the job on. `told`: its text is
    streamed to two watchers, one who stays and one who comes back at the end. `delivered`: its end is delivered to a
    receiver, which fails at first. `struck`: whose boundaries are played; others meet in another scenario the same."""

    name: str
    what: str
    task: str = "steady"
    input: Input = _text
    question: str = "text"
    model: tuple[Mapping[str, Any], ...] = ()
    answer: str = "answer"
    acts: tuple[Act, ...] = (acts.submit,)
    cancels: bool = False
    given: tuple[str, ...] = ()
    sweeps: tuple[str, ...] = ("stuck",)
    stream: bool = True
    books: bool = False
    ends: str = COMPLETED
    reason: str = ""
    openings: int = 1
    told: bool = False
    delivered: bool = False
    struck: tuple[str, ...] = ON_THE_WAY


SCENARIOS: dict[str, Scenario] = {
    one.name: one
    for one in (
        Scenario(
            "plain", "accepted, dispatched, worked on, handed over; nobody watches, no endpoint wants to hear of it",
            struck=(*ON_THE_WAY, "deliver", "push"),
        ),
        Scenario("throttled", "the model has no room at first", model=({"error": "ThrottlingException"},)),
        Scenario(
            "unready", "what it needs is not there yet", task="awaiting",
            input=lambda key: {"text": key, "key": key}, acts=(acts.submit, acts.provide_when_it_waits),
        ),
        Scenario(
            "duplicates", "sent three times under one key: at once, once more, and when it is done",
            acts=(acts.submit, acts.submit_again, acts.submit_again_when_done),
        ),
        Scenario(
            "large", "input and answer lie in S3", input=lambda key: {"text": f"{key} {LARGE_INPUT}"},
            answer=LARGE_ANSWER,
        ),
        Scenario(
            "failing", "the model refuses for good", model=({"error": "ValidationException", "times": None},),
            ends=FAILED, reason="MODEL_PERMANENT",
        ),
        Scenario(
            "redriven", "fails twice, is mended, and its letter is moved back", task="mended", question="prompt",
            input=lambda key: {"prompt": key, "key": key}, acts=(acts.submit, acts.mend_and_redrive_when_all_failed),
            openings=2,
        ),
        Scenario("cancelled", "cancelled while the model is asked", cancels=True, ends=CANCELLED),
        Scenario(
            "lost-upload", "S3's notification is lost; the sweep compares the bucket", acts=(acts.upload_unheard,),
            sweeps=("uploads", "stuck"),
        ),
        Scenario("unheard", "no stream record arrives: sweeps do it all", stream=False, books=True),
        Scenario(
            "unheard-failing", "the same for one that fails", stream=False,
            model=({"error": "ValidationException", "times": None},), ends=FAILED, reason="MODEL_PERMANENT",
        ),
        Scenario(
            "crashed", "its worker dies, and the sweep finds it", given=("worker:dynamodb.UpdateItem#1/crash_after",),
        ),
        Scenario(
            "late", "nobody works on it until its deadline is over", acts=(acts.submit, acts.wait_a_day),
            stream=False, ends=FAILED, reason="DEADLINE_EXCEEDED",
        ),
        Scenario(
            "stream", "its text is watched while it comes", told=True, acts=(acts.submit, acts.come_back_when_done),
            struck=("worker", "push", "socket"),
        ),
        Scenario(
            "stream-cancelled", "cancelled in the midst of its text", told=True, cancels=True, ends=CANCELLED,
            acts=(acts.submit, acts.come_back_when_done), struck=("worker", "control"),
        ),
        Scenario(
            "webhook", "its end is delivered to a receiver that fails at first", delivered=True,
            sweeps=("stuck", "deliveries"), struck=("deliver", "dispatch"),
        ),
        Scenario(
            "webhook-unheard", "the same without the stream: sweeps do it all", delivered=True, stream=False,
            sweeps=("stuck", "deliveries"), struck=("sweep",),
        ),
    )
}  # fmt: skip
