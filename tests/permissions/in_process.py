"""What handlers ask of AWS when a test calls them in its own process, where no role stands behind them: it counts as
use, and what their role would not allow as refused, as if they had run as functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from botocore.awsrequest import AWSPreparedRequest
from botocore.config import Config

from local.aws.calls import Call, Caller, Response
from local.aws.permissions import Permissions
from local.aws.uses import NoUses, Uses, uses_of
from local.stack.stack import Resource, Stack

_SERVICES = {"secrets-manager": "secretsmanager", "sesv2": "ses", "sfn": "states"}
_MARK = "the-tests-own-eyes"
EYES = Config(user_agent_extra=_MARK)
"""Of the clients with which a test looks and steps in itself, perhaps while a handler runs."""

_BY_SETTINGS = ("secretsmanager", "ses")  # granted to stacks that have them, which is not the one of these tests


class InProcess:
    """Beside the wire: whose handler is running, and what it sends."""

    def __init__(self, stack: Stack) -> None:
        uses = uses_of(stack)
        self._stack = stack
        self._recording = not isinstance(uses, NoUses)
        self._permissions = Permissions(stack, uses)
        self._of_other_settings = Permissions(stack, _OnlyUses(uses))
        self._asked = self._permissions
        self._caller: Caller | None = None

    def of(self, role: str, handler: Callable[..., Any], *, as_deployed: bool = True) -> Callable[..., Any]:
        """The handler, known to be this function's while it runs. If not `as_deployed`, in an environment of a test's
        own making, then what its role would refuse says nothing: with such settings it would have another role."""

        @functools.wraps(handler)
        def handling(*arguments: Any, **more: Any) -> Any:
            with self._running(role, self._permissions if as_deployed else self._of_other_settings):
                return handler(*arguments, **more)

        return handling

    @contextmanager
    def _running(self, role: str, permissions: Permissions) -> Iterator[None]:
        before = self._caller, self._asked
        function = self._function(role)
        self._caller, self._asked = Caller(function.ref, function.properties["Role"]), permissions
        try:
            yield
        finally:
            self._caller, self._asked = before

    def _function(self, role: str) -> Resource:
        for function in self._stack.of_type("AWS::Lambda::Function"):
            if function.properties["Handler"] == f"lambdas.handlers.{role}.handler":
                return function
        raise LookupError(role)

    def sent(self, service: str, operation: str, request: AWSPreparedRequest, status: int) -> None:
        """A request that moto answered with this status."""
        if not self._recording or self._caller is None or _MARK in _text(request.headers.get("User-Agent", "")):
            return
        call = call_of(service, operation, request, self._caller)
        if call.service == "lambda" and operation == "Invoke":
            self.started(call.path.partition("/functions/")[2].partition("/")[0])
        elif call.service not in _BY_SETTINGS:
            self._asked.before(call)
            self._asked.after(call, Response(status, {}))

    def started(self, function: str) -> None:
        """The handler has started a function, perhaps through what a test put in the place of the client. A name that
        the stack does not have is what a test calls the handler's own function."""
        if self._recording and self._caller is not None:
            arns = {one.ref: one.attributes["Arn"] for one in self._stack.of_type("AWS::Lambda::Function")}
            arn = arns.get(function) or arns[self._caller.function]
            self._asked.exercise(self._caller.role_arn, "lambda:InvokeFunction", arn)


class _OnlyUses:
    """Leaves out refusals."""

    def __init__(self, uses: Uses) -> None:
        self.record = uses.record

    def refuse(self, *_: Any) -> None: ...


def call_of(service: str, operation: str, request: AWSPreparedRequest, caller: Caller) -> Call:
    """The request as the server on this machine would know it; buckets stand in the path there."""
    url = urlsplit(str(request.url))
    bucket, dot, _ = url.netloc.partition(".s3.")
    path = f"/{bucket}{url.path}" if service == "s3" and dot else url.path
    body = request.body if isinstance(request.body, bytes) else str(request.body or "").encode()
    headers = {name.lower(): _text(value) for name, value in request.headers.items()}
    return Call(caller, _SERVICES.get(service, service), operation, body, headers, unquote(path), query=url.query)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
