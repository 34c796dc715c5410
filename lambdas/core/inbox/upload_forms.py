"""`POST /uploads`: a form with which a client puts one object, which will be the job that the answer names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lambdas.contracts.names import UPLOADS_PREFIX
from lambdas.contracts.strict_json import Malformed, parse
from lambdas.contracts.validation import Check, upload_request_check
from lambdas.core import ids, times, views
from lambdas.core.inbox.uploaded_inputs import is_readable
from lambdas.core.policy import Limits
from lambdas.core.ports import Now, UploadForms
from lambdas.core.problems import Problem, bad_request, unprocessable
from lambdas.core.times import after

FORM_S = 900


@dataclass(frozen=True)
class Counter:
    """What forms are given out with. `types`: as at the door. `new_id`: 32 hex digits."""

    forms: UploadForms
    types: Mapping[str, Check]
    limits: Limits
    now: Now
    new_id: Callable[[], str]


def offer(tenant: str, raw: bytes, counter: Counter) -> dict[str, Any] | Problem:
    """A form for one upload. Nothing is recorded: the object becomes the job, under the id that stands in its key."""
    try:
        request = parse(raw)
    except Malformed as error:
        return bad_request(error.detail, error.pointer)
    wrong = upload_request_check()(request)
    if wrong:
        return bad_request(wrong.detail, wrong.pointer)
    type_, content_type = request["type"], request["content_type"]
    if type_ not in counter.types:
        known = ", ".join(sorted(counter.types)) or "none"
        return unprocessable(f"There is no task {type_[:64]!r}; known types: {known}.", "/type")
    if not is_readable(content_type):
        return unprocessable(
            "content_type must be application/json (the object is the task's input) or text/… (its field `text`), "
            "and in UTF-8.",
            "/content_type",
        )
    job_id = ids.upload_id(tenant, type_, counter.new_id())
    key = f"{UPLOADS_PREFIX}{tenant}/{type_}/{job_id}"
    url, fields = counter.forms.form(key, content_type, counter.limits.upload_bytes, FORM_S)
    expires_at = times.text(after(counter.now(), FORM_S))
    return {"job_id": job_id, "url": url, "fields": fields, "expires_at": expires_at, "links": views.links(job_id, "")}
