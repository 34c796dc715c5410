"""Refuses a function what its role does not allow, in the words of AWS; moto allows everything (MOTO-21)."""

from __future__ import annotations

from urllib.parse import unquote

from local.aws.calls import Call, Caller, Refusal, Response
from local.aws.errors import render
from local.aws.needs import Need, bucket_arn, needs
from local.aws.policies import Context, Document, allows, denies
from local.aws.uses import NoUses, Uses
from local.stack.stack import Stack


class Permissions:
    """Evaluates the policies of the calling function's role; the developer (no caller) may do everything."""

    def __init__(self, stack: Stack, uses: Uses | None = None) -> None:
        """`stack` says which policies a role has; `uses` hears what of them is needed."""
        self.stack = stack
        self._uses = uses or NoUses()
        self._documents: dict[str, list[Document]] = {}

    def before(self, call: Call) -> Refusal | None:
        """AccessDenied for the first permission that is missing."""
        caller = call.caller or call.signer
        if caller is None:
            return None
        needed = needs(call)
        if not needed:  # then nothing was asked: a hole in what is known here, not a permission
            self._uses.record(caller.role_arn, f"{call.service}:{call.operation}", "*", {}, ())
        for need in needed:
            if not self.exercise(caller.role_arn, need.action, need.resource, need.context):
                explicit = denies(self._of(caller.role_arn), need.action, need.resource, need.context)
                return _refusal(call, caller, need, explicit)
        return None

    def after(self, call: Call, response: Response) -> Response:
        """A missing object is 403 to whoever may not list the bucket: he is not told what does not exist."""
        reads_object = call.service == "s3" and call.operation in ("GetObject", "HeadObject")
        caller = call.caller or call.signer
        if caller is None or not reads_object or response.status != 404:
            return response
        bucket = unquote(call.path).lstrip("/").partition("/")[0]
        listing = Need("s3:ListBucket", bucket_arn(bucket))
        if self.exercise(caller.role_arn, listing.action, listing.resource):
            return response
        return render(call, _refusal(call, caller, listing, explicit=False))

    def may(self, role_arn: str, action: str, resource: str) -> bool:
        """Whether a role may do something that is not asked of this server, such as invoking a model."""
        return allows(self._of(role_arn), action, resource)

    def exercise(self, role_arn: str, action: str, resource: str, context: Context | None = None) -> bool:
        """The same, when it is being done: by the role's function, or by a part of AWS in the role's name."""
        documents = self._of(role_arn)
        allowed = allows(documents, action, resource, context)
        if allowed:
            self._uses.record(role_arn, action, resource, context or {}, documents)
        else:
            self._uses.refuse(role_arn, action, resource)
        return allowed

    def _of(self, role_arn: str) -> list[Document]:
        if role_arn not in self._documents:
            self._documents[role_arn] = list(self.stack.role_policies(role_arn))
        return self._documents[role_arn]


_CODES = {
    "apigatewaymanagementapi": ("AccessDeniedException", 403),
    "lambda": ("AccessDeniedException", 403),
    "s3": ("AccessDenied", 403),
    "sns": ("AuthorizationError", 403),
    "sqs": ("AccessDenied", 403),
}


def _refusal(call: Call, caller: Caller, need: Need, explicit: bool) -> Refusal:
    code, status = _CODES.get(call.service, ("AccessDeniedException", 400))
    account, role = caller.role_arn.split(":")[4], caller.role_arn.rsplit("/", 1)[-1]
    who = f"arn:aws:sts::{account}:assumed-role/{role}/{caller.function}"
    why = (
        "with an explicit deny in an identity-based policy"
        if explicit
        else f"because no identity-based policy allows the {need.action} action"
    )
    message = f"User: {who} is not authorized to perform: {need.action} on resource: {need.resource} {why}"
    return Refusal(code, message, status)
