"""Which API is meant, and what lets a request in."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from urllib.parse import quote

import httpx
import pytest

from ops.access import Access, reach
from ops.api import Api
from ops.exits import Exit, Failure

DEPLOYED = "https://abc123.execute-api.eu-central-1.amazonaws.com"
SECRET = "wJalrXUtnFEMI"


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token")


class Recorder:
    """A transport that remembers what it was handed."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.transport = httpx.MockTransport(self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(200, json={"job_id": "j", "status": "PENDING", "groups": [], "jobs": []})


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def api(access: Access, recorder: Recorder) -> Iterator[Api]:
    made = Api(access, say=lambda _: None, transport=recorder.transport)
    yield made
    made.close()


def signature_of(request: httpx.Request) -> tuple[str, str]:
    """The signature that a request carries, and the one that the specification of Signature Version 4 asks for."""
    found = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/(\d{8})/([\w-]+)/execute-api/aws4_request, "
        r"SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})",
        request.headers["authorization"],
    )
    assert found, request.headers["authorization"]
    day, region, names, signature = found.groups()
    path, _, query = request.url.raw_path.decode().partition("?")
    headers = "".join(f"{name}:{request.headers[name]}\n" for name in names.split(";"))
    body = hashlib.sha256(request.content).hexdigest()
    pairs = "&".join(sorted(query.split("&")))
    canonical = "\n".join((request.method, quote(path, safe="/-_.~"), pairs, headers, names, body))
    scope = f"{day}/{region}/execute-api/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{SECRET}".encode()
    for part in (day, region, "execute-api", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    to_sign = f"AWS4-HMAC-SHA256\n{request.headers['x-amz-date']}\n{scope}\n{digest}"
    return signature, hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def test_a_deployed_api_gets_a_signature_for_the_region_of_its_host(recorder: Recorder) -> None:
    for client in api(reach(DEPLOYED + "/", None, None, None, None), recorder):
        client.submit("t", '{"text": "hällo"}', key="k")
        list(client.jobs(status="FAILED", type_="a b+c", limit=0))
        client.cancel("a/b ü")
    for request in recorder.requests:
        carried, wanted = signature_of(request)
        assert carried == wanted
        assert "/eu-central-1/" in request.headers["authorization"]
        assert request.headers["x-amz-security-token"] == "a-token"
        assert {"host", "x-amz-date", "x-amz-security-token"} <= set(
            request.headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
        )
    assert str(recorder.requests[0].url) == f"{DEPLOYED}/jobs"


def test_a_token_opens_the_routes_of_tenants_and_operators_sign(recorder: Recorder) -> None:
    for client in api(reach(DEPLOYED, "a.jwt.x", None, None, None), recorder):
        client.job("j")
        client.dead_letters(None)
    tenant, admin = (request.headers for request in recorder.requests)
    assert tenant["authorization"] == "Bearer a.jwt.x"
    assert "x-amz-date" not in tenant
    assert admin["authorization"].startswith("AWS4-HMAC-SHA256 ")


def test_no_secret_goes_to_a_port_of_this_machine(recorder: Recorder) -> None:
    for url in ("http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"):
        for client in api(reach(url, "a.jwt.x", "alpha", None, None), recorder):
            client.job("j")
            client.dead_letters(None)
    for request in recorder.requests:
        assert "authorization" not in request.headers
        assert request.headers["x-local-tenant"] == "alpha"


def test_who_shows_a_certificate_on_this_machine_gets_a_signature(recorder: Recorder) -> None:
    """An emulator of AWS, or the end of a tunnel; the local runtime has none."""
    for client in api(reach("https://127.0.0.1:4566/stage", None, None, None, "eu-west-3"), recorder):
        client.job("j")
    carried, wanted = signature_of(recorder.requests[0])
    assert carried == wanted
    with pytest.raises(Failure, match="verified identity"):
        reach("https://localhost:4566", None, "alpha", None, None)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("a.execute-api.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("a.execute-api.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("jobs.example.com", "ap-south-1"),
        ("execute-api.example.com.execute-api.evil.example", "ap-south-1"),
    ],
)
def test_the_region_is_the_hosts_or_the_configured_one(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, host: str, region: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-south-1")
    for client in api(reach(f"https://{host}/stage", None, None, None, None), recorder):
        client.job("j")
    assert f"/{region}/execute-api/" in recorder.requests[0].headers["authorization"]
    assert recorder.requests[0].url.path == "/stage/jobs/j"


def test_a_region_that_is_said_wins_and_an_unknown_one_is_asked_for(recorder: Recorder) -> None:
    for client in api(reach(DEPLOYED, None, None, None, "eu-west-3"), recorder):
        client.job("j")
    assert "/eu-west-3/" in recorder.requests[0].headers["authorization"]
    for client in api(reach("https://jobs.example.com", None, None, None, None), recorder):
        with pytest.raises(Failure, match="--region") as caught:
            client.job("j")
        assert caught.value.code == Exit.USAGE


def test_without_credentials_it_is_not_permitted_and_says_how(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    for client in api(reach(DEPLOYED, None, None, None, None), recorder):
        with pytest.raises(Failure, match="aws configure sso") as caught:
            client.job("j")
    assert caught.value.code == Exit.FORBIDDEN
    assert recorder.requests == []


def test_a_profile_that_does_not_exist_is_a_mistake_of_the_command(recorder: Recorder) -> None:
    for client in api(reach(DEPLOYED, None, None, "nobody", None), recorder):
        with pytest.raises(Failure, match="nobody") as caught:
            client.job("j")
    assert caught.value.code == Exit.USAGE


@pytest.mark.parametrize(
    "url",
    [
        "http://abc123.execute-api.eu-central-1.amazonaws.com",
        "http://127.0.0.1.example.com",
        "ftp://127.0.0.1",
        "127.0.0.1:8080",
        "https://",
        "https://ada:s3cret@example.com",
        "https://example.com?token=s3cret",
        "https://exa mple.com",
        "https://example.com:notaport",
    ],
)
def test_a_url_that_would_leak_or_lead_nowhere_is_refused(url: str) -> None:
    with pytest.raises(Failure) as caught:
        reach(url, None, None, None, None)
    assert caught.value.code == Exit.USAGE
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("word", ["with\nnewline", "ümlaut", " ", ""])
def test_a_token_that_no_header_can_carry_is_refused_unseen(word: str) -> None:
    with pytest.raises(Failure, match="printable ASCII") as caught:
        reach(DEPLOYED, word, None, None, None)
    assert word not in str(caught.value) or not word.strip()


def test_a_tenant_cannot_be_claimed_of_a_deployed_api() -> None:
    with pytest.raises(Failure, match="verified identity"):
        reach(DEPLOYED, None, "alpha", None, None)
