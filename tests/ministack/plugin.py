"""The known gaps as strict expected failures: what is listed must be there, and must fail."""

from __future__ import annotations

from socket import gaierror

import pytest
from botocore.exceptions import ClientError

from tests.ministack.gaps import EXPECTED_FAILURES


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is listed. Unless only a part was asked for, a name that nothing bears any more is an error."""
    borne = set()
    for item in items:
        for name in (item.nodeid, item.nodeid.partition("[")[0]):
            if name in EXPECTED_FAILURES:
                borne.add(name)
                reason = EXPECTED_FAILURES[name]
                raises = (AssertionError, ClientError, gaierror)
                item.add_marker(pytest.mark.xfail(reason=reason, raises=raises, strict=True))
    if borne != set(EXPECTED_FAILURES) and not config.getoption("keyword"):
        raise pytest.UsageError(f"no test bears these names of gaps.py: {sorted(set(EXPECTED_FAILURES) - borne)}")
