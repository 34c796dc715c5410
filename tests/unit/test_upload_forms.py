"""POST /uploads: a form for one object, bound to tenant, task, type and size."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lambdas.core import ids, times
from lambdas.core.inbox.upload_forms import Counter, offer
from lambdas.core.inbox.uploads import Place, place_of
from lambdas.core.policy import Limits
from lambdas.core.problems import Problem
from tests.builders import NOW, TENANT, later
from tests.fakes import FakeUploaded
from tests.unit.entrance import TYPES

WISH = {"type": "summarize", "content_type": "text/plain"}


def asked(body: Any = WISH, forms: FakeUploaded | None = None, tenant: str = TENANT) -> dict[str, Any] | Problem:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    counter = Counter(forms or FakeUploaded(), TYPES, Limits(upload_bytes=5_000), lambda: NOW, lambda: "ab" * 16)
    return offer(tenant, raw, counter)


def test_a_form_names_the_job_that_the_upload_will_be() -> None:
    forms = FakeUploaded()
    answer = asked(forms=forms)
    assert isinstance(answer, dict)
    job_id = ids.upload_id(TENANT, "summarize", "ab" * 16)
    key = f"uploads/{TENANT}/summarize/{job_id}"
    assert answer == {
        "job_id": job_id,
        "url": "https://uploads.test/",
        "fields": {"key": key, "Content-Type": "text/plain", "policy": "signed"},
        "expires_at": times.text(later(900)),
        "links": {"self": f"/jobs/{job_id}", "result": f"/jobs/{job_id}/result", "events": f"/jobs/{job_id}/events"},
    }
    assert forms.forms == [{"key": key, "content_type": "text/plain", "most": 5_000, "expires_s": 900}]
    place = place_of(key)
    assert isinstance(place, Place)
    assert place.given_out


def test_forms_of_two_tenants_never_share_a_job() -> None:
    mine, theirs = asked(), asked(tenant="globex")
    assert isinstance(mine, dict)
    assert isinstance(theirs, dict)
    assert mine["job_id"] != theirs["job_id"]


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "text/plain",
        "text/csv",
        "text/plain; charset=utf-8",
        "Text/Plain",
        "application/ld+json",
        'text/csv; header=present; charset="UTF-8"',
        "text/plain;charset=US-ASCII",
    ],
)
def test_what_can_become_an_input_may_be_uploaded(content_type: str) -> None:
    assert isinstance(asked({**WISH, "content_type": content_type}), dict)


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"{", 400, ""),
        ([], 400, ""),
        ({}, 400, "/type"),
        ({"type": "summarize"}, 400, "/content_type"),
        ({**WISH, "size": 5}, 400, "/size"),
        ({**WISH, "content_type": ""}, 400, "/content_type"),
        ({**WISH, "content_type": "text/" + "x" * 100}, 400, "/content_type"),
        ({**WISH, "type": "unknown"}, 422, "/type"),
        ({**WISH, "content_type": "application/pdf"}, 422, "/content_type"),
        ({**WISH, "content_type": "image/png"}, 422, "/content_type"),
        ({**WISH, "content_type": "text/"}, 422, "/content_type"),
        ({**WISH, "content_type": "text/plain\r\nx: y"}, 422, "/content_type"),
        ({**WISH, "content_type": "application/jsonp"}, 422, "/content_type"),
        ({**WISH, "content_type": "text/plain; charset=utf-16le"}, 422, "/content_type"),
        ({**WISH, "content_type": "text/plain;x=1;CHARSET = 'latin-1'"}, 422, "/content_type"),
        ({**WISH, "content_type": "text/plain; x=\u00e9"}, 422, "/content_type"),
        ({**WISH, "content_type": "text/plain; x=\ry"}, 422, "/content_type"),
    ],
)
def test_a_wish_that_cannot_be_met_says_where_it_is_wrong(body: Any, status: int, pointer: str) -> None:
    problem = asked(body)
    assert isinstance(problem, Problem)
    assert (problem.status, problem.pointer) == (status, pointer)
