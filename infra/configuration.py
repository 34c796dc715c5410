"""Reads the settings: defaults, then cdk.json, then the command line; refuses what cannot be deployed."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from infra.limits import problems
from infra.settings import Settings

DEFAULT_REGION = "us-east-1"
DEFAULT_ENVIRONMENT = "prod"
_SETTING = re.compile(r"[a-z][a-z_0-9]*")  # CDK's own context keys all have a colon, an @ or a hyphen
_OURS = ("settings", "environments", "env")


class SettingsError(Exception):
    """The settings cannot be deployed. Says everything that is wrong with them, and what to do."""


def load(context: Mapping[str, Any], region: str | None = None, priced: Container[str] | None = None) -> Settings:
    """The settings of the environment that `-c env=…` names. Raises SettingsError.

    `region` is what the credentials say, used unless the settings name one; without either it is us-east-1.
    `priced` has the models whose price is known; None leaves that open.
    """
    env, written = _collect(context)
    values = {"env": env, **written}
    values["region"] = values.get("region") or region or DEFAULT_REGION
    wrong = [f"unknown setting {name!r}: {_advice(name)}" for name in values if name not in _KIND_OF]
    typed = {name: value for name, value in values.items() if name in _KIND_OF}
    for name, value in typed.items():
        expected, convert = _KINDS[_KIND_OF[name]]
        try:
            typed[name] = convert(value)
        except TypeError:
            wrong.append(f"{name} must be {expected}, not {json.dumps(value)}")
    settings = None if wrong else Settings(**typed)
    wrong = wrong if settings is None else problems(settings, priced)
    if wrong or settings is None:
        raise SettingsError("\n  * ".join(["these settings cannot be deployed:", *wrong]))
    return settings


def _collect(context: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name of the environment and its settings as written, later ones over earlier ones."""
    common, environments = (_object(context.get(key, {}), key) for key in ("settings", "environments"))
    env = context.get("env", DEFAULT_ENVIRONMENT)
    if not isinstance(env, str) or env not in environments:
        known = ", ".join(sorted(environments)) or "none"
        raise SettingsError(f'unknown environment {env!r}: cdk.json has {known}; add it to "environments" there')
    spoken = {name: _word(value) for name, value in context.items() if _SETTING.fullmatch(name)}
    own = _object(environments[env], f"environments.{env}")
    return env, {**common, **own, **{k: v for k, v in spoken.items() if k not in _OURS}}


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SettingsError(
            f"{where} in cdk.json must be an object of settings, {{}} for none, not {json.dumps(value)}"
        )
    return value


def _word(value: Any) -> Any:
    """`-c name=value` arrives as text: read numbers, true and false, lists and objects as JSON."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _advice(name: str) -> str:
    closest = difflib.get_close_matches(name, _KIND_OF, n=1)
    return f"did you mean {closest[0]!r}?" if closest else "docs/deploying.md lists them all"


def _exactly(kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:  # True is an int, but no number of seconds
            raise TypeError
        return value

    return check


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise TypeError
    return tuple(value)


def _names(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict) or not all(isinstance(word, str) for word in value.values()):
        raise TypeError
    return MappingProxyType(dict(value))


def _objects(value: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, dict):
        raise TypeError
    return MappingProxyType(dict(value))


_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "bool": ("true or false", _exactly(bool)),
    "int": ("a whole number", _exactly(int)),
    "str": ("text", _exactly(str)),
    "tuple[str, ...]": ("a list of texts", _texts),
    "Mapping[str, str]": ("an object of texts", _names),
    "Mapping[str, Mapping[str, Any]]": ("an object of objects", _objects),
}
_KIND_OF = {one.name: str(one.type) for one in fields(Settings)}
