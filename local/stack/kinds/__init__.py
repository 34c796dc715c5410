"""What each type of resource becomes on this machine. A type that stands nowhere here is refused."""

from __future__ import annotations

from local.stack.kinds import described, dynamodb, monitoring, s3, secrets, sns, sqs, states
from local.stack.kinds.kind import Kind

_MODULES = (described, dynamodb, monitoring, s3, secrets, sns, sqs, states)
KINDS: dict[str, Kind] = {kind.type: kind for module in _MODULES for kind in module.KINDS}
