"""The deliveries queue: events become deliveries, deliveries are tried, and what nobody can read becomes a letter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from lambdas.adapters import clock
from lambdas.adapters.attributes import from_item
from lambdas.adapters.deliveries import DynamoDeliveries
from lambdas.contracts import names
from lambdas.core import times
from lambdas.core.job import from_record
from lambdas.core.routing import event
from lambdas.core.webhooks import delivery as deliveries
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks import routing, secrets, urls
from lambdas.core.webhooks.delivery import Delivery
from lambdas.core.webhooks.schedule import TRIES_MAX
from local.metrics.emf import values
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import failures, sqs, sqs_record
from tests.integration.records import completed, planned
from tests.receivers import Receiver, Says

BODY = '{"said":"Grüße, do-not-tell"}'
SECRETS = ("?key=do-not-tell", "do-not-tell")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


@pytest.fixture
def deliver(load_handler: Load, pauses: list[float]) -> ModuleType:
    """As on this machine: receivers may be on loopback, and are waited for."""
    return load_handler("deliver", **{names.LOCAL: 1, names.WEBHOOK_TIMEOUT_S: 60})


@pytest.fixture
def deployed(load_handler: Load, pauses: list[float]) -> ModuleType:
    """As on AWS."""
    return load_handler("deliver")


def run(deliver: ModuleType, *bodies: str, seconds: float = 600, **of_record: Any) -> list[str]:
    records = [sqs_record(body, message_id=f"m{number}", **of_record) for number, body in enumerate(bodies)]
    return failures(deliver.handler(sqs(*records), Context(seconds)))


def ended(cloud: Cloud, **over: Any) -> tuple[str, str]:
    """A job that has ended, and what is published of it: (its id, the message)."""
    record = cloud.put(completed(**over))
    return record["pk"], event(from_record(record), clock.now()).body


def registered(cloud: Cloud, url: str, tenant: str = "acme", **over: Any) -> str:
    made = endpoints.new(tenant, url, events=(), description="", now=clock.now())
    cloud.put({**endpoints.record_of(made), **over})
    return made.id


def delivery_of(cloud: Cloud, **over: Any) -> Delivery:
    """One that may be tried."""
    return deliveries.read(cloud.put(planned(ago_s=5, **over)))


def callback(cloud: Cloud, url: str, **over: Any) -> Delivery:
    destination = urls.read(url, local=True)
    assert isinstance(destination, urls.Destination)
    return delivery_of(cloud, url=url, endpoint=urls.callback_id(destination), **{"body": BODY, **over})


def hint(delivery: Delivery) -> str:
    message = routing.hint(delivery, clock.now())
    assert message is not None
    return message.body


def of_job(cloud: Cloud, job_id: str) -> list[Delivery]:
    found = cloud.client("dynamodb").query(
        TableName=cloud.jobs_table, KeyConditionExpression="pk = :pk AND begins_with(sk, :sk)",
        ExpressionAttributeValues={":pk": {"S": job_id}, ":sk": {"S": names.DELIVERY_SK}},
    )["Items"]  # fmt: skip
    return [deliveries.read(from_item(item)) for item in found]


def stands(cloud: Cloud, delivery: Delivery) -> Delivery:
    record = DynamoDeliveries(cloud.client("dynamodb"), cloud.jobs_table).read(delivery.key)
    assert record is not None
    return deliveries.read(record)


# --- events ------------------------------------------------------------------------------------------
def test_an_event_becomes_a_delivery_for_each_endpoint_and_one_for_the_callback_however_often_it_comes(
    cloud: Cloud, deliver: ModuleType
):
    job_id, body = ended(cloud, callback_url="http://127.0.0.1:9/hook")
    wanted = {registered(cloud, f"http://127.0.0.1:9/{number}") for number in range(2)}
    registered(cloud, "http://127.0.0.1:9/off", enabled=False)
    registered(cloud, "http://127.0.0.1:9/other", tenant="other")
    assert run(deliver, body, body) == []
    assert run(deliver, body) == []
    found = of_job(cloud, job_id)
    assert {one.endpoint for one in found if not one.url} == wanted
    (called,) = [one for one in found if one.url]
    assert (called.url, called.signer) == ("http://127.0.0.1:9/hook", names.CALLBACK)
    assert {(one.status, one.event_id, one.attempt) for one in found} == {("PENDING", f"{job_id}.1.COMPLETED", 0)}
    assert cloud.receive(cloud.stack.outputs["DeliveriesDlqUrl"]) == []


def test_without_a_callback_the_jobs_record_is_not_read(cloud: Cloud, deliver: ModuleType):
    _, body = ended(cloud)
    cloud.wire.clear()
    assert run(deliver, body, body) == []
    assert (cloud.wire.count("GetItem"), cloud.wire.count("Query")) == (0, 1)


def test_the_jobs_record_is_not_touched_by_its_deliveries(cloud: Cloud, deliver: ModuleType, receiver: Receiver):
    """Hole 34."""
    job_id, body = ended(cloud, callback_url=receiver.url("/hook"))
    before = cloud.record(job_id)
    assert run(deliver, body) == []
    assert run(deliver, hint(of_job(cloud, job_id)[0])) == []
    assert len(receiver.came("/hook")) == 1
    assert cloud.record(job_id) == before


# --- hints -------------------------------------------------------------------------------------------
def test_a_hint_is_a_signed_post_and_its_receipt(cloud: Cloud, deliver: ModuleType, receiver: Receiver):
    found = callback(cloud, receiver.says("/hook", Says(204)))
    assert run(deliver, hint(found)) == []
    (came,) = receiver.came("/hook")
    assert (came.body.decode(), came.id) == (found.body, found.event_id)
    (master,) = _masters(cloud)
    assert came.is_signed_with(secrets.current([master], endpoints.callback("acme")))
    after = stands(cloud, found)
    assert (after.status, after.attempt, after.due_at) == ("COMPLETED", 1, None)
    assert after.history[-1]["status"] == 204


def _masters(cloud: Cloud) -> tuple[str, ...]:
    arn = cloud.environment("deliver")[names.WEBHOOK_SECRET]
    return (cloud.client("secretsmanager").get_secret_value(SecretId=arn)["SecretString"],)


def test_the_same_hint_once_more_posts_nothing(cloud: Cloud, deliver: ModuleType, receiver: Receiver):
    body = hint(callback(cloud, receiver.url("/hook")))
    assert run(deliver, body) == []
    assert run(deliver, body) == []
    assert len(receiver.came("/hook")) == 1


def test_fresh_hints_of_a_batch_are_tried_at_once_and_a_suspect_after_them(
    cloud: Cloud, deliver: ModuleType, receiver: Receiver
):
    crashed = callback(cloud, receiver.url("/suspect"), crashes=1, job_id="c" * 32)
    fresh = [callback(cloud, receiver.url(f"/{name}"), job_id=name * 32) for name in "ab"]
    assert run(deliver, hint(crashed), *map(hint, fresh)) == []
    last = int(receiver.came("/suspect")[0].headers["webhook-timestamp"])
    assert all(int(receiver.came(f"/{name}")[0].headers["webhook-timestamp"]) <= last for name in "ab")
    claimed = {one.pk[0]: stands(cloud, one).claimed_at for one in (crashed, *fresh)}
    assert max(claimed, key=lambda name: claimed[name] or clock.now()) == "c"


@pytest.mark.usefixtures("still")
def test_one_that_comes_too_early_is_hidden_until_its_time(cloud: Cloud, deployed: ModuleType):
    early = delivery_of(cloud, not_before=times.text(times.after(clock.now(), 200)))
    cloud.client("sqs").send_message(QueueUrl=cloud.stack.outputs["DeliveriesQueueUrl"], MessageBody=hint(early))
    (message,) = cloud.client("sqs").receive_message(QueueUrl=cloud.stack.outputs["DeliveriesQueueUrl"])["Messages"]
    cloud.wire.clear()
    assert run(deployed, message["Body"], receipt=message["ReceiptHandle"]) == ["m0"]
    (hidden,) = [json.loads(one.body) for one in cloud.wire.sent if one.operation == "ChangeMessageVisibility"]
    assert hidden["VisibilityTimeout"] == 201  # a second more, for clocks that differ


def test_without_time_for_an_attempt_it_is_put_off(cloud: Cloud, deliver: ModuleType, receiver: Receiver):
    found, now = callback(cloud, receiver.url("/hook")), clock.now()
    assert run(deliver, hint(found), seconds=5) == []
    assert receiver.came("/hook") == []
    assert stands(cloud, found).not_before > now


def test_what_is_given_up_is_counted(
    cloud: Cloud, deliver: ModuleType, receiver: Receiver, capsys: pytest.CaptureFixture[str]
):
    gone = callback(cloud, receiver.says("/gone", Says(410)), job_id="a" * 32)
    late = callback(cloud, receiver.url("/late"), job_id="b" * 32, tries=TRIES_MAX)
    again = callback(cloud, receiver.says("/again", Says(500)), job_id="c" * 32)
    assert run(deliver, *map(hint, (gone, late, again))) == []
    assert [stands(cloud, one).status for one in (gone, late, again)] == ["FAILED", "FAILED", "PENDING"]
    told = [found for line in capsys.readouterr().out.splitlines() for found in values(line)]
    assert [one.value for one in told if one.about.name == names.DELIVERIES_FAILED] == [2]


def test_a_receiver_on_this_machine_is_not_called_in_the_cloud(cloud: Cloud, deployed: ModuleType, receiver: Receiver):
    """Without the word of the local runtime loopback is refused, as everything that is not public."""
    found = callback(cloud, receiver.url("/hook"))
    assert run(deployed, hint(found)) == []
    assert receiver.came("/hook") == []
    assert (stands(cloud, found).error or {})["code"] == "URL_REFUSED"


# --- what cannot be done -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("no JSON", "MALFORMED_MESSAGE"),
        ('{"schema":1}', "INVALID_ENVELOPE"),
        ('{"schema":0}', "UNSUPPORTED_SCHEMA"),
    ],
)
def test_what_nobody_can_read_becomes_a_letter_and_holds_up_nobody(
    cloud: Cloud, deliver: ModuleType, receiver: Receiver, body: str, reason: str
):
    found = callback(cloud, receiver.url("/hook"))
    assert run(deliver, body, hint(found)) == []
    (letter,) = cloud.receive(cloud.stack.outputs["DeliveriesDlqUrl"])
    told = json.loads(letter["Body"])
    assert (told["payload"]["reason"], told["payload"]["body"]) == (reason, body)
    assert letter["MessageAttributes"]["reason"]["StringValue"] == reason
    assert len(receiver.came("/hook")) == 1


def test_a_letter_that_cannot_be_sent_leaves_its_message_on_the_queue(cloud: Cloud, deliver: ModuleType):
    cloud.wire.refuse("SendMessageBatch", "AccessDenied", 403)
    assert run(deliver, "no JSON") == ["m0"]


def test_an_error_of_ours_leaves_its_own_message_on_the_queue_and_no_other(
    cloud: Cloud, deliver: ModuleType, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, lines: Lines
):
    found, handle = callback(cloud, receiver.url("/hook")), deliver.handle

    def mistaken(message: Any, desk: Any, *, notice: Any) -> Any:
        if message.body == "ours":
            raise KeyError(message.body)
        return handle(message, desk, notice=notice)

    monkeypatch.setattr(deliver, "handle", mistaken)
    assert run(deliver, "ours", hint(found)) == ["m0"]
    assert len(receiver.came("/hook")) == 1
    assert "deliver_error" in lines.steps()


def test_a_newer_version_is_left_for_newer_code(cloud: Cloud, deliver: ModuleType):
    assert run(deliver, '{"schema":2}') == ["m0"]
    assert cloud.receive(cloud.stack.outputs["DeliveriesDlqUrl"]) == []


def test_while_the_table_cannot_be_reached_messages_stay(cloud: Cloud, deliver: ModuleType, lines: Lines):
    found = delivery_of(cloud)
    _, body = ended(cloud)
    for operation in ("UpdateItem", "Query"):
        cloud.wire.refuse(operation, "ProvisionedThroughputExceededException")
    assert sorted(run(deliver, hint(found), body)) == ["m0", "m1"]
    assert lines.steps().count("left_on_the_queue") == 2


def test_a_record_that_cannot_be_read_becomes_a_letter(cloud: Cloud, deployed: ModuleType):
    found = delivery_of(cloud, history=[])
    body = hint(found)
    cloud.put({"pk": found.pk, "sk": found.sk, "status": "PENDING", "not_before": "2020-01-01T00:00:00.000Z"})
    assert run(deployed, body) == []
    (letter,) = cloud.bodies(cloud.stack.outputs["DeliveriesDlqUrl"])
    assert letter["payload"]["reason"] == "UNREADABLE_RECORD"


def test_no_line_of_the_log_has_a_query_string_a_body_or_a_secret(
    cloud: Cloud, deliver: ModuleType, receiver: Receiver, lines: Lines
):
    query, word = SECRETS
    receiver.says("/ok", Says(200, body=b"answered do-not-tell"))
    receiver.says("/bad", Says(500, body=b"answered do-not-tell"))
    _, body = ended(cloud, callback_url=receiver.url("/ok") + query)
    found = [callback(cloud, receiver.url(path) + query, job_id=path[1] * 32) for path in ("/ok", "/bad", "/unheard")]
    receiver.says("/unheard", Says(302, {"location": f"http://127.0.0.1:9/{word}"}))
    for one in (body, *map(hint, found), f'{{"{word}'):  # two at once may call one receiver
        assert run(deliver, one) == []
    assert {"planned", "delivered", "retried", "buried"} <= set(lines.steps())
    assert word not in lines.raw
    assert all(master not in lines.raw for master in _masters(cloud))
    assert "whsec_" not in lines.raw
