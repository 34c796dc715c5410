"""`make prove-permissions`: who may do what and does it, from the record of the last whole run, or of a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.permissions import record, review
from tests.permissions.plugin import STORED
from tests.permissions.record import Permission, Record
from tests.permissions.review import Reviewed


def table(written: Record, reviewed: Reviewed) -> str:
    """For each role: what is used, then what is not, with its reason."""
    lines = []
    for role in sorted({one.role for one in written.granted}):
        granted = sorted(one for one in written.granted if one.role == role)
        used = [one for one in granted if one in written.used]
        lines.append(f"{role}: {len(used)} of {len(granted)} used")
        lines += [f"  used    {_what(one)}" for one in used]
        for one in granted:
            if one not in written.used:
                lines.append(f"  unused  {_what(one)}  ({reviewed.unused.get(one, 'NOT REVIEWED')})")
    for one in sorted(written.refused):
        lines.append(f"refused to {one}  ({reviewed.refused.get(one, 'NOT REVIEWED')})")
    return "\n".join(lines)


def _what(one: Permission) -> str:
    return f"{one.action:<34} {one.resource}"


def main(arguments: list[str]) -> int:
    """0 when nothing is left to explain."""
    place = Path(arguments[0]) if arguments else STORED
    try:
        written = record.read(place)
    except FileNotFoundError:
        sys.stderr.write(f"{place}: no record; `make test` writes one when all of it passes\n")
        return 2
    reviewed = review.load()
    found = review.findings(written, reviewed)
    sys.stdout.write(table(written, reviewed) + "\n\n")
    sys.stdout.write(review.told(found) + "\n" if found else "every permission is used, or has its reason\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
