"""``ToolFunction``: a function with its JSON schema and the conversion of its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import InvalidInput, WrongForm
from ..model.schemas import Schema
from ..model.structured import validated
from .annotations import value_of
from .docstrings import read_docstring
from .signatures import AnyFunction, annotations_of, inner, parameters_of

BASIC = "basic"  # the group that is always active

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # accepted by all providers


class Arguments(NamedTuple):
    """Converted arguments, and the problems with them. With problems, do not call the function."""

    values: dict[str, Any]
    problems: list[str]


@dataclass(frozen=True, kw_only=True)
class ToolFunction:
    """A registered function. The program, not the model, sets the ``preset`` arguments."""

    name: str
    function: AnyFunction
    json_schema: Schema  # {"type": "function", "function": {…}}
    group: str = BASIC
    preset: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] | None = None  # None: the schema was passed in

    def arguments(self, given: Mapping[str, Any]) -> Arguments:
        """Convert the arguments of a call to the types that the function declares."""
        parameters = self.json_schema["function"]["parameters"]
        if self.annotations is None:
            values, problems = _checked(parameters, given)
        else:
            values, problems = _converted(self.annotations, given)
            absent = [name for name in parameters.get("required", ()) if name not in given]
            problems += [f"{name} is missing" for name in absent]
        return Arguments({**values, **self.preset}, problems)


def tool_function(
    function: AnyFunction,
    *,
    group: str = BASIC,
    preset: Mapping[str, Any] | None = None,
    name: str | None = None,
    description: str | None = None,
    json_schema: Mapping[str, Any] | None = None,
    is_long: bool = True,
) -> ToolFunction:
    """Return a tool with the given schema, or one made from its signature and docstring."""
    preset = dict(preset) if preset is not None else {}
    given = _function_in(json_schema)
    name = _checked_name(name if name is not None else given.get("name", _name_of(function)))
    doc = read_docstring(inner(function).__doc__)
    if description is None:
        own = f"{doc.short}\n\n{doc.long}".strip() if is_long else doc.short
        description = given.get("description", own)
    annotations = None if json_schema is not None else annotations_of(function, preset)
    if annotations is None:
        parameters = _without(given.get("parameters", {}), preset)
    else:
        parameters = parameters_of(function, annotations, doc)
    schema = {"name": name, "description": description, "parameters": parameters}
    return ToolFunction(
        name=name,
        function=function,
        json_schema={"type": "function", "function": schema},
        group=group,
        preset=preset,
        annotations=annotations,
    )


def _checked(parameters: Schema, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    try:
        return validated(parameters, given), []
    except WrongForm as error:
        return {}, [str(error)]


def _converted(
    annotations: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in given.items():
        if name not in annotations:
            problems.append(f"there is no argument {name!r}")
            continue
        try:
            values[name] = value_of(value, annotations[name])
        except Exception as error:  # a type's own validation may raise anything
            problems.append(f"{name}: {error}")
    return values, problems


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"a tool's name has 1 to 64 letters, digits, _ or -, got {name!r}; pass func_name"
        )
    return name


def _name_of(function: AnyFunction) -> str:
    return str(getattr(inner(function), "__name__", type(function).__name__))


def _function_in(json_schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if json_schema is None:
        return {}
    function = json_schema.get("function")
    if json_schema.get("type") != "function" or not isinstance(function, Mapping):
        raise InvalidInput('json_schema must be {"type": "function", "function": {…}}')
    return function


def _without(parameters: Mapping[str, Any], preset: Mapping[str, Any]) -> Schema:
    """Return a schema without the preset arguments."""
    known = parameters.get("properties", {})
    left = {key: part for key, part in known.items() if key not in preset}
    required = [key for key in parameters.get("required", ()) if key not in preset]
    schema: Schema = {**parameters, "type": "object", "properties": left, "required": required}
    if not required:
        del schema["required"]
    return schema
