"""CORS as an HTTP API with a CorsConfiguration does it: by itself, whatever the functions say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.events.http import Answer, Request


class Cors:
    """Answers preflights and marks answers; without a configuration it does neither."""

    def __init__(self, configuration: Mapping[str, Any] | None) -> None:
        self._settings = configuration or {}

    def preflight(self, request: Request) -> Answer | None:
        """The answer to a preflight; None when the request is none, or CORS is off."""
        asks = request.method == "OPTIONS" and "origin" in request.headers
        if not self._settings or not asks or "access-control-request-method" not in request.headers:
            return None
        headers = self._origin(request)
        if headers:
            headers += self._lists("access-control-allow-methods", "AllowMethods")
            headers += self._lists("access-control-allow-headers", "AllowHeaders")
            if "MaxAge" in self._settings:
                headers.append(("access-control-max-age", str(self._settings["MaxAge"])))
        return Answer(204, headers)

    def mark(self, request: Request, answer: Answer) -> Answer:
        """Put this API's CORS headers in the place of the function's."""
        if not self._settings:
            return answer
        kept = [(name, value) for name, value in answer.headers if not name.startswith("access-control-")]
        added = self._origin(request)
        if added:
            added += self._lists("access-control-expose-headers", "ExposeHeaders")
        return Answer(answer.status, kept + added, answer.body)

    def _origin(self, request: Request) -> list[tuple[str, str]]:
        origin = request.headers.get("origin")
        allowed = self._settings.get("AllowOrigins", [])
        if origin is None:
            return []
        if "*" in allowed:
            return [("access-control-allow-origin", "*")]
        if not any(_fits(origin, pattern) for pattern in allowed):
            return []
        headers = [("access-control-allow-origin", origin), ("vary", "origin")]
        if self._settings.get("AllowCredentials"):
            headers.append(("access-control-allow-credentials", "true"))
        return headers

    def _lists(self, header: str, setting: str) -> list[tuple[str, str]]:
        values = self._settings.get(setting, [])
        return [(header, ",".join(values).lower() if setting != "AllowMethods" else ",".join(values))] if values else []


def _fits(origin: str, pattern: str) -> bool:
    """https://* and http://* stand for every host of that scheme."""
    return origin == pattern or (pattern in ("https://*", "http://*") and origin.startswith(pattern[:-1]))
