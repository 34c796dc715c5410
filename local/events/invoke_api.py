"""Lambda's Invoke on the local AWS endpoint: `boto3.client("lambda").invoke(…)` from a function, a test or the CLI."""

from __future__ import annotations

import base64
import json
import threading
import uuid
from collections.abc import Callable
from typing import Any

from local.aws.calls import Call, Refusal, Response
from local.aws.errors import render
from local.aws.functions import function_arn
from local.compute.environments import Functions, new_trace_id
from local.compute.invocation import Invocation
from local.events import lineage
from local.events.asynchronous import AsyncInvoker

LIMIT_BYTES = {"RequestResponse": 6_291_456, "Event": 1_048_576, "DryRun": 6_291_456}
"""What a payload may weigh, by invocation type: Lambda's quotas."""

_LOG_BYTES = 4096
_TIMEOUT_S = 900.0
_LATEST = ":$LATEST"


class InvokeApi:
    """Plays one operation of the AWS server; called inside the server's lock."""

    def __init__(self, functions: Functions, invoker: AsyncInvoker, lineages: lineage.Lineages) -> None:
        self._functions = functions
        self._invoker = invoker
        self._lineages = lineages
        self._roles = {functions.definition(role).arn: role for role in functions.roles}

    def __call__(self, call: Call) -> Callable[[], Response]:
        """Begin the invocation, and return what waits for it."""
        arn = function_arn(call)
        role = self._roles.get(arn.removesuffix(_LATEST))
        if role is None:
            return _answered(render(call, Refusal("ResourceNotFoundException", f"Function not found: {arn}", 404)))
        event = _event(call)
        if isinstance(event, Refusal):
            return _answered(render(call, event))
        return self._begin(call, role, event)

    def _begin(self, call: Call, role: str, event: Any) -> Callable[[], Response]:
        kind, history = _kind(call), lineage.carried(call.headers)
        if kind == "DryRun":
            return _answered(Response(204, _headers()))
        if kind == "Event":
            self._invoker.submit(role, event, history)
            return _answered(Response(202, _headers()))
        arn = self._functions.definition(role).arn
        if self._lineages.cuts(history, arn):
            loop = Refusal("RecursiveInvocationException", f"{role} is invoked in a recursive loop, and stopped.")
            return _answered(render(call, loop))
        return self._run(call, role, event, new_trace_id(lineage.extended(history, arn)))

    def _run(self, call: Call, role: str, event: Any, trace_id: str) -> Callable[[], Response]:
        """On a thread of its own: an invocation that was begun goes on when its caller dies."""
        done = threading.Event()
        outcomes: list[Invocation] = []

        def run() -> None:
            try:
                outcomes.append(self._functions.invoke(role, event, trace_id=trace_id))
            finally:
                done.set()

        def wait() -> Response:
            if not done.wait(_TIMEOUT_S) or not outcomes:
                return render(call, Refusal("ServiceException", f"{role} did not answer", 500))
            return _result(call, outcomes[0])

        threading.Thread(target=run, name=f"invoke-{role}", daemon=True).start()
        return wait


def _kind(call: Call) -> str:
    return call.headers.get("x-amz-invocation-type") or "RequestResponse"


def _event(call: Call) -> Any:
    """The payload, no payload being an empty one; or the Refusal of a request that is wrong."""
    limit = LIMIT_BYTES.get(_kind(call))
    if limit is None:
        return Refusal("InvalidParameterValueException", f"no invocation type {_kind(call)!r}")
    if "x-amz-client-context" in call.headers:
        return Refusal("InvalidParameterValueException", "a client context is not played on this machine")
    if len(call.body) > limit:
        text = f"Request must be smaller than {limit} bytes for the {_kind(call)} invocation type"
        return Refusal("RequestTooLargeException", text, 413)
    try:
        return json.loads(call.body or b"{}")
    except (ValueError, RecursionError) as error:
        return Refusal("InvalidRequestContentException", f"Could not parse request body into json: {error}")


def _result(call: Call, outcome: Invocation) -> Response:
    if outcome.throttled:
        return render(call, Refusal("TooManyRequestsException", str((outcome.error or {})["errorMessage"]), 429))
    headers = _headers(outcome.request_id) | {"content-type": "application/json", "x-amz-executed-version": "$LATEST"}
    if not outcome.ok:
        headers["x-amz-function-error"] = "Unhandled"
    if call.headers.get("x-amz-log-type") == "Tail":
        tail = "\n".join(outcome.logs).encode()[-_LOG_BYTES:]
        headers["x-amz-log-result"] = base64.b64encode(tail).decode()
    return Response(200, headers, json.dumps(outcome.result if outcome.ok else outcome.error).encode())


def _headers(request_id: str = "") -> dict[str, str]:
    return {"x-amzn-requestid": request_id or str(uuid.uuid4())}


def _answered(response: Response) -> Callable[[], Response]:
    return lambda: response
