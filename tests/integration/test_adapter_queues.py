"""Sending to SQS and SNS: batches that they take, what they refuse told by position, nothing lost in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from lambdas.adapters.batching import batches, deliver, size_of
from lambdas.adapters.clients import client
from lambdas.adapters.environment import Environment
from lambdas.adapters.outbox import AwsOutbox, outbox_of
from lambdas.adapters.sns import SnsTopic
from lambdas.adapters.sqs import HIDE_MAX_S, SqsQueue
from lambdas.core.envelope import written
from lambdas.core.ports import Message, Unavailable
from tests.integration.cloud import Cloud


def message(
    body: str = "{}", group: str = "acme", delay_s: int = 0, *, urgent: bool = False, **attributes: str
) -> Message:
    return Message(body, attributes or {"tenant": "acme"}, group, delay_s, urgent)


@pytest.fixture
def queue(cloud: Cloud, pauses: list[float]) -> SqsQueue:
    return SqsQueue(client("sqs"), cloud.work_url)


@pytest.fixture
def topic(cloud: Cloud, pauses: list[float]) -> SnsTopic:
    return SnsTopic(client("sns"), cloud.topic_arn)


# --- batches -------------------------------------------------------------------------------------
class Service:
    """Takes batches; `failing[call]` are the ids that it refuses in that call."""

    def __init__(self, *failing: list[int] | Exception) -> None:
        self.failing, self.seen = list(failing), []  # type: ignore[var-annotated]

    def __call__(self, batch: Any) -> dict[str, Any]:
        self.seen.append(list(batch))
        refused = self.failing.pop(0) if self.failing else []
        if isinstance(refused, Exception):
            raise refused
        return {"Failed": [{"Id": str(one), "Code": "InternalError", "SenderFault": False} for one in refused]}


def test_twenty_five_messages_go_in_three_batches_of_at_most_ten():
    service = Service()
    assert deliver([message() for _ in range(25)], batch_bytes=1_000_000, send=service) == set()
    assert service.seen == [list(range(10)), list(range(10, 20)), list(range(20, 25))]


def test_nothing_to_send_makes_no_call():
    service = Service()
    assert deliver([], batch_bytes=1_000, send=service) == set()
    assert service.seen == []


def test_sqs_15_a_batch_is_cut_by_bytes_too():
    pair = [message("x" * 600_000), message("y" * 600_000), message("z")]
    assert list(batches(pair, 1_000_000)) == [[0], [1, 2]]


def test_sqs_15_bytes_are_counted_as_utf_8_and_with_attributes():
    assert size_of(Message("\u4e16" * 10, {}, "g")) == 30
    assert size_of(Message("ab", {"name": "\u00e9"}, "g")) == 2 + len("name") + len("String") + 2
    assert list(batches([message("\u4e16" * 30), message("\u4e16" * 30)], 190)) == [[0], [1]]


def test_a_message_of_exactly_the_limit_shares_no_batch_and_is_sent():
    exact = Message("x" * 100, {}, "g")
    assert list(batches([exact, Message("y", {}, "g")], 100)) == [[0], [1]]
    assert list(batches([Message("x" * 99, {}, "g"), Message("y", {}, "g")], 100)) == [[0, 1]]


def test_sqs_14_refused_ids_are_repeated_alone_and_then_taken(pauses: list[float]):
    service = Service([1, 2], [2])
    assert deliver([message() for _ in range(3)], batch_bytes=1_000, send=service) == set()
    assert service.seen == [[0, 1, 2], [1, 2], [2]]
    assert len(pauses) == 2
    assert pauses == sorted(pauses)


def test_sqs_14_what_is_refused_to_the_end_is_told_by_its_position(pauses: list[float]):
    service = Service([], [13], [13], [13])
    assert deliver([message() for _ in range(15)], batch_bytes=100_000, send=service) == {13}
    assert service.seen[1:] == [[10, 11, 12, 13, 14], [13], [13]]


class AllButTheSecond:
    """A client of SQS or SNS that answers 200, and says of each batch's second message that it was not taken."""

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        return lambda **arguments: {"Successful": [], "Failed": [{"Id": "1", "SenderFault": False}]}


@pytest.mark.parametrize(
    "send", [SqsQueue(AllButTheSecond(), "url").send, SnsTopic(AllButTheSecond(), "arn").publish], ids=["sqs", "sns"]
)
def test_sqs_14_what_the_service_says_that_it_did_not_take_is_told(
    pauses: list[float], send: Callable[[list[Message]], set[int]]
):
    assert send([message(), message(), message()]) == {1}


