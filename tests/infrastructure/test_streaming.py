"""Live watching: who may connect, where messages go, and what of the Jobs table's stream is news to a watcher."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.adapters.attributes import to_item
from lambdas.contracts import names
from local.events.filters import Filters
from tests.builders import NOW, any_record, final_record, handed_over, held_record
from tests.fakes_workflows import workflow_record
from tests.infrastructure.templates import Template, target


def mapping(template: Template) -> dict[str, Any]:
    function = {"Ref": template.id_of(template.function("push"))}
    mappings = [one["Properties"] for one in template.of_type("Lambda::EventSourceMapping").values()]
    found: list[dict[str, Any]] = [one for one in mappings if one["FunctionName"] == function]
    assert len(found) == 1
    return found[0]


# --- the WebSocket API ----------------------------------------------------------------------------
def test_every_route_leads_to_socket_and_none_is_missing(prod: Template) -> None:
    socket = prod.id_of(prod.function("socket"))
    routes = prod.of_api("Route", "WEBSOCKET").values()
    for route in routes:
        integration = prod.resources[target(route["Properties"]["Target"]).removeprefix("integrations/")]
        assert f":lambda:path/2015-03-31/functions/{socket}/invocations" in target(
            integration["Properties"]["IntegrationUri"]
        )
        assert integration["Properties"]["IntegrationType"] == "AWS_PROXY"
    assert {route["Properties"]["RouteKey"] for route in routes} == {
        "$connect", "$disconnect", "$default", "watch", "unwatch", "ping",
    }  # fmt: skip
    assert prod.api("WEBSOCKET")["Properties"]["RouteSelectionExpression"] == "$request.body.action"


def test_who_connects_shows_a_ticket_to_connect(prod: Template) -> None:
    """A WebSocket API asks nobody again once the connection is there, and nothing that an authorizer said is cached."""
    ((name, authorizer),) = prod.of_api("Authorizer", "WEBSOCKET").items()
    assert authorizer["Properties"]["AuthorizerType"] == "REQUEST"
    assert authorizer["Properties"]["IdentitySource"] == ["route.request.querystring.ticket"]
    assert f"/functions/{prod.id_of(prod.function('connect'))}/" in target(authorizer["Properties"]["AuthorizerUri"])
    asked = {
        route["Properties"]["RouteKey"]: (
            route["Properties"]["AuthorizationType"],
            route["Properties"].get("AuthorizerId"),
        )
        for route in prod.of_api("Route", "WEBSOCKET").values()
    }
    assert asked.pop("$connect") == ("CUSTOM", {"Ref": name})
    assert set(asked.values()) == {("NONE", None)}


def test_api_gateway_may_call_both(prod: Template) -> None:
    api = prod.id_of(prod.api("WEBSOCKET"))
    allowed: dict[str, set[str]] = {"socket": set(), "connect": set()}
    for permission in prod.of_type("Lambda::Permission").values():
        source = target(permission["Properties"]["SourceArn"])
        for role, sources in allowed.items():
            if target(permission["Properties"]["FunctionName"]) == prod.id_of(prod.function(role)):
                sources.add(source.partition(f":{api}/")[2])
    assert {"*$connect", "*$disconnect", "*$default", "*watch", "*unwatch", "*ping"} <= allowed["socket"]
    assert len(allowed["connect"]) == 1


def test_the_stage_is_throttled_and_keeps_no_access_log(prod: Template) -> None:
    """A log would have the tickets in it, and an account without a role for it would refuse the stage."""
    stage = prod.stage("WEBSOCKET")["Properties"]
    assert (stage["StageName"], stage["AutoDeploy"]) == ("live", True)
    assert stage["DefaultRouteSettings"] == {"ThrottlingRateLimit": 50, "ThrottlingBurstLimit": 100}
    assert "AccessLogSettings" not in stage


def test_clients_and_senders_are_told_the_addresses_of_this_very_api(prod: Template) -> None:
    api = prod.id_of(prod.api("WEBSOCKET"))
    assert target(prod.environment("ticket")[names.WEBSOCKET_URL]) == f"{api}.ApiEndpoint/live"
    assert target(prod.outputs["WebSocketUrl"]["Value"]) == f"{api}.ApiEndpoint/live"
    for role in ("socket", "push"):
        assert target(prod.environment(role)[names.PUSH_URL]) == (
            f"https://{api}.execute-api.us-east-1.<AWS::URLSuffix>/live"
        )


def test_nothing_waits_for_what_waits_for_it(prod: Template) -> None:
    """Functions know the API's address, routes know the functions: only the API itself may know neither."""
    api = prod.api("WEBSOCKET")
    assert "Fn::" not in json.dumps(api)
    assert "DependsOn" not in api


