"""The Postman port: frames to connections of the WebSocket API, through its management address."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from lambdas.adapters.clients import code_of
from lambdas.core.ports import Unavailable
from lambdas.core.watching.ports import Gone, Posted, Sent, Trouble, Watch
from lambdas.core.watching.serving import Act

WIDTH = 16  # watchers that are sent to at once

# one short attempt: who does not take a frame must not hold up the others, and gets it with the next one
_SHORT = Config(
    connect_timeout=1, read_timeout=2, retries={"mode": "standard", "total_max_attempts": 1}, max_pool_connections=WIDTH
)


def management_client() -> Any:
    """boto3 finds the API's address in a variable of its own (`names.PUSH_URL`)."""
    return boto3.client("apigatewaymanagementapi", config=_SHORT)


def at_once(act: Act, watches: Sequence[Watch]) -> Sequence[Unavailable | None]:
    """Relay's `together`: a watcher that is slow holds up no other."""
    if len(watches) == 1:
        return [act(watches[0])]
    with ThreadPoolExecutor(min(WIDTH, len(watches))) as threads:
        return list(threads.map(act, watches))


class ApiGatewayPostman:
    def __init__(self, client: Any) -> None:
        self._client = client

    def post(self, connection_id: str, frame: bytes) -> Posted:
        try:
            self._client.post_to_connection(ConnectionId=connection_id, Data=frame)
        except ClientError as error:
            # by the status, too: not everything that answers 410 says it by the code that boto3 knows
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if status == 410 or code_of(error) == "GoneException":
                return Gone()
            return Trouble(f"{status} {code_of(error)}")
        except (BotoCoreError, HTTPClientError) as error:
            return Trouble(type(error).__name__)
        return Sent()
