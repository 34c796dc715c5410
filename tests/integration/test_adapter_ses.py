"""The Mailer port on SES: sent, certainly not sent, or nobody knows; never two of these at once."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from lambdas.adapters.clients import single_attempt_client
from lambdas.adapters.ses import KEY_HEADER, NoMailer, SesMailer
from lambdas.core.outcomes import NotDone, Permanent
from tests.integration.cloud import REGION, Cloud

SENDER = "neverdrop@example.test"
MAIL: dict[str, Any] = {"to": "anna@example.test", "subject": "Caf\u00e9 \U0001f600", "text": "Hello", "key": "k" * 64}


@pytest.fixture
def mailer(cloud: Cloud) -> SesMailer:
    cloud.client("sesv2").create_email_identity(EmailIdentity=SENDER)
    cloud.wire.clear()
    return SesMailer(single_attempt_client("sesv2", 5), SENDER)


def sent(cloud: Cloud) -> list[Any]:
    from moto.ses.models import ses_backends

    return list(ses_backends[cloud.stack.account][REGION].sent_messages)


@pytest.fixture(autouse=True)
def _empty_outbox(cloud: Cloud) -> None:
    from moto.ses.models import ses_backends

    ses_backends[cloud.stack.account][REGION].sent_messages.clear()


def test_a_mail_is_sent_once_to_whom_it_is_for(cloud: Cloud, mailer: SesMailer):
    assert mailer.send(**MAIL)
    (mail,) = sent(cloud)
    assert (mail.source, mail.destinations["ToAddresses"]) == (SENDER, [MAIL["to"]])
    assert cloud.wire.count("SendEmail") == 1


def test_a_mail_carries_its_key_so_that_a_receiver_can_tell_a_repeat(cloud: Cloud, mailer: SesMailer):
    mailer.send(**MAIL)
    assert KEY_HEADER in cloud.wire.sent[-1].body
    assert MAIL["key"] in cloud.wire.sent[-1].body


@pytest.mark.parametrize("code", ["TooManyRequestsException", "LimitExceededException", "ThrottlingException"])
def test_a_throttle_is_not_done(cloud: Cloud, mailer: SesMailer, code: str):
    cloud.wire.refuse("SendEmail", code, 429)
    with pytest.raises(NotDone):
        mailer.send(**MAIL)
    assert (sent(cloud), cloud.wire.count("SendEmail")) == ([], 1)


@pytest.mark.parametrize("code", ["MessageRejected", "BadRequestException", "MailFromDomainNotVerifiedException"])
def test_a_refusal_is_permanent(cloud: Cloud, mailer: SesMailer, code: str):
    cloud.wire.refuse("SendEmail", code, 400)
    with pytest.raises(Permanent) as refused:
        mailer.send(**MAIL)
    assert refused.value.code == "MAIL_REFUSED"


def test_a_server_error_says_nothing_and_is_not_repeated(cloud: Cloud, mailer: SesMailer):
    cloud.wire.refuse("SendEmail", "InternalFailure", 500)
    with pytest.raises(ClientError):
        mailer.send(**MAIL)
    assert cloud.wire.count("SendEmail") == 1


def test_a_lost_reply_says_nothing_and_is_not_repeated(cloud: Cloud, mailer: SesMailer):
    cloud.wire.lose("SendEmail", times=5)
    with pytest.raises(BotoCoreError):
        mailer.send(**MAIL)
    assert len(sent(cloud)) == 1


def test_a_mail_that_never_left_is_not_done(cloud: Cloud, monkeypatch: pytest.MonkeyPatch):
    """A refused connection: `once` need not call the outcome unknown."""
    with socket.socket() as taken:  # bound and not listening
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL_SESV2", f"http://127.0.0.1:{taken.getsockname()[1]}")
        mailer = SesMailer(single_attempt_client("sesv2", 5), SENDER)
        with pytest.raises(NotDone):
            mailer.send(**MAIL)


def test_a_deployment_without_a_sender_says_so():
    with pytest.raises(Permanent) as off:
        NoMailer().send(**MAIL)
    assert off.value.code == "MAIL_OFF"
