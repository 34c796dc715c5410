"""The throttle of an HTTP API's stage: a token bucket per route setting, in real time."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from typing import Any

from local.stack.errors import TemplateError

_LIMITS = ("ThrottlingRateLimit", "ThrottlingBurstLimit")


class Bucket:
    """`rate` requests a second in the long run, `burst` at once. A rate of None never refuses."""

    def __init__(self, rate: float | None, burst: float | None) -> None:
        self._rate = rate
        self._size = max(1.0, burst or rate or 1.0)
        self._tokens = self._size
        self._filled = time.monotonic()
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Whether one more request may pass."""
        if self._rate is None:
            return True
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._size, self._tokens + (now - self._filled) * self._rate)
            self._filled = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


class Throttle:
    """The buckets of a stage: one for each route with limits of its own, one for all others together."""

    def __init__(self, stage: Mapping[str, Any], route_keys: Collection[str] = ()) -> None:
        """TemplateError for settings of a route that the API does not have: AWS refuses them."""
        default = stage.get("DefaultRouteSettings", {})
        own = stage.get("RouteSettings", {})
        unknown = sorted(set(own) - set(route_keys))
        if unknown:
            raise TemplateError(f"RouteSettings for {', '.join(unknown)}: the API has no such route")
        self._default = _bucket(default)
        self._own = {
            key: _bucket({**default, **settings})
            for key, settings in own.items()
            if not settings.keys().isdisjoint(_LIMITS)
        }

    def take(self, route_key: str) -> bool:
        """Whether a request of this route may pass."""
        return self._own.get(route_key, self._default).take()


def _bucket(settings: Mapping[str, Any]) -> Bucket:
    rate, burst = map(settings.get, _LIMITS)
    return Bucket(None if rate is None else float(rate), None if burst is None else float(burst))
