"""Synthesizes the stack for this machine, or takes the assembly of an earlier run when nothing has changed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from local.stack.place import ACCOUNT, REGION

REPOSITORY = Path(__file__).resolve().parents[1]
_CACHE = REPOSITORY / ".build" / "local"
_KEPT = 16  # the tests need ten, at one time or another


class SynthesisError(Exception):
    """The CDK app refused; the text is what it said."""


def synthesize(settings: Mapping[str, Any], out: Path | None = None) -> Path:
    """The cloud assembly's folder. `settings` are as `-c name=value` would give them, `env` among them.

    Assets are not bundled: functions run from the sources. With `out` nothing is cached. Raises SynthesisError.
    """
    if out is not None:
        _run(settings, out)
        return out
    place = _CACHE / _fingerprint(settings)
    if not (place / "manifest.json").exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="new-", dir=_CACHE))
        try:
            _run(settings, fresh)
            shutil.rmtree(place, ignore_errors=True)
            fresh.rename(place)
        except OSError:
            if not (place / "manifest.json").exists():  # another run was quicker
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        _prune()
    os.utime(place)
    return place


def is_cached(settings: Mapping[str, Any]) -> bool:
    """Whether `synthesize` will be quick."""
    return (_CACHE / _fingerprint(settings) / "manifest.json").exists()


def _run(settings: Mapping[str, Any], out: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    environment |= {
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps({**settings, "aws:cdk:bundling-stacks": []}),
        "CDK_DEFAULT_ACCOUNT": ACCOUNT,
        "CDK_DEFAULT_REGION": REGION,
        "CDK_VALIDATION": "false",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # bytecode saves the CDK seconds
    command = [sys.executable, "app.py"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SynthesisError((done.stderr or done.stdout).strip() or f"app.py ended with {done.returncode}")


def _fingerprint(settings: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps([sys.version_info[:2], sorted(settings.items())]).encode())
    for path in _inputs():
        digest.update(f"\0{path.relative_to(REPOSITORY)}\0".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def _inputs() -> Iterator[Path]:
    """All that the template is made of; of the tasks only which there are."""
    for name in ("app.py", "cdk.json", "requirements.txt", "constraints.txt"):
        if (REPOSITORY / name).exists():
            yield REPOSITORY / name
    for folder in ("infra", "lambdas/contracts", "lambdas/workflows"):
        files = (path for path in (REPOSITORY / folder).rglob("*") if path.is_file())
        yield from sorted(path for path in files if "__pycache__" not in path.parts)
    tasks = REPOSITORY / "lambdas" / "tasks"
    yield from sorted(path for path in tasks.iterdir() if path.is_dir() and path.name != "__pycache__")


def _prune() -> None:
    places = sorted(_CACHE.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for place in places[_KEPT:]:
        shutil.rmtree(place, ignore_errors=True)
