"""CloudFormation's intrinsic functions, applied to plain values. An unknown one is an error, never passed through."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from local.stack.errors import TemplateError

_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class _NoValue:
    """Stands for AWS::NoValue: whoever holds it leaves the entry out."""


NO_VALUE = _NoValue()


class Scope(Protocol):
    """What names in a template mean."""

    mappings: Mapping[str, Any]
    conditions: Mapping[str, Any]

    def ref(self, name: str) -> Any:
        """The value of a parameter, a pseudo parameter or a resource."""

    def attribute(self, logical_id: str, name: str) -> Any:
        """An attribute of a resource."""


class Resolver:
    """Replaces every intrinsic in a value by what it stands for in `scope`."""

    def __init__(self, scope: Scope) -> None:
        """`scope` may learn more names between calls."""
        self._scope = scope
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": self._get_attribute,
            "Fn::Join": self._join,
            "Fn::Sub": self._sub,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::If": self._if,
            "Fn::Base64": lambda argument: base64.b64encode(str(self.resolve(argument)).encode()).decode(),
            "Fn::FindInMap": self._find_in_map,
            "Fn::ImportValue": self._import_value,
        }

    def resolve(self, value: Any) -> Any:
        """A copy of `value` without intrinsics, and without what AWS::NoValue removes.

        TemplateError for an intrinsic that is not known.
        """
        if isinstance(value, list):
            return [item for item in map(self.resolve, value) if item is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        function = _function(value)
        if function is not None:
            if function not in self._functions:
                raise TemplateError(f"unknown intrinsic {function}")
            return self._functions[function](value[function])
        resolved = {name: self.resolve(item) for name, item in value.items()}
        return {name: item for name, item in resolved.items() if item is not NO_VALUE}

    def holds(self, name: str, above: tuple[str, ...] = ()) -> bool:
        """Whether the condition of that name is true."""
        if name in above:
            raise TemplateError(f"condition {name} depends on itself")
        if name not in self._scope.conditions:
            raise TemplateError(f"unknown condition {name}")
        return self._truth(self._scope.conditions[name], (*above, name))

    def _truth(self, condition: Any, above: tuple[str, ...]) -> bool:
        if not isinstance(condition, dict) or len(condition) != 1:
            raise TemplateError(f"not a condition: {condition!r}")
        function, argument = next(iter(condition.items()))
        if function == "Condition":
            return self.holds(argument, above)
        if function == "Fn::Equals":
            return bool(self.resolve(argument[0]) == self.resolve(argument[1]))
        if function not in ("Fn::Not", "Fn::And", "Fn::Or"):
            raise TemplateError(f"unknown condition function {function}")
        truths = [self._truth(part, above) for part in argument]
        return not truths[0] if function == "Fn::Not" else all(truths) if function == "Fn::And" else any(truths)

    def _ref(self, name: str) -> Any:
        return NO_VALUE if name == "AWS::NoValue" else self._scope.ref(name)

    def _get_attribute(self, argument: Any) -> Any:
        logical_id, name = argument.split(".", 1) if isinstance(argument, str) else argument
        return self._scope.attribute(logical_id, self.resolve(name))

    def _join(self, argument: Any) -> str:
        return str(argument[0]).join(str(item) for item in self.resolve(argument[1]))

    def _select(self, argument: Any) -> Any:
        items, index = self.resolve(argument[1]), int(self.resolve(argument[0]))
        if not 0 <= index < len(items):
            raise TemplateError(f"Fn::Select: no item {index} among {len(items)}")
        return items[index]

    def _split(self, argument: Any) -> list[str]:
        return str(self.resolve(argument[1])).split(argument[0])

    def _if(self, argument: Any) -> Any:
        return self.resolve(argument[1] if self.holds(argument[0]) else argument[2])

    def _find_in_map(self, argument: Any) -> Any:
        name, first, second = map(self.resolve, argument[:3])
        try:
            return self._scope.mappings[name][first][second]
        except KeyError as error:
            raise TemplateError(f"Fn::FindInMap: {name}.{first}.{second} is not in the mappings") from error

    def _import_value(self, argument: Any) -> Any:
        raise TemplateError(f"Fn::ImportValue {argument!r}: there is no other stack on this machine")

    def _sub(self, argument: Any) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else argument

        def value(match: re.Match[str]) -> str:
            name = match.group(1).strip()
            if name.startswith("!"):
                return "${" + name[1:] + "}"
            if name in own:
                return str(self.resolve(own[name]))
            if "." in name:
                return str(self._scope.attribute(*name.split(".", 1)))
            return str(self._ref(name))

        return _VARIABLE.sub(value, text)


def _function(value: dict[str, Any]) -> str | None:
    """The intrinsic that a dict is, if it is one."""
    if len(value) != 1:
        return None
    name = next(iter(value))
    return name if name == "Ref" or name.startswith("Fn::") else None


def names_in(value: Any) -> set[str]:
    """Every name that `value` refers to by Ref, GetAtt or Sub: parameters and pseudo parameters included."""
    if isinstance(value, list):
        return set().union(*map(names_in, value))
    if not isinstance(value, dict):
        return set()
    function = _function(value)
    if function == "Ref":
        return {value["Ref"]}
    found: set[str] = set()
    if function == "Fn::GetAtt":
        target = value[function]
        found.add(target.split(".", 1)[0] if isinstance(target, str) else target[0])
    if function == "Fn::Sub":
        text = value[function] if isinstance(value[function], str) else value[function][0]
        found |= {name.strip().split(".")[0] for name in _VARIABLE.findall(text) if not name.startswith("!")}
    return found.union(*map(names_in, value.values()))
