"""Types of arguments: as JSON schemas for a model, and as values made of what it sends.

Whatever msgspec knows is known here, pydantic classes too, by the methods they have. An argument
of any other type is described as anything and handed on as it came.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from ..model.schemas import Schema, mapped

_UNKNOWN = (TypeError, NotImplementedError)  # what msgspec raises for a type it cannot do


def schema_of(annotation: Any) -> Schema:
    """Return a JSON schema; the ``$defs`` of all its parts stand at its root."""
    parts: Schema = {}

    def tidy(part: Schema) -> Schema:
        parts.update(part.get("$defs", {}))
        return _plain(part)

    schema: Schema = mapped(_described(annotation), tidy)
    return {**schema, "$defs": parts} if parts else schema


def value_of(given: Any, annotation: Any) -> Any:
    """Return what a model sent as a value of the type; raise ``ValidationError`` if it is none.

    Numbers and truths may come as text: models send them so.
    """
    try:
        return msgspec.convert(given, annotation, strict=False, dec_hook=_built)
    except _UNKNOWN:
        members = _members(annotation)
        return _first_that_fits(given, members) if members else given


def description_of(annotation: Any) -> str:
    """Return the description that stands in an ``Annotated``, or ""."""
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
    trouble = msgspec.ValidationError("It is of none of the types it may have")
    for member in members:
        try:
            return value_of(given, member)
        except msgspec.ValidationError as error:
            trouble = error
    raise trouble


def _plain(part: Schema) -> Schema:
    """Leave out titles, which classes get by themselves; say that the words of an enum are text."""
    plain = {key: value for key, value in part.items() if key not in ("title", "$defs")}
    if "enum" in plain and all(isinstance(each, str) for each in plain["enum"]):
        plain.setdefault("type", "string")
    return plain
