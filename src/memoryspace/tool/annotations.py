"""Argument types: converted to JSON schemas, and back from what a model sends to values.

Supports every type that msgspec supports, and pydantic classes through their methods. An argument
of any other type gets an empty schema and is passed on unchanged.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from ..model.schemas import Schema, mapped

_UNKNOWN = (TypeError, NotImplementedError)  # raised by msgspec for an unsupported type


def schema_of(annotation: Any) -> Schema:
    """Return the JSON schema of a type, with the ``$defs`` of all its parts at the root."""
    parts: Schema = {}

    def tidy(part: Schema) -> Schema:
        parts.update(part.get("$defs", {}))
        return _plain(part)

    schema: Schema = mapped(_described(annotation), tidy)
    return {**schema, "$defs": parts} if parts else schema


def value_of(given: Any, annotation: Any) -> Any:
    """Convert what a model sent to a value of the type; raise ``ValidationError`` if impossible.

    Numbers and booleans may be sent as text, as models often do.
    """
    try:
        return msgspec.convert(given, annotation, strict=False, dec_hook=_built)
    except _UNKNOWN:
        members = _members(annotation)
        return _first_that_fits(given, members) if members else given


def description_of(annotation: Any) -> str:
    """Return the description in an ``Annotated`` type, or ""."""
    if get_origin(annotation) is not Annotated:
        return ""
    notes = [getattr(note, "description", None) for note in get_args(annotation)[1:]]
    return next((note for note in notes if isinstance(note, str)), "")


def _described(annotation: Any) -> Schema:
    try:
        (schema,), parts = msgspec.json.schema_components(
            [annotation], schema_hook=_hook, ref_template="#/$defs/{name}"
        )
    except _UNKNOWN:
        members = _members(annotation)
        return {"anyOf": [_described(each) for each in members]} if members else {}
    return {**schema, "$defs": parts} if parts else schema


def _hook(kind: type) -> Schema:
    describe = getattr(kind, "model_json_schema", None)
    if describe is None:
        raise NotImplementedError
    schema: Schema = describe()
    return schema


def _built(kind: type, given: Any) -> Any:
    build = getattr(kind, "model_validate", None)
    if build is None:
        raise NotImplementedError
    return build(given)


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()


def _first_that_fits(given: Any, members: tuple[Any, ...]) -> Any:
    trouble = msgspec.ValidationError("It matches none of the allowed types")
    for member in members:
        try:
            return value_of(given, member)
        except msgspec.ValidationError as error:
            trouble = error
    raise trouble


def _plain(part: Schema) -> Schema:
    """Remove generated titles; add the type ``string`` to enums of strings."""
    plain = {key: value for key, value in part.items() if key not in ("title", "$defs")}
    if "enum" in plain and all(isinstance(each, str) for each in plain["enum"]):
        plain.setdefault("type", "string")
    return plain
