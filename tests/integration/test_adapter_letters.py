"""The queues of dead letters and the ledger on moto keep what their ports promise, and so do the fakes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from lambdas.adapters import clients, clock
from lambdas.adapters.environment import Environment
from lambdas.adapters.ledger import DynamoLedger
from lambdas.adapters.sqs_letters import BATCH, SqsDeadLetters, dead_letters_of
from lambdas.core.ports import Unavailable
from tests.builders import any_found
from tests.fakes import FakeDeadLetters, FakeLedger
from tests.integration.cloud import Cloud


@pytest.fixture(params=["sqs", "fake"])
def filled(request: pytest.FixtureRequest) -> Any:
    """A queue of dead letters with 23 in it."""
    if request.param == "fake":
        return FakeDeadLetters(*(any_found(f"letter {n}") for n in range(23)), now=clock.now)
    cloud: Cloud = request.getfixturevalue("cloud")
    sqs = cloud.client("sqs")
    for number in range(23):
        sqs.send_message(QueueUrl=cloud.letters_url, MessageBody=f"letter {number}")
    return SqsDeadLetters(clients.client("sqs"), cloud.letters_url)


def received(box: Any) -> list[Any]:
    found = []
    while page := box.receive(hide_s=600):
        assert len(page) <= BATCH
        found += page
    return found


def test_what_is_received_is_hidden_until_it_is_shown(filled: Any) -> None:
    found = received(filled)
    assert {one.body for one in found} == {f"letter {n}" for n in range(23)}
    assert filled.receive(hide_s=600) == []
    assert filled.total() == 23
    filled.show([one.receipt for one in found])
    assert len(received(filled)) == 23


def test_what_is_removed_is_gone(filled: Any) -> None:
    found = received(filled)
    assert filled.remove([one.receipt for one in found[:12]]) == set()
    filled.show([one.receipt for one in found[12:]])
    assert {one.body for one in received(filled)} == {one.body for one in found[12:]}


def test_nothing_to_remove_or_show_is_no_call(filled: Any) -> None:
    assert filled.remove([]) == set()
    filled.show([])


def test_a_letter_comes_with_its_attributes_its_time_and_its_group(cloud: Cloud) -> None:
    before = clock.now()
    cloud.client("sqs").send_message(
        QueueUrl=cloud.letters_url,
        MessageBody="x",
        MessageGroupId="acme",
        MessageAttributes={
            "type": {"DataType": "String", "StringValue": "summarize"},
            "raw": {"DataType": "Binary", "BinaryValue": b"\x00"},
        },
    )
    (found,) = SqsDeadLetters(clients.client("sqs"), cloud.letters_url).receive(hide_s=0)
    assert (found.attributes, found.group, found.moved) == ({"type": "summarize"}, "acme", False)
    assert before <= found.sent_at <= clock.now()


class Answering:
    """A client that answers one call."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __getattr__(self, _call: str) -> Any:
        return lambda **_arguments: self.answer


def test_what_sqs_moved_itself_is_known_by_the_source_that_sqs_names() -> None:
    """Requested by name: moto does not make this attribute, our local runtime does."""
    message = {
        "MessageId": "1", "ReceiptHandle": "r", "Body": "x",
        "Attributes": {"SentTimestamp": "1795966244123", "DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:1:work"},
    }  # fmt: skip
    (found,) = SqsDeadLetters(Answering({"Messages": [message]}), "url").receive(hide_s=1)
    assert found.moved
    assert found.sent_at.isoformat() == "2026-11-29T15:30:44.123000+00:00"


def test_what_could_not_be_removed_is_told_by_its_position() -> None:
    """SQS-14."""
    box = SqsDeadLetters(Answering({"Failed": [{"Id": "1"}]}), "url")
    assert box.remove(["a"] * 12) == {1, 11}


def test_a_queue_that_refuses_is_unavailable_and_hides_nothing_for_ever(cloud: Cloud) -> None:
    box = SqsDeadLetters(clients.client("sqs"), cloud.letters_url)
    cloud.wire.refuse("ReceiveMessage", "AccessDenied", 403)
    with pytest.raises(Unavailable):
        box.receive(hide_s=1)
    cloud.wire.refuse("DeleteMessageBatch", "AccessDenied", 403)
    assert box.remove(["r"] * 11) == set(range(11))
    cloud.wire.refuse("ChangeMessageVisibilityBatch", "AccessDenied", 403)
    box.show(["r"])


def test_the_queues_are_those_of_the_environment(cloud: Cloud) -> None:
    boxes = dead_letters_of(Environment(cloud.environment("admin")))
    assert list(boxes) == ["work", "urgent", "inbox", "deliveries"]
    cloud.client("sqs").send_message(QueueUrl=cloud.stack.outputs["InboxDlqUrl"], MessageBody="x")
    assert [boxes[name].total() for name in boxes] == [0, 0, 1, 0]


# --- the ledger --------------------------------------------------------------------------------------
@pytest.fixture(params=["dynamodb", "fake"])
def ledger(request: pytest.FixtureRequest) -> Any:
    if request.param == "fake":
        return FakeLedger()
    cloud: Cloud = request.getfixturevalue("cloud")
    return DynamoLedger(clients.client("dynamodb"), cloud.jobs_table)


def test_an_item_is_created_once_and_saved_under_a_condition(ledger: Any) -> None:
    assert ledger.create("review", "a", {"status": "repaired", "done": False, "list": [{"n": 1}]})
    assert not ledger.create("review", "a", {"status": "discarded"})
    assert not ledger.save("review", "a", {"done": True}, {"status": "discarded"})
    assert ledger.save("review", "a", {"done": True}, {"status": "repaired", "done": False})
    assert not ledger.save("review", "b", {"done": True})
    kept = ledger.read("review", "a")
    assert (kept["status"], kept["done"], kept["list"], kept["sk"]) == ("repaired", True, [{"n": 1}], "a")
    assert ledger.read("review", "b") is None


def test_a_partition_is_paged_in_order(ledger: Any) -> None:
    for name in ("c", "a", "b"):
        ledger.create("review", name, {"n": 1})
    ledger.create("other", "a", {"n": 1})
    assert [one["sk"] for one in ledger.page("review", "", 2)] == ["a", "b"]
    assert [one["sk"] for one in ledger.page("review", "b", 2)] == ["c"]


def test_a_lease_is_held_by_one_until_its_time_is_over(ledger: Any) -> None:
    now = clock.now()
    soon, later = now + timedelta(seconds=30), now + timedelta(seconds=60)
    assert ledger.take("redrive-work", "one", now, soon) == {}
    assert ledger.take("redrive-work", "other", now, soon) is None
    assert ledger.take("redrive-work", "one", now, soon) == {}
    assert ledger.keep("redrive-work", "one", soon, {"at": 5})
    assert not ledger.keep("redrive-work", "other", soon, {"at": 6})
    assert ledger.take("redrive-work", "other", later, later) == {"at": 5}
    assert not ledger.give_back("redrive-work", "one", {})
    assert ledger.give_back("redrive-work", "other", {"at": 7})
    assert ledger.take("redrive-work", "third", now, soon) == {"at": 7}
