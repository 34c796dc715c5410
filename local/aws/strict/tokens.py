"""Idempotency tokens of transactions, which moto ignores (MOTO-07)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from local.aws.calls import Call, Refusal, Response

WINDOW_S = 600

_MISMATCH = Refusal(
    "IdempotentParameterMismatchException",
    "DynamoDB rejected the request because you retried a request with a different payload but with an idempotent "
    "token that was already used.",
)


@dataclass(frozen=True)
class _Used:
    at: float
    request: str
    response: Response


class Tokens:
    """Answers a transaction that comes again with the same token and content without doing it again."""

    def __init__(self) -> None:
        self._used: dict[str, _Used] = {}

    def before(self, call: Call) -> Refusal | None:
        """The earlier answer for a repeated transaction, a mismatch for a different one under its token."""
        token = _token(call)
        if token is None:
            return None
        self._forget_old()
        used = self._used.get(token)
        if used is None:
            return None
        return Refusal(response=used.response) if used.request == _content(call) else _MISMATCH

    def after(self, call: Call, response: Response) -> None:
        """Remember a transaction that was carried out."""
        token = _token(call)
        if token is not None and response.carried_out and response.status == 200:
            self._used[token] = _Used(time.time(), _content(call), response)

    def _forget_old(self) -> None:
        oldest = time.time() - WINDOW_S
        self._used = {token: used for token, used in self._used.items() if used.at > oldest}


def _token(call: Call) -> str | None:
    if (call.service, call.operation) != ("dynamodb", "TransactWriteItems"):
        return None
    token = call.parameters.get("ClientRequestToken")
    return str(token) if token else None


def _content(call: Call) -> str:
    return json.dumps(call.parameters.get("TransactItems"), sort_keys=True)
