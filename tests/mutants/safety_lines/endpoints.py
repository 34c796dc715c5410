"""Safety lines of tenants' endpoints: registered once, apart from each other, their secrets, and what is sent again."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

U_REGISTRY = "tests/unit/test_webhook_registry.py"
U_REDELIVERY = "tests/unit/test_redelivery.py"
U_INTAKE = "tests/unit/test_intake.py"
I_WEBHOOKS = "tests/integration/test_handler_webhooks.py"
ENDPOINT = "core/webhooks/endpoint.py"
REGISTRY = "core/webhooks/registry.py"
ROTATION = "core/webhooks/rotation.py"
REDELIVERY = "core/webhooks/redelivery.py"
HANDLER = "handlers/webhooks.py"

LINES = (
    SafetyLine(
        name="endpoints: a tenant is part of an endpoint's id",
        file=ENDPOINT,
        line='sha256_of(["endpoint", tenant, url])',
        without='sha256_of(["endpoint", url])',
        guards="tenants apart: one tenant's id says nothing of another's endpoint",
        tests=(f"{U_REGISTRY}::test_two_tenants_with_one_url_have_two_endpoints_and_two_secrets",),
    ),
    SafetyLine(
        name="endpoints: one that comes back has another secret",
        file=ENDPOINT,
        line="secret_version=times.milliseconds(now),",
        without="secret_version=1,",
        guards="a secret that became known is of no use after its endpoint was removed",
        tests=(f"{U_REGISTRY}::test_an_endpoint_that_comes_back_has_another_secret",),
    ),
    SafetyLine(
        name="endpoints: the old secret signs along for its time and no longer",
        file=ENDPOINT,
        line="both = self.previous_until is not None and now < self.previous_until",
        without="both = self.previous_until is not None",
        guards="a rotation ends",
        tests=(f"{U_REGISTRY}::test_a_rotation_gives_a_new_secret_and_lets_the_old_one_sign_for_a_day",),
    ),
    SafetyLine(
        name="endpoints: who loses a race finds what stands",
        file=REGISTRY,
        line="if registry.store.create(endpoints.record_of(wanted)):",
        without="if registry.store.create(endpoints.record_of(wanted)) or True:",
        guards="nobody is told a secret that signs nothing",
        tests=(f"{U_REGISTRY}::test_a_lost_reply_and_a_lost_race_end_with_one_endpoint",),
    ),
    SafetyLine(
        name="endpoints: who finds too many takes its own back",
        file=REGISTRY,
        line="if len(listed(created.tenant, registry)) > ENDPOINTS_MAX:",
        without="if False:",
        guards="a tenant's events have a bounded number of deliveries",
        tests=(f"{U_REGISTRY}::test_who_finds_too_many_behind_its_own_takes_it_back",),
    ),
    SafetyLine(
        name="endpoints: what stands for callbacks is no endpoint",
        file=REGISTRY,
        line="if not 0 < len(endpoint_id) <= 128 or endpoint_id == CALLBACK:",
        without="if not 0 < len(endpoint_id) <= 128:",
        guards="the secret of all callbacks of a tenant cannot be removed or switched off",
        tests=(f"{U_REGISTRY}::test_what_stands_for_callbacks_has_a_secret_and_nothing_else",),
    ),
    SafetyLine(
        name="rotation: a repeat ends no secret",
        file=ROTATION,
        line="if not at_once and len(standing.versions(registry.now())) > 1:",
        without="if False:",
        guards="hole 2: a lost reply does not end the only secret that a receiver knows",
        tests=(f"{U_REGISTRY}::test_a_repeated_rotation_changes_nothing_until_the_old_secret_signs_no_more",),
    ),
    SafetyLine(
        name="rotation: only over the version that was seen",
        file=ROTATION,
        line='{"secret_version": seen.secret_version})',
        without="{})",
        guards="of two rotations at once nobody is told a secret that signs nothing",
        tests=(f"{U_REGISTRY}::test_of_two_rotations_at_once_one_counts_and_both_tell_it",),
    ),
    SafetyLine(
        name="rotation: of the first two for callbacks one counts",
        file=ROTATION,
        line="return registry.store.create(record)",
        without="return registry.store.create(record) or True",
        guards="of two rotations at once nobody is told a secret that signs nothing",
        tests=(f"{U_REGISTRY}::test_of_two_rotations_at_once_one_counts_and_both_tell_it",),
    ),
    SafetyLine(
        name="redelivery: only of an end that is handed over",
        file=REDELIVERY,
        line="if not job.is_handed_over:",
        without="if False:",
        guards="the first delivery of an end is made from its event, not beside it",
        tests=(f"{U_REDELIVERY}::test_an_end_that_is_not_handed_over_yet_is_delivered_then",),
    ),
    SafetyLine(
        name="redelivery: the one that is meant, and no other",
        file=HANDLER,
        line="found = redelivery.redeliver(tenant, job_id, raw, parts().post)",
        without='found = redelivery.redeliver(tenant, job_id, b"", parts().post)',
        guards="who asks for one endpoint sends nothing to the others",
        tests=(f"{I_WEBHOOKS}::test_what_was_given_up_is_opened_again_and_one_can_be_meant_alone",),
    ),
    SafetyLine(
        name="ping: acknowledged when its delivery is recorded",
        file=HANDLER,
        line="event_id = pings.ping(found, parts().post, _new_id)",
        without='event_id: str | Problem = f"ping.{_new_id()}"',
        guards="202 means that it is on record",
        tests=(f"{I_WEBHOOKS}::test_a_ping_is_a_delivery_and_the_endpoint_tells_what_became_of_it",),
    ),
    SafetyLine(
        name="ping: not of an endpoint that is disabled at that moment",
        file="core/webhooks/pings.py",
        line='{"ping": drawn}, {"enabled": True})',
        without='{"ping": drawn}, {})',
        guards="nothing is sent to where its tenant wants nothing",
        tests=(f"{U_REDELIVERY}::test_what_is_disabled_or_removed_is_not_pinged",),
    ),
    SafetyLine(
        name="accept: a callback URL is one that may be delivered to",
        file="core/intake.py",
        line="return _reachable(request, door) or _timely(request, door)",
        without="return _timely(request, door)",
        guards="SSRF: no URL gets in that is not public, https and on a usual port",
        tests=(f"{U_INTAKE}::test_a_callback_url_that_nothing_may_be_delivered_to_is_422_and_says_where",),
    ),
    SafetyLine(
        name="query: the timeline is the tenant's own",
        file="handlers/query.py",
        line=' and one.get("tenant") == tenant), None)',
        without="), None)",
        guards="tenants apart: another tenant's job is not there at all",
        tests=(f"{I_WEBHOOKS}::test_the_timeline_of_a_job_tells_of_its_deliveries_in_one_read",),
    ),
)
