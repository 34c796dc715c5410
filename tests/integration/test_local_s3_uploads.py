"""Presigned POST: S3 takes what the policy covers, refuses the rest in its own words, and so does the local one."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.config import Config

from local.aws.calls import Caller
from local.aws.meter import Meter
from local.aws.permissions import Permissions
from local.aws.strict import Strict
from local.clock import VirtualClock
from local.stack.provision import provision
from local.stack.template import parse
from tests.integration.local_aws import Aws, serving
from tests.integration.local_toys import Reply
from tests.integration.stock_moto import stock

BOX = "box"
KEY = "uploads/acme/summarize/1"
BOUNDARY = "the-boundary"


@pytest.fixture(scope="module")
def running() -> Iterator[Aws]:
    with serving() as aws:
        yield aws


@pytest.fixture
def aws(running: Aws) -> Aws:
    running.server.reset()
    running.server.gates[:] = [Strict()]
    running.client("s3").create_bucket(Bucket=BOX)
    return running


def signed(aws: Aws, *conditions: Any, key: str = KEY, signer: str = "developer", **more: Any) -> dict[str, Any]:
    create: Any = boto3.client
    s3 = create(
        "s3",
        endpoint_url=aws.server.url,
        region_name="us-east-1",
        aws_access_key_id=signer,
        aws_secret_access_key="secret",
        aws_session_token="token",
        config=Config(signature_version=more.pop("version", "v4")),
    )
    try:
        return dict(s3.generate_presigned_post(BOX, key, Conditions=list(conditions), **more))
    finally:
        s3.close()


def form(*fields: tuple[str, str | bytes]) -> bytes:
    """A browser's body; `file` is a file."""
    parts = []
    for name, value in fields:
        content = value if isinstance(value, bytes) else value.encode()
        kind = '; filename="C:\\dir\\my notes.txt"\r\nContent-Type: text/html' if name == "file" else ""
        parts.append(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{kind}\r\n\r\n'.encode() + content + b"\r\n"
        )
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def post(url: str, fields: Mapping[str, str], content: bytes = b"hello") -> Reply:
    return send(url, form(*fields.items(), ("file", content)))


def send(url: str, body: bytes) -> Reply:
    kind = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    asked = urllib.request.Request(url, data=body, method="POST", headers=kind)
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return Reply(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error.code, {k.lower(): v for k, v in error.headers.items()}, error.read())


def refused(reply: Reply, status: int, code: str, words: str) -> None:
    text = reply.body.decode()
    assert (reply.status, f"<Code>{code}</Code>" in text) == (status, True), text
    assert words in text.replace("&quot;", '"')


def with_policy(fields: Mapping[str, str], **changes: Any) -> dict[str, str]:
    policy = {**json.loads(base64.b64decode(fields["policy"])), **changes}
    kept = {name: value for name, value in policy.items() if value is not None}
    return {**fields, "policy": base64.b64encode(json.dumps(kept).encode()).decode()}


# --- what is taken -----------------------------------------------------------------------------------------


def test_upload_is_stored_byte_by_byte_with_the_forms_content_type(aws):
    content = b'\r\n--the-boundar\r\n{"a": "\xc3\xa9"}\x00\xff\r\n'
    given = signed(aws, {"Content-Type": "application/json"}, Fields={"Content-Type": "application/json"})
    assert given["url"] == f"{aws.server.url}/{BOX}"
    reply = post(given["url"], given["fields"], content)
    assert (reply.status, reply.body) == (204, b"")
    stored = aws.client("s3").get_object(Bucket=BOX, Key=KEY)
    assert stored["Body"].read() == content
    assert stored["ContentType"] == "application/json"
    assert reply.headers["etag"] == stored["ETag"]


