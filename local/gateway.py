"""The port that clients talk to: the HTTP API of the template, and the runtime's controls under `/_local/`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from local.aws.listener import Listener
from local.events import http
from local.events.http import Answer, Request

CONTROLS = "/_local/"
Answerer = Callable[[Request], Answer]


class Gateway:
    """Binds 127.0.0.1 at once, because the stack's outputs name its address, and serves after `start`."""

    def __init__(self, port: int) -> None:
        """Port 0 picks a free one. OSError if the port is taken."""
        self._listener = Listener(port, self._serve)
        self.url = self._listener.url
        self._api: Answerer = _not_yet
        self._controls: Answerer = _not_yet
        self._started = False

    def start(self, api: Answerer, controls: Answerer) -> None:
        """Hand requests to `controls` under /_local/ and to `api` otherwise."""
        self._api, self._controls = api, controls
        self._started = True
        self._listener.start()

    def stop(self) -> None:
        """Close the door and cut what is open."""
        if self._started:
            self._listener.stop()
        else:
            self._listener.server_close()

    def _serve(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = _request(environ)
        answer = (self._controls if request.raw_path.startswith(CONTROLS) else self._api)(request)
        start_response(f"{answer.status} {_phrase(answer.status)}", answer.headers)
        return [answer.body]


def _not_yet(_: Request) -> Answer:
    return http.message(503, "Service Unavailable")


def _request(environ: dict[str, Any]) -> Request:
    target = urlsplit(environ.get("REQUEST_URI") or environ["PATH_INFO"])
    headers = {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}
    for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(name):
            headers[name.replace("_", "-").lower()] = environ[name]
    return Request(
        method=environ["REQUEST_METHOD"],
        raw_path=target.path or "/",
        query=target.query,
        headers=headers,
        body=environ["wsgi.input"].read(),
        source_ip=environ.get("REMOTE_ADDR", "127.0.0.1"),
        protocol=environ.get("SERVER_PROTOCOL", "HTTP/1.1"),
    )


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
