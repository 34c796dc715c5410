"""Stacks that simulation tests share. Each test has jobs, inputs and tenants of its own; time only goes forward."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.simulation.own_tasks import LiveStack, running
from tests.simulation.stage import Stage, staged

QUICK = "deadline_s=3600"  # deadlines come after an hour
SMALL = ("worker_memory_mb=256", "upload_max_bytes=5000000")  # and so does the end of memory


@pytest.fixture(scope="package")
def live_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    """A stack with the tasks of `tests/simulation/tasks` beside the shipped ones. It sends no e-mail."""
    with running(tmp_path_factory.mktemp("code"), QUICK, *SMALL) as live:
        yield live


@pytest.fixture
def live(live_stack: LiveStack) -> Iterator[LiveStack]:
    """The same, with nothing left of the test before."""
    yield live_stack
    live_stack.calm()


@pytest.fixture(scope="module")
def module_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stack inside this process, where its every step can be held. One at a time: hence one for each module."""
    with staged(tmp_path_factory.mktemp("stage"), "steady", "lethal") as stage:
        yield stage


@pytest.fixture
def stage(module_stage: Stage) -> Stage:
    """The same, with nothing left of the test before but its records."""
    module_stage.reset()
    return module_stage


@pytest.fixture
def nonce() -> str:
    """A word that no other test's input has: inputs that are equal share their answers."""
    return uuid.uuid4().hex


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules that say `IN_ORDER` are one story: their tests run as they were written, not as they were drawn."""
    of = [getattr(item, "module", None) for item in items]
    for module in {one for one in of if getattr(one, "IN_ORDER", False)}:
        places = [at for at, one in enumerate(of) if one is module]
        told = sorted((items[at] for at in places), key=lambda item: item.reportinfo()[1] or 0)
        for at, item in zip(places, told, strict=True):
            items[at] = item
