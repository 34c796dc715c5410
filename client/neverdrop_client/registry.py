"""The tenant's endpoints: where webhooks go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from neverdrop_client.errors import BadArgument, NotFound
from neverdrop_client.http import Http, json_of
from neverdrop_client.request import Request, json_text, path_of
from neverdrop_client.shapes import Endpoint, Secret


class Webhooks:
    """`client.webhooks`. The endpoint `callback` is there by itself: its secret signs what goes to callback URLs."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, url: str, *, events: Sequence[str] | None = None, description: str | None = None) -> Endpoint:
        """Its `secret` comes along. Registered twice, a URL is the same endpoint. `events`: their names, of all kinds
        when it is left out."""
        if isinstance(events, str | bytes):
            raise BadArgument(f"events are a list of names: [{events!r}]?")
        named = None if events is None else list(events)
        if named == []:
            raise BadArgument("an endpoint that wants no events gets none: leave `events` out for all of them")
        body: dict[str, Any] = {"url": url, "events": named, "description": description}
        given = {name: value for name, value in body.items() if value is not None}
        return cast("Endpoint", self._ask("POST", body=given))

    def list(self) -> list[Endpoint]:
        return cast("list[Endpoint]", self._ask("GET", wanted="webhooks")["webhooks"])

    def get(self, endpoint_id: str) -> Endpoint:
        """With its health: how its last deliveries went."""
        return cast("Endpoint", self._ask("GET", endpoint_id))

    def secret(self, endpoint_id: str) -> Secret:
        return cast("Secret", self._ask("GET", endpoint_id, "secret", wanted="secret"))

    def rotate(self, endpoint_id: str, *, at_once: bool = False) -> Secret:
        """A new secret. The old one signs along for a day, in which a repetition changes nothing; `at_once`: not."""
        body = {"at_once": True} if at_once else None
        return cast("Secret", self._ask("POST", endpoint_id, "rotate", body=body, wanted="secret", again=not at_once))

    def disable(self, endpoint_id: str) -> Endpoint:
        return cast("Endpoint", self._ask("POST", endpoint_id, "disable"))

    def enable(self, endpoint_id: str) -> Endpoint:
        return cast("Endpoint", self._ask("POST", endpoint_id, "enable"))

    def ping(self, endpoint_id: str) -> str:
        """Send it a test; its event id. How it went: `get(endpoint_id)["ping"]`."""
        return str(self._ask("POST", endpoint_id, "ping", wanted="event_id", again=False)["event_id"])

    def delete(self, endpoint_id: str) -> None:
        """And its secret. Raises NotFound when there is none, unless this very call may have removed it."""
        try:
            self._http.ask(Request("DELETE", path_of("webhooks", endpoint_id), answers=(204,)))
        except NotFound as error:
            if not error.asked_before:
                raise

    def _ask(
        self, method: str, *parts: str, body: dict[str, Any] | None = None, wanted: str = "id", again: bool = True
    ) -> dict[str, Any]:
        content = None if body is None else json_text(body)
        request = Request(method, path_of("webhooks", *parts), body=content, repeatable=again)
        return json_of(self._http.ask(request), wanted)
