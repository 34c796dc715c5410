"""Side effects of tasks: on the intent that was first recorded, under one key, and never twice where once was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lambdas.contracts.names import COMPLETED, FAILED
from tests.simulation.own_tasks import LiveStack, running

SENDER = "jobs@example.com"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The world outside: a file to which the task `act` adds a line for each effect."""
    return tmp_path / "outside"


def deeds(place: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in place.read_text("utf-8").splitlines()] if place.exists() else []


def strike(live: LiveStack, kind: str, operation: str, nth: int, when: str) -> None:
    """At the worker's nth such call on DynamoDB: PutItem 1 is the intent, 2 the start; UpdateItem 2 is the end."""
    fault = {"function": "worker", "service": "dynamodb", "operation": operation, "nth": nth, "when": when}
    live.control("POST", "faults", {**fault, "kind": kind})


def act(live: LiveStack, place: Path, *faults: tuple[str, str, int, str], **task_input: Any) -> dict[str, Any]:
    """One job with effects, as it ended."""
    live.control("POST", "pause", {"function": "worker"})
    job_id = live.submit("act", {"place": str(place), **task_input})
    for fault in faults:
        strike(live, *fault)
    live.control("POST", "resume", {"function": "worker"})
    (job,) = live.settle(job_id)
    return dict(job)


# --- the recorded intent -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("once", [False, True])
def test_an_effect_happens_and_its_result_is_kept_for_a_later_try(live: LiveStack, place: Path, once: bool) -> None:
    job = act(live, place, once=once, then="break after it")
    assert (job["status"], job["tries"]) == (COMPLETED, 2)
    (deed,) = deeds(place)
    assert deed["payload"] == {"words": "as of try 1"}
    assert live.get(f"/jobs/{job['pk']}/result").json()["found"] == [{"id": deed["key"][:8]}]


@pytest.mark.parametrize("says", ["raise", "die"])
def test_idem_24_a_later_try_acts_on_the_recorded_payload_under_the_same_key(
    live: LiveStack, place: Path, says: str
) -> None:
    job = act(live, place, says=says)
    assert (job["status"], job["tries"]) == (COMPLETED, 2)
    first, second = deeds(place)
    assert first == second
    assert first["payload"] == {"words": "as of try 1"}


def test_effects_of_two_jobs_and_two_names_are_apart(live: LiveStack, place: Path) -> None:
    jobs = [act(live, place, names=["mail", "crm"]) for _ in range(2)]
    assert {job["status"] for job in jobs} == {COMPLETED}
    assert len({deed["key"] for deed in deeds(place)}) == 4


def test_a_reopened_job_does_not_repeat_what_it_has_done(live: LiveStack, place: Path) -> None:
    live.empty("WorkDlqUrl")
    job = act(live, place, names=["deed", "a bad name"])
    assert (job["status"], job["error"]["code"]) == (FAILED, "INVALID_EFFECT")
    live.sqs.start_message_move_task(SourceArn=live.arn("WorkDlqUrl"), DestinationArn=live.arn("WorkQueueUrl"))
    live.pass_time([job["pk"]], lambda record: record["run"] == 1 and "handed_over_at" in record)
    assert len(deeds(place)) == 1


# --- crashes, with the effect done and its end not recorded ------------------------------------------------------
def test_an_effect_killed_before_its_end_was_recorded_is_repeated_under_the_same_key(
    live: LiveStack, place: Path
) -> None:
    job = act(live, place, ("crash", "UpdateItem", 2, "before"))
    assert (job["status"], job["crashes"]) == (COMPLETED, 1)
    first, second = deeds(place)
    assert first == second


def test_an_effect_once_killed_before_its_end_was_recorded_fails_its_job_and_is_not_repeated(
    live: LiveStack, place: Path
) -> None:
    job = act(live, place, ("crash", "UpdateItem", 2, "before"), once=True)
    assert (job["status"], job["error"]["code"], job["crashes"]) == (FAILED, "OUTCOME_UNKNOWN", 1)
    assert len(deeds(place)) == 1
    letter = live.letter_about(job["pk"])
    assert letter["reason"] == "OUTCOME_UNKNOWN"


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        (("crash", "PutItem", 1, "before"), 1),
        (("crash", "PutItem", 1, "after"), 1),
        (("crash", "PutItem", 2, "before"), 1),
        (("crash", "UpdateItem", 2, "after"), 1),
    ],
    ids=str,
)
def test_an_effect_once_is_done_once_when_the_kill_left_no_doubt(
    live: LiveStack, place: Path, fault: tuple[str, str, int, str], times: int
) -> None:
    job = act(live, place, fault, once=True)
    assert (job["status"], job["crashes"]) == (COMPLETED, 1)
    assert len(deeds(place)) == times


