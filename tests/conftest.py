"""Settings of all suites: property tests without deadlines (the machine may be busy) and without a database on disk."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "neverdrop",
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("neverdrop")

pytest_plugins = ("tests.permissions.plugin",)

SUITES = ("simulation", "e2e", "integration", "infrastructure", "unit")  # the slowest first: what runs last, runs alone


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """By suite; within one, in the order that was drawn."""
    items.sort(key=lambda item: SUITES.index(item.path.parent.name) if item.path.parent.name in SUITES else 0)
