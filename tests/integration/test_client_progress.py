"""How far a workflow is, for programs: as events of a stream, by polling, and while a job is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from neverdrop_client import Client, Final, JobFailed, Progress
from tests.integration.client_time import passing, patient_requests, patient_sockets
from tests.integration.command_line import job
from tests.integration.scripted_api import Reply, ScriptedApi
from tests.integration.scripted_sockets import Line, ScriptedSockets
from tests.integration.streams import bare_final, chunks, final, polled, progress, restarted, told, watching


def come(*done: str, failed: tuple[str, ...] = (), total: int = 5) -> dict[str, Any]:
    return {"done": list(done), "failed": list(failed), "total": total}


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """They take no time, and pass all the same."""
    patient_requests(monkeypatch)
    patient_sockets(monkeypatch)
    return passing(monkeypatch, "http", "client", "polling", "streaming")


@pytest.fixture
def client(api: ScriptedApi) -> Iterator[Client]:
    with Client(api.url) as made:
        yield made


def watched(client: Client, api: ScriptedApi, *frames: dict[str, Any]) -> list[str]:
    """What a stream yields to whom the server says this over one connection."""

    def script(line: Line) -> None:
        line.heard()
        line.say(*frames)
        line.wait()

    server = ScriptedSockets(script)
    api.on("POST /tickets", Reply(201, {"ticket": "0", "url": f"{server.url}?ticket=0"}))
    try:
        return told(list(client.stream("j1")))
    finally:
        server.end()


def test_a_workflow_is_told_step_by_step_and_how_it_ended(client: Client, api: ScriptedApi) -> None:
    steps = progress(), progress("a"), progress("a", "c", failed=("b",))
    assert watched(client, api, watching(), *steps, final(0)) == ["0/5", "1/5", "3/5", "COMPLETED"]


def test_what_comes_twice_or_was_overtaken_is_told_once(client: Client, api: ScriptedApi) -> None:
    frames = progress("a"), progress("a"), progress("a", "b"), progress("a"), progress("a", "b", "c")
    assert watched(client, api, watching(), *frames, final(0)) == ["1/5", "2/5", "3/5", "COMPLETED"]


def test_another_attempt_begins_anew_and_an_older_one_is_passed_over(client: Client, api: ScriptedApi) -> None:
    frames = (
        chunks("x"),
        progress("a", "b"),
        restarted(2),
        progress(attempt=2),
        progress("a", "b", "c"),
        progress("a", attempt=2),
    )
    said = watched(client, api, watching(), *frames, final(0, attempt=2))
    assert said == ["x", "2/5", "!2", "0/5", "1/5", "COMPLETED"]


def test_a_frame_that_is_garbled_is_no_progress(client: Client, api: ScriptedApi) -> None:
    """The connection is given up, and another one tried; here there is none: it is polled."""
    api.on("GET /jobs/j1/chunks", polled(is_final=True))
    api.on("GET /jobs/j1", job())
    api.on("GET /jobs/j1/result", {})
    for frame in ({**progress(), "done": "a"}, {**progress(), "failed": [1]}, {**progress(), "total": -1}):
        assert watched(client, api, watching(), frame) == ["COMPLETED"]


def test_the_end_has_what_is_partial_about_it(client: Client, api: ScriptedApi) -> None:
    ended = job(partial=True, progress=come("a", failed=("b",)))

    def script(line: Line) -> None:
        line.heard()
        line.say(watching(), {**bare_final(0, result={}), "job": ended})
        line.wait()

    server = ScriptedSockets(script)
    api.on("POST /tickets", Reply(201, {"ticket": "0", "url": f"{server.url}?ticket=0"}))
    (end,) = client.stream("j1")
    server.end()
    assert isinstance(end, Final)
    assert (end.job["partial"], end.job["progress"]["failed"]) == (True, ["b"])


def test_where_it_is_polled_it_is_told_too(client: Client, api: ScriptedApi) -> None:
    open_ = [{**polled(), "progress": come(*done)} for done in ("", "a", "a", "ab")]
    api.on("GET /jobs/j1/chunks", *open_, {**polled(is_final=True), "progress": come(*"abcde")})
    api.on("GET /jobs/j1", job(progress=come(*"abcde")))
    api.on("GET /jobs/j1/result", {})
    assert told(list(client.stream("j1"))) == ["0/5", "1/5", "2/5", "COMPLETED"]


# --- while it is waited for ----------------------------------------------------------------------------
def test_who_waits_hears_each_step_once_the_last_one_too(client: Client, api: ScriptedApi) -> None:
    steps: list[dict[str, Any]] = [{}, {"progress": come()}, {"progress": come("a")}, {"progress": come("a")}]
    api.on("GET /jobs/j1", *(job(status="PROCESSING", **step) for step in steps), job(progress=come("a", "b")))
    heard: list[Progress] = []
    assert client.wait("j1", on_progress=heard.append)["status"] == "COMPLETED"
    assert heard == [Progress(1, done, (), 5) for done in ((), ("a",), ("a", "b"))]
    assert {seen.query["wait"] for seen in api.requests} == {"2"}


def test_who_waits_for_one_that_fails_hears_how_far_it_came(client: Client, api: ScriptedApi) -> None:
    why = {"code": "PARTS_MISSING", "message": "b"}
    api.on("GET /jobs/j1", job(status="FAILED", error=why, progress=come("a", failed=("b",))))
    heard: list[Progress] = []
    with pytest.raises(JobFailed, match="PARTS_MISSING"):
        client.wait("j1", timeout=5, on_progress=heard.append)
    assert [(one.settled, one.failed) for one in heard] == [(2, ("b",))]


def test_a_plain_job_has_no_progress(client: Client, api: ScriptedApi) -> None:
    api.on("GET /jobs/j1", job())
    client.wait("j1", on_progress=lambda told: pytest.fail(str(told)))
