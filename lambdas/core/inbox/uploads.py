"""What becomes of an object in the uploads bucket: where it must lie, and which job each of its versions is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lambdas.contracts.names import UPLOADS, UPLOADS_PREFIX
from lambdas.core import ids
from lambdas.core.canonical import sha256_of
from lambdas.core.identity import TENANT
from lambdas.core.inbox.message import Ignored, Outcome, Refusal, on_record
from lambdas.core.intake import Accepted, Door, Submission, new_record, put_on_record
from lambdas.core.job import entry
from lambdas.core.ports import ObjectVersion, Stored, UploadedObjects
from lambdas.core.times import Instant

KEY_BYTES = 900  # with its version it is a sort key, and DynamoDB takes 1,024 bytes
_TYPE = re.compile(r"[\w-]{1,64}")  # as at the door; it becomes an attribute of messages, which SQS is choosy about


@dataclass(frozen=True)
class Place:
    """What a key says: `uploads/<tenant>/<type>/<name>`. `given_out`: by `POST /uploads`, for one upload."""

    tenant: str
    type: str
    name: str

    @property
    def given_out(self) -> bool:
        return ids.is_upload_id(self.tenant, self.type, self.name)


@dataclass(frozen=True)
class Yard:
    """Where objects are received."""

    door: Door
    objects: UploadedObjects
    bucket: str


def place_of(key: str) -> Place | str:
    """Where an object lies, or why nothing that lies there can become a job."""
    if len(key.encode()) > KEY_BYTES or "\0" in key:
        return f"a key may have {KEY_BYTES} bytes, none of them zero"
    parts = key.removeprefix(UPLOADS_PREFIX).split("/", 2)
    if not key.startswith(UPLOADS_PREFIX) or len(parts) != 3 or not all(parts):
        return "a key must be uploads/<tenant>/<type>/<name>"
    if not TENANT.fullmatch(parts[0]):
        return f"{parts[0][:64]!r} is no tenant id"
    if not _TYPE.fullmatch(parts[1]):
        return f"{parts[1][:64]!r} can be the name of no task"
    return Place(*parts)


def is_folder(stored: Stored | ObjectVersion) -> bool:
    """What consoles put where somebody asked for a folder."""
    return stored.key.endswith("/") and stored.bytes == 0


def take(stored: Stored, received_at: Instant, yard: Yard) -> Outcome:
    """The job of this version of an object. Raises Refusal, Unavailable."""
    if is_folder(stored):
        return Ignored("a folder")
    place = _usable_place(stored, yard)
    if not place.given_out:
        return _take(stored, _job_id(stored, place, yard), place, received_at, yard)
    # whichever version this is about: notifications come in any order, and the first one's may never come
    first = yard.objects.first(stored.key) or stored
    outcome = _take(first, place.name, place, received_at, yard)
    later = _mark(first) != _mark(stored) and isinstance(outcome, Accepted) and not outcome.new
    return Ignored("a later upload to a key that was given out for one", place.name) if later else outcome


def job_id_of(stored: Stored, yard: Yard) -> str:
    """The job that `take` would make of it. Raises Refusal."""
    return _job_id(stored, _usable_place(stored, yard), yard)


def _usable_place(stored: Stored, yard: Yard) -> Place:
    place = place_of(stored.key)
    if isinstance(place, str):
        raise Refusal("INVALID_KEY", place)
    if place.type not in yard.door.types:
        raise Refusal("UNKNOWN_TYPE", f"there is no task {place.type[:64]!r} here (yet)")
    return place


def _job_id(stored: Stored, place: Place, yard: Yard) -> str:
    return place.name if place.given_out else ids.object_job_id(yard.bucket, stored.key, _mark(stored))


def _take(stored: Stored, job_id: str, place: Place, received_at: Instant, yard: Yard) -> Outcome:
    sha = sha256_of([yard.bucket, stored.key, _mark(stored)])
    submission, request = Submission(place.tenant, b""), {"type": place.type, "input": None}
    record = new_record(submission, request, sha, job_id=job_id, now=yard.door.now(), limits=yard.door.limits)
    del record["input"]
    origin = {
        "source": UPLOADS,
        "upload": {"key": stored.key, "version": stored.version, "etag": stored.etag, "bytes": stored.bytes},
        "upload_shard": ids.upload_shard(job_id),
        "upload_key": ids.upload_order(stored.key, _mark(stored)),
        "history": [entry(received_at, "received", 0), *record["history"]],
    }
    return on_record(put_on_record({**record, **origin}, "", yard.door))


def _mark(stored: Stored) -> str:
    """What tells this content of a key from any other."""
    return stored.version or stored.etag
