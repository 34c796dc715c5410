"""The message that follows up a call: what was said, what happens next, and the courtesies around it."""

from __future__ import annotations

import re
from typing import Final

from local.model.content import Detail
from local.model.extract import Extract, joined, shorten

_ASKED_FOR: Final = re.compile(r"\bwrite\b[^.\n]{0,60}\b(?:message|e-?mail|letter|reply)\b", re.IGNORECASE)


def is_asked_for(instructions: str) -> bool:
    return bool(_ASKED_FOR.search(instructions))


def message(extract: Extract, detail: Detail) -> str:
    told = joined(extract.summary(detail.sentences))
    parts = ["Hello,", "Thank you for the call." + (f" In short: {told}" if told else "")]
    steps = [f"- {shorten(one.attributed, detail.characters)}" for one in extract.requests[: detail.items]]
    if steps:
        parts.append("\n".join(["What happens next:", *steps]))
    return "\n\n".join([*parts, "Kind regards"])
