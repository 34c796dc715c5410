"""Applies a JSON patch (RFC 6902) to a document, within bounds."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

OPERATIONS_MAX = 100
CHARS_MAX = 1_000_000


class BadPatch(ValueError):
    """The patch is none, or does not fit the document; `position` of the operation, None for the whole."""

    def __init__(self, detail: str, position: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.position = position


def apply(document: Any, patch: Sequence[Any]) -> Any:
    """The patched document; the given one stays as it is. BadPatch when any operation cannot be applied, and when the
    document grows beyond a megabyte (a few `copy` are enough to fill a memory)."""
    import jsonpatch  # noqa: PLC0415  # of all functions one needs it, and seldom
    from jsonpointer import JsonPointerException  # noqa: PLC0415

    if not 0 < len(patch) <= OPERATIONS_MAX:
        raise BadPatch(f"a patch has 1 to {OPERATIONS_MAX} operations")
    found = copy.deepcopy(document)
    for position, operation in enumerate(patch):
        try:
            found = jsonpatch.JsonPatch([operation]).apply(found)
            chars = len(json.dumps(found))
        except (jsonpatch.JsonPatchException, JsonPointerException) as error:
            raise BadPatch(str(error)[:300] or type(error).__name__, position) from error
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            RecursionError,  # each operation may nest it deeper
        ) as error:  # of operations that the library lets pass
            raise BadPatch(f"cannot be applied: {type(error).__name__}: {error}"[:300], position) from error
        if chars > CHARS_MAX:
            raise BadPatch(f"the message grows beyond {CHARS_MAX:,} characters", position)
    return found