def test_version_and_place_are_answered_and_201_says_them_in_xml(aws):
    aws.client("s3").put_bucket_versioning(Bucket=BOX, VersioningConfiguration={"Status": "Enabled"})
    given = signed(aws, {"success_action_status": "201"}, Fields={"success_action_status": "201"}, key="a b&c/1")
    reply = post(given["url"], given["fields"])
    assert reply.status == 201
    assert b"<Key>a b&amp;c/1</Key>" in reply.body
    assert f"<Bucket>{BOX}</Bucket>".encode() in reply.body
    stored = aws.client("s3").head_object(Bucket=BOX, Key="a b&c/1")
    assert reply.headers["x-amz-version-id"] == stored["VersionId"]
    assert reply.headers["location"] == f"{aws.server.url}/{BOX}/a%20b%26c/1"
    with stock("S3Response._bucket_response_post"):
        assert "etag" not in post(given["url"], given["fields"]).headers


@pytest.mark.parametrize(("wanted", "status"), [("200", 200), ("204", 204), ("418", 204)])
def test_success_status_is_one_of_three(aws, wanted, status):
    given = signed(aws, {"success_action_status": wanted}, Fields={"success_action_status": wanted})
    assert post(given["url"], given["fields"]).status == status


def test_browser_is_sent_where_the_form_says(aws):
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    given = signed(aws, ["starts-with", "$success_action_redirect", ""])
    body = form(*given["fields"].items(), ("success_action_redirect", "http://127.0.0.1:1/done?a=1"), ("file", b"x"))
    headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    with pytest.raises(urllib.error.HTTPError) as answer:
        urllib.request.build_opener(Stay).open(urllib.request.Request(given["url"], body, headers))
    with answer.value as redirect:
        assert redirect.code == 303
        assert redirect.headers["location"].startswith(f"http://127.0.0.1:1/done?a=1&bucket={BOX}&key=uploads%2F")


def test_file_name_stands_in_for_its_variable(aws):
    given = signed(aws, ["starts-with", "$key", "uploads/"], key="uploads/${filename}")
    assert post(given["url"], given["fields"]).status == 204
    assert aws.client("s3").head_object(Bucket=BOX, Key="uploads/my notes.txt")["ContentLength"] == 5


def test_metadata_of_the_form_is_stored(aws):
    given = signed(aws, ["starts-with", "$x-amz-meta-who", ""], Fields={"x-amz-meta-who": "me"})
    assert post(given["url"], given["fields"]).status == 204
    assert aws.client("s3").head_object(Bucket=BOX, Key=KEY)["Metadata"] == {"who": "me"}


def test_fields_after_the_file_are_ignored(aws):
    given = signed(aws)
    reply = send(given["url"], form(*given["fields"].items(), ("file", b"x"), ("acl", "public-read")))
    assert reply.status == 204
    fields = dict(given["fields"])
    policy = fields.pop("policy")
    refused(send(given["url"], form(*fields.items(), ("file", b"x"), ("policy", policy))), 403, "AccessDenied", "")


# --- what is refused ---------------------------------------------------------------------------------------


def test_policy_that_is_over_by_the_virtual_clock_is_refused(aws):
    with VirtualClock() as clock:
        given = signed(aws, ExpiresIn=900)
        clock.advance(600)
        assert post(given["url"], given["fields"]).status == 204
        clock.advance(301)
        refused(
            post(given["url"], given["fields"]), 403, "AccessDenied", "Invalid according to Policy: Policy expired."
        )


def test_size_must_be_in_the_policys_range(aws):
    given = signed(aws, ["content-length-range", 2, 5])
    refused(
        post(given["url"], given["fields"], b"123456"),
        400,
        "EntityTooLarge",
        "Your proposed upload exceeds the maximum allowed size",
    )
    refused(post(given["url"], given["fields"], b"1"), 400, "EntityTooSmall", "smaller than the minimum")
    assert [post(given["url"], given["fields"], b"x" * size).status for size in (2, 5)] == [204, 204]
    aws.server.gates.clear()
    assert post(given["url"], given["fields"], b"123456").status == 204  # so moto does not look


