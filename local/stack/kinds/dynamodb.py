"""DynamoDB tables."""

from __future__ import annotations

from typing import Any

from local.stack.kinds.kind import Kind, Made, Properties, Workbench

_AS_THEY_ARE = (
    "AttributeDefinitions",
    "BillingMode",
    "DeletionProtectionEnabled",
    "GlobalSecondaryIndexes",
    "KeySchema",
    "LocalSecondaryIndexes",
    "ProvisionedThroughput",
    "Tags",
)


def _table(bench: Workbench, logical_id: str, properties: Properties) -> Made:
    name = properties.get("TableName") or bench.name(logical_id, 255)
    request: dict[str, Any] = {key: properties[key] for key in _AS_THEY_ARE if properties.get(key)}
    if "StreamSpecification" in properties:
        view = properties["StreamSpecification"]["StreamViewType"]
        request["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": view}
    dynamodb = bench.client("dynamodb")
    table = dynamodb.create_table(TableName=name, **request)["TableDescription"]
    if properties.get("TimeToLiveSpecification", {}).get("Enabled"):
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=properties["TimeToLiveSpecification"])
    if "PointInTimeRecoverySpecification" in properties:
        dynamodb.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification=properties["PointInTimeRecoverySpecification"]
        )
    attributes = {"Arn": table["TableArn"], "TableId": bench.uuid(logical_id)}
    if "LatestStreamArn" in table:
        attributes["StreamArn"] = table["LatestStreamArn"]
    return Made(name, attributes)


KINDS = (
    Kind(
        "AWS::DynamoDB::Table",
        _table,
        frozenset(_AS_THEY_ARE)
        | {"PointInTimeRecoverySpecification", "StreamSpecification", "TableName", "TimeToLiveSpecification"}
        # without effect here: encryption at rest, storage prices, throttles of on-demand tables, reports
        | {"ContributorInsightsSpecification", "OnDemandThroughput", "SSESpecification", "TableClass"},
    ),
)
