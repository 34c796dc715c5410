"""The job that a tenant asks for by its id. Another tenant's is not there at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambdas.contracts.names import DELETED
from lambdas.core.job import Job, from_record
from lambdas.core.ports import JobStore
from lambdas.core.problems import Problem, gone, not_found

ID_MAX = 128


def is_id(job_id: str) -> bool:
    """Whether it may be asked for."""
    return 0 < len(job_id) <= ID_MAX


def record_of(tenant: str, job_id: str, store: JobStore) -> Mapping[str, Any] | None:
    """The tenant's own record, a tombstone included. Raises Unavailable, UnreadableRecord."""
    record = store.read(job_id) if is_id(job_id) else None
    return record if record is not None and record.get("tenant") == tenant else None


def job_in(record: Mapping[str, Any] | None, job_id: str) -> Job | Problem:
    """The job of a record that was found, or what is answered instead. Raises UnreadableRecord."""
    if record is None:
        return not_found()
    return gone(job_id) if record.get("status") == DELETED else from_record(record)


def job_of(tenant: str, job_id: str, store: JobStore) -> Job | Problem:
    """The tenant's own job. Raises Unavailable, UnreadableRecord."""
    return job_in(record_of(tenant, job_id, store), job_id)
