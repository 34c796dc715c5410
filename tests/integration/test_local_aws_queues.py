"""Queues deliver by AWS's rules, and as fast when they are deep as when they are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.aws.lock import MESSAGES
from local.clock import VirtualClock
from tests.integration.local_aws import Aws, error_code, serving
from tests.integration.local_work import work_of
from tests.integration.stock_moto import stock


@pytest.fixture(scope="module")
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as running:
        yield running


@pytest.fixture(scope="module")
def aws(clock: VirtualClock) -> Iterator[Aws]:
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def _empty(aws: Aws) -> None:
    aws.server.reset()


def send(aws: Aws, url: str, *bodies: str, **more) -> None:
    for body in bodies:
        aws.client("sqs").send_message(QueueUrl=url, MessageBody=body, **more)


def receive(aws: Aws, url: str, most: int = 10, **more) -> Any:
    asked = {"AttributeNames": ["All"], "MessageAttributeNames": ["All"], **more}
    return aws.client("sqs").receive_message(QueueUrl=url, MaxNumberOfMessages=most, **asked).get("Messages", [])


def bodies(messages: list[dict[str, Any]]) -> list[str]:
    return [message["Body"] for message in messages]


def depths(aws: Aws, url: str) -> tuple[int, int, int]:
    """Visible, delayed, in flight."""
    names = ("", "Delayed", "NotVisible")
    answer = aws.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    visible, delayed, in_flight = (int(answer[f"ApproximateNumberOfMessages{name}"]) for name in names)
    return visible, delayed, in_flight


def arn_of(aws: Aws, url: str) -> str:
    asked = {"QueueUrl": url, "AttributeNames": ["QueueArn"]}
    return str(aws.client("sqs").get_queue_attributes(**asked)["Attributes"]["QueueArn"])


def queue_with_dlq(aws: Aws, most: int = 2) -> tuple[str, str]:
    dlq = aws.queue("dlq")
    policy = f'{{"deadLetterTargetArn": "{arn_of(aws, dlq)}", "maxReceiveCount": {most}}}'
    return aws.queue("work", RedrivePolicy=policy, VisibilityTimeout="300"), dlq


def test_depths_are_counted_when_they_are_asked_for(aws, clock):
    url = aws.queue(VisibilityTimeout="300")
    send(aws, url, "a", "b")
    send(aws, url, "c", DelaySeconds=900)
    receive(aws, url, most=1)
    assert depths(aws, url) == (1, 1, 1)
    clock.advance(301)
    assert depths(aws, url) == (2, 1, 0)
    clock.advance(600)
    assert depths(aws, url) == (3, 0, 0)


def test_one_depth_may_be_asked_for_by_name(aws):
    url = aws.queue()
    send(aws, url, "a")
    answer = aws.client("sqs").get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages", "VisibilityTimeout"]
    )
    assert answer["Attributes"] == {"ApproximateNumberOfMessages": "1", "VisibilityTimeout": "30"}


def test_receive_counts_rise_and_attributes_come_along(aws, clock):
    url = aws.queue(VisibilityTimeout="300")
    send(aws, url, "a", MessageAttributes={"tenant": {"DataType": "String", "StringValue": "acme"}})
    for count in ("1", "2", "3"):
        (message,) = receive(aws, url)
        assert message["Attributes"]["ApproximateReceiveCount"] == count
        assert message["MessageAttributes"]["tenant"]["StringValue"] == "acme"
        clock.advance(301)


def test_an_exhausted_message_goes_to_the_dead_letter_queue_with_its_source(aws, clock):
    url, dlq = queue_with_dlq(aws, most=2)
    send(aws, url, "poison")
    for _ in range(2):
        assert bodies(receive(aws, url)) == ["poison"]
        clock.advance(301)
    assert receive(aws, url) == []
    (letter,) = receive(aws, dlq)
    assert letter["Body"] == "poison"
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(aws, url)
    assert letter["Attributes"]["ApproximateReceiveCount"] == "3"


@pytest.mark.parametrize("asked", [["All"], ["DeadLetterQueueSourceArn"]])
def test_only_a_letter_that_sqs_itself_has_moved_knows_its_source(aws, clock, asked):
    url, dlq = queue_with_dlq(aws, most=1)
    send(aws, url, "moved")
    receive(aws, url)
    clock.advance(301)
    receive(aws, url)
    send(aws, dlq, "sent")
    names = {"AttributeNames": [], "MessageSystemAttributeNames": asked}
    shown = receive(aws, dlq, **names, VisibilityTimeout=0)
    letters = {letter["Body"]: letter.get("Attributes", {}) for letter in shown}
    assert letters["moved"]["DeadLetterQueueSourceArn"] == arn_of(aws, url)
    assert "DeadLetterQueueSourceArn" not in letters["sent"]
    unasked = {
        letter["Body"]: letter.get("Attributes", {}) for letter in receive(aws, dlq, AttributeNames=["SenderId"])
    }
    assert ["DeadLetterQueueSourceArn" in attributes for attributes in unasked.values()] == [False, False]


def test_letters_can_be_looked_at_without_hiding_them_and_deleted_afterwards(aws):
    _, dlq = queue_with_dlq(aws)
    send(aws, dlq, "letter")
    for count in ("1", "2", "3"):
        (letter,) = receive(aws, dlq, VisibilityTimeout=0)
        assert letter["Attributes"]["ApproximateReceiveCount"] == count
    assert depths(aws, dlq) == (1, 0, 0)
    (letter,) = receive(aws, dlq, VisibilityTimeout=450)
    assert depths(aws, dlq) == (0, 0, 1)
    aws.client("sqs").delete_message(QueueUrl=dlq, ReceiptHandle=letter["ReceiptHandle"])
    assert depths(aws, dlq) == (0, 0, 0)


def test_an_expired_message_is_gone_and_hides_nobody(aws, clock):
    url = aws.queue(MessageRetentionPeriod="600")
    send(aws, url, "old")
    clock.advance(601)
    send(aws, url, "new")
    assert bodies(receive(aws, url)) == ["new"]
    assert depths(aws, url) == (0, 0, 1)


def test_stock_moto_lets_an_expired_message_hide_the_others(aws, clock):
    url = aws.queue(MessageRetentionPeriod="600")
    with stock("SQSBackend.receive_message"):
        send(aws, url, "old")
        clock.advance(601)
        send(aws, url, "new")
        assert receive(aws, url) == []


def test_the_age_of_a_dead_letter_counts_from_its_first_queue(aws, clock):
    url, dlq = queue_with_dlq(aws, most=1)
    aws.client("sqs").set_queue_attributes(QueueUrl=dlq, Attributes={"MessageRetentionPeriod": "3600"})
    send(aws, url, "poison")
    receive(aws, url)
    clock.advance(3000)
    receive(aws, url)
    assert depths(aws, dlq) == (1, 0, 0)
    clock.advance(700)
    assert receive(aws, dlq) == []


def test_a_handle_that_a_later_receive_replaced_deletes_nothing(aws, clock):
    url = aws.queue(VisibilityTimeout="300")
    send(aws, url, "a")
    (first,) = receive(aws, url)
    clock.advance(301)
    (second,) = receive(aws, url)
    aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
    assert depths(aws, url) == (0, 0, 1)
    aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=second["ReceiptHandle"])
    assert depths(aws, url) == (0, 0, 0)
    aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=second["ReceiptHandle"])
    with stock("Queue.delete_message"):
        send(aws, url, "b")
        (first,) = receive(aws, url)
        clock.advance(301)
        receive(aws, url)
        aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
        assert depths(aws, url) == (0, 0, 0)


def test_an_invented_handle_is_refused(aws):
    url = aws.queue()
    with pytest.raises(ClientError) as error:
        aws.client("sqs").delete_message(QueueUrl=url, ReceiptHandle="invented")
    assert error_code(error.value) == "ReceiptHandleIsInvalid"


def test_hiding_counts_from_the_receive_and_not_from_sending(aws, clock):
    url = aws.queue(VisibilityTimeout="300", MessageRetentionPeriod="1209600")
    send(aws, url, "a")
    clock.advance(3 * 86400)
    (message,) = receive(aws, url)
    hide = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}
    aws.client("sqs").change_message_visibility(**hide, VisibilityTimeout=900)
    clock.advance(500)
    assert receive(aws, url) == []
    with pytest.raises(ClientError, match="beyond the limit"):
        aws.client("sqs").change_message_visibility(**hide, VisibilityTimeout=43200)
    with stock("SQSBackend.change_message_visibility"), pytest.raises(ClientError, match="beyond the limit"):
        aws.client("sqs").change_message_visibility(**hide, VisibilityTimeout=900)


def test_visibility_zero_shows_a_message_at_once(aws):
    url = aws.queue(VisibilityTimeout="300")
    send(aws, url, "a")
    (message,) = receive(aws, url)
    aws.client("sqs").change_message_visibility(
        QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
    )
    assert bodies(receive(aws, url)) == ["a"]


def test_only_a_message_in_flight_can_be_hidden_longer(aws, clock):
    url = aws.queue(VisibilityTimeout="300")
    send(aws, url, "a")
    (message,) = receive(aws, url)
    clock.advance(301)
    late = {"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 60}
    with pytest.raises(aws.client("sqs").exceptions.MessageNotInflight):
        aws.client("sqs").change_message_visibility(**late)
    batch = aws.client("sqs").change_message_visibility_batch(
        QueueUrl=url, Entries=[{"Id": "1", "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 60}]
    )
    assert [failed["Id"] for failed in batch["Failed"]] == ["1"]


def test_a_batch_hides_each_message_for_itself_and_says_what_was_wrong_with_the_others(aws, clock):
    url = aws.queue(VisibilityTimeout="300")
    send(aws, url, "a", "b", "c", "d")
    handles = {message["Body"]: message["ReceiptHandle"] for message in receive(aws, url)}
    aws.client("sqs").change_message_visibility(QueueUrl=url, ReceiptHandle=handles["c"], VisibilityTimeout=0)
    entries = [
        {"Id": "a", "ReceiptHandle": handles["a"], "VisibilityTimeout": 6_000},
        {"Id": "b", "ReceiptHandle": handles["b"], "VisibilityTimeout": 0},
        {"Id": "c", "ReceiptHandle": handles["c"], "VisibilityTimeout": 60},
        {"Id": "d", "ReceiptHandle": handles["d"], "VisibilityTimeout": 43_200},
        {"Id": "e", "ReceiptHandle": "invented", "VisibilityTimeout": 60},
        {"Id": "f", "ReceiptHandle": handles["a"], "VisibilityTimeout": 43_201},
    ]
    clock.advance(1)
    answer = aws.client("sqs").change_message_visibility_batch(QueueUrl=url, Entries=entries)
    assert [one["Id"] for one in answer["Successful"]] == ["a", "b"]
    assert {one["Id"]: one["Code"] for one in answer["Failed"]} == {
        "c": "AWS.SimpleQueueService.MessageNotInflight",
        "d": "InvalidParameterValue",
        "e": "ReceiptHandleIsInvalid",
        "f": "InvalidParameterValue",
    }
    assert sorted(bodies(receive(aws, url))) == ["b", "c"]
    clock.advance(500)
    assert sorted(bodies(receive(aws, url))) == ["b", "c", "d"]
    too_long = {"Id": "a", "ReceiptHandle": handles["a"], "VisibilityTimeout": 43_200}
    with stock("SQSBackend.change_message_visibility_batch"), pytest.raises(ClientError, match="beyond the limit"):
        aws.client("sqs").change_message_visibility_batch(QueueUrl=url, Entries=[too_long])


def test_a_single_job_of_another_tenant_does_not_wait_behind_a_flood(aws):
    url = aws.queue()
    for number in range(40):
        send(aws, url, f"noisy-{number}", MessageGroupId="noisy")
    send(aws, url, "quiet", MessageGroupId="quiet")
    assert bodies(receive(aws, url, most=10))[:2] == ["noisy-0", "quiet"]
    with stock("SQSBackend.receive_message"):
        send(aws, url, "quiet too", MessageGroupId="quiet")
        assert "quiet too" not in bodies(receive(aws, url, most=10))


def test_messages_without_groups_come_oldest_first(aws):
    url = aws.queue()
    send(aws, url, *"abcdef")
    assert bodies(receive(aws, url, most=4)) == ["a", "b", "c", "d"]


def test_a_skip_of_the_clock_ends_the_wait_for_a_delayed_message(aws, clock, monkeypatch):
    url = aws.queue()
    send(aws, url, "later", DelaySeconds=900)
    assert receive(aws, url, WaitTimeSeconds=0) == []
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(901)

    monkeypatch.setattr(MESSAGES, "wait", wait)
    assert bodies(receive(aws, url, WaitTimeSeconds=20)) == ["later"]
    assert [seconds <= 1 for seconds in waits] == [True]


def test_sending_is_the_same_work_into_a_deep_queue(aws):
    url = aws.queue()

    def work() -> int:
        return work_of(lambda: send(aws, url, "x"))

    shallow = work()
    for _ in range(30):
        aws.client("sqs").send_message_batch(
            QueueUrl=url, Entries=[{"Id": str(number), "MessageBody": "x"} for number in range(10)]
        )
    assert work() < 1.1 * shallow
    with stock(
        "Queue.attributes",
        "Queue.messages",
        "Queue.approximate_number_of_messages_delayed",
        "Queue.approximate_number_of_messages_not_visible",
    ):
        assert work() > 2 * shallow


def start_move(aws: Aws, source: str, destination: str | None = None) -> Any:
    target = {"DestinationArn": arn_of(aws, destination)} if destination else {}
    aws.client("sqs").start_message_move_task(SourceArn=arn_of(aws, source), **target)
    return aws.client("sqs").list_message_move_tasks(SourceArn=arn_of(aws, source))["Results"][0]


def test_moto_06_letters_that_sqs_moved_go_back_to_their_source_as_new_messages(aws, clock):
    url, dlq = queue_with_dlq(aws, most=1)
    send(aws, url, "poison", MessageGroupId="acme")
    (before,) = receive(aws, url)
    clock.advance(301)
    assert receive(aws, url) == []
    task = start_move(aws, dlq)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1)
    (after,) = receive(aws, url)
    assert after["Body"] == "poison"
    assert after["MessageId"] != before["MessageId"]
    assert after["Attributes"]["ApproximateReceiveCount"] == "1"
    assert after["Attributes"]["MessageGroupId"] == "acme"


def test_letters_that_were_sent_to_a_dlq_have_no_source(aws):
    _, dlq = queue_with_dlq(aws)
    send(aws, dlq, "envelope")
    task = start_move(aws, dlq)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert depths(aws, dlq) == (1, 0, 0)


def test_letters_that_were_sent_to_a_dlq_can_be_moved_to_a_named_queue(aws):
    url, dlq = queue_with_dlq(aws)
    send(aws, dlq, "envelope", MessageAttributes={"reason": {"DataType": "String", "StringValue": "REFUSED"}})
    task = start_move(aws, dlq, url)
    assert (task["Status"], task["DestinationArn"]) == ("COMPLETED", arn_of(aws, url))
    (message,) = receive(aws, url)
    assert message["MessageAttributes"]["reason"]["StringValue"] == "REFUSED"


def test_letters_that_sqs_moved_can_be_moved_to_a_named_queue_and_know_no_source_there(aws, clock):
    url, dlq = queue_with_dlq(aws, most=1)
    other = aws.queue("other")
    send(aws, url, "poison")
    receive(aws, url)
    clock.advance(301)
    receive(aws, url)
    assert start_move(aws, dlq, other)["Status"] == "COMPLETED"
    (message,) = receive(aws, other)
    assert message["Body"] == "poison"
    assert "DeadLetterQueueSourceArn" not in message["Attributes"]
    assert receive(aws, url) == []


def test_a_move_stops_at_the_first_letter_without_a_source_and_its_task_says_so(aws, clock):
    url, dlq = queue_with_dlq(aws, most=1)
    send(aws, url, "moved")
    receive(aws, url)
    clock.advance(301)
    receive(aws, url)
    send(aws, dlq, "sent")
    task = start_move(aws, dlq)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert (task["ApproximateNumberOfMessagesMoved"], task["ApproximateNumberOfMessagesToMove"]) == (1, 2)
    assert "DestinationArn" not in task
    assert bodies(receive(aws, dlq)) == ["sent"]


def test_a_move_brings_no_expired_letter_back(aws, clock):
    url, dlq = queue_with_dlq(aws)
    aws.client("sqs").set_queue_attributes(QueueUrl=dlq, Attributes={"MessageRetentionPeriod": "600"})
    send(aws, dlq, "old")
    clock.advance(601)
    assert start_move(aws, dlq, url)["ApproximateNumberOfMessagesMoved"] == 0
    assert receive(aws, url) == []


@pytest.mark.parametrize("rate", [0, 501])
def test_a_rate_that_aws_does_not_know_is_refused(aws, rate):
    _, dlq = queue_with_dlq(aws)
    with pytest.raises(ClientError, match="between 1 and 500"):
        aws.client("sqs").start_message_move_task(SourceArn=arn_of(aws, dlq), MaxNumberOfMessagesPerSecond=rate)


def test_only_a_dead_letter_queue_can_be_moved_from(aws):
    url, _ = queue_with_dlq(aws)
    with pytest.raises(ClientError, match="Dead Letter Queue"):
        start_move(aws, url)
    with pytest.raises(aws.client("sqs").exceptions.ResourceNotFoundException):
        aws.client("sqs").start_message_move_task(SourceArn="arn:aws:sqs:us-east-1:123456789012:none")


def test_stock_moto_has_no_move_tasks(aws):
    _, dlq = queue_with_dlq(aws)
    removed = stock("SQSResponse.start_message_move_task", "responses.method_names_from_class")
    with removed, pytest.raises(ClientError, match="NotImplementedError"):
        start_move(aws, dlq)
