"""A whole run that leaves a permission unexplained fails; any other run says nothing of permissions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.aws.uses import VARIABLE
from tests.permissions import record
from tests.permissions.plugin import OWNER, STORED
from tests.permissions.record import Permission

ROOT = Path(__file__).resolve().parents[2]
USED, UNUSED = Permission("worker", "a:Used", "{Thing}"), Permission("worker", "a:Unused", "{Thing}")
LINES = [{"kind": kind, **vars(one)} for kind, one in (("granted", USED), ("granted", UNUSED), ("used", USED))]

SUITE = """
import json, os, pathlib
from tests.permissions import review
review.load = lambda: review.Reviewed({reviewed})

def test_recording():
    place = os.environ.get("NEVERDROP_USES")
    if place:
        (pathlib.Path(place) / f"{{os.getpid()}}.jsonl").write_text({lines!r})

def test_other():
    assert {passes}
"""


_ALONE = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
_SPREAD = ("-p", "xdist.plugin", "-n", "2", "--dist", "loadfile")


_LEAVES_OUT = """
def pytest_collection_modifyitems(config, items):
    config.hook.pytest_deselected(items=items[1:])
    del items[1:]
"""


class Project:
    """A small project with one suite, whose tests are what a runtime would be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "pytest.ini").write_text("[pytest]\ntestpaths = suite\naddopts = -p tests.permissions.plugin\n")
        (folder / "suite").mkdir()
        self.suite()

    def suite(self, reviewed: str = "", passes: bool = True) -> None:
        text = SUITE.format(lines="".join(json.dumps(line) + "\n" for line in LINES), reviewed=reviewed, passes=passes)
        (self.folder / "suite" / "conftest.py").write_text(text.partition("def ")[0])
        (self.folder / "suite" / "test_all.py").write_text(text)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        around = {name: value for name, value in os.environ.items() if not name.startswith(("NEVERDROP", "PYTEST"))}
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=self.folder, env={**around, **_ALONE, **environment}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    @property
    def stored(self) -> Path:
        return self.folder / STORED


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("arguments", [(), _SPREAD])
def test_a_whole_run_with_an_unexplained_permission_fails_and_says_what_to_paste(project: Project, arguments):
    ended = project.run(*arguments)
    assert ended.returncode == 1, ended.stdout
    assert "2 passed" in ended.stdout
    assert '{"role": "worker", "action": "a:Unused", "resource": "{Thing}", "reason": "why?"}' in ended.stdout
    assert record.read(project.stored).used == {USED}


def test_a_whole_run_with_everything_explained_passes(project: Project):
    project.suite(reviewed=f"{{review.Permission(*{(UNUSED.role, UNUSED.action, UNUSED.resource)}): 'AWS needs it'}}")
    ended = project.run()
    assert (ended.returncode, "permission" in ended.stdout) == (0, False), ended.stdout


def test_a_part_of_the_tests_says_nothing(project: Project):
    assert project.run("suite/test_all.py").returncode == 0
    assert not project.stored.exists()


def test_what_a_plugin_leaves_out_makes_it_a_part(project: Project):
    """Left out in the processes of pytest-xdist, of which the one that compares sees nothing."""
    (project.folder / "suite" / "conftest.py").write_text(_LEAVES_OUT)
    ended = project.run(*_SPREAD)
    assert (ended.returncode, "1 passed" in ended.stdout) == (0, True), ended.stdout
    assert not project.stored.exists()


def test_a_failed_run_says_nothing_of_permissions(project: Project):
    project.suite(passes=False)
    ended = project.run()
    assert (ended.returncode, "a:Unused" in ended.stdout) == (1, False)


def test_a_run_inside_of_a_run_leaves_the_record_alone(project: Project, tmp_path):
    outer: dict[str, Any] = {VARIABLE: str(tmp_path / "outer"), OWNER: "1"}
    (tmp_path / "outer").mkdir()
    assert project.run(**outer).returncode == 0
    assert list((tmp_path / "outer").iterdir()) == []


def test_a_folder_asked_for_by_hand_gets_the_record_of_any_run(project: Project, tmp_path):
    (tmp_path / "mine").mkdir()
    assert project.run("-k", "recording", **{VARIABLE: str(tmp_path / "mine")}).returncode == 0
    assert record.read(tmp_path / "mine").granted == {USED, UNUSED}
