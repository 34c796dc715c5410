"""The Model port on Amazon Bedrock's Converse: one HTTP attempt, and one table that says what an error means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from lambdas.adapters.clients import NOTHING_SENT, code_of
from lambdas.core.outcomes import ModelError, ModelErrorKind
from lambdas.core.ports import ModelRequest, Reply

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
    """Converse through boto3. The client makes one attempt (`clients.model_client`)."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def converse(self, request: ModelRequest) -> Reply:
        try:
            answer = self._client.converse(**_arguments(request))
        except ClientError as error:
            raise _refusal(error) from error
        except ParamValidationError as error:
            raise ModelError("permanent", "ValidationException", str(error)) from error
        except NOTHING_SENT as error:
            raise ModelError("transient", type(error).__name__, str(error)) from error
        except Exception as error:  # cut, timed out, or of another shape: botocore's parser raises anything then
            raise ModelError("transient", type(error).__name__, str(error), maybe_billed=True) from error
        return _reply(answer)


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


def _refusal(error: ClientError) -> ModelError:
    code = code_of(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = KINDS.get(code) or ("transient" if status >= 500 else "permanent")
    message = str(error.response.get("Error", {}).get("Message", "")) + _HINTS.get(code, "")
    return ModelError(kind, code, message, maybe_billed=code in MAYBE_BILLED)


def _reply(answer: Mapping[str, Any]) -> Reply:
    """The text of an answer; one without the parts that a whole answer has is incomplete, never empty success."""
    try:
        blocks = answer["output"]["message"]["content"]
        usage = answer["usage"]
        text = "".join(block["text"] for block in blocks if "text" in block)
        tokens = int(usage["inputTokens"]), int(usage["outputTokens"])
        return Reply(_clean(text), str(answer.get("stopReason") or ""), *tokens)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError("transient", "MalformedAnswer", f"not a whole answer: {error!r}", maybe_billed=True) from error


def _clean(text: str) -> str:
    """Half surrogates, which nothing downstream can write, become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
