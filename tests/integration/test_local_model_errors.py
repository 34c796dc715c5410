"""Everything that goes wrong with a model, as botocore sees it: cases BED-01, 03, 06, 08, 09, 10, 14, 16, 21."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.eventstream import ChecksumMismatch
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EventStreamError,
    ReadTimeoutError,
)

from local.model import frames
from local.model.server import ModelServer
from tests.integration.local_toys import eventually

LITE = "us.amazon.nova-lite-v1:0"
USER = [{"role": "user", "content": [{"text": "Tell me about the weather in Paris and in London today."}]}]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def bedrock(server: ModelServer) -> Iterator[Any]:
    client = bedrock_client(server)
    yield client
    client.close()


def bedrock_client(server: ModelServer, region: str = "us-east-1", **config: Any) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=server.url,
        region_name=region,
        aws_access_key_id="AKIALOCALWORKER",
        aws_secret_access_key="local",
        config=Config(**{"retries": {"total_max_attempts": 1}, **config}),
    )


def events(client: Any) -> Iterator[dict[str, Any]]:
    with contextlib.closing(client.converse_stream(modelId=LITE, messages=USER)["stream"]) as stream:
        yield from stream


def refusal(client: Any, **request: Any) -> str:
    """The message of the ValidationException that the request gets."""
    with pytest.raises(client.exceptions.ValidationException) as caught:
        client.converse(**{"modelId": LITE, "messages": USER, **request})
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return str(caught.value.response["Error"]["Message"])


# --- errors before the answer --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ThrottlingException", 429),
        ("ModelNotReadyException", 429),
        ("ServiceUnavailableException", 503),
        ("InternalServerException", 500),
        ("ModelTimeoutException", 408),
        ("ModelErrorException", 424),
        ("ValidationException", 400),
        ("AccessDeniedException", 403),
        ("ResourceNotFoundException", 404),
    ],
)
@pytest.mark.parametrize("operation", ["converse", "converse_stream"])
def test_a_scripted_error_is_the_modelled_exception_with_its_status(
    server: ModelServer, bedrock: Any, code: str, status: int, operation: str
) -> None:
    server.script.replace([{"error": code}])
    with pytest.raises(getattr(bedrock.exceptions, code)) as caught:
        getattr(bedrock, operation)(modelId=LITE, messages=USER)
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["Error"]["Message"]
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    (call,) = server.calls.listed()
    assert (call["status"], call["error"]) == (status, code)


def test_an_error_may_bring_its_own_code_status_and_message(server: ModelServer, bedrock: Any) -> None:
    server.script.replace(
        [
            {"match": "Paris", "error": {"code": "ThrottlingException", "message": "Too many tokens"}, "times": 1},
            {"error": {"code": "TeapotException", "status": 418}},
        ]
    )
    with pytest.raises(bedrock.exceptions.ThrottlingException, match="Too many tokens"):
        bedrock.converse(modelId=LITE, messages=USER)
    with pytest.raises(ClientError) as caught:
        bedrock.converse(modelId=LITE, messages=USER)
    assert caught.value.response["Error"]["Code"] == "TeapotException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 418


@pytest.mark.parametrize(
    ("code", "requests"),
    [
        ("ThrottlingException", 3),
        ("ModelNotReadyException", 3),
        ("ServiceUnavailableException", 3),
        ("ModelTimeoutException", 1),
        ("ModelErrorException", 1),
        ("ValidationException", 1),
        ("AccessDeniedException", 1),
        ("ServiceQuotaExceededException", 1),
    ],
)
def test_a_client_with_retries_repeats_exactly_what_it_repeats_on_aws(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, code: str, requests: int
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    client = bedrock_client(server, retries={"total_max_attempts": 3, "mode": "legacy"})
    server.script.replace([{"error": code}])
    with pytest.raises(ClientError):
        client.converse(modelId=LITE, messages=USER)
    client.close()
    assert len(server.calls.listed()) == requests


@pytest.mark.parametrize(("retries", "requests"), [({"total_max_attempts": 1}, 1), ({"max_attempts": 1}, 2)])
def test_a_read_timeout_shows_each_request_that_botocore_sent(
    server: ModelServer, retries: dict[str, int], requests: int
) -> None:
    client = bedrock_client(server, read_timeout=0.3, retries=retries)
    server.script.replace([{"delay_s": 3600}])
    with pytest.raises(ReadTimeoutError):
        client.converse(modelId=LITE, messages=USER)
    client.close()
    eventually(lambda: [call["status"] for call in server.calls.listed()] == [None] * requests)


def test_a_connection_dropped_before_the_answer_is_a_connection_error(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"answer": "never seen", "cut_after": 0}])
    with pytest.raises(ConnectionClosedError):
        bedrock.converse(modelId=LITE, messages=USER)
    assert server.calls.listed()[0]["status"] is None


@pytest.mark.parametrize("cut_after", [1, 40])
def test_a_cut_body_has_its_whole_length_announced_and_no_output_for_botocore(
    server: ModelServer, bedrock: Any, cut_after: int
) -> None:
    """botocore does not hold a body against its Content-Length, and takes broken JSON for an empty answer."""
    server.script.replace([{"answer": "never seen as a whole", "cut_after": cut_after}])
    answer = bedrock.converse(modelId=LITE, messages=USER)
    assert set(answer) == {"ResponseMetadata"}
    assert int(answer["ResponseMetadata"]["HTTPHeaders"]["content-length"]) > cut_after


def test_cut_after_the_whole_body_cuts_nothing(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"answer": "short", "cut_after": 100_000}])
    assert bedrock.converse(modelId=LITE, messages=USER)["stopReason"] == "end_turn"
    assert [next(iter(event)) for event in events(bedrock)][-1] == "metadata"


# --- errors in mid-stream ------------------------------------------------------------------------------


def test_an_error_after_frames_is_an_event_stream_error_in_the_spelling_of_the_stream(
    server: ModelServer, bedrock: Any
) -> None:
    server.script.replace([{"error": "ThrottlingException", "cut_after": 2}])
    seen: list[str] = []
    with pytest.raises(EventStreamError) as caught:
        seen.extend(next(iter(event)) for event in events(bedrock))
    assert seen == ["messageStart", "contentBlockDelta"]
    assert caught.value.response["Error"]["Code"] == "throttlingException"
    assert not isinstance(caught.value, bedrock.exceptions.ThrottlingException)


def test_a_dropped_stream_is_an_error_after_the_frames_that_arrived(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"cut_after": 3}])
    seen: list[str] = []
    with pytest.raises(Exception, match=r"(?i)incomplete|closed|broken|ended prematurely"):
        seen.extend(next(iter(event)) for event in events(bedrock))
    assert seen == ["messageStart", "contentBlockDelta", "contentBlockDelta"]


def test_a_stream_dropped_before_its_first_byte_is_a_connection_error(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"cut_after": 0}])
    with pytest.raises(BotoCoreError):
        list(events(bedrock))


def test_a_stream_can_end_normally_without_message_stop(server: ModelServer, bedrock: Any) -> None:
    server.script.replace([{"answer": "text", "stop_reason": None, "usage": None}])
    assert [next(iter(event)) for event in events(bedrock)] == ["messageStart", "contentBlockDelta", "contentBlockStop"]


def test_a_scripted_stream_sends_exactly_the_frames_of_the_rule(server: ModelServer, bedrock: Any) -> None:
    delta = {"contentBlockIndex": 0, "delta": {"text": "partial"}}
    server.script.replace(
        [
            {
                "raw": [
                    {"event": "messageStart", "payload": {"role": "assistant"}},
                    {"event": "contentBlockDelta", "payload": delta},
                    {"exception": "modelStreamErrorException", "message": "lost"},
                ]
            }
        ]
    )
    with pytest.raises(EventStreamError, match="modelStreamErrorException") as caught:
        list(events(bedrock))
    assert caught.value.response["Error"]["Message"] == "lost"


@pytest.mark.parametrize("missing", [7, 0])
def test_a_frame_that_is_cut_in_its_middle_is_swallowed_by_botocore(
    server: ModelServer, bedrock: Any, missing: int
) -> None:
    """BED-10: the stream ends normally and the last delta is lost; the reader has to miss messageStop."""
    start = frames.event("messageStart", {"role": "assistant"})
    delta = frames.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "lost"}})
    cut = (start + delta)[: len(start) + len(delta) - missing]
    server.script.replace([{"raw": [{"base64": base64.b64encode(cut).decode()}]}])
    assert len(list(events(bedrock))) == (1 if missing else 2)


def test_a_frame_with_a_wrong_checksum_is_a_checksum_mismatch(server: ModelServer, bedrock: Any) -> None:
    frame = bytearray(frames.event("messageStart", {"role": "assistant"}))
    frame[-1] ^= 0xFF
    server.script.replace([{"raw": [{"base64": base64.b64encode(bytes(frame)).decode()}]}])
    with pytest.raises(ChecksumMismatch):
        list(events(bedrock))


def test_an_error_before_the_last_event_leaves_the_client_without_usage_and_the_list_with_it(
    server: ModelServer, bedrock: Any
) -> None:
    server.script.replace([{"answer": "one two three four five six", "cut_after": 3}])
    with pytest.raises(Exception, match=r".") as caught:
        assert not any("metadata" in event for event in events(bedrock))
    assert not isinstance(caught.value, AssertionError)
    (call,) = server.calls.listed()
    assert call["usage"]["outputTokens"] > 1


# --- requests that Bedrock refuses ---------------------------------------------------------------------


def test_a_model_id_that_needs_a_profile_is_refused_in_the_words_of_bedrock(bedrock: Any) -> None:
    model = "anthropic.claude-3-7-sonnet-20250219-v1:0"
    assert refusal(bedrock, modelId=model) == (
        f"Invocation of model ID {model} with on-demand throughput isn’t supported. "  # noqa: RUF001 - as Bedrock
        "Retry your request with the ID or ARN of an inference profile that contains this model."
    )


@pytest.mark.parametrize(
    ("region", "model", "message"),
    [
        ("us-east-1", "amazon.nova-lite-v1:0", None),
        ("eu-west-1", "amazon.nova-lite-v1:0", "on-demand throughput"),
        ("eu-west-1", "eu.amazon.nova-lite-v1:0", None),
        ("eu-west-1", "us.amazon.nova-lite-v1:0", "The provided model identifier is invalid."),
        ("ap-south-1", "global.anthropic.claude-sonnet-4-20250514-v1:0", None),
        ("us-east-1", "nova", "The provided model identifier is invalid."),
        ("us-east-1", "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0", None),
        ("us-east-1", "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-pro-v1:0", None),
        ("us-east-1", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123", None),
    ],
)
def test_model_ids_are_taken_where_bedrock_takes_them(
    server: ModelServer, region: str, model: str, message: str | None
) -> None:
    client = bedrock_client(server, region)
    if message:
        assert message in refusal(client, modelId=model)
    else:
        assert client.converse(modelId=model, messages=USER)["stopReason"] == "end_turn"
        assert server.calls.listed()[-1]["model"] == model
    client.close()


ASSISTANT = {"role": "assistant", "content": [{"text": "hello"}]}
USE = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "a1", "name": "t", "input": {}}}]}
TOOLS = {"tools": [{"toolSpec": {"name": "t", "inputSchema": {"json": {"type": "object"}}}}]}


def tool_result(*ids: str, content: Any = None) -> dict[str, Any]:
    blocks = [{"toolResult": {"toolUseId": one, "content": content or [{"text": "ok"}]}} for one in ids]
    return {"role": "user", "content": blocks}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"messages": []}, "A conversation must start with a user message."),
        ({"messages": [ASSISTANT]}, "A conversation must start with a user message."),
        ({"messages": USER + USER}, "A conversation must alternate between user and assistant roles."),
        ({"messages": [{"role": "user", "content": []}]}, "The content field in the Message object at messages.0"),
        ({"messages": [{"role": "user", "content": [{"text": " "}]}]}, "messages.0.content.0 is blank."),
        ({"system": [{"text": "  "}]}, "system.0 is blank"),
        (
            {"inferenceConfig": {"maxTokens": 10_001}},
            "The maximum tokens you requested exceeds the model limit of 10000.",
        ),
        ({"inferenceConfig": {"temperature": 1.5}}, "at 'inferenceConfig.temperature' failed to satisfy constraint"),
        ({"messages": [*USER, USE, tool_result("a1")]}, "The toolConfig field must be defined"),
        ({"messages": [*USER, USE, *USER], "toolConfig": TOOLS}, "Expected toolResult blocks at messages.2.content"),
        ({"messages": [*USER, USE, tool_result("a1", "b2")], "toolConfig": TOOLS}, "exceeds the number of toolUse"),
        (
            {"messages": [*USER, USE, tool_result("a1", content=[{"json": [1]}])], "toolConfig": TOOLS},
            "Provide a json object for the field",
        ),
    ],
)
def test_a_request_that_bedrock_refuses_is_refused_and_uses_up_no_rule(
    server: ModelServer, bedrock: Any, request_: dict[str, Any], message: str
) -> None:
    server.script.replace([{"answer": "x", "times": 1}])
    assert message in refusal(bedrock, **request_)
    (call,) = server.calls.listed()
    assert (call["status"], call["rule"]) == (400, None)
    assert server.script.take("") is not None


def test_max_tokens_below_one_is_refused_also_when_the_client_does_not_check(server: ModelServer) -> None:
    client = bedrock_client(server, parameter_validation=False)
    message = refusal(client, inferenceConfig={"maxTokens": 0})
    client.close()
    assert message == (
        "1 validation error detected: Value '0' at 'inferenceConfig.maxTokens' failed to satisfy constraint: "
        "Member must have value greater than or equal to 1"
    )
