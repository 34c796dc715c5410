"""What ships: built for real, unpacked, looked into, and run by the functions' own Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from infra import packaging, toolchain
from infra.toolchain import Interpreter, bundled_node, runtime_python, use_bundled_node
from tests.infrastructure.conftest import ROOT, context

DEAD = "#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n"  # a pyenv shim without its Python
ALIVE = "#!/bin/sh\necho 3 13 0badc0de\n"  # what the probe hears from a Python that runs
ARMY_KNIVES = ("boto3", "botocore", "s3transfer", "urllib3", "pydantic", "pydantic_core", "aws_xray_sdk", "jsonschema")


@pytest.fixture
def forgetful() -> Iterator[None]:
    """The search for a Python is done once per process: here it is done again, and afterwards too."""
    runtime_python.cache_clear()
    yield
    runtime_python.cache_clear()


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layer")
    packaging.build_layer(folder)
    return folder


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    packaging.build_code(folder)
    return folder


def script(folder: Path, text: str) -> Path:
    """A `python3.13` on the PATH."""
    folder.mkdir(parents=True)
    python = folder / "python3.13"
    python.write_text(text, encoding="utf-8")
    python.chmod(0o755)
    return python


def test_the_code_asset_is_lambdas_and_nothing_else(code: Path) -> None:
    assert [path.name for path in code.iterdir()] == ["lambdas"]
    sources = {path.relative_to(code).as_posix() for path in code.rglob("*.py")}
    assert {
        f"lambdas/handlers/{role}.py" for role in ("accept", "query", "control", "dispatch", "worker", "sweep")
    } <= sources
    assert "lambdas/contracts/openapi.json" in {path.relative_to(code).as_posix() for path in code.rglob("*.json")}
    repository = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lambdas").rglob("*.py")}
    assert sources == repository


def test_what_tasks_and_workflows_declare_ships_with_them(code: Path) -> None:
    shipped = {path.relative_to(code).as_posix() for path in code.rglob("*.json")}
    assert shipped == {path.relative_to(ROOT).as_posix() for path in (ROOT / "lambdas").rglob("*.json")}
    assert "lambdas/workflows/analyze_document/workflow.json" in shipped
    assert "lambdas/tasks/flag_compliance/schema.json" in shipped


def test_the_layer_has_what_the_lock_names_and_no_sdk(layer: Path) -> None:
    """boto3 comes with the runtime; pydantic and the X-Ray SDK would cost every cold start."""
    assert [path.name for path in layer.iterdir()] == ["python"]
    shipped = {path.name for path in (layer / "python").iterdir()}
    packages = {name for name in shipped if not name.endswith(".dist-info")} - {"__pycache__"}
    assert packages == {
        "aws_lambda_powertools", "fastjsonschema", "jmespath", "jsonpatch.py", "jsonpatch_cli.py", "jsonpatch-stubs",
        "jsonpointer.py", "jsonpointer-stubs", "standardwebhooks", "typing_extensions.py",
    }  # fmt: skip
    assert not {path.name for path in layer.rglob("*")} & set(ARMY_KNIVES)
    assert not list(layer.rglob("*.so")), "pure Python, so that any machine can build it"


def test_the_lock_pins_every_package_by_hash_and_holds_what_is_required() -> None:
    lock = (ROOT / "infra/layer/requirements.lock").read_text(encoding="utf-8")
    pinned = [line.split(" ")[0] for line in lock.splitlines() if "==" in line]
    assert lock.count("--hash=sha256:") == len(pinned) == 7
    wanted = (ROOT / "infra/layer/requirements.in").read_text(encoding="utf-8").splitlines()
    assert {line for line in wanted if "==" in line} <= set(pinned)
    installed = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert all(line in installed for line in wanted if "==" in line), "tests must see what ships"


def test_the_assets_run_with_nothing_else_on_the_path(code: Path, layer: Path) -> None:
    """Isolated, without site-packages, on the functions' own Python where there is one."""
    python = runtime_python()
    program = (
        f"import sys; sys.path[:0] = [{str(code)!r}, {str(layer / 'python')!r}]\n"
        "import lambdas.contracts.names, fastjsonschema, aws_lambda_powertools, jmespath, jsonpatch, standardwebhooks\n"
        "print(lambdas.contracts.names.__file__, fastjsonschema.__file__)"
    )
    command = [python.executable if python else sys.executable, "-I", "-S", "-c", program]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    names, library = run.stdout.split()
    assert (names.startswith(str(code)), library.startswith(str(layer))) == (True, True)


def test_every_source_ships_with_bytecode_that_no_date_can_void(code: Path, layer: Path) -> None:
    """CDK zips with dates of 1980: only hash-based bytecode (flags 1, unchecked) survives. None without a 3.13."""
    python = runtime_python()
    sources = [*code.rglob("*.py"), *layer.rglob("*.py")]
    headers = [
        (path.read_bytes()[:4].hex(), int.from_bytes(path.read_bytes()[4:8], "little"))
        for path in [*code.rglob("*.pyc"), *layer.rglob("*.pyc")]
    ]
    assert set(headers) == ({(python.magic, 1)} if python else set())
    assert len(headers) == (len(sources) if python else 0)


