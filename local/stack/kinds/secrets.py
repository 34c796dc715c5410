"""Secrets and SSM parameters."""

from __future__ import annotations

import json
import secrets
import string

from local.stack.kinds.kind import Kind, Made, Properties, Workbench


def _secret(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("Name") or bench.name(logical_id, 512)
    value = properties.get("SecretString") or _generated(properties.get("GenerateSecretString", {}))
    arn = bench.client("secretsmanager").create_secret(Name=name, SecretString=value)["ARN"]
    return Made(arn, {"Id": arn})


def _generated(wish: Properties) -> str:
    """Random letters and digits: a subset of what AWS would draw from."""
    drawn = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(wish.get("PasswordLength", 32)))
    if "GenerateStringKey" not in wish:
        return drawn
    return json.dumps({**json.loads(wish.get("SecretStringTemplate", "{}")), wish["GenerateStringKey"]: drawn})


def _parameter(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("Name") or bench.name(logical_id, 512)
    bench.client("ssm").put_parameter(Name=name, Value=properties["Value"], Type=properties["Type"])
    return Made(name, {"Type": properties["Type"], "Value": properties["Value"]})


KINDS = (
    Kind(
        "AWS::SecretsManager::Secret",
        _secret,
        # without effect here: encryption at rest, tags
        frozenset({"Description", "GenerateSecretString", "KmsKeyId", "Name", "SecretString", "Tags"}),
    ),
    Kind("AWS::SSM::Parameter", _parameter, frozenset({"Description", "Name", "Tier", "Type", "Value"})),
)
