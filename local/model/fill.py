"""Makes a value that satisfies a JSON Schema out of what a text says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count, islice
from typing import Any, Final

from local.model import numbers
from local.model.content import Content

_Maker = Callable[[dict[str, Any], str, int], Any]

_DEEPEST: Final = 8  # levels; recursive schemas end soon after
_MOST: Final = 1_000  # a schema may ask for no more items or characters than this
_FORMATS: Final = {
    "date": "1970-01-01",
    "date-time": "1970-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "email": "nobody@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "hostname": "example.com",
}


def fill(schema: Mapping[str, Any], content: Content) -> Any:
    """Keeps type, enum, const, required, the bounds of lengths, items and numbers, local `$ref`, and the
    first of alternatives. Patterns are beyond it."""
    return _Filler(schema, content).value(schema, "", 0)


class _Filler:
    def __init__(self, root: Mapping[str, Any], content: Content) -> None:
        self._root, self._content = root, content
        self._makers: dict[str, _Maker] = {
            "object": self._object,
            "array": self._array,
            "integer": self._integer,
            "number": self._number,
            "boolean": lambda schema, name, depth: False,
            "null": lambda schema, name, depth: None,
        }

    def value(self, given: Any, name: str, depth: int) -> Any:
        schema = self._resolved(given)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._content.choice(schema["enum"])
        maker: _Maker = self._makers.get(_kind(schema), self._string)
        return maker(schema, name, depth)

    def _object(self, schema: dict[str, Any], name: str, depth: int) -> dict[str, Any]:
        """All properties; of deep objects the required ones. Choices come first: reasons must fit them."""
        properties = dict(schema.get("properties") or {})
        required = list(schema.get("required") or [])
        names = [*properties, *(one for one in required if one not in properties)] if depth < _DEEPEST else required
        if depth > 2 * _DEEPEST:
            return {}
        schemas = {one: self._resolved(properties.get(one)) for one in names}
        values = {
            one: self.value(schemas[one], one, depth + 1)
            for one in sorted(names, key=lambda one: _is_free_text(schemas[one]))
        }
        return {one: values[one] for one in names}

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        least = min(schema.get("minItems", 0), _MOST)
        most = schema.get("maxItems", max(self._content.most(name), least))
        item = self._resolved(schema.get("items"))
        if item.get("enum"):
            return self._choices(item["enum"], max(least, min(1, most)))
        if _kind(item) == "object" and item.get("properties") and depth < _DEEPEST:
            return self._objects(item, name, depth, least, most)
        if not _is_free_text(item):
            wanted = max(least, min(1, most)) if depth < _DEEPEST else least
            return [self.value(item, name, depth + 1) for _ in range(wanted)]
        found = dict.fromkeys(_sized(text, item) for text in self._content.texts(name))
        return _padded(list(islice(found, max(least, min(most, self._content.most(name))))), least, item)

    def _objects(self, item: dict[str, Any], name: str, depth: int, least: int, most: int) -> list[Any]:
        """One for each thing that the text tells of; without any as few as may be."""
        properties = {one: self._resolved(schema) for one, schema in item["properties"].items()}
        contents = islice(self._content.about(name, properties), most)
        found = [_Filler(self._root, content).value(item, name, depth + 1) for content in contents]
        return [*found, *(self.value(item, name, depth + 1) for _ in range(least - len(found)))]

    def _choices(self, values: list[Any], wanted: int) -> list[Any]:
        first = self._content.choice(values)
        return [first, *(value for value in values if value != first), *values * wanted][:wanted]

    def _integer(self, schema: dict[str, Any], name: str, depth: int) -> int | float:
        return numbers.within(schema, "integer", self._wanted(schema, name))

    def _number(self, schema: dict[str, Any], name: str, depth: int) -> int | float:
        return numbers.within(schema, "number", self._wanted(schema, name))

    def _wanted(self, schema: Mapping[str, Any], name: str) -> float:
        """A place on the scale that the schema gives, where the name is that of a scale; else a count."""
        share, low, high = self._content.share(name), schema.get("minimum"), schema.get("maximum")
        if share is None or low is None or high is None:
            return self._content.number(name)
        return float(low + (high - low) * share)

    def _string(self, schema: dict[str, Any], name: str, depth: int) -> str:
        known = _FORMATS.get(schema.get("format", ""))
        return known if known is not None else _sized(self._content.text(name), schema)

    def _resolved(self, given: Any) -> dict[str, Any]:
        """The schema itself: references followed, `allOf` merged, the first alternative taken."""
        schema: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}
        for _ in range(_DEEPEST):
            if isinstance(schema.get("$ref"), str):
                schema = _merged(self._referred(schema.pop("$ref")), schema)
            elif schema.get("allOf"):
                for part in schema.pop("allOf"):
                    schema = _merged(schema, part)
            elif alternatives := schema.pop("anyOf", None) or schema.pop("oneOf", None):
                schema = _merged(schema, alternatives[0])
            else:
                break
        return schema

    def _referred(self, reference: str) -> Mapping[str, Any]:
        found: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, Mapping) or key not in found:
                return found if not part and isinstance(found, Mapping) else {}
            found = found[key]
        return found if isinstance(found, Mapping) else {}


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    hints = {"properties": "object", "required": "object", "items": "array", "minItems": "array"}
    hints |= {"minimum": "number", "maximum": "number"}
    return next((hints[key] for key in schema if key in hints), "string")


def _is_free_text(schema: Mapping[str, Any]) -> bool:
    fixed = "const" in schema or schema.get("enum") or schema.get("format") in _FORMATS
    return _kind(schema) == "string" and not fixed


def _merged(one: Mapping[str, Any], other: Any) -> dict[str, Any]:
    added: Mapping[str, Any] = other if isinstance(other, Mapping) else {}
    merged = {**one, **added}
    if "properties" in one and "properties" in added:
        merged["properties"] = {**one["properties"], **added["properties"]}
    if "required" in one and "required" in added:
        merged["required"] = list(dict.fromkeys([*one["required"], *added["required"]]))
    return merged


def _sized(text: str, schema: Mapping[str, Any]) -> str:
    least = min(schema.get("minLength", 0), _MOST)
    most = schema.get("maxLength", len(text) + least)
    from_text = text if len(text) <= most else text[: max(0, most - 1)] + "…"[:most]
    return from_text.ljust(least, ".")


def _padded(values: list[Any], least: int, item: Mapping[str, Any]) -> list[Any]:
    """As many as asked for, each different, when the text does not have so many."""
    numbered = (_sized(f"{number}", item) for number in count(1))
    spare = islice(numbered, 2 * (least + len(values)))
    fresh = (value for value in spare if value not in values)
    return [*values, *islice(fresh, max(0, least - len(values)))]
