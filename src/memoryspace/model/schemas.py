"""JSON schemas: walked through, closed for servers that guarantee them, and checked.

Of a schema the words that models break are checked: ``type``, ``required``, ``enum``, ``const``,
``properties``, ``items``, ``additionalProperties``, ``anyOf``, ``oneOf``, ``allOf`` and ``$ref``
within the schema. The others are left to the reader of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

Schema: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[str | int, ...]

_PARTS = ("items", "additionalProperties", "not", "contains")  # a schema each
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_DEEPEST = 60  # a schema may refer to itself
_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": lambda value: _is_number(value),
}


class Trouble(NamedTuple):
    """Where a document is not of a schema, and what it should be there."""

    place: Place
    what: str


def mapped(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return a schema with each schema in it changed, the innermost first."""
    if not isinstance(schema, Mapping):
        return schema
    found = dict(schema)
    for key in _PARTS:
        if key in found:
            found[key] = mapped(found[key], change)
    for key in _LISTS:
        if isinstance(found.get(key), list):
            found[key] = [mapped(each, change) for each in found[key]]
    for key in _NAMED:
        if isinstance(found.get(key), Mapping):
            found[key] = {name: mapped(each, change) for name, each in found[key].items()}
    return change(found)


def parts_of(schema: Any) -> list[Schema]:
    """Return a schema and all schemas in it."""
    parts: list[Schema] = []

    def note(part: Schema) -> Schema:
        parts.append(part)
        return part

    mapped(schema, note)
    return parts


def names_in(schema: Any) -> set[str]:
    """Return the names of all members that a schema speaks of."""
    return {name for part in parts_of(schema) for name in part.get("properties", ())}


def is_open(schema: Any) -> bool:
    """Whether an object in it may have members that the schema does not name."""
    return any(
        part.get("additionalProperties", False) is not False
        or "patternProperties" in part
        or (part.get("type") == "object" and "properties" not in part)
        for part in parts_of(schema)
    )


def closed(schema: Any) -> Schema:
    """Return the schema with no member optional and none unknown.

    Servers that guarantee a schema ask for that.
    """

    def close(part: Schema) -> Schema:
        rest = {key: value for key, value in part.items() if key != "default"}
        if isinstance(part.get("properties"), Mapping):
            rest |= {"required": list(part["properties"]), "additionalProperties": False}
        return rest

    found: Schema = mapped(schema, close)
    return found


def path(place: Iterable[str | int], known: set[str]) -> str:
    """Return a place as ``$.steps[0].name``; a name that is not known is a document's own."""
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{step if step in known else '…'}"
        for step in place
    )
    return "$" + "".join(steps)


def trouble_of(schema: Mapping[str, Any], document: Any) -> Trouble | None:
    """Return the first place where a document is not of a schema; None if it is."""
    return next(_Check(schema).troubles(schema, document, (), 0), None)


class _Check:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def troubles(self, schema: Any, value: Any, place: Place, depth: int) -> Iterator[Trouble]:
        if schema is False:
            yield Trouble(place, "nothing may stand here")
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return
        deeper = depth + 1
        if "$ref" in schema:
            yield from self.troubles(self._resolved(schema["$ref"]), value, place, deeper)
        yield from _wrong_value(schema, value, place)
        yield from self._wrong_choice(schema, value, place, deeper)
        if isinstance(value, Mapping):
            yield from self._wrong_members(schema, value, place, deeper)
        if isinstance(value, list | tuple):
            for at, item in enumerate(value):
                yield from self.troubles(schema.get("items", True), item, (*place, at), deeper)

    def _wrong_members(
        self, schema: Mapping[str, Any], value: Mapping[str, Any], place: Place, depth: int
    ) -> Iterator[Trouble]:
        for name in schema.get("required", ()):
            if name not in value:
                yield Trouble((*place, name), "is missing")
        known = schema.get("properties", {})
        others = "patternProperties" in schema or schema.get("additionalProperties", True)
        for name, member in value.items():
            yield from self.troubles(known.get(name, others), member, (*place, name), depth)

    def _wrong_choice(
        self, schema: Mapping[str, Any], value: Any, place: Place, depth: int
    ) -> Iterator[Trouble]:
        for part in schema.get("allOf", ()):
            yield from self.troubles(part, value, place, depth)
        for word in ("anyOf", "oneOf"):
            parts = schema.get(word, ())
            if parts and all(any(self.troubles(part, value, place, depth)) for part in parts):
                yield Trouble(place, f"is none of the {len(parts)} forms it may have")

    def _resolved(self, reference: str) -> Any:
        found: Any = self._root
        for step in filter(None, reference.removeprefix("#").split("/")):
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name, True) if isinstance(found, Mapping) else True
        return found


def _wrong_value(schema: Mapping[str, Any], value: Any, place: Place) -> Iterator[Trouble]:
    wanted = schema.get("type", ())
    types = [wanted] if isinstance(wanted, str) else list(wanted)
    if types and not any(_TYPES.get(each, lambda _: True)(value) for each in types):
        yield Trouble(place, f"must be {' or '.join(types)}")
    if "enum" in schema and value not in schema["enum"]:
        yield Trouble(place, f"must be one of the {len(schema['enum'])} values it may have")
    if "const" in schema and value != schema["const"]:
        yield Trouble(place, "must be the one value it may have")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
