"""``ToolFunction``: a function as a model sees it, and the model's arguments as it takes them."""

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

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what all providers take


class Arguments(NamedTuple):
    """Arguments to call a function with, and what is wrong with them: then it is not called."""

    values: dict[str, Any]
    troubles: list[str]


@dataclass(frozen=True, kw_only=True)
class ToolFunction:
    """A registered function. ``preset`` arguments are given by the program, not by the model."""

    name: str
    function: AnyFunction
    json_schema: Schema  # as providers take it: {"type": "function", "function": {…}}
    group: str = BASIC
    preset: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] | None = None  # None: the schema is the caller's own

    def arguments(self, given: Mapping[str, Any]) -> Arguments:
        """Return the arguments of a call, each as a value of the type that the function asks."""
        parameters = self.json_schema["function"]["parameters"]
        if self.annotations is None:
            values, troubles = _checked(parameters, given)
        else:
            values, troubles = _read(self.annotations, given)
            absent = [name for name in parameters.get("required", ()) if name not in given]
            troubles += [f"{name} is missing" for name in absent]
        return Arguments({**values, **self.preset}, troubles)


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
    """Return a function with the schema of its signature and docstring, or with the one given."""
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


def _read(
    annotations: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    troubles: list[str] = []
    for name, value in given.items():
        if name not in annotations:
            troubles.append(f"there is no argument {name!r}")
            continue
        try:
            values[name] = value_of(value, annotations[name])
        except Exception as error:  # a type's own checks may raise anything
            troubles.append(f"{name}: {error}")
    return values, troubles


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
    """Return a schema of the caller's own without the arguments that are preset."""
    known = parameters.get("properties", {})
    left = {key: part for key, part in known.items() if key not in preset}
    required = [key for key in parameters.get("required", ()) if key not in preset]
    schema: Schema = {**parameters, "type": "object", "properties": left, "required": required}
    if not required:
        del schema["required"]
    return schema
