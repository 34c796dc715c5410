"""Safety lines of whom a delivery may reach: nothing but the public internet, in its time, and its own tenant's."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

ADDRESSES = "core/webhooks/addresses.py"
URLS = "core/webhooks/urls.py"
CIRCUITS = "core/webhooks/circuits.py"
SCHEDULE = "core/webhooks/schedule.py"
CALLING = "core/webhooks/calling.py"
OUTBOUND = "adapters/outbound.py"
ANSWERED = "adapters/answered.py"
SIGNATURES = "adapters/signatures.py"
DELIVERIES = "adapters/deliveries.py"
PINGS = "core/webhooks/pings.py"
PLACES = "core/webhooks/places.py"
PLANNING = "core/webhooks/planning.py"
REDELIVERY = "core/webhooks/redelivery.py"
REGISTRY = "core/webhooks/registry.py"
ENDPOINT = "adapters/endpoints.py"
U_ADDRESSES = "tests/unit/test_webhook_addresses.py"
U_ATTEMPTING = "tests/unit/test_webhook_attempting.py"
U_CIRCUITS = "tests/unit/test_webhook_circuits.py"
U_SCHEDULE = "tests/unit/test_webhook_schedule.py"
U_URLS = "tests/unit/test_webhook_urls.py"
I_DELIVERIES = "tests/integration/test_adapter_deliveries.py"
I_DELIVER = "tests/integration/test_handler_deliver.py"
U_REDELIVERY = "tests/unit/test_redelivery.py"
I_OUTBOUND = "tests/integration/test_adapter_outbound.py"
REFUSED = f"{U_URLS}::test_wh_01_everything_else_is_refused_with_a_reason"
INSIDE = f"{U_ADDRESSES}::test_wh_01_an_address_inside_another_is_looked_at"
NO_OTHER = f"{U_ADDRESSES}::test_wh_01_no_other_address_may"

LINES = (
    # --- addresses ---------------------------------------------------------------------------------
    SafetyLine(
        name="addresses: ISATAP is looked into",
        file=ADDRESSES,
        line="    if int(address) >> 32 & 0xFFFFFFFF in _ISATAP:\n",
        without="    if False:\n",
        guards="WH-01: an address inside another is what is connected to",
        tests=(INSIDE, NO_OTHER),
    ),
    SafetyLine(
        name="addresses: what an address carries must be public, too",
        file=ADDRESSES,
        line="    if inner:\n",
        without="    if False:\n",
        guards="WH-01: an address inside another is what is connected to",
        tests=(INSIDE,),
    ),
    SafetyLine(
        name="addresses: none of one network link",
        file=ADDRESSES,
        line="    if isinstance(address, IPv6Address) and address.scope_id is not None:\n",
        without="    if False:\n",
        guards="WH-01: an address with a scope means something on one machine",
        tests=(NO_OTHER, f"{U_ADDRESSES}::test_what_is_no_address_in_its_one_form_is_refused"),
    ),
    SafetyLine(
        name="addresses: loopback on a developer's machine alone",
        file=ADDRESSES,
        line="    if local and _is_loopback(address):\n",
        without="    if _is_loopback(address):\n",
        guards="WH-01: nothing on the machine itself is called",
        tests=(NO_OTHER,),
    ),
    SafetyLine(
        name="addresses: a name without an address leads nowhere",
        file=ADDRESSES,
        line="    if not addresses:\n",
        without="    if False:\n",
        guards="WH-01: what was not looked at is not connected to",
        tests=(f"{U_ADDRESSES}::test_a_name_without_an_address_leads_nowhere",),
    ),
    SafetyLine(
        name="addresses: the metadata service is refused",
        file=ADDRESSES,
        line='        "169.254.0.0/16": "link-local, where metadata services are",\n',
        without="",
        guards="WH-01: a role's credentials are nobody's to read",
        tests=(NO_OTHER,),
    ),
    # --- URLs --------------------------------------------------------------------------------------
    SafetyLine(
        name="urls: https alone",
        file=URLS,
        line='(("https", "http") if local else ("https",))',
        without='("https", "http")',
        guards="WH-01: a delivery is told to whom it is meant for, and to nobody on the way",
        tests=(REFUSED,),
    ),
    SafetyLine(
        name="urls: two ports and no others",
        file=URLS,
        line="    if port not in PORTS:\n",
        without="    if not 0 < port < 65_536:\n",
        guards="WH-01: nobody looks for open ports with our hands",
        tests=(REFUSED,),
    ),
    SafetyLine(
        name="urls: no names of a machine or a private network",
        file=URLS,
        line="        _refuse_own_names(host, labels)\n",
        without="        pass\n",
        guards="WH-01: a name that means something inside only is not called",
        tests=(REFUSED,),
    ),
    SafetyLine(
        name="urls: an address that is written out is looked at",
        file=URLS,
        line="    reason = why_not([address], local=local)\n",
        without="    reason = None\n",
        guards="WH-01: what is not public is refused at the door already",
        tests=(REFUSED,),
    ),
    # --- the call ----------------------------------------------------------------------------------
    SafetyLine(
        name="outbound: a URL is judged at each attempt",
        file=OUTBOUND,
        line='            raise Undelivered("address", destination.reason)\n',
        without='            destination = urls.read(url.replace("http:", "https:").split("@")[-1], local=True)\n'
        "            assert isinstance(destination, urls.Destination), url\n",
        guards="WH-01: what somebody has written into a record by hand is not called",
        tests=(f"{I_OUTBOUND}::test_wh_01_a_url_that_may_not_be_called_is_not_even_looked_up",),
    ),
    SafetyLine(
        name="outbound: no domain of one's own network is searched",
        file=OUTBOUND,
        line='host if self._local else f"{host}."',
        without="host",
        guards="WH-01: a public name is not taken for one of the network around",
        tests=(f"{I_OUTBOUND}::test_wh_02_the_address_that_was_checked_is_the_one_connected_to",),
    ),
    SafetyLine(
        name="outbound: what a socket did not take is sent on",
        file=OUTBOUND,
        line="        rest = rest[connection.send(rest) :]\n",
        without="        connection.send(rest)\n        break\n",
        guards="the very bytes that were signed arrive, all of them",
        tests=(f"{I_OUTBOUND}::test_a_large_body_arrives_whole_though_its_receiver_is_slow",),
    ),
    SafetyLine(
        name="outbound: a lookup has its part of the deadline",
        file=OUTBOUND,
        line="    if asking.is_alive():\n",
        without="    asking.join(3)\n    if False:\n",
        guards="WH-11: one deadline for all of an attempt",
        tests=(f"{I_OUTBOUND}::test_a_lookup_that_hangs_does_not_outlast_the_deadline",),
    ),
    SafetyLine(
        name="outbound: nothing is begun when the time is over",
        file=OUTBOUND,
        line="    if left <= 0:\n",
        without="    if False:\n",
        guards="WH-11: one deadline for all of an attempt",
        tests=(f"{I_OUTBOUND}::test_the_deadline_is_over_before_anything_was_done",),
    ),
    SafetyLine(
        name="outbound: no header ends another",
        file=OUTBOUND,
        line="        if not _HEADER.fullmatch(value):\n",
        without="        if False:\n",
        guards="one request is one request",
        tests=(f"{I_OUTBOUND}::test_a_header_that_could_end_another_is_not_sent",),
    ),
    SafetyLine(
        name="outbound: an answer stands once its headers are whole",
        file=ANSWERED,
        line="    with suppress(Exception):\n        _read_body(",
        without="    if True:\n        _read_body(",
        guards="what was taken is not sent again because its answer's body was cut",
        tests=(f"{I_OUTBOUND}::test_an_answer_stands_though_its_body_is_cut_or_nonsense",),
    ),
    # --- places, probes, waits ---------------------------------------------------------------------
    SafetyLine(
        name="circuits: a place is a lease",
        file=CIRCUITS,
        line='Compare(_until(slot), "<", Param("now")), equal(',
        without="equal(",
        guards="no place is held for ever by who was killed with it",
        tests=(f"{U_CIRCUITS}::test_a_place_is_free_when_it_is_left_or_its_time_is_over_and_not_before",),
    ),
    SafetyLine(
        name="circuits: half open one probe is let in",
        file=CIRCUITS,
        line="    candidates = [PROBE] if until else list(range(places))\n",
        without="    candidates = list(range(places))\n",
        guards="WH-11: one call finds out whether it is well",
        tests=(f"{U_CIRCUITS}::test_half_open_one_probe_is_let_in_and_the_others_wait",),
    ),
    SafetyLine(
        name="circuits: it is not open for ever longer",
        file=CIRCUITS,
        line="period = min(OPEN_MAX_S, OPEN_FIRST_S * 2 **",
        without="period = min(10**9, OPEN_FIRST_S * 2 **",
        guards="an endpoint that is well again is called within an hour",
        tests=(f"{U_CIRCUITS}::test_each_probe_that_fails_doubles_the_time_up_to_an_hour",),
    ),
    SafetyLine(
        name="circuits: who is taken gives its place back",
        file=CIRCUITS,
        line='        removes=(_holder(slot), _until(slot), "open_until"),\n',
        without='        removes=("open_until",),\n',
        guards="a fast endpoint waits for no lease",
        tests=(f"{U_CIRCUITS}::test_a_place_is_free_when_it_is_left_or_its_time_is_over_and_not_before",),
    ),
    SafetyLine(
        name="circuits: a success closes only with one's own place",
        file=CIRCUITS,
        line='Rule("leave_well", "c2", (), None, _mine(slot))',
        without='Rule("leave_well", "c2", (), None, Compare("pk", "<>", "-"))',
        guards="who was too slow frees nobody else's place",
        tests=(f"{U_CIRCUITS}::test_who_was_too_slow_frees_nobody_elses_place",),
    ),
    SafetyLine(
        name="schedule: Retry-After in seconds is capped",
        file=SCHEDULE,
        line="        return float(min(int(digits), RETRY_AFTER_MAX_S) if len(digits) < 10 else RETRY_AFTER_MAX_S)\n",
        without="        return float(int(digits) if len(digits) < 10 else RETRY_AFTER_MAX_S)\n",
        guards="a receiver cannot put a delivery off for years",
        tests=(f"{U_SCHEDULE}::test_retry_after_in_seconds_is_honoured_and_capped_at_a_day",),
    ),
    SafetyLine(
        name="schedule: no try is after the deadline",
        file=SCHEDULE,
        line="    return at if at > now else None\n",
        without="    return at\n",
        guards="within 72 hours, or FAILED",
        tests=(f"{U_SCHEDULE}::test_there_is_a_last_try_before_the_deadline_and_none_after_it",),
    ),
    SafetyLine(
        name="attempting: the time for the write is kept free",
        file=CALLING,
        line=" - self.courier.limits.settle_s\n",
        without="\n",
        guards="an endpoint that takes all its time does not kill the invocation",
        tests=(f"{U_ATTEMPTING}::test_the_endpoint_gets_no_more_time_than_leaves_some_for_the_write",),
    ),
    SafetyLine(
        name="attempting: trouble of ours is no failure of the endpoint",
        file=CALLING,
        line='        own.notice("not_asked", **correlation(delivery), detail=str(trouble))\n',
        without="        raise trouble\n",
        guards="G13: what could not be asked costs the delivery nothing",
        tests=(f"{U_ATTEMPTING}::test_what_could_not_be_asked_is_no_failure_of_the_endpoint",),
    ),
    SafetyLine(
        name="attempting: the same id and the same bytes each time",
        file=CALLING,
        line='        "webhook-id": delivery.event_id,\n',
        without='        "webhook-id": f"{delivery.event_id}.{delivery.attempt}",\n',
        guards="WH-12: a receiver knows a second copy by its id",
        tests=(f"{U_ATTEMPTING}::test_wh_12_each_try_has_the_same_id_and_body_and_its_own_time",),
    ),
    SafetyLine(
        name="attempting: while two secrets count, both sign",
        file=SIGNATURES,
        line="for secret in secrets)",
        without="for secret in secrets[:1])",
        guards="a rotation interrupts no receiver",
        tests=("tests/integration/test_adapter_signatures.py::test_while_a_secret_is_rotated_both_verify",),
    ),
    SafetyLine(
        name="places: what was free a moment ago is asked for",
        file=PLACES,
        line="                    slot = found\n",
        without="                    return circuits.entered(found)\n",
        guards="no more attempts at once than an endpoint has places",
        tests=(f"{U_CIRCUITS}::test_a_place_that_somebody_else_took_meanwhile_is_not_taken_twice",),
    ),
    SafetyLine(
        name="places: who has tried nothing gives its place back",
        file="core/webhooks/places.py",
        line="        self._rows.apply(circuits.key(tenant, endpoint), circuits.leave_behind(slot, holder=holder))\n",
        without="        pass\n",
        guards="a place is not held for a lease by somebody who has no time to use it",
        tests=("tests/unit/test_webhook_attempting.py::test_when_the_stores_took_all_the_time_it_waits_and_keeps_its_try",),
    ),
    SafetyLine(
        name="places: a human closes the circuit",
        file=PLACES,
        line="        self._rows.apply(circuits.key(tenant, endpoint), circuits.close())\n",
        without="        pass\n",
        guards="a test that is taken lets the others go",
        tests=(f"{U_CIRCUITS}::test_a_human_may_close_it",),
    ),
    SafetyLine(
        name="planning: each that should hear has its record",
        file=PLANNING,
        line="    standing = planner.deliveries.create(record)\n",
        without="    standing = None\n",
        guards="an accepted event is delivered, or fails visibly",
        tests=("tests/unit/test_webhook_planning.py::test_an_event_becomes_a_delivery_for_each_endpoint",),
    ),
    SafetyLine(
        name="redelivery: of what was taken as well",
        file=REDELIVERY,
        line="    if found.is_final:\n        change = changes.reopen(",
        without='    if found.status == "FAILED":\n        change = changes.reopen(',
        guards="a receiver that has lost what it had gets it once more",
        tests=(f"{U_REDELIVERY}::test_what_was_delivered_or_given_up_is_opened_under_its_old_event_id_with_its_old_body",),
    ),
    SafetyLine(
        name="redelivery: what is under way is left alone",
        file=REDELIVERY,
        line="    elif found.status == PENDING and (found.not_before > now or found.registration != registration):\n",
        without="    elif found.not_before > now or found.status != PENDING:\n",
        guards="G6: nobody is replaced who may be calling the endpoint",
        tests=(f"{U_REDELIVERY}::test_what_waits_for_its_next_try_is_sent_at_once_and_what_is_under_way_is_left_alone",),
    ),
    SafetyLine(
        name="redelivery: what was for an endpoint that was removed is for the one registered anew",
        file=REDELIVERY,
        line="(found.not_before > now or found.registration != registration)",
        without="found.not_before > now",
        guards="what is asked for is sent, whatever it was for before",
        tests=(
            f"{U_REDELIVERY}::test_it_goes_to_an_endpoint_that_was_registered_anew_whatever_had_become_of_it",
        ),
    ),
    SafetyLine(
        name="redelivery: nothing is opened while an attempt for an endpoint that was removed is under way",
        file=REDELIVERY,
        line="    if any(_is_under_way_for_another(seen[key], one) for key, one in wanted):\n",
        without="    if False:\n",
        guards="nobody is sent anything twice because another one cannot be sent to yet",
        tests=(
            f"{U_REDELIVERY}::test_nothing_is_promised_while_an_attempt_for_an_endpoint_that_was_registered_before_is_under_way",
        ),
    ),
    SafetyLine(
        name="redelivery: what was claimed meanwhile for an endpoint that was removed is not promised",
        file=REDELIVERY,
        line="    if any(_is_for_another(delivery, one) for delivery, one in sent):\n",
        without="    if False:\n",
        guards="what is answered as on its way is sent",
        tests=(
            f"{U_REDELIVERY}::test_nothing_is_promised_of_what_was_claimed_at_that_moment_for_an_endpoint_that_was_registered_before",
        ),
    ),
    SafetyLine(
        name="endpoints: what was removed is not switched",
        file=REGISTRY,
        line='    if not registry.store.save(tenant, endpoint_id, fields, {"id": endpoint_id}):\n',
        without='    if registry.store.save(tenant, endpoint_id, fields, {"id": endpoint_id}) is None:\n',
        guards="nobody is told that something was switched that is not there",
        tests=("tests/unit/test_webhook_registry.py::test_what_is_removed_is_gone_and_cannot_be_switched_in_a_race",),
    ),
    # --- whose it is -------------------------------------------------------------------------------
    SafetyLine(
        name="ping: what became of it is told its own tenant",
        file=PINGS,
        line='    if record is None or record.get("tenant") != found.tenant:\n',
        without="    if record is None:\n",
        guards="G5: tenants are apart",
        tests=("tests/unit/test_redelivery.py::test_a_ping_of_another_tenant_is_not_told",),
    ),
    SafetyLine(
        name="redelivery: of one's own job alone",
        file=REDELIVERY,
        line="    job = job_of(tenant, job_id, post.jobs)\n",
        without='    job = job_of(str((post.jobs.read(job_id) or {}).get("tenant", tenant)), job_id, post.jobs)\n',
        guards="G5: tenants are apart",
        tests=("tests/unit/test_redelivery.py::test_another_tenants_job_or_endpoint_is_404",),
    ),
    SafetyLine(
        name="endpoints: each tenant finds its own",
        file=ENDPOINT,
        line='                        ":pk": to_attribute(TENANT_PK + tenant),\n',
        without='                        ":pk": to_attribute(TENANT_PK + tenant[:1]),\n',
        guards="G5: nothing of a tenant is told to another's endpoint",
        tests=("tests/integration/test_adapter_endpoints.py",),
    ),
    SafetyLine(
        name="deliveries: who decides reads what was written",
        file=DELIVERIES,
        line="            ConsistentRead=True,\n",
        without="",
        guards="the timeline tells what has happened",
        tests=(f"{I_DELIVERIES}::test_who_decides_reads_consistently_and_a_store_that_is_away_says_so",),
    ),
)  # fmt: skip
