"""The part `drift`: results that are gone are reported, and nothing is touched."""

from __future__ import annotations

import copy

from lambdas.contracts.names import COMPLETED, DELETED, FAILED
from lambdas.core.ports import Unavailable
from lambdas.core.sweeping.drift import Drift
from lambdas.core.sweeping.report import Report
from tests.builders import NOW, final_record, handed_over, later
from tests.fakes import FakeInventory, FakeJobStore, FakeTurn, FakeWorkers, Notices


class World:
    """Completed jobs, and which of their results are there."""

    def __init__(self, number: int = 5) -> None:
        old = later(hours=-1)
        records = [handed_over(COMPLETED, pk=f"{n:02d}", finished_at=old) for n in range(number)]
        self.store, self.notices = FakeJobStore(*records), Notices()
        self.lost: set[str] = set()
        self.refused: set[str] = set()
        self.asked: list[str] = []
        self.report = Report("sweep-1", "drift")

    def exists(self, key: str) -> bool:
        self.asked.append(key)
        if key in self.refused:
            raise Unavailable("503")
        return key not in self.lost

    def lose(self, job_id: str) -> str:
        key = str(self.store.records[job_id]["result_key"])
        self.lost.add(key)
        return key

    def sweep(self, turn: FakeTurn | None = None, page: int = 2) -> bool:
        part = Drift(FakeInventory(self.store), self.store, self, lambda: NOW, self.notices, FakeWorkers(), page)
        return part.run(self.report, turn or FakeTurn())


def test_a_result_that_is_gone_is_told_and_its_record_stays() -> None:
    world = World()
    key = world.lose("03")
    before = copy.deepcopy(world.store.records)
    assert world.sweep()
    assert world.report.counts == {"checked": 5, "lost": 1}
    assert world.report.lists == {"lost_results": ["03"]}
    assert world.report.found == 0
    assert world.notices.of("result_lost") == {"job_id": "03", "key": key}
    assert world.store.records == before


def test_only_completed_jobs_have_results_and_young_ones_are_left_for_the_next_time() -> None:
    world = World(1)
    for record in (
        final_record(FAILED, pk="failed"),
        {**final_record(COMPLETED, pk="deleted"), "status": DELETED},
        final_record(COMPLETED, pk="young", finished_at=later(-299)),
    ):
        world.store.records[record["pk"]] = record
    assert world.sweep()
    assert world.report.counts == {"checked": 1, "lost": 0}


def test_a_job_that_was_deleted_or_run_again_meanwhile_has_lost_nothing() -> None:
    world = World(2)
    world.lose("00")
    world.lose("01")
    stale = FakeInventory(FakeJobStore(*copy.deepcopy(world.store.records).values()))
    world.store.records["00"]["status"] = DELETED
    world.store.records["01"]["result_key"] = "results/acme/01/2"
    Drift(stale, world.store, world, lambda: NOW, world.notices, FakeWorkers()).run(world.report, FakeTurn())
    assert world.report.counts == {"checked": 2, "lost": 0}


def test_a_store_that_refuses_one_look_is_counted_and_leaves_the_others() -> None:
    world = World()
    world.refused.add(str(world.store.records["01"]["result_key"]))
    world.lose("04")
    assert world.sweep()
    assert (world.report.counts, world.report.troubles) == ({"checked": 5, "lost": 1}, 1)


def test_it_goes_on_from_its_cursor() -> None:
    world = World()
    left = iter([True, True])
    assert not world.sweep(FakeTurn(lambda: next(left, False)))
    assert world.report.counts["checked"] == 4
    assert world.sweep()
    assert world.report.counts["checked"] == len(world.asked) == 5
