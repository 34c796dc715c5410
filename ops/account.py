"""Checks of the AWS account: who you are there, and whether the stack could be deployed and would work."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from ops.findings import Finding, failed, ok, unknown
from ops.synthesized import Needs

Clients = Callable[[str], Any]
ROOM_FOR_OTHERS = 3  # the door, dispatch, sweep
AFTER_CREDENTIALS = ("bootstrap", "model access", "Lambda quota", "Bedrock quota")


def check(clients: Clients, needs: Needs | None) -> Iterator[Finding]:
    """Every check of the account. `clients` makes a boto3 client of a service in the stack's region."""
    identity = _identity(clients)
    yield identity
    if identity.state != "ok":
        yield from (unknown(name, "needs credentials that work") for name in AFTER_CREDENTIALS)
        return
    if needs is None:
        yield from (unknown(name, "nothing synthesized yet", "make synth") for name in AFTER_CREDENTIALS)
        return
    yield _asked("bootstrap", functools.partial(_bootstrap, clients, needs))
    yield _asked("model access", functools.partial(_model_access, clients, needs))
    yield _asked("Lambda quota", functools.partial(_lambda_quota, clients, needs))
    yield _asked("Bedrock quota", functools.partial(_bedrock_quota, clients, needs))


def _identity(clients: Clients) -> Finding:
    from botocore import exceptions  # noqa: PLC0415

    name = "credentials"
    try:
        caller = clients("sts").get_caller_identity()
    except exceptions.NoCredentialsError:
        return unknown(name, "none found; only deploying needs them", "aws configure sso, or set AWS_PROFILE")
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        return unknown(name, f"AWS cannot be reached: {error}")
    except exceptions.ClientError as error:
        return failed(name, str(error), "they have expired or were revoked: aws sso login")
    except exceptions.BotoCoreError as error:
        return failed(name, str(error), "aws sso login, or aws configure sso for a new profile")
    return ok(name, f"{caller['Arn']}")


def _asked(name: str, ask: Callable[[], Finding]) -> Finding:
    """An answer, or why there was none: a missing permission or network is no failure of the account."""
    from botocore import exceptions  # noqa: PLC0415

    try:
        return ask()
    except exceptions.ClientError as error:
        return unknown(name, str(error), "ask somebody who may read it")
    except exceptions.BotoCoreError as error:
        return unknown(name, f"AWS cannot be reached: {error}")


def _bootstrap(clients: Clients, needs: Needs) -> Finding:
    ssm = clients("ssm")
    fix = f"cdk bootstrap aws://<account>/{needs.region}, see docs/deploying.md"
    try:
        version = int(ssm.get_parameter(Name=needs.bootstrap_parameter)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        return failed("bootstrap", f"{needs.region} is not bootstrapped for the CDK", fix)
    if version < needs.bootstrap_version:
        return failed("bootstrap", f"version {version}, but {needs.bootstrap_version} is needed", fix)
    return ok("bootstrap", f"version {version} in {needs.region}")


def _model_access(clients: Clients, needs: Needs) -> Finding:
    bedrock, name = clients("bedrock"), "model access"
    fix = "ask for it in the console: Bedrock → Model catalog → the model, in this region"
    if needs.is_profile:
        try:
            status = bedrock.get_inference_profile(inferenceProfileIdentifier=needs.model_id)["status"]
        except bedrock.exceptions.ResourceNotFoundException:
            return failed(name, f"{needs.region} has no inference profile {needs.model_id}", "setting `models`")
        if status != "ACTIVE":
            return failed(name, f"{needs.model_id} is {status}", "wait, or name another in the setting `models`")
    answer = bedrock.get_foundation_model_availability(modelId=needs.foundation_model)
    refused = [
        f"{key} is {status}"
        for key, status in (
            ("authorization", answer["authorizationStatus"]),
            ("entitlement", answer["entitlementAvailability"]),
            ("region", answer["regionAvailability"]),
        )
        if status not in ("AUTHORIZED", "AVAILABLE")
    ]
    if refused:
        return failed(name, f"{needs.foundation_model}: {', '.join(refused)}", fix)
    return ok(name, f"{needs.model_id}")


def _lambda_quota(clients: Clients, needs: Needs) -> Finding:
    limit = clients("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    queues = needs.max_concurrency
    seen = f"{limit} concurrent executions; queues take up to {queues}, the door, dispatch and sweep share the rest"
    if limit < queues + ROOM_FOR_OTHERS:
        over = queues + ROOM_FOR_OTHERS - limit
        fix = f"ask Service Quotas for 1,000 (Lambda → Concurrent executions), or lower `max_concurrency` by {over}"
        return failed("Lambda quota", seen, fix)
    return ok("Lambda quota", seen)


def _bedrock_quota(clients: Clients, needs: Needs) -> Finding:
    name = "Bedrock quota"
    kind = "cross-region" if needs.is_profile else "on-demand"
    pages = clients("service-quotas").get_paginator("list_service_quotas").paginate(ServiceCode="bedrock")
    found = {
        quota["QuotaName"]: quota["Value"]
        for page in pages
        for quota in page["Quotas"]
        if quota["QuotaName"].lower().startswith(kind)
        and "per minute" in quota["QuotaName"]
        and quota["QuotaName"].lower().replace(".", " ").endswith(needs.model_words)
    }
    if not found:
        return unknown(name, f"Service Quotas names none for {needs.model_words!r}")
    if 0 in found.values():
        nothing = ", ".join(quota for quota, value in found.items() if value == 0)
        return failed(name, f"zero: {nothing}", "ask Service Quotas for more (Amazon Bedrock); new accounts start low")
    return ok(name, "; ".join(f"{value:,.0f} {_unit(quota)}" for quota, value in sorted(found.items())))


def _unit(quota: str) -> str:
    return "tokens a minute" if "token" in quota.lower() else "requests a minute"
