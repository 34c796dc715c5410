"""What the API's refusals mean to a command: which failure each is, and the way out where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import neverdrop_client as nd
from ops.exits import Exit, Failure

CODES: tuple[tuple[type[nd.NeverdropError], Exit], ...] = (
    (nd.BadArgument, Exit.USAGE),
    (nd.NoCredentials, Exit.FORBIDDEN),
    (nd.NotPermitted, Exit.FORBIDDEN),
    (nd.NotFound, Exit.NOT_FOUND),
    (nd.Gone, Exit.NOT_FOUND),
    (nd.Conflict, Exit.REFUSED),
    (nd.NotYet, Exit.REFUSED),
    (nd.Invalid, Exit.USAGE),
)
HINTS = {
    401: "this API may want a token: --token or NEVERDROP_TOKEN",
    403: "whose credentials are these, and may they call this route?",
    413: "send it as a file: python -m ops upload",
}
SIGNING = "aws configure sso, aws sso login, or name a profile with --profile or AWS_PROFILE"


@contextmanager
def failing() -> Iterator[None]:
    """What the client raises ends the command."""
    try:
        yield
    except nd.NeverdropError as error:
        raise failure(error) from None


def failure(error: nd.NeverdropError) -> Failure:
    code = next((code for kind, code in CODES if isinstance(error, kind)), Exit.UNREACHABLE)
    return Failure(code, f"{error}{_hint(error)}")


def _hint(error: nd.NeverdropError) -> str:
    if isinstance(error, nd.NoCredentials):
        return f": {SIGNING}"
    if isinstance(error, nd.NoRegion):
        return " Say so with --region"
    status = error.status if isinstance(error, nd.Refused) else 0
    return f"; {HINTS[status]}" if status in HINTS else ""
