"""Where the truth lives: the Jobs table, the table of paid answers, the buckets of uploads, inputs and results."""

from __future__ import annotations

from typing import cast

from aws_cdk import CfnResource, Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.retention import log_group, removal_policy
from infra.settings import Settings
from lambdas.contracts import names


class Storage(Construct):
    """Everything that must survive: `jobs`, `answers`, `uploads`, `inputs`, `results`."""

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self.jobs = self._table("Jobs", settings, key="pk", sort="sk", ttl=names.TTL_ATTRIBUTE, stream=True)
        for index, partition, sort in (
            (names.DUE_INDEX, names.DUE_SHARD, names.DUE_AT),
            (names.TENANT_INDEX, names.TENANT_SHARD, names.CREATED_AT),
        ):
            self.jobs.add_global_secondary_index(
                index_name=index,
                partition_key=_text(partition),
                sort_key=_text(sort),
                projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            )
        # sparse: the jobs that uploads became, in the order in which S3 lists keys; the sweep walks both side by side
        self.jobs.add_global_secondary_index(
            index_name=names.UPLOAD_INDEX,
            partition_key=_text(names.UPLOAD_SHARD),
            sort_key=_text(names.UPLOAD_KEY),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=[names.STATUS],
        )
        self.answers = self._table("Answers", settings, key=names.ANSWER_KEY, ttl=names.ANSWER_TTL_ATTRIBUTE)
        # every version is an event of its own: one that is overwritten must still be there when its job comes to it
        self.uploads = self._bucket("Uploads", settings, expire=(names.UPLOADS_PREFIX,), versioned=True)
        self.uploads.add_lifecycle_rule(expired_object_delete_marker=True)  # what an expired version leaves behind
        if settings.cors_origins:
            self.uploads.add_cors_rule(
                allowed_methods=[s3.HttpMethods.POST],
                allowed_origins=list(settings.cors_origins),
                allowed_headers=["*"],
                max_age=3600,
            )
        # context/ belongs to whoever writes it there, so it is never expired for them
        self.inputs = self._bucket("Inputs", settings, expire=(names.INPUTS_PREFIX,))
        self.results = self._bucket("Results", settings, expire=_OUTCOMES)
        if not settings.keep_data:
            self._end_the_logs_of_the_emptier(settings)

    def _table(
        self,
        construct_id: str,
        settings: Settings,
        *,
        key: str,
        ttl: str,
        sort: str | None = None,
        stream: bool = False,
    ) -> dynamodb.Table:
        # Table, not TableV2: a GlobalTable resource is unknown to every emulator
        return dynamodb.Table(
            self,
            construct_id,
            partition_key=_text(key),
            sort_key=_text(sort) if sort else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=ttl,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if stream else None,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=settings.keep_data,
            removal_policy=removal_policy(settings),
        )

    def _bucket(
        self, construct_id: str, settings: Settings, *, expire: tuple[str, ...], versioned: bool = False
    ) -> s3.Bucket:
        # versions only for keys that others choose: ours carry the content's hash or the attempt, so that nothing is
        # written twice, and what a tenant has deleted must be gone
        days = Duration.days(settings.object_days)
        old = days if versioned else None
        return s3.Bucket(
            self,
            construct_id,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            versioned=versioned or None,
            lifecycle_rules=[
                *(s3.LifecycleRule(prefix=p, expiration=days, noncurrent_version_expiration=old) for p in expire),
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
            ],
            removal_policy=removal_policy(settings),
            auto_delete_objects=not settings.keep_data,
        )

    def _end_the_logs_of_the_emptier(self, settings: Settings) -> None:
        """Only a function can empty a bucket that is to go; CDK brings one, without a log group."""
        emptier = Stack.of(self).node.find_child("Custom::S3AutoDeleteObjectsCustomResourceProvider")
        group = log_group(self, "EmptierLogs", settings)
        cast("CfnResource", emptier.node.find_child("Handler")).add_property_override(
            "LoggingConfig", {"LogGroup": group.log_group_name}
        )


_OUTCOMES = (names.RESULTS_PREFIX, names.ANSWERS_PREFIX, names.CERTIFICATES_PREFIX)


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