def test_connections_are_kept_apart_and_nothing_of_them_survives(prod: Template) -> None:
    table = prod.resources[prod.environment("socket")["CONNECTIONS_TABLE"]["Ref"]]
    assert (table["DeletionPolicy"], table["UpdateReplacePolicy"]) == ("Delete", "Delete")
    properties = table["Properties"]
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert [key["AttributeName"] for key in properties["KeySchema"]] == ["pk", "sk"]
    assert not properties.keys() & {"PointInTimeRecoverySpecification", "StreamSpecification", "TableName"}


@pytest.mark.parametrize("role", ["ticket", "connect", "socket", "push"])
def test_what_faces_browsers_may_not_write_to_jobs(prod: Template, role: str) -> None:
    writing = {"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:BatchWriteItem"}
    assert not [on for action, on in prod.permissions(role) if action in writing and on.startswith("StorageJobs")]


# --- the stream -----------------------------------------------------------------------------------
def test_what_cannot_be_pushed_is_given_up_soon_and_leaves_a_letter(prod: Template) -> None:
    stream = mapping(prod)
    assert stream["StartingPosition"] == "TRIM_HORIZON"
    assert stream["MaximumRecordAgeInSeconds"] == 300
    assert stream["MaximumRetryAttempts"] == 10_000
    assert stream["BisectBatchOnFunctionError"] is True
    assert stream["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    letters = stream["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert letters == prod.outputs["PushDlqUrl"]["Value"]["Ref"]


def test_the_stream_has_two_readers_and_no_more(prod: Template) -> None:
    """With three, AWS throttles them."""
    jobs = prod.outputs["JobsTableName"]["Value"]["Ref"]
    readers = [
        one["Properties"]["FunctionName"]["Ref"]
        for one in prod.of_type("Lambda::EventSourceMapping").values()
        if target(one["Properties"]["EventSourceArn"]) == f"{jobs}.StreamArn"
    ]
    assert sorted(readers) == sorted(prod.id_of(prod.function(role)) for role in ("dispatch", "push"))


CHUNK = {"pk": "a", "sk": "chunk#000001#000000", "text": "Once", "expires_at": 1}
NEWS: dict[str, tuple[dict[str, Any] | None, bool]] = {
    "a chunk": (CHUNK, True),
    "a chunk that is removed": (None, False),
    "a claim of a streamed job": (held_record(stream=True), True),
    "a claim of another job": (held_record(), False),
    "a job that was accepted": (any_record(stream=True), False),
    "a branch of a workflow that is over": (workflow_record("done", progress_at=NOW), True),
    "one of a job that was taken back by mistake": (workflow_record("done", status="PENDING", progress_at=NOW), True),
    "a workflow that was prepared": (workflow_record(), False),
    "a workflow that ended and was told of": (handed_over(progress_at=NOW), False),
    "an end": (final_record(), True),
    "an end of a streamed job": (final_record("FAILED", stream=True), True),
    "an end that everybody was told of": (handed_over("CANCELLED", stream=True), False),
    "a delivery": ({"pk": "a", "sk": "delivery#e#1", "status": "PROCESSING", "stream": True, "due_shard": "0"}, False),
    "a lease": ({"pk": "lease#x", "sk": "lease"}, False),
}


@pytest.mark.parametrize("what", NEWS)
def test_the_filters_let_through_what_is_news_to_a_watcher(prod: Template, what: str) -> None:
    image, news = NEWS[what]
    keys = {name: to_item(image or CHUNK)[name] for name in ("pk", "sk")}
    record: dict[str, Any] = {"eventName": "MODIFY", "dynamodb": {"Keys": keys}}
    if image is None:
        record["dynamodb"]["OldImage"] = to_item(CHUNK)
    else:
        record["dynamodb"]["NewImage"] = to_item(image)
    assert Filters(mapping(prod)["FilterCriteria"]).pass_(record) is news
