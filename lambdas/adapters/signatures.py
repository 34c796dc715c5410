"""The Signer port on `standardwebhooks`, the library that receivers verify with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from standardwebhooks import Webhook

from lambdas.core.times import Instant


class StandardSigner:
    """`v1` signatures over `id.timestamp.body`, space-separated, one for each secret."""

    def sign(self, secrets: Sequence[str], message_id: str, at: Instant, body: str) -> str:
        """The library takes the clock time in `at` for UTC's, whatever its zone: it gets it in UTC."""
        if not secrets:
            raise ValueError("nothing to sign with")
        return " ".join(Webhook(secret).sign(message_id, at.astimezone(UTC), body) for secret in secrets)
