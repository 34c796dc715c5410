"""Asks an OpenAI-compatible server (Ollama, llama.cpp, vLLM) what Bedrock was asked, and translates back."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, Final

from local.model.errors import BedrockError, invalid
from local.model.reply import Reply
from local.model.requests import ModelRequest

TIMEOUT_S: Final = 300.0  # small machines think long

_STOP_REASONS: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
}
_ERRORS: Final = {
    400: "ValidationException",
    401: "AccessDeniedException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    413: "ValidationException",
    422: "ValidationException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
    504: "ModelTimeoutException",
}


class Forwarder:
    """`url` is the server's root, its `/v1`, or the full path; `?model=name` picks a model, else its first.

    A password in the URL (`http://:key@host`) is sent as bearer token.
    """

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        self._parts = urllib.parse.urlsplit(url)
        if self._parts.scheme not in {"http", "https"} or not self._parts.hostname:
            raise ValueError(f"the model URL must be http://host[:port][/path], not {url!r}")
        self._timeout_s = timeout_s
        self._model = dict(urllib.parse.parse_qsl(self._parts.query)).get("model")
        self._open: set[http.client.HTTPConnection] = set()
        self._closed = threading.Event()

    def ask(self, request: ModelRequest) -> Reply:
        """Raises BedrockError: what the other server refuses becomes what Bedrock would say."""
        question = _question(request, self._model or self._first_model() or request.model)
        answer = self._call("POST", "chat/completions", question)
        try:
            return _reply(answer)
        except (AttributeError, KeyError, IndexError, TypeError) as error:
            raise BedrockError("ModelErrorException", "The model server answered in an unknown shape.") from error

    def close(self) -> None:
        """Breaks the calls under way."""
        self._closed.set()
        for connection in list(self._open):
            if connection.sock:
                _shut(connection.sock)

    def _first_model(self) -> str | None:
        """Such servers name their models themselves; asked once."""
        try:
            listed = self._call("GET", "models", None)
            self._model = str(listed["data"][0]["id"])
        except (BedrockError, KeyError, IndexError, TypeError):
            return None
        return self._model

    def _call(self, method: str, operation: str, body: Mapping[str, Any] | None) -> Any:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(str(self._parts.hostname), self._parts.port, timeout=self._timeout_s)
        self._open.add(connection)
        try:
            if self._closed.is_set():
                raise BedrockError("ServiceUnavailableException", "The model server is stopping.")
            text = None if body is None else json.dumps(body).encode()
            connection.request(method, f"{self._base()}/{operation}", text, self._headers())
            response = connection.getresponse()
            return _parsed(response.status, response.read())
        except TimeoutError as error:
            raise BedrockError("ModelTimeoutException") from error
        except (OSError, http.client.HTTPException) as error:
            raise BedrockError("ServiceUnavailableException", f"No answer from the model server: {error}") from error
        finally:
            self._open.discard(connection)
            connection.close()

    def _base(self) -> str:
        path = self._parts.path.rstrip("/").removesuffix("/chat/completions")
        return path or "/v1"

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._parts.password:
            headers["Authorization"] = f"Bearer {urllib.parse.unquote(self._parts.password)}"
        return headers


def _question(request: ModelRequest, model: str) -> dict[str, Any]:
    config = request.body.get("inferenceConfig") or {}
    settings = {
        "max_tokens": config.get("maxTokens"),
        "temperature": config.get("temperature"),
        "top_p": config.get("topP"),
        "stop": config.get("stopSequences"),
    }
    system = [{"role": "system", "content": request.system}] if request.system else []
    given = {name: value for name, value in settings.items() if value is not None}
    return {"model": model, "messages": [*system, *_messages(request)], "stream": False, **given}


def _messages(request: ModelRequest) -> Iterator[dict[str, Any]]:
    for message in request.body["messages"]:
        parts = [_part(block) for block in message["content"]]
        texts = [part["text"] for part in parts if part["type"] == "text"]
        # Many of these servers take a list of parts for vision models only.
        yield {"role": message["role"], "content": "\n".join(texts) if len(texts) == len(parts) else parts}


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    image = block.get("image")
    if isinstance(image, dict) and isinstance((image.get("source") or {}).get("bytes"), str):
        data = base64.b64encode(base64.b64decode(image["source"]["bytes"])).decode()
        return {
            "type": "image_url",
            "image_url": {"url": f"data:image/{image.get('format', 'png')};base64,{data}"},
        }
    raise invalid(f"--model-url forwards text and images, not {', '.join(block) or 'an empty block'}.")


def _parsed(status: int, body: bytes) -> Any:
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    if status == http.HTTPStatus.OK and answer is not None:
        return answer
    if status == http.HTTPStatus.OK:
        raise BedrockError("ModelErrorException", "The model server answered with no JSON.")
    usual = "InternalServerException" if status >= 500 else "ValidationException"
    raise BedrockError(_ERRORS.get(status, usual), _message(answer, status))


def _message(answer: Any, status: int) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    told = error.get("message") if isinstance(error, dict) else error
    return f"The model server answered {status}: {told}" if told else f"The model server answered {status}."


def _reply(answer: Any) -> Reply:
    choice = answer["choices"][0]
    reason = choice.get("finish_reason")
    counts = answer.get("usage") or {}
    names = {
        "inputTokens": "prompt_tokens",
        "outputTokens": "completion_tokens",
        "totalTokens": "total_tokens",
    }
    usage = {ours: int(counts[theirs]) for ours, theirs in names.items() if counts.get(theirs) is not None}
    # An unknown reason goes through as it is: calling it end_turn would hide a truncated answer.
    return Reply(str(choice["message"].get("content") or ""), _STOP_REASONS.get(reason, reason), usage)


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
