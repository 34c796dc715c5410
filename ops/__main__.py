"""The operator's hand: `python -m ops …`."""

from __future__ import annotations

import argparse
import sys

from ops import doctor, new_task


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit status. What it made goes to stdout, what went wrong to stderr."""
    parser = argparse.ArgumentParser(prog="python -m ops", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="can this machine build the stack, and this account run it?")
    task = commands.add_parser("new-task", help="start a new task, a folder under lambdas/tasks")
    task.add_argument("name", help="like extract-dates")
    chosen = parser.parse_args(arguments)
    if chosen.command == "new-task":
        return _new_task(chosen.name)
    return doctor.run()


def _new_task(name: str) -> int:
    try:
        print(new_task.create(name))
    except new_task.BadNameError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
