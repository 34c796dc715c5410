"""The Mailer port on Amazon SES; off unless the deployment names a sender."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from lambdas.adapters.clients import NOTHING_SENT, code_of
from lambdas.core.outcomes import NotDone, Permanent

KEY_HEADER = "X-Neverdrop-Key"  # SES cannot tell a repeat; a receiver can, by this
TRY_AGAIN = {
    "TooManyRequestsException",
    "LimitExceededException",
    "ThrottlingException",
    "SendingPausedException",
    "ExpiredTokenException",
    "UnrecognizedClientException",
    "InvalidSignatureException",
}


class SesMailer:
    """Sends from one address that SES has verified."""

    def __init__(self, client: Any, sender: str) -> None:
        self._client, self._sender = client, sender

    def send(self, *, to: str, subject: str, text: str, key: str) -> str:
        content = {
            "Simple": {
                "Subject": {"Data": subject, "Charset": "UTF-8"},
                "Body": {"Text": {"Data": text, "Charset": "UTF-8"}},
                "Headers": [{"Name": KEY_HEADER, "Value": key}],
            }
        }
        try:
            answer = self._client.send_email(
                FromEmailAddress=self._sender, Destination={"ToAddresses": [to]}, Content=content
            )
        except ClientError as error:
            raise _refusal(error) from error
        except ParamValidationError as error:
            raise Permanent(str(error), "MAIL_REFUSED") from error
        except NOTHING_SENT as error:
            raise NotDone(str(error)) from error
        return str(answer["MessageId"])


class NoMailer:
    """When no sender is set: a task that wants to send says so, and its job ends visibly."""

    def send(self, *, to: str, subject: str, text: str, key: str) -> str:
        raise Permanent(
            "this deployment sends no e-mail: set `mail_from` to an address that SES has verified", "MAIL_OFF"
        )


def _refusal(error: ClientError) -> Exception:
    """What SES refused was not sent; a 5xx says nothing about that."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    if code_of(error) in TRY_AGAIN:
        return NotDone(str(error))
    return Permanent(str(error), "MAIL_REFUSED") if status < 500 else error
