"""What S3 demands of a browser's upload: a policy that was signed, is not over, and covers all that the form says.

Rules: "POST Policy" in the S3 API reference. Signatures themselves are not verified here.
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from local.aws.calls import Call, Refusal
from local.aws.forms import Form

_SIGNED = ("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-signature")
_NEEDS_NO_CONDITION = {"x-amz-signature", "policy", "file"}
_RANGE = "content-length-range"


@dataclass(frozen=True)
class _Condition:
    """`operator` is eq or starts-with; `field` is in lower case, `shown` as S3 shows it when it does not hold."""

    operator: str
    field: str
    value: str
    shown: str

    def holds(self, fields: Mapping[str, str]) -> bool:
        """Whether the form does as it says; a field that is missing does not."""
        found = fields.get(self.field)
        if found is None:
            return False
        if self.operator == "eq":
            return found == self.value
        each = found.split(",") if self.field == "content-type" else [found]
        return all(one.strip().startswith(self.value) for one in each)


@dataclass(frozen=True)
class _Policy:
    expires_at: datetime
    conditions: tuple[_Condition, ...]
    least_bytes: int | None = None
    most_bytes: int | None = None


def is_complete(call: Call) -> Refusal | None:
    """The form has a file, a key before it, a policy and a signature of version 4."""
    form = call.form
    if form is None or form.content is None:
        return _argument("POST requires exactly one file upload per request.")
    if not form.key:
        return _argument(
            "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields."
        )
    if "awsaccesskeyid" in form.fields:  # version 2, which buckets that were made after June 2020 do not take
        return Refusal(
            "InvalidRequest",
            "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
        )
    if "policy" not in form.fields:
        return Refusal("AccessDenied", "Access Denied", 403)
    missing = next((name for name in _SIGNED if name not in form.fields), None)
    if missing:
        return _argument(
            f"Bucket POST must contain a field named '{missing}'.  If it is specified, please check the order of the "
            "fields."
        )
    return None


def is_allowed(call: Call) -> Refusal | None:
    """The policy is sound, not over, and the form does what it says and nothing else."""
    form = call.form
    assert form is not None
    try:
        policy = _read(form.fields["policy"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Refusal("InvalidPolicyDocument", f"Invalid Policy: {error}")
    if policy.expires_at.timestamp() <= time.time():
        return _denied("Policy expired.")
    fields = {**form.fields, "bucket": unquote(call.path).strip("/")}
    failed = next((condition for condition in policy.conditions if not condition.holds(fields)), None)
    if failed is not None:
        return _denied(f"Policy Condition failed: {failed.shown}")
    extra = sorted(fields.keys() - {condition.field for condition in policy.conditions} - _NEEDS_NO_CONDITION)
    extra = [name for name in extra if not name.startswith("x-ignore-")]
    if extra:
        return _denied(f"Extra input fields: {extra[0]}")
    return _fits(policy, form)


def _fits(policy: _Policy, form: Form) -> Refusal | None:
    size = len(form.content or b"")
    if policy.most_bytes is not None and size > policy.most_bytes:
        return Refusal("EntityTooLarge", "Your proposed upload exceeds the maximum allowed size")
    if policy.least_bytes is not None and size < policy.least_bytes:
        return Refusal("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
    return None


def _read(encoded: str) -> _Policy:
    """ValueError and its like say what is wrong with it."""
    try:
        document = json.loads(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError):
        raise ValueError("Invalid JSON.") from None
    for name in ("expiration", "conditions"):
        if name not in document:
            raise ValueError(f"Policy missing {name}.")
    expires_at = datetime.fromisoformat(document["expiration"])
    conditions: list[_Condition] = []
    least = most = None
    for condition in document["conditions"]:
        if isinstance(condition, list) and str(condition[0]).lower() == _RANGE:
            least, most = int(condition[1]), int(condition[2])
        else:
            conditions.extend(_conditions(condition))
    zoned = expires_at if expires_at.tzinfo else expires_at.replace(tzinfo=UTC)
    return _Policy(zoned, tuple(conditions), least, most)


def _conditions(condition: Any) -> Iterator[_Condition]:
    """One in the list form, or one for each entry of the object form."""
    if isinstance(condition, dict):
        for name, value in condition.items():
            yield _Condition("eq", name.lower(), str(value), json.dumps(["eq", f"${name}", value]))
        return
    operator, name, value = condition
    if operator.lower() not in ("eq", "starts-with") or not name.startswith("$"):
        raise ValueError(f"Invalid Condition: {json.dumps(condition)}")
    yield _Condition(operator.lower(), name[1:].lower(), str(value), json.dumps(condition))


def _denied(why: str) -> Refusal:
    return Refusal("AccessDenied", f"Invalid according to Policy: {why}", 403)


def _argument(text: str) -> Refusal:
    return Refusal("InvalidArgument", text)


RULES = (is_complete, is_allowed)
