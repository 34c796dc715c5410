"""What of all that is said about a stream is new: whatever the wire does to it, the text is the one that was said."""

from __future__ import annotations

from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from neverdrop_client import Job, Restarted, Text
from neverdrop_client.cursor import Cursor, Gap
from neverdrop_client.messages import Chunks, Ending, Message, RestartedAt, Watching

JOB = cast("Job", {"job_id": "j1", "status": "COMPLETED"})
Attempts = list[list[str]]  # the texts of attempts 1, 2, …; the last one is the job's


def said_of(attempts: Attempts) -> list[Message]:
    """Everything that is ever said to somebody who watches from the beginning."""
    messages: list[Message] = [Watching(1, 0)]
    for attempt, texts in enumerate(attempts, 1):
        if attempt > 1:
            messages.append(RestartedAt(attempt))
        messages += [Chunks(attempt, n, (text,)) for n, text in enumerate(texts)]
    messages.append(Ending(len(attempts), len(attempts[-1]), JOB, {}))
    return messages


def asked_again(attempts: Attempts, cursor: Cursor) -> list[Message]:
    """What a finished job's watch is answered with, in one piece."""
    last, texts = len(attempts), attempts[-1]
    start = cursor.next if cursor.attempt == last else 0
    cursor.asked = cursor.next
    restart: list[Message] = [RestartedAt(last)] if cursor.attempt not in (None, last) else []
    return [
        Watching(last, start),
        *restart,
        Chunks(last, start, tuple(texts[start:])),
        Ending(last, len(texts), JOB, {}),
    ]


class Reader:
    """Keeps what a user of the stream would keep."""

    def __init__(self) -> None:
        self.cursor = Cursor()
        self.kept: list[Text] = []

    def read(self, messages: list[Message]) -> None:
        """Stops where a stream would ask again."""
        for message in messages:
            try:
                for event in self.cursor.take(message):
                    if isinstance(event, Restarted):
                        assert self.kept, "a restart of nothing"
                        self.kept.clear()
                    else:
                        assert isinstance(event, Text)
                        self.kept.append(event)
            except Gap:
                continue
            if self.cursor.ending:
                return


attempts_ = st.lists(st.lists(st.text(max_size=3), max_size=6), min_size=1, max_size=4)


@settings(max_examples=400, deadline=None)
@given(attempts_, st.data())
def test_the_text_is_whole_whatever_is_lost_doubled_or_reordered(attempts: Attempts, data: st.DataObject) -> None:
    messages = said_of(attempts)
    arrived = data.draw(st.lists(st.sampled_from(messages), max_size=3 * len(messages)))
    reader = Reader()
    reader.read(arrived)
    numbers = [(text.attempt, text.n) for text in reader.kept]
    assert numbers == [(reader.cursor.attempt, n) for n in range(reader.cursor.next)]
    if not reader.cursor.ending:
        reader.read(asked_again(attempts, reader.cursor))
    assert reader.cursor.ending is not None
    assert [text.text for text in reader.kept] == attempts[-1]


@given(attempts_)
def test_what_arrives_as_it_was_said_needs_no_second_question(attempts: Attempts) -> None:
    reader = Reader()
    for message in said_of(attempts):
        reader.read([message])
    assert reader.cursor.ending is not None
    assert [text.text for text in reader.kept] == attempts[-1]


@given(st.lists(st.text(max_size=3), min_size=1, max_size=6), st.integers(0, 5))
def test_who_comes_back_goes_on_behind_what_it_has(texts: list[str], seen: int) -> None:
    last = Text(1, min(seen, len(texts) - 1), "")
    reader = Reader()
    reader.cursor = Cursor(last)
    reader.read(asked_again([texts], reader.cursor))
    assert [text.text for text in reader.kept] == texts[last.n + 1 :]


@given(st.lists(st.text(max_size=3), max_size=6), st.integers(0, 9), st.sampled_from([None, 0, 1]))
def test_who_counted_further_than_the_text_goes_begins_again(texts: list[str], beyond: int, lost: int | None) -> None:
    reader = Reader()
    reader.kept = [Text(1, len(texts) + beyond, "of something else")]
    reader.cursor = Cursor(reader.kept[0])
    reader.cursor.asked = reader.cursor.next
    answer: list[Message] = [Watching(1, 0), RestartedAt(1), Chunks(1, 0, tuple(texts)), Ending(1, len(texts), JOB, {})]
    reader.read([message for n, message in enumerate(answer) if n != lost])
    assert reader.cursor.ending is not None
    assert [text.text for text in reader.kept] == texts
