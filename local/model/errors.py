"""The errors of Bedrock Runtime: code, HTTP status and usual wording, in the form that botocore parses."""

from __future__ import annotations

import json
from typing import Final

# Status codes from the service model that botocore ships; the last three are made before any model is asked.
STATUS: Final = {
    "ThrottlingException": 429,
    "ModelNotReadyException": 429,
    "ServiceUnavailableException": 503,
    "InternalServerException": 500,
    "ModelTimeoutException": 408,
    "ModelErrorException": 424,
    "ModelStreamErrorException": 424,
    "ValidationException": 400,
    "AccessDeniedException": 403,
    "ResourceNotFoundException": 404,
    "ServiceQuotaExceededException": 400,
    "SerializationException": 400,
    "UnrecognizedClientException": 403,
    "ExpiredTokenException": 403,
}

WORDING: Final = {
    "ThrottlingException": "Too many requests, please wait before trying again.",
    "ModelNotReadyException": "Model is not ready for inference. Try your request again later.",
    "ServiceUnavailableException": "Bedrock is unable to process your request.",
    "InternalServerException": (
        "The system encountered an unexpected error during processing. Try your request again."
    ),
    "ModelTimeoutException": "Model has timed out in processing the request. Try your request again.",
    "ModelErrorException": "The model returned an unexpected error. Try your request again.",
    "ModelStreamErrorException": "The model stream ended with an error. Try your request again.",
    "ValidationException": "Malformed input request, please reformat your input and try again.",
    "AccessDeniedException": "You don't have access to the model with the specified model ID.",
    "ResourceNotFoundException": ("Could not resolve the foundation model from the provided model identifier."),
    "ServiceQuotaExceededException": "Your request exceeds the service quota for your account.",
    "SerializationException": "The request body is not the JSON that this operation takes.",
    "UnrecognizedClientException": "The security token included in the request is invalid.",
    "ExpiredTokenException": "The security token included in the request is expired",
}

_NAMESPACE: Final = "http://internal.amazon.com/coral/com.amazon.bedrock/"


class BedrockError(Exception):
    """A refusal as the service would send it; `status` and `message` default to those of the code."""

    def __init__(self, code: str, message: str | None = None, status: int | None = None) -> None:
        self.code = code
        self.message = WORDING.get(code, code) if message is None else message
        self.status = STATUS.get(code, 400) if status is None else status
        super().__init__(f"{code}: {self.message}")

    @property
    def header(self) -> tuple[str, str]:
        """botocore takes the code from this header, up to the colon."""
        return ("x-amzn-ErrorType", f"{self.code}:{_NAMESPACE}")

    @property
    def body(self) -> bytes:
        fields: dict[str, object] = {"message": self.message}
        if self.code in {"ModelErrorException", "ModelStreamErrorException"}:
            fields["originalStatusCode"] = 500
        return json.dumps(fields).encode()

    @property
    def stream_code(self) -> str:
        """Inside an event stream Bedrock spells the same code with a small first letter."""
        return self.code[:1].lower() + self.code[1:]


def invalid(message: str) -> BedrockError:
    return BedrockError("ValidationException", message)
