"""Watching a job: who is slow, gone or too late, what dies in between, and that nobody else feels it."""

from __future__ import annotations

import pytest

from lambdas.core.ports import Unavailable
from lambdas.core.streaming.ports import Chunk
from lambdas.core.watching.ports import Gone, Posted, Sent, Trouble, Watch
from lambdas.core.watching.serving import serve
from tests.builders import JOB_ID, TENANT, held_record
from tests.fakes import Trouble as StoreTrouble
from tests.unit.studio import ANNA, BEN, OTHER_JOB, Studio


@pytest.fixture
def studio() -> Studio:
    studio = Studio()
    studio.connect(ANNA, BEN)
    return studio


# --- one watcher's trouble is nobody else's ------------------------------------------------------------------
@pytest.mark.parametrize("lost", [ANNA, BEN])
@pytest.mark.parametrize("trouble", [Gone(), Trouble("429 LimitExceededException"), Trouble("ReadTimeoutError")])
@pytest.mark.parametrize("at", range(3))
def test_ws_01_two_watchers_one_lost_and_the_other_unharmed(
    studio: Studio, lost: str, trouble: Posted, at: int
) -> None:
    kept = BEN if lost == ANNA else ANNA
    for connection in (ANNA, BEN):
        studio.watch(connection)
    studio.postman.outcomes[lost].extend([Sent()] * at + [trouble])
    for text in ("a", "b"):
        studio.stored(text)
        studio.push()
    studio.ends()
    studio.push()
    listener = studio.heard_by(kept)
    assert (listener.text, listener.repeats) == ("ab", 0)
    assert listener.final is not None
    if isinstance(trouble, Gone):
        assert lost not in studio.connections.connections
    assert all(key[1] != kept for key in studio.connections.watches)


def test_who_is_gone_is_forgotten_with_all_that_it_watched(studio: Studio) -> None:
    """WS-02: its `$disconnect` never came."""
    studio.becomes(held_record(pk=OTHER_JOB, stream=True))
    studio.connect(ANNA, job_ids=(JOB_ID, OTHER_JOB))
    studio.watch(ANNA)
    studio.watch(ANNA, OTHER_JOB)
    studio.watch(BEN)
    studio.postman.gone.add(ANNA)
    studio.stored("a")
    studio.push()
    assert list(studio.connections.watches) == [(JOB_ID, BEN)]
    assert list(studio.connections.connections) == [BEN]
    assert [step for step, _ in studio.notices] == ["watcher_gone"]


