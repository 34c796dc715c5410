"""Ids, shards and object keys: each a pure function of what it names, so that a repeat names the same thing."""

from __future__ import annotations

import re

from lambdas.contracts import names
from lambdas.core.canonical import sha256_of

DUE_SHARDS = 16
DELIVERY_SHARDS = 4  # of their own: who looks for due jobs never meets a delivery
TENANT_SHARDS = 4  # 4 x 1,000 accepts a second of one tenant before its index throttles the table

UPLOAD_SHARDS = 4

_JOB_ID_DIGITS = 32  # 128 bits
_JOB_ID = re.compile(f"[0-9a-f]{{{_JOB_ID_DIGITS}}}")
_CHECK_DIGITS = 12


def job_id_from_key(tenant: str, method: str, route: str, key: str) -> str:
    """The job that this Idempotency-Key means. A canonical list is hashed, so no two splits of a text collide."""
    return sha256_of([tenant, method, route, key])[:_JOB_ID_DIGITS]


def upload_id(tenant: str, type_: str, drawn: str) -> str:
    """The job that an upload will be, from 20 drawn digits: it proves itself, so that an object that somebody else put
    under a name of this look is not taken for it."""
    return drawn[:-_CHECK_DIGITS] + _check(tenant, type_, drawn[:-_CHECK_DIGITS])


def is_upload_id(tenant: str, type_: str, name: str) -> bool:
    """Whether `POST /uploads` gave out this name for this tenant and type."""
    return _JOB_ID.fullmatch(name) is not None and upload_id(tenant, type_, name) == name


def _check(tenant: str, type_: str, drawn: str) -> str:
    return sha256_of(["upload", tenant, type_, drawn])[:_CHECK_DIGITS]


def object_job_id(bucket: str, key: str, version: str) -> str:
    """The job of an object that was not announced: each version (without versions: each content) is its own."""
    return sha256_of(["object", bucket, key, version])[:_JOB_ID_DIGITS]


def upload_shard(job_id: str) -> str:
    return f"{names.UPLOADS}#{int(sha256_of(job_id)[16:24], 16) % UPLOAD_SHARDS}"


def upload_shards() -> list[str]:
    return [f"{names.UPLOADS}#{shard}" for shard in range(UPLOAD_SHARDS)]


def upload_order(key: str, version: str) -> str:
    """Sorts as S3 lists: by the bytes of the key, whatever the version."""
    return f"{key}\0{version}"


def after_upload(key: str) -> str:
    """Comes after every version of this key, and before those of the next."""
    return f"{key}\1"


def claim_id(request_id: str, message_id: str) -> str:
    """Who holds a job: one invocation and one message. 22 digits are enough beside the attempt."""
    return sha256_of([request_id, message_id])[:22]


def due_shard(job_id: str) -> str:
    return str(int(sha256_of(job_id)[:8], 16) % DUE_SHARDS)


def due_shards() -> list[str]:
    return [str(shard) for shard in range(DUE_SHARDS)]


def delivery_shard(pk: str, sk: str) -> str:
    return f"{names.DELIVERY_SK}{int(sha256_of([pk, sk])[:8], 16) % DELIVERY_SHARDS}"


def delivery_shards() -> list[str]:
    return [f"{names.DELIVERY_SK}{shard}" for shard in range(DELIVERY_SHARDS)]


def tenant_shard(tenant: str, job_id: str) -> str:
    return f"{tenant}#{int(sha256_of(job_id)[8:16], 16) % TENANT_SHARDS}"


def tenant_shards(tenant: str) -> list[str]:
    return [f"{tenant}#{shard}" for shard in range(TENANT_SHARDS)]


def event_id(job_id: str, attempt: int, status: str) -> str:
    """One fact has one id, whoever publishes it: the dispatcher, its retry, or the sweep."""
    return f"{job_id}.{attempt}.{status}"


def input_key(tenant: str, job_id: str, body_sha: str) -> str:
    """Under the body's hash: another body under the same Idempotency-Key cannot overwrite this one."""
    return f"{names.INPUTS_PREFIX}{tenant}/{job_id}/{body_sha}"


def result_key(tenant: str, job_id: str, attempt: int) -> str:
    """Under the attempt: two holders never write one object."""
    return f"{job_objects(tenant, job_id)}{attempt}"


def execution_name(job_id: str, run: int) -> str:
    """64 characters of those that Step Functions takes: whoever starts this run of this job starts the same one."""
    return sha256_of(["execution", job_id, run])


def run_results(tenant: str, job_id: str, run: int) -> str:
    """What the results of a run have before their own names."""
    return f"{job_objects(tenant, job_id)}run-{run}-"


def run_result_key(tenant: str, job_id: str, run: int, written: str, *, partial: bool = False) -> str:
    """What a run has collected, as canonical JSON. A collector that is repeated writes the same object; one that found
    other parts, late and beside it, does not write over what the record has, nor takes it for its own."""
    return f"{run_results(tenant, job_id, run)}{sha256_of([written, partial])[:32]}"


def part_key(tenant: str, job_id: str, branch: str, sha: str) -> str:
    """What a branch gave for this very question (`part_sha`), in whichever run it did."""
    return f"{job_objects(tenant, job_id)}parts/{branch}/{sha}"


def part_sha(branch: str, task: str, written_input: str) -> str:
    """32 digits that tell a branch's question: its name, its task and its input as canonical JSON."""
    return sha256_of([branch, task, written_input])[:32]


def job_objects(tenant: str, job_id: str) -> str:
    """The prefix of all results of a job."""
    return f"{names.RESULTS_PREFIX}{tenant}/{job_id}/"


def answer_key(tenant: str, key: str) -> str:
    return f"{names.ANSWERS_PREFIX}{tenant}/{key}"


def context_key(tenant: str, key: str) -> str:
    return f"{names.CONTEXT_PREFIX}{tenant}/{key}"
