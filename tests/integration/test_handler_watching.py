"""`ticket`, `connect`, `socket` and `push` on events as AWS sends them, on the tables of the template."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.config import Config

from lambdas.adapters import clock, push
from lambdas.adapters.chunks import DynamoChunks
from lambdas.adapters.clients import client
from lambdas.contracts import names
from lambdas.contracts.validation import compile_schema, load
from lambdas.core import times
from lambdas.core.streaming.ports import Chunk
from tests.fakes_workflows import parts
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.events import ACME, GLOBEX, failures, http, stream, stream_record
from tests.integration.management_api import ManagementApi, management_api
from tests.integration.records import completed, pending, processing

ANNA, BEN = "L0SM9cOFvHcCIhw=", "Ben9cOFvHcCIhw="
ROUTE = "arn:aws:execute-api:us-east-1:111122223333:a1b2c3d4e5/live/$connect"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ManagementApi]:
    with management_api() as found:
        yield found


class Doors:
    """The four functions, and the connections between them."""

    def __init__(self, cloud: Cloud, load: Load, api: ManagementApi, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cloud, self.api = cloud, api
        self.ticket_, self.connect_ = load("ticket"), load("connect")
        self.socket, self.push_ = load("socket"), load("push")
        monkeypatch.setenv(names.PUSH_URL, api.url)
        monkeypatch.setattr(push, "_SHORT", push._SHORT.merge(Config(connect_timeout=60, read_timeout=60)))
        self.chunks = DynamoChunks(client("dynamodb"), cloud.jobs_table)

    def ticket(self, *job_ids: str, authorizer: Any = ACME) -> dict[str, Any]:
        event = http("POST /tickets", body=json.dumps({"job_ids": job_ids}), authorizer=authorizer)
        answer: dict[str, Any] = self.ticket_.handler(event, Context())
        return answer

    def show(self, ticket: Any) -> dict[str, Any]:
        event = {
            "type": "REQUEST",
            "methodArn": ROUTE,
            "headers": {"Host": "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"},
            "queryStringParameters": {"ticket": ticket} if ticket is not None else None,
            "requestContext": about("CONNECT", "$connect", ANNA),
        }
        policy: dict[str, Any] = self.connect_.handler(event, Context())
        return policy

    def open(self, connection: str, *job_ids: str) -> None:
        shown = self.show(json.loads(self.ticket(*job_ids)["body"])["ticket"])
        event = {"requestContext": about("CONNECT", "$connect", connection, authorizer=shown["context"])}
        assert self.socket.handler(event, Context()) == {"statusCode": 200}

    def close(self, connection: str) -> None:
        event = {"requestContext": about("DISCONNECT", "$disconnect", connection)}
        assert self.socket.handler(event, Context()) == {"statusCode": 200}

    def say(self, connection: str, message: Any, *, as_base64: bool = False) -> list[dict[str, Any]]:
        """What came back."""
        before = len(self.api.sent[connection])
        body = message if isinstance(message, str) else json.dumps(message)
        event = {
            "requestContext": about("MESSAGE", "$default", connection),
            "body": base64.b64encode(body.encode()).decode() if as_base64 else body,
            "isBase64Encoded": as_base64,
        }
        assert self.socket.handler(event, Context()) == {"statusCode": 200}
        return self.api.sent[connection][before:]

    def watch(self, connection: str, job_id: str, **more: Any) -> list[dict[str, Any]]:
        return self.say(connection, {"action": "watch", "job_id": job_id, **more})

    def push(self, *records: dict[str, Any]) -> list[str]:
        return failures(self.push_.handler(stream(*records), Context()))

    def stored(self, job_id: str, n: int, text: str) -> dict[str, Any]:
        """A chunk, and the record that the stream has of it."""
        self.chunks.append(job_id, Chunk(1, n, text), 2_000_000_000)
        return stream_record({"pk": job_id, "sk": f"chunk#000001#{n:06}", "text": text})

    def items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cloud.client("dynamodb").scan(TableName=self.cloud.connections_table)[
            "Items"
        ]
        return found


def about(kind: str, route: str, connection: str, **more: Any) -> dict[str, Any]:
    """The context of an event of a WebSocket API."""
    return {
        "routeKey": route,
        "eventType": kind,
        "messageDirection": "IN",
        "stage": "live",
        "apiId": "a1b2c3d4e5",
        "domainName": "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com",
        "connectionId": connection,
        "connectedAt": 1795966244123,
        "requestTimeEpoch": 1795966244123,
        "requestId": "L0SNHGPwvHcFsGA=",
        "extendedRequestId": "L0SNHGPwvHcFsGA=",
        "identity": {"sourceIp": "198.51.100.7", "userAgent": "browser"},
        **more,
    }


@pytest.fixture
def doors(cloud: Cloud, load_handler: Load, api: ManagementApi, monkeypatch: pytest.MonkeyPatch) -> Doors:
    return Doors(cloud, load_handler, api, monkeypatch)


@pytest.fixture
def job(cloud: Cloud) -> dict[str, Any]:
    return cloud.put(processing(stream=True))


# --- tickets --------------------------------------------------------------------------------------
def test_a_ticket_is_as_the_contract_says_and_stands_in_no_log(doors: Doors, job: dict[str, Any], lines: Lines) -> None:
    answer = doors.ticket(job["pk"])
    body = json.loads(answer["body"])
    assert (answer["statusCode"], answer["headers"]["cache-control"]) == (201, "no-store")
    assert compile_schema(load("openapi.json")["components"]["schemas"]["Ticket"])(body) is None
    assert body["url"] == f"{doors.cloud.environment('ticket')[names.WEBSOCKET_URL]}?ticket={body['ticket']}"
    assert len(body["ticket"]) == 43
    doors.show(body["ticket"])
    doors.show(body["ticket"])
    assert body["ticket"] not in lines.raw
    assert lines.steps() == ["ticket_issued", "admitted", "refused"]


def test_a_ticket_for_somebody_else_s_job_is_404_and_no_identity_403(doors: Doors, job: dict[str, Any]) -> None:
    assert doors.ticket(job["pk"], authorizer=GLOBEX)["statusCode"] == 404
    assert doors.ticket(job["pk"], authorizer=None)["statusCode"] == 403
    assert doors.ticket()["statusCode"] == 400
    assert doors.items() == []


def test_a_table_that_cannot_be_reached_is_503(doors: Doors, job: dict[str, Any]) -> None:
    doors.cloud.wire.refuse("PutItem", "InternalServerError", 500)
    answer = doors.ticket(job["pk"])
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "2")


def test_a_record_that_cannot_be_read_is_503(doors: Doors, cloud: Cloud) -> None:
    broken = cloud.put({**processing(), "attempt": "one"})
    assert doors.ticket(broken["pk"])["statusCode"] == 503


# --- who may connect ---------------------------------------------------------------------------------
def test_a_ticket_opens_the_very_route_once(doors: Doors, job: dict[str, Any]) -> None:
    ticket = json.loads(doors.ticket(job["pk"])["body"])["ticket"]
    first, second = doors.show(ticket), doors.show(ticket)
    (statement,) = first["policyDocument"]["Statement"]
    assert statement == {"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": ROUTE}
    assert first["context"] == {"tenant": "acme", "job_ids": json.dumps([job["pk"]])}
    assert all(isinstance(value, str) for value in first["context"].values())
    assert second["policyDocument"]["Statement"][0]["Effect"] == "Deny"
    assert second["context"] == {}


@pytest.mark.parametrize("ticket", [None, "", "x", "x" * 43, 1, ["x"], "T" * 42 + "é"])
def test_who_has_no_ticket_is_denied(doors: Doors, ticket: Any) -> None:
    assert doors.show(ticket)["policyDocument"]["Statement"][0]["Effect"] == "Deny"


def test_an_expired_ticket_is_denied(doors: Doors, job: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = json.loads(doors.ticket(job["pk"])["body"])["ticket"]
    late = times.after(clock.now(), 61)
    monkeypatch.setattr(clock, "now", lambda: late)
    assert doors.show(ticket)["policyDocument"]["Statement"][0]["Effect"] == "Deny"


def test_a_table_that_cannot_be_reached_is_no_denial(doors: Doors, job: dict[str, Any], lines: Lines) -> None:
    ticket = json.loads(doors.ticket(job["pk"])["body"])["ticket"]
    doors.cloud.wire.refuse("DeleteItem", "InternalServerError", 500)
    with pytest.raises(Exception, match="taking a ticket"):
        doors.show(ticket)
    assert ticket not in lines.raw


# --- what is said over a connection ---------------------------------------------------------------------
def test_a_job_is_watched_from_its_text_to_its_result(doors: Doors, job: dict[str, Any]) -> None:
    job_id = job["pk"]
    doors.stored(job_id, 0, "Once ")
    doors.open(ANNA, job_id)
    assert [frame["type"] for frame in doors.watch(ANNA, job_id)] == ["watching", "chunks"]
    assert doors.push(doors.stored(job_id, 1, "upon")) == []
    assert doors.api.sent[ANNA][-1]["texts"] == ["upon"]
    done = {**job, **completed(), "pk": job_id, "stream": True, "result_key": f"results/acme/{job_id}/1"}
    doors.cloud.put(done)
    doors.cloud.client("s3").put_object(Bucket=doors.cloud.results_bucket, Key=done["result_key"], Body=b"{}")
    assert doors.push(stream_record(done, job)) == []
    final = doors.api.sent[ANNA][-1]
    assert (final["type"], final["chunks"], final["result"], final["job"]["status"]) == ("final", 2, {}, "COMPLETED")
    assert len(doors.items()) == 1  # the connection
    doors.close(ANNA)
    assert doors.items() == []


def test_a_large_result_is_a_link_that_leads_there(doors: Doors, cloud: Cloud) -> None:
    done = completed(result_bytes=200_000)
    cloud.put(done)
    doors.open(ANNA, done["pk"])
    final = doors.watch(ANNA, done["pk"])[-1]
    assert done["result_key"] in final["result_url"]
    assert "X-Amz-Signature" in final["result_url"]


def test_who_opens_gets_a_connection_that_expires(doors: Doors, job: dict[str, Any]) -> None:
    doors.open(ANNA, job["pk"])
    (item,) = doors.items()
    left = int(item["expires_at"]["N"]) - clock.now().timestamp()
    assert 7_200 < left <= 7_800


def test_without_a_place_in_the_table_there_is_no_connection(doors: Doors, job: dict[str, Any]) -> None:
    shown = doors.show(json.loads(doors.ticket(job["pk"])["body"])["ticket"])
    doors.cloud.wire.refuse("PutItem", "InternalServerError", 500)
    event = {"requestContext": about("CONNECT", "$connect", ANNA, authorizer=shown["context"])}
    assert doors.socket.handler(event, Context()) == {"statusCode": 503}


def test_who_watches_a_workflow_is_told_each_step_once(doors: Doors) -> None:
    record = processing(pending(type="analyze-document"))
    record = {**record, "parts": parts(), "parts_run": 0, "progress_at": times.text(clock.now())}
    doors.cloud.put(record)
    doors.open(ANNA, record["pk"])
    assert [frame["type"] for frame in doors.watch(ANNA, record["pk"])] == ["watching", "progress"]
    for states in (("done",), ("done",), ("done", "failed")):
        doors.cloud.put({**record, "parts": parts(*states)})
        assert doors.push(stream_record({**record, "parts": parts(*states)})) == []
    steps = [frame for frame in doors.api.sent[ANNA] if frame["type"] == "progress"]
    assert [(step["done"], step["failed"], step["total"]) for step in steps] == [
        ([], [], 3), (["summary"], [], 3), (["summary"], ["entities"], 3),
    ]  # fmt: skip


def test_a_message_in_base64_is_read_and_the_route_does_not_decide(doors: Doors, job: dict[str, Any]) -> None:
    doors.open(ANNA, job["pk"])
    assert doors.say(ANNA, {"action": "ping"}, as_base64=True) == [{"type": "pong"}]
    assert doors.say(ANNA, {"action": "$connect"})[0]["code"] == "unknown_action"
    assert doors.say(ANNA, "{")[0]["code"] == "bad_request"
    assert doors.say(ANNA, {"action": "unwatch", "job_id": job["pk"]}) == [{"type": "unwatched", "job_id": job["pk"]}]


def test_a_message_that_came_by_the_route_of_an_opening_opens_nothing(doors: Doors, job: dict[str, Any]) -> None:
    """A client chooses its route by the word that it writes as its action."""
    doors.open(ANNA, job["pk"])
    event = {"requestContext": about("MESSAGE", "$connect", ANNA), "body": '{"action": "$connect"}'}
    assert doors.socket.handler(event, Context()) == {"statusCode": 200}
    assert doors.api.sent[ANNA][-1]["code"] == "unknown_action"


def test_a_connection_that_nobody_knows_is_told_so(doors: Doors) -> None:
    assert doors.say(ANNA, {"action": "ping"})[0]["code"] == "unknown_connection"


def test_the_end_of_a_connection_that_cannot_be_written_down_is_no_error(
    doors: Doors, job: dict[str, Any], lines: Lines
) -> None:
    doors.open(ANNA, job["pk"])
    doors.cloud.wire.refuse("DeleteItem", "InternalServerError", 500)
    event = {"requestContext": about("DISCONNECT", "$disconnect", ANNA)}
    assert doors.socket.handler(event, Context()) == {"statusCode": 503}
    assert lines.of("store_unavailable")


# --- the stream --------------------------------------------------------------------------------------------
def test_ws_01_who_is_gone_is_forgotten_and_the_other_is_served(doors: Doors, job: dict[str, Any]) -> None:
    for connection in (ANNA, BEN):
        doors.open(connection, job["pk"])
        doors.watch(connection, job["pk"])
    doors.api.answers[ANNA].append((410, "GoneException"))
    assert doors.push(doors.stored(job["pk"], 0, "a")) == []
    assert doors.api.types(BEN) == ["watching", "chunks"]
    assert ANNA not in json.dumps(doors.items())


@pytest.mark.parametrize("answer", [(429, "LimitExceededException"), (413, ""), (403, "ForbiddenException"), (500, "")])
def test_trouble_of_one_watcher_fails_nothing(
    doors: Doors, job: dict[str, Any], lines: Lines, answer: tuple[int, str]
) -> None:
    for connection in (ANNA, BEN):
        doors.open(connection, job["pk"])
        doors.watch(connection, job["pk"])
    doors.api.answers[ANNA].append(answer)
    assert doors.push(doors.stored(job["pk"], 0, "a secret")) == []
    assert doors.api.types(BEN) == ["watching", "chunks"]
    (line,) = lines.of("watcher_trouble")
    assert str(answer[0]) in line["reason"]
    assert "a secret" not in lines.raw
    assert [frame["type"] for frame in doors.say(ANNA, {"action": "ping"})] == ["pong", "chunks"]


def test_many_records_of_one_job_are_one_look(doors: Doors, job: dict[str, Any]) -> None:
    doors.open(ANNA, job["pk"])
    doors.watch(ANNA, job["pk"])
    records = [doors.stored(job["pk"], n, str(n)) for n in range(5)]
    before = doors.cloud.wire.count("GetItem")
    assert doors.push(*records) == []
    assert doors.cloud.wire.count("GetItem") == before + 1
    assert doors.api.sent[ANNA][-1]["texts"] == ["0", "1", "2", "3", "4"]


def test_a_job_that_nobody_watches_costs_one_query(doors: Doors, job: dict[str, Any]) -> None:
    record = doors.stored(job["pk"], 0, "a")
    before = len(doors.cloud.wire.sent)
    assert doors.push(record) == []
    assert [one.operation for one in doors.cloud.wire.sent[before:]] == ["Query"]


def test_only_the_records_of_the_job_whose_watchers_cannot_be_read_fail(doors: Doors, cloud: Cloud) -> None:
    one, two = cloud.put(processing(stream=True)), cloud.put(processing(stream=True))
    doors.open(ANNA, one["pk"], two["pk"])
    for job in (one, two):
        doors.watch(ANNA, job["pk"])
    records = [doors.stored(one["pk"], 0, "a"), doors.stored(two["pk"], 0, "b"), doors.stored(one["pk"], 1, "c")]
    cloud.wire.refuse("Query", "InternalServerError", 500, part=f"job#{one['pk']}")
    numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
    assert doors.push(*records) == [numbers[0], numbers[2]]
    assert [frame["job_id"] for frame in doors.api.sent[ANNA] if frame["type"] == "chunks"] == [two["pk"]]
    cloud.wire.mend()
    assert doors.push(*records) == []
    assert doors.api.sent[ANNA][-1]["texts"] == ["a", "c"]


def test_a_poison_record_blocks_nobody(doors: Doors, cloud: Cloud, lines: Lines) -> None:
    broken, whole = cloud.put(processing(stream=True)), cloud.put(processing(stream=True))
    doors.open(ANNA, broken["pk"], whole["pk"])
    for job in (broken, whole):
        doors.watch(ANNA, job["pk"])
    cloud.put({**broken, "attempt": "one"})
    strange: list[dict[str, Any]] = [
        {},
        {"dynamodb": {}},
        {"dynamodb": {"Keys": {"pk": {"N": "1"}}}},
        {"dynamodb": None},
    ]
    assert doors.push(*strange, stream_record(broken), doors.stored(whole["pk"], 0, "a")) == []
    assert doors.api.sent[ANNA][-1]["texts"] == ["a"]
    assert [line["job_id"] for line in lines.of("unreadable_record")] == [broken["pk"]]


def test_whatever_is_wrong_with_one_job_the_others_are_served(
    doors: Doors, cloud: Cloud, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = cloud.put(processing(stream=True)), cloud.put(processing(stream=True))
    doors.open(ANNA, one["pk"], two["pk"])
    for job in (one, two):
        doors.watch(ANNA, job["pk"])
    honest = doors.push_.serve

    def broken(watches: Any, relay: Any) -> None:
        if watches[0].job_id == one["pk"]:
            raise ZeroDivisionError
        honest(watches, relay)

    monkeypatch.setattr(doors.push_, "serve", broken)
    assert doors.push(doors.stored(one["pk"], 0, "a"), doors.stored(two["pk"], 0, "b")) == []
    assert doors.api.sent[ANNA][-1]["texts"] == ["b"]
    (line,) = lines.of("push_error")
    assert (line["job_id"], line["exception_name"]) == (one["pk"], "ZeroDivisionError")


@pytest.mark.parametrize("event", [{}, {"Records": []}, {"Records": None}])
def test_what_is_no_stream_is_not_taken_for_handled(doors: Doors, event: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected the Records"):
        doors.push_.handler(event, Context())


def test_a_job_that_was_not_begun_is_watched_too(doors: Doors, cloud: Cloud) -> None:
    job = cloud.put(pending(stream=True))
    doors.open(ANNA, job["pk"])
    assert doors.watch(ANNA, job["pk"])[0]["status"] == "PENDING"
