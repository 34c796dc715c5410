"""The setting `sources`: what a declaration means, and what is refused with what to do instead."""

from __future__ import annotations

import json
from typing import Any

import pytest

from infra import declarations, sources
from infra.limits import problems
from infra.settings import Settings
from lambdas.contracts.sources import Source, read, written
from tests.signing import DECLARED

CRM, PAY, FORGE = DECLARED["crm"], DECLARED["pay"], DECLARED["forge"]

LIST = {"plugin": "http_event_list", "url": "https://crm.test/events"}


def refused(declared: Any, **settings: Any) -> list[str]:
    return problems(Settings(sources=declared, region="us-east-1", **settings))


def test_declarations_of_every_scheme_are_taken() -> None:
    assert refused(DECLARED) == []
    assert refused({}) == []


def test_standard_webhooks_knows_its_own_headers_and_takes_those_of_its_kin() -> None:
    assert sources.read({"crm": CRM})["crm"].headers == {
        "signature": "webhook-signature",
        "event_id": "webhook-id",
        "timestamp": "webhook-timestamp",
    }
    svix = {**CRM, "header": "svix-signature", "id": "header:svix-id", "time": "header:svix-timestamp"}
    assert refused({"svix": svix}) == []
    assert sources.read({"svix": svix})["svix"].headers["event_id"] == "svix-id"


def test_only_the_headers_that_are_declared_must_come() -> None:
    assert sources.read(DECLARED)["pay"].headers == {"signature": "stripe-signature"}
    assert set(sources.read(DECLARED)["forge"].headers) == {"signature", "event_id"}


WRONG: dict[str, tuple[str, Any, str]] = {
    "a name in capitals": ("CRM", CRM, "a source is named [a-z][a-z0-9-]{0,31}"),
    "a long name": ("x" * 33, CRM, "a source is named"),
    "the name of the uploads": ("uploads", CRM, "and not uploads"),
    "the name of a part of every sweep": ("stuck", CRM, "no source may be named as a part of every sweep is"),
    "no object": ("crm", "x", "must be an object"),
    "a field that is not known": ("crm", {**CRM, "secrets": []}, "unknown field 'secrets'; known: tenant, task"),
    "no tenant": ("crm", {k: v for k, v in CRM.items() if k != "tenant"}, "has no tenant: a tenant id"),
    "no secret": ("crm", {k: v for k, v in CRM.items() if k != "secret"}, "has no secret: the name of a secret"),
    "no scheme": ("crm", {k: v for k, v in CRM.items() if k != "scheme"}, "has no scheme: standard-webhooks or"),
    "an unsigned one": ("crm", {**CRM, "scheme": "none"}, ".scheme is 'none', but must be standard-webhooks or"),
    "a tenant that is none": ("crm", {**CRM, "tenant": ".."}, ".tenant is '..', but must be a tenant id"),
    "a task that can be none": ("crm", {**CRM, "task": "Sum up"}, ".task is 'Sum up', but must be the name of a task"),
    "a secret with a star": ("crm", {**CRM, "secret": "a*"}, ".secret is 'a*', but must be the name of a secret"),
    "an id that is nowhere": ("pay", {**PAY, "id": "id"}, ".id is 'id', but must be header:<name> or a JSON pointer"),
    "a header in capitals": ("pay", {**PAY, "header": "Sig"}, ".header is 'Sig', but must be a header's name"),
    "a number as text": ("crm", {**CRM, "tolerance_s": "300"}, ".tolerance_s must be a whole number"),
    "true as a number": ("crm", {**CRM, "rate": True}, ".rate must be a whole number"),
    "a tolerance of nothing": ("crm", {**CRM, "tolerance_s": 0}, ".tolerance_s is 0, but must be between 1 and 86400"),
    "text as truth": ("crm", {**CRM, "binary": "yes"}, ".binary must be true or false"),
    "no header": ("pay", {k: v for k, v in PAY.items() if k != "header"}, "has no header: the one that carries"),
    "no id": ("pay", {k: v for k, v in PAY.items() if k != "id"}, "has no id: header:<name> or a JSON pointer"),
    "an id that is not signed": ("crm", {**CRM, "id": "/id"}, ": id and time are headers in standard-webhooks"),
    "no time": ("crm", {**CRM, "time": ""}, ": id and time are headers in standard-webhooks"),
    "two times": ("pay", {**PAY, "time": "/created"}, ".time stands in the signature itself"),
    "a time that is not signed": ("forge", {**FORGE, "time": "header:date"}, ".time is a header, which hmac-sha256"),
    "an id in bytes": ("f", {**FORGE, "binary": True, "id": "/id"}, ".id points into the body, which is binary"),
    "a time in bytes": ("f", {**FORGE, "binary": True, "time": "/at"}, ".time points into the body, which is binary"),
    "a list without plug-in": ("crm", {**CRM, "list": {"url": "x"}}, ".list must name its plugin"),
    "a list with a plug-in that is not there": ("crm", {**CRM, "list": {"plugin": "x"}}, "one of http_event_list"),
    "a list with a token that is no secret's name": (
        "crm", {**CRM, "list": {**LIST, "token": "*"}}, ".list.token is '*', but must be the name",
    ),
    "a list without address": ("crm", {**CRM, "list": {"plugin": "http_event_list"}}, ".list.url is None, but must be"),
    "a list that is not encrypted": (
        "crm", {**CRM, "list": {**LIST, "url": "http://crm.test/events"}}, ".list.url is 'http://crm.test/events', but",
    ),
    "a list at no host": ("crm", {**CRM, "list": {**LIST, "url": "https:///events"}}, ".list.url is 'https:///events'"),
    "a list at half a host": ("crm", {**CRM, "list": {**LIST, "url": "https://[::1"}}, ".list.url is 'https://[::1'"),
    "a list with a space": ("crm", {**CRM, "list": {**LIST, "url": "https://crm.test/a b"}}, ".list.url is"),
    "a list that is text": ("crm", {**CRM, "list": "x"}, ".list must be an object"),
    "long headers": (
        "crm",
        {**CRM, "header": "s" * 60, "id": f"header:{'i' * 60}", "time": f"header:{'t' * 60}"},
        "are too long for API Gateway",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "declared", "advice"), WRONG.values(), ids=WRONG)
