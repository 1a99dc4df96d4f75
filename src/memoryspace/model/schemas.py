"""JSON schemas: traversal, strict ("closed") variants, and a small validator.

The validator checks the keywords that models violate: ``type``, ``required``, ``enum``, ``const``,
``properties``, ``items``, ``additionalProperties``, ``anyOf``, ``oneOf``, ``allOf`` and local
``$ref``. Other keywords are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

Schema: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[str | int, ...]

_PARTS = ("items", "additionalProperties", "not", "contains")  # keywords with one schema
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


class SchemaViolation(NamedTuple):
    """Where a document violates a schema, and what is wrong there."""

    place: Place
    what: str


def mapped(schema: Any, change: Callable[[Schema], Schema]) -> Any:
    """Return a schema with ``change`` applied to each schema in it, the innermost first."""
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
    """Return the names of all members in a schema."""
    return {name for part in parts_of(schema) for name in part.get("properties", ())}


def is_open(schema: Any) -> bool:
    """Return whether any object in it may have members that the schema does not name."""
    return any(
        part.get("additionalProperties", False) is not False
        or "patternProperties" in part
        or (part.get("type") == "object" and "properties" not in part)
        for part in parts_of(schema)
    )


def closed(schema: Any) -> Schema:
    """Return the schema without optional or unknown members.

    Servers that guarantee a schema require this.
    """

    def close(part: Schema) -> Schema:
        rest = {key: value for key, value in part.items() if key != "default"}
        if isinstance(part.get("properties"), Mapping):
            rest |= {"required": list(part["properties"]), "additionalProperties": False}
        return rest

    found: Schema = mapped(schema, close)
    return found


def path(place: Iterable[str | int], known: set[str]) -> str:
    """Return a place as ``$.steps[0].name``; unknown names are hidden, as they are user data."""
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{step if step in known else '…'}"
        for step in place
    )
    return "$" + "".join(steps)


def violation_of(schema: Mapping[str, Any], document: Any) -> SchemaViolation | None:
    """Return the first violation of a schema in a document; None if it matches."""
    return next(_Check(schema).violations(schema, document, (), 0), None)


class _Check:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def violations(
        self, schema: Any, value: Any, place: Place, depth: int
    ) -> Iterator[SchemaViolation]:
        if schema is False:
            yield SchemaViolation(place, "must not be present")
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return
        deeper = depth + 1
        if "$ref" in schema:
            yield from self.violations(self._resolved(schema["$ref"]), value, place, deeper)
        yield from _wrong_value(schema, value, place)
        yield from self._wrong_choice(schema, value, place, deeper)
        if isinstance(value, Mapping):
            yield from self._wrong_members(schema, value, place, deeper)
        if isinstance(value, list | tuple):
            for at, item in enumerate(value):
                yield from self.violations(schema.get("items", True), item, (*place, at), deeper)

    def _wrong_members(
        self, schema: Mapping[str, Any], value: Mapping[str, Any], place: Place, depth: int
    ) -> Iterator[SchemaViolation]:
        for name in schema.get("required", ()):
            if name not in value:
                yield SchemaViolation((*place, name), "is missing")
        known = schema.get("properties", {})
        others = "patternProperties" in schema or schema.get("additionalProperties", True)
        for name, member in value.items():
            yield from self.violations(known.get(name, others), member, (*place, name), depth)

    def _wrong_choice(
        self, schema: Mapping[str, Any], value: Any, place: Place, depth: int
    ) -> Iterator[SchemaViolation]:
        for part in schema.get("allOf", ()):
            yield from self.violations(part, value, place, depth)
        for word in ("anyOf", "oneOf"):
            parts = schema.get(word, ())
            if parts and all(any(self.violations(part, value, place, depth)) for part in parts):
                yield SchemaViolation(place, f"matches none of its {len(parts)} alternatives")

    def _resolved(self, reference: str) -> Any:
        found: Any = self._root
        for step in filter(None, reference.removeprefix("#").split("/")):
            name = step.replace("~1", "/").replace("~0", "~")
            found = found.get(name, True) if isinstance(found, Mapping) else True
        return found


def _wrong_value(schema: Mapping[str, Any], value: Any, place: Place) -> Iterator[SchemaViolation]:
    wanted = schema.get("type", ())
    types = [wanted] if isinstance(wanted, str) else list(wanted)
    if types and not any(_TYPES.get(each, lambda _: True)(value) for each in types):
        yield SchemaViolation(place, f"must be {' or '.join(types)}")
    if "enum" in schema and value not in schema["enum"]:
        yield SchemaViolation(place, f"must be one of its {len(schema['enum'])} allowed values")
    if "const" in schema and value != schema["const"]:
        yield SchemaViolation(place, "must be its only allowed value")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
