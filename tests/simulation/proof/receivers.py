"""Who deliveries are sent to, one place for each job: it fails once, and takes whatever comes then."""

from __future__ import annotations

from collections.abc import Callable

from tests.receivers import Behaviour, Came, Receiver, Says

STRANGER = "stranger"  # of another tenant: must hear nothing
OnCome = Callable[[str, Came], bool]


class Receivers(Receiver):
    """`on_come` hears of each call before it is answered: False takes it and drops the connection."""

    def __init__(self) -> None:
        super().__init__()
        self.on_come: OnCome = lambda place, came: True

    def place(self, name: str) -> str:
        """The URL of a new place."""
        return self.says(f"/{name}", Says(503), Says(204))

    def _next(self, path: str, came: Came) -> Behaviour:
        behaviour = super()._next(path, came)
        if not self.on_come(path.strip("/"), came):
            raise ConnectionAbortedError
        return behaviour