def test_what_could_not_be_sent_comes_with_the_next_news(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.postman.outcomes[ANNA].append(Trouble("429"))
    studio.stored("a")
    studio.push()
    assert studio.cursor(ANNA) == (1, 0)
    studio.stored("b")
    studio.push()
    assert studio.heard_by(ANNA).text == "ab"


def test_what_could_not_be_sent_comes_with_a_ping(studio: Studio) -> None:
    """Its final hint was used up: nothing else would ever come."""
    studio.watch(ANNA)
    studio.stored("a")
    studio.ends()
    studio.postman.outcomes[ANNA].append(Trouble("429"))
    studio.push()
    assert studio.postman.types(ANNA) == ["watching"]
    assert [frame["type"] for frame in studio.say(ANNA, action="ping")] == ["pong", "chunks", "final"]
    assert studio.connections.watches == {}


def test_progress_before_the_trouble_is_kept(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.stored(*(str(n) * 20_000 for n in range(4)))  # a frame each
    studio.postman.outcomes[ANNA].extend([Sent(), Sent(), Trouble("429")])
    studio.push()
    assert studio.cursor(ANNA) == (1, 2)
    studio.push()
    assert studio.heard_by(ANNA).repeats == 0
    assert studio.cursor(ANNA) == (1, 4)


def test_a_trouble_at_the_end_leaves_the_watch(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.ends()
    studio.postman.outcomes[ANNA].append(Trouble("timeout"))
    studio.push()
    assert studio.cursor(ANNA) == (1, 0)
    studio.push()
    assert studio.postman.types(ANNA) == ["watching", "final"]


def test_no_end_is_told_before_the_text_that_it_ends(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.stored("all of it")
    studio.ends()
    studio.postman.outcomes[ANNA].append(Trouble("429"))
    studio.push()
    assert studio.postman.types(ANNA) == ["watching"]
    studio.push()
    assert studio.postman.types(ANNA) == ["watching", "chunks", "final"]


# --- dying in between ------------------------------------------------------------------------------------------
class Died(BaseException):
    pass


def test_a_push_that_dies_between_sending_and_its_cursor_repeats_and_leaves_no_gap(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.stored("a", "b")

    def die(name: str) -> None:
        if name == "advance":
            raise Died

    studio.connections.before = die
    with pytest.raises(Died):
        studio.push()
    studio.connections.before = lambda name: None
    studio.stored("c")
    studio.push()
    listener = studio.heard_by(ANNA)
    assert (listener.text, listener.repeats) == ("abc", 2)


def test_a_restart_that_was_told_but_not_saved_is_told_again_and_does_no_harm(studio: Studio) -> None:
    studio.stored("old")
    studio.watch(ANNA)
    studio.becomes(held_record(stream=True, attempt=2))
    studio.stored("n", "ew", attempt=2)
    studio.connections.troubles.add("advance", StoreTrouble.UNSENT)
    with pytest.raises(Unavailable):
        studio.push()
    studio.push()
    assert studio.postman.types(ANNA).count("restarted") == 2
    assert studio.heard_by(ANNA).text == "new"


def test_a_watch_registered_at_the_very_moment_of_the_final_write_hears_of_it(studio: Studio) -> None:
    """Before the row is there the push finds nobody, and then the record is final; after it the push finds it."""
    moments = ["find", "watchers_of", "watch", "advance", "unwatch"]
    for moment in moments:
        studio = Studio()
        studio.connect(ANNA)
        studio.stored("a")
        done: list[str] = []

        def end(name: str, moment: str = moment, studio: Studio = studio, done: list[str] = done) -> None:
            if name == moment and not done:
                done.append(name)
                studio.ends()
                studio.push()

        studio.connections.before = end
        studio.watch(ANNA)
        if not done:
            continue
        listener = studio.heard_by(ANNA)
        assert listener.final is not None, moment
        assert listener.text == "a"


def test_a_cursor_of_an_old_watch_does_not_move_the_new_one(studio: Studio) -> None:
    """Else the new one would begin where the old one was: a gap."""
    studio.watch(ANNA)
    studio.stored("a", "b")
    old = studio.connections.watchers_of(JOB_ID)
    studio.connections.watch(Watch(ANNA, JOB_ID, TENANT, "new", 1, 0), 0)
    serve(old, studio.relay)
    assert studio.cursor(ANNA) == (1, 0)
    studio.ends()
    serve(old, studio.relay)
    assert studio.postman.types(ANNA).count("final") == 0  # it is not at its end yet
    assert studio.cursor(ANNA) == (1, 0)


def test_an_unreachable_table_is_told_after_the_others_were_served(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.watch(BEN)
    studio.stored("a")
    studio.connections.troubles.add("advance", StoreTrouble.REFUSED)  # Anna's
    with pytest.raises(Unavailable):
        studio.push()
    assert (studio.cursor(ANNA), studio.cursor(BEN)) == ((1, 0), (1, 1))


def test_a_chunk_behind_a_gap_waits_for_what_is_missing(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.chunks.append(JOB_ID, Chunk(1, 1, "b"), 0)
    studio.push()
    assert studio.postman.types(ANNA) == ["watching"]
    studio.chunks.append(JOB_ID, Chunk(1, 0, "a"), 0)
    studio.push()
    assert studio.heard_by(ANNA).text == "ab"


# --- stores that cannot be reached ---------------------------------------------------------------------------------
@pytest.mark.parametrize("call", ["find", "watchers_of", "watch", "advance"])
def test_a_table_that_cannot_be_reached_is_told_to_who_asked(studio: Studio, call: str) -> None:
    studio.stored("a")
    studio.connections.troubles.add(call, StoreTrouble.REFUSED)
    frames = studio.watch(ANNA)
    assert (frames[-1]["code"], frames[-1]["job_id"]) == ("unavailable", JOB_ID)
    studio.watch(ANNA)
    assert studio.heard_by(ANNA).text == "a"


def test_a_record_that_cannot_be_read_is_told_and_logged(studio: Studio) -> None:
    studio.watch(ANNA)
    studio.becomes({**held_record(stream=True), "lease_until": "broken"})
    assert studio.watch(ANNA)[-1]["code"] == "unreadable"
    assert studio.say(ANNA, action="ping") == [{"type": "pong"}]
    assert [step for step, _ in studio.notices] == ["unreadable_record", "unreadable_record"]


def test_one_job_s_trouble_does_not_hide_the_others_from_a_ping(studio: Studio) -> None:
    studio.connect(ANNA, job_ids=(JOB_ID, OTHER_JOB))
    studio.becomes(held_record(pk=OTHER_JOB, stream=True))
    studio.watch(ANNA)
    studio.watch(ANNA, OTHER_JOB)
    studio.stored("two", job_id=OTHER_JOB)
    studio.store.troubles.add("read", StoreTrouble.REFUSED)  # the first job's
    assert [frame["type"] for frame in studio.say(ANNA, action="ping")] == ["pong", "chunks", "error"]


def test_who_is_gone_while_a_table_cannot_be_reached_is_no_trouble(studio: Studio) -> None:
    studio.connections.troubles.add("find", StoreTrouble.REFUSED)
    studio.connections.troubles.add("close", StoreTrouble.REFUSED)
    studio.postman.gone.add(ANNA)
    assert studio.watch(ANNA) == []


def test_nothing_that_was_said_is_logged(studio: Studio) -> None:
    studio.stored("a secret")
    studio.watch(ANNA)
    studio.postman.outcomes[ANNA].append(Trouble("429"))
    studio.stored("another")
    studio.push()
    assert "secret" not in str(studio.notices)
    assert "another" not in str(studio.notices)
