"""Every silent loss rings its alarm, and in time; every alarm of the template is rung by something; a healthy day rings
none. The states are CloudWatch's, of the synthesized alarms, over what the run itself has reported."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from lambdas.adapters.attributes import from_item
from local.aws import ttl
from local.faults import Fault
from local.metrics.store import metric
from tests.receivers import Receiver, Says
from tests.simulation.night import HOUR_S, LETTERS, MINUTE_S, Night, night
from tests.simulation.watch import poll

pytestmark = pytest.mark.slow
IN_ORDER = True

DAY_S = 24 * HOUR_S
SWEEP_S = 900  # a third as many as by default: a day of them takes its time
GRACE_S, SOURCE_GRACE_S = 120, 900
VISIBILITY_S, MANY = 720, 5
SETTINGS = {"sweep_period_s": str(SWEEP_S)}
SOON = (0, 2 * MINUTE_S)  # CloudWatch looks once a minute, at whole ones
ROLES = (
    "accept", "query", "control", "ingest", "dispatch", "worker", "sweep", "admin", "redrive", "ticket", "connect",
    "socket", "push", "deliver", "webhooks", "ended",
)  # fmt: skip
CALLED_AGAIN = ("branch", "collect")  # by Step Functions: one error of theirs rings nothing
AT_THE_DOOR = ("accept", "query", "control", "admin")

Bounds = Mapping[str, tuple[float, float]]


@pytest.fixture(scope="module")
def stack() -> Iterator[Night]:
    """One night for all of these tests, in their order."""
    with night(SETTINGS) as found:
        first = document(found)  # the first execution reads its definition, which takes a while
        poll(lambda: found.record(first)["status"] == "COMPLETED", lambda: str(found.record(first)))
        found.pass_time(HOUR_S, SWEEP_S)  # alarms that look at days are looked at each hour
        yield found


@pytest.fixture(autouse=True)
def healed(stack: Night) -> Iterator[None]:
    """Whatever a test has left broken is whole again for the next one."""
    yield
    stack.heal()


def rings(
    stack: Night, expected: Bounds, *, since_s: float, also: tuple[str, ...] = (), step_s: float = MINUTE_S
) -> None:
    """These, each within its bounds, in seconds since then; and no others but, perhaps, `also`."""
    most = max(high for _, high in expected.values())
    found = stack.wait_for(*expected, since_s=since_s, most_s=most + step_s, step_s=step_s)
    for name, (low, high) in expected.items():
        assert low <= found[name] <= high, (name, found)
    assert set(stack.rung(since_s)) <= {*expected, *also}


# --- what happens to a stack ---------------------------------------------------------------------------------------


def job(stack: Night, word: str = "", **more: Any) -> str:
    """Accepted; by now it may be done."""
    key = uuid.uuid4().hex
    return stack.submit("summarize", {"text": f"ANN: {word or key}"}, key=key, tenant="acme", **more).result()


def upload(stack: Night) -> str:
    key = f"uploads/acme/summarize/{uuid.uuid4().hex}"
    stack.s3.put_object(
        Bucket=stack.target.outputs["UploadsBucketName"], Key=key, Body=b"ANN: hello", ContentType="text/plain"
    )
    return key


def start(stack: Night, role: str, **event: Any) -> None:
    """As its schedule or its operator does: nobody waits for the answer."""
    stack.runtime.sources.invoker.submit(role, event)


def knock(url: str) -> None:
    """Whatever one is told at the door."""
    with suppress(InvalidStatus), connect(url, open_timeout=60, close_timeout=1):
        pass


def come_in(stack: Night) -> None:
    """With a ticket."""
    done = job(stack)
    knock(stack.target.post("/tickets", {"job_ids": [done]}, x_local_tenant="acme").json()["url"])


def document(stack: Night) -> str:
    word = uuid.uuid4().hex
    text = f"{word}. The pump is broken."
    return stack.submit("analyze-document", {"text": text}, key=word, tenant="acme").result()


PROVOKE: dict[str, Callable[[Night], Any]] = {
    "accept": lambda stack: stack.target.post("/jobs", {"type": "summarize", "input": {"text": "ANN: x"}}),
    "query": lambda stack: stack.target.get("/jobs"),
    "control": lambda stack: stack.target.post(f"/jobs/{uuid.uuid4().hex}/cancel", {}),
    "admin": lambda stack: stack.target.get("/admin/dead-letters"),
    "ingest": upload,
    "dispatch": job,
    "worker": job,
    "sweep": lambda stack: start(stack, "sweep", parts=["letters"]),
    "redrive": lambda stack: start(stack, "redrive", redrive_id=uuid.uuid4().hex, round=0),
    "ticket": lambda stack: stack.target.post("/tickets", {"job_ids": [uuid.uuid4().hex]}),
    "connect": lambda stack: knock(f"{stack.target.outputs['WebSocketUrl']}?ticket={'x' * 43}"),
    "socket": come_in,
    "push": job,
    "deliver": job,
    "webhooks": lambda stack: stack.target.get("/webhooks"),
    "ended": lambda stack: start(stack, "ended", detail={}),
    "branch": document,
    "collect": document,
}


def edit(stack: Night, job_id: str, **values: Any) -> None:
    """As somebody does by hand in the console."""
    stack.dynamodb.update_item(
        TableName=stack.target.outputs["JobsTableName"],
        Key={"pk": {"S": job_id}, "sk": {"S": "job"}},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
        ExpressionAttributeNames={f"#{name}": name for name in values},
        ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
    )


def later(stack: Night, seconds: float) -> str:
    return (stack.runtime.clock.now().fromtimestamp(stack.now() + seconds).astimezone()).isoformat()


# --- a day in which nothing is wrong, but for one thing ------------------------------------------------------------


def test_a_result_that_is_gone_rings_at_the_next_look(stack: Night) -> None:
    began = stack.calm()
    lost = job(stack)
    stack.settle()
    bucket = stack.target.outputs["ResultsBucketName"]
    stack.s3.delete_object(Bucket=bucket, Key=stack.record(lost)["result_key"])
    stack.pass_time(SWEEP_S, SWEEP_S)  # what is young is left alone
    assert not stack.ringing()
    start(stack, "sweep", parts=["drift"])
    rings(stack, {"DriftFound": (SWEEP_S, SWEEP_S + 2 * MINUTE_S)}, since_s=began)
    assert stack.target.request("DELETE", f"/jobs/{lost}", headers={"x-local-tenant": "acme"}).status == 204


def test_a_healthy_day_rings_nothing_and_ends_what_was_found_the_day_before(stack: Night) -> None:
    began = stack.now()
    for _ in range(8):
        done = [job(stack), job(stack, urgent=True)]
        upload(stack)
        stack.get("/jobs", "acme")
        stack.pass_time(3 * HOUR_S, SWEEP_S)
        assert stack.all_handed_over(done)
    stack.pass_time(HOUR_S, SWEEP_S)
    assert stack.rung(began) == {}
    assert not stack.ringing()


# --- schedules -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "alarm", "after_s"),
    [("stuck", "SweepSilence", 2 * SWEEP_S), ("uploads", "SourceSweepSilence", 2 * HOUR_S)],
)
def test_a_deleted_schedule_rings_after_two_of_its_periods_and_until_it_is_back(
    stack: Night, part: str, alarm: str, after_s: int
) -> None:
    stack.calm()
    schedule = stack.schedule(part)
    schedule.enabled = False
    began = stack.now()
    step = MINUTE_S if part == "stuck" else SWEEP_S
    # since its last run, which was up to a period ago
    rings(stack, {alarm: (after_s / 2 - step, after_s + step)}, since_s=began, step_s=step)
    stack.create(schedule)
    stack.calm()


def test_without_any_schedule_each_kind_of_silence_rings_by_itself_and_the_oldest_job_is_not_known(
    stack: Night,
) -> None:
    stack.calm()
    start(stack, "sweep", parts=["drift"])
    start(stack, "sweep", parts=["stuck", "uploads"])
    stack.settle()
    for schedule in stack.schedules.values():
        schedule.enabled = False
    began = stack.now()
    rings(
        stack, {"SweepSilence": (2 * SWEEP_S, 2 * SWEEP_S + 120), "OldestOpenJob": (3 * SWEEP_S, 3 * SWEEP_S + 120)},
        since_s=began,
    )  # fmt: skip
    both = ("SweepSilence", "OldestOpenJob")
    hours = {"SourceSweepSilence": (2 * HOUR_S, 2 * HOUR_S + SWEEP_S)}
    rings(stack, hours, since_s=began, also=both, step_s=SWEEP_S)
    days = {"DriftSweepSilence": (2 * DAY_S, 2 * DAY_S + 2 * HOUR_S)}  # what looks at days is looked at each hour
    rings(stack, days, since_s=began, also=(*both, *hours), step_s=6 * HOUR_S)
    for schedule in stack.schedules.values():
        stack.create(schedule)
    start(stack, "sweep", parts=["drift"])  # as docs/operations.md says: its schedule would come in a day
    stack.calm(step_s=SWEEP_S)


# --- the pipe between the record and the worker --------------------------------------------------------------------


def test_a_disabled_stream_rings_as_soon_as_the_sweep_repairs_and_its_lag_when_it_is_enabled(stack: Night) -> None:
    """Nobody reports the age of what nobody reads: the sweep is who notices."""
    began = stack.calm()
    stack.disable("dispatch")
    done = job(stack)
    rings(stack, {"SweepRepairs": (GRACE_S, GRACE_S + SWEEP_S + 2 * MINUTE_S)}, since_s=began)
    stack.pass_time(SWEEP_S)
    assert stack.all_handed_over([done])
    stack.enable("dispatch")
    rings(stack, {"DispatchLag": (GRACE_S, 3 * SWEEP_S)}, since_s=began, also=("SweepRepairs",))
    stack.calm()


def test_a_dispatcher_without_its_permission_rings_by_its_lag_and_then_by_the_repairs(stack: Night) -> None:
    began = stack.calm()
    with stack.refusing("dispatch", "sqs", {"SendMessage", "SendMessageBatch"}):
        stack.stubborn = "dispatch"
        done = job(stack)
        rings(
            stack,
            {"DispatchLag": (GRACE_S, GRACE_S + 3 * MINUTE_S), "SweepRepairs": (GRACE_S, GRACE_S + SWEEP_S + 120)},
            since_s=began,
        )
    stack.stubborn = ""
    stack.settle()
    assert stack.all_handed_over([done])
    stack.calm()


def test_work_that_nobody_takes_rings_by_its_age_in_each_queue(stack: Night) -> None:
    began = stack.calm()
    stack.disable("deliver")
    ended = job(stack)
    poll(lambda: stack.all_handed_over([ended]), lambda: "it is not handed over")
    for role in ("worker", "ingest"):
        stack.disable(role)
    done = [job(stack), job(stack, urgent=True)]
    upload(stack)
    ages = {"OldestUrgentMessage": 300} | dict.fromkeys(
        ("OldestWorkMessage", "OldestInboxMessage", "OldestDeliveriesMessage"), 900
    )
    bounds = {name: (age, age + 2 * MINUTE_S) for name, age in ages.items()}
    rings(stack, bounds, since_s=began, also=("SweepRepairs",))  # an urgent job is sent again before it is missed
    for role in ("worker", "ingest", "deliver"):
        stack.enable(role)
    stack.settle()
    stack.calm()
    assert stack.all_handed_over(done)


def test_a_worker_that_is_always_throttled_rings_at_once_and_then_by_age_and_by_letters(stack: Night) -> None:
    """SQS-03. After five deliveries SQS gives up: no try of a job, so the sweep puts its letter back."""
    stack.calm()
    began = stack.midway()
    refusal = stack.strike(Fault("worker", "throttle", "before", times=10_000, service="handler"))
    done = [job(stack), job(stack, urgent=True)]
    rings(stack, {"WorkerThrottles": SOON, "OldestUrgentMessage": (300, 420)}, since_s=began, also=("SweepRepairs",))
    lost = MANY * VISIBILITY_S
    rings(
        stack,
        {
            "OldestWorkMessage": (900, 1_020),
            **dict.fromkeys(("WorkDeadLetters", "UrgentDeadLetters"), (lost, lost + VISIBILITY_S)),
        },
        since_s=began,
        also=(
            "SweepRepairs", "WorkerThrottles", "OldestUrgentMessage",
            "WorkDeadLettersGrowing", "UrgentDeadLettersGrowing",
        ),
    )  # fmt: skip
    assert refusal.fired >= 2 * MANY
    # each look of a sweep at a waiting job comes after twice the time: the last one may have found it just young enough
    late = {"OldestOpenJob": (HOUR_S - GRACE_S, 2 * HOUR_S + SWEEP_S + 5 * MINUTE_S)}
    rings(stack, late, since_s=began, also=tuple(stack.names.values()), step_s=5 * MINUTE_S)
    stack.heal()
    stack.pass_time(3 * HOUR_S, SWEEP_S)
    assert stack.all_handed_over(done)
    stack.calm()


# --- what comes in, and who hears ----------------------------------------------------------------------------------


def test_an_upload_that_nobody_was_told_of_rings_when_the_comparison_finds_it(stack: Night) -> None:
    began = stack.calm()
    stack.runtime.notifications.drop(1)
    upload(stack)
    bounds = (SOURCE_GRACE_S, SOURCE_GRACE_S + HOUR_S + SWEEP_S)
    rings(stack, {"SweepRepairs": bounds}, since_s=began, step_s=SWEEP_S)
    stack.calm()


def test_a_removed_subscription_rings_until_it_is_back_and_one_that_cannot_be_served_at_once(stack: Night) -> None:
    stack.pass_time(SWEEP_S, SWEEP_S)
    began = stack.calm()
    topic = stack.target.outputs["JobEventsTopicArn"]
    listed = stack.sns.list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    own = stack.inbox.rpartition("/")[2]  # beside that of the deliveries
    (subscription,) = [one for one in listed if one["Endpoint"].endswith(f":{own}")]
    stack.sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
    rings(stack, {"ListenersLost": (0, SWEEP_S + 2 * MINUTE_S)}, since_s=began)
    stack.pass_time(4 * SWEEP_S, SWEEP_S)
    assert stack.ringing() == {"ListenersLost"}
    endpoint = subscription["Endpoint"]
    stack.sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=endpoint)
    began = stack.calm()
    stack.sqs.delete_queue(QueueUrl=stack.inbox)
    done = job(stack)
    rings(stack, {"NotificationsFailed": SOON}, since_s=began)
    assert stack.all_handed_over([done])  # SNS has taken it
    stack.inbox = stack.sqs.create_queue(QueueName=endpoint.rpartition(":")[2])["QueueUrl"]
    stack.calm()


def test_a_delivery_that_is_refused_for_good_rings_and_its_job_is_none_the_worse(stack: Night) -> None:
    began = stack.calm()
    with Receiver() as receiver:
        done = job(stack, callback_url=receiver.says("/gone", Says(410)))
        rings(stack, {"DeliveriesFailed": SOON}, since_s=began)
        assert len(receiver.came("/gone")) == 1
    assert stack.all_handed_over([done])
    assert stack.record(done)["status"] == "COMPLETED"
    stack.calm()


def test_a_time_to_live_that_takes_open_work_rings_and_keeps_what_it_took(stack: Night) -> None:
    began = stack.calm()
    waiting = job(stack, not_before=later(stack, DAY_S))
    edit(stack, waiting, expires_at={"N": str(int(stack.now()) - 1)})
    assert ttl.delete_expired(0) == 1
    growing = ("DispatchDeadLetters", "DispatchDeadLettersGrowing")
    rings(stack, {"RecordsLost": SOON, "DispatchDeadLetters": SOON}, since_s=began, also=growing)
    (letter,) = stack.target.letters("DispatchDlqUrl")
    assert letter["reason"] == "RECORD_LOST"
    (lost,) = [json.loads(letter["body"]["payload"]["body"])["dynamodb"]["OldImage"]]
    assert from_item(lost)["pk"] == waiting
    stack.heal()
    stack.calm()


# --- the door, functions -------------------------------------------------------------------------------------------


def test_a_door_that_cannot_record_rings_though_no_function_has_failed(stack: Night) -> None:
    began = stack.calm()
    with stack.refusing("accept", "dynamodb", {"PutItem"}):
        assert PROVOKE["accept"](stack).status == 503
    rings(stack, {"ApiErrors": SOON}, since_s=began)
    stack.calm()


@pytest.mark.parametrize(("kind", "suffix"), [("crash", "Errors"), ("throttle", "Throttles")])
def test_each_function_that_dies_or_has_no_room_rings_its_own_alarm(stack: Night, kind: str, suffix: str) -> None:
    began = stack.calm()
    also = ["ApiErrors"]
    also += [f"{name}DeadLetters{more}" for name in ("Sweep", "Ended") for more in ("", "Growing")]
    for role in ROLES if kind == "crash" else (*ROLES, *CALLED_AGAIN):
        now = stack.now()
        stack.strike(Fault(role, kind, "before", service="handler"))
        PROVOKE[role](stack)
        name = f"{role.capitalize()}{suffix}"
        assert name not in stack.rung(began)
        stack.patient = frozenset({"redrive", "ended"})  # they are tried again later
        rings(stack, {name: SOON}, since_s=now, also=tuple(also))
        also.append(name)
    stack.pass_time(2 * SWEEP_S, SWEEP_S)
    stack.heal()
    stack.calm()


# --- workflows -----------------------------------------------------------------------------------------------------


def machine(stack: Night) -> str:
    return stack.target.outputs["WorkflowAnalyzeDocumentArn"]


LETTERS_OF_JOBS = ("WorkDeadLetters", "WorkDeadLettersGrowing")


def test_branches_that_die_each_time_ring_and_so_do_the_parts_that_they_leave_out(stack: Night) -> None:
    began = stack.calm()
    stack.strike(Fault("branch", "crash", "before", times=1_000, service="handler"))
    lost = [document(stack)]
    stack.pass_time(8 * MINUTE_S)
    lost.append(document(stack))
    expected = {"PartsLost": (0, 8 * MINUTE_S), "BranchErrors": (8 * MINUTE_S, 25 * MINUTE_S)}
    rings(stack, expected, since_s=began, also=LETTERS_OF_JOBS)
    stack.pass_time(8 * MINUTE_S)
    assert [stack.record(one)["error"]["code"] for one in lost] == ["PARTS_MISSING"] * 2
    stack.heal()
    stack.calm()


def test_a_collector_that_dies_each_time_rings_and_so_do_the_executions_that_it_fails(stack: Night) -> None:
    began = stack.calm()
    stack.strike(Fault("collect", "crash", "before", times=1_000, service="handler"))
    first = document(stack)
    stack.pass_time(8 * MINUTE_S)
    second = document(stack)
    expected = {"ExecutionsFailed": (0, 12 * MINUTE_S), "CollectErrors": (5 * MINUTE_S, 25 * MINUTE_S)}
    rings(stack, expected, since_s=began, also=LETTERS_OF_JOBS)
    stack.pass_time(12 * MINUTE_S)
    assert [stack.record(one)["error"]["code"] for one in (first, second)] == ["EXECUTION_FAILED"] * 2
    stack.heal()
    stack.calm()


def test_an_execution_that_takes_too_long_rings_and_the_next_one_ends_the_job(stack: Night) -> None:
    began = stack.calm()
    stack.script({"match": "The pump is broken", "error": "ThrottlingException"})
    slow = document(stack)
    stack.settle()
    stack.advance(HOUR_S / 2 + 1)
    stack.script()
    leapt = ("BranchErrors", "OldestOpenJob", "SweepSilence")  # over two sweeps
    rings(stack, {"ExecutionsTimedOut": (HOUR_S / 2, HOUR_S)}, since_s=began, also=leapt)
    stack.pass_time(5 * MINUTE_S)
    assert stack.record(slow)["status"] == "COMPLETED"
    stack.calm()


def test_executions_that_are_held_back_ring(stack: Night) -> None:
    """The account's quota is not played here: Step Functions reports it."""
    began = stack.calm()
    held = metric("AWS/States", "ExecutionThrottled", {"StateMachineArn": machine(stack)})
    stack.runtime.metrics.store.put(held, 1, stack.now())
    rings(stack, {"ExecutionThrottled": SOON}, since_s=began)
    stack.calm()


