"""Has every runtime of a whole run write down what is used, and fails the run that leaves a permission unexplained.

A run of some tests says nothing about what nobody uses; then this stays silent.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from local.aws.uses import VARIABLE
from tests.permissions import record, review

STORED = Path(".build") / "permissions.jsonl"
OWNER = "NEVERDROP_USES_OWNER"
_NARROWING = (
    "collectonly",
    "deselect",
    "ignore",
    "ignore_glob",
    "keyword",
    "lf",
    "markexpr",
    "stepwise",
)


def pytest_configure(config: pytest.Config) -> None:
    """Before any process is started: they inherit where to write."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker(config), "permissions-worker")
    elif os.environ.get(OWNER, "") not in ("", str(os.getpid())):
        os.environ.pop(VARIABLE, None)  # a run that a test of another run started: what it does proves nothing
    elif VARIABLE in os.environ:
        os.environ[OWNER] = str(os.getpid())  # asked for by hand: `make prove-permissions ARGS=…` reads it
    elif is_whole(config):
        config.pluginmanager.register(Review(config), "permissions-review")


def is_whole(config: pytest.Config) -> bool:
    """Whether all suites were asked for, on this machine."""
    everything = config.args_source is config.ArgsSource.TESTPATHS
    narrowed = any(getattr(config.option, name, None) for name in _NARROWING)
    return everything and not narrowed and "NEVERDROP_URL" not in os.environ


class Worker:
    """In a process of pytest-xdist: tells the controller what it left out."""

    def __init__(self, config: Any) -> None:
        self._output: dict[str, Any] = config.workeroutput

    def pytest_deselected(self) -> None:
        self._output["deselected"] = True


class Review:
    """In the process that started the run."""

    def __init__(self, config: pytest.Config) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="neverdrop-uses-")
        os.environ[VARIABLE], os.environ[OWNER] = self._folder.name, str(os.getpid())
        self._stored = config.rootpath / STORED
        self._whole = True
        self._said = ""

    def pytest_deselected(self) -> None:
        self._whole = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        output = getattr(node, "workeroutput", {})
        self._whole = self._whole and not error and not output.get("deselected")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """A run that failed has not done everything that it would have done."""
        if not self._whole or exitstatus != pytest.ExitCode.OK:
            return
        written = record.read(Path(self._folder.name))
        record.write(written, self._stored)
        found = review.findings(written, review.load())
        if found:
            self._said = review.told(found)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._said:
            terminalreporter.section("permissions that the run does not explain", red=True)
            terminalreporter.write_line(self._said)

    def pytest_unconfigure(self) -> None:
        os.environ.pop(VARIABLE, None)
        os.environ.pop(OWNER, None)
        self._folder.cleanup()
