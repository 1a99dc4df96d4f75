"""``Model``: the base class of the schema's values.

A value is built from keywords or a dict and checked when it is built. It is mutable, and equals
another of its class with equal fields. The methods have pydantic's names because users of the
schema call them; pydantic itself is not needed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Self, TypeAlias, Union, get_args, get_origin

from msgspec import Struct
from msgspec.structs import astuple, fields

from ...errors import CorruptData, InvalidMessage
from ...message.sharing import copy_parts
from ...store.codec import dump, parse

JSONObject: TypeAlias = dict[str, Any]


class Model(Struct, kw_only=True):
    """A value of the schema. A wrong or unknown field raises ``InvalidMessage``."""

    def __post_init__(self) -> None:
        rules, usual = _rules(type(self))
        for rule, types, value in zip(rules, usual, astuple(self), strict=True):
            if type(value) not in types and not rule.allows(value):
                raise InvalidMessage(f"{type(self).__name__}.{rule.field} {rule.refusal(value)}")

    @classmethod
    def model_validate(cls, data: object) -> Self:
        """Build a value from a dict; an instance is returned unchanged."""
        if isinstance(data, cls):
            return data
        if type(data) is not dict and not isinstance(data, Mapping):
            raise InvalidMessage(f"{cls.__name__} must be a dict, got {type(data).__name__}")
        _check_names(cls, data)
        return cls(**data)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes) -> Self:
        """Build a value from JSON text."""
        try:
            return cls.model_validate(parse(json_data))
        except CorruptData as error:
            raise InvalidMessage(f"{cls.__name__} cannot be built from {error}") from error

    def model_dump(self, *, exclude_none: bool = False) -> JSONObject:
        """Return the value as a deep-copied dict, optionally without ``None`` fields."""
        return {
            name: _dumped(value, exclude_none)
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None or not exclude_none
        }

    def model_dump_json(self, *, exclude_none: bool = False) -> str:
        """Return the value as JSON text; raise ``NotSerializable`` if JSON cannot hold it."""
        return dump(self.model_dump(exclude_none=exclude_none))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with the changes in ``update``; a shallow one shares nested values."""
        copied = copy.deepcopy(self) if deep else copy.copy(self)
        if update is None:
            return copied
        kept = {name: getattr(copied, name) for name in self.__struct_fields__}
        return self.model_validate({**kept, **update})

    def dict(self, *, exclude_none: bool = False) -> JSONObject:
        """Return the value as a dict; the older name of ``model_dump``."""
        return self.model_dump(exclude_none=exclude_none)

    def json(self, *, exclude_none: bool = False) -> str:
        """Return the value as JSON text; the older name of ``model_dump_json``."""
        return self.model_dump_json(exclude_none=exclude_none)


def compact_dict(value: Model) -> dict[str, Any]:
    """Return the smallest dict that rebuilds a value: its type and the non-default fields.

    Nothing is copied.
    """
    fields_of_it = zip(_defaults(type(value)).items(), astuple(value), strict=True)
    return {
        name: held if type(held) is str else _compact(held)
        for (name, default), held in fields_of_it
        if name == "type" or not (held is default or _is_default(held, default))
    }


class _Rule(NamedTuple):
    """What one field may hold: values of certain types, or certain words."""

    field: str
    types: tuple[type, ...]
    words: tuple[str, ...]
    usual: frozenset[type]  # accepted without a further check

    def allows(self, value: object) -> bool:
        if self.words and isinstance(value, str):
            return value in self.words
        if isinstance(value, bool):  # a subclass of int
            return bool in self.types
        return isinstance(value, self.types)

    def refusal(self, value: object) -> str:
        if self.words and isinstance(value, str):
            return f"must be one of {', '.join(self.words)}, got {value[:40]!r}"
        names = [kind.__name__ for kind in self.types if kind is not NoneType]
        none = ["None"] if NoneType in self.types else []
        return f"must be {' or '.join(names + none)}, got {type(value).__name__}"


@cache
def _rules(cls: type[Model]) -> tuple[list[_Rule], list[frozenset[type]]]:
    """Return the rules of the fields, and the types that each accepts without a further check."""
    rules = [_rule(field.name, field.type) for field in fields(cls)]
    return rules, [rule.usual for rule in rules]


def _rule(field: str, annotation: Any) -> _Rule:
    is_union = get_origin(annotation) in (Union, UnionType)
    choices = get_args(annotation) if is_union else (annotation,)
    literals = [each for each in choices if get_origin(each) is Literal]
    words = tuple(word for each in literals for word in get_args(each))
    types = tuple(str if each in literals else get_origin(each) or each for each in choices)
    return _Rule(field, types, words, frozenset(types) - ({str} if words else set()))


@cache
def _defaults(cls: type[Model]) -> dict[str, object]:
    return {field.name: field.default for field in fields(cls)}


@cache
def _required(cls: type[Model]) -> list[str]:
    return [field.name for field in fields(cls) if field.required]


def _is_default(value: object, default: object) -> bool:
    return type(value) is type(default) and value == default


def _compact(value: object) -> Any:
    if isinstance(value, Model):
        return compact_dict(value)
    return [_compact(item) for item in value] if isinstance(value, list) else value


def _dumped(value: object, exclude_none: bool) -> Any:
    if isinstance(value, Model):
        return value.model_dump(exclude_none=exclude_none)
    if isinstance(value, list):
        return [_dumped(item, exclude_none) for item in value]
    return copy_parts(value)


def _check_names(cls: type[Model], data: Mapping[str, Any]) -> None:
    for name in data:
        if name not in cls.__struct_fields__:
            known = ", ".join(cls.__struct_fields__)
            raise InvalidMessage(f"{cls.__name__} has no field {str(name)[:40]!r}; it has {known}")
    for name in _required(cls):
        if name not in data:
            raise InvalidMessage(f"{cls.__name__} needs the field {name!r}")