def test_an_effect_once_killed_right_after_its_start_may_have_happened(live: LiveStack, place: Path) -> None:
    job = act(live, place, ("crash", "PutItem", 2, "after"), once=True)
    assert (job["status"], job["error"]["code"]) == (FAILED, "OUTCOME_UNKNOWN")
    assert deeds(place) == []


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("write", [("PutItem", 1), ("PutItem", 2), ("UpdateItem", 2)], ids=["intent", "start", "end"])
def test_a_lost_reply_changes_nothing(live: LiveStack, place: Path, write: tuple[str, int], once: bool) -> None:
    job = act(live, place, ("lost_reply", *write, "after"), once=once)
    assert (job["status"], job["tries"], job["crashes"]) == (COMPLETED, 1, 0)
    assert len(deeds(place)) == 1


# --- what did not happen, and what nobody knows ------------------------------------------------------------------
@pytest.mark.parametrize("once", [False, True])
def test_what_certainly_did_not_happen_is_tried_again(live: LiveStack, place: Path, once: bool) -> None:
    job = act(live, place, once=once, says="not done")
    assert (job["status"], job["tries"]) == (COMPLETED, 2)
    assert len(deeds(place)) == 1


@pytest.mark.parametrize("once", [False, True])
def test_what_never_will_happen_fails_the_job_with_its_reason(live: LiveStack, place: Path, once: bool) -> None:
    job = act(live, place, once=once, says="permanent")
    assert (job["status"], job["error"]["code"], job["tries"]) == (FAILED, "THEY_SAID_NO", 1)
    assert deeds(place) == []


@pytest.mark.parametrize(("says", "crashes"), [("raise", 0), ("die", 1)])
def test_an_effect_once_of_which_nobody_knows_is_not_repeated(
    live: LiveStack, place: Path, says: str, crashes: int
) -> None:
    job = act(live, place, once=True, says=says)
    assert (job["status"], job["error"]["code"], job["crashes"]) == (FAILED, "OUTCOME_UNKNOWN", crashes)
    assert len(deeds(place)) == 1


# --- what is no effect -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "task_input",
    [
        {"names": [""]},
        {"names": ["a b"]},
        {"names": ["a#b"]},
        {"names": ["x" * 65]},
        {"payload": "a set"},
        {"payload": "nan"},
        {"payload": "half a letter"},
    ],
    ids=str,
)
def test_what_is_no_effect_fails_its_job_before_anything_happens(
    live: LiveStack, place: Path, task_input: dict[str, Any]
) -> None:
    job = act(live, place, **task_input)
    assert (job["status"], job["error"]["code"], job["tries"]) == (FAILED, "INVALID_EFFECT", 1)
    assert deeds(place) == []


def test_one_name_stands_for_one_effect_of_a_try(live: LiveStack, place: Path) -> None:
    job = act(live, place, names=["deed", "deed"])
    assert (job["status"], job["error"]["code"]) == (FAILED, "INVALID_EFFECT")
    assert len(deeds(place)) == 1


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("says", ["a set", "a lot", "half a letter", "nan"])
def test_an_effect_whose_result_cannot_be_kept_is_not_repeated(
    live: LiveStack, place: Path, says: str, once: bool
) -> None:
    job = act(live, place, says=says, once=once)
    assert (job["status"], job["error"]["code"], job["tries"]) == (FAILED, "INVALID_EFFECT", 1)
    assert len(deeds(place)) == 1


@pytest.mark.parametrize("says", ["a tuple", "numbered"])
@pytest.mark.parametrize("once", [False, True])
def test_a_result_is_the_same_in_the_first_try_and_in_a_later_one(
    live: LiveStack, place: Path, tmp_path: Path, says: str, once: bool
) -> None:
    first = act(live, place, says=says, once=once)
    later = act(live, tmp_path / "later", says=says, once=once, then="break after it")
    results = [live.get(f"/jobs/{job['pk']}/result").json() for job in (first, later)]
    assert [job["tries"] for job in (first, later)] == [1, 2]
    assert results[0] == results[1]


# --- notify-by-email ---------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def mailing_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    """A stack that sends e-mail from an address that SES knows."""
    with running(tmp_path_factory.mktemp("mailing"), f"mail_from={SENDER}") as live:
        live.client("sesv2").create_email_identity(EmailIdentity=SENDER)
        yield live


@pytest.fixture
def mailing(mailing_stack: LiveStack) -> Iterator[LiveStack]:
    mailing_stack.control("DELETE", "mails")
    yield mailing_stack
    mailing_stack.calm()


def mails(live: LiveStack) -> list[dict[str, Any]]:
    """What SES took since this test began."""
    found: list[dict[str, Any]] = live.control("GET", "mails")["mails"]
    return found


def written(subject: str = "Disk full", text: str = "The disk of host 7 is full.") -> dict[str, Any]:
    return {"answer": {"subject": subject, "text": text}}


@pytest.mark.parametrize("once", [False, True])
def test_an_email_is_sent_once_and_says_so(mailing: LiveStack, nonce: str, once: bool) -> None:
    mailing.script({"match": nonce, **written()})
    job_id = mailing.submit("notify-by-email", {"to": "ops@example.org", "about": nonce, "once": once})
    (job,) = mailing.settle(job_id)
    assert job["status"] == COMPLETED, job["error"]
    result = mailing.get(f"/jobs/{job_id}/result").json()
    assert result["subject"] == "Disk full"
    (mail,) = mails(mailing)
    assert mail["MessageId"] == result["message_id"]
    assert (mail["FromEmailAddress"], mail["Destination"]) == (SENDER, {"ToAddresses": ["ops@example.org"]})
    content = mail["Content"]["Simple"]
    assert content["Body"]["Text"]["Data"] == "The disk of host 7 is full."
    (header,) = content["Headers"]
    assert (header["Name"], len(header["Value"])) == ("X-Neverdrop-Key", 64)


