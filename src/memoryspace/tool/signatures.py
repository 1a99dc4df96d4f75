"""JSON schemas of arguments, from a function's signature and docstring."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, TypeAlias, get_type_hints

from ..errors import InvalidInput
from ..model.schemas import Schema
from .annotations import description_of, schema_of
from .docstrings import Doc

AnyFunction: TypeAlias = Callable[..., Any]

_NOT_EXPOSED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def inner(function: AnyFunction) -> AnyFunction:
    """Return the function within a ``partial``, or the function itself."""
    return inner(function.func) if isinstance(function, functools.partial) else function


def annotations_of(function: AnyFunction, preset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of each argument that a model may pass; ``Any`` where it is unknown.

    ``self``, ``*args``, ``**kwargs`` and preset arguments, also those of a ``partial``, are left
    out.
    """
    hints, fixed = _hints(inner(function)), {**_fixed(function), **preset}
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise InvalidInput(f"argument {name!r} of a tool can only be given by position")
    return {
        name: hints.get(name, Any)
        for name, parameter in parameters.items()
        if parameter.kind not in _NOT_EXPOSED and name not in fixed
    }


def parameters_of(function: AnyFunction, annotations: Mapping[str, Any], doc: Doc) -> Schema:
    """Return the JSON schema of the arguments."""
    signature = inspect.signature(function).parameters
    defaults = {name: signature[name].default for name in annotations}
    properties = {
        name: _property(annotation, doc.arguments.get(name, ""), defaults[name])
        for name, annotation in annotations.items()
    }
    parts = {
        key: part for each in properties.values() for key, part in each.pop("$defs", {}).items()
    }
    required = [name for name in annotations if defaults[name] is inspect.Parameter.empty]
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if parts:
        schema["$defs"] = parts
    return schema


def _hints(function: AnyFunction) -> dict[str, Any]:
    called: Any = function if inspect.isroutine(function) else type(function).__call__
    called = inspect.unwrap(called)
    names = getattr(called, "__globals__", {})
    written = getattr(called, "__annotations__", {})
    return {argument: _hint(annotation, names) for argument, annotation in written.items()}


def _hint(annotation: Any, names: dict[str, Any]) -> Any:
    written = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(written, names, include_extras=True)["it"]
    except Exception:  # an annotation that cannot be evaluated at run time
        return Any


def _fixed(function: AnyFunction) -> dict[str, Any]:
    if not isinstance(function, functools.partial):
        return {}
    return {**_fixed(function.func), **function.keywords}


def _property(annotation: Any, description: str, default: Any) -> Schema:
    schema = schema_of(annotation)
    description = description or description_of(annotation)
    if description:
        schema["description"] = description
    if default is not inspect.Parameter.empty and _is_json(default):
        schema["default"] = default
    return schema


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
