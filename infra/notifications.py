"""Who hears of it: the topic of everything that happened to jobs."""

from __future__ import annotations

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.function import Function


class Notifications(Construct):
    """`job_events`: a new consumer is a subscription with a filter policy, and changes nothing here."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(scope, construct_id)
        self.job_events = sns.Topic(
            self,
            "JobEvents",
            display_name="Neverdrop job events",
            # the key that AWS manages lets in whoever may publish from this account: our functions
            master_key=kms.Alias.from_alias_name(self, "Key", "alias/aws/sns"),
            enforce_ssl=True,
        )

    def allow_publishing(self, function: Function) -> None:
        """Permit a function to publish job events."""
        function.allow("sns:Publish", on=self.job_events.topic_arn)

    def allow_counting(self, function: Function) -> None:
        """Permit a function to see how many listen."""
        function.allow("sns:GetTopicAttributes", on=self.job_events.topic_arn)
