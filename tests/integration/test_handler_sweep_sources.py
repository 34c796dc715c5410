"""The sweep of sources and results: bucket, index and lists on moto, from the event to the certificate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lambdas.adapters import clock
from lambdas.adapters.clients import client
from lambdas.adapters.ledger import DynamoLedger
from lambdas.adapters.s3 import S3Objects
from lambdas.contracts import names
from lambdas.core import ids, times
from lambdas.core.sweeping.asking import certificate_of
from tests.integration.cloud import Cloud, Context
from tests.integration.conftest import Lines, Load
from tests.integration.records import completed
from tests.integration.worker_bench import soon

AT_ONCE = -5  # seconds of grace: what was put this moment is old enough
ODD_KEYS = ("a b+c.json", "ü/ö.json", "z&<>'\".json", "\U0001f600.json", "a", "a/b", "a0", "a~", "~")


@pytest.fixture
def sweep(load_handler: Load, pauses: list[float]) -> ModuleType:
    return load_handler("sweep", SOURCE_GRACE_S=AT_ONCE, SWEEP_PAGE=10, SWEEP_RATE=5_000)


def run(sweep: ModuleType, *parts: str, remaining_s: float = 240, **event: Any) -> dict[str, Any]:
    answer: dict[str, Any] = sweep.handler({"parts": list(parts), **event}, Context(remaining_s))
    json.dumps(answer)
    return answer


def certificate(cloud: Cloud, sweep_id: str) -> dict[str, Any]:
    ledger = DynamoLedger(client("dynamodb"), cloud.jobs_table)
    found = certificate_of(
        sweep_id, now=clock.now(), ledger=ledger, certificates=S3Objects(client("s3"), cloud.results_bucket)
    )
    assert found is not None
    return found


def put(cloud: Cloud, name: str, body: bytes = b'{"text":"x"}', type_: str = "summarize") -> tuple[str, str]:
    """Key and version of an object of which nobody was told."""
    key = f"uploads/acme/{type_}/{name}"
    answer = cloud.client("s3").put_object(Bucket=cloud.uploads_bucket, Key=key, Body=body)
    return key, answer["VersionId"]


def job_of(cloud: Cloud, key: str, version: str) -> str:
    return ids.object_job_id(cloud.uploads_bucket, key, version)


def test_what_lies_in_the_bucket_and_was_never_recorded_becomes_a_job_once(cloud: Cloud, sweep: ModuleType):
    placed = [put(cloud, f"{number:03d}") for number in range(23)]
    cloud.client("s3").delete_object(Bucket=cloud.uploads_bucket, Key=placed[0][0])  # a mark of deletion
    first = run(sweep, "uploads")
    told = certificate(cloud, first["sweep_id"])
    part = told["parts"]["uploads"]
    assert (told["status"], told["repaired"], part["source"], part["balanced"]) == ("DONE", 23, 23, True)
    assert part["repaired_ids"] == [job_of(cloud, key, version) for key, version in placed]
    record = cloud.record(job_of(cloud, *placed[5]))
    assert (record["status"], record["source"], record["upload"]["version"]) == ("PENDING", "uploads", placed[5][1])
    again = run(sweep, "uploads")
    assert certificate(cloud, again["sweep_id"])["repaired"] == 0
    assert again["parts"]["uploads"]["open"] == 23


@pytest.mark.parametrize("page", [1, 2, 100])
def test_keys_of_any_kind_and_versions_are_compared_whatever_the_size_of_a_page(
    cloud: Cloud, load_handler: Load, pauses: list[float], page: int
):
    sweep = load_handler("sweep", SOURCE_GRACE_S=AT_ONCE, SWEEP_PAGE=page, SWEEP_RATE=5_000)
    placed = [put(cloud, name) for name in ODD_KEYS for _ in range(2)]
    found = run(sweep, "uploads")["parts"]["uploads"]
    assert (found["source"], found["retriggered"]) == (len(placed), len(placed))
    assert set(found["repaired_ids"]) == {job_of(cloud, key, version) for key, version in placed}
    again = run(sweep, "uploads")["parts"]["uploads"]
    assert (again["open"], again["retriggered"], again["balanced"]) == (len(placed), 0, True)


def test_a_deleted_jobs_object_is_no_lost_event(cloud: Cloud, sweep: ModuleType):
    key, version = put(cloud, "a")
    run(sweep, "uploads")
    job_id = job_of(cloud, key, version)
    tombstone = ("tenant", "type", "attempt", "body_sha", "upload_shard", "upload_key", "pk", "sk")
    record = cloud.record(job_id)
    cloud.put({name: record[name] for name in tombstone} | {"status": names.DELETED})
    found = run(sweep, "uploads")["parts"]["uploads"]
    assert (found["deleted"], found["repaired"]) == (1, 0)


def test_listing_and_index_are_read_in_pages_and_no_object_by_itself(cloud: Cloud, sweep: ModuleType):
    for number in range(30):
        put(cloud, f"{number}")
    run(sweep, "uploads")
    cloud.wire.clear()
    run(sweep, "uploads")
    assert cloud.wire.count("ListObjectVersions") == 3
    assert cloud.wire.count("Query") <= 2 * ids.UPLOAD_SHARDS
    assert cloud.wire.count("GetItem") == 1  # of the sweep's own item
    assert cloud.wire.count("PutItem") == 1


def test_a_dry_run_makes_no_job(cloud: Cloud, sweep: ModuleType):
    key, version = put(cloud, "a")
    answer = run(sweep, "uploads", dry_run=True, by="arn:me")
    told = certificate(cloud, answer["sweep_id"])
    assert (told["dry_run"], told["by"], told["would_repair"]) == (True, "arn:me", 1)
    assert told["parts"]["uploads"]["would_repair_ids"] == [job_of(cloud, key, version)]
    assert cloud.item(job_of(cloud, key, version)) is None


def test_a_bucket_that_cannot_be_listed_fails_its_part_and_the_metric_says_so(
    cloud: Cloud, sweep: ModuleType, capsys: pytest.CaptureFixture[str]
):
    put(cloud, "a")
    cloud.wire.refuse("ListObjectVersions", "AccessDenied", 403)
    answer = run(sweep, "uploads", "stuck")
    told = certificate(cloud, answer["sweep_id"])
    assert (told["status"], told["parts"]["uploads"]["state"], told["parts"]["stuck"]["state"]) == (
        "FAILED", "FAILED", "DONE",
    )  # fmt: skip
    failed = metrics(capsys.readouterr().out)[0]
    assert number(failed, names.SWEEP_TROUBLES) == 1
    assert names.SOURCE_MISSING not in failed  # no sweep of it has got to its end


def test_a_throttled_bucket_is_asked_again_more_slowly(cloud: Cloud, sweep: ModuleType):
    put(cloud, "a")
    cloud.wire.refuse("ListObjectVersions", "SlowDown", 503, times=4)  # the SDK's own three attempts, and one
    found = run(sweep, "uploads")["parts"]["uploads"]
    assert (found["state"], found["repaired"]) == ("DONE", 1)


def test_the_number_of_repairs_is_a_metric(cloud: Cloud, sweep: ModuleType, capsys: pytest.CaptureFixture[str]):
    for number_ in range(7):
        put(cloud, f"{number_}")
    run(sweep, "uploads")
    (told,) = metrics(capsys.readouterr().out)
    assert (number(told, names.SWEEP_REPAIRED), number(told, names.SOURCE_MISSING)) == (7, 7)
    run(sweep, "uploads")
    (told,) = metrics(capsys.readouterr().out)
    assert (number(told, names.SWEEP_REPAIRED), number(told, names.SOURCE_MISSING)) == (0, 0)


def test_without_time_it_starts_itself_and_goes_on_under_the_same_certificate(
    cloud: Cloud, load_handler: Load, pauses: list[float], monkeypatch: pytest.MonkeyPatch
):
    sweep = load_handler("sweep", SOURCE_GRACE_S=AT_ONCE, SWEEP_PAGE=10, SWEEP_WIDTH=1, SWEEP_RATE=5_000)
    for number_ in range(25):
        put(cloud, f"{number_:03d}")
    started: list[tuple[str, dict[str, Any]]] = []
    functions = type(sweep.parts().functions)
    monkeypatch.setattr(
        functions, "start", lambda self, name, payload: started.append((name, json.loads(json.dumps(payload))))
    )
    event: dict[str, Any] = {"parts": ["uploads"], "sweep_id": "s1"}
    for _ in range(12):
        context = Context(240)
        left = iter([240_000] * 6)
        context.get_remaining_time_in_millis = lambda left=left: next(left, 0)  # type: ignore[method-assign, misc]
        if sweep.handler(event, context)["complete"]:
            break
        name, event = started[-1]
        assert (name, event["sweep_id"], event["parts"]) == (context.function_name, "s1", ["uploads"])
    told = certificate(cloud, "s1")
    assert (told["status"], told["repaired"], told["parts"]["uploads"]["source"]) == ("DONE", 25, 25)
    assert len(set(told["parts"]["uploads"]["repaired_ids"])) == 25
    assert len(started) > 3


def test_a_part_that_another_invocation_holds_is_covered(cloud: Cloud, sweep: ModuleType):
    ledger = DynamoLedger(client("dynamodb"), cloud.jobs_table)
    now = clock.now()
    ledger.take("sweep/uploads", "another", now, times.after(now, 100))
    ledger.keep("sweep/uploads", "another", times.after(now, 100), {"sweep_id": "the-other", "part": "uploads"})
    put(cloud, "a")
    answer = run(sweep, "uploads")
    part = certificate(cloud, answer["sweep_id"])["parts"]["uploads"]
    assert (part["state"], "the-other" in part["why"]) == ("COVERED", True)


# --- drift -------------------------------------------------------------------------------------------
def test_a_result_that_is_gone_is_found_among_items_of_all_kinds(
    cloud: Cloud, load_handler: Load, pauses: list[float], lines: Lines, capsys: pytest.CaptureFixture[str]
):
    sweep = load_handler("sweep", SWEEP_PAGE=1, SWEEP_RATE=5_000)
    kept, lost = [cloud.put(completed(ago_s=3_600)) for _ in range(2)], cloud.put(completed(ago_s=3_600))
    for record in kept:
        cloud.client("s3").put_object(Bucket=cloud.results_bucket, Key=record["result_key"], Body=b"{}")
    run(sweep, "stuck")  # leaves a lease and a sweep in the table
    capsys.readouterr()
    part = run(sweep, "drift")["parts"]["drift"]
    assert (part["checked"], part["lost"], part["lost_results"], part["repaired"]) == (3, 1, [lost["pk"]], 0)
    assert cloud.record(lost["pk"]) == lost
    (told,) = metrics(capsys.readouterr().out)
    assert number(told, names.DRIFT_FOUND) == 1
    assert lines.of("result_lost")[0]["job_id"] == lost["pk"]


# --- a source that lists its events --------------------------------------------------------------------


class Provider(HTTPServer):
    """A shop's API, with a list of events in pages of two."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.seen: list[tuple[str, dict[str, list[str]]]] = []
        self.answers: list[int] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.server.seen.append((self.headers.get("Authorization", ""), query))
        status = self.server.answers.pop(0) if self.server.answers else 200
        start = int(query.get("cursor", ["0"])[0])
        page = {"events": self.server.events[start : start + 2]}
        more = {"cursor": str(start + 2)} if start + 2 < len(self.server.events) else {}
        body = json.dumps({**page, **more}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def shop(
    load_handler: Load, provider: Provider, cloud: Cloud, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ModuleType]:
    """The sweep of a deployment with a source that lists its events behind a token."""
    monkeypatch.setattr("lambdas.sources.fetching.CONNECT_S", 60.0)  # a source that is slow here has no fault
    secrets = cloud.client("secretsmanager")
    secrets.create_secret(Name="shop/list", SecretString="a-token")
    listing = {"plugin": "http_event_list", "url": f"http://127.0.0.1:{provider.server_port}/events?kind=order"}
    declared = {
        "tenant": "acme", "task": "summarize", "scheme": "hmac-sha256", "secret": "shop/key", "header": "x-sig",
        "id": "/id", "input": "/data", "list": {**listing, "token": "shop/list"},
    }  # fmt: skip
    sources = {"shop": declared, "broken": {**declared, "list": {"plugin": "no_such"}}}
    yield load_handler("sweep", SOURCES=json.dumps(sources), SOURCE_GRACE_S=AT_ONCE, SWEEP_RATE=5_000)
    secrets.delete_secret(SecretId="shop/list", ForceDeleteWithoutRecovery=True)


def an_order(number: int) -> dict[str, Any]:
    body = {"id": f"order-{number}", "data": {"text": f"Order {number}."}}
    return {"id": f"order-{number}", "time": soon(-60), "body": json.dumps(body) if number % 2 else body}


def test_events_that_the_source_lists_and_nobody_received_become_jobs(
    cloud: Cloud, shop: ModuleType, provider: Provider
):
    provider.events = [an_order(number) for number in range(5)]
    found = run(shop, "shop")["parts"]["shop"]
    assert (found["state"], found["source"], found["repaired"], found["balanced"]) == ("DONE", 5, 5, True)
    record = cloud.record(ids.job_id_from_key("acme", "POST", "/events/shop", "order-3"))
    assert (record["source"], record["input"]) == ("shop", '{"text":"Order 3."}')
    tokens = {token for token, _ in provider.seen}
    assert (tokens, len(provider.seen)) == ({"Bearer a-token"}, 3)
    asked = provider.seen[0][1]
    assert (asked["kind"], asked["since"] < asked["until"]) == (["order"], True)
    assert run(shop, "shop")["parts"]["shop"]["open"] == 5


def test_a_source_that_asks_for_patience_gets_it(shop: ModuleType, provider: Provider):
    provider.events, provider.answers = [an_order(1)], [429, 503]
    assert run(shop, "shop")["parts"]["shop"]["repaired"] == 1


@pytest.mark.parametrize(("part", "why"), [("shop", "500"), ("broken", "no_such")])
def test_a_source_that_cannot_be_asked_fails_its_part(
    cloud: Cloud, shop: ModuleType, provider: Provider, part: str, why: str
):
    provider.answers = [500]
    told = certificate(cloud, run(shop, part, "stuck")["sweep_id"])
    assert (told["status"], why in told["parts"][part]["why"], told["parts"]["stuck"]["state"]) == (
        "FAILED", True, "DONE",
    )  # fmt: skip


def metrics(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines() if "_aws" in line]


def number(told: dict[str, Any], metric: str) -> float:
    value = told[metric]
    return float(value[0] if isinstance(value, list) else value)
