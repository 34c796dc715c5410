"""The CDK app: `cdk synth` and `cdk deploy` run it, and so does plain `python3 app.py`, from any shell."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent


def main() -> None:
    """Synthesize the stack of one environment into `cdk.out`."""
    _use_virtual_environment()
    from infra.toolchain import use_bundled_node  # noqa: PLC0415

    use_bundled_node()
    from infra.configuration import SettingsError  # noqa: PLC0415
    from infra.synthesis import DeliveryError, synthesize  # noqa: PLC0415
    from lambdas.core.prices import PRICES  # noqa: PLC0415

    os.chdir(ROOT)
    try:
        outdir = os.environ.get("CDK_OUTDIR") or str(ROOT / "cdk.out")
        synthesize(_context(sys.argv[1:]), outdir, priced=PRICES)
    except (SettingsError, DeliveryError) as error:
        sys.exit(f"error: {error}")
    except RuntimeError as error:  # all that jsii leaves of an exception in a callback of ours
        if "Failed to bundle asset" not in str(error):
            raise
        sys.exit("error: the assets could not be built; what pip or the compiler said of it stands above")


def _use_virtual_environment() -> None:
    """Start again inside `.venv` if this Python cannot see the CDK: nobody has to activate anything."""
    if importlib.util.find_spec("aws_cdk") is not None:
        return
    home = ROOT / ".venv"
    python = next((p for p in (home / "bin" / "python", home / "Scripts" / "python.exe") if p.exists()), None)
    if python is None or Path(sys.prefix) == home:
        sys.exit(f"error: the CDK is installed neither here ({sys.prefix}) nor in {home}: run `make setup`")
    os.execv(python, [str(python), *sys.argv])  # noqa: S606


def _context(arguments: list[str]) -> dict[str, Any]:
    """Context of cdk.json, for when no CLI reads it, and `-c name=value` as the CLI takes it."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    words = [word for word in arguments if word != "-c"]
    if len(words) * 2 != len(arguments) or not all("=" in word for word in words):
        sys.exit(f"usage: {sys.argv[0]} [-c name=value] …")
    return {**context, **dict(word.split("=", 1) for word in words)}


if __name__ == "__main__":
    main()
