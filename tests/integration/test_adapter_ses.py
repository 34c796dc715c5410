"""The Mailer port on SES: what is sent, and which refusal means what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lambdas.adapters.clients import single_attempt_client
from lambdas.adapters.ses import NoMailer, SesMailer
from lambdas.core.outcomes import NotDone, Permanent
from tests.integration.cloud import Cloud

SENDER = "jobs@example.com"
MAIL = {"to": "a@x.test", "subject": "Grüße", "text": "Zeile 1\nZeile 2", "key": "k" * 64}


@pytest.fixture
def mailer(cloud: Cloud) -> SesMailer:
    cloud.client("sesv2").create_email_identity(EmailIdentity=SENDER)
    return SesMailer(single_attempt_client("sesv2", 10), SENDER)


def sent(cloud: Cloud) -> list[dict[str, Any]]:
    return [json.loads(one.body) for one in cloud.wire.sent if one.operation == "SendEmail"]


def test_a_mail_goes_out_with_its_key(cloud: Cloud, mailer: SesMailer):
    assert mailer.send(**MAIL)
    (mail,) = sent(cloud)
    assert mail["FromEmailAddress"] == SENDER
    assert mail["Destination"] == {"ToAddresses": ["a@x.test"]}
    content = mail["Content"]["Simple"]
    assert content["Subject"] == {"Data": "Grüße", "Charset": "UTF-8"}
    assert content["Body"] == {"Text": {"Data": "Zeile 1\nZeile 2", "Charset": "UTF-8"}}
    assert content["Headers"] == [{"Name": "X-Neverdrop-Key", "Value": "k" * 64}]


def test_each_mail_has_an_id_of_its_own(mailer: SesMailer):
    assert mailer.send(**MAIL) != mailer.send(**MAIL)


def test_a_sender_that_is_not_verified_is_refused_for_good(cloud: Cloud):
    mailer = SesMailer(single_attempt_client("sesv2", 10), "nobody@example.org")
    with pytest.raises(Permanent, match="not verified") as refused:
        mailer.send(**MAIL)
    assert refused.value.code == "MAIL_REFUSED"


@pytest.mark.parametrize("to", ["", "nobody"])
def test_an_address_that_ses_does_not_take_is_refused_for_good(mailer: SesMailer, to: str):
    with pytest.raises(Permanent) as refused:
        mailer.send(**{**MAIL, "to": to})
    assert refused.value.code == "MAIL_REFUSED"


@pytest.mark.parametrize("code", ["TooManyRequestsException", "LimitExceededException", "SendingPausedException"])
def test_a_mail_that_ses_will_take_later_was_certainly_not_sent(cloud: Cloud, mailer: SesMailer, code: str):
    cloud.wire.refuse("SendEmail", code, times=1)
    with pytest.raises(NotDone, match=code):
        mailer.send(**MAIL)
    assert mailer.send(**MAIL)


@pytest.mark.parametrize("code", ["MessageRejected", "BadRequestException", "AccessDeniedException"])
def test_a_mail_that_ses_never_takes_is_refused_with_its_word(cloud: Cloud, mailer: SesMailer, code: str):
    cloud.wire.refuse("SendEmail", code, times=1)
    with pytest.raises(Permanent, match=code) as refused:
        mailer.send(**MAIL)
    assert refused.value.code == "MAIL_REFUSED"


def test_of_a_mail_whose_reply_is_lost_nobody_knows_and_it_is_not_sent_again_behind_our_back(
    cloud: Cloud, mailer: SesMailer
):
    cloud.wire.lose("SendEmail")
    with pytest.raises(Exception) as lost:  # noqa: PT011 (whatever botocore says, but neither of the two)
        mailer.send(**MAIL)
    assert not isinstance(lost.value, NotDone | Permanent)
    assert len(sent(cloud)) == 1


def test_a_server_error_says_nothing_about_the_mail(cloud: Cloud, mailer: SesMailer):
    cloud.wire.refuse("SendEmail", "InternalFailure", 500, times=1)
    with pytest.raises(ClientError):
        mailer.send(**MAIL)
    assert len(sent(cloud)) == 1


def test_without_a_sender_no_mail_is_sent_and_the_reason_says_what_to_set():
    with pytest.raises(Permanent, match="mail_from") as off:
        NoMailer().send(**MAIL)
    assert off.value.code == "MAIL_OFF"