def test_key_is_exactly_the_one_that_was_signed(aws):
    given = signed(aws)
    refused(
        post(given["url"], {**given["fields"], "key": "uploads/other"}),
        403,
        "AccessDenied",
        f'Invalid according to Policy: Policy Condition failed: ["eq", "$key", "{KEY}"]',
    )
    assert "Contents" not in aws.client("s3").list_objects_v2(Bucket=BOX)


def test_bucket_is_the_one_that_was_signed(aws):
    aws.client("s3").create_bucket(Bucket="other")
    given = signed(aws)
    refused(
        post(given["url"].replace(BOX, "other"), given["fields"]),
        403,
        "AccessDenied",
        f'Policy Condition failed: ["eq", "$bucket", "{BOX}"]',
    )


@pytest.mark.parametrize(
    ("condition", "kind", "passes"),
    [
        (["starts-with", "$Content-Type", "text/"], "text/plain", True),
        (["starts-with", "$Content-Type", "text/"], "text/plain,text/html", True),
        (["starts-with", "$Content-Type", "text/"], "text/plain,image/png", False),
        (["starts-with", "$Content-Type", "text/"], "image/png", False),
        (["starts-with", "$Content-Type", ""], "", True),
        (["starts-with", "$Content-Type", ""], None, False),
        (["eq", "$content-type", "image/png"], "image/png", True),
        (["eq", "$Content-Type", "image/png"], "image/PNG", False),
        (["eq", "$Content-Type", "image/png"], None, False),
    ],
)
def test_content_type_is_held_against_its_condition(aws, condition, kind, passes):
    given = signed(aws, condition)
    fields = given["fields"] if kind is None else {**given["fields"], "Content-Type": kind}
    reply = post(given["url"], fields)
    if passes:
        assert reply.status == 204, reply.body
    else:
        refused(reply, 403, "AccessDenied", f"Policy Condition failed: {json.dumps(condition)}")


def test_fields_that_no_condition_covers_are_refused(aws):
    given = signed(aws)
    refused(
        post(given["url"], {**given["fields"], "Content-Type": "text/plain"}),
        403,
        "AccessDenied",
        "Invalid according to Policy: Extra input fields: content-type",
    )
    assert post(given["url"], {**given["fields"], "x-ignore-me": "1"}).status == 204


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"policy": "{no base64"}, "Invalid JSON"),
        ({"policy": base64.b64encode(b"{no json").decode()}, "Invalid JSON"),
        ({"expiration": None}, "Policy missing expiration."),
        ({"conditions": None}, "Policy missing conditions."),
        ({"conditions": [["contains", "$key", "u"]]}, "Invalid Condition"),
        ({"expiration": "tomorrow"}, "Invalid"),
    ],
)
def test_policy_that_is_none_is_refused(aws, change, words):
    given = signed(aws)
    fields = {**given["fields"], **change} if "policy" in change else with_policy(given["fields"], **change)
    refused(post(given["url"], fields), 400, "InvalidPolicyDocument", words)


def test_form_must_be_signed_and_whole(aws):
    given = signed(aws)
    for gone, status, code, words in (
        ("policy", 403, "AccessDenied", ""),
        ("x-amz-signature", 400, "InvalidArgument", "x-amz-signature"),
        ("x-amz-credential", 400, "InvalidArgument", "x-amz-credential"),
        ("key", 400, "InvalidArgument", "field named 'key'"),
    ):
        fields = {name: value for name, value in given["fields"].items() if name != gone}
        refused(post(given["url"], fields), status, code, words)
    refused(send(given["url"], form(*given["fields"].items())), 400, "InvalidArgument", "exactly one file")


def test_signature_of_version_2_is_refused_as_by_every_new_bucket(aws):
    given = signed(aws, version="s3")
    refused(post(given["url"], given["fields"]), 400, "InvalidRequest", "AWS4-HMAC-SHA256")


