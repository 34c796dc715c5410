"""Which address a delivery may be sent to: global unicast, whatever form it hides in.

The table is held here: what `ipaddress` calls global differs between versions of Python, and takes multicast and the
forms that carry an IPv4 address inside for global."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_REFUSED_4 = {
    IPv4Network(network): what
    for network, what in {
        "0.0.0.0/8": "this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "a carrier's own",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local, where metadata services are",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved for protocols",
        "192.0.2.0/24": "documentation",
        "192.31.196.0/24": "reserved for AS112",
        "192.52.193.0/24": "reserved for AMT",
        "192.88.99.0/24": "a former 6to4 relay",
        "192.168.0.0/16": "private",
        "192.175.48.0/24": "reserved for AS112",
        "198.18.0.0/15": "benchmarking",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "168.63.129.16/32": "a metadata service",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
    }.items()
}
_GLOBAL_6 = IPv6Network("2000::/3")  # what IANA gives out as global unicast; all else is refused
_REFUSED_6 = {
    IPv6Network(network): what
    for network, what in {
        "2001::/23": "reserved for protocols",
        "2001:db8::/32": "documentation",
        "2620:4f:8000::/48": "reserved for AS112",
        "3ffe::/16": "a former test network",
        "3fff::/20": "documentation",
    }.items()
}
_MAPPED, _COMPATIBLE = IPv6Network("::ffff:0:0/96"), IPv6Network("::/96")
_NAT64, _NAT64_OWN = IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48")
_SIX_TO_FOUR, _TEREDO = IPv6Network("2002::/16"), IPv6Network("2001::/32")
_ISATAP = (0x00005EFE, 0x02005EFE)  # the first half of such an interface's identifier
_LOOPBACK_4, _LOOPBACK_6 = IPv4Network("127.0.0.0/8"), IPv6Address("::1")


def why_not(addresses: Sequence[str], *, local: bool) -> str | None:
    """Why nobody may connect to a name that leads to these addresses, as a reason for a human: one bad address spoils
    them all, for whoever answers with it has no good reason to. None when each of them may be connected to. The reason
    names no address: a tenant must not learn what names mean inside a private network.

    `local`: on a developer's machine loopback is allowed, too."""
    if not addresses:
        return "it leads to no address"
    return next((why for address in addresses if (why := _why_not(address, local=local))), None)


def _why_not(written: str, *, local: bool) -> str | None:
    try:
        address = ip_address(written)
    except ValueError:
        return "it is no address"
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "not a public address: of one network link"
    if local and _is_loopback(address):
        return None
    what = _fault(address)
    return f"not a public address: {what}" if what else None


def _is_loopback(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address in _MAPPED:
        address = _last_32_bits(address)
    return address in _LOOPBACK_4 if isinstance(address, IPv4Address) else address == _LOOPBACK_6


def _fault(address: Address) -> str | None:
    if isinstance(address, IPv4Address):
        return next((what for network, what in _REFUSED_4.items() if address in network), None)
    carried = list(_carried(address))
    inner = next((what for one in carried if (what := _fault(one))), None)
    if inner:
        return f"it stands for another one, {inner}"
    if _carries_the_rest_of_the_way(address):
        return None
    if address not in _GLOBAL_6:
        return "not global unicast"
    return next((what for network, what in _REFUSED_6.items() if address in network), None)


def _carries_the_rest_of_the_way(address: IPv6Address) -> bool:
    """Whether the address inside, which has been looked at, is what is connected to."""
    return address in _MAPPED or address in _NAT64


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses inside. Where a network's own NAT64 (RFC 8215) puts them nobody can know: not in `_GLOBAL_6`,
    it is refused as a whole, as those compatible with IPv4 are."""
    if any(address in network for network in (_MAPPED, _COMPATIBLE, _NAT64, _NAT64_OWN)):
        yield _last_32_bits(address)
    elif address in _SIX_TO_FOUR:
        yield IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    elif address in _TEREDO:
        yield IPv4Address(~int(address) & 0xFFFFFFFF)  # the client, inverted
        yield IPv4Address(int(address) >> 64 & 0xFFFFFFFF)  # its server
    if int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
        yield _last_32_bits(address)


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFFFFFF)
