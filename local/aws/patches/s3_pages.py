"""ListObjectsV2 and ListObjectVersions answer a page of `s3_listing` in S3's XML, written straight.

Stock moto looks up each element of each entry in the API's model and parses dates that it has just written: most of
the time of a page. It also lists versions and delete markers apart, and more than 1000 entries to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape

from moto.s3.exceptions import InvalidContinuationToken, S3ClientError
from moto.s3.models import FakeBucket, FakeKey
from moto.s3.responses import S3Response

from local.aws.patches.patch import Patch
from local.aws.patches.s3_listing import MOST, Version, objects_page, token_of, versions_page

_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_OWNER = "<Owner><ID>A3LOCALOWNER</ID></Owner>"
_stock_objects: Any = vars(S3Response)["list_objects_v2"]
_stock_versions: Any = vars(S3Response)["list_object_versions"]

Query = Mapping[str, str]
Text = Callable[[str], str]


def _list_objects_v2(response: S3Response) -> Any:
    query = _query(response)
    if query is None:
        return _stock_objects(response)
    token = query.get("continuation-token")
    if token is not None and not token:
        raise InvalidContinuationToken
    bucket: FakeBucket = response.backend.get_bucket(response.bucket_name)
    page = objects_page(
        bucket,
        prefix=query.get("prefix", ""),
        delimiter=query.get("delimiter"),
        token=token,
        start_after=query.get("start-after"),
        most=_most(query),
    )
    named = _names(query)
    owner = _OWNER if query.get("fetch-owner") == "true" else ""
    return _document(
        "ListBucketResult",
        [
            *_head(bucket, query, page.truncated, named),
            _element("KeyCount", len(page.items) + len(page.prefixes)),
            *(_element("ContinuationToken", escape(token or "")) for _ in range(token is not None)),
            *(_element("StartAfter", named(query["start-after"])) for _ in range("start-after" in query)),
            *(_element("NextContinuationToken", token_of(page)) for _ in range(page.truncated)),
            *(f"<Contents>{_of_object(key, named)}{owner}</Contents>" for key in page.items),
            *_prefixes(page.prefixes, named),
        ],
    )


def _list_object_versions(response: S3Response) -> Any:
    query = _query(response)
    if query is None:
        return _stock_versions(response)
    bucket: FakeBucket = response.backend.get_bucket(response.bucket_name)
    key_marker, version_marker = query.get("key-marker", ""), query.get("version-id-marker", "")
    page = versions_page(
        bucket,
        prefix=query.get("prefix", ""),
        delimiter=query.get("delimiter"),
        key_marker=key_marker,
        version_marker=version_marker,
        most=_most(query),
    )
    named = _names(query)
    following = [_element("NextKeyMarker", named(page.last_key)), _element("NextVersionIdMarker", page.last_version)]
    return _document(
        "ListVersionsResult",
        [
            *_head(bucket, query, page.truncated, named),
            _element("KeyMarker", named(key_marker)),
            _element("VersionIdMarker", escape(version_marker)),
            *(following if page.truncated else []),
            *(_of_version(version, current, named) for version, current in page.items),
            *_prefixes(page.prefixes, named),
        ],
    )


def _of_object(key: FakeKey, named: Text) -> str:
    return (
        f"<Key>{named(key.name)}</Key><LastModified>{key.last_modified_ISO8601}</LastModified>"
        f"<ETag>{key.etag}</ETag><Size>{key.size}</Size><StorageClass>{key.storage_class}</StorageClass>"
    )


def _of_version(version: Version, current: bool, named: Text) -> str:
    about = f"<VersionId>{version.version_id}</VersionId><IsLatest>{str(current).lower()}</IsLatest>{_OWNER}"
    if isinstance(version, FakeKey):
        return f"<Version>{_of_object(version, named)}{about}</Version>"
    written = f"<LastModified>{version.last_modified_ISO8601}</LastModified>"
    return f"<DeleteMarker><Key>{named(version.name)}</Key>{written}{about}</DeleteMarker>"


def _head(bucket: FakeBucket, query: Query, truncated: bool, named: Text) -> Iterator[str]:
    yield _element("Name", bucket.name)
    yield _element("Prefix", named(query.get("prefix", "")))
    if query.get("delimiter"):
        yield _element("Delimiter", named(query["delimiter"]))
    if query.get("encoding-type") == "url":
        yield _element("EncodingType", "url")
    yield _element("MaxKeys", min(_most(query), MOST))
    yield _element("IsTruncated", str(truncated).lower())


def _prefixes(prefixes: list[str], named: Text) -> Iterator[str]:
    for prefix in prefixes:
        yield f"<CommonPrefixes><Prefix>{named(prefix)}</Prefix></CommonPrefixes>"


def _query(response: S3Response) -> Query | None:
    call = response.request.environ.get("local.call")
    return None if call is None else call.query_parameters


def _most(query: Query) -> int:
    text = query.get("max-keys", str(MOST))
    if not text.isdigit():
        raise S3ClientError("InvalidArgument", "Provided max-keys not an integer or within integer range")
    return int(text)


def _names(query: Query) -> Text:
    """How a key is written: XML cannot carry every character, so SDKs ask for keys as in a URL."""
    if query.get("encoding-type") == "url":
        return lambda name: quote(name, errors="surrogatepass")
    return escape


def _element(name: str, value: object) -> str:
    """`value` is ready for XML."""
    return f"<{name}>{value}</{name}>"


def _document(name: str, elements: list[str]) -> tuple[int, dict[str, str], str]:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="{_NAMESPACE}">{"".join(elements)}</{name}>'
    return 200, {"content-type": "application/xml"}, body


PATCHES = (
    Patch(S3Response, "list_objects_v2", _list_objects_v2),
    Patch(S3Response, "list_object_versions", _list_object_versions),
)
