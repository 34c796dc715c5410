"""Plug-ins that ask a source what it has sent: one folder each, with a `source.py`. Nothing is edited to add one."""

from __future__ import annotations

import importlib
from pathlib import Path

from lambdas.core.inbox.listing import Pages

HERE = Path(__file__).parent
PLUGIN = "plugin"  # in a declaration's `list`: the folder's name


class BadPlugin(Exception):
    """A declared plug-in that is not there, or does not keep the promise."""


def names() -> list[str]:
    return sorted(place.parent.name for place in HERE.glob("*/source.py"))


def load(name: str) -> Pages:
    """The function `pages` of `lambdas/sources/<name>/source.py`. Raises BadPlugin."""
    if name not in names():
        raise BadPlugin(f"there is no lambdas/sources/{name}/source.py; there are: {', '.join(names()) or 'none'}")
    try:
        module = importlib.import_module(f"{__name__}.{name}.source")
        pages: Pages = module.pages
    except Exception as error:
        raise BadPlugin(f"lambdas/sources/{name}/source.py: {type(error).__name__}: {error}") from error
    return pages
