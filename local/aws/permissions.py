"""Refuses a function what its role does not allow, in the words of AWS; moto allows everything (MOTO-21)."""

from __future__ import annotations

from urllib.parse import unquote

from local.aws.calls import Call, Caller, Refusal, Response
from local.aws.errors import render
from local.aws.needs import Need, bucket_arn, needs
from local.aws.policies import Document, allows, denies
from local.stack.stack import Stack


class Permissions:
    """Evaluates the policies of the calling function's role; the developer (no caller) may do everything."""

    def __init__(self, stack: Stack) -> None:
        """`stack` says which policies a role has."""
        self._stack = stack
        self._documents: dict[str, list[Document]] = {}

    def before(self, call: Call) -> Refusal | None:
        """AccessDenied for the first permission that is missing."""
        caller = call.caller or call.signer
        if caller is None:
            return None
        documents = self._of(caller)
        for need in needs(call):
            if not allows(documents, need.action, need.resource, need.context):
                return _refusal(call, caller, need, denies(documents, need.action, need.resource, need.context))
        return None

    def after(self, call: Call, response: Response) -> Response:
        """A missing object is 403 to whoever may not list the bucket: he is not told what does not exist."""
        reads_object = call.service == "s3" and call.operation in ("GetObject", "HeadObject")
        caller = call.caller or call.signer
        if caller is None or not reads_object or response.status != 404:
            return response
        bucket = unquote(call.path).lstrip("/").partition("/")[0]
        listing = Need("s3:ListBucket", bucket_arn(bucket))
        documents = self._of(caller)
        if allows(documents, listing.action, listing.resource):
            return response
        return render(call, _refusal(call, caller, listing, explicit=False))

    def may(self, role_arn: str, action: str, resource: str) -> bool:
        """Whether a role may do something that is not asked of this server, such as invoking a model."""
        return allows(self._of(Caller("", role_arn)), action, resource)

    def _of(self, caller: Caller) -> list[Document]:
        if caller.role_arn not in self._documents:
            self._documents[caller.role_arn] = list(self._stack.role_policies(caller.role_arn))
        return self._documents[caller.role_arn]


_CODES = {
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