# --- who signed --------------------------------------------------------------------------------------------


@pytest.fixture
def role(aws: Aws) -> str:
    statement = {"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{BOX}/uploads/*"}
    document = {
        "Resources": {
            "Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "AssumeRolePolicyDocument": {},
                    "Policies": [{"PolicyName": "p", "PolicyDocument": {"Statement": [statement]}}],
                },
            }
        }
    }
    stack = provision(parse(document, name="test"), aws.server.url)
    aws.server.gates[:] = [Permissions(stack), Strict()]
    return str(stack.resources["Role"].attributes["Arn"])


def test_signers_role_must_allow_the_upload(aws, role):
    aws.server.callers.register("SIGNER", Caller("accept", role))
    assert post(**_allowed(signed(aws, signer="SIGNER"))).status == 204
    reply = post(**_allowed(signed(aws, signer="SIGNER", key="elsewhere/1")))
    refused(reply, 403, "AccessDenied", "s3:PutObject on resource: arn:aws:s3:::box/elsewhere/1")


def test_form_outlives_the_process_that_signed_it(aws, role):
    aws.server.callers.register("MORTAL", Caller("accept", role))
    given = signed(aws, signer="MORTAL")
    elsewhere = signed(aws, signer="MORTAL", key="elsewhere/1")
    aws.server.callers.revoke("MORTAL")
    assert post(**_allowed(given)).status == 204
    assert post(**_allowed(elsewhere)).status == 403


def test_upload_is_no_call_of_the_function_that_signed_it(aws, role):
    meter = Meter()
    aws.server.gates.append(meter)
    aws.server.callers.register("SIGNER", Caller("accept", role))
    assert post(**_allowed(signed(aws, signer="SIGNER"))).status == 204
    assert meter.calls() == []


def _allowed(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"url": given["url"], "fields": given["fields"]}


# --- presigned URLs ----------------------------------------------------------------------------------------


def get(url: str) -> Reply:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return Reply(answer.status, {}, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Reply(error.code, {}, error.read())


def test_presigned_url_works_until_it_is_over_and_as_its_signers_role_allows(aws, role):
    aws.client("s3").put_object(Bucket=BOX, Key=KEY, Body=b"x")
    aws.server.callers.register("READER", Caller("query", role))
    with VirtualClock() as clock:
        create: Any = boto3.client
        urls = {}
        for signer in ("READER", "developer"):
            s3 = create(
                "s3",
                endpoint_url=aws.server.url,
                region_name="us-east-1",
                aws_access_key_id=signer,
                aws_secret_access_key="secret",
                config=Config(signature_version="v4"),
            )
            urls[signer] = s3.generate_presigned_url("get_object", Params={"Bucket": BOX, "Key": KEY}, ExpiresIn=600)
            s3.close()
        assert get(urls["developer"]).body == b"x"
        refused(get(urls["READER"]), 403, "AccessDenied", "s3:GetObject")
        clock.advance(601)
        refused(get(urls["developer"]), 403, "AccessDenied", "Request has expired")


@pytest.mark.parametrize("change", [("X-Amz-Expires=60", "X-Amz-Expires=604801"), ("X-Amz-Date=2", "X-Amz-Date=x")])
def test_presigned_url_with_senseless_times_is_refused(aws, change):
    given = f"{aws.server.url}/{BOX}/a?X-Amz-Credential=developer%2F20260101%2Fus-east-1%2Fs3%2Faws4_request"
    url = f"{given}&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60"
    refused(get(url), 403, "AccessDenied", "Request has expired")
    refused(get(url.replace(*change)), 400, "AuthorizationQueryParametersError", "")


def test_presigned_url_of_version_2_is_refused_as_by_every_new_bucket(aws):
    url = aws.client("s3").generate_presigned_url("get_object", Params={"Bucket": BOX, "Key": KEY})
    refused(get(url), 400, "InvalidRequest", "AWS4-HMAC-SHA256")
