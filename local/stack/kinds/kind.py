"""How one type of resource is brought about, and with what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config

from local.stack.errors import TemplateError
from local.stack.names import physical_name, uuid_of

Properties = Mapping[str, Any]


@dataclass(frozen=True)
class Made:
    """What a resource is called, and what is known of it, once it exists."""

    ref: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


class Workbench:
    """Clients of the local AWS API, and names, for those who create resources."""

    def __init__(
        self,
        stack: str,
        region: str,
        account: str,
        endpoint_url: str | None,
        api_endpoint: str | None,
        *,
        socket_endpoint: str | None = None,
    ) -> None:
        """Calls go to `endpoint_url`; `api_endpoint` is what HTTP APIs say their own address is, `socket_endpoint`
        what WebSocket APIs say."""
        self.stack = stack
        self.region = region
        self.account = account
        self.api_endpoint = api_endpoint
        self.socket_endpoint = socket_endpoint
        self._endpoint_url = endpoint_url
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """A boto3 client, the same one every time."""
        if service not in self._clients:
            create: Any = boto3.client  # boto3-stubs wants the service as a literal
            self._clients[service] = create(
                service,
                endpoint_url=self._endpoint_url,
                region_name=self.region,
                aws_access_key_id="provisioner",
                aws_secret_access_key="local",
                config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
            )
        return self._clients[service]

    def name(self, logical_id: str, limit: int) -> str:
        """What CloudFormation would call a resource that has no name of its own."""
        return physical_name(self.stack, logical_id, limit)

    def uuid(self, logical_id: str) -> str:
        """The same for resources that are called by a UUID."""
        return uuid_of(self.stack, logical_id)

    def arn(self, service: str, rest: str) -> str:
        """An ARN in the stack's account and region."""
        return f"arn:aws:{service}:{self.region}:{self.account}:{rest}"

    def close(self) -> None:
        """Close the clients' connections."""
        for client in self._clients.values():
            with suppress(Exception):
                client.close()


Maker = Callable[[Workbench, str, Properties], Made]


@dataclass(frozen=True)
class Kind:
    """A type, how to make one, and which of its properties mean something here.

    `properties` None: the resource is kept as data, whatever it says.
    """

    type: str
    make: Maker
    properties: frozenset[str] | None = None

    def check(self, given: Iterable[str]) -> None:
        """TemplateError for a property that nobody here has thought about."""
        unknown = set(given) - (self.properties if self.properties is not None else set(given))
        if unknown:
            raise TemplateError(f"{self.type}: {', '.join(sorted(unknown))} is not played on this machine")
