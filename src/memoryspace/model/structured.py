"""Schemas and validation of structured answers: pydantic models, msgspec Structs, JSON schemas.

Pydantic classes are recognised by their methods, so pydantic itself is not needed. No error shows
the content of a document, which may be user data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import WrongForm
from .base import StructuredModel
from .schemas import Schema, mapped, names_in, parts_of, path, violation_of

_REF = "#/$defs/{name}"
_MOST_SHOWN = 5  # places
_PLACE = re.compile(r" - at `(\$[^`]*)`$")
_STEP = re.compile(r"\.([^.\[]+)")
_HARMLESS = re.compile(r"Expected `[^`]*`, got `[^`]*`|Object missing required field `\w+`")


def json_schema_of(structured_model: StructuredModel) -> Schema:
    """Return the JSON schema of a structured answer, with an object at its root.

    Generated titles are left out, because models do not need them.

    Raises:
        TypeError: If the type is not supported, or is not an object.
    """
    if isinstance(structured_model, Mapping):
        return dict(structured_model)
    if _is_pydantic(structured_model):
        found: Schema = mapped(structured_model.model_json_schema(), _without_title)
    else:
        found = mapped(_schema_by_msgspec(structured_model), _without_title)
    if found.get("type") != "object" and "$ref" not in found:
        raise TypeError(f"structured_model must be an object in JSON, got {structured_model!r}")
    return found


def validated(structured_model: StructuredModel, document: Any) -> dict[str, Any]:
    """Validate a document and return it as JSON-compatible data, with defaults filled in.

    Raises:
        WrongForm: If the document does not match. The error says where, and never shows content.
    """
    if isinstance(structured_model, Mapping):
        return _validated_by_schema(structured_model, document)
    if _is_pydantic(structured_model):
        return _validated_by_pydantic(structured_model, document)
    return _validated_by_msgspec(structured_model, document)


def _validated_by_schema(schema: Mapping[str, Any], document: Any) -> dict[str, Any]:
    violation = violation_of(schema, document)
    if violation is not None:
        raise _wrong([f"{path(violation.place, names_in(schema))} {violation.what}"])
    return _object(document)


def _validated_by_pydantic(model: Any, document: Any) -> dict[str, Any]:
    try:
        found = model.model_validate(document)
        return _object(found.model_dump(mode="json", by_alias=True))
    except WrongForm:
        raise
    except ValueError as error:
        listed = getattr(error, "errors", None)  # its messages may quote content
        places = [(each["loc"], each["type"]) for each in listed()] if callable(listed) else []
    known = names_in(json_schema_of(model))
    raise _wrong([f"{path(place, known)} {kind}" for place, kind in places])


def _validated_by_msgspec(model: type[Any], document: Any) -> dict[str, Any]:
    try:
        found = msgspec.convert(document, model, strict=False)
        return _object(msgspec.to_builtins(found))
    except msgspec.ValidationError as error:
        text = str(error)
    raise _wrong([_harmless(text, names_in(json_schema_of(model)))])


def _harmless(text: str, known: set[str]) -> str:
    """Return msgspec's message without names and values quoted from the document."""
    what, place = _HARMLESS.match(text), _PLACE.search(text)
    is_known = place is not None and known.issuperset(_STEP.findall(place[1]))
    where = place[1] if place is not None and is_known else "$"
    return f"{where} {what[0].replace('`', '')}" if what is not None else f"wrong at {where}"


def _wrong(places: list[str]) -> WrongForm:
    """Return an error without a cause, because the cause contains the document."""
    shown = "; ".join(places[:_MOST_SHOWN])
    return WrongForm(f"the answer does not match the schema: {shown or 'a custom check failed'}")


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise _wrong(["$ must be an object"])
    return dict(document)


def _schema_by_msgspec(model: type[Any]) -> Schema:
    try:
        (root,), parts = msgspec.json.schema_components([model], ref_template=_REF)
    except TypeError as error:
        raise TypeError(
            f"structured_model must be a pydantic model, a msgspec Struct or a JSON schema, "
            f"got {model!r}"
        ) from error
    name = str(root.get("$ref", "")).rsplit("/", 1)[-1]
    is_tree = any(each.get("$ref") == root.get("$ref") for each in parts_of({"$defs": parts})[:-1])
    rest = {key: part for key, part in parts.items() if key != name or is_tree}
    return {**parts.get(name, root), **({"$defs": rest} if rest else {})}


def _is_pydantic(model: Any) -> bool:
    return hasattr(model, "model_json_schema") and hasattr(model, "model_validate")


def _without_title(part: Schema) -> Schema:
    return {key: value for key, value in part.items() if key != "title"}
