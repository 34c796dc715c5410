"""Whether somebody may connect: the authorizer is asked, and its policy really evaluated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from local.aws.policies import UnknownConditionError, allows
from local.clock import VirtualClock
from local.compute.environments import Functions
from local.compute.invocation import Invocation
from local.events.http import TENANT_HEADER
from local.events.within import within
from local.sockets import shapes
from local.sockets.definition import CONNECT, LONGEST_S, Authorizer, Definition
from local.sockets.shapes import Peer, Upgrade

RESULT_LIMIT_BYTES = 8 * 1024
MAY, UNAUTHORIZED, FORBIDDEN, BROKEN = 200, 401, 403, 500


@dataclass(frozen=True)
class Verdict:
    """A status, MAY or what the upgrade is refused with, and what is known of who asks."""

    status: int
    context: Mapping[str, Any] = field(default_factory=dict)


class Authorization:
    """Of one API. May be used from many threads at once."""

    def __init__(self, definition: Definition, functions: Functions, clock: VirtualClock) -> None:
        """The authorizer's function must be one of `functions`."""
        self._definition = definition
        self._functions = functions
        self._clock = clock

    def judge(self, peer: Peer) -> tuple[int, Peer]:
        """The status, and what is known of the peer then. An authorizer's answer is never remembered."""
        if self._definition.authorization == "AWS_IAM":
            return MAY, replace(peer, identity=_signed(peer.upgrade))
        authorizer = self._definition.authorizer
        if authorizer is None:
            return MAY, peer
        if not all(_identity(peer.upgrade, *source) for source in authorizer.identity):
            return UNAUTHORIZED, peer
        verdict = self._ask(authorizer, peer)
        return verdict.status, replace(peer, authorizer=verdict.context)

    def _ask(self, authorizer: Authorizer, peer: Peer) -> Verdict:
        event = shapes.authorizing(self._definition, peer, self._clock.now())
        role = self._functions.role(authorizer.function)
        outcome = within(self._functions, LONGEST_S, role, event)
        if outcome is not None and _unauthorized(outcome):
            return Verdict(UNAUTHORIZED)
        if outcome is None or not outcome.ok:
            return Verdict(BROKEN)
        return verdict_of(outcome.result, self._definition.arn(CONNECT))


def verdict_of(result: Any, arn: str) -> Verdict:
    """What an authorizer's answer means for the route with that ARN; BROKEN for one that API Gateway does not take."""
    if len(json.dumps(result)) > RESULT_LIMIT_BYTES or not isinstance(result, dict):
        return Verdict(BROKEN)
    principal, context = result.get("principalId"), result.get("context") or {}
    if not isinstance(principal, str) or not isinstance(context, dict):
        return Verdict(BROKEN)
    if not all(isinstance(value, str | int | float) for value in context.values()):
        return Verdict(BROKEN)
    try:
        allowed = allows([_policy(result)], "execute-api:Invoke", arn)
    except (KeyError, TypeError, ValueError, AttributeError, UnknownConditionError):
        return Verdict(BROKEN)
    told = {name: _text(value) for name, value in context.items()}
    return Verdict(MAY if allowed else FORBIDDEN, {**told, "principalId": principal, "integrationLatency": 1})


def _policy(result: Mapping[str, Any]) -> Mapping[str, Any]:
    policy = result["policyDocument"]
    statements = policy["Statement"]
    for statement in statements if isinstance(statements, list) else [statements]:
        if statement["Effect"] not in ("Allow", "Deny") or not statement["Action"] or not statement["Resource"]:
            raise ValueError("no statement of a policy")
    return dict(policy)


def _text(value: str | float) -> str:
    """Functions get every value of the context as text."""
    return value if isinstance(value, str) else json.dumps(value)


def _unauthorized(outcome: Invocation) -> bool:
    """The one error that means something: the word is API Gateway's."""
    return (outcome.error or {}).get("errorMessage") == "Unauthorized"


def _identity(upgrade: Upgrade, place: str, name: str) -> str:
    return upgrade.parameter(name) if place == "querystring" else upgrade.header(name)


def _signed(upgrade: Upgrade) -> dict[str, Any]:
    """Who would have signed: locally, whatever the request says."""
    tenant = upgrade.header(TENANT_HEADER) or "local"
    return {
        "accessKey": "ASIALOCAL",
        "accountId": tenant,
        "caller": "AIDALOCAL",
        "user": "AIDALOCAL",
        "userArn": f"arn:aws:iam::{tenant}:user/local",
    }
