"""Things that stock moto works out again for every call, though they never change or nobody needs them."""

from __future__ import annotations

import functools
import json
import secrets
from typing import Any

from moto import backends
from moto.core import responses as core_responses
from moto.core.responses import ActionContext, ActionResult
from moto.core.utils import method_names_from_class
from moto.dynamodb.responses import DynamoResult
from moto.sqs import models as sqs_models

from local.aws.patches.patch import Patch

_ITEMS = frozenset({"BatchGetItem", "DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"})


def _receipt_handle() -> str:
    """As opaque and as long as a handle of AWS's; stock draws 185 letters one by one."""
    return secrets.token_urlsafe(138)


def _execute_result(result: DynamoResult, context: ActionContext) -> Any:
    """Items are JSON already. Stock looks up every attribute of every item in the API's model under eight spellings,
    which is most of the time of a read; it still writes what is no plain JSON (bytes, dates)."""
    if context.operation_model.name in _ITEMS:
        try:
            return 200, {"Content-Type": "application/x-amz-json-1.0"}, json.dumps(result.result)
        except TypeError:
            pass
    return ActionResult.execute_result(result, context)


@functools.cache
def _list_of_moto_modules() -> tuple[str, ...]:
    """Stock looks at moto's own folder on the disk twice for each call: a third of the time of a write."""
    return tuple(_STOCK_LIST())


_STOCK_LIST = backends.list_of_moto_modules

PATCHES = (
    Patch(backends, "list_of_moto_modules", _list_of_moto_modules),
    # Inspects every method of a service's class on each call: a millisecond for S3.
    Patch(core_responses, "method_names_from_class", functools.cache(method_names_from_class)),
    Patch(DynamoResult, "execute_result", _execute_result),
    Patch(sqs_models, "generate_receipt_handle", _receipt_handle),
)
