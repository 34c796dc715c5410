"""What one call to the AWS API is: who makes it, what it asks for, what comes back, and who may step in between."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import parse_qs

from local.aws import forms
from local.aws.parameters import parse


@dataclass(frozen=True)
class Caller:
    """One of our functions, in one invocation; the developer's CLI has none."""

    function: str
    role_arn: str
    request_id: str = ""


@dataclass(frozen=True)
class Call:
    """One request, recognised; `caller` is None for every key that was not registered: the developer."""

    caller: Caller | None
    service: str
    """As in an endpoint: dynamodb, dynamodbstreams, sqs, sns, s3, …"""
    operation: str
    """As in the API reference: PutItem, SendMessage, GetObject, …"""
    body: bytes
    headers: Mapping[str, str]
    """Names in lower case."""
    path: str
    method: str = "POST"
    query: str = ""
    access_key_id: str = ""
    region: str = "us-east-1"
    environ: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The WSGI request as it came."""
    signer: Caller | None = None
    """Which function presigned the URL or form that somebody else uses now: its role decides, but it makes no call."""
    to_come: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)
    """What strikes once it has been carried out, for the gate that remembers it: gone with the call if that fails."""

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The operation's parameters by their API names; empty where the body is no structure (S3 objects)."""
        return parse(self.service, self.operation, self.headers, self.body)

    @cached_property
    def form(self) -> forms.Form | None:
        """The form of a browser's upload; None for any other body."""
        return forms.parse(self.headers.get("content-type", ""), self.body)

    @cached_property
    def query_parameters(self) -> dict[str, str]:
        """The URL's query, the last value of each name."""
        return {name: values[-1] for name, values in parse_qs(self.query, keep_blank_values=True).items()}


@dataclass(frozen=True)
class Response:
    """What goes back; `lost` cuts the connection instead: the call had its effect, the caller never hears of it."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = b""
    lost: bool = False
    carried_out: bool = True
    """False for a refusal: nothing happened."""

    def without_reply(self) -> Response:
        """This response, never delivered."""
        return replace(self, lost=True)


@dataclass(frozen=True)
class Refusal:
    """Why a call is not carried out, in AWS's words; the server writes it in the protocol of the call.

    `lost` cuts the connection without an answer; `response` answers with that instead of an error.
    """

    code: str = ""
    message: str = ""
    status: int = 400
    lost: bool = False
    response: Response | None = field(default=None, repr=False)


class Gate(Protocol):
    """Steps in before and after a call: permissions, limits, metering, faults.

    Called on the thread of the request, in the order of `AwsServer.gates` before and in reverse after.
    A gate with `exclusive = True` runs inside the lock that holds all other calls back: it sees the state just
    before and just after this call alone, and must not wait for anything. Other gates may take their time.
    One gate object serves concurrent calls: what it must remember between the two goes by the identity of `call`.
    """

    def before(self, call: Call) -> Refusal | None:
        """None lets the call pass. Later gates and the call itself are skipped by a refusal."""

    def after(self, call: Call, response: Response) -> Response:
        """May look at or replace the response. Always called once after a `before` that let the call pass, also
        when a later gate refused it (`response.carried_out` is False then)."""


class Callers:
    """Who stands behind an access key id; a revoked one is refused for ever."""

    def __init__(self, lock: threading.RLock | None = None) -> None:
        """`lock` is the server's: once `revoke` returns, no call of that key has an effect any more."""
        self._lock = lock or threading.RLock()
        self._known: dict[str, Caller] = {}
        self._signers: dict[str, Caller] = {}
        self._revoked: set[str] = set()

    def register(self, access_key_id: str, caller: Caller) -> None:
        """Say who uses the key from now on (again for each invocation). ValueError for a revoked key."""
        with self._lock:
            if access_key_id in self._revoked:
                raise ValueError(f"{access_key_id} was revoked")
            self._known[access_key_id] = caller
            self._signers[access_key_id] = caller

    def revoke(self, access_key_id: str) -> None:
        """Refuse the key's calls from now on; waits for the one that is being carried out."""
        with self._lock:
            self._revoked.add(access_key_id)
            self._known.pop(access_key_id, None)

    def find(self, access_key_id: str) -> Caller | None:
        """Who uses the key, or None: the developer, or somebody revoked."""
        return self._known.get(access_key_id)

    def signer(self, access_key_id: str) -> Caller | None:
        """Who used the key last, revoked or not: on AWS, what it presigned outlives the process that did."""
        return self._signers.get(access_key_id)

    def is_revoked(self, access_key_id: str) -> bool:
        """Whether the key's calls are to be refused. Ask while holding the lock, or the answer may be too old."""
        return access_key_id in self._revoked