def test_a_sweep_that_cannot_read_what_is_due_rings(stack: Night) -> None:
    began = stack.calm()
    with stack.refusing("sweep", "dynamodb", {"Query"}):
        rings(stack, {"SweepTroubles": (0, SWEEP_S + 2 * MINUTE_S)}, since_s=began)
    stack.calm()


# --- dead letters --------------------------------------------------------------------------------------------------


def lay_letters(stack: Night) -> None:
    """One in each of the queues, by what causes them."""
    word = uuid.uuid4().hex
    stack.script({"match": word, "error": "ValidationException"})
    for urgent in (False, True):
        job(stack, f"{word} {urgent}", urgent=urgent)
    for queue in ("InboxQueueUrl", "DeliveriesQueueUrl"):
        stack.sqs.send_message(QueueUrl=stack.target.outputs[queue], MessageBody="no event of ours")
    waiting = job(stack, not_before=later(stack, DAY_S))
    edit(stack, waiting, attempt={"S": "one"})
    stack.settle()
    edit(stack, waiting, attempt={"N": "0"})
    stack.strike(Fault("sweep", "crash", "before", service="handler", job_id="no-such-part"))
    start(stack, "sweep", parts=["no-such-part"])
    stack.strike(Fault("ended", "crash", "before", times=3, service="handler"))
    start(stack, "ended", detail={})
    stack.strike(Fault("redrive", "crash", "before", times=3, service="handler"))
    start(stack, "redrive", redrive_id=word, round=0)