@pytest.mark.parametrize(
    "trouble",
    [
        ClientError({"Error": {"Code": "AccessDenied"}}, "SendMessageBatch"),
        EndpointConnectionError(endpoint_url="https://sqs"),
    ],
)
def test_a_batch_that_cannot_be_sent_takes_no_other_with_it(trouble: Exception, pauses: list[float]):
    service = Service(trouble)
    assert deliver([message() for _ in range(12)], batch_bytes=100_000, send=service) == set(range(10))
    assert service.seen == [list(range(10)), [10, 11]]


# --- SQS -----------------------------------------------------------------------------------------
def test_a_message_arrives_with_body_attributes_and_group(cloud: Cloud, queue: SqsQueue):
    assert queue.send([message('{"a":1}', "globex", event_type="job.dispatched", attempt="3")]) == set()
    (found,) = cloud.receive(cloud.work_url)
    assert found["Body"] == '{"a":1}'
    attributes = {name: value["StringValue"] for name, value in found["MessageAttributes"].items()}
    assert attributes == {"event_type": "job.dispatched", "attempt": "3"}
    assert found["Attributes"]["MessageGroupId"] == "globex"  # fair queues, on a standard queue


def test_messages_of_one_tenant_may_be_in_flight_together(cloud: Cloud, queue: SqsQueue):
    """On a standard queue a group is for fairness and orders nothing: it must not lock the tenant's other messages."""
    queue.send([message(str(number), "acme") for number in range(3)])
    taken = [client("sqs").receive_message(QueueUrl=cloud.work_url).get("Messages", []) for _ in range(3)]
    assert [len(one) for one in taken] == [1, 1, 1]


def test_an_empty_attribute_is_left_out(cloud: Cloud, queue: SqsQueue):
    """SQS refuses an empty StringValue, and with it the message."""
    assert queue.send([message("{}", reason="", tenant="acme")]) == set()
    (found,) = cloud.receive(cloud.work_url)
    assert list(found["MessageAttributes"]) == ["tenant"]


def test_a_delayed_message_is_not_received_yet(cloud: Cloud, queue: SqsQueue):
    queue.send([message("late", delay_s=900), message("now")])
    assert [one["Body"] for one in cloud.receive(cloud.work_url)] == ["now"]
    assert queue.depth() == 1


def test_many_messages_all_arrive_once(cloud: Cloud, queue: SqsQueue):
    assert queue.send([message(str(number)) for number in range(23)]) == set()
    assert sorted(int(one["Body"]) for one in cloud.receive(cloud.work_url)) == list(range(23))
    assert cloud.wire.count("SendMessageBatch") == 3


def test_a_queue_that_refuses_everything_has_taken_nothing(cloud: Cloud, queue: SqsQueue):
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403)
    assert queue.send([message(), message()]) == {0, 1}
    cloud.wire.mend()
    assert cloud.receive(cloud.work_url) == []


def test_a_send_whose_reply_was_lost_is_sent_again_rather_than_lost(cloud: Cloud, queue: SqsQueue):
    cloud.wire.lose("SendMessageBatch")
    assert queue.send([message("once or twice")]) == set()
    assert {one["Body"] for one in cloud.receive(cloud.work_url)} == {"once or twice"}


def test_depth_counts_visible_delayed_and_in_flight(cloud: Cloud, queue: SqsQueue):
    queue.send([message(), message(), message(), message(delay_s=60)])
    client("sqs").receive_message(QueueUrl=cloud.work_url, MaxNumberOfMessages=1)
    assert queue.depth() == 4


def test_depth_of_a_queue_that_cannot_be_asked_is_unavailable(cloud: Cloud, queue: SqsQueue):
    cloud.wire.refuse("GetQueueAttributes", "AccessDenied", 403)
    with pytest.raises(Unavailable):
        queue.depth()


def received(cloud: Cloud) -> dict[str, Any]:
    (found,) = client("sqs").receive_message(QueueUrl=cloud.work_url)["Messages"]
    return dict(found)


def test_a_hidden_message_comes_back_after_its_time_and_not_before(cloud: Cloud, queue: SqsQueue):
    queue.send([message("early")])
    queue.hide(received(cloud)["ReceiptHandle"], 6_000)
    assert cloud.receive(cloud.work_url) == []
    queue.send([message("another")])
    queue.hide(received(cloud)["ReceiptHandle"], 0)
    assert [one["Body"] for one in cloud.receive(cloud.work_url)] == ["another"]


@pytest.mark.parametrize(("asked", "sent"), [(-5, 0), (60, 60), (HIDE_MAX_S, HIDE_MAX_S), (999_999, HIDE_MAX_S)])
def test_hiding_keeps_within_what_sqs_takes(cloud: Cloud, queue: SqsQueue, asked: int, sent: int):
    """Twelve hours are counted from the receive: a minute later they are less."""
    queue.send([message("early")])
    queue.hide(received(cloud)["ReceiptHandle"], asked)
    assert json.loads(cloud.wire.sent[-1].body)["VisibilityTimeout"] == sent


