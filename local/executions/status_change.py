"""What Step Functions tells EventBridge of an execution: https://docs.aws.amazon.com/step-functions/latest/dg/cw-events.html"""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

from local.executions.execution import Execution

SOURCE, KIND = "aws.states", "Step Functions Execution Status Change"
LARGEST_BYTES = 248 * 1024
"""Of input and output together, as escaped JSON: above it the input is left out, and then the output."""


def status_change(execution: Execution) -> dict[str, Any]:
    """The event for its status as it is now."""
    when_s = execution.started_s if execution.stopped_s is None else execution.stopped_s
    input_text, output = _fitting(execution)
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": KIND,
        "source": SOURCE,
        "account": execution.arn.split(":")[4],
        "time": f"{datetime.fromtimestamp(when_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "region": execution.arn.split(":")[3],
        "resources": [execution.arn],
        "detail": {
            "executionArn": execution.arn,
            "stateMachineArn": execution.machine.arn,
            "name": execution.name,
            "status": execution.status,
            "startDate": _milliseconds(execution.started_s),
            "stopDate": None if execution.stopped_s is None else _milliseconds(execution.stopped_s),
            "input": input_text,
            "output": output,
            "inputDetails": {"included": input_text is not None},
            "outputDetails": None if execution.output is None else {"included": output is not None},
            "error": execution.error,
            "cause": execution.cause,
            "stateMachineVersionArn": None,
            "stateMachineAliasArn": None,
            "redriveCount": 0,
            "redriveDate": None,
        },
    }


def _fitting(execution: Execution) -> tuple[str | None, str | None]:
    weights = [len(json.dumps(text)) for text in (execution.input, execution.output or "")]
    input_text = execution.input if sum(weights) <= LARGEST_BYTES else None
    return input_text, execution.output if weights[1] <= LARGEST_BYTES else None


def _milliseconds(moment_s: float) -> int:
    return round(moment_s * 1000)
