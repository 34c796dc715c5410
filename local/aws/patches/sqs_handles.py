"""What a receipt handle is good for: deleting a message, or hiding it longer.

Stock moto copies the whole queue to delete one message, remembers every handle for ever, lets a handle work that a
later receive has replaced, hides what is not in flight, and measures the 12 hours of hiding from sending.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from moto.core.utils import unix_time_millis
from moto.sqs.exceptions import InvalidParameterValue, ReceiptHandleIsInvalid, SQSException
from moto.sqs.models import Queue, SQSBackend

from local.aws.lock import MESSAGES
from local.aws.patches.patch import Patch

KEPT = 10_000
"""Deleted receipt handles that a queue remembers."""

_LONGEST_HIDING_MS = 12 * 3600 * 1000


class _Remembered:
    """The latest receipt handles of deleted messages: deleting twice is fine, remembering for ever is not."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._handles = OrderedDict.fromkeys(known)

    def __len__(self) -> int:
        return len(self._handles)

    def __contains__(self, handle: object) -> bool:
        return handle in self._handles

    def update(self, handles: Iterable[str | None]) -> None:
        self._handles.update(OrderedDict.fromkeys(handle for handle in handles if handle))
        while len(self._handles) > KEPT:
            self._handles.popitem(last=False)


def _delete_message(queue: Any, receipt_handle: str) -> None:
    if isinstance(queue.deleted_messages, set):
        queue.deleted_messages = _Remembered(queue.deleted_messages)
    if receipt_handle in queue.deleted_messages:
        return
    for position, message in enumerate(queue._messages):
        if message.receipt_handle == receipt_handle:
            queue.pending_messages.discard(message)
            queue.deleted_messages.update(message.all_receipt_handles)
            del queue._messages[position]
            return
        if receipt_handle in message._old_receipt_handles:
            return  # received again since: AWS accepts the old handle, and the message may well stay
    raise ReceiptHandleIsInvalid


class _NotInFlight(ReceiptHandleIsInvalid):
    """Its base class is what stock's batch operation reports per entry."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__()
        self.code, self.message = code, message


def _change_visibility(backend: SQSBackend, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
    queue = backend.get_queue(queue_name)
    message = next((one for one in queue._messages if one.receipt_handle == receipt_handle), None)
    if message is None:
        if receipt_handle in queue.deleted_messages or any(
            one.had_receipt_handle(receipt_handle) for one in queue._messages
        ):
            raise _NotInFlight(
                "InvalidParameterValue",
                f"Value {receipt_handle} for parameter ReceiptHandle is invalid. Reason: Message does not exist or "
                "is not available for visibility timeout change.",
            )
        raise ReceiptHandleIsInvalid
    now = unix_time_millis()
    if now > message.visible_at:
        raise _NotInFlight("AWS.SimpleQueueService.MessageNotInflight", "The message is not in flight.")
    if now + visibility_timeout * 1000 - message.__dict__.get("received_ms", now) > _LONGEST_HIDING_MS:
        raise InvalidParameterValue(
            f"Value {visibility_timeout} for parameter VisibilityTimeout is invalid. Reason: Total "
            "VisibilityTimeout for the message is beyond the limit [43200 seconds]"
        )
    message.change_visibility(visibility_timeout)
    if visibility_timeout == 0:
        message.visible_at = 0.0
        queue.pending_messages.discard(message)
        MESSAGES.notify_all()


def _change_visibility_batch(
    backend: SQSBackend, queue_name: str, entries: list[dict[str, Any]]
) -> tuple[list[str], list[dict[str, Any]]]:
    """Each entry for itself, with the code that it would have had alone; stock calls every failure one of the handle,
    and fails the whole batch for one that is hidden too long."""
    changed, failed = [], []
    for entry in entries:
        try:
            hide_s = int(entry["VisibilityTimeout"])
            if not 0 <= hide_s <= _LONGEST_HIDING_MS // 1000:
                raise InvalidParameterValue(
                    f"Value {hide_s} for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200."
                )
            backend.change_message_visibility(queue_name, entry["ReceiptHandle"], hide_s)
            changed.append(entry["Id"])
        except SQSException as error:
            code = getattr(error, "code", None) or type(error).__name__
            failed.append({"Id": entry["Id"], "SenderFault": True, "Code": code, "Message": error.message})
    return changed, failed


PATCHES = (
    Patch(Queue, "delete_message", _delete_message),
    Patch(SQSBackend, "change_message_visibility_batch", _change_visibility_batch),
    Patch(SQSBackend, "change_message_visibility", _change_visibility),
)
