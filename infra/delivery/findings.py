"""What the check says: what is broken and how to mend it, and what it could not look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from infra.delivery.template import Resource, Template


@dataclass(frozen=True)
class Problem:
    """Something to mend, at the resource that is to be changed."""

    resource: Resource
    message: str
    fix: str


@dataclass(frozen=True)
class Rule:
    """One rule of the contract, asked of every resource of these kinds.

    It yields problems, and raises CannotTell where a value is known only when deployed.
    """

    name: str
    kinds: tuple[str, ...]
    check: Callable[[Template, Resource], Iterable[Problem]]


@dataclass(frozen=True)
class Finding:
    """A rule that a resource breaks. `path` is its construct, where CDK wrote it down; `when` the conditions."""

    rule: str
    resource: str
    message: str
    fix: str
    path: str = ""
    when: str = ""

    def __str__(self) -> str:
        place = f"{self.resource} ({self.path})" if self.path else self.resource
        when = f" [when {self.when}]" if self.when else ""
        return f"{self.rule}: {place}: {self.message}{when}; {self.fix}"


@dataclass(frozen=True)
class Note:
    """A rule that could not be checked on a resource, or only in part, and why."""

    rule: str
    resource: str
    why: str


@dataclass
class Report:
    """All that there is to say of one template."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
