"""A pytest plugin inside the copy: tells which tests turned red and why, and whether it was on the mutant."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

REPORT, MODULE = "NEVERDROP_WITNESS", "NEVERDROP_MUTATED"  # where to write; which module was changed
MARK = "MUTANT"  # a name at the end of the changed module: who has it has imported the changed text


class Witness:
    """Listens to one session."""

    def __init__(self) -> None:
        self.reds: list[dict[str, str]] = []
        self.unusable: list[str] = []
        self.passed = 0

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
        outcome = yield
        report: pytest.TestReport = outcome.get_result()
        self.passed += report.when == "call" and report.passed
        if report.failed and call.excinfo is not None:
            error = call.excinfo
            said = str(error.value)[:2_000]
            self.reds.append({"test": item.nodeid, "when": call.when, "error": error.typename, "said": said})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.unusable.append(f"{report.nodeid}: {str(report.longrepr).strip().splitlines()[-1][:200]}")

    def pytest_sessionfinish(self) -> None:
        module = sys.modules.get(os.environ.get(MODULE, ""))
        told = {
            "reds": self.reds,
            "unusable": self.unusable,
            "passed": self.passed,
            "mark": getattr(module, MARK, None),
            "file": getattr(module, "__file__", None),
        }
        Path(os.environ[REPORT]).write_text(json.dumps(told), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if REPORT in os.environ:
        config.pluginmanager.register(Witness(), "neverdrop-witness")
