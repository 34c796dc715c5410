"""A pytest plugin inside the copy: the stack is synthesized once, not for each mutant: none of them changes infra/."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
import sys
import uuid
from collections.abc import Container, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = "NEVERDROP_ASSEMBLIES"  # where assemblies are kept; without it everything is as ever
REAL = "infra.synthesis"


class Remembered(ModuleType):
    """Stands for `infra.synthesis`, which loads the CDK: seconds of every process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(REAL)
        self._folder = folder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def synthesize(self, context: Mapping[str, Any], outdir: str, priced: Container[str] | None = None) -> None:
        key = hashlib.sha256(json.dumps(context, sort_keys=True, default=str).encode()).hexdigest()
        kept = self._folder / key
        if not kept.exists():
            self._real().synthesize(context, outdir, priced)
            unfinished = self._folder / uuid.uuid4().hex
            shutil.copytree(outdir, unfinished)
            unfinished.rename(kept)
        shutil.copytree(kept, outdir, dirs_exist_ok=True)

    def _real(self) -> Any:
        del sys.modules[REAL]
        try:
            return importlib.import_module(REAL)
        finally:
            sys.modules[REAL] = self


def pytest_configure() -> None:
    if FOLDER in os.environ:
        sys.modules[REAL] = Remembered(Path(os.environ[FOLDER]))