def test_a_bad_declaration_is_refused_with_what_to_do(name: str, declared: Any, advice: str) -> None:
    (told,) = refused({name: declared})
    assert told.startswith(f"sources.{name}")
    assert advice in told


def test_a_list_is_asked_over_https_or_on_this_machine() -> None:
    for url in ("https://crm.test:8443/events?kind=order", "http://127.0.0.1:8090/events", "http://[::1]:8090/"):
        assert refused({"crm": {**CRM, "list": {**LIST, "url": url}}}) == []


@pytest.mark.parametrize(
    ("name", "other", "construct"),
    [("a1", "a-1", "A1"), ("a-b", "a--b", "AB"), ("a", "a-", "A"), ("crm", "crm-inbox", "CrmInbox")],
)
def test_sources_that_the_stack_could_not_tell_apart_are_refused(name: str, other: str, construct: str) -> None:
    told = refused({name: CRM, other: CRM})
    assert (
        f"sources.{other} and sources.{name} would both be named {construct} in the stack: name one otherwise" in told
    )
    assert refused({name: CRM, other: {**CRM, "binary": True}}) == []


def test_no_source_is_named_as_what_all_of_them_share() -> None:
    (told,) = refused({"door": CRM})
    assert told == "sources.door and what all sources share would both be named Door in the stack: name one otherwise"


def test_all_mistakes_are_told_at_once() -> None:
    assert len(refused({"a": {**CRM, "tenant": ""}, "b": {**CRM, "rate": 0, "burst": 0}})) == 3


def test_a_source_with_long_headers_may_be_binary() -> None:
    long = {**CRM, "header": "s" * 60, "id": f"header:{'i' * 60}", "time": f"header:{'t' * 60}", "binary": True}
    assert refused({"crm": long}) == []


def test_what_the_functions_get_is_what_was_declared_and_short() -> None:
    listed = {**CRM, "list": {"plugin": "http_events", "url": "https://crm.test/events?x=é"}, "rate": 5}
    text = written(sources.read({"crm": listed}))
    assert "rate" not in text
    assert "tolerance_s" not in text
    (found,) = read(text).values()
    assert found == Source(**{**vars(sources.read({"crm": listed})["crm"]), "rate": 10})
    assert read("") == {}


def test_more_sources_than_a_functions_environment_holds_are_refused() -> None:
    def many(count: int) -> dict[str, Any]:
        return {f"source-{number:03}": CRM for number in range(count)}

    room = sources.MAX_BYTES - declarations.environment_bytes(declarations.read())  # the sweep has both
    fits = max(count for count in range(60) if len(written(sources.read(many(count))).encode()) <= room)
    assert refused(many(fits)) == []
    (told,) = refused(many(fits + 1))
    assert "has room for 2200 of them" in told


def test_tenants_and_binary_sources_share_the_environment_of_accept() -> None:
    tenants = {f"arn:aws:iam::111122223333:role/r{number:03}": f"t{number:03}" for number in range(50)}
    many = {f"source-{number:03}": {**FORGE, "binary": True} for number in range(8)}
    assert refused(dict.fromkeys(many, FORGE), tenants=tenants) == []
    (told,) = refused(many, tenants=tenants)
    assert "take" in told
    assert "bytes together" in told


def test_a_worker_has_room_for_a_batch_of_uploads() -> None:
    assert refused({}, upload_max_bytes=25_000_000) == []
    (told,) = refused({}, upload_max_bytes=26_000_000)
    assert "worker_memory_mb (1024) must be at least 1040 for 10 uploads" in told
    assert refused({}, upload_max_bytes=26_000_000, batch_size=9) == []


def test_the_mapping_is_json_whatever_stands_in_place_of_its_expressions() -> None:
    for name, source in sources.read(DECLARED).items():
        told = json.loads(sources.attributes(name, source))
        assert list(told) == [*source.headers, "source", "request_id", "received_ms"]  # what is said last counts
        assert all(one["DataType"] == "String" for one in told.values())
        assert len(sources.attributes(name, source)) <= 512
