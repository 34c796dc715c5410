"""The example of docs/streaming.md, as a browser would run it: through cuts, repeats and a restart to the end."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.toolchain import bundled_node

PAGE = Path(__file__).resolve().parents[2] / "docs" / "streaming.md"

# a browser's globals, as far as the example uses them: each `watch` is answered with the next of `turns`
BROWSER = """
const turns = JSON.parse(process.argv[1]), log = [];
const later = setTimeout;
globalThis.setTimeout = (act) => later(act, 0);
globalThis.WebSocket = class {
  constructor(url) { log.push(["open", url]); this.readyState = 1; later(() => this.onopen(), 0); }
  send(text) {
    const said = JSON.parse(text);
    log.push(["said", said]);
    if (said.action === "watch") later(() => (turns.shift() ?? []).forEach((frame) =>
      frame === "cut" ? this.close() : this.onmessage({ data: JSON.stringify(frame) })), 0);
  }
  close() { if (this.readyState === 1) { this.readyState = 3; this.onclose(); } }
};
let asked = 0, shown = [];
const ticket = async () => {
  asked += 1;
  if (asked === 2) throw new Error("there is none just now");
  return `wss://live/${asked}`;
};
const onText = (text, count) => { if (count) shown.push(text); else shown = []; };
const onEnd = (job, result, url) => console.log(JSON.stringify({ log, shown, job, result, url: url ?? null }));
"""


def frame(type_: str, attempt: int, **more: Any) -> dict[str, Any]:
    return {"type": type_, "job_id": "one", "attempt": attempt, **more}


def chunks(attempt: int, first: int, *texts: str) -> dict[str, Any]:
    return frame("chunks", attempt, **{"from": first, "texts": texts})


def run(*turns: list[Any]) -> dict[str, Any]:
    (example,) = re.findall(r"```js\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    node = bundled_node()
    assert node is not None
    script = f"{BROWSER}\n{example}\nwatch('one', ticket, onText, onEnd);"
    found = subprocess.run(
        [node, "-e", script, json.dumps(turns)], capture_output=True, text=True, check=True, timeout=120
    )
    told: dict[str, Any] = json.loads(found.stdout)
    return told


def asked(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [what for kind, what in told["log"] if kind == "said" and what["action"] == "watch"]


def test_the_example_goes_on_where_it_was_and_never_mixes_two_attempts() -> None:
    told = run(
        [frame("watching", 1, **{"from": 0}), chunks(1, 0, "a", "b"), "cut"],
        [
            chunks(1, 1, "b", "c"), frame("restarted", 2), chunks(1, 3, "d"), chunks(2, 0, "x"), frame("restarted", 2),
            "cut",
        ],
        [chunks(2, 2, "z"), chunks(2, 1, "y"), frame("final", 2, chunks=3, job={"status": "COMPLETED"}, parts=2)],
        [
            chunks(2, 2, "z"), frame("result", 2, part=0, parts=2, text='{"n":'),
            frame("result", 2, part=1, parts=2, text="1}"),
            frame("final", 2, chunks=3, job={"status": "COMPLETED"}, parts=2),
        ],
    )  # fmt: skip
    assert told["shown"] == ["x", "y", "z"]
    assert (told["result"], told["job"]["status"], told["url"]) == ({"n": 1}, "COMPLETED", None)
    assert asked(told) == [
        {"action": "watch", "job_id": "one", "from": 0},
        {"action": "watch", "job_id": "one", "from": 2, "attempt": 1},
        {"action": "watch", "job_id": "one", "from": 1, "attempt": 2},
        {"action": "watch", "job_id": "one", "from": 2, "attempt": 2},
    ]
    assert len([kind for kind, _ in told["log"] if kind == "open"]) == 3  # and one ticket was not to be had


def test_the_example_drops_what_is_none_of_this_text_though_the_attempt_is_the_same() -> None:
    """The id is another job's by now: `watching` begins before the place that was asked for."""
    told = run(
        [frame("watching", 1, **{"from": 0}), chunks(1, 0, "a", "b"), "cut"],
        [frame("watching", 1, **{"from": 0}), frame("restarted", 1), chunks(1, 0, "x", "y"), "cut"],
        [frame("watching", 1, **{"from": 2}), frame("final", 1, chunks=2, job={"status": "COMPLETED"})],
    )
    assert told["shown"] == ["x", "y"]
    assert [one["from"] for one in asked(told)] == [0, 2, 2]


@pytest.mark.parametrize(
    "trouble", [{"type": "error", "code": "unavailable", "detail": "…"}, {"message": "Internal server error"}]
)
def test_the_example_connects_again_when_it_is_refused(trouble: dict[str, Any]) -> None:
    end = frame("final", 1, chunks=0, job={"status": "FAILED"})
    told = run([trouble], [end])
    assert (told["shown"], told["job"]["status"]) == ([], "FAILED")