def test_an_email_that_left_before_a_crash_is_sent_again_as_it_was_first_written(
    mailing: LiveStack, nonce: str
) -> None:
    """It would now be written differently: its answer is forgotten, and the model has other words."""
    mailing.script({"match": nonce, **written("First words")})
    mailing.control("POST", "pause", {"function": "worker"})
    job_id = mailing.submit("notify-by-email", {"to": "ops@example.org", "about": nonce})
    strike(mailing, "crash", "UpdateItem", 3, "before")  # after the claim and the answer
    mailing.control("POST", "resume", {"function": "worker"})
    mailing.pass_time([job_id], lambda record: len(mails(mailing)) == 1)
    forget_answers(mailing)
    mailing.script({"match": nonce, **written("Second thoughts")})
    (job,) = mailing.settle(job_id)
    assert (job["status"], job["crashes"]) == (COMPLETED, 1)
    assert len(mailing.model_calls(nonce)) == 2
    assert mailing.get(f"/jobs/{job_id}/result").json()["subject"] == "First words"
    first, second = mails(mailing)
    assert first["Content"] == second["Content"]  # the key in its header, too


def test_an_email_once_that_left_before_a_crash_is_not_sent_again(mailing: LiveStack, nonce: str) -> None:
    mailing.script({"match": nonce, **written()})
    mailing.control("POST", "pause", {"function": "worker"})
    job_id = mailing.submit("notify-by-email", {"to": "ops@example.org", "about": nonce, "once": True})
    strike(mailing, "crash", "UpdateItem", 3, "before")
    mailing.control("POST", "resume", {"function": "worker"})
    (job,) = mailing.settle(job_id)
    assert (job["status"], job["error"]["code"]) == (FAILED, "OUTCOME_UNKNOWN")
    assert len(mails(mailing)) == 1
    assert len(mailing.model_calls(nonce)) == 1


def forget_answers(live: LiveStack) -> None:
    table, dynamodb = live.outputs["AnswersTableName"], live.client("dynamodb")
    for row in dynamodb.scan(TableName=table)["Items"]:
        if row["id"]["S"].startswith("model/"):
            dynamodb.delete_item(TableName=table, Key={"id": row["id"]})


@pytest.mark.parametrize(
    "subject", ["Hi\r\nBcc: x@y.test", "Hi\nBcc: x@y.test", "Hi\u2028Bcc: x@y.test", "Hi\x0bBcc: x@y.test"]
)
def test_no_header_hides_in_a_subject(mailing: LiveStack, nonce: str, subject: str) -> None:
    mailing.script({"match": nonce, **written(subject)})
    job_id = mailing.submit("notify-by-email", {"to": "ops@example.org", "about": nonce})
    (job,) = mailing.settle(job_id)
    assert job["status"] == COMPLETED
    assert mailing.get(f"/jobs/{job_id}/result").json()["subject"] == "Hi Bcc: x@y.test"
    (mail,) = mails(mailing)
    assert mail["Content"]["Simple"]["Subject"]["Data"] == "Hi Bcc: x@y.test"


@pytest.mark.parametrize(
    "to", ["a@x.test\nBcc: b@x.test", "a@x.test, b@x.test", "a@x.test\r", "A <a@x.test>", "nobody", ""]
)
def test_an_address_that_is_more_or_less_than_one_is_refused_at_the_door(mailing: LiveStack, to: str) -> None:
    answer = mailing.post("/jobs", {"type": "notify-by-email", "input": {"to": to, "about": "x"}})
    assert answer.status in (400, 422)
    assert mails(mailing) == []


def test_a_mail_that_ses_refuses_fails_its_job_with_that_reason(mailing: LiveStack, nonce: str) -> None:
    mailing.client("sesv2").delete_email_identity(EmailIdentity=SENDER)
    try:
        job_id = mailing.submit("notify-by-email", {"to": "ops@example.org", "about": f"{nonce} happened."})
        (job,) = mailing.settle(job_id)
    finally:
        mailing.client("sesv2").create_email_identity(EmailIdentity=SENDER)
    assert (job["status"], job["error"]["code"], job["tries"]) == (FAILED, "MAIL_REFUSED", 1)
    assert "not verified" in job["error"]["message"]


def test_without_a_sender_the_job_says_that_no_mail_is_sent(live: LiveStack, nonce: str) -> None:
    job_id = live.submit("notify-by-email", {"to": "ops@example.org", "about": f"{nonce} happened."})
    (job,) = live.settle(job_id)
    assert (job["status"], job["error"]["code"], job["tries"]) == (FAILED, "MAIL_OFF", 1)
    assert "mail_from" in job["error"]["message"]
