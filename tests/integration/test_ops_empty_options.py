"""An option that was given an empty word (a variable that is not set) is never taken for one that was left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ops import access
from tests.integration.command_line import CommandLine
from tests.integration.scripted_api import Reply, ScriptedApi, problem


@pytest.mark.parametrize(
    "words",
    [("redeliver", "j1", "--endpoint", ""), ("cancel", "j1", "--token", ""), ("cancel", "j1", "--tenant", "")],
)
def test_what_narrows_a_command_may_not_be_empty(api: ScriptedApi, ops: CommandLine, words: tuple[str, ...]) -> None:
    assert ops(*words).code == 2
    assert api.requests == []


def test_an_empty_url_is_not_that_of_the_local_runtime(
    api: ScriptedApi, ops: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "LOCAL_RUNTIME", api.url)
    api.on("GET /health", {"status": "ok"})
    ended = ops("cancel", "j1", "--url", "")
    assert ended.code == 2
    assert "--url" in ended.err
    assert api.requests == []


def test_an_empty_time_is_for_the_api_to_refuse(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /jobs", problem(422, "must be a time", "/not_before"))
    assert ops("submit", "t", "--not-before", "").code == 2
    assert api.requests[0].json()["not_before"] == ""


def test_an_empty_content_type_is_for_the_api_to_refuse(api: ScriptedApi, ops: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text("{}")
    api.on("POST /uploads", problem(422, "must not be empty", "/content_type"))
    assert ops("upload", str(file), "--type", "t", "--content-type", "").code == 2
    assert api.requests[0].json()["content_type"] == ""


def test_an_endpoint_that_names_no_events_is_registered_for_all(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("POST /webhooks", Reply(201, {"id": "w1", "secret": "whsec_x"}))
    assert ops("webhooks", "add", "https://x.example/").code == 0
    assert ops("webhooks", "add", "https://x.example/", "--event", "job.failed").code == 0
    assert [seen.json().get("events") for seen in api.requests] == [None, ["job.failed"]]


def test_a_job_is_deleted_only_where_the_api_says_so(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("DELETE /jobs/j1", Reply(302, {}, {"Location": "https://login.example.com/"}))
    ended = ops("delete", "j1")
    assert (ended.code, ended.out) == (5, "")
