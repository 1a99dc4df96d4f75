"""The options of an experiment: a frozen dataclass, whose fields are the flags of its command."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar, get_args, get_type_hints

from ...errors import InvalidInput

_Value = TypeVar("_Value")
_SAME = object()  # a quick run takes the default, too


def option(
    default: _Value,
    help: str,
    *,
    quick: Any = _SAME,
    choices: Sequence[str] = (),
    flags: Sequence[str] = (),
    private: bool = False,
) -> _Value:
    """Return a field: what it is, what a quick run has instead, and other names of its flag.

    What is ``private`` says where somebody's things are: no result mentions it.
    """
    metadata = {
        "help": help,
        "quick": quick,
        "choices": tuple(choices),
        "flags": tuple(flags),
        "private": private,
    }
    made: _Value = field(default=default, metadata=metadata)
    return made


@dataclass(frozen=True)
class Options:
    """What every experiment takes. A field's type says what its flag takes: a tuple, several."""

    seeds: tuple[int, ...] = option((1, 2, 3), "how many seeds, or which", quick=(1, 2))

    @classmethod
    def quick(cls) -> Self:
        """Return the smaller set: enough to see whether it works."""
        smaller = {
            each.name: each.metadata["quick"]
            for each in fields(cls)
            if each.metadata.get("quick", _SAME) is not _SAME
        }
        return cls(**smaller)


_Options = TypeVar("_Options", bound=Options)


def public(options: Options) -> dict[str, Any]:
    """Return the options that results may tell."""
    shown = [each.name for each in fields(options) if not each.metadata.get("private")]
    return {name: getattr(options, name) for name in shown}


def add_flags(parser: argparse.ArgumentParser, kind: type[Options]) -> None:
    """Give a parser one flag a field. What is not given is left out, for ``chosen`` to fill in."""
    hints = get_type_hints(kind)
    for each in fields(kind):
        shown = f"{each.metadata['help']} (default: {_shown(each.default)})"
        names = [f"--{each.name.replace('_', '-')}", *each.metadata["flags"]]
        arguments: dict[str, Any] = {"help": shown.replace("%", "%%"), "default": argparse.SUPPRESS}
        if each.metadata["choices"]:
            arguments["choices"] = each.metadata["choices"]
        parser.add_argument(*names, dest=each.name, **arguments, **_taking(hints[each.name]))


def chosen(kind: type[_Options], given: argparse.Namespace, *, quick: bool) -> _Options:
    """Return the options: the defaults or those of a quick run, and what was given."""
    said = {each.name: getattr(given, each.name) for each in fields(kind) if each.name in given}
    for name, value in said.items():
        if isinstance(value, list):
            said[name] = tuple(value)
    if "seeds" in said:
        said["seeds"] = seeds_of(said["seeds"])
    return replace(kind.quick() if quick else kind(), **said)


def seeds_of(given: Sequence[int]) -> tuple[int, ...]:
    """Return the seeds: one number is how many, several are which."""
    if len(given) == 1:
        if given[0] < 1:
            raise InvalidInput(f"there must be at least one seed, got {given[0]}")
        return tuple(range(1, given[0] + 1))
    if len(set(given)) != len(given):
        raise InvalidInput("a seed was given twice: its figures would count double")
    return tuple(given)


def _taking(hint: Any) -> dict[str, Any]:
    """Return what an argument of this type takes."""
    if hint is bool:
        return {"action": argparse.BooleanOptionalAction}
    parts = [part for part in get_args(hint) if part not in (type(None), Ellipsis)]
    makers: dict[Any, Callable[[str], Any]] = {int: int, float: float, str: str, Path: Path}
    maker = makers[parts[0] if parts else hint]
    several = getattr(hint, "__origin__", None) is tuple
    return {"type": maker, **({"nargs": "+"} if several else {})}


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return " ".join(map(str, default)) or "none"
    return "none" if default is None else str(default)
