"""The local model server: Bedrock Runtime's Converse and ConverseStream for a real boto3 client."""

from __future__ import annotations

import json
import threading
import uuid
from pathlib import Path
from types import TracebackType
from typing import Self
from wsgiref.types import WSGIEnvironment

from local.model import requests
from local.model.calls import Calls
from local.model.converse import Authorize, Clock, Conversations, refused
from local.model.errors import BedrockError
from local.model.forward import Forwarder
from local.model.script import Script, ScriptError
from local.model.web import LOOPBACK, Client, LoopbackServer, Response, json_response


class ModelServer:
    """Listens on loopback; `port` 0 takes a free one. With `forward_to` another server's model answers.

    A rule's delay is counted by `clock` when there is one. `authorize` says who may ask which model.
    Raises OSError when the port is taken, ValueError for a `forward_to` that is no URL.
    """

    def __init__(
        self,
        port: int = 0,
        clock: Clock | None = None,
        forward_to: str | None = None,
        authorize: Authorize | None = None,
    ) -> None:
        self.script = Script()
        self.calls = Calls()
        self._stopping = threading.Event()
        self._forwarder = Forwarder(forward_to) if forward_to else None
        self._conversations = Conversations(self.script, self.calls, self._stopping, clock, self._forwarder, authorize)
        self._http = LoopbackServer(port, self._answer)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._http.port}"

    def load_script(self, path: Path | str) -> int:
        """Takes the rules of a JSON file and answers how many. Raises ScriptError, naming the file."""
        try:
            return self.script.replace(json.loads(Path(path).read_text(encoding="utf-8")))
        except ValueError as error:
            raise ScriptError(f"{path}: {error}") from error

    def start(self) -> None:
        self._http.start()

    def stop(self) -> None:
        """Calls that wait are dropped without an answer; no thread is left. It cannot start again."""
        self._stopping.set()
        if self._forwarder:
            self._forwarder.close()
        self._http.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answer(self, environ: WSGIEnvironment, body: bytes, client: Client) -> Response:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if path in {"/_script", "/_calls"}:
            return self._control(method, path, body)
        try:
            # PATH_INFO is unquoted, and the model id may be an ARN with slashes in it.
            request = requests.read(environ["RAW_URI"], body, environ.get("HTTP_AUTHORIZATION", ""))
        except BedrockError as error:
            return refused(error, str(uuid.uuid4()))
        if request is None or method != "POST":
            unknown = BedrockError("UnknownOperationException", f"No operation {method} {path}", 404)
            return refused(unknown, str(uuid.uuid4()))
        return self._conversations.answer(request, client)

    def _control(self, method: str, path: str, body: bytes) -> Response:
        match (method, path):
            case ("POST", "/_script"):
                return self._new_script(body)
            case ("GET", "/_calls"):
                return json_response(self.calls.listed())
            case ("DELETE", "/_calls"):
                return json_response({"deleted": self.calls.clear()})
        return json_response({"message": f"{method} is not for {path}"}, 405)

    def _new_script(self, body: bytes) -> Response:
        try:
            return json_response({"rules": self.script.replace(json.loads(body))})
        except ScriptError as error:
            return json_response({"message": str(error)}, 400)
        except ValueError as error:
            return json_response({"message": f"the script is not JSON: {error}"}, 400)
