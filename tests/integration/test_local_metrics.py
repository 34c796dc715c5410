"""What services report of themselves on this machine: of each minute, also of those that a skip of the clock took."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from local.aws.calls import Call, Response
from local.aws.patches.sns import DELIVERIES
from local.clock import VirtualClock
from local.compute.invocation import Invocation, throttled
from local.metrics.cloudwatch import CloudWatch
from local.metrics.functions import FunctionMetrics
from local.metrics.gateway import GatewayMetrics
from local.metrics.queues import AGE, VISIBLE, QueueMetrics
from local.metrics.store import Store, metric
from local.metrics.topics import TopicMetrics
from local.stack.errors import TemplateError
from local.stack.stack import Resource, Stack
from tests.integration.local_aws import Aws, serving
from tests.integration.stock_moto import stock

HOUR_S = 3_600


class Minutes:
    """A gate that has queues reported as CloudWatch does, and what they have reported."""

    def __init__(self, clock: VirtualClock) -> None:
        self.store = Store()
        self.clock = clock
        wanted = [metric("AWS/SQS", name, {"QueueName": "letters"}) for name in (AGE, VISIBLE)]
        self.queues = QueueMetrics(self.store, lambda: clock.now().timestamp(), wanted)
        clock.before_advance(lambda seconds: self.queues.report_until(clock.now().timestamp() + seconds))

    def before(self, call: Call) -> None:
        self.queues.report_until(self.clock.now().timestamp())
        self.queues.before(call)

    def after(self, call: Call, response: Response) -> Response:
        return response

    def values(self, name: str, since_s: float) -> list[float]:
        """One for each minute that has any, from then on."""
        about = metric("AWS/SQS", name, {"QueueName": "letters"})
        first, last = int(since_s // 60) * 60, int(self.clock.now().timestamp())
        found = [self.store.statistics(about, at, at + 60, last) for at in range(first, last, 60)]
        return [one.most for one in found if one.count]


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    """At the beginning of a minute: none ends while a test works."""
    with VirtualClock() as running:
        running.advance(61 - running.now().timestamp() % 60)
        yield running


@pytest.fixture
def minutes(clock: VirtualClock) -> Minutes:
    return Minutes(clock)


@pytest.fixture
def aws(minutes: Minutes) -> Iterator[Aws]:
    with serving(minutes) as running:
        minutes.queues.start()
        yield running


def test_a_skip_of_an_hour_is_sixty_minutes_in_which_the_message_grew_older(
    aws: Aws, minutes: Minutes, clock: VirtualClock
) -> None:
    url, began = aws.queue(), clock.now().timestamp()
    aws.client("sqs").send_message(QueueUrl=url, MessageBody="x")
    clock.advance(HOUR_S)
    ages = minutes.values(AGE, began)
    assert len(ages) == 60
    assert [round(later - sooner) for sooner, later in pairwise(ages)] == [60] * 59
    assert minutes.values(VISIBLE, began) == [1] * 60


def test_a_message_is_visible_in_the_minutes_in_which_nobody_has_it_and_it_is_not_held_back(
    aws: Aws, minutes: Minutes, clock: VirtualClock
) -> None:
    url, began = aws.queue(VisibilityTimeout="600"), clock.now().timestamp()
    aws.client("sqs").send_message(QueueUrl=url, MessageBody="x", DelaySeconds=300)
    clock.advance(600)
    assert minutes.values(VISIBLE, began) == [0] * 5 + [1] * 5
    assert len(aws.client("sqs").receive_message(QueueUrl=url)["Messages"]) == 1
    clock.advance(1_200)
    assert minutes.values(VISIBLE, began)[10:] == [0] * 10 + [1] * 10
    assert len(minutes.values(AGE, began)) == 30  # in flight or not: it is the oldest


def test_a_message_that_was_received_three_times_is_not_the_oldest_any_more(
    aws: Aws, minutes: Minutes, clock: VirtualClock
) -> None:
    """ "if a message is received three or more times and not deleted, SQS moves it to the back of the queue"."""
    url, began = aws.queue(VisibilityTimeout="1"), clock.now().timestamp()
    aws.client("sqs").send_message(QueueUrl=url, MessageBody="x")
    for _ in range(3):
        assert len(aws.client("sqs").receive_message(QueueUrl=url)["Messages"]) == 1
        clock.advance(60)
    before = len(minutes.values(AGE, began))
    clock.advance(300)
    assert len(minutes.values(AGE, began)) == before <= 3
    assert minutes.values(VISIBLE, began)[-5:] == [1] * 5


def test_an_empty_queue_reports_for_six_hours_and_one_that_has_forgotten_its_message_is_empty(
    aws: Aws, minutes: Minutes, clock: VirtualClock
) -> None:
    url, began = aws.queue(MessageRetentionPeriod="7200"), clock.now().timestamp()
    aws.client("sqs").send_message(QueueUrl=url, MessageBody="x")
    clock.advance(12 * HOUR_S)
    found = minutes.values(VISIBLE, began)
    assert (found.count(1), found.count(0)) == (120, 240)
    ages = minutes.values(AGE, began)
    assert (len([age for age in ages if age]), ages[120:]) == (120, [0] * 240)


def test_of_a_skip_of_months_the_last_two_days_are_reported(aws: Aws, minutes: Minutes, clock: VirtualClock) -> None:
    url = aws.queue(MessageRetentionPeriod="1209600")
    aws.client("sqs").send_message(QueueUrl=url, MessageBody="x")
    clock.advance(13 * 24 * HOUR_S)
    assert len(minutes.values(AGE, clock.now().timestamp() - 3 * 24 * HOUR_S)) == 2 * 24 * 60


# --- topics --------------------------------------------------------------------------------------------------------


@pytest.fixture
def told(clock: VirtualClock) -> Iterator[Store]:
    store = Store()
    DELIVERIES.listen(TopicMetrics(store, lambda: clock.now().timestamp()).tell)
    yield store
    DELIVERIES.stop()


def topic_of(aws: Aws) -> str:
    """With a subscriber that is there, one that wants nothing, and one whose queue is gone."""
    sns, sqs = aws.client("sns"), aws.client("sqs")
    topic = str(sns.create_topic(Name="facts")["TopicArn"])
    for name, wanted in (("there", None), ("picky", '{"kind": ["other"]}'), ("gone", None)):
        aws.queue(name)
        attributes = {"FilterPolicy": wanted} if wanted else {}
        endpoint = f"arn:aws:sqs:us-east-1:123456789012:{name}"
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=endpoint, Attributes=attributes)
    sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName="gone")["QueueUrl"])
    return topic


def test_each_message_of_a_topic_is_delivered_filtered_out_or_failed_and_its_sender_hears_of_nothing(
    aws: Aws, told: Store
) -> None:
    topic = topic_of(aws)
    aws.client("sns").publish(TopicArn=topic, Message="x")
    aws.client("sns").publish_batch(TopicArn=topic, PublishBatchRequestEntries=[{"Id": "1", "Message": "y"}])
    numbers = {one.name.removeprefix("NumberOf"): told.fed(one) for one in told.metrics()}
    assert numbers == {
        "MessagesPublished": 2,
        "NotificationsDelivered": 2,
        "NotificationsFilteredOut": 2,
        "NotificationsFailed": 2,
    }
    with stock("Subscription.publish"), pytest.raises(Exception, match=r"NonExistentQueue|does not exist"):
        aws.client("sns").publish(TopicArn=topic, Message="z")


def test_a_topic_knows_how_many_have_subscribed(aws: Aws) -> None:
    topic = topic_of(aws)

    def confirmed() -> str:
        answer: dict[str, Any] = aws.client("sns").get_topic_attributes(TopicArn=topic)
        return str(answer["Attributes"]["SubscriptionsConfirmed"])

    assert confirmed() == "3"
    first = aws.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"][0]
    aws.client("sns").unsubscribe(SubscriptionArn=first["SubscriptionArn"])
    assert confirmed() == "2"


def test_stock_moto_counts_no_subscription(aws: Aws) -> None:
    with stock("Topic.subscriptions_confimed"):
        topic = topic_of(aws)
        answer = aws.client("sns").get_topic_attributes(TopicArn=topic)
        assert answer["Attributes"]["SubscriptionsConfirmed"] == "0"


# --- functions and the API -----------------------------------------------------------------------------------------


def test_an_invocation_is_reported_at_its_end_under_the_time_of_its_beginning() -> None:
    store = Store()
    functions = FunctionMetrics(store, {"worker": "Worker-1"}.__getitem__, lambda: 1_300.0)
    functions.ended(Invocation("worker", "1", started_at="1970-01-01T00:10:00+00:00", error={"errorType": "X"}))
    functions.ended(throttled("worker", "no room"))

    def total(name: str, since_s: int, seen_s: int) -> float | None:
        about = metric("AWS/Lambda", name, {"FunctionName": "Worker-1"})
        return store.statistics(about, since_s, since_s + 60, seen_s).value("Sum")

    assert (total("Errors", 600, 1_260), total("Errors", 600, 1_320)) == (None, 1)
    assert (total("Invocations", 600, 1_320), total("Throttles", 600, 1_320)) == (1, 0)
    assert (total("Throttles", 1_260, 1_320), total("Invocations", 1_260, 1_320)) == (1, None)


@pytest.mark.parametrize(
    ("status", "counted"), [(202, (0, 0)), (404, (1, 0)), (429, (1, 0)), (500, (0, 1)), (503, (0, 1))]
)
def test_answers_are_counted_by_their_status(status: int, counted: tuple[int, int]) -> None:
    store = Store()
    GatewayMetrics(store, "api", "$default", lambda: 60.0).report(status)
    about = [metric("AWS/ApiGateway", name, {"ApiId": "api", "Stage": "$default"}) for name in ("4xx", "5xx")]
    assert tuple(store.statistics(one, 60, 120, 120).value("Sum") for one in about) == counted


# --- what nothing can feed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "looks_at",
    [
        {"Namespace": "AWS/SQS", "MetricName": VISIBLE, "Dimensions": [{"Name": "QueueName", "Value": "no-queue"}]},
        {"Namespace": "AWS/SQS", "MetricName": VISIBLE, "Dimensions": [{"Name": "Queue", "Value": "letters"}]},
        {"Namespace": "AWS/SQS", "MetricName": "Depth", "Dimensions": [{"Name": "QueueName", "Value": "letters"}]},
        {"Namespace": "AWS/ApiGateway", "MetricName": "5XXError", "Dimensions": [{"Name": "ApiId", "Value": "none"}]},
        {"Namespace": "AWS/EC2", "MetricName": "CPUUtilization", "Dimensions": []},
    ],
    ids=str,
)
def test_an_alarm_on_what_no_service_reports_is_refused_by_name(looks_at: dict[str, Any], clock: VirtualClock) -> None:
    rule = {
        "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 1, "Threshold": 1,
        "ComparisonOperator": "GreaterThanThreshold",
    }  # fmt: skip
    queue = Resource("Letters", "AWS::SQS::Queue", {}, "url", {"QueueName": "letters"})
    wrong = Resource("Wrong", "AWS::CloudWatch::Alarm", {**rule, **looks_at}, "wrong", {})
    stack = Stack("s", "us-east-1", "123456789012", {"Letters": queue, "Wrong": wrong}, {}, dict[str, Path]())
    with pytest.raises(TemplateError, match=r"^\[Wrong\] nothing on this machine reports"):
        CloudWatch(stack, clock)
