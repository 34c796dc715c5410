"""Makes the virtual environment that ministack and the functions run in: of their own Python, if there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from infra.toolchain import runtime_python

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def main() -> None:
    """Anew, in the folder that is named."""
    (home,) = map(Path, sys.argv[1:])
    found = runtime_python()
    python = found.executable if found else sys.executable
    _say(f"Setting up {home} with {python}: half a minute, once.")
    subprocess.run([python, "-m", "venv", "--clear", home], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--no-deps", "-r", str(_REQUIREMENTS)], check=True)
    subprocess.run([*pip, "check"], check=True)


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
