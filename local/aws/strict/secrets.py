"""What Secrets Manager demands of a secret."""

from __future__ import annotations

import base64

from local.aws.calls import Call, Refusal

LARGEST = 65_536


def _fits(call: Call) -> Refusal | None:
    sizes = {
        "secretString": len(str(call.parameters.get("SecretString") or "").encode("utf-8", "surrogatepass")),
        "secretBinary": len(base64.b64decode(call.parameters.get("SecretBinary") or "")),
    }
    field = next((name for name, size in sizes.items() if size > LARGEST), None)
    if field is None:
        return None
    return Refusal(
        "ValidationException",
        f"1 validation error detected: Value at '{field}' failed to satisfy constraint: Member must have length less "
        f"than or equal to {LARGEST}",
    )


RULES = {
    ("secretsmanager", "CreateSecret"): (_fits,),
    ("secretsmanager", "PutSecretValue"): (_fits,),
    ("secretsmanager", "UpdateSecret"): (_fits,),
}
