"""What outlives the stack, and for how long: data, dead letters and logs."""

from __future__ import annotations

from typing import cast

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.settings import Settings


def removal_policy(settings: Settings) -> RemovalPolicy:
    """Keep it when the stack goes, or delete it with the stack (`keep_data` false)."""
    return RemovalPolicy.RETAIN if settings.keep_data else RemovalPolicy.DESTROY


def log_group(scope: Construct, construct_id: str, settings: Settings) -> logs.LogGroup:
    """A log group that forgets after `log_days`. Without one of ours, Lambda makes one that never does."""
    group = logs.LogGroup(scope, construct_id, removal_policy=removal_policy(settings))
    # the L2 takes an enumeration of names, the settings count days
    cast("logs.CfnLogGroup", group.node.default_child).retention_in_days = settings.log_days
    return group
