"""The protocol's conditions and changes in DynamoDB's own language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lambdas.adapters.attributes import to_attribute
from lambdas.core.conditions import Absent, All, AnyOf, Compare, Condition, In, Param, path
from lambdas.core.protocol import Change


class Expression:
    """DynamoDB expressions with their names and values; every name is a placeholder, as many are reserved words."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def arguments(self) -> dict[str, Any]:
        values = {"ExpressionAttributeValues": self._values} if self._values else {}
        return {"ExpressionAttributeNames": self._names, **values}

    def condition(self, condition: Condition, params: Mapping[str, Any]) -> str:
        match condition:
            case All((part,)) | AnyOf((part,)):
                return self.condition(part, params)  # DynamoDB refuses parentheses around what has some
            case All(parts):
                return "(" + " AND ".join(self.condition(part, params) for part in parts) + ")"
            case AnyOf(parts):
                return "(" + " OR ".join(self.condition(part, params) for part in parts) + ")"
            case Absent(field):
                return f"attribute_not_exists({self._path(path(field, params))})"
            case In(field, choices):
                return f"{self._name(field)} IN ({', '.join(self._value(choice) for choice in choices)})"
            case Compare(field, operator, operand):
                right = params[operand.name] if isinstance(operand, Param) else operand
                return f"{self._path(path(field, params))} {operator} {self._value(right)}"

    def update(self, change: Change) -> str:
        parts = []
        if change.sets:
            sets = (
                f"{self._path(path(name, change.params))} = {self._value(value)}" for name, value in change.sets.items()
            )
            parts.append("SET " + ", ".join(sets))
        if change.adds:
            adds = (f"{self._name(name)} {self._value(amount)}" for name, amount in change.adds.items())
            parts.append("ADD " + ", ".join(adds))
        if change.removes:
            parts.append("REMOVE " + ", ".join(self._name(name) for name in change.removes))
        return " ".join(parts)

    def _path(self, steps: tuple[str, ...]) -> str:
        return ".".join(self._name(step) for step in steps)

    def _name(self, field: str) -> str:
        """A placeholder has no hyphens; no attribute of ours has two underscores in a row."""
        placeholder = "#" + field.replace("-", "__")
        self._names[placeholder] = field
        return placeholder

    def _value(self, value: Any) -> str:
        placeholder = f":v{len(self._values)}"
        self._values[placeholder] = to_attribute(value)
        return placeholder
