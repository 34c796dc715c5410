"""`--model-url`: the local model server in front of a small OpenAI-compatible server, asked by a real boto3 client."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.model import forward
from local.model.server import ModelServer
from tests.integration.local_toys import eventually

LITE = "us.amazon.nova-lite-v1:0"
USER = [{"role": "user", "content": [{"text": "Hello"}]}]


class OpenAi:
    """Answers what it is told to, and remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.hold = threading.Event()
        self.hold.set()
        self.body: Any = {
            "choices": [{"message": {"role": "assistant", "content": "Hi!"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13},
        }
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
                return

            def do_GET(self) -> None:
                outer.reply(self, 200, {"data": [{"id": "llama-small"}]} if self.path == "/v1/models" else {})

            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append({"path": self.path, **question})
                outer.headers.append(dict(self.headers))
                outer.hold.wait()
                outer.reply(self, outer.status, outer.body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self.port = int(self._server.server_port)
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def reply(self, handler: BaseHTTPRequestHandler, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            handler.send_response(status)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)
        except ConnectionError:  # the caller was stopped while this server thought
            return

    def stop(self) -> None:
        self.hold.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def openai() -> Iterator[OpenAi]:
    server = OpenAi()
    yield server
    server.stop()


@pytest.fixture
def server(openai: OpenAi) -> Iterator[ModelServer]:
    with ModelServer(forward_to=openai.url) as server:
        yield server


@pytest.fixture
def bedrock(server: ModelServer) -> Iterator[Any]:
    client = bedrock_client(server)
    yield client
    client.close()


def bedrock_client(server: ModelServer) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="AKIALOCALWORKER",
        aws_secret_access_key="local",
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_a_question_is_translated_with_all_its_settings(openai: OpenAi, bedrock: Any) -> None:
    messages = [
        {"role": "user", "content": [{"text": "one"}, {"text": "two"}]},
        {"role": "assistant", "content": [{"text": "three"}]},
        {"role": "user", "content": [{"text": "four"}]},
    ]
    config = {"maxTokens": 77, "temperature": 0.25, "stopSequences": ["END"]}
    bedrock.converse(modelId=LITE, messages=messages, system=[{"text": "Be short."}], inferenceConfig=config)
    assert openai.seen == [
        {
            "path": "/v1/chat/completions",
            "model": "llama-small",
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "one\ntwo"},
                {"role": "assistant", "content": "three"},
                {"role": "user", "content": "four"},
            ],
            "stream": False,
            "max_tokens": 77,
            "temperature": 0.25,
            "stop": ["END"],
        }
    ]


def test_an_answer_comes_back_with_its_usage(server: ModelServer, bedrock: Any) -> None:
    answer = bedrock.converse(modelId=LITE, messages=USER)
    assert answer["output"]["message"]["content"] == [{"text": "Hi!"}]
    assert answer["usage"] == {"inputTokens": 11, "outputTokens": 2, "totalTokens": 13}
    assert answer["stopReason"] == "end_turn"
    assert server.calls.listed()[0]["usage"]["totalTokens"] == 13


def test_a_streamed_answer_has_the_forwarded_text(bedrock: Any) -> None:
    events = list(bedrock.converse_stream(modelId=LITE, messages=USER)["stream"])
    assert "".join(one["contentBlockDelta"]["delta"]["text"] for one in events if "contentBlockDelta" in one) == "Hi!"


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [("length", "max_tokens"), ("content_filter", "content_filtered"), ("odd", "odd"), (None, None)],
)
def test_a_stop_reason_is_translated_and_never_made_up(
    openai: OpenAi, bedrock: Any, reason: str | None, stop_reason: str | None
) -> None:
    openai.body["choices"][0]["finish_reason"] = reason
    assert bedrock.converse(modelId=LITE, messages=USER).get("stopReason") == stop_reason


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "ValidationException"),
        (401, "AccessDeniedException"),
        (404, "ResourceNotFoundException"),
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (502, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
def test_an_error_of_the_other_server_is_what_bedrock_would_say(
    openai: OpenAi, bedrock: Any, status: int, code: str
) -> None:
    openai.status, openai.body = status, {"error": {"message": "slow down"}}
    with pytest.raises(ClientError, match="slow down") as caught:
        bedrock.converse(modelId=LITE, messages=USER)
    assert caught.value.response["Error"]["Code"] == code


@pytest.mark.parametrize("body", [b"<html>", {"choices": []}, {}, {"choices": [{"message": None}]}, []])
def test_an_answer_of_another_shape_is_a_model_error(openai: OpenAi, bedrock: Any, body: Any) -> None:
    openai.body = body
    with pytest.raises(bedrock.exceptions.ModelErrorException):
        bedrock.converse(modelId=LITE, messages=USER)


def test_no_server_at_the_url_is_service_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1?model=m"
    with ModelServer(forward_to=url) as server:
        client = bedrock_client(server)
        with pytest.raises(client.exceptions.ServiceUnavailableException, match="No answer from the model server"):
            client.converse(modelId=LITE, messages=USER)
        client.close()


def test_a_server_that_thinks_too_long_is_a_model_timeout(
    openai: OpenAi, bedrock: Any, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server._forwarder is not None
    monkeypatch.setattr(server._forwarder, "_timeout_s", 0.2)
    openai.hold.clear()
    with pytest.raises(bedrock.exceptions.ModelTimeoutException):
        bedrock.converse(modelId=LITE, messages=USER)


def test_stopping_breaks_a_forwarded_call_that_waits(openai: OpenAi) -> None:
    openai.hold.clear()
    server = ModelServer(forward_to=openai.url)
    server.start()
    client = bedrock_client(server)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(client.converse, modelId=LITE, messages=USER)
        eventually(lambda: openai.seen)
        server.stop()
        (call,) = server.calls.listed()
        assert call["error"] == "ServiceUnavailableException", "broken, and not ended by its own timeout"
        assert isinstance(answer.exception(60), ClientError | BotoCoreError)
    client.close()


def test_model_path_and_key_of_the_url_are_used(openai: OpenAi) -> None:
    url = f"http://:s3cret@127.0.0.1:{openai.port}/api/v1/chat/completions?model=mistral"
    with ModelServer(forward_to=url) as server:
        client = bedrock_client(server)
        client.converse(modelId=LITE, messages=USER)
        client.close()
    assert (openai.seen[0]["path"], openai.seen[0]["model"]) == ("/api/v1/chat/completions", "mistral")
    assert openai.headers[0]["Authorization"] == "Bearer s3cret"


def test_rules_still_come_first(server: ModelServer, openai: OpenAi, bedrock: Any) -> None:
    server.script.replace([{"match": "Hello", "answer": "scripted", "times": 1}, {"stop_reason": "max_tokens"}])
    first, second = (bedrock.converse(modelId=LITE, messages=USER) for _ in range(2))
    assert first["output"]["message"]["content"][0]["text"] == "scripted"
    assert (second["output"]["message"]["content"][0]["text"], second["stopReason"]) == ("Hi!", "max_tokens")
    assert len(openai.seen) == 1


def test_a_block_that_cannot_be_forwarded_is_refused(bedrock: Any, openai: OpenAi) -> None:
    document = {"document": {"format": "txt", "name": "d", "source": {"bytes": b"x"}}}
    with pytest.raises(bedrock.exceptions.ValidationException, match="forwards text and images, not document"):
        bedrock.converse(modelId=LITE, messages=[{"role": "user", "content": [{"text": "see"}, document]}])
    image = {"image": {"format": "png", "source": {"bytes": b"png"}}}
    bedrock.converse(modelId=LITE, messages=[{"role": "user", "content": [{"text": "see"}, image]}])
    assert openai.seen[0]["messages"][0]["content"][1]["image_url"]["url"] == "data:image/png;base64,cG5n"


@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://host/", "http://"])
def test_what_is_no_http_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="model URL"):
        forward.Forwarder(url)
