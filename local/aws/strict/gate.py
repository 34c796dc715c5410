"""The gate of the strict layer: looks up the rules of a call's operation and refuses at the first one broken."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from local.aws.calls import Call, Refusal, Response
from local.aws.strict import connections, dynamodb, queues, s3, secrets, sns, sqs, states, tokens

Rule = Callable[[Call], Refusal | None]

RULES: Mapping[tuple[str, str], tuple[Rule, ...]] = {
    **connections.RULES,
    **dynamodb.RULES,
    **queues.RULES,
    **s3.RULES,
    **secrets.RULES,
    **sns.RULES,
    **sqs.RULES,
    **states.RULES,
}


class Strict:
    """Refuses what AWS refuses, for everybody, before the call has any effect.

    What can only be judged on the item as it would be stored (its size, its index keys) is refused by the write
    itself: `local.aws.patches.dynamodb_writes`.
    """

    exclusive = True  # rules look at queues and tables, and a token must not be used twice at once

    def __init__(self) -> None:
        self._tokens = tokens.Tokens()

    def before(self, call: Call) -> Refusal | None:
        """The first rule that the call breaks, or None."""
        for rule in RULES.get((call.service, call.operation), ()):
            refusal = rule(call)
            if refusal is not None:
                return refusal
        return self._tokens.before(call)

    def after(self, call: Call, response: Response) -> Response:
        """The response as it is; that of a transaction is remembered under its token."""
        self._tokens.after(call, response)
        return response
