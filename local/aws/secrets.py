"""Secrets: values for those that a stack only refers to by name, and the ARNs that policies are compared with."""

from __future__ import annotations

from typing import Any

from moto.secretsmanager.models import secretsmanager_backends

from local.aws.lock import MOTO
from local.stack.place import ACCOUNT


def put(client: Any, name: str, value: str) -> str:
    """Create the secret, or give it a new current value; answers its ARN. `client` is one of Secrets Manager."""
    try:
        arn: str = client.create_secret(Name=name, SecretString=value)["ARN"]
    except client.exceptions.ResourceExistsException:
        arn = client.put_secret_value(SecretId=name, SecretString=value)["ARN"]
    return arn


def arn_of(secret_id: str, region: str) -> str:
    """The whole ARN of a secret that was called by its name or by part of its ARN: AWS ends it with six random
    characters, and policies are compared with that. Of a secret that does not exist, one that ends with `-??????`."""
    with MOTO:
        secret = secretsmanager_backends[ACCOUNT][region].secrets.get(secret_id)
    if secret is not None:
        return str(secret.arn)
    if secret_id.startswith("arn:"):
        return secret_id
    return f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:{secret_id}-??????"
