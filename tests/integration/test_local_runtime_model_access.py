"""Which function may ask which model, by its role's policies in the template."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from local.aws.calls import Caller, Callers
from local.aws.permissions import Permissions
from local.model_access import ModelAccess

PROFILE = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0"
MODEL = "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-lite-v1:0"


def allow(resource: str, **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "bedrock:InvokeModel", "Resource": resource, **more}


THROUGH_PROFILE = allow(MODEL, Condition={"StringEquals": {"bedrock:InferenceProfileArn": PROFILE}})


def access(*statements: dict[str, Any]) -> ModelAccess:
    callers = Callers()
    callers.register("ASIAWORKER", Caller("worker", "arn:aws:iam::123456789012:role/worker"))
    asked = ModelAccess(callers)
    document = {"Version": "2012-10-17", "Statement": list(statements)}
    stack: Any = SimpleNamespace(region="us-east-1", account="123456789012", role_policies=lambda role: [document])
    asked.permissions = Permissions(stack)
    return asked


def test_profile_needs_itself_and_the_model_behind_it():
    name = "us.amazon.nova-lite-v1:0"
    assert access(allow(PROFILE), THROUGH_PROFILE)("ASIAWORKER", name, "Converse") is None
    assert PROFILE in str(access(THROUGH_PROFILE)("ASIAWORKER", name, "Converse"))
    assert MODEL in str(access(allow(PROFILE))("ASIAWORKER", name, "Converse"))


def test_permission_through_the_profile_is_none_for_the_model_itself():
    assert MODEL in str(access(allow(PROFILE), THROUGH_PROFILE)("ASIAWORKER", "amazon.nova-lite-v1:0", "Converse"))


def test_streaming_needs_a_permission_of_its_own():
    refusal = access(allow(MODEL))("ASIAWORKER", "amazon.nova-lite-v1:0", "ConverseStream")
    assert "InvokeModelWithResponseStream" in str(refusal)


@pytest.mark.parametrize("key", [None, "developer"])
def test_developer_may_ask_every_model(key):
    assert access()(key, "any.model", "Converse") is None


def test_killed_function_is_refused():
    asked = access(allow(MODEL))
    asked._callers.revoke("ASIAWORKER")
    assert asked("ASIAWORKER", "amazon.nova-lite-v1:0", "Converse") is not None
