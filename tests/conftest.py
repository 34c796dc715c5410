"""Settings of all suites: property tests without deadlines (the machine may be busy) and without a database on disk."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "neverdrop",
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("neverdrop")
