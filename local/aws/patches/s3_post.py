"""A browser's upload is stored as its form says, and answered as S3 does.

Stock moto takes any part of the form for the file, fields after it too, and answers without ETag and version.
What the form's policy allows was decided before: `local.aws.strict.post_policy`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

from moto.s3.models import FakeKey
from moto.s3.responses import S3Response
from moto.s3.utils import metadata_from_headers

from local.aws.forms import Form
from local.aws.patches.patch import Patch

_stock_post: Any = vars(S3Response)["_bucket_response_post"]
_STATUSES = {"200", "201"}


def _post(response: S3Response, request: Any, bucket_name: str) -> Any:
    call = request.environ.get("local.call")
    form: Form | None = call.form if call is not None else None
    if form is None:
        return _stock_post(response, request, bucket_name)
    response.data["Action"] = "PutObject"
    response._authenticate_and_authorize_s3_action(bucket_name=bucket_name)
    stored = response.backend.put_object(bucket_name, form.key, form.content or b"", request_method="POST")
    stored.set_metadata(metadata_from_headers(dict(form.fields)))
    return _answer(form, bucket_name, stored, f"http://{request.host}/{bucket_name}/{quote(form.key)}")


def _answer(form: Form, bucket: str, stored: FakeKey, place: str) -> tuple[int, dict[str, str], str]:
    headers = {"ETag": stored.etag, "Location": place}
    if stored.version_id != "null":
        headers["x-amz-version-id"] = stored.version_id
    redirect = form.fields.get("success_action_redirect")
    if redirect:
        told = urlencode({"bucket": bucket, "key": form.key, "etag": stored.etag})
        return 303, headers | {"Location": f"{redirect}{'&' if '?' in redirect else '?'}{told}"}, ""
    status = form.fields.get("success_action_status")
    if status not in _STATUSES:
        return 204, headers, ""
    return int(status), headers, _created(bucket, form.key, stored, place) if status == "201" else ""


def _created(bucket: str, key: str, stored: FakeKey, place: str) -> str:
    elements = {"Location": place, "Bucket": bucket, "Key": key, "ETag": stored.etag}
    inside = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in elements.items())
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<PostResponse>{inside}</PostResponse>'


PATCHES = (Patch(S3Response, "_bucket_response_post", _post),)
