"""One safety line: where it stands, what is left when it is taken away, what it guards, and who must notice."""

from __future__ import annotations

from dataclasses import dataclass


class BadAnchor(ValueError):
    """The line does not stand exactly once in its file: the list and the source have drifted apart."""


@dataclass(frozen=True)
class SafetyLine:
    """`line`: the text as it stands in `file` (below lambdas/), exactly once; `without`: what stands there instead.
    `guards`: the invariant that breaks then. `tests`: files or functions of which at least one must turn red."""

    name: str
    file: str
    line: str
    without: str
    guards: str
    tests: tuple[str, ...]

    @property
    def path(self) -> str:
        return f"lambdas/{self.file}"

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def taken_from(self, source: str) -> str:
        """The source without this line. Raises BadAnchor."""
        found = source.count(self.line)
        if found != 1:
            raise BadAnchor(f"{self.name}: its line stands {found} times in {self.path}")
        return source.replace(self.line, self.without)

    def span_in(self, source: str) -> range:
        """The numbers of the lines that it takes. Raises BadAnchor."""
        if source.count(self.line) != 1:
            raise BadAnchor(f"{self.name}: its line does not stand once in {self.path}")
        first = source[: source.index(self.line)].count("\n") + 1
        return range(first, first + self.line.rstrip("\n").count("\n") + 1)
