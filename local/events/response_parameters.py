"""What an HTTP API may change of an integration's answer: its status and its headers, never its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from local.events.http import Answer
from local.stack.errors import TemplateError

_DESTINATION = re.compile(r"(overwrite|append|remove):header\.([A-Za-z0-9-]+)")
_STATUS = "overwrite:statuscode"
_RESERVED = re.compile(
    r"access-control-.*|apigw-.*|authorization|connection|content-(encoding|length|location)|forwarded|keep-alive"
    r"|origin|proxy-.*|te|trailers?|transfer-encoding|upgrade|x-amz(n)?-.*|x-forwarded-.*|via"
)

Rule = tuple[str, str, str]
"""What to do (status, overwrite, append, remove), to which header, with which value."""


class ResponseParameters:
    """The changes for each status that the integration may answer with."""

    def __init__(self, declared: Mapping[str, Any]) -> None:
        """`declared` as the template has it: status → {ResponseParameters: [{Destination, Source}]}.

        TemplateError for what API Gateway refuses, and for expressions, which are not played here.
        """
        self._rules = {
            status: list(map(_rule, changes.get("ResponseParameters", []))) for status, changes in declared.items()
        }
        for status in self._rules:
            if not re.fullmatch(r"[2-5]\d\d", status):
                raise TemplateError(f"ResponseParameters for {status!r}: a status is 200 to 599")

    def change(self, answer: Answer) -> Answer:
        """The answer as the client gets it."""
        status, headers = answer.status, list(answer.headers)
        for action, name, value in self._rules.get(str(answer.status), []):
            if action == "status":
                status = int(value)
                continue
            if action != "append":
                headers = [(known, kept) for known, kept in headers if known != name]
            if action != "remove":
                headers.append((name, value))
        return Answer(status, headers, answer.body)


def _rule(declared: Mapping[str, Any]) -> Rule:
    destination, source = str(declared["Destination"]), str(declared.get("Source", ""))
    if "$" in source:
        raise TemplateError(f"{source!r} for {destination}: expressions in answers are not played on this machine")
    if destination == _STATUS:
        if not re.fullmatch(r"[2-5]\d\d", source):
            raise TemplateError(f"{destination} takes a status from 200 to 599, not {source!r}")
        return "status", "", source
    found = _DESTINATION.fullmatch(destination)
    if found is None:
        raise TemplateError(f"{destination} is nothing that an HTTP API can change of an answer")
    name = found[2].lower()
    if _RESERVED.fullmatch(name):
        raise TemplateError(f"{destination}: API Gateway keeps that header to itself")
    return found[1], name, source
