"""The operator's hand: `python -m ops …`."""

from __future__ import annotations

import importlib.util
import io
import sys

NEEDED = ("typer", "rich", "httpx", "neverdrop_client")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; its exit code. What was asked for goes to stdout, everything else to stderr."""
    words = sys.argv[1:] if arguments is None else arguments
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        return _before_setup(words, missing)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a narrow locale is no reason to fail
    try:
        from ops.commands.assembly import app  # noqa: PLC0415

        app(words, prog_name="python -m ops")
    except SystemExit as end:
        return int(end.code or 0)
    except KeyboardInterrupt:
        return 130
    return 0


def _before_setup(words: list[str], missing: list[str]) -> int:
    """The doctor can be asked by any Python: it is there to say what is missing."""
    if words == ["doctor"]:
        from ops import doctor  # noqa: PLC0415

        return doctor.run()
    print(f"error: {', '.join(missing)} not installed: make setup, and run with .venv/bin/python", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
