"""What happened to a job is told to whoever asked for it, whatever the receiver does; the job itself stays as it is."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from lambdas.adapters.attributes import from_item
from tests.e2e.target import PATIENCE_S, Target, eventually
from tests.receivers import Came, Drips, Hangs, Receiver, Says

pytestmark = pytest.mark.local_only

OK = Says(200)
GRACE_S = 120  # until the sweep looks for one that was just planned: longer than whoever is killed with it holds it


@dataclass(frozen=True)
class Post:
    """One tenant's way to its receiver."""

    target: Target
    receiver: Receiver
    tenant: str
    nonce: str

    def job(self, path: str, number: int = 0) -> str:
        """COMPLETED and handed over, and to be delivered to this path of the receiver."""
        return self.jobs(path, number + 1)[-1]

    def jobs(self, path: str, count: int) -> list[str]:
        found = [
            self.target.submit(
                "summarize", {"text": f"ANN: {path} {number} {self.nonce}"}, tenant=self.tenant,
                callback_url=self.receiver.url(path),
            )
            for number in range(count)
        ]  # fmt: skip
        assert {one["status"] for one in self.target.finals(found, self.tenant)} == {"COMPLETED"}
        return found

    def delivery(self, job_id: str) -> dict[str, Any]:
        """Its only one, as it stands; {} before it is planned."""
        items = self.target.client("dynamodb").query(
            TableName=self.target.outputs["JobsTableName"], ConsistentRead=True,
            KeyConditionExpression="pk = :pk AND begins_with(sk, :sk)",
            ExpressionAttributeValues={":pk": {"S": job_id}, ":sk": {"S": "delivery#"}},
        )["Items"]  # fmt: skip
        assert len(items) <= 1
        return from_item(items[0]) if items else {}

    def failed(self, job_id: str, times: int = 1) -> list[str]:
        """When so many of its tries have failed: what each of them came to."""

        def troubles(one: dict[str, Any]) -> list[str]:
            lines = [line for line in one.get("history", ()) if line["what"] in ("retried", "failed")]
            return [line["note"].partition(":")[0] for line in lines]

        return eventually(lambda: troubles(self.delivery(job_id)), lambda found: len(found) >= times)

    def ended(self, job_id: str, step_s: float = 0) -> dict[str, Any]:
        """When it is delivered or given up; `step_s` goes by as long as it is not."""
        until = time.monotonic() + PATIENCE_S
        while (found := self.delivery(job_id)).get("status") not in ("COMPLETED", "FAILED"):
            assert time.monotonic() < until, found
            if step_s and found.get("status") == "PENDING" and _instant(found["not_before"]) > self.target.now:
                self.target.leap(step_s)
            time.sleep(0.1)
        return found

    def signed(self, came: Came) -> bool:
        secret = self.target.get("/webhooks/callback/secret", self.tenant).json()["secret"]
        return came.is_signed_with(secret)


def _instant(written: str) -> datetime:
    return datetime.fromisoformat(written)


@pytest.fixture(scope="module")
def receivers() -> Iterator[Receiver]:
    with Receiver() as found:
        yield found


@pytest.fixture
def post(target: Target, receivers: Receiver, tenant: str, nonce: str) -> Iterator[Post]:
    yield Post(target, receivers, tenant, nonce)
    receivers.up()
    for function in ("deliver", "dispatch"):
        target.control("POST", "mappings/enable", {"function": function})


def untouched(post: Post, job_id: str, step_s: float = 0) -> dict[str, Any]:
    """Its delivery when it has ended, which has written nothing into the record of its job."""
    before = post.target.record(job_id)
    found = post.ended(job_id, step_s)
    assert post.target.record(job_id) == before
    assert post.target.job(job_id, post.tenant)["status"] == "COMPLETED"
    return found


