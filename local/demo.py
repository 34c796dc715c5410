"""`make demo`: one call from event to delivered result, live; a duplicate that costs nothing; a streamed answer; a
signed webhook; a document whose analyses run side by side; a poisoned job; a lost event that is found."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from urllib3.filepost import encode_multipart_formdata

from local import demo_live
from local.demand import DemoError, demand
from local.runtime import Runtime
from neverdrop_client import Client, NeverdropError

CALLS = Path(__file__).resolve().parent.parent / "samples" / "calls"
CALL, LOST_CALL = CALLS / "apollo13-problem.txt", CALLS / "mercury-freedom7.txt"
DOCUMENT = CALLS / "apollo11-landing.txt"
POISON = "CUSTOMER: this document makes every model refuse. It is the poison of this demo."
PATIENCE_S = 60
A_WHILE_S = 16 * 60  # longer than an upload may be on its way before the sweep asks for it

_TOLD = {
    "accepted": "recorded in DynamoDB, answered 202",
    "dispatched": "stream → SQS work queue",
    "claimed": "one conditional update: this worker holds it",
    "model_called": "asks {model}",
    "model_answered": "{input_tokens} + {output_tokens} tokens, {cost_micros} µ$",
    "answer_reused": "the tenant paid for this very answer before",
    "stored": "{bytes} bytes in S3",
    "completed": "COMPLETED, {cost_micros} µ$",
    "failed": "FAILED: {reason}",
    "handed_over": "told to SNS job-events",
}
_LAST = "handed_over"


def said(line: dict[str, Any]) -> str:
    """A step in words. A result that lacks parts is never shown as a whole one."""
    told = _TOLD[line["step"]].format_map({**_Blank(), **line})
    missing = line.get("missing") if line["step"] == "completed" else None
    return f"{told}, partial: without {', '.join(missing)}" if missing else told


@dataclass
class Feed:
    """The functions' log lines as they come, parsed; what is no step of a job is left out."""

    lines: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)

    def write(self, _function: str, _request_id: str, line: str) -> None:
        """For Runtime(write_log=…)."""
        try:
            found = json.loads(line)
        except ValueError:
            return
        if isinstance(found, dict) and found.get("step") in _TOLD:
            self.lines.put(found)

    def of(self, job_id: str, last: str = _LAST) -> Iterator[dict[str, Any]]:
        """This job's steps until the last one. DemoError when that takes too long."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            try:
                line = self.lines.get(timeout=0.2)
            except queue.Empty:
                continue
            if line.get("job_id") == job_id:
                yield line
                if line["step"] == last:
                    return
        raise DemoError(f"job {job_id} did not get to the step {last!r} within {PATIENCE_S} s")


def main() -> int:
    """Run the demo. 0 when everything went as told."""
    console = Console(highlight=False)
    feed = Feed()
    try:
        with console.status("Starting the stack on this machine …") as status:
            runtime = Runtime(write_log=feed.write, say=lambda line: status.update(f"Starting: {line} …"))
            runtime.start()
        try:
            with Client(runtime.api) as client:
                Demo(console, runtime, feed, client).play()
        finally:
            runtime.stop()
    except (DemoError, NeverdropError) as error:
        console.print(f"[bold red]The demo failed:[/] {error}")
        return 1
    return 0


class Demo:
    """The scenes, one after the other."""

    def __init__(self, console: Console, runtime: Runtime, feed: Feed, client: Client) -> None:
        self._console, self._runtime, self._feed, self._client = console, runtime, feed, client

    def play(self) -> None:
        """All scenes, in order. Raises DemoError."""
        self._opening()
        job_id = self._first_call()
        self._duplicate(job_id)
        self._stream()
        self._webhook()
        self._fan_out()
        self._poison()
        self._lost()
        self._ending()

    def _opening(self) -> None:
        self._console.print(
            Panel(
                "An event is recorded before it is acknowledged, and ends in exactly one visible final state.\n"
                f"HTTP API {self._runtime.api} · AWS (moto) {self._runtime.aws} · model {self._runtime.model}",
                title="Neverdrop", expand=False,
            )
        )  # fmt: skip

    def _first_call(self) -> str:
        self._scene("1", "A call has ended: Apollo 13, the minutes around “Houston, we've had a problem”")
        text = CALL.read_text(encoding="utf-8")
        job_id = self._submit(text, key="apollo-13")
        self._show(job_id)
        self._result(job_id)
        self._timeline(job_id)
        return job_id

    def _duplicate(self, first: str) -> None:
        self._scene("2", "The same event once more, and the same call under another key")
        text = CALL.read_text(encoding="utf-8")
        again = self._submit(text, key="apollo-13")
        demand(again == first, "a repeated event became a second job")
        self._say(f"same Idempotency-Key → the same job {again[:8]}…, nothing is done twice")
        other = self._submit(text, key="apollo-13-from-another-system")
        self._show(other)
        cost = self._get(f"/jobs/{other}")["cost_micros"]
        calls = len(self._calls())
        demand(cost == 0 and calls == 1, f"the duplicate cost {cost} µ$ and made {calls - 1} more calls")
        self._say(f"two jobs, two results, [bold]{calls} model call[/]; the second one cost [bold]{cost} µ$[/]")

    def _stream(self) -> None:
        self._scene("3", "An answer is read while it is written, and its connection is cut")
        self._post(self._runtime.model + "/_script", [demo_live.PACED])
        demo_live.stream(self._console, self._runtime, self._client, CALL.read_text(encoding="utf-8"))

    def _webhook(self) -> None:
        self._scene("4", "Whoever asked for it is told how it ended: a signed webhook")
        demo_live.webhook(self._console, self._client, CALL.read_text(encoding="utf-8"))

    def _fan_out(self) -> None:
        self._scene("5", "One document, five analyses side by side, one result: Apollo 11 lands")
        self._post(self._runtime.model + "/_script", demo_live.SLOW)
        before = len(self._calls())
        demo_live.fan_out(self._console, self._client, DOCUMENT.read_text(encoding="utf-8"))
        (job,) = self._get("/jobs?type=analyze-document&limit=1")["jobs"]
        events = self._get(f"/jobs/{job['job_id']}/events")["events"]
        wall, spent = demo_live.side_by_side(self._calls()[before:], events)
        beside = f"{spent:.1f} s one after the other" if wall < spent else "on a machine that has much else to do"
        self._say(f"[bold]{wall:.1f} s[/] from the first question to the last answer, {beside},")
        self._say(f"{job['cost_micros']} µ$ for five answers, and $0.0002 for eight state transitions on AWS")

    def _poison(self) -> None:
        self._scene("6", "A poisoned job: the model refuses it for good")
        self._post(self._runtime.model + "/_script", [{"match": "poison of this demo", "error": "ValidationException"}])
        job_id = self._submit(POISON, key="poison")
        self._show(job_id)
        letter = self._letter(job_id)
        table = Table(show_header=False, box=None, padding=(0, 2))
        for name in ("job_id", "reason", "attempt", "tries", "cost_micros", "tenant", "type"):
            table.add_row(name, letter.get(name, "-"))
        self._console.print(Panel(table, title="In the dead-letter queue", expand=False))

    def _lost(self) -> None:
        self._scene("7", "An event gets lost: a call is uploaded, and S3's notification never comes")
        self._runtime.notifications.drop(1)
        form = self._post(self._runtime.api + "/uploads", {"type": "summarize", "content_type": "text/plain"})
        job_id = str(form["job_id"])
        body, kind = encode_multipart_formdata({**form["fields"], "file": LOST_CALL.read_bytes()})
        with urlopen(Request(form["url"], body, {"Content-Type": kind}), timeout=30):  # noqa: S310 - our own server
            self._say(f"{LOST_CALL.name} lies in S3, and no job has heard of it")
        self._post(self._runtime.api + "/_local/schedules/disable", {"function": "sweep"})  # the next one is ours
        self._post(self._runtime.api + "/_local/clock", {"advance_seconds": A_WHILE_S})
        sweep = self._post(self._runtime.api + "/admin/sweeps", {"parts": ["uploads"]})
        self._say("a quarter of an hour later the sweep holds the bucket against the records")
        self._show(job_id)
        certificate = self._certificate(sweep["links"]["self"])
        found = certificate["parts"]["uploads"]
        demand(found["repaired_ids"] == [job_id], f"the sweep's certificate does not name the lost event: {found}")
        self._console.print(Panel(_account(found), title="The sweep's certificate", expand=False))

    def _certificate(self, path: str) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            certificate: dict[str, Any] = self._get(path)
            if certificate["status"] != "RUNNING":
                return certificate
            time.sleep(0.2)
        raise DemoError(f"the sweep did not end within {PATIENCE_S} s")

    def _ending(self) -> None:
        self._console.print()
        self._say(
            "[bold green]Nothing was dropped.[/] Next: [bold]make run[/] keeps this stack up for your curl and your"
        )
        self._say(
            "AWS CLI; [bold]make new-task NAME=…[/] starts a task of your own; [bold]make deploy[/] takes it to AWS."
        )

    # --- what is shown -----------------------------------------------------------------------------------------

    def _scene(self, number: str, title: str) -> None:
        self._console.print()
        self._console.rule(f"[bold]{number}. {title}", align="left")

    def _say(self, line: str) -> None:
        self._console.print(f"  {line}")

    def _show(self, job_id: str) -> None:
        started = time.monotonic()
        for line in self._feed.of(job_id):
            told = said(line)
            row = Text.assemble(
                (f"  {time.monotonic() - started:6.2f} s  ", "dim"),
                (f"{line['step'].replace('_', ' '):<15}", "bold cyan" if line["step"] != "failed" else "bold red"),
                (f"{line.get('function', ''):<9}", "magenta"),
                told,
            )
            self._console.print(row)

    def _result(self, job_id: str) -> None:
        found = self._get(f"/jobs/{job_id}/result")
        self._console.print(
            Panel(
                f"{found['summary']}\n\n[bold]Participants[/]  {', '.join(found['participants'])}\n"
                "[bold]To do[/]\n" + "\n".join(f" • {item}" for item in found["action_items"]),
                title=f"GET /jobs/{job_id[:8]}…/result",
            )
        )

    def _timeline(self, job_id: str) -> None:
        events = self._get(f"/jobs/{job_id}/events")["events"]
        table = Table(title=f"GET /jobs/{job_id[:8]}…/events", title_justify="left")
        for name in ("at", "what", "attempt"):
            table.add_column(name)
        for event in events:
            table.add_row(event.get("at", ""), event["what"], str(event["attempt"]))
        self._console.print(table)

    # --- what is done ------------------------------------------------------------------------------------------

    def _submit(self, text: str, key: str) -> str:
        body = {"type": "summarize", "input": {"text": text}}
        return str(self._post(self._runtime.api + "/jobs", body, {"Idempotency-Key": key})["job_id"])

    def _letter(self, job_id: str) -> dict[str, str]:
        sqs = boto3.client(
            "sqs", endpoint_url=self._runtime.aws, region_name="us-east-1",
            aws_access_key_id="demo", aws_secret_access_key="demo",
        )  # fmt: skip
        with_all: dict[str, Any] = {"MessageAttributeNames": ["All"], "MaxNumberOfMessages": 10}
        for message in sqs.receive_message(QueueUrl=self._runtime.outputs["WorkDlqUrl"], **with_all).get(
            "Messages", []
        ):
            letter = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
            if letter.get("job_id") == job_id:
                return letter
        raise DemoError("the letter of the poisoned job is not in the dead-letter queue")

    def _calls(self) -> list[Any]:
        return list(_read(Request(self._runtime.model + "/_calls")))  # noqa: S310 - our own loopback server

    def _get(self, path: str) -> Any:
        return _read(Request(self._runtime.api + path))  # noqa: S310 - our own loopback server

    def _post(self, url: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        with_type = {"Content-Type": "application/json", **(headers or {})}
        return _read(Request(url, json.dumps(body).encode(), with_type))  # noqa: S310 - our own loopback server


def _account(part: dict[str, Any]) -> str:
    """`source 1 = completed 0 + … + retriggered 1`."""
    columns = ("completed", "failed", "cancelled", "deleted", "open", "retriggered", "unusable")
    sums = " + ".join(f"{name} {part.get(name, 0)}" for name in columns)
    ids = ", ".join(f"{job_id[:8]}…" for job_id in part["repaired_ids"])
    return f"source {part['source']} = {sums}\nrepaired: {part['repaired']} ({ids})"


class _Blank(dict[str, Any]):
    def __missing__(self, name: str) -> str:
        return "?"


def _read(request: Request) -> Any:
    with urlopen(request, timeout=30) as answer:  # noqa: S310 - our own loopback server
        return json.loads(answer.read())
