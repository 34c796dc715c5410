"""The context object that a handler gets as its second argument."""

from __future__ import annotations

import time
from typing import Any


class CognitoIdentity:
    """Who called, when a mobile SDK did; always empty here."""

    cognito_identity_id: None = None
    cognito_identity_pool_id: None = None


class LambdaContext:
    """As in Lambda's Python runtime; time left is counted in virtual time."""

    def __init__(self, order: dict[str, Any]) -> None:
        """`order` is the runtime's message that starts an invocation."""
        function = order["function"]
        self.aws_request_id: str = order["request_id"]
        self.function_name: str = function["name"]
        self.function_version: str = "$LATEST"
        self.invoked_function_arn: str = function["arn"]
        self.memory_limit_in_mb: str = str(function["memory_mb"])
        self.log_group_name: str = function["log_group"]
        self.log_stream_name: str = function["log_stream"]
        self.identity = CognitoIdentity()
        self.client_context: None = None
        self._deadline_s: float = order["deadline_s"]

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until this invocation is killed, never below zero."""
        return max(0, int((self._deadline_s - time.time()) * 1000))

    def log(self, message: object) -> None:
        """Write to the function's log."""
        print(message)  # noqa: T201
