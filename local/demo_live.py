"""Scenes of the demo, as a program sees them: an answer that is read while it is written, a signed webhook, and a
document whose analyses run side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console

from local.demand import DemoError, demand
from local.receiver import Receiver
from local.runtime import Runtime
from neverdrop_client import (
    Client,
    Event,
    Final,
    Progress,
    Restarted,
    Text,
    WebhookEvent,
    WebhookRefused,
    verify_webhook,
)

INSTRUCTIONS = "Write it to the crew's families."
PACED = {"match": INSTRUCTIONS, "delta_chars": 5, "frame_s": 0.03}  # a model does not say it all at once
CUT_AFTER = 2  # pieces
DELIVERY_S = 120.0
# models that take their time, each another one: how each analysis begins to say what it is for
SLOW = [
    {"match": f"</document>\nYou {words}", "delay_s": delay_s}
    for words, delay_s in (
        ("summarize documents", 1.6),
        ("find the names", 1.2),
        ("sort documents", 0.4),
        ("judge the sentiment", 0.8),
        ("look through documents", 2.0),
    )
]


def stream(console: Console, runtime: Runtime, client: Client, transcript: str) -> None:
    """The answer as it comes, over a connection that is cut on its way. Raises DemoError."""
    task_input = {"text": transcript, "instructions": INSTRUCTIONS}
    job_id = client.submit("reply", task_input, key="apollo-13-reply", stream=True)["job_id"]
    texts: list[Text] = []
    cut = 0
    with client.stream(job_id) as events:
        for event in events:
            if not isinstance(event, Text):
                _end(event, texts, client)
                continue
            _show(console, event, texts)
            if len(texts) == CUT_AFTER:
                cut = _cut(console, runtime)
    demand(cut == 1 and len(texts) > CUT_AFTER, "the answer was all there before its connection could be cut")
    console.print(f"\n\n  {len(texts)} pieces, none twice and none missing: after {CUT_AFTER} of them the connection")
    console.print("  was cut, and the client came back with another ticket.")
    console.print("  Together they are the stored result")


def _show(console: Console, piece: Text, texts: list[Text]) -> None:
    if not texts:
        console.print()
    demand(piece.n == len(texts), f"piece {piece.n} came after {len(texts)}")
    texts.append(piece)
    console.print(piece.text, end="", style="green", markup=False, soft_wrap=True)


def _cut(console: Console, runtime: Runtime) -> int:
    console.print(" ✂ the connection is cut ", end="", style="bold white on red")
    ids = runtime.connections.ids
    for connection_id in ids:
        runtime.connections.cut(connection_id)
    return len(ids)


def _end(event: Event, texts: list[Text], client: Client) -> None:
    if isinstance(event, Restarted):
        raise DemoError("the job was tried again, although nothing went wrong")
    assert isinstance(event, Final)
    said = "".join(text.text for text in texts)
    demand(said == client.result(event.job["job_id"])["text"], "what was streamed is not what was stored")


def webhook(console: Console, client: Client, transcript: str) -> None:
    """A job's end as its receiver hears of it. Raises DemoError."""
    with Receiver() as receiver:
        task_input = {"text": transcript}
        job = client.submit("summarize", task_input, key="apollo-13-webhook", callback_url=receiver.url)
        secret = client.webhooks.secret("callback")["secret"]
        came = receiver.next(DELIVERY_S)
    if came is None:
        raise DemoError(f"no webhook came within {DELIVERY_S:.0f} s")
    headers, body = came
    event = verify_webhook(body, headers, [secret])
    demand(event.job_id == job["job_id"], "the webhook is about another job")
    demand(not _is_taken(body.replace(b"job.completed", b"job.cancelled"), headers, secret), "a forged body was taken")
    _tell(console, event, body)


def _is_taken(body: bytes, headers: Mapping[str, str], secret: str) -> bool:
    try:
        verify_webhook(body, headers, [secret])
    except WebhookRefused:
        return False
    return True


def _tell(console: Console, event: WebhookEvent, body: bytes) -> None:
    console.print(f"  POST {event.type}, {len(body)} bytes, webhook-id {event.id[:8]}…, sequence {event.sequence}")
    console.print("  signature verified over exactly these bytes; with one word changed it is refused")


def fan_out(console: Console, client: Client, document: str) -> list[str]:
    """One document, its analyses side by side, one result; each told as it comes. The names of its parts. Raises
    DemoError."""
    job_id = client.submit("analyze-document", {"text": document}, key="apollo-11-analysis")["job_id"]
    told: list[str] = []
    with client.stream(job_id) as events:
        for event in events:
            if isinstance(event, Progress):
                _tell_parts(console, [*event.done, *event.failed], event.total, told)
            if isinstance(event, Final):  # the last parts may have come with the end
                come = event.job["progress"]
                _tell_parts(console, [*come["done"], *come["failed"]], come["total"], told)
    job, found = client.job(job_id), client.result(job_id)
    demand(job["status"] == "COMPLETED" and found["complete"], f"the analysis ended as {job['status']}")
    demand(sorted(found["parts"]) == sorted(told), f"told were {told}, and the result has {sorted(found['parts'])}")
    for name, part in found["parts"].items():
        console.print(f"  {name:<19}{_essence(part)}", markup=False, no_wrap=True, overflow="ellipsis")
    return told


def _tell_parts(console: Console, names: Iterable[str], total: int, told: list[str]) -> None:
    for name in names:
        if name not in told:
            told.append(name)
            console.print(f"  {len(told)} of {total}  [bold cyan]{name}[/]")


def _essence(part: Mapping[str, Any]) -> str:
    """What a part says, in a line."""
    match part:
        case {"summary": summary}:
            return str(summary)
        case {"entities": entities}:
            return ", ".join(f"{one['name']} ({one['mentions']})" for one in entities)
        case {"label": label, "confidence": confidence}:
            return f"{label}, {confidence} %"
        case {"sentiment": sentiment, "score": score}:
            return f"{sentiment}, {score}"
        case {"flags": flags}:
            return f"{len(flags)} passages flagged"
    return ""


def side_by_side(calls: Iterable[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Seconds from the first question to the last answer, and those of all branches together."""
    asked = sorted(datetime.fromisoformat(call["at"]) for call in calls)
    ended = sorted(datetime.fromisoformat(event["at"]) for event in events if event["what"] == "branch_done")
    demand(len(asked) == len(ended), f"{len(asked)} questions were asked, and {len(ended)} branches are done")
    spent = sum((end - begin).total_seconds() for begin, end in zip(asked, ended, strict=True))
    return (ended[-1] - asked[0]).total_seconds(), spent
