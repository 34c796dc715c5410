"""Which addresses a delivery may be sent to: WH-01, and every other form that leads inside."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.webhooks.addresses import why_not

PUBLIC = (
    "93.184.216.34", "8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "126.255.255.255", "128.0.0.1",
    "169.253.255.255", "169.255.0.1", "172.15.255.255", "172.32.0.1", "192.0.1.1", "192.167.255.255", "192.169.0.1",
    "198.17.255.255", "198.20.0.1", "223.255.255.255", "11.0.0.1", "9.255.255.255",
    "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450:4001:81b::200e", "2001:4860:4860::8888", "2001:200::1",
    "::ffff:93.184.216.34", "64:ff9b::5db8:d822", "2002:5db8:d822::1",
)  # fmt: skip
INSIDE_4 = (
    "0.0.0.0", "0.0.0.1", "0.255.255.255", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
    "100.100.100.200", "127.0.0.1", "127.1.2.3", "127.255.255.255", "169.254.0.1", "169.254.169.254", "169.254.170.2",
    "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1",
    "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "168.63.129.16", "224.0.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.254", "255.255.255.255",
)  # fmt: skip
INSIDE_6 = (
    "::", "::1", "fe80::1", "febf::1", "fec0::1", "feff::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fdff::1",
    "ff02::1", "ff0e::1", "100::1", "100:0:0:1::1", "2001:db8::1", "3fff::1", "5f00::1", "4000::1", "8000::1",
    "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1::1", "3ffe::1", "::2", "1::1", "e000::1",
    "::8.8.8.8", "64:ff9b:1::8.8.8.8", "64:ff9b:1:ffff::7f00:1", "64:ff9c::1", "::ffff:0:8.8.8.8",
)  # fmt: skip


def carrying(inner: str) -> dict[str, str]:
    """The forms in which an IPv6 address stands for this one."""
    number = int(IPv4Address(inner))
    forms = {
        "mapped": 0xFFFF << 32 | number,
        "compatible": number,
        "NAT64": 0x64_FF9B << 96 | number,
        "own NAT64": 0x64_FF9B_0001 << 80 | number,
        "6to4": 0x2002 << 112 | number << 80 | 1,
        "Teredo client": 0x2001_0000 << 96 | int(IPv4Address("8.8.8.8")) << 64 | (~number & 0xFFFFFFFF),
        "Teredo server": 0x2001_0000 << 96 | number << 64 | (~int(IPv4Address("8.8.8.8")) & 0xFFFFFFFF),
        "ISATAP": 0x2606_2800 << 96 | 0x0000_5EFE << 32 | number,
        "global ISATAP": 0x2606_2800 << 96 | 0x0200_5EFE << 32 | number,
    }
    return {name: str(IPv6Address(form)) for name, form in forms.items()}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_connected_to(address: str) -> None:
    assert why_not([address], local=False) is None


@pytest.mark.parametrize("address", [*INSIDE_4, *INSIDE_6])
def test_wh_01_no_other_address_may(address: str) -> None:
    assert why_not([address], local=False)


@pytest.mark.parametrize("inner", INSIDE_4)
def test_wh_01_an_address_inside_another_is_looked_at(inner: str) -> None:
    assert {name for name, address in carrying(inner).items() if why_not([address], local=False) is None} == set()


@pytest.mark.parametrize("written", [
    "", "localhost", "127.1", "0", "2130706433", "0x7f000001", "017700000001", "0177.0.0.1", "1.2.3", "1.2.3.4.5",
    "256.1.1.1", "8.8.8.8 ", "8.8.8.08", "[::1]", "fe80::1%eth0", "2606:2800::1%1",
    "\uff12\uff11\uff13.1.1.1", "8.8.8.8\x00",
])  # fmt: skip
def test_what_is_no_address_in_its_one_form_is_refused(written: str) -> None:
    assert why_not([written], local=False)


def test_one_bad_address_spoils_them_all() -> None:
    for addresses in (["8.8.8.8", "169.254.169.254"], ["169.254.169.254", "8.8.8.8"], ["8.8.8.8", "::1", "1.1.1.1"]):
        assert why_not(addresses, local=False)


def test_a_name_without_an_address_leads_nowhere() -> None:
    assert why_not([], local=False) == "it leads to no address"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "8.8.8.8"])
def test_on_a_developers_machine_loopback_may_be_connected_to(address: str) -> None:
    assert why_not([address], local=True) is None


@pytest.mark.parametrize(
    "address", [one for one in (*INSIDE_4, *INSIDE_6) if not one.startswith("127.") and one != "::1"]
)
def test_but_nothing_else_inside_may_even_there(address: str) -> None:
    assert why_not([address], local=True)


def test_the_reason_names_no_address() -> None:
    """A tenant must not learn what a name means in a private network."""
    for address in (*INSIDE_4, *carrying("10.1.2.3").values(), "fd00:ec2::254"):
        assert address not in str(why_not([address], local=False))
    assert "10.1.2.3" not in str(why_not(["::ffff:10.1.2.3"], local=False))


@given(st.integers(min_value=0, max_value=2**32 - 1))
def test_a_mapped_address_is_what_it_stands_for(number: int) -> None:
    plain, mapped = str(IPv4Address(number)), str(IPv6Address(0xFFFF << 32 | number))
    assert (why_not([plain], local=False) is None) == (why_not([mapped], local=False) is None)


@given(st.integers(min_value=0, max_value=2**128 - 1))
def test_outside_of_global_unicast_only_forms_that_carry_a_public_address_pass(number: int) -> None:
    address = IPv6Address(number)
    carries = number >> 32 in (0xFFFF, 0x64_FF9B << 64)
    if why_not([str(address)], local=False) is None:
        assert number >> 125 == 1 or carries