def test_the_longest_hiding_leaves_room_for_the_invocation_that_asks_for_it():
    assert 36_000 < HIDE_MAX_S <= 43_200 - 900


def test_hiding_with_a_receipt_that_is_no_longer_good_is_unavailable(queue: SqsQueue):
    with pytest.raises(Unavailable):
        queue.hide("no receipt", 5)


def test_moto_03_what_sqs_refuses_raw_is_escaped(cloud: Cloud, queue: SqsQueue):
    text = "bell \u0007 vt \u000b nul \u0000 non-character \uffff half \ud800 emoji \U0001f600"
    assert queue.send([message(written({"said": text}))]) == set()
    (found,) = cloud.receive(cloud.work_url)
    assert found["Body"].isascii()
    assert found["Body"].isprintable()
    assert json.loads(found["Body"]) == {"said": text}


# --- SNS -----------------------------------------------------------------------------------------
def test_a_fact_arrives_with_its_attributes(cloud: Cloud, topic: SnsTopic):
    assert topic.publish([message('{"a":1}', event_type="job.completed", tenant="acme")]) == set()
    (found,) = cloud.heard()
    assert (found.body, found.attributes) == ({"a": 1}, {"event_type": "job.completed", "tenant": "acme"})


def test_a_topic_hands_the_group_on_to_its_queues(cloud: Cloud, topic: SnsTopic):
    """Deliveries of a tenant with little in flight go before the backlog of another one."""
    assert topic.publish([message("{}", "globex")]) == set()
    (found,) = cloud.receive(cloud.heard_url)
    assert found["Attributes"]["MessageGroupId"] == "globex"


def test_facts_go_in_batches_within_the_limits_of_sns(cloud: Cloud, topic: SnsTopic):
    small = [message(json.dumps({"n": number})) for number in range(12)]
    large = [message(json.dumps({"n": number, "pad": "x" * 100_000})) for number in range(12, 16)]
    assert topic.publish(small + large) == set()
    assert sorted(one.body["n"] for one in cloud.heard()) == list(range(16))
    assert cloud.wire.count("PublishBatch") == 3  # ten; two and two large ones; two large ones


def test_a_topic_that_refuses_has_taken_nothing(cloud: Cloud, topic: SnsTopic):
    cloud.wire.refuse("PublishBatch", "AuthorizationError", 403)
    assert topic.publish([message(), message()]) == {0, 1}


# --- the outbox ----------------------------------------------------------------------------------
@pytest.fixture
def outbox(cloud: Cloud, pauses: list[float]) -> AwsOutbox:
    return outbox_of(Environment(cloud.environment("dispatch")))


def test_work_letters_and_facts_go_each_to_its_place(cloud: Cloud, outbox: AwsOutbox):
    assert outbox.send_work([message('"work"')]) == set()
    assert outbox.send_letters([message('"letter"')]) == set()
    assert outbox.publish([message('"fact"')]) == set()
    assert cloud.bodies(cloud.work_url) == ["work"]
    assert cloud.bodies(cloud.letters_url) == ["letter"]
    assert [one.body for one in cloud.heard()] == ["fact"]
    assert cloud.bodies(cloud.urgent_url) + cloud.bodies(cloud.urgent_letters_url) == []


def test_urgent_work_and_letters_go_by_queues_of_their_own(cloud: Cloud, outbox: AwsOutbox):
    mixed = [message("1"), message("2", urgent=True), message("3"), message("4", urgent=True)]
    assert outbox.send_work(mixed) == set()
    assert outbox.send_letters(mixed) == set()
    assert (sorted(cloud.bodies(cloud.work_url)), sorted(cloud.bodies(cloud.urgent_url))) == ([1, 3], [2, 4])
    assert sorted(cloud.bodies(cloud.letters_url)) == [1, 3]
    assert sorted(cloud.bodies(cloud.urgent_letters_url)) == [2, 4]


@pytest.mark.parametrize(("queue", "refused"), [("urgent_url", {1, 3, 4}), ("work_url", {0, 2})])
def test_what_one_queue_refuses_is_told_by_its_position_among_all(
    cloud: Cloud, outbox: AwsOutbox, queue: str, refused: set[int]
):
    name = getattr(cloud, queue).rpartition("/")[2]
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403, part=name)
    urgent = (False, True, False, True, True)
    assert outbox.send_work([message(str(n), urgent=one) for n, one in enumerate(urgent)]) == refused


def test_a_queue_that_gets_nothing_is_not_called(cloud: Cloud, outbox: AwsOutbox):
    outbox.send_work([message(urgent=True)])
    outbox.send_letters([])
    assert cloud.wire.count("SendMessageBatch") == 1
