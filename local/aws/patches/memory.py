"""Forgetting what is gone, so that a runtime can stay up for days.

Stock moto keeps a list of every object of its models that was ever made (each stream record, each stored version of
an item, each message), for a dashboard that nobody looks at here.
"""

from __future__ import annotations

from typing import Any

from moto.core.common_models import BaseModel
from moto.s3.models import FakeKey

from local.aws.patches.patch import Patch


def _new(cls: type[BaseModel], *args: Any, **kwargs: Any) -> BaseModel:
    return object.__new__(cls)


def _dispose(key: FakeKey) -> None:
    """An object that nobody holds any more closes its file; stock complains that it was held too long."""
    key.dispose()


PATCHES = (
    Patch(BaseModel, "__new__", staticmethod(_new)),
    Patch(FakeKey, "__del__", _dispose),
)
