"""Settings from several places: a file, the environment and arguments, the later ones first.

The settings are the fields of a struct. Every value is checked against its field's type, whatever
place it is from, and every place that names an unknown setting is told the nearest known one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import isnan, nan
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from .errors import InvalidInput

S = TypeVar("S", bound=Struct)

_TRUTHS = {"1": True, "true": True, "yes": True, "on": True}
_TRUTHS |= {"0": False, "false": False, "no": False, "off": False}
_MOST = 1 << 20  # bytes of a file of settings


class Gathered(Struct, Generic[S], frozen=True):
    """Settings, and where each of them is from.

    Attributes:
        settings: The settings.
        sources: For each setting the place that its value is from, in words.
    """

    settings: S
    sources: dict[str, str]


def gathered(
    form: type[S],
    *,
    file: Path | None = None,
    table: str | None = None,
    environment: Mapping[str, str],
    prefix: str,
    others: Collection[str] = (),
    given: Mapping[str, Any],
) -> Gathered[S]:
    """Return the settings that arguments, the environment and a file name, in this order.

    Args:
        form: The struct whose fields are the settings.
        file: A TOML file.
        table: The table of the file that holds the settings; its top level if ``None``. A top level
            may have further tables.
        environment: The variables.
        prefix: What the names of the variables begin with.
        others: Names after the prefix, or beginnings of names that end with ``*``, of variables
            that are no settings.
        given: The arguments; ``None`` stands for one that was not passed.

    Raises:
        InvalidInput: A place cannot be read, names an unknown setting or has an invalid value.
    """
    types = get_type_hints(form)
    names = form.__struct_fields__
    values: dict[str, Any] = {}
    sources = dict.fromkeys(names, "default")
    places = (
        *_in_file(file, table, names),
        *_in_environment(environment, prefix, others, types, names),
        *((name, value, "argument") for name, value in given.items() if value is not None),
    )
    for name, value, source in places:
        if name not in names:
            raise _unknown(name, source, names)
        values[name], sources[name] = value, source
    return Gathered(_built(form, values, sources), sources)


def check_types(settings: Struct) -> None:
    """Raise ``InvalidInput`` if a value of a struct is not of its field's type."""
    for name, kind in get_type_hints(type(settings)).items():
        _checked(name, getattr(settings, name), kind)


def from_text(what: str, text: str, kind: Any) -> Any:
    """Return the value of some type that a text stands for; the text is not shown in errors."""
    for each in _alternatives(kind):
        try:
            return _as(each, text)
        except ValueError:
            continue
    raise InvalidInput(f"{what} must be {_in_words(kind)}, but its value cannot be read as that")


def _in_file(
    file: Path | None, table: str | None, names: Collection[str]
) -> list[tuple[str, Any, str]]:
    if file is None:
        return []
    found = _parsed(file)
    where = str(file)
    if table is not None:
        found = found.get(table, {})
        where = f"{file} [{table}]"
        if not isinstance(found, dict):
            raise InvalidInput(f"{table!r} in {file} must be a table: [{table}]")
    return [
        (name.replace("-", "_"), value, where)
        for name, value in found.items()
        if not (table is None and isinstance(value, dict) and name not in names)
    ]


def _parsed(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST + 1)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from error
    if len(data) > _MOST:
        raise InvalidInput(f"{file} has more than {_MOST} bytes; is it a file of settings?")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, of a number without end
        raise InvalidInput(f"{file} is not valid TOML: {error}") from None


def _in_environment(
    environment: Mapping[str, str],
    prefix: str,
    others: Collection[str],
    types: Mapping[str, Any],
    names: Collection[str],
) -> list[tuple[str, Any, str]]:
    starts = tuple(each[:-1] for each in others if each.endswith("*"))
    found = []
    for variable, text in sorted(environment.items()):
        rest = variable.removeprefix(prefix)
        if rest == variable or rest in others or (starts and rest.startswith(starts)):
            continue
        name = rest.lower()
        if name not in names:
            raise _unknown(name, f"the variable {variable}", names)
        found.append((name, from_text(variable, text, types[name]), f"the variable {variable}"))
    return found


def _unknown(name: str, source: str, names: Collection[str]) -> InvalidInput:
    near = get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(names))}"
    return InvalidInput(f"{source}: there is no setting {name!r}; {hint}")


def _built(form: type[S], values: Mapping[str, Any], sources: Mapping[str, str]) -> S:
    types = get_type_hints(form)
    checked = {
        name: _checked(name, value, types[name], f"{sources[name]}: ")
        for name, value in values.items()
    }
    for each in fields(form):
        if each.required and each.name not in checked:
            raise InvalidInput(f"the setting {each.name!r} has no value")
    try:
        return form(**checked)
    except InvalidInput as error:  # of the form's own check; it begins with the setting's name
        name = str(error).split(maxsplit=1)[0]
        if name not in checked:
            raise
        raise InvalidInput(f"{sources[name]}: {error}") from None


def _checked(name: str, value: Any, kind: Any, place: str = "") -> Any:
    try:
        found = msgspec.convert(value, kind)
    except msgspec.ValidationError:
        found = nan
    if isinstance(found, float) and isnan(found):
        may_be_secret = str in _alternatives(kind)
        got = f"a value of type {type(value).__name__}" if may_be_secret else f"{value!r:.60}"
        raise InvalidInput(f"{place}{name} must be {_in_words(kind)}, got {got}")
    return found


def _alternatives(kind: Any) -> list[Any]:
    """Return the members of a union, ``str`` and ``None`` last: any text is a ``str``."""
    each = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return sorted(each, key=lambda one: (one is str, one is NoneType))


def _as(kind: Any, text: str) -> Any:
    if kind is bool:
        if text.lower() not in _TRUTHS:
            raise ValueError(text)
        return _TRUTHS[text.lower()]
    if kind in (int, float, str):
        return kind(text)
    if kind is NoneType and text.lower() in ("", "none"):
        return None
    if get_origin(kind) is Literal and text in get_args(kind):
        return text
    raise ValueError(text)


def _in_words(kind: Any) -> str:
    """Return what values a type has, for people."""
    words = []
    for each in _alternatives(kind):
        if get_origin(each) is Literal:
            words += [repr(one) for one in get_args(each)]
        else:
            words.append(_WORDS.get(each, getattr(each, "__name__", str(each))))
    return " or ".join(words)


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_WORDS[NoneType] = "none"
