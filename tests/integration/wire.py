"""The wire between boto3 and moto in this process: counts what is sent, and loses, cuts or refuses it on demand.

moto has no lock, and handlers use threads: one request at a time is served."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ConnectionClosedError
from moto.core.botocore_stubber import BotocoreStubber

Reply = Callable[[AWSPreparedRequest], AWSResponse]


@dataclass(frozen=True)
class Sent:
    """One HTTP request, a repeat by botocore included."""

    service: str
    operation: str
    body: str


@dataclass
class _Fault:
    operation: str
    act: str  # lose | cut | refuse
    left: int
    part: str = ""
    code: str = ""
    status: int = 400


class _Raw(BytesIO):
    def stream(self, **_: Any) -> Any:
        yield self.read()


@dataclass
class Wire:
    """`lose`: done, but the reply is lost. `cut`: broken before it was done. `refuse`: answered with an error."""

    sent: list[Sent] = field(default_factory=list)
    answered: Callable[[str, str, AWSPreparedRequest, int], object] = lambda service, operation, request, status: None
    """Hears of each request that moto answered."""
    _faults: list[_Fault] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def lose(self, operation: str, times: int = 1, part: str = "") -> None:
        """Only requests whose body has `part` in it."""
        self._faults.append(_Fault(operation, "lose", times, part))

    def cut(self, operation: str, times: int = 1, part: str = "") -> None:
        self._faults.append(_Fault(operation, "cut", times, part))

    def refuse(self, operation: str, code: str, status: int = 400, times: int = 1_000, part: str = "") -> None:
        self._faults.append(_Fault(operation, "refuse", times, part, code, status))

    def mend(self) -> None:
        self._faults.clear()

    def clear(self) -> None:
        self.sent.clear()
        self.mend()

    def count(self, operation: str = "", service: str = "") -> int:
        return sum(operation in ("", one.operation) and service in ("", one.service) for one in self.sent)

    def attach(self, patch: pytest.MonkeyPatch) -> None:
        stock = BotocoreStubber.__call__

        def serve(stubber: Any, event_name: str, request: AWSPreparedRequest, **more: Any) -> Any:
            with self._lock:
                return self._serve(lambda: stock(stubber, event_name, request, **more), event_name, request)

        patch.setattr(BotocoreStubber, "__call__", serve)

    def _serve(self, moto: Callable[[], Any], event_name: str, request: AWSPreparedRequest) -> Any:
        _, service, operation = event_name.split(".")
        body = request.body.decode("utf-8", "replace") if isinstance(request.body, bytes) else str(request.body)
        self.sent.append(Sent(service, operation, body))
        fault = self._next_fault(operation, body)
        if fault is None:
            answer = moto()
            if answer is not None:  # else moto does not play the host, such as that of the model server
                self.answered(service, operation, request, answer.status_code)
            return answer
        if fault.act == "refuse":
            return _refusal(service, fault, request.url)
        if fault.act == "lose":
            moto()
        raise ConnectionClosedError(endpoint_url=request.url)

    def _next_fault(self, operation: str, body: str) -> _Fault | None:
        for fault in self._faults:
            if fault.operation == operation and fault.left > 0 and fault.part in body:
                fault.left -= 1
                return fault
        return None


def _refusal(service: str, fault: _Fault, url: str) -> AWSResponse:
    headers = HTTPHeaders()
    headers["content-type"] = "application/x-amz-json-1.0"
    if service == "s3":
        body = f"<Error><Code>{fault.code}</Code><Message>refused by the test</Message></Error>"
    elif service == "sns":
        error = f"<Error><Type>Sender</Type><Code>{fault.code}</Code><Message>refused by the test</Message></Error>"
        body = f"<ErrorResponse>{error}<RequestId>refused</RequestId></ErrorResponse>"
    else:
        body = json.dumps({"__type": f"com.amazonaws.{service}#{fault.code}", "message": "refused by the test"})
    return AWSResponse(url, fault.status, headers, _Raw(body.encode()))