def test_without_a_python_3_13_sources_ship_and_it_is_said_once_what_that_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], forgetful: None
) -> None:
    monkeypatch.setattr(toolchain, "_candidates", lambda: iter([str(script(tmp_path / "dead", DEAD))]))
    packaging.build_code(tmp_path / "a")
    packaging.build_code(tmp_path / "b")
    assert not list((tmp_path / "a").rglob("*.pyc"))
    told = capsys.readouterr().err
    assert told.count("ship without bytecode") == 1
    assert "uv python install 3.13" in told


def test_a_dead_shim_first_on_the_path_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgetful: None
) -> None:
    """It is there and executable: only running it tells."""
    dead, alive = script(tmp_path / "dead", DEAD), script(tmp_path / "alive", ALIVE)
    monkeypatch.setenv("PATH", f"{dead.parent}{os.pathsep}{alive.parent}")
    monkeypatch.setattr(sys, "executable", str(dead))
    found = runtime_python()
    assert found is not None
    assert (found.executable, found.magic) == (str(alive), "0badc0de")


def test_a_python_of_another_version_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgetful: None
) -> None:
    other = script(tmp_path / "other", "#!/bin/sh\necho 3 12 cb0d0d0a\n")
    monkeypatch.setattr(toolchain, "_candidates", lambda: iter([str(other), str(tmp_path / "absent")]))
    assert runtime_python() is None


def test_whether_bytecode_ships_is_part_of_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a first upload without it, slow at every cold start, would never be replaced."""
    prints = set()
    for python in (None, Interpreter("python3.13", "f30d0d0a"), Interpreter("python3.13", "00000d0a")):
        monkeypatch.setattr(packaging, "runtime_python", lambda python=python: python)
        prints.add(packaging.fingerprint([packaging.LOCK]))
    assert len(prints) == 3


def test_the_fingerprint_follows_paths_and_contents_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaging, "ROOT", tmp_path)
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("1", encoding="utf-8")
    two.write_text("1", encoding="utf-8")
    before = packaging.fingerprint([one])
    os.utime(one, (0, 0))
    assert packaging.fingerprint([one]) == before
    assert packaging.fingerprint([two]) != before
    one.write_text("2", encoding="utf-8")
    assert packaging.fingerprint([one]) != before


def synthesized(python: str, out: Path, path: str) -> dict[str, Any]:
    """`app.py` as a process of its own, bundling skipped by the context that the CLI would hand over; its functions."""
    out.mkdir()
    environment = {
        "HOME": str(out / "home"),  # no pyenv, no uv: PATH decides
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(Path.home() / ".cache/aws/jsii/package-cache"),
        "PATH": path,
        "CDK_VALIDATION": "false",
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps(context()),
    }
    run = subprocess.run(
        [python, str(ROOT / "app.py")], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert run.returncode == 0, run.stderr
    (template,) = out.glob("*.template.json")
    resources = json.loads(template.read_text(encoding="utf-8"))["Resources"]
    return {
        name: one["Properties"]["Code"] for name, one in resources.items() if one["Type"] == "AWS::Lambda::Function"
    }


def test_synth_needs_no_node_on_the_path_and_replaces_the_asset_once_a_python_3_13_is_found(tmp_path: Path) -> None:
    """First with a dead shim alone, then with one that runs behind it. On 3.13 itself there is no difference."""
    dead, alive = script(tmp_path / "dead", DEAD).parent, script(tmp_path / "alive", ALIVE).parent
    assert bundled_node() is not None
    without = synthesized(sys.executable, tmp_path / "out_without", str(dead))
    found = synthesized(sys.executable, tmp_path / "out_found", f"{dead}{os.pathsep}{alive}")
    assert without.keys() == found.keys()
    same = {without[name] == found[name] for name in without}
    assert same == {sys.version_info[:2] == toolchain.RUNTIME}


def test_node_of_the_virtual_environment_is_used_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JSII_NODE", raising=False)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    use_bundled_node()
    node = os.environ["JSII_NODE"]
    assert subprocess.run([node, "--version"], capture_output=True, check=True, timeout=600).stdout.startswith(b"v")
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    monkeypatch.setenv("JSII_NODE", "/opt/node")
    use_bundled_node()
    assert os.environ["JSII_NODE"] == "/opt/node"


def test_a_layer_that_cannot_be_downloaded_is_no_traceback(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "CDK_OUTDIR": str(tmp_path),
        "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_FIND_LINKS": "",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0",
    }
    command = [sys.executable, str(ROOT / "app.py")]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    assert "error: the assets could not be built" in run.stderr
    assert not list(tmp_path.glob("*.template.json"))


def test_a_shell_without_the_cdk_is_told_to_run_make_setup(tmp_path: Path) -> None:
    shutil.copy(ROOT / "app.py", tmp_path)
    run = subprocess.run(
        [sys.executable, "-I", "-S", str(tmp_path / "app.py")], capture_output=True, text=True, check=False, timeout=600
    )
    assert run.returncode == 1
    assert "make setup" in run.stderr


def test_a_shell_without_the_cdk_goes_on_in_the_virtual_environment(tmp_path: Path) -> None:
    shutil.copy(ROOT / "app.py", tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "again: $@"\n', encoding="utf-8")
    python.chmod(0o755)
    command = [sys.executable, "-I", "-S", str(tmp_path / "app.py"), "-c", "env=dev"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert run.stdout == f"again: {tmp_path / 'app.py'} -c env=dev\n"
