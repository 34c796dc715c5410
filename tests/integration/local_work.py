"""How much work the AWS server has with a call: in function calls, because those are the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from local.aws.server import AwsServer

TRIES = 3  # the first one may fill a cache


def work_of(call: Callable[[], object]) -> int:
    """The fewest function calls that moto, as it is patched now, has answered it with."""
    ask, counts = AwsServer._ask_moto, list[int]()

    def counting(*arguments: Any) -> Any:
        made = 0

        def heed(frame: Any, event: str, argument: Any) -> None:
            nonlocal made
            made += event == "call"

        sys.setprofile(heed)
        try:
            return ask(*arguments)
        finally:
            sys.setprofile(None)
            counts.append(made)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AwsServer, "_ask_moto", counting)
        for _ in range(TRIES):
            call()
    assert len(counts) == TRIES, "one request for each call"
    return min(counts)
