"""The Postman port: one short try, and what its failures say about the connection."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from botocore.config import Config

from lambdas.adapters import push
from lambdas.adapters.push import ApiGatewayPostman, management_client
from lambdas.contracts import names
from lambdas.core.watching.ports import Gone, Sent, Trouble
from tests.integration.management_api import ManagementApi, management_api

ANNA = "L0SM9cOFvHcCIhw="
FRAME = '{"type":"pong","é":"🚀"}'.encode()


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[ManagementApi]:
    with management_api() as found:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv(names.PUSH_URL, found.url)
        yield found


@pytest.fixture
def postman(api: ManagementApi, monkeypatch: pytest.MonkeyPatch) -> ApiGatewayPostman:
    """Patient: it is answered, however slow the machine is."""
    monkeypatch.setattr(push, "_SHORT", push._SHORT.merge(Config(connect_timeout=60, read_timeout=60)))
    return ApiGatewayPostman(management_client())


def test_a_frame_is_posted_to_its_connection_by_the_address_in_boto3_s_own_variable(
    api: ManagementApi, postman: ApiGatewayPostman
) -> None:
    assert postman.post(ANNA, FRAME) == Sent()
    assert api.sent[ANNA] == [{"type": "pong", "é": "🚀"}]
    assert api.asked == ["POST /live/@connections/L0SM9cOFvHcCIhw%3D"]


@pytest.mark.parametrize("code", ["GoneException", "GoneException:http://internal.amazon.com/", "", "Whatever"])
def test_ws_01_who_is_gone_is_known_by_the_code_and_by_the_status(
    api: ManagementApi, postman: ApiGatewayPostman, code: str
) -> None:
    api.answers[ANNA].append((410, code))
    assert postman.post(ANNA, FRAME) == Gone()


def test_who_is_gone_is_known_by_the_code_alone(api: ManagementApi, postman: ApiGatewayPostman) -> None:
    api.answers[ANNA].append((400, "GoneException"))
    assert postman.post(ANNA, FRAME) == Gone()


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (403, "ForbiddenException"), (413, "PayloadTooLargeException"), (429, "LimitExceededException"),
        (400, "BadRequestException"), (500, ""), (503, "ServiceUnavailable"),
    ],
)  # fmt: skip
def test_whatever_else_is_this_watcher_s_trouble_and_is_tried_once(
    api: ManagementApi, postman: ApiGatewayPostman, status: int, code: str
) -> None:
    api.answers[ANNA].append((status, code))
    outcome = postman.post(ANNA, FRAME)
    assert isinstance(outcome, Trouble)
    assert str(status) in outcome.reason
    assert len(api.asked) == 1


def test_who_does_not_answer_is_given_up_soon_and_after_one_try(
    api: ManagementApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (push._SHORT.read_timeout, push._SHORT.connect_timeout) == (2, 1)  # type: ignore[attr-defined]
    monkeypatch.setattr(push, "_SHORT", push._SHORT.merge(Config(read_timeout=0.2)))
    api.silent.add(ANNA)
    outcome = ApiGatewayPostman(management_client()).post(ANNA, FRAME)
    assert outcome == Trouble("ReadTimeoutError")
    ends = time.monotonic() + 60
    while not api.asked and time.monotonic() < ends:
        time.sleep(0.01)
    assert len(api.asked) == 1


def test_an_address_that_nobody_is_at_is_trouble(monkeypatch: pytest.MonkeyPatch, api: ManagementApi) -> None:
    monkeypatch.setenv(names.PUSH_URL, "http://127.0.0.1:9/live")
    assert ApiGatewayPostman(management_client()).post(ANNA, FRAME) == Trouble("EndpointConnectionError")
