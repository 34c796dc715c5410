"""What a job was accepted with: its input, from wherever it lies."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from lambdas.contracts.validation import Check
from lambdas.core import ids
from lambdas.core.inbox.uploaded_inputs import input_of
from lambdas.core.job import Job
from lambdas.core.outcomes import Permanent
from lambdas.core.policy import Limits
from lambdas.core.ports import Inputs, Missing, UploadedObjects


def accepted_input(job: Job, check: Check, inputs: Inputs, uploads: UploadedObjects, limits: Limits) -> Any:
    """The job's input; from S3 it must be, to the byte, what was accepted. Only an upload was not checked before.
    Raises Permanent, Unavailable."""
    if job.upload is not None:
        found = input_of(job.upload, uploads, limits)
        wrong = check(found)
        if wrong:
            raise Permanent(f"{wrong.pointer or '/'}: {wrong.detail}", "INVALID_INPUT")
        return found
    if job.input is not None:
        return json.loads(job.input)
    try:
        body = inputs.get(ids.input_key(job.tenant, job.id, job.body_sha))
    except Missing as error:
        raise Permanent("the input is no longer in the inputs bucket", "INPUT_MISSING") from error
    if hashlib.sha256(body).hexdigest() != job.body_sha:
        raise Permanent("the input in the inputs bucket is not what was accepted: its hash differs", "INPUT_CHANGED")
    return json.loads(body)["input"]
