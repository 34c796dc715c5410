"""The whole stack in virtual time: functions killed, frozen and starved at every call they make."""

import pytest

pytest.register_assert_rewrite("tests.simulation.expectations")
