"""A tenant's endpoints: what is registered once, what is refused, and that no tenant sees another's."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lambdas.contracts.names import CALLBACK
from lambdas.core import times
from lambdas.core.job import UnreadableRecord
from lambdas.core.ports import Unavailable
from lambdas.core.problems import Problem
from lambdas.core.webhooks import circuits, endpoint_views, rotation
from lambdas.core.webhooks import endpoint as endpoints
from lambdas.core.webhooks.endpoint import ENDPOINTS_MAX, EVENTS, ROTATION_S, Endpoint
from lambdas.core.webhooks.registry import BY_THE_TENANT, Registered, Registry, find, listed, register, remove, switch
from lambdas.core.webhooks.rotation import Keys, keys, rotate
from tests.builders import NOW, TENANT, later
from tests.fakes import FakeClock, FakeEndpoints, FakeSecrets, Trouble

URL = "https://hooks.acme.test/jobs"
OTHER = "globex"


class Desk:
    """A registry with everything faked. `meanwhile`: what somebody else does before a call to the store."""

    def __init__(self, *, local: bool = False) -> None:
        self.meanwhile: dict[str, Callable[[], None]] = {}
        self.store = FakeEndpoints(before=self._before)
        self.clock = FakeClock()
        self.secrets = FakeSecrets(self.clock, master=("m" * 64,))
        self.registry = Registry(self.store, self.secrets, "master", self.clock, local)

    def _before(self, name: str) -> None:
        act = self.meanwhile.pop(name, None)
        if act:
            act()

    def register(self, url: str = URL, *, tenant: str = TENANT, **body: Any) -> Any:
        return register(tenant, json.dumps({"url": url, **body}).encode(), self.registry)

    def registered(self, url: str = URL, *, tenant: str = TENANT, **body: Any) -> Registered:
        found = self.register(url, tenant=tenant, **body)
        assert isinstance(found, Registered), found
        return found

    def rotate(self, endpoint_id: str, tenant: str = TENANT, **body: Any) -> Any:
        return rotate(tenant, endpoint_id, json.dumps(body).encode() if body else b"", self.registry)

    def keys(self, endpoint_id: str, tenant: str = TENANT) -> Keys:
        found = keys(tenant, endpoint_id, self.registry)
        assert isinstance(found, Keys), found
        return found


def refused(found: Any) -> tuple[int, str]:
    assert isinstance(found, Problem), found
    return found.status, found.kind


# --- registering -------------------------------------------------------------------------------------
def test_an_endpoint_is_registered_for_all_events_unless_it_names_some() -> None:
    desk = Desk()
    assert desk.registered().endpoint.events == EVENTS
    some = desk.registered("https://b.acme.test/", events=["job.failed", "job.completed"], description="the shop")
    assert (some.endpoint.events, some.endpoint.description) == (("job.completed", "job.failed"), "the shop")
    assert some.endpoint.wants("job.failed")
    assert not some.endpoint.wants("job.cancelled")
    assert [one.url for one in listed(TENANT, desk.registry)] == [
        one.url for one in sorted((desk.registered().endpoint, some.endpoint), key=lambda one: one.id)
    ]


def test_a_record_reads_as_what_was_written() -> None:
    found = Desk().registered(description="x").endpoint
    for one in (found, endpoints.rotated(found, NOW, at_once=False)):
        assert endpoints.read(endpoints.record_of(one)) == one


@pytest.mark.parametrize("field", ["pk", "sk", "id", "tenant", "url", "enabled", "secret_version", "created_at"])
def test_a_record_that_lacks_something_is_unreadable(field: str) -> None:
    record = endpoints.record_of(Desk().registered().endpoint)
    del record[field]
    with pytest.raises(UnreadableRecord):
        endpoints.read(record)


def test_a_repeat_gets_the_same_answer_and_makes_no_second_endpoint() -> None:
    desk = Desk()
    first = desk.registered(events=["job.failed"])
    desk.clock.advance(60)
    assert desk.registered("HTTPS://hooks.ACME.test:443/jobs", events=["job.failed"]) == first
    assert len(desk.store.records) == 1


@pytest.mark.parametrize("body", [{"events": ["job.failed"]}, {"description": "another"}])
def test_the_same_url_with_other_wishes_is_409_and_names_the_one_that_stands(body: dict[str, Any]) -> None:
    desk = Desk()
    first = desk.registered()
    found = desk.register(**body)
    assert refused(found) == (409, "webhook-exists")
    assert first.endpoint.id in found.detail
    assert desk.registered() == first


def test_a_repeat_does_not_enable_what_was_disabled() -> None:
    desk = Desk()
    first = desk.registered()
    switch(TENANT, first.endpoint.id, desk.registry, on=False)
    assert not desk.registered().endpoint.enabled


def test_a_lost_reply_and_a_lost_race_end_with_one_endpoint() -> None:
    desk = Desk()
    desk.store.troubles.add("create", Trouble.UNHEARD)
    with pytest.raises(Unavailable):
        desk.register()
    first = desk.registered()
    desk = Desk()
    desk.clock.advance(5)
    desk.meanwhile["create"] = lambda: desk.store.records.update({(TENANT, first.endpoint.id): _recorded(first)})
    assert desk.registered() == first


def _recorded(found: Registered) -> dict[str, Any]:
    return endpoints.record_of(found.endpoint)


def test_two_tenants_with_one_url_have_two_endpoints_and_two_secrets() -> None:
    desk = Desk()
    mine, theirs = desk.registered(), desk.registered(tenant=OTHER)
    assert mine.endpoint.id != theirs.endpoint.id
    assert mine.secret != theirs.secret


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://hooks.acme.test/", "http is not https"),
        ("https://hooks.acme.test:22/", "its port is not one of 443, 8443"),
        ("https://user@hooks.acme.test/", "a user name"),
        ("https://127.0.0.1/", "loopback"),
        ("https://2130706433/", "odd notation"),
        ("https://[::ffff:169.254.169.254]/", "link-local"),
        ("https://localhost/", "private network"),
        ("hooks.acme.test", "no absolute URL"),
    ],
)
def test_a_url_that_nothing_may_be_delivered_to_is_422_and_says_where(url: str, why: str) -> None:
    found = Desk().register(url)
    assert refused(found) == (422, "invalid-input")
    assert (found.pointer, why in found.detail) == ("/url", True), found.detail


def test_on_a_developers_machine_a_receiver_may_be_there_without_tls() -> None:
    assert Desk(local=True).registered("http://127.0.0.1:8123/hook").endpoint.url == "http://127.0.0.1:8123/hook"
    assert refused(Desk(local=True).register("http://10.0.0.1/")) == (422, "invalid-input")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b"", "/url"),
        (b"{}", "/url"),
        (b"[]", ""),
        (b'{"url": 7}', "/url"),
        (b'{"url": ""}', "/url"),
        (b'{"url": "https://a.test/", "events": []}', "/events"),
        (b'{"url": "https://a.test/", "events": ["job.dispatched"]}', "/events/0"),
        (b'{"url": "https://a.test/", "events": ["job.failed", "job.failed"]}', "/events"),
        (b'{"url": "https://a.test/", "secret": "x"}', "/secret"),
        (b'{"url": "https://a.test/", "description": 1}', "/description"),
        (b'{"url": "https://a.test/", "url": "https://b.test/"}', None),
        (b"{", None),
    ],
)
def test_a_body_that_breaks_the_contract_is_400_and_says_where(body: bytes, pointer: str | None) -> None:
    found = register(TENANT, body, Desk().registry)
    assert refused(found) == (400, "bad-request")
    if pointer is not None:
        assert found.pointer == pointer  # type: ignore[union-attr]


def test_a_tenant_has_twenty_endpoints_and_no_more() -> None:
    desk = Desk()
    desk.rotate(CALLBACK)  # what stands for callbacks is none of them
    for number in range(ENDPOINTS_MAX):
        desk.registered(f"https://{number}.acme.test/")
    assert refused(desk.register("https://more.acme.test/")) == (409, "too-many-webhooks")
    assert len(listed(TENANT, desk.registry)) == ENDPOINTS_MAX
    desk.registered("https://0.acme.test/")  # a repeat is no further one
    desk.registered(tenant=OTHER)


def test_who_finds_too_many_behind_its_own_takes_it_back() -> None:
    desk = Desk()
    for number in range(ENDPOINTS_MAX - 1):
        desk.registered(f"https://{number}.acme.test/")
    desk.meanwhile["create"] = lambda: desk.store.records.update(
        {(TENANT, "f" * 16): {**_recorded(desk_of_its_own()), "id": "f" * 16, "sk": f"endpoint#{'f' * 16}"}}
    )
    assert refused(desk.register("https://late.acme.test/")) == (409, "too-many-webhooks")
    assert len(listed(TENANT, desk.registry)) == ENDPOINTS_MAX


def desk_of_its_own() -> Registered:
    return Desk().registered("https://elsewhere.acme.test/")


# --- secrets -----------------------------------------------------------------------------------------
def test_a_secret_is_told_at_registration_and_by_its_own_route() -> None:
    desk = Desk()
    first = desk.registered()
    assert first.secret.startswith("whsec_")
    assert desk.keys(first.endpoint.id) == Keys(first.endpoint.id, first.secret, None, None)


def test_an_endpoint_that_comes_back_has_another_secret() -> None:
    desk = Desk()
    first = desk.registered()
    desk.rotate(first.endpoint.id)
    known = {first.secret, desk.keys(first.endpoint.id).secret}
    remove(TENANT, first.endpoint.id, desk.registry)
    desk.clock.advance(1)
    assert desk.registered().secret not in known


@pytest.mark.parametrize("which", ["registered", CALLBACK])
def test_a_rotation_gives_a_new_secret_and_lets_the_old_one_sign_for_a_day(which: str) -> None:
    desk = Desk()
    name = desk.registered().endpoint.id if which == "registered" else CALLBACK
    before = desk.keys(name).secret
    turned = desk.rotate(name)
    assert isinstance(turned, Keys)
    assert (turned.previous, turned.previous_until) == (before, later(ROTATION_S))
    assert turned.secret not in ("", before)
    desk.clock.advance(ROTATION_S)
    assert desk.keys(name) == Keys(name, turned.secret, None, None)


def test_a_repeated_rotation_changes_nothing_until_the_old_secret_signs_no_more() -> None:
    desk = Desk()
    name = desk.registered().endpoint.id
    first = desk.rotate(name)
    desk.clock.advance(ROTATION_S - 1)
    assert desk.rotate(name) == first
    desk.clock.advance(1)
    second = desk.rotate(name)
    assert (second.previous, second.secret == first.secret) == (first.secret, False)


def test_a_secret_that_became_known_signs_no_more_at_once() -> None:
    desk = Desk()
    name = desk.registered().endpoint.id
    known = {desk.keys(name).secret, desk.rotate(name).secret}
    turned = desk.rotate(name, at_once=True)
    assert (turned.previous, turned.previous_until) == (None, None)
    assert turned.secret not in known
    assert endpoints.read(desk.store.records[TENANT, name]).versions(desk.clock()) == (
        desk.store.records[TENANT, name]["secret_version"],
    )


@pytest.mark.parametrize("which", ["registered", CALLBACK])
def test_of_two_rotations_at_once_one_counts_and_both_tell_it(which: str) -> None:
    desk = Desk()
    name = desk.registered().endpoint.id if which == "registered" else CALLBACK
    told: list[Any] = []

    def meanwhile() -> None:
        desk.clock.advance(1)
        told.append(desk.rotate(name))
        desk.clock.advance(1)

    desk.meanwhile["save" if which == "registered" else "create"] = meanwhile
    assert desk.rotate(name) == told[0]


def test_a_rotation_whose_reply_was_lost_is_found_by_its_repeat() -> None:
    desk = Desk()
    name = desk.registered().endpoint.id
    desk.store.troubles.add("save", Trouble.UNHEARD)
    with pytest.raises(Unavailable):
        desk.rotate(name)
    stands = desk.keys(name)
    assert stands.previous
    assert desk.rotate(name) == stands


def test_what_is_changed_again_and_again_is_409() -> None:
    desk = Desk()
    name = desk.registered().endpoint.id

    def bump() -> None:
        desk.store.records[TENANT, name]["secret_version"] += 1
        desk.meanwhile["save"] = bump

    desk.meanwhile["save"] = bump
    assert refused(desk.rotate(name)) == (409, "changed-meanwhile")


@pytest.mark.parametrize("body", [b"[]", b'{"at_once": 1}', b'{"force": true}'])
def test_a_rotation_with_a_body_of_another_shape_is_400(body: bytes) -> None:
    desk = Desk()
    name = desk.registered().endpoint.id
    assert refused(rotate(TENANT, name, body, desk.registry)) == (400, "bad-request")


def test_while_the_master_secret_is_changed_the_first_is_the_one_that_is_told() -> None:
    desk = Desk()
    first = desk.registered()
    desk.secrets.current = {"master": ("n" * 64, "m" * 64)}
    desk.clock.advance(301)
    told = desk.keys(first.endpoint.id).secret
    assert told != first.secret
    desk.secrets.current = {"master": ("n" * 64,)}
    desk.clock.advance(301)
    assert desk.keys(first.endpoint.id).secret == told


# --- switching and removing -----------------------------------------------------------------------------
def test_an_endpoint_is_switched_off_and_on_and_once_more_is_the_same() -> None:
    desk = Desk()
    name = desk.registered().endpoint.id
    for _ in range(2):
        off = switch(TENANT, name, desk.registry, on=False)
        assert isinstance(off, Endpoint)
        assert (off.enabled, off.disabled_reason, off.wants("job.failed")) == (False, BY_THE_TENANT, False)
    for _ in range(2):
        on = switch(TENANT, name, desk.registry, on=True)
        assert isinstance(on, Endpoint)
        assert (on.enabled, on.disabled_reason, on.wants("job.failed")) == (True, "", True)
    assert find(TENANT, name, desk.registry) == on


def test_what_is_removed_is_gone_and_cannot_be_switched_in_a_race() -> None:
    desk = Desk()
    name = desk.registered().endpoint.id
    desk.meanwhile["save"] = desk.store.records.clear
    assert refused(switch(TENANT, name, desk.registry, on=False)) == (404, "no-such-webhook")
    desk.registered()
    assert remove(TENANT, name, desk.registry) is None
    assert refused(remove(TENANT, name, desk.registry)) == (404, "no-such-webhook")
    assert listed(TENANT, desk.registry) == []


ACTS: dict[str, Callable[[str, str, Registry], Any]] = {
    "find": find,
    "keys": keys,
    "remove": remove,
    "rotate": lambda tenant, name, registry: rotate(tenant, name, b"", registry),
    "disable": lambda tenant, name, registry: switch(tenant, name, registry, on=False),
    "enable": lambda tenant, name, registry: switch(tenant, name, registry, on=True),
}


@pytest.mark.parametrize("act", ACTS)
def test_another_tenants_endpoint_is_not_there_at_all(act: str) -> None:
    desk = Desk()
    mine = desk.registered()
    before = json.dumps(desk.store.records[TENANT, mine.endpoint.id])
    for tenant, name in ((OTHER, mine.endpoint.id), (TENANT, "f" * 16), (TENANT, ""), (TENANT, "x" * 129)):
        assert refused(ACTS[act](tenant, name, desk.registry)) == (404, "no-such-webhook")
    assert json.dumps(desk.store.records[TENANT, mine.endpoint.id]) == before
    assert listed(OTHER, desk.registry) == []


@pytest.mark.parametrize("act", ["find", "remove", "disable", "enable"])
def test_what_stands_for_callbacks_has_a_secret_and_nothing_else(act: str) -> None:
    desk = Desk()
    desk.rotate(CALLBACK)
    assert refused(ACTS[act](TENANT, CALLBACK, desk.registry)) == (404, "no-such-webhook")
    assert listed(TENANT, desk.registry) == []
    assert not endpoints.callback(TENANT).wants("job.failed")


def test_each_tenant_has_a_secret_of_its_own_for_callbacks() -> None:
    desk = Desk()
    assert desk.keys(CALLBACK).secret != desk.keys(CALLBACK, OTHER).secret
    before = desk.keys(CALLBACK, OTHER)
    desk.rotate(CALLBACK)
    assert desk.keys(CALLBACK, OTHER) == before


# --- what its owner sees ---------------------------------------------------------------------------------
def test_an_endpoint_that_was_never_called_is_healthy() -> None:
    shown = endpoint_views.shown(Desk().registered().endpoint, NOW, {})
    assert shown["health"] == {"state": "closed", "failures": 0}
    assert shown["links"].keys() == {"self", "secret", "rotate", "ping", "disable"}
    assert "disabled_reason" not in shown


def test_an_endpoint_that_fails_shows_what_its_last_attempt_came_to_and_when_it_is_called_again() -> None:
    row: dict[str, Any] = {}
    for number in range(circuits.FAILURES_MAX):
        row = circuits.enter(0, holder="h", now=NOW, until=later(60)).applied_to(row)
        row = circuits.leave_failed(0, holder="h", note=f"HTTP_50{number}", now=NOW).applied_to(row)
    row = circuits.open_again(row["failures"], now=NOW).applied_to(row)
    found = Desk().registered().endpoint
    assert endpoint_views.shown(found, NOW, row)["health"] == {
        "state": "open",
        "failures": 5,
        "until": times.text(later(60)),
        "last": "HTTP_504",
        "last_at": times.text(NOW),
    }
    health = endpoint_views.shown(found, later(60), row)["health"]
    assert (health["state"], "until" in health) == ("half_open", False)


def test_one_that_is_disabled_says_why_and_how_it_is_enabled() -> None:
    desk = Desk()
    name = desk.registered().endpoint.id
    desk.store.save(TENANT, name, endpoints.disabled("it answered 410"), {"id": name})
    found = find(TENANT, name, desk.registry)
    assert isinstance(found, Endpoint)
    shown = endpoint_views.shown(found, NOW)
    assert (shown["enabled"], shown["disabled_reason"]) == (False, "it answered 410")
    assert shown["links"].keys() == {"self", "secret", "rotate", "enable"}


def test_no_view_but_those_of_secrets_tells_one() -> None:
    desk = Desk()
    found = desk.registered()
    assert "whsec_" not in json.dumps(endpoint_views.shown(found.endpoint, NOW, {}))
    assert endpoint_views.registered(found, NOW)["secret"] == found.secret
    assert rotation.told(desk.rotate(found.endpoint.id)).keys() == {"id", "secret", "previous", "previous_until"}
