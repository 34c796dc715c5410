"""Compares a record with what was reviewed: both ways, and the review itself must not be older than the stack."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.permissions.record import Permission, Record

HERE = Path(__file__).parent
UNUSED, REFUSED = HERE / "unused.json", HERE / "refused.json"
PLACEHOLDER = "why?"

Reasons = Mapping[Permission, str]


@dataclass(frozen=True)
class Reviewed:
    """What may stand unused in the policies, and what may be refused; each with its reason."""

    unused: Reasons = field(default_factory=dict)
    refused: Reasons = field(default_factory=dict)
    sometimes: frozenset[Permission] = frozenset()
    """Of the unused ones: used in one run and not in the next, as time and luck have it."""


@dataclass(frozen=True)
class Finding:
    """One disagreement, and what to do about it."""

    permission: Permission
    kind: str
    entry_of: Path | None = None
    """The list that an entry for it could be pasted into, once somebody knows the reason."""

    def __str__(self) -> str:
        return f"{self.permission}: {self.kind}"


NO_STATEMENT = "was done, though no statement names it: local/aws/needs.py asks for too little"
NOT_EXPECTED = "was refused: grant it, or say in refused.json which test wants it refused"
NEVER_USED = "is granted and was never used: take it out of infra/, or say in unused.json why it stays"
USED_AFTER_ALL = 'is listed in unused.json, and was used: take it off the list, or give it `"sometimes": true`'
NOT_GRANTED = "is listed in unused.json, and granted no more: take it off the list"
NEVER_REFUSED = "is listed in refused.json, and was never refused: take it off the list"
NO_REASON = "is listed without a reason"


def findings(record: Record, reviewed: Reviewed) -> list[Finding]:
    """None, when every permission is used or has its reason."""
    return sorted(_findings(record, reviewed), key=lambda one: (one.kind, one.permission))


def _findings(record: Record, reviewed: Reviewed) -> Iterator[Finding]:
    unused, refused = reviewed.unused.keys(), reviewed.refused.keys()
    yield from _each(NO_STATEMENT, record.unnamed | (record.used - record.granted))
    yield from _each(NOT_EXPECTED, record.refused - refused, REFUSED)
    yield from _each(NEVER_USED, record.granted - record.used - unused, UNUSED)
    yield from _each(USED_AFTER_ALL, (unused & record.used) - reviewed.sometimes)
    yield from _each(NOT_GRANTED, unused - record.granted)
    yield from _each(NEVER_REFUSED, refused - record.refused)
    reasons = [*reviewed.unused.items(), *reviewed.refused.items()]
    yield from _each(NO_REASON, [permission for permission, why in reasons if why.strip() in ("", PLACEHOLDER)])


def _each(kind: str, permissions: Iterable[Permission], entry_of: Path | None = None) -> Iterator[Finding]:
    for permission in permissions:
        yield Finding(permission, kind, entry_of)


def load(unused: Path = UNUSED, refused: Path = REFUSED) -> Reviewed:
    """The lists of this folder. ValueError for one that names something twice."""
    entries, wanted = _entries(unused), _entries(refused)
    return Reviewed(
        {permission: entry["reason"] for permission, entry in entries.items()},
        {permission: entry["reason"] for permission, entry in wanted.items()},
        frozenset(permission for permission, entry in entries.items() if entry.get("sometimes")),
    )


def _entries(place: Path) -> dict[Permission, dict[str, Any]]:
    entries: dict[Permission, dict[str, Any]] = {}
    for entry in json.loads(place.read_text(encoding="utf-8")):
        permission = Permission(entry["role"], entry["action"], entry["resource"])
        if permission in entries:
            raise ValueError(f"{place.name} names twice: {permission}")
        entries[permission] = entry
    return entries


def told(found: Iterable[Finding]) -> str:
    """For a human: by kind, with entries to paste."""
    found = list(found)
    parts = []
    for kind in dict.fromkeys(one.kind for one in found):
        same = [one for one in found if one.kind == kind]
        parts.append("\n".join([f"Each of these {len(same)} {kind}:", *(f"  {one.permission}" for one in same)]))
    for place in (REFUSED, UNUSED):
        entries = [_entry(one.permission) for one in found if one.entry_of == place]
        if entries:
            parts.append(f"For tests/permissions/{place.name}, each with its reason:\n" + ",\n".join(entries))
    return "\n\n".join(parts)


def _entry(permission: Permission) -> str:
    return "  " + json.dumps({**asdict(permission), "reason": PLACEHOLDER}, ensure_ascii=False)
