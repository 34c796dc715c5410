"""What a command says: data to stdout, for people or for programs; messages and progress to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

BESIDE_A_TERMINAL = 100_000  # columns: in a pipe each row is one line, nothing is folded or cut


class Output:
    """The two streams of one command. Nothing that it is handed can write control sequences to a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._data = _console(stderr=False)
        self._side = _console(stderr=True)

    def line(self, text: str) -> None:
        """One line of data, at once."""
        self._data.print(Text(clean(text)), soft_wrap=True)
        sys.stdout.flush()

    def piece(self, text: str) -> None:
        """Text as it comes, lines and all: the next one goes on where this ends."""
        sys.stdout.write("".join(c if c == "\n" else clean(c) for c in text))
        sys.stdout.flush()

    def document(self, value: Any) -> None:
        """JSON over several lines, for people; still JSON for everybody else."""
        is_wide = (sys.stdout.encoding or "").lower().startswith("utf")
        text = json.dumps(value, indent=2, ensure_ascii=not is_wide)
        shown = "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
        sys.stdout.write(shown + "\n")
        sys.stdout.flush()

    def json(self, value: Any) -> None:
        """One line of JSON. ASCII: the same bytes in every locale."""
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Rows under their columns; without rows there are no columns either."""
        if not rows:
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for number, column in enumerate(columns):
            table.add_column(column, no_wrap=number == 0, overflow="fold")
        for row in rows:
            table.add_row(*(Text(clean(_plain(cell))) for cell in row))
        self._data.print(table)

    def record(self, value: Mapping[str, Any]) -> None:
        """A JSON object for people: one line for each leaf, under the path that leads to it."""
        leaves = list(_leaves("", value))
        width = max((len(path) for path, _ in leaves), default=0)
        for path, leaf in leaves:
            self.line(f"{path:<{width}}  {leaf}".rstrip())

    def note(self, text: str) -> None:
        """To people, beside the data."""
        self._side.print(Text(clean(text)), soft_wrap=True)

    @contextmanager
    def waiting(self, text: str) -> Iterator[Status | None]:
        """A spinner whose text can be updated; nothing where nobody watches."""
        if not self._side.is_terminal:
            yield None
            return
        with self._side.status(Text(clean(text))) as status:
            yield status


def clean(text: str) -> str:
    """Text from elsewhere without what a terminal would obey: such characters are written as their escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def dollars(micros: object) -> str:
    """Micro-dollars as people read them."""
    return f"${micros / 1_000_000:,.6f}" if isinstance(micros, int) else ""


class _Stream(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the process with 1, as if what was asked about had ended badly."""
        raise  # noqa: PLE0704  it is called where the error is being handled


def _console(*, stderr: bool) -> Console:
    console = _Stream(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = BESIDE_A_TERMINAL
    return console


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str | int) else json.dumps(value, ensure_ascii=False)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}" if path else str(name), inner)
    elif isinstance(value, list) and any(isinstance(inner, Mapping | list) for inner in value):
        for number, inner in enumerate(value):
            yield from _leaves(f"{path}[{number}]", inner)
    elif isinstance(value, list):
        yield path, " ".join(_plain(inner) for inner in value)
    else:
        yield path, _plain(value)