def test_letters_ring_in_each_queue_and_again_when_there_are_more_of_them(stack: Night) -> None:
    began = stack.calm()
    stack.patient = frozenset({"redrive", "ended"})
    first = [f"{name}DeadLetters" for name in LETTERS]
    growing = [f"{name}Growing" for name in first]
    errors = ("SweepErrors", "RedriveErrors", "EndedErrors")
    lay_letters(stack)
    later_ = [f"{name}DeadLetters{more}" for name in ("Redrive", "Ended") for more in ("", "Growing")]
    tried_three_times = dict.fromkeys(later_, (180, 15 * MINUTE_S))
    rings(stack, dict.fromkeys((*first, *growing), SOON) | tried_three_times, since_s=began, also=errors)
    stack.pass_time(2 * SWEEP_S, SWEEP_S)
    assert stack.ringing() >= set(first)
    assert not stack.ringing() & set(growing)
    again = stack.now()
    lay_letters(stack)
    rings(stack, dict.fromkeys(growing, (0, 15 * MINUTE_S)), since_s=again, also=(*first, *errors))
    assert not stack.rung(again).keys() & set(first)  # they have rung all the time
    stack.heal()
    stack.calm()


def test_a_push_that_cannot_ask_who_watches_gives_up_after_five_minutes_and_the_jobs_do_not_mind(stack: Night) -> None:
    began = stack.calm()
    letters = dict.fromkeys(("PushDeadLetters", "PushDeadLettersGrowing"), (5 * MINUTE_S, 8 * MINUTE_S))
    with stack.refusing("push", "dynamodb", {"Query"}):
        stack.stubborn = "push"
        done = job(stack)
        stack.pass_time(4 * MINUTE_S)
        stack.disable("push")
        stack.advance(2 * MINUTE_S)
        stack.stubborn = ""  # it is given up without one more try
        stack.enable("push")
        rings(stack, letters, since_s=began)
    assert stack.all_handed_over([done])
    (letter,) = stack.take_all(stack.target.outputs["PushDlqUrl"])
    assert "summarize" not in letter["Body"]  # it names the records, and has nothing of them
    stack.calm()


# --- all of them ---------------------------------------------------------------------------------------------------


def test_every_alarm_of_the_template_was_rung_by_one_of_these_tests_and_looks_at_what_is_reported(
    stack: Night,
) -> None:
    """The last one: a new alarm turns it red until something here rings it."""
    assert set(stack.names.values()) - stack.fired == set()
    assert stack.runtime.metrics.look().never_fed() == []


def test_the_control_shows_the_same_with_every_change_of_state(stack: Night) -> None:
    shown = stack.target.control("GET", "alarms")
    assert {one["state"] for one in shown["alarms"]} == {"OK"}
    assert shown["never_reported"] == []
    assert all(one["transitions"] for one in shown["alarms"])
