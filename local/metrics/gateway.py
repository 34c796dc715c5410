"""What API Gateway reports of an HTTP API: each request, and those that it answered with 4xx or 5xx."""

from __future__ import annotations

from collections.abc import Callable

from local.events.http import Answer, Request
from local.metrics.store import Store, metric

NAMESPACE = "AWS/ApiGateway"
NAMES = ("Count", "4xx", "5xx")


class GatewayMetrics:
    """Of one API and its stage."""

    def __init__(self, store: Store, api_id: str, stage: str, now_s: Callable[[], float]) -> None:
        self._store = store
        self._dimensions = ({"ApiId": api_id}, {"ApiId": api_id, "Stage": stage})
        self._now_s = now_s

    def watching(self, answer: Callable[[Request], Answer]) -> Callable[[Request], Answer]:
        """The same, reported."""

        def reported(request: Request) -> Answer:
            given = answer(request)
            self.report(given.status)
            return given

        return reported

    def report(self, status: int) -> None:
        """One answer."""
        now_s = self._now_s()
        told = {"Count": 1, "4xx": int(400 <= status < 500), "5xx": int(status >= 500)}
        for dimensions in self._dimensions:
            for name, value in told.items():
                self._store.put(metric(NAMESPACE, name, dimensions), value, now_s)
