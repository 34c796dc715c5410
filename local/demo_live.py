"""Two scenes of the demo, as a program sees them: an answer that is read while it is written, and a signed webhook."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from local.demand import DemoError, demand
from local.receiver import Receiver
from local.runtime import Runtime
from neverdrop_client import Client, Event, Final, Restarted, Text, WebhookEvent, WebhookRefused, verify_webhook

INSTRUCTIONS = "Write it to the crew's families."
PACED = {"match": INSTRUCTIONS, "delta_chars": 5, "frame_s": 0.02}  # a model does not say it all at once
CUT_AFTER = 4  # pieces
DELIVERY_S = 30.0


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
    console.print(f"\n\n  {len(texts)} pieces, none twice and none missing: behind the {CUT_AFTER}th the connection")
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
