"""A replacement of one attribute of moto that can be taken back."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patch:
    """Puts `value` in the place of `owner.name` while installed."""

    def __init__(self, owner: Any, name: str, value: Any) -> None:
        """Nothing is changed yet. A name that `owner` lacks is added, and deleted again by `remove`."""
        self.owner = owner
        self.name = name
        self.value = value
        self.stock = vars(owner).get(name, _MISSING)
        self.installed = False

    def install(self) -> None:
        """Replace."""
        setattr(self.owner, self.name, self.value)
        self.installed = True

    def remove(self) -> None:
        """Put the original back."""
        if not self.installed:
            return
        if self.stock is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.stock)
        self.installed = False
