"""S3 tells queues about new objects, and takes no configuration that it could not serve.

Stock moto asks no queue's policy, leaves out `versionId` and `sequencer` (MOTO-23), encodes slashes, and reports a
multipart upload twice: once as a Put. Here queues are the only destination, and new objects the only event.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moto.s3 import notifications
from moto.s3.exceptions import S3ClientError
from moto.s3.models import FakeBucket, FakeKey
from moto.sqs.models import sqs_backends

from local.aws import s3_events
from local.aws.lock import MOTO
from local.aws.patches.patch import Patch
from local.aws.policies import UnknownConditionError, allows

_log = logging.getLogger(__name__)
_CREATED = "s3:ObjectCreated:"
_stock_configure: Any = vars(FakeBucket)["set_notification_configuration"]


@dataclass(frozen=True)
class Notice:
    """One message that S3 owes a queue."""

    queue_arn: str
    bucket: str
    key: str
    event: str
    """As in the message: ObjectCreated:Put, …"""
    body: str


def deliver(notice: Notice) -> None:
    """Put it into its queue now. A queue that is gone loses it, as on AWS."""
    region, account, name = notice.queue_arn.split(":")[3:6]
    with MOTO:
        sqs = sqs_backends[account][region]
        if name not in sqs.queues:
            _log.warning("no queue %s any more: nobody hears of %s", name, notice.key)
            return
        sqs.send_message(queue_name=name, message_body=notice.body)


class _Outlet:
    """Where notices of new objects go: to their queues, unless somebody steps in between."""

    send: Callable[[Notice], None] = staticmethod(deliver)

    def step_in(self, send: Callable[[Notice], None]) -> None:
        self.send = send

    def step_out(self) -> None:
        self.send = deliver


OUTLET = _Outlet()


# --- objects -----------------------------------------------------------------------------------------------


def _send_event(account_id: str, event_name: str, bucket: Any, key: Any) -> None:
    event = str(getattr(event_name, "value", event_name))
    configuration = bucket.notification_configuration
    part_of_upload = event.endswith(":Put") and getattr(key, "multipart", None) is not None
    if configuration is None or not event.startswith(_CREATED) or part_of_upload:
        return
    created = _created(event, bucket, key)
    for wanted in configuration.queue:
        if wanted.matches(event, key.name):
            body = s3_events.message(created, wanted.id)
            OUTLET.send(Notice(wanted.arn, bucket.name, key.name, event.removeprefix("s3:"), body))


def _created(event: str, bucket: FakeBucket, key: FakeKey) -> s3_events.Created:
    return s3_events.Created(
        event=event,
        region=bucket.region_name,
        bucket=bucket.name,
        key=key.name,
        size=key.size,
        etag=key.etag.strip('"'),
        version_id=str(key.version_id) if bucket.is_versioned else None,
    )


# --- configurations ----------------------------------------------------------------------------------------


def _configure(bucket: FakeBucket, wanted: dict[str, Any] | None) -> None:
    queues = _as_list((wanted or {}).get("QueueConfiguration"))
    for kind in ("TopicConfiguration", "CloudFunctionConfiguration", "EventBridgeConfiguration"):
        if kind in (wanted or {}):
            raise S3ClientError("NotImplemented", f"{kind} is not played on this machine")
    for number, configuration in enumerate(queues):
        _check_events(configuration)
        if any(_overlap(configuration, other) for other in queues[:number]):
            raise _invalid(
                "Configurations overlap. Configurations on the same bucket cannot share a common event type."
            )
    refused = [one for one in queues if not _may_send(bucket, one["Queue"])]
    if refused:
        raise _invalid("Unable to validate the following destination configurations")
    _stock_configure(bucket, wanted)


def _check_events(configuration: Mapping[str, Any]) -> None:
    for event in _as_list(configuration["Event"]):
        if not event.startswith(_CREATED):
            raise S3ClientError("NotImplemented", f"the event {event} is not played on this machine")


def _overlap(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    events = [set(_as_list(configuration["Event"])) for configuration in (one, other)]
    everything = f"{_CREATED}*"
    if not events[0] & events[1] and everything not in events[0] | events[1]:
        return False
    (prefix, suffix), (other_prefix, other_suffix) = _ends(one), _ends(other)
    return (prefix.startswith(other_prefix) or other_prefix.startswith(prefix)) and (
        suffix.endswith(other_suffix) or other_suffix.endswith(suffix)
    )


def _ends(configuration: Mapping[str, Any]) -> tuple[str, str]:
    rules = _as_list(((configuration.get("Filter") or {}).get("S3Key") or {}).get("FilterRule"))
    named = {rule["Name"].lower(): rule.get("Value") or "" for rule in rules}
    return named.get("prefix", ""), named.get("suffix", "")


def _may_send(bucket: FakeBucket, queue_arn: str) -> bool:
    """Whether S3 could send to that queue for this bucket: it is there, no FIFO queue, its key and policy let S3 in."""
    region, account, name = queue_arn.split(":")[3:6]
    queue = sqs_backends[account][region].queues.get(name)
    if queue is None or queue.fifo_queue or getattr(queue, "kms_master_key_id", None) == "alias/aws/sqs":
        return False
    policy = json.loads(queue.policy or "{}") if isinstance(queue.policy, str | None) else queue.policy
    context = {"aws:SourceArn": f"arn:aws:s3:::{bucket.name}", "aws:SourceAccount": str(bucket.account_id)}
    try:
        return allows([{"Statement": list(_about_s3(policy))}], "sqs:SendMessage", queue_arn, context)
    except UnknownConditionError as error:
        raise S3ClientError("NotImplemented", f"{error} in the policy of {name}") from error


def _about_s3(policy: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for statement in _as_list(policy.get("Statement")):
        principal = statement.get("Principal", {})
        named = ["*"] if principal == "*" else [one for who in principal.values() for one in _as_list(who)]
        if "*" in named or "s3.amazonaws.com" in named:
            yield statement


def _send_test_event(account_id: str, bucket: Any) -> None:
    for arn in sorted({wanted.arn for wanted in bucket.notification_configuration.queue}):
        deliver(Notice(arn, bucket.name, "", "s3:TestEvent", s3_events.test_message(bucket.name)))


def _invalid(text: str) -> S3ClientError:
    return S3ClientError("InvalidArgument", text)


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


PATCHES = (
    Patch(notifications, "send_event", _send_event),
    Patch(notifications, "send_test_event", _send_test_event),
    Patch(FakeBucket, "set_notification_configuration", _configure),
)
