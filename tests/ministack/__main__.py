"""`make e2e-ministack`: the end-to-end tests against an emulator of AWS that is not ours, deployed by the CDK CLI."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from local.model.server import ModelServer
from tests.ministack.deployment import deploy, operator
from tests.ministack.emulator import Emulator, started
from tests.ministack.processes import EndedError, run

ROOT = Path(__file__).resolve().parents[2]
# those of pyproject.toml without the ones that keep tests on this machine
_OPTIONS = ("--strict-markers", "--strict-config", "-ra", "-p no:socket", "-p tests.ministack.plugin")


def main() -> None:
    """Everything from an empty emulator to the tests' verdict. Whatever was started is ended, also by Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    given = _arguments()
    command, *words = given.cdk.split()
    cdk = [str(Path(command).absolute()), *words]
    work = Path(tempfile.mkdtemp(prefix="neverdrop-ministack-"))
    try:
        with ModelServer() as model, started(given.home.absolute(), work, model.url) as emulator:
            _say(f"ministack listens at {emulator.url}, the model at {model.url}")
            try:
                address, stack = deploy(emulator, cdk, work, ROOT)
                _say(f"{stack} is deployed; now the tests")
                _test(emulator, work, address, stack, given.pytest)
            finally:
                _end_once()
    except (EndedError, TimeoutError) as error:
        _tell(error, work)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        _keep(work, given.logs)
        shutil.rmtree(work, ignore_errors=True)


def _test(emulator: Emulator, work: Path, address: str, stack: str, more: list[str]) -> None:
    """As `make smoke` does, and with its own probes; signed by a user, so that signatures are looked at."""
    key, secret = operator(emulator)
    environment = emulator.environment(key, secret) | {"NEVERDROP_URL": address, "NEVERDROP_STACK": stack}
    chosen = ("tests/e2e", "tests/ministack/probes.py", "-m", "not local_only")
    options = ("-o", f"addopts={' '.join(_OPTIONS)}", "-o", f"cache_dir={work / 'cache'}")
    run(sys.executable, "-m", "pytest", *chosen, *options, *more, env=environment, cwd=ROOT)


def _arguments() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.ministack", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="virtual environment that has ministack")
    parser.add_argument("--cdk", required=True, help="command that is the CDK CLI")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="where to keep what ministack and the CLI said")
    parser.add_argument("pytest", nargs="*", help="more words for pytest")
    return parser.parse_args()


def _keep(work: Path, where: Path | None) -> None:
    if where:
        where.mkdir(parents=True, exist_ok=True)
        for log in work.glob("*.log"):
            shutil.copy(log, where)


def _say(what: str) -> None:
    print(what, flush=True)  # noqa: T201


def _tell(error: Exception, work: Path) -> None:
    """What it was, and the end of what ministack and the CLI said."""
    for log in sorted(work.glob("*.log")):
        lines = log.read_text("utf-8", errors="replace").splitlines()[-15:]
        sys.stderr.write(f"--- {log.name}\n" + "\n".join(lines) + "\n")
    sys.stderr.write(f"error: {error}\n")


def _interrupt(*_: object) -> NoReturn:
    _end_once()
    raise KeyboardInterrupt


def _end_once() -> None:
    """Nothing interrupts what ends the others."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    main()
