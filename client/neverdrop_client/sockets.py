"""One WebSocket: opened by a ticket, watched over, and given up when it falls silent."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal

import httpx
from websockets.sync.client import ClientConnection, connect

from neverdrop_client.closing import Closing
from neverdrop_client.cursor import Cursor, Gap
from neverdrop_client.events import News
from neverdrop_client.messages import Garbled, Message, Trouble, Watching, parse
from neverdrop_client.request import is_loopback

OPENING_S = 10.0
CLOSING_S = 1.0
ANSWER_S = 10.0  # a watch that nobody answers in this time went nowhere
IDLE_S = 15.0  # pushes can get lost: who hears nothing for so long asks again, then each time after twice as long
LONGEST_IDLE_S = 120.0  # API Gateway ends what is silent for 10 minutes
MOST_BYTES = 131_072  # of a message: API Gateway's own limit
MOST_WAITING = 16  # messages in memory; what more comes waits in the network
MOST_GAPS = 3  # in a row, without anything new
# websockets' own writes the ticket down where a program logs everything, and what is made good here as an error
_LOG = logging.getLogger("neverdrop_client.sockets")
_LOG.setLevel(logging.CRITICAL)


class Broken(Exception):
    """This connection is of no use any more."""


class NoSocket(Exception):
    """It could not be opened. `silent`: nobody has said no; the next attempt may take as long."""

    def __init__(self, error: Exception) -> None:
        super().__init__(type(error).__name__)  # its message may have the ticket
        self.silent = isinstance(error, TimeoutError)


def watch(url: str, job_id: str, cursor: Cursor, closing: Closing) -> Iterator[News]:
    """What is new about a job, from the cursor on, until its end. Raises NoSocket, and Broken when the connection ends
    before the job does. `url` has the ticket, so no message names it."""
    with _opened(url) as connection, closing.over(connection):
        socket = _Socket(connection, job_id)
        socket.watch(cursor)
        gaps, idle_s = 0, IDLE_S
        while cursor.ending is None:
            message = socket.next(ANSWER_S if socket.is_asking else idle_s)
            if message is None:
                socket.watch(cursor)
                idle_s = min(2 * idle_s, LONGEST_IDLE_S)
                continue
            try:
                for event in cursor.take(message):
                    gaps, idle_s = 0, IDLE_S
                    yield event
            except Gap:
                if socket.is_asking and not isinstance(message, Watching):
                    continue  # what was on its way when it was asked for again
                gaps += 1
                if gaps > MOST_GAPS:
                    raise Broken("gaps") from None
                socket.watch(cursor)


class _Socket:
    def __init__(self, connection: ClientConnection, job_id: str) -> None:
        self._connection, self._job_id = connection, job_id
        self.is_asking = False

    def watch(self, cursor: Cursor) -> None:
        """Ask for everything from the cursor on."""
        if self.is_asking:
            raise Broken("silent")
        asked: dict[str, Any] = {"action": "watch", "job_id": self._job_id, "from": cursor.next}
        if cursor.attempt is not None:
            asked["attempt"] = cursor.attempt
        try:
            self._connection.send(json.dumps(asked))
        except Exception as error:  # websockets' own assertions are among them: a wire that breaks may win a race
            raise Broken(type(error).__name__) from None
        self.is_asking, cursor.asked = True, cursor.next

    def next(self, timeout_s: float) -> Message | None:
        """The next message about the job; None when none comes in time."""
        until = time.monotonic() + timeout_s
        while True:
            try:
                data = self._connection.recv(max(0.0, until - time.monotonic()))
            except TimeoutError:
                return None
            except Exception as error:
                raise Broken(type(error).__name__) from None
            try:
                message = parse(data, self._job_id)
            except Garbled as error:
                raise Broken(str(error)) from None
            if isinstance(message, Trouble):
                raise Broken(message.code)
            if isinstance(message, Watching):
                self.is_asking = False
            if message is not None:
                return message
            if time.monotonic() > until:
                return None


@contextmanager
def _opened(url: str) -> Iterator[ClientConnection]:
    proxy: Literal[True] | None = None if is_loopback(httpx.URL(url).host) else True
    trusted = httpx.create_ssl_context() if url.startswith("wss:") else None  # whom the requests trust
    with ExitStack() as ending:
        try:
            connection = ending.enter_context(
                connect(
                    url, ssl=trusted, compression=None, proxy=proxy, open_timeout=OPENING_S, close_timeout=CLOSING_S,
                    ping_interval=None, max_size=MOST_BYTES, max_queue=MOST_WAITING, logger=_LOG,
                )
            )  # fmt: skip
        except Exception as error:  # also a proxy that wants a package of its own
            raise NoSocket(error) from None
        try:
            yield connection
        finally:
            with suppress(Exception):
                connection.close()
