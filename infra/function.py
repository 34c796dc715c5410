"""The one opinionated Lambda: what every function has, and the only way to permit it something."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.packaging import Packaging
from infra.retention import log_group
from infra.settings import Settings


class Function(Construct):
    """A part that runs (accept, worker, …): function, log group, and a role that may do nothing yet."""

    def __init__(
        self,
        scope: Construct,
        role: str,
        *,
        packaging: Packaging,
        settings: Settings,
        timeout_s: int,
        environment: Mapping[str, str],
        memory_mb: int | None = None,
        recursive: bool = False,
    ) -> None:
        super().__init__(scope, role.capitalize())
        self.timeout_s = timeout_s
        self.log_group = log_group(self, "Logs", settings)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description=f"What the function {role} may do",
        )
        self.log_group.grant_write(self.role)
        self.resource = lambda_.Function(
            self,
            "Function",
            description=f"Neverdrop: {role}",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"lambdas.handlers.{role}.handler",
            code=packaging.code,
            layers=[packaging.layer],
            # what CDK's constructs would grant besides (to read a queue's address, …) nobody uses: `allow` is all
            role=self.role.without_policy_updates(),
            log_group=self.log_group,
            timeout=Duration.seconds(timeout_s),
            memory_size=memory_mb or settings.memory_mb,
            # Lambda ends a loop after 16 calls; one that is meant has a bound of its own
            recursive_loop=lambda_.RecursiveLoop.ALLOW if recursive else None,
            environment={
                "LOG_LEVEL": settings.log_level,
                # metrics carry it as their dimension `service`: two environments of an account must differ
                "POWERTOOLS_SERVICE_NAME": Stack.of(self).stack_name,
                **environment,
            },
        )

    def allow_itself(self) -> None:
        """To go on in another invocation. In a policy of its own: the role's own one comes before the function."""
        iam.Policy(
            self,
            "Itself",
            roles=[self.role],
            statements=[iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[self.resource.function_arn])],
        )

    def allow(self, *actions: str, on: str | list[str], when: Mapping[str, Any] | None = None) -> None:
        """Permit these actions on these ARNs, and nothing else."""
        self.role.add_to_principal_policy(
            iam.PolicyStatement(actions=list(actions), resources=[on] if isinstance(on, str) else on, conditions=when)
        )

    def allow_serving(self, *queues: str) -> None:
        """What Lambda asks for to serve the function from these queues; the function itself may need more.
        https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-configure-lambda-function-trigger.html
        """
        self.allow("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", on=list(queues))

    def allow_secrets(self, secrets: Collection[str]) -> None:
        """Read these, by their names. Secrets Manager ends an ARN with six characters of its own."""
        if secrets:
            self.allow("secretsmanager:GetSecretValue", on=[_secret_arn(self, name) for name in sorted(secrets)])


def _secret_arn(scope: Construct, name: str) -> str:
    return Stack.of(scope).format_arn(
        service="secretsmanager",
        resource="secret",
        resource_name=f"{name}-??????",
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
