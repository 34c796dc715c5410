"""`make prove-races`: the large sets, with progress on stderr, and a table of what was explored on stdout.

Exit code 1 when ours breaks, or one of the wrong protocols does not."""

from __future__ import annotations

import argparse
import sys

from tests.simulation.races.proving import counter_examples, proved, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.races", description=__doc__)
    parser.add_argument("--most", type=int, default=3, help="faults at once (3: some ten minutes on two free cores)")
    parser.add_argument("--only", default="", help="sets whose name has this in it")
    parser.add_argument("--nth", type=int, default=1, help="only every so-manieth set")
    parser.add_argument("--quiet", action="store_true", help="no counter-examples of wrong protocols")
    arguments = parser.parse_args()
    number, missing = (0, []) if arguments.quiet else counter_examples()
    rows = proved(arguments.most, arguments.only, arguments.nth)
    broken = [line for row in rows for line in row.broken]
    print(f"\n{table(rows)}\n\n{number} wrong protocols, {len(missing)} of them not found out.")  # noqa: T201
    for line in [*broken, *missing]:
        print(line)  # noqa: T201
    return 1 if broken or missing else 0


if __name__ == "__main__":
    sys.exit(main())
