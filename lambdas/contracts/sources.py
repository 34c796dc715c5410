"""Where events come from: the declaration of a source, as `cdk.json` has it and as the functions get it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final

STANDARD_WEBHOOKS: Final = "standard-webhooks"
TIMESTAMPED: Final = "timestamped"
HMAC_SHA256: Final = "hmac-sha256"
SCHEMES: Final = (STANDARD_WEBHOOKS, TIMESTAMPED, HMAC_SHA256)

HEADER: Final = "header:"
TEXT: Final = "text"  # as `input`: the whole body is the text of a task whose input is {"text": …}

_OF_THE_DOOR = ("rate", "burst")  # what only API Gateway has to know
# a scheme that names its own headers; others with the same contents (svix-id, …) are declared
_USUAL: Mapping[str, Mapping[str, str]] = {
    STANDARD_WEBHOOKS: {
        "header": "webhook-signature",
        "id": "header:webhook-id",
        "time": "header:webhook-timestamp",
    },
    TIMESTAMPED: {},
    HMAC_SHA256: {},
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """A declared source of events. It belongs to one tenant, and each of its events becomes a job of one task.

    `header` carries the signature. `id`, `time` and `input` say where the event's id, its time and the task's input
    are: `header:<name>` or a JSON pointer into the body ("" is no time, and the whole body as input). `list` belongs to
    the sweep: how to ask the source what it has sent."""

    tenant: str
    task: str
    scheme: str
    secret: str
    header: str = ""
    id: str = ""
    time: str = ""
    input: str = ""
    tolerance_s: int = 300
    binary: bool = False
    rate: int = 10
    burst: int = 20
    list: Mapping[str, Any] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers that must come with an event: attribute of the message in the inbox → header."""
        placed = {"signature": self.header, "event_id": header_in(self.id), "timestamp": header_in(self.time)}
        return {attribute: header for attribute, header in placed.items() if header}


_DEFAULTS: Mapping[str, Any] = {one.name: one.default for one in fields(Source) if one.default is not MISSING}


def header_in(place: str) -> str:
    """The header's name in `header:<name>`, "" for any other place."""
    return place.removeprefix(HEADER) if place.startswith(HEADER) else ""


def source_of(declared: Mapping[str, Any]) -> Source:
    """A declaration with what its scheme leaves open. TypeError for a field that is unknown or missing."""
    return Source(**{**_USUAL.get(declared.get("scheme", ""), {}), **declared})


def written(sources: Mapping[str, Source]) -> str:
    """As short as JSON can say it: it is part of functions' environments."""
    told = {
        name: {
            field: value
            for field, value in vars(source).items()
            if field not in _OF_THE_DOOR and (field not in _DEFAULTS or value != _DEFAULTS[field])
        }
        for name, source in sources.items()
    }
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def read(text: str) -> dict[str, Source]:
    return {name: Source(**fields) for name, fields in json.loads(text or "{}").items()}