# --- a receiver as it should be ----------------------------------------------------------------------
def test_an_end_is_delivered_once_signed_and_in_the_order_of_its_attempts(post: Post) -> None:
    job_id = post.job("/once")
    found = untouched(post, job_id)
    assert (found["status"], found["tries"]) == ("COMPLETED", 1)
    (came,) = post.receiver.came("/once")
    assert (came.id, came.headers["content-type"]) == (f"{job_id}.1.COMPLETED", "application/json")
    assert abs(int(came.headers["webhook-timestamp"]) - post.target.now.timestamp()) < 60
    assert post.signed(came)
    assert not post.signed(Came(came.headers, came.body + b" "))
    told = json.loads(came.body)
    assert (told["event_type"], told["run_id"], told["tenant_id"]) == ("job.completed", job_id, post.tenant)
    assert (told["payload"]["status"], told["payload"]["sequence"]) == ("COMPLETED", 1)
    assert post.receiver.url("/once") not in came.body.decode()


# --- receivers that fail -----------------------------------------------------------------------------
def test_one_that_answers_500_gets_the_same_message_again(post: Post) -> None:
    post.receiver.says("/500", Says(500), OK)
    job_id = post.job("/500")
    assert post.failed(job_id) == ["HTTP_500"]
    found = untouched(post, job_id, 10)
    assert (found["status"], found["tries"], found["crashes"]) == ("COMPLETED", 2, 0)
    first, second = post.receiver.came("/500")
    assert (first.id, first.body) == (second.id, second.body)
    assert post.signed(second)
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


def test_one_that_asks_for_time_is_left_in_peace_for_it_in_both_forms_of_retry_after(post: Post) -> None:
    at = post.target.now + timedelta(seconds=850)  # a message holds 900
    for path, header in (("/429-s", "600"), ("/429-date", format_datetime(at, usegmt=True))):
        post.receiver.says(path, Says(429, {"retry-after": header}), OK)
    seconds, date = (post.job(path) for path in ("/429-s", "/429-date"))
    for job_id, path, wait_s in ((seconds, "/429-s", 600), (date, "/429-date", 650)):
        assert post.failed(job_id) == ["HTTP_429"]
        waits = post.delivery(job_id)
        assert (_instant(waits["not_before"]) - _instant(waits["claimed_at"])).total_seconds() >= wait_s
        assert len(post.receiver.came(path)) == 1
    for job_id in (seconds, date):
        assert untouched(post, job_id, 120)["status"] == "COMPLETED"


def test_one_that_is_down_for_an_hour_gets_it_when_it_is_back(post: Post) -> None:
    post.receiver.down()
    job_id = post.job("/down")
    ends = post.target.now + timedelta(hours=1)
    while post.target.now < ends:
        tries = len(post.failed(job_id))
        post.target.leap(600)
        if _instant(post.delivery(job_id)["not_before"]) <= post.target.now:
            post.failed(job_id, tries + 1)
    assert set(post.failed(job_id)) == {"NO_ANSWER_CONNECT"}
    post.receiver.up()
    found = untouched(post, job_id, 1_200)
    assert (found["status"], found["tries"] > 3, found["crashes"]) == ("COMPLETED", True, 0)
    assert [one.id for one in post.receiver.came("/down")] == [found["event_id"]]


def test_one_that_is_gone_is_never_called_again_and_its_endpoint_is_disabled(post: Post) -> None:
    url = post.receiver.says("/gone", Says(410))
    made = post.target.post("/webhooks", {"url": url}, x_local_tenant=post.tenant)
    assert made.status == 201, made
    job_id = post.target.submit("summarize", {"text": f"ANN: gone {post.nonce}"}, tenant=post.tenant)
    post.target.final(job_id, post.tenant)
    found = untouched(post, job_id)
    assert (found["status"], found["tries"], found["error"]["code"]) == ("FAILED", 1, "HTTP_410")
    shown = post.target.get(f"/webhooks/{made.json()['id']}", post.tenant).json()
    assert shown["enabled"] is False
    assert len(post.receiver.came("/gone")) == 1


def test_a_redirect_to_a_private_address_is_not_followed_and_ends_after_five_tries(post: Post) -> None:
    post.receiver.says("/redirect", Says(302, {"location": post.receiver.url("/private")}))
    job_id = post.job("/redirect")
    found = untouched(post, job_id, 2_400)
    assert (found["status"], found["tries"], found["error"]["code"]) == ("FAILED", 5, "HTTP_302")
    assert (len(post.receiver.came("/redirect")), post.receiver.came("/private")) == (5, [])


