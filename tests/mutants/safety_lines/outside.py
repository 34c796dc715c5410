"""Safety lines between us and a stranger's server: where a delivery may go, how long it takes, how many go at once."""

from __future__ import annotations

from tests.mutants.safety_line import SafetyLine

CIRCUITS = "core/webhooks/circuits.py"
PLACES = "core/webhooks/places.py"
ADDRESSES = "core/webhooks/addresses.py"
URLS = "core/webhooks/urls.py"
SECRETS = "core/webhooks/secrets.py"
OUTBOUND = "adapters/outbound.py"
ANSWERED = "adapters/answered.py"
U_CIRCUITS = "tests/unit/test_webhook_circuits.py"
U_ADDRESSES = "tests/unit/test_webhook_addresses.py"
U_URLS = "tests/unit/test_webhook_urls.py"
I_OUTBOUND = "tests/integration/test_adapter_outbound.py"
INSIDE = f"{U_ADDRESSES}::test_wh_01_an_address_inside_another_is_looked_at"

LINES = (
    # --- circuits ----------------------------------------------------------------------------------
    SafetyLine(
        name="circuits: a place that is taken is not given away",
        file=CIRCUITS,
        line="both(half_open if slot == PROBE else CLOSED, _free(slot))",
        without="both(half_open if slot == PROBE else CLOSED)",
        guards="no more attempts at once than an endpoint has places",
        tests=(f"{U_CIRCUITS}::test_there_are_so_many_places_and_no_more",),
    ),
    SafetyLine(
        name="circuits: an open one lets nobody in",
        file=CIRCUITS,
        line="both(half_open if slot == PROBE else CLOSED, _free(slot))",
        without="both(_free(slot))",
        guards="WH-11: who has failed so often is left alone",
        tests=(f"{U_CIRCUITS}::test_it_opens_after_five_failures_in_a_row",),
    ),
    SafetyLine(
        name="circuits: a success forgets the failures",
        file=CIRCUITS,
        line='sets={"failures": 0, **_noted(note, now)},',
        without="sets=_noted(note, now),",
        guards="only failures in a row open it",
        tests=(f"{U_CIRCUITS}::test_one_success_in_between_begins_anew",),
    ),
    SafetyLine(
        name="circuits: a failure counts",
        file=CIRCUITS,
        line='adds={"failures": 1},',
        without="adds={},",
        guards="failures in a row open it",
        tests=(f"{U_CIRCUITS}::test_it_opens_after_five_failures_in_a_row",),
    ),
    SafetyLine(
        name="circuits: who was in when it opened makes it no worse",
        file=CIRCUITS,
        line="condition = _mine(slot) if slot == PROBE else both(_mine(slot), CLOSED)",
        without="condition = _mine(slot)",
        guards="the time for which it is open doubles with each probe, and with nothing else",
        tests=(f"{U_CIRCUITS}::test_who_was_in_when_it_opened_makes_it_no_worse_and_frees_its_place",),
    ),
    SafetyLine(
        name="circuits: who was too slow frees nobody else's place",
        file=CIRCUITS,
        line='Rule("leave_behind", "c4", (), None, _mine(slot))',
        without='Rule("leave_behind", "c4", (), None, Compare("pk", "<>", "-"))',
        guards="no more attempts at once than an endpoint has places",
        tests=(f"{U_CIRCUITS}::test_who_was_too_slow_frees_nobody_elses_place",),
    ),
    SafetyLine(
        name="circuits: a success in the last moment keeps it closed",
        file=CIRCUITS,
        line='both(equal("failures", Param("failures")), either(',
        without="both(either(",
        guards="it is opened by failures in a row alone",
        tests=(f"{U_CIRCUITS}::test_it_is_not_opened_when_somebody_was_taken_meanwhile",),
    ),
    SafetyLine(
        name="circuits: a human closes it",
        file=CIRCUITS,
        line='        removes=("open_until",),\n',
        without="",
        guards="a test that is taken lets the others go",
        tests=(f"{U_CIRCUITS}::test_a_human_may_close_it",),
    ),
    SafetyLine(
        name="circuits: the last failure opens it though its reply was lost",
        file=PLACES,
        line="        if circuits.must_open(left.record):\n",
        without="        if isinstance(left, Applied) and circuits.must_open(left.record) and False:\n",
        guards="WH-11: failures in a row open it",
        tests=(f"{U_CIRCUITS}::test_the_fifth_failure_opens_it_even_if_its_reply_was_lost",),
    ),
    # --- where it may go ---------------------------------------------------------------------------
    SafetyLine(
        name="addresses: one bad address spoils them all",
        file=ADDRESSES,
        line="for address in addresses if (why :=",
        without="for address in addresses[:1] if (why :=",
        guards="WH-01: every address of a name is public",
        tests=(f"{U_ADDRESSES}::test_one_bad_address_spoils_them_all",),
    ),
    SafetyLine(
        name="addresses: only global unicast",
        file=ADDRESSES,
        line="    if address not in _GLOBAL_6:\n",
        without="    if False:\n",
        guards="WH-01: what is not given out as public is refused",
        tests=(f"{U_ADDRESSES}::test_wh_01_no_other_address_may",),
    ),
    SafetyLine(
        name="addresses: mapped and NAT64 forms are looked into",
        file=ADDRESSES,
        line="for network in (_MAPPED, _COMPATIBLE, _NAT64, _NAT64_OWN)):",
        without="for network in (_COMPATIBLE, _NAT64_OWN)):",
        guards="WH-01: an address inside another is what is connected to",
        tests=(INSIDE,),
    ),
    SafetyLine(
        name="addresses: 6to4 is looked into",
        file=ADDRESSES,
        line="    elif address in _SIX_TO_FOUR:\n",
        without="    elif False:\n",
        guards="WH-01: an address inside another is what is connected to",
        tests=(INSIDE,),
    ),
    SafetyLine(
        name="urls: an address in an odd notation is no host",
        file=URLS,
        line="    if _NUMBER.fullmatch(labels[-1]):\n",
        without="    if False:\n",
        guards="WH-01: no form that the resolver takes for another address than a reader does",
        tests=(f"{U_URLS}::test_wh_01_everything_else_is_refused_with_a_reason",),
    ),
    SafetyLine(
        name="urls: a host is letters, digits and hyphens",
        file=URLS,
        line="or not all(_LABEL.fullmatch(label) for label in labels)",
        without="",
        guards="WH-01: the host is what a reader takes for it",
        tests=(f"{U_URLS}::test_wh_01_everything_else_is_refused_with_a_reason",),
    ),
    SafetyLine(
        name="secrets: the tenant is part of a secret",
        file=SECRETS,
        line='canonical(["webhook", tenant, endpoint, version])',
        without='canonical(["webhook", endpoint, version])',
        guards="G26: no tenant can sign as another's endpoint is signed for",
        tests=("tests/unit/test_webhook_secrets.py",),
    ),
    # --- the call ----------------------------------------------------------------------------------
    SafetyLine(
        name="outbound: where a name leads is checked before anything is connected to",
        file=OUTBOUND,
        line='        if reason:\n            raise Undelivered("address", reason)\n        return found',
        without="        return found",
        guards="WH-01, WH-02: nothing inside is connected to",
        tests=(f"{I_OUTBOUND}::test_wh_01_where_a_name_leads_inside_nothing_is_connected_to",),
    ),
    SafetyLine(
        name="outbound: the address that was checked is connected to",
        file=OUTBOUND,
        line="plain = self._connect(address, destination.port, share)",
        without="plain = self._connect(self._addresses(destination, ends)[0], destination.port, share)",
        guards="WH-02: nothing is looked up twice",
        tests=(f"{I_OUTBOUND}::test_wh_02_the_address_that_was_checked_is_the_one_connected_to",),
    ),
    SafetyLine(
        name="outbound: the certificate is that of the name",
        file=OUTBOUND,
        line="wrap_socket(plain, server_hostname=host)",
        without='wrap_socket(plain, server_hostname="other.example.com")',
        guards="a delivery is told to whom it is meant for",
        tests=(f"{I_OUTBOUND}::test_a_certificate_of_another_name_does_not_hold",),
    ),
    SafetyLine(
        name="outbound: what one call did not send is sent by the next",
        file=OUTBOUND,
        line="rest = rest[connection.send(rest) :]",
        without="rest = rest[:0] if connection.send(rest) else rest",
        guards="WH-06: the bytes that were signed are the bytes that come",
        tests=(f"{I_OUTBOUND}::test_a_body_that_no_buffer_holds_is_sent_whole",),
    ),
    SafetyLine(
        name="outbound: one deadline for all of the answer",
        file=ANSWERED,
        line="        self._connection.settimeout(self._left())\n",
        without="        self._connection.settimeout(0.3)\n",
        guards="WH-11: a byte at a time does not outlast the deadline",
        tests=(f"{I_OUTBOUND}::test_wh_11_a_byte_at_a_time_does_not_outlast_the_deadline",),
    ),
    SafetyLine(
        name="outbound: of a body a little is read",
        file=ANSWERED,
        line="_fill(source, body, min(whole, BODY_MAX))",
        without="_fill(source, body, 2**26)",
        guards="a gigabyte costs no memory",
        tests=(f"{I_OUTBOUND}::test_of_a_gigabyte_a_little_is_read_and_the_rest_is_not_waited_for",),
    ),
    SafetyLine(
        name="outbound: of headers a little is read",
        file=ANSWERED,
        line="        room -= len(line) + 2\n",
        without="",
        guards="headers without an end cost no memory",
        tests=(f"{I_OUTBOUND}::test_headers_without_an_end_are_no_answer",),
    ),
)  # fmt: skip
