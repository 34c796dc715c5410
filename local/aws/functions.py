"""Which function a call of the Lambda API means: by name, by ARN or by partial ARN, with or without a qualifier."""

from __future__ import annotations

import re

from local.aws.calls import Call
from local.stack.place import ACCOUNT

_NAMED = re.compile(
    r"(?:(?:arn:aws:lambda:(?P<region>[a-z0-9-]+):)?(?P<account>\d{12}):function:|function:)?"
    r"(?P<name>[A-Za-z0-9_-]+)(?::(?P<qualifier>[A-Za-z0-9$_-]+))?"
)


def function_arn(call: Call) -> str:
    """The ARN that IAM is asked about; with the qualifier, if there is one. What is no name is taken as it is."""
    given = call.path.partition("/functions/")[2].rpartition("/")[0]
    found = _NAMED.fullmatch(given)
    if found is None:
        return given
    region, account = found["region"] or call.region, found["account"] or ACCOUNT
    qualifier = call.query_parameters.get("Qualifier") or found["qualifier"]
    arn = f"arn:aws:lambda:{region}:{account}:function:{found['name']}"
    return f"{arn}:{qualifier}" if qualifier else arn
