"""The event-stream encoder, held against botocore's decoder."""

from __future__ import annotations

import json
from typing import Any

from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from local.model import frames
from local.model.reply import Reply, pieces, usage


def decoded(data: bytes) -> list[tuple[Any, bytes]]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [(message.headers, message.payload) for message in buffer]


@given(st.dictionaries(st.text("abc-:", min_size=1, max_size=20), st.text(max_size=50)), st.binary(max_size=2000))
def test_what_is_encoded_is_what_botocore_decodes(headers: dict[str, str], payload: bytes) -> None:
    assert decoded(frames.encode(headers, payload)) == [(headers, payload)]


def test_an_exception_frame_carries_its_type_and_message() -> None:
    ((headers, payload),) = decoded(frames.exception("throttlingException", "slow"))
    assert headers[":message-type"] == "exception"
    assert headers[":exception-type"] == "throttlingException"
    assert json.loads(payload) == {"message": "slow"}


@given(st.text(st.characters(exclude_categories=[]), max_size=3000))
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


def test_a_long_answer_has_a_bounded_number_of_frames() -> None:
    assert len(list(pieces("word " * 100_000))) <= 400


def test_a_text_of_lone_surrogates_can_be_sent() -> None:
    reply = Reply("\ud800 broken")
    assert json.loads(reply.document(1))["output"]["message"]["content"][0]["text"] == "\ud800 broken"
    assert len(list(reply.frames(1))) == 4


def test_usage_is_estimated_where_it_is_not_given() -> None:
    assert usage("12345678", "12345", {}) == {"inputTokens": 2, "outputTokens": 2, "totalTokens": 4}
    assert usage("1234", "", {"outputTokens": 7}) == {"inputTokens": 1, "outputTokens": 7, "totalTokens": 8}
    assert usage("1234", "1", {"totalTokens": 99})["totalTokens"] == 99
