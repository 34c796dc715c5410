"""S3 buckets and their policies, from CloudFormation's spelling to the API's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from local.stack.errors import TemplateError
from local.stack.kinds.kind import Kind, Made, Properties, Workbench
from local.stack.names import suffix_of

_RULE_AS_IT_IS = ("AbortIncompleteMultipartUpload", "Status")
_RULE = {
    *_RULE_AS_IT_IS,
    "ExpirationInDays",
    "ExpiredObjectDeleteMarker",
    "Id",
    "NoncurrentVersionExpiration",
    "NoncurrentVersionExpirationInDays",
    "Prefix",
    "Transitions",
}


def _bucket(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("BucketName") or _bucket_name(bench, logical_id)
    s3 = bench.client("s3")
    elsewhere = {"CreateBucketConfiguration": {"LocationConstraint": bench.region}}
    s3.create_bucket(Bucket=name, **({} if bench.region == "us-east-1" else elsewhere))
    if "VersioningConfiguration" in properties:
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration=properties["VersioningConfiguration"])
    if "LifecycleConfiguration" in properties:
        rules = [lifecycle_rule(rule) for rule in properties["LifecycleConfiguration"]["Rules"]]
        s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": rules})
    if "CorsConfiguration" in properties:
        cors = [cors_rule(rule) for rule in properties["CorsConfiguration"]["CorsRules"]]
        s3.put_bucket_cors(Bucket=name, CORSConfiguration={"CORSRules": cors})
    if "PublicAccessBlockConfiguration" in properties:
        s3.put_public_access_block(
            Bucket=name, PublicAccessBlockConfiguration=properties["PublicAccessBlockConfiguration"]
        )
    if "NotificationConfiguration" in properties:
        s3.put_bucket_notification_configuration(
            Bucket=name, NotificationConfiguration=notifications(properties["NotificationConfiguration"])
        )
    return Made(
        name,
        {
            "Arn": f"arn:aws:s3:::{name}",
            "DomainName": f"{name}.s3.amazonaws.com",
            "RegionalDomainName": f"{name}.s3.{bench.region}.amazonaws.com",
            "DualStackDomainName": f"{name}.s3.dualstack.{bench.region}.amazonaws.com",
        },
    )


def _bucket_name(bench: Workbench, logical_id: str) -> str:
    suffix = suffix_of(bench.stack, logical_id, 12)
    return f"{bench.stack.lower()[:24]}-{logical_id.lower()[:24]}-{suffix}"


def lifecycle_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule as PutBucketLifecycleConfiguration takes it. TemplateError for what is not known here."""
    if set(rule) - _RULE:
        raise TemplateError(f"lifecycle rule: {', '.join(sorted(set(rule) - _RULE))} is not played on this machine")
    made = {key: rule[key] for key in _RULE_AS_IT_IS if key in rule}
    made["Filter"] = {"Prefix": rule.get("Prefix", "")}
    if "Id" in rule:
        made["ID"] = rule["Id"]
    if "ExpirationInDays" in rule:
        made["Expiration"] = {"Days": rule["ExpirationInDays"]}
    if "ExpiredObjectDeleteMarker" in rule:
        made["Expiration"] = {"ExpiredObjectDeleteMarker": rule["ExpiredObjectDeleteMarker"]}
    if "NoncurrentVersionExpirationInDays" in rule:
        made["NoncurrentVersionExpiration"] = {"NoncurrentDays": rule["NoncurrentVersionExpirationInDays"]}
    if "NoncurrentVersionExpiration" in rule:
        made["NoncurrentVersionExpiration"] = rule["NoncurrentVersionExpiration"]
    if "Transitions" in rule:
        made["Transitions"] = [
            {"Days": move["TransitionInDays"], "StorageClass": move["StorageClass"]} for move in rule["Transitions"]
        ]
    return made


def cors_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A rule as PutBucketCors takes it."""
    renamed = {"ExposedHeaders": "ExposeHeaders", "Id": "ID", "MaxAge": "MaxAgeSeconds"}
    return {renamed.get(key, key): value for key, value in rule.items()}


def notifications(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as PutBucketNotificationConfiguration takes it. TemplateError for what is not played here."""
    unknown = set(configuration) - {"QueueConfigurations"}
    if unknown:
        raise TemplateError(f"S3 event notifications: {', '.join(sorted(unknown))} is not played on this machine")
    return {"QueueConfigurations": [_queue_notification(one) for one in configuration.get("QueueConfigurations", [])]}


def _queue_notification(configuration: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"QueueArn": configuration["Queue"], "Events": [configuration["Event"]]}
    rules = configuration.get("Filter", {}).get("S3Key", {}).get("Rules")
    if rules:
        named = [{"Name": rule["Name"].lower(), "Value": rule["Value"]} for rule in rules]
        made["Filter"] = {"Key": {"FilterRules": named}}
    return made


def _policy(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    bench.client("s3").put_bucket_policy(Bucket=properties["Bucket"], Policy=json.dumps(properties["PolicyDocument"]))
    return Made(bench.name(logical_id, 128))


KINDS = (
    Kind(
        "AWS::S3::Bucket",
        _bucket,
        frozenset(
            {
                "BucketName",
                "CorsConfiguration",
                "LifecycleConfiguration",
                "NotificationConfiguration",
                "PublicAccessBlockConfiguration",
                "VersioningConfiguration",
            }
        )
        # without effect here: encryption at rest, ACLs (off on new buckets), logs of access, tags
        | {"BucketEncryption", "LoggingConfiguration", "OwnershipControls", "Tags"},
    ),
    Kind("AWS::S3::BucketPolicy", _policy, frozenset({"Bucket", "PolicyDocument"})),
)
