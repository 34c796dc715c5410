"""What ships: one code asset (`lambdas/`) and one library layer, built from wheels, without Docker."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import jsii
from aws_cdk import AssetHashType, BundlingOptions, DockerImage, ILocalBundling
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.toolchain import runtime_python

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "lambdas"
LAYER = ROOT / "infra" / "layer"
LOCK = LAYER / "requirements.lock"
_NEVER_SHIPPED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "tests")
_PIP = (
    "--platform=manylinux2014_aarch64",
    "--implementation=cp",
    "--python-version=3.13",
    "--only-binary=:all:",
    "--no-deps",
    "--require-hashes",
    "--no-compile",
)
_COMPILE = ("--invalidation-mode=unchecked-hash",)


class Packaging(Construct):
    """The two assets that every function shares."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.code = _asset(CODE, _files(CODE), build_code)
        self.layer = lambda_.LayerVersion(
            self,
            "Libraries",
            code=_asset(LAYER, [LOCK], build_layer),
            description="Powertools for AWS Lambda, fastjsonschema, standardwebhooks and what they need",
            compatible_runtimes=[lambda_.Runtime.PYTHON_3_13],
            compatible_architectures=[lambda_.Architecture.ARM_64],
        )


def build_code(output: Path) -> None:
    """Put `lambdas/`, sources and bytecode, at the root of the folder and nothing else."""
    shutil.copytree(CODE, output / CODE.name, ignore=_NEVER_SHIPPED)
    _compile(output, "/var/task")


def build_layer(output: Path) -> None:
    """Unpack the locked wheels below `python/`, where Lambda looks for a layer's packages."""
    if importlib.util.find_spec("pip") is None:
        raise RuntimeError(f"building the layer needs pip in {sys.prefix}: run `{sys.executable} -m ensurepip`")
    target = output / "python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-input"]
    subprocess.run(
        [*pip, *_PIP, "--target", str(target), "-r", str(LOCK)],
        env={**os.environ, "PIP_USER": "0"},  # a user's own configuration may say otherwise
        check=True,
        stdout=sys.stderr,
    )
    shutil.rmtree(target / "bin", ignore_errors=True)  # command lines, of no use there
    _compile(output, "/opt")


def _compile(folder: Path, deployed_at: str) -> None:
    """Bytecode of the functions' own Python, checked by hash: CDK zips with dates of 1980."""
    python = runtime_python()
    if python is None:
        return
    where = ("-q", "-s", str(folder), "-p", deployed_at, str(folder))
    subprocess.run([python.executable, "-I", "-m", "compileall", *_COMPILE, *where], check=True, stdout=sys.stderr)


def _asset(source: Path, contents: Iterable[Path], build: Callable[[Path], None]) -> lambda_.Code:
    return lambda_.Code.from_asset(
        str(source),
        asset_hash=fingerprint(contents),
        asset_hash_type=AssetHashType.CUSTOM,
        exclude=["**/__pycache__", "**/*.pyc"],  # for when bundling is skipped
        bundling=BundlingOptions(image=DockerImage.from_registry("never-pulled"), local=_LocalBundling(build)),
    )


def fingerprint(contents: Iterable[Path]) -> str:
    """Hash of what makes the asset: this recipe, paths and bytes, and whether and which bytecode comes with them."""
    python = runtime_python()
    digest = hashlib.sha256(Path(__file__).read_bytes())
    digest.update((python.magic if python else "no bytecode").encode())
    for path in contents:
        body = path.read_bytes()
        digest.update(f"\0{path.relative_to(ROOT).as_posix()}\0{len(body)}\0".encode())
        digest.update(body)
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _NEVER_SHIPPED(str(folder), [path.name]):
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path


@jsii.implements(ILocalBundling)
class _LocalBundling:
    """Builds an asset by a function of ours instead of in a container."""

    def __init__(self, build: Callable[[Path], None]) -> None:
        self._build = build

    def try_bundle(self, output_dir: str, *_args: Any, **_options: Any) -> bool:
        """Never falls back to Docker: what cannot be built here is an error."""
        self._build(Path(output_dir))
        return True
