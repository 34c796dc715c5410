"""API Gateway's mapping expressions: `$request.header.name` alone, or `${request.header.name}` within a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from local.events.http import Request
from local.stack.errors import TemplateError

BODY = "request.body"
CONTEXT = frozenset(
    {
        "accountId",
        "apiId",
        "httpMethod",
        "identity.sourceIp",
        "identity.userAgent",
        "path",
        "protocol",
        "requestId",
        "requestTimeEpoch",
        "routeKey",
        "stage",
    }
)
"""The context variables that are known here."""

_WITHIN = re.compile(r"\$\{([^{}$]+)\}")
_NAMED = re.compile(r"(request\.(?:header|querystring|path))\.([A-Za-z0-9_-]+)")


@dataclass(frozen=True)
class View:
    """What the expressions of one request look at."""

    request: Request
    parameters: Mapping[str, str]
    """Of the path."""
    context: Mapping[str, str]
    """A value for each name in CONTEXT."""
    body: str


class Selection:
    """One parameter of an integration, checked when it is made."""

    def __init__(self, text: str) -> None:
        """TemplateError for an expression that API Gateway does not know, or that is not played on this machine."""
        self.text = text
        self.expression = text[1:] if text.startswith("$") and not text.startswith("${") else None
        for name in _WITHIN.findall(text) if self.expression is None else [self.expression]:
            _check(name, text)
        if self.expression is None and "$" in _WITHIN.sub("", text):
            raise TemplateError(f"{text!r} has a $ outside of an expression, whose meaning nobody documents")
        if self.expression is None and f"${{{BODY}}}" in text:
            raise TemplateError("the body within a text is not played on this machine; $request.body alone is")

    @property
    def static(self) -> bool:
        """Whether it is the same for every request."""
        return "$" not in self.text

    def sample(self, value: str) -> str:
        """The text with `value` in the place of every expression."""
        return value if self.expression is not None else _WITHIN.sub(lambda _: value, self.text)

    def of(self, view: View) -> str | None:
        """The value for one request. What is missing is None when it is all there is, and nothing within a text.

        Within a text it is put in as it is: a quote in a header ends the JSON string that it stands in.
        """
        if self.expression is not None:
            return _find(self.expression, view)
        return _WITHIN.sub(lambda match: _find(match[1], view) or "", self.text)


def _check(name: str, text: str) -> None:
    kind, _, rest = name.partition(".")
    if name in (BODY, "request.path") or (kind == "context" and rest in CONTEXT):
        return
    if name.startswith(f"{BODY}."):
        raise TemplateError(
            f"{text!r} takes a part of the body, of which API Gateway reads 100 KB only: map the whole $request.body"
        )
    if not _NAMED.fullmatch(name):
        raise TemplateError(f"the mapping expression {name!r} in {text!r} is not played on this machine")


def _find(name: str, view: View) -> str | None:
    if name == BODY:
        return view.body
    if name == "request.path":
        return view.context["path"]
    if name.startswith("context."):
        return view.context[name.removeprefix("context.")]
    kind, _, wanted = name.rpartition(".")
    if kind == "request.header":  # names of any case, several values joined by commas
        return view.request.headers.get(wanted.lower())
    if kind == "request.path":
        return view.parameters.get(wanted)
    values = [value for key, value in parse_qsl(view.request.query, keep_blank_values=True) if key == wanted]
    return ",".join(values) if values else None
