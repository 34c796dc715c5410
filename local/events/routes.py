"""Which route of an HTTP API answers a request, as API Gateway chooses it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from local.stack.stack import Stack

_VARIABLE = re.compile(r"\{([^{}+]+)(\+?)\}")


@dataclass(frozen=True)
class Route:
    """One route with the integration and the authorizer behind it."""

    key: str
    integration: Mapping[str, Any]
    authorization: str = "NONE"
    authorizer: Mapping[str, Any] | None = None

    @property
    def method(self) -> str:
        """GET, POST, …, or ANY; $default has none."""
        return "ANY" if self.key == "$default" else self.key.split(" ")[0]

    @property
    def path(self) -> str:
        """With its variables: /jobs/{id}."""
        return "" if self.key == "$default" else self.key.split(" ", 1)[1]


def routes(stack: Stack, api_id: str) -> list[Route]:
    """The routes of one API."""
    integrations = {item.ref: item.properties for item in stack.of_type("AWS::ApiGatewayV2::Integration")}
    authorizers = {item.ref: item.properties for item in stack.of_type("AWS::ApiGatewayV2::Authorizer")}
    return [
        Route(
            item.properties["RouteKey"],
            integrations[item.properties["Target"].rsplit("/", 1)[-1]],
            item.properties.get("AuthorizationType", "NONE"),
            authorizers.get(item.properties.get("AuthorizerId", "")),
        )
        for item in stack.of_type("AWS::ApiGatewayV2::Route")
        if item.properties["ApiId"] == api_id
    ]


class Routes:
    """The most specific wins: fixed before variable before greedy segments, a method before ANY, then $default."""

    def __init__(self, known: list[Route]) -> None:
        self._default = next((route for route in known if route.key == "$default"), None)
        others = [route for route in known if route.key != "$default"]
        self._known = [(route, _pattern(route.path)) for route in sorted(others, key=_rank)]

    def find(self, method: str, raw_path: str) -> tuple[Route, dict[str, str]] | None:
        """The route and its path parameters, decoded; `raw_path` is the path as it was sent."""
        for route, pattern in self._known:
            if route.method in (method, "ANY") and (found := pattern.fullmatch(raw_path)):
                names = [name for name, _ in _VARIABLE.findall(route.path)]
                return route, {name: unquote(value) for name, value in zip(names, found.groups(), strict=True)}
        return None if self._default is None else (self._default, {})

    def methods(self, raw_path: str) -> bool:
        """Whether any method is routed for this path."""
        return any(pattern.fullmatch(raw_path) for _, pattern in self._known) or self._default is not None


def _pattern(path: str) -> re.Pattern[str]:
    parts = []
    at = 0
    for variable in _VARIABLE.finditer(path):
        parts.append(re.escape(path[at : variable.start()]))
        parts.append("(.+)" if variable[2] else "([^/]+)")
        at = variable.end()
    return re.compile("".join(parts) + re.escape(path[at:]))


def _rank(route: Route) -> tuple[list[int], int]:
    kinds = []
    for segment in route.path.strip("/").split("/"):
        variable = _VARIABLE.fullmatch(segment)
        kinds.append(0 if variable is None else 2 if variable[2] else 1)
    return kinds, int(route.method == "ANY")
