"""Keeps the e-mails that SES took: on this machine they go nowhere else."""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import Any

from local.aws.calls import Call, Response

KEPT = 1_000


class Mailbox:
    """A gate of the AWS server that lets everything pass."""

    def __init__(self) -> None:
        """Remembers the last mails."""
        self._mails: deque[dict[str, Any]] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    def mails(self) -> list[dict[str, Any]]:
        """What was sent, oldest first: the parameters of SendEmail, and the MessageId that was answered."""
        with self._lock:
            return list(self._mails)

    def empty(self) -> None:
        """Forget them."""
        with self._lock:
            self._mails.clear()

    def before(self, call: Call) -> None:
        """Refuses nothing."""

    def after(self, call: Call, response: Response) -> Response:
        """Keep what was carried out, whether its sender hears of it or not."""
        if (call.service, call.operation, response.status) == ("ses", "SendEmail", 200) and response.carried_out:
            with self._lock:
                self._mails.append({**call.parameters, **json.loads(response.body or b"{}")})
        return response
