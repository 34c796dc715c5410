"""Who may ask which model: Bedrock's side of a function's permissions, and the end of a killed one's calls."""

from __future__ import annotations

import re

from local.aws.calls import Callers
from local.aws.permissions import Permissions
from local.stack.stack import Stack

_GEOGRAPHIC = re.compile(r"(us|us-gov|eu|apac|ca|sa|au|jp|global)\.(.+)")


class ModelAccess:
    """Answers the model server's question; until permissions are known, everybody may ask."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self.permissions: Permissions | None = None

    def __call__(self, access_key_id: str | None, model_id: str, operation: str) -> str | None:
        """Why the caller may not, or None."""
        key = access_key_id or ""
        if self._callers.is_revoked(key):
            return "The security token included in the request is invalid."
        caller = self._callers.find(key)
        if caller is None or self.permissions is None:
            return None
        streams = operation.lower().endswith("stream")
        action = "bedrock:InvokeModelWithResponseStream" if streams else "bedrock:InvokeModel"
        for resource, context in self._needed(self.permissions.stack, model_id):
            if not self.permissions.exercise(caller.role_arn, action, resource, context):
                return f"{caller.role_arn} is not authorized to perform: {action} on resource: {resource}"
        return None

    @staticmethod
    def _needed(stack: Stack, model_id: str) -> list[tuple[str, dict[str, str]]]:
        """A profile needs itself and the model behind it, of which only the stack's own region is asked for."""
        if model_id.startswith("arn:"):
            return [(model_id, {})]
        geographic = _GEOGRAPHIC.fullmatch(model_id)
        if geographic is None:
            return [(f"arn:aws:bedrock:{stack.region}::foundation-model/{model_id}", {})]
        profile = f"arn:aws:bedrock:{stack.region}:{stack.account}:inference-profile/{model_id}"
        model = f"arn:aws:bedrock:{stack.region}::foundation-model/{geographic[2]}"
        return [(profile, {}), (model, {"bedrock:InferenceProfileArn": profile})]