def test_a_byte_a_second_silence_and_a_body_without_an_end_are_each_over_in_their_time(post: Post) -> None:
    """WH-11: one deadline for all of it. What has answered has it, however long it goes on talking."""
    post.receiver.says("/drips", Drips(), OK)
    post.receiver.says("/hangs", Hangs(), OK)
    post.receiver.says("/endless", Hangs(head=True))
    drips, hangs = (post.job(path) for path in ("/drips", "/hangs"))
    other = Post(post.target, post.receiver, f"{post.tenant}-2", post.nonce)  # more than two at once no tenant may have
    endless = other.job("/endless")
    for job_id in (drips, hangs):
        assert post.failed(job_id) == ["NO_ANSWER_TIMEOUT"]
    expected = ((post, drips, "/drips", 2), (post, hangs, "/hangs", 2), (other, endless, "/endless", 1))
    for who, job_id, path, tries in expected:
        found = untouched(who, job_id, 10)
        assert (found["status"], found["tries"]) == ("COMPLETED", tries)
        assert len({one.id for one in post.receiver.came(path)}) == 1


# --- others ------------------------------------------------------------------------------------------
def test_a_slow_receiver_of_one_tenant_does_not_hold_up_anothers(post: Post) -> None:
    """Theirs lie in one queue, the slow one's first."""
    quick = Post(post.target, post.receiver, f"{post.tenant}-2", post.nonce)
    with Receiver() as slow:
        slow.says("/slow", Hangs())
        post.target.control("POST", "mappings/disable", {"function": "deliver"})
        many = Post(post.target, slow, post.tenant, post.nonce).jobs("/slow", 8)
        few = quick.jobs("/quick", 2)
        post.target.control("POST", "mappings/enable", {"function": "deliver"})
        assert [quick.ended(job_id)["status"] for job_id in few] == ["COMPLETED"] * 2
        assert len(post.receiver.came("/quick")) == 2
        assert len(slow.came("/slow")) < len(many)  # when the quick one had all of his


# --- what breaks in here -----------------------------------------------------------------------------
def test_who_is_killed_before_it_can_write_what_came_is_followed_by_another_with_the_same_id(post: Post) -> None:
    """The second write to its record is the outcome of an attempt, after the claim."""
    post.target.control("POST", "mappings/disable", {"function": "deliver"})
    job_id = post.job("/killed")
    fault = {"function": "deliver", "kind": "crash", "when": "before", "service": "dynamodb", "operation": "UpdateItem"}
    post.target.control("POST", "faults", {**fault, "nth": 2, "job_id": job_id})
    post.target.control("POST", "mappings/enable", {"function": "deliver"})
    eventually(lambda: len(post.receiver.came("/killed")), lambda count: count == 1)
    post.target.leap(GRACE_S + 1)
    post.target.control("POST", "schedules/run", {"function": "sweep", "schedule": "deliveries"})
    found = untouched(post, job_id)
    assert (found["status"], found["tries"], found["crashes"]) == ("COMPLETED", 2, 1)
    first, second = post.receiver.came("/killed")
    assert (first.id, first.body) == (second.id, second.body)


def test_what_the_stream_has_lost_the_sweep_delivers(post: Post) -> None:
    post.target.control("POST", "mappings/disable", {"function": "deliver"})
    job_id = post.job("/lost")  # it is handed over: what happens now the stream does not tell
    post.target.control("POST", "mappings/disable", {"function": "dispatch"})
    post.target.control("POST", "mappings/enable", {"function": "deliver"})
    eventually(lambda: post.delivery(job_id), bool)
    post.target.leap(GRACE_S + 1)
    assert post.receiver.came("/lost") == []
    post.target.control("POST", "schedules/run", {"function": "sweep", "schedule": "deliveries"})
    found = untouched(post, job_id)
    assert (found["status"], found["tries"]) == ("COMPLETED", 1)
