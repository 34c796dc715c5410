"""Parts as they lie in the results bucket."""

from __future__ import annotations

import json
from typing import Any

from lambdas.core import ids
from lambdas.core.job import Job
from lambdas.core.ports import Missing, Results
from lambdas.core.workflows.parts import Part


def part_in(results: Results, job: Job, branch: str, part: Part) -> Any:
    """What a branch that is done has given. Raises Missing (also when what lies there is not it), Unavailable."""
    key = ids.part_key(job.tenant, job.id, branch, part.sha)
    try:
        return json.loads(results.get(key))
    except (ValueError, RecursionError) as error:
        raise Missing(key) from error
