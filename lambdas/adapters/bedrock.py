"""The Model and StreamingModel ports on Amazon Bedrock's Converse and ConverseStream: one HTTP attempt, and one table
that says what an error means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from botocore.exceptions import ClientError, EventStreamError, ParamValidationError

from lambdas.adapters.clients import NOTHING_SENT, code_of
from lambdas.core.outcomes import ModelError, ModelErrorKind
from lambdas.core.ports import ModelRequest, Reply
from lambdas.core.streaming.ports import Heard
from lambdas.core.streaming.text import Cleaner, clean

# By code, never by words: a throttle says "Too many tokens" too. What is not here and came as 5xx is transient,
# any other is permanent: it would be refused the same way again.
KINDS: Mapping[str, ModelErrorKind] = {
    "ThrottlingException": "throttled",
    "TooManyRequestsException": "throttled",
    "ModelNotReadyException": "throttled",
    "ServiceUnavailableException": "transient",
    "InternalServerException": "transient",
    "ModelTimeoutException": "transient",
    "ModelErrorException": "transient",
    "ModelStreamErrorException": "transient",
    "RequestTimeoutException": "transient",
    "ValidationException": "permanent",
    "AccessDeniedException": "permanent",
    "ResourceNotFoundException": "permanent",
    "ServiceQuotaExceededException": "permanent",
    # A role's credentials are renewed by the next invocation, and a new role takes a moment to be known everywhere.
    "ExpiredTokenException": "transient",
    "UnrecognizedClientException": "transient",
    "InvalidSignatureException": "transient",
    "IncompleteSignatureException": "transient",
}

# The model may have worked, and been billed, before these were said.
MAYBE_BILLED = {"ModelTimeoutException", "ModelErrorException", "ModelStreamErrorException"}

_HINTS = {
    "AccessDeniedException": " Ask for access to this model in the Bedrock console, or check the function's policy.",
    "ResourceNotFoundException": " Check the setting `models` and the region.",
}


class BedrockModel:
    """Through boto3. The client makes one attempt (`clients.model_client`)."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def converse(self, request: ModelRequest) -> Reply:
        with _as_model_errors():
            return _reply(self._client.converse(**_arguments(request)))

    def converse_stream(self, request: ModelRequest, heard: Heard) -> Reply:
        hearing = Hearing(heard)
        with _as_model_errors(hearing):
            with closing(self._client.converse_stream(**_arguments(request))["stream"]) as events:
                for event in events:
                    hearing.take(event)
            return hearing.reply()


class Hearing:
    """Puts a stream's events together. `started`: the model has begun to answer, which it may bill from then on."""

    def __init__(self, heard: Heard) -> None:
        self._heard, self._cleaner = heard, Cleaner()
        self._text: list[str] = []
        self._stop: Mapping[str, Any] | None = None
        self._usage: Mapping[str, Any] | None = None
        self.started = False

    def take(self, event: Mapping[str, Any]) -> None:
        self.started = True
        match event:
            case {"contentBlockDelta": {"delta": {"text": piece}}}:
                self._say(self._cleaner.feed(piece))
            case {"contentBlockDelta": part} if "delta" not in part:  # so does botocore read what is no JSON
                raise ModelError("transient", "MalformedAnswer", "a piece of it cannot be read", maybe_billed=True)
            case {"messageStop": stop}:
                self._stop = stop
            case {"metadata": {"usage": usage}}:
                self._usage = usage

    def reply(self) -> Reply:
        """A stream may end at any place without an error: a whole one has said why it stopped, and then what it
        used."""
        self._say(self._cleaner.end())
        if self._stop is None or self._usage is None:
            missing = "messageStop" if self._stop is None else "metadata"
            raise ModelError("transient", "IncompleteStream", f"it ended without {missing}", maybe_billed=True)
        tokens = int(self._usage["inputTokens"]), int(self._usage["outputTokens"])
        return Reply("".join(self._text), str(self._stop.get("stopReason") or ""), *tokens)

    def _say(self, piece: str) -> None:
        if piece:
            self._text.append(piece)
            self._heard(piece)


@contextmanager
def _as_model_errors(hearing: Hearing | None = None) -> Iterator[None]:
    """Whatever goes wrong with a call, as what it means for the job that makes it."""
    try:
        yield
    except ModelError:
        raise
    except ClientError as error:
        raise _refusal(error, begun=hearing is not None and hearing.started) from error
    except ParamValidationError as error:
        raise ModelError("permanent", "ValidationException", str(error)) from error
    except NOTHING_SENT as error:
        raise ModelError("transient", type(error).__name__, str(error)) from error
    except Exception as error:  # cut, timed out, or of another shape: botocore's parser raises anything then
        raise ModelError("transient", type(error).__name__, str(error), maybe_billed=True) from error


def _arguments(request: ModelRequest) -> dict[str, Any]:
    inference: dict[str, Any] = {"maxTokens": request.max_tokens}
    if request.temperature is not None:
        inference["temperature"] = request.temperature  # never with topP: some models refuse both at once
    arguments: dict[str, Any] = {
        "modelId": request.model,
        "messages": [{"role": "user", "content": [{"text": request.prompt}]}],
        "inferenceConfig": inference,
    }
    return arguments | ({"system": [{"text": request.system}]} if request.system else {})


def _refusal(error: ClientError, *, begun: bool) -> ModelError:
    """`begun`: it came in the midst of an answer."""
    code = code_of(error)
    code = code[:1].upper() + code[1:]  # inside a stream the same codes begin with a small letter
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    broken = isinstance(error, EventStreamError) or status >= 500
    kind = KINDS.get(code) or ("transient" if broken else "permanent")
    message = str(error.response.get("Error", {}).get("Message", "")) + _HINTS.get(code, "")
    return ModelError(kind, code or type(error).__name__, message, maybe_billed=begun or code in MAYBE_BILLED)


def _reply(answer: Mapping[str, Any]) -> Reply:
    """The text of an answer; one without the parts that a whole answer has is incomplete, never empty success."""
    try:
        blocks = answer["output"]["message"]["content"]
        usage = answer["usage"]
        text = "".join(block["text"] for block in blocks if "text" in block)
        tokens = int(usage["inputTokens"]), int(usage["outputTokens"])
        return Reply(clean(text), str(answer.get("stopReason") or ""), *tokens)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError("transient", "MalformedAnswer", f"not a whole answer: {error!r}", maybe_billed=True) from error
