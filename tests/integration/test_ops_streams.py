"""The commands about streams and webhooks: what is shown while it comes, and what is asked of the API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.command_line import CommandLine
from tests.integration.scripted_api import Reply, ScriptedApi, problem

ACCEPTED = Reply(202, {"job_id": "j1", "status": "PENDING", "links": {"self": "/jobs/j1"}})
URL = "https://x.example/"
ONE = {"id": "w1", "url": URL, "events": ["job.failed"], "enabled": True, "links": {"self": "/webhooks/w1"}}
NEW = {"id": "w1", "secret": "whsec_y"}


def test_redeliver_tells_how_it_stands_with_each(api: ScriptedApi, ops: CommandLine) -> None:
    told = {"job_id": "j1", "event_id": "e1", "deliveries": [{"endpoint": "w1", "status": "PENDING"}]}
    api.on("POST /jobs/j1/redeliver", Reply(202, told))
    assert ops("redeliver", "j1").out.split() == ["ENDPOINT", "DELIVERY", "w1", "PENDING"]
    assert ops("redeliver", "j1", "--endpoint", "w1", "--json").json() == told
    assert [seen.body for seen in api.requests] == [b"", b'{"endpoint": "w1"}']
    api.on("POST /jobs/j1/redeliver", problem(409, "There is nowhere to deliver it to"))
    assert ops("redeliver", "j1").code == 4


@pytest.mark.parametrize(
    ("words", "route", "reply", "sent"),
    [
        (("add", URL, "--event", "job.failed"), "POST /webhooks", Reply(201, {**ONE, "secret": "whsec_x"}),
         b'{"url": "https://x.example/", "events": ["job.failed"]}'),
        (("show", "w1"), "GET /webhooks/w1", ONE, b""),
        (("secret", "callback"), "GET /webhooks/callback/secret", {"id": "callback", "secret": "whsec_x"}, b""),
        (("rotate", "w1"), "POST /webhooks/w1/rotate", NEW, b""),
        (("rotate", "w1", "--at-once"), "POST /webhooks/w1/rotate", NEW, b'{"at_once": true}'),
        (("disable", "w1"), "POST /webhooks/w1/disable", ONE, b""),
        (("enable", "w1"), "POST /webhooks/w1/enable", ONE, b""),
        (("ping", "w1"), "POST /webhooks/w1/ping", Reply(202, {"id": "w1", "event_id": "e1"}), b""),
    ],
)  # fmt: skip
def test_an_endpoint_is_looked_after(
    api: ScriptedApi, ops: CommandLine, *, words: tuple[str, ...], route: str, reply: Any, sent: bytes
) -> None:
    api.on(route, reply)
    answer = reply.body if isinstance(reply, Reply) else reply
    assert ops("webhooks", *words, "--json").json() == answer
    shown = ops("webhooks", *words)
    assert (shown.code, shown.err) == (0, "")
    assert {line.split()[0] for line in shown.out.splitlines()} == answer.keys() - {"links"}
    assert [seen.body for seen in api.of(route)] == [sent, sent]


def test_endpoints_are_listed_with_their_health_and_removed(api: ScriptedApi, ops: CommandLine) -> None:
    api.on("GET /webhooks", {"webhooks": [{**ONE, "health": {"state": "open", "failures": 5, "last": "HTTP 500"}}]})
    api.on("DELETE /webhooks/w1", Reply(204))
    head, line = ops("webhooks").out.splitlines()
    assert head.split()[0] == "ENDPOINT"
    assert line.split()[0] == "w1"
    assert "open" in line
    assert ops("webhooks", "list", "--json").json()["id"] == "w1"
    assert ops("webhooks", "remove", "w1").out == "REMOVED\n"
    assert ops("webhooks", "remove", "w1", "--json").json() == {"id": "w1", "status": "REMOVED"}
