"""Which URLs may be registered: no form that one reader takes for another place than the next."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas.core.webhooks import urls
from lambdas.core.webhooks.urls import Destination, UnusableUrl, callback_id, read

GOOD = {
    "https://hooks.example.com": Destination("https", "hooks.example.com", 443, "/"),
    "https://hooks.example.com/": Destination("https", "hooks.example.com", 443, "/"),
    "HTTPS://Hooks.Example.COM/Jobs": Destination("https", "hooks.example.com", 443, "/Jobs"),
    "https://hooks.example.com:443/j?a=1&b=%20": Destination("https", "hooks.example.com", 443, "/j?a=1&b=%20"),
    "https://hooks.example.com:8443/jobs": Destination("https", "hooks.example.com", 8443, "/jobs"),
    "https://hooks.example.com?key=x": Destination("https", "hooks.example.com", 443, "/?key=x"),
    "https://xn--bcher-kva.example/": Destination("https", "xn--bcher-kva.example", 443, "/"),
    "https://a-b.c1.example/x/../y;z=1/@me": Destination("https", "a-b.c1.example", 443, "/x/../y;z=1/@me"),
    "https://93.184.216.34/": Destination("https", "93.184.216.34", 443, "/"),
    "https://[2606:2800:220:1::1946]:8443/x": Destination("https", "2606:2800:220:1::1946", 8443, "/x"),
    "https://[2606:2800:220:1::1946]/": Destination("https", "2606:2800:220:1::1946", 443, "/"),
    "https://1.example.com/": Destination("https", "1.example.com", 443, "/"),
    "https://0x7f.example.com/": Destination("https", "0x7f.example.com", 443, "/"),
}  # fmt: skip

ODD_NOTATIONS = (
    "https://2130706433/", "https://0x7f000001/", "https://0X7F000001/", "https://017700000001/", "https://127.1/",
    "https://127.0.1/", "https://0/", "https://0x7f.1/", "https://0177.0.0.1/", "https://0x7f.0.0.1/",
    "https://127.0.0.01/", "https://00.0.0.0/", "https://1.2.3/", "https://1.2.3.4.5/", "https://256.256.256.256/",
    "https://93.184.216.0x22/", "https://0x5db8d822/", "https://1572395042/", "https://93.184.55330/",
    "https://127.0.0.1./", "https://example.com./", "https://example.com../", "https://.example.com/",
    "https://a..example.com/", "https://0x/", "https://example.0x1/", "https://example.1/",
    "https://%31%32%37.0.0.1/", "https://127.0.0.1%2f@example.com/", "https://example.com%00.evil.example/",
    "https://\uff11\uff12\uff17.0.0.1/", "https://①②⑦.0.0.1/", "https://127。0。0。1/", "https://ⓔxample.com/",
    "https://bücher.example/", "https://example.com\u200b/", "https://exa\u00admple.com/",
    "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::1]/", "https://[::]/", "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/", "https://[64:ff9b:1::7f00:1]/", "https://[2002:7f00:1::]/",
    "https://[2001:0:808:808::80ff:fffe]/", "https://[fd00:ec2::254]/", "https://[fe80::1]/", "https://[fec0::1]/",
    "https://[ff02::1]/", "https://[fe80::1%25eth0]/", "https://[2606:2800::1%25eth0]/", "https://[2606:2800::1%eth0]/",
    "https://[127.0.0.1]/", "https://[v1.fe]/", "https://[]/", "https://[::1/", "https://::1/", "https://2606:2800::1/",
    "https://[2606:2800::1]x/", "https://x[2606:2800::1]/", "https://[[2606:2800::1]]/", "https://[8.8.8.8]/",
)  # fmt: skip
INSIDE = (
    "https://127.0.0.1/", "https://10.0.0.1/", "https://169.254.169.254/latest/meta-data/", "https://100.64.0.1/",
    "https://192.168.1.1/", "https://172.16.0.1/", "https://0.0.0.0/", "https://224.0.0.1/", "https://255.255.255.255/",
    "https://localhost/", "https://LOCALHOST/", "https://api.localhost/", "https://printer.local/", "https://metadata/",
    "https://metadata.google.internal/", "https://ip-10-0-0-1.ec2.internal/", "https://router.home.arpa/",
)  # fmt: skip
NOT_SO = (
    "", "hooks.example.com", "//hooks.example.com/", "/jobs", "https:", "https:/", "https://", "https:///jobs",
    "https:hooks.example.com", "https:/hooks.example.com/", "http://hooks.example.com/", "HTTP://hooks.example.com/",
    "ftp://hooks.example.com/", "file:///etc/passwd", "gopher://hooks.example.com/", "javascript:alert(1)",
    "wss://hooks.example.com/", "https+unix://hooks.example.com/",
    "http://hooks.example.com:443/", "http://hooks.example.com:8443/",
    "https://user@hooks.example.com/", "https://user:secret@hooks.example.com/", "https://@hooks.example.com/",
    "https://hooks.example.com@127.0.0.1/", "https://127.0.0.1@hooks.example.com/", "https://a:b@c:d@hooks.example.com/",
    "https://hooks.example.com#@127.0.0.1/", "https://hooks.example.com/#", "https://hooks.example.com/#top",
    "https://hooks.example.com\\@127.0.0.1/", "https:\\\\hooks.example.com\\", "https://hooks.example.com/\\..",
    "https://hooks.example.com:80/", "https://hooks.example.com:22/", "https://hooks.example.com:0/",
    "https://hooks.example.com:/", "https://hooks.example.com:+443/", "https://hooks.example.com:0443/",
    "https://hooks.example.com:443:443/", "https://hooks.example.com:65979/", "https://hooks.example.com:-443/",
    "https://hooks.example.com:4 43/", "https://hooks.example.com:٤٤٣/", "https://hooks.example.com:443a/",
    " https://hooks.example.com/", "https://hooks.example.com/ ", "https://hooks.example.com/a b", "https:// /",
    "https://hooks.example.com/\r\nHost: x", "https://hooks.example.com/\nx", "https://hooks\t.example.com/",
    "ht\ntps://hooks.example.com/", "https://hooks.example.com/\x00", "https://hooks.example.com/\x7f",
    "https://hooks.example.com/é", "https://hooks.example.com/%", "https://hooks.example.com/%4", "https://hooks.example.com/%zz",
    "https://hooks.example.com/<x>", "https://hooks.example.com/{id}", 'https://hooks.example.com/"', "https://hooks.example.com/|",
    "https://hooks.example.com/^", "https://hooks.example.com/`", "https://hooks.example.com/?q=[1]",
    "https://-example.com/", "https://example-.com/", "https://ex_ample.com/", "https://exa!mple.com/", "https://*.example.com/",
    f"https://{'a' * 64}.example.com/", f"https://{'a.' * 127}example.com/", f"https://hooks.example.com/{'a' * 2_048}",
    "https://hooks.example.com,evil.example/", "https://hooks.example.com;evil.example/", "https://hooks.example.com|evil/",
)  # fmt: skip


@pytest.mark.parametrize("url", GOOD)
def test_a_url_of_the_public_internet_is_read(url: str) -> None:
    assert read(url) == GOOD[url]


@pytest.mark.parametrize("url", [*ODD_NOTATIONS, *INSIDE, *NOT_SO])
def test_wh_01_everything_else_is_refused_with_a_reason(url: str) -> None:
    found = read(url)
    assert isinstance(found, UnusableUrl)
    assert len(found.reason) > 8


def test_the_longest_url_that_is_taken() -> None:
    start = "https://hooks.example.com/"
    assert isinstance(read(start + "a" * (urls.URL_MAX - len(start))), Destination)
    assert isinstance(read(start + "a" * (urls.URL_MAX - len(start) + 1)), UnusableUrl)


@pytest.mark.parametrize(("url", "target"), [
    ("http://127.0.0.1:8123/x?y", "/x?y"), ("http://localhost:1/", "/"), ("https://localhost:65535", "/"),
    ("http://[::1]:8123/", "/"), ("http://receiver/", "/"), ("https://hooks.example.com/", "/"),
])  # fmt: skip
def test_on_a_developers_machine_receivers_may_be_local_and_without_tls(url: str, target: str) -> None:
    found = read(url, local=True)
    assert isinstance(found, Destination)
    assert found.target == target


@pytest.mark.parametrize("url", [
    "http://10.0.0.1/", "http://169.254.169.254/", "http://0.0.0.0:80/", "http://127.1:80/", "http://2130706433/",
    "http://user@127.0.0.1/", "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "ftp://127.0.0.1/", "http://127.0.0.1/#x",
    "http://[fe80::1%25lo]/", "http://192.168.0.1:8080/",
])  # fmt: skip
def test_but_not_anything_goes_there(url: str) -> None:
    assert isinstance(read(url, local=True), UnusableUrl)


@pytest.mark.parametrize(("url", "authority", "written"), [
    ("https://Hooks.example.com:443", "hooks.example.com", "https://hooks.example.com/"),
    ("https://hooks.example.com:8443/x", "hooks.example.com:8443", "https://hooks.example.com:8443/x"),
    ("https://[2606:2800:220:1::1946]:8443/", "[2606:2800:220:1::1946]:8443", "https://[2606:2800:220:1::1946]:8443/"),
])  # fmt: skip
def test_a_url_has_one_written_form(url: str, authority: str, written: str) -> None:
    found = read(url)
    assert isinstance(found, Destination)
    assert (found.authority, found.url) == (authority, written)
    assert read(found.url) == found


def test_callbacks_of_one_origin_share_an_endpoint_and_those_of_another_do_not() -> None:
    def of(url: str) -> str:
        found = read(url)
        assert isinstance(found, Destination)
        return callback_id(found)

    one = of("https://hooks.example.com/jobs/1?key=a")
    assert one == of("https://HOOKS.example.com:443/jobs/2")
    assert len(one) == len("callback-") + 16
    assert len({one, of("https://hooks.example.com:8443/"), of("https://other.example.com/")}) == 3


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF), max_size=60))
def test_whatever_is_typed_is_answered_and_never_crashes(text: str) -> None:
    for url in (
        text,
        f"https://{text}",
        f"https://{text}/",
        f"https://hooks.example.com/{text}",
        f"https://h.example:{text}",
    ):
        for local in (False, True):
            found = read(url, local=local)
            assert isinstance(found, Destination | UnusableUrl)


@given(st.text(alphabet="0123456789abcdefx.:[]@%\\/#?-", max_size=30))
def test_what_is_taken_means_the_same_to_other_readers_of_urls(text: str) -> None:
    found = read(f"https://{text}")
    if isinstance(found, Destination):
        other = urlsplit(f"https://{text}")
        assert (other.hostname, other.port or 443, other.username) == (found.host, found.port, None)


@given(st.text(alphabet="0123456789abcdefx.", min_size=1, max_size=20))
def test_what_the_resolver_takes_for_an_address_is_one_in_its_plain_form(host: str) -> None:
    """`getaddrinfo` takes 127.1, 0x7f000001 and their kind for addresses; here they are no host at all."""
    found = read(f"https://{host}/")
    if isinstance(found, Destination):
        try:
            packed = socket.inet_aton(found.host)
        except OSError:
            return
        assert str(ip_address(packed)) == found.host


def test_two_notations_of_one_ipv6_address_are_one_url():
    found = [
        read(f"https://[{host}]/a") for host in ("2606:4700:0000::1111", "2606:4700::1111", "2606:4700:0:0:0:0:0:1111")
    ]
    assert {one.url for one in found if isinstance(one, Destination)} == {"https://[2606:4700::1111]/a"}
