"""Options of an experiment: a frozen dataclass whose fields become command-line flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar, get_args, get_type_hints

from ...errors import InvalidInput

_Value = TypeVar("_Value")
_SAME = object()  # a quick run uses the default too


def option(
    default: _Value,
    help: str,
    *,
    quick: Any = _SAME,
    full: Any = _SAME,
    choices: Sequence[str] = (),
    flags: Sequence[str] = (),
    private: bool = False,
) -> _Value:
    """Return a field with its help text, values for quick and full runs, and flag aliases.

    A ``private`` option names a place on the user's machine; results never mention it.
    """
    metadata = {
        "help": help,
        "quick": quick,
        "full": full,
        "choices": tuple(choices),
        "flags": tuple(flags),
        "private": private,
    }
    made: _Value = field(default=default, metadata=metadata)
    return made


@dataclass(frozen=True)
class Flags:
    """Options as a frozen dataclass. A field's type sets what its flag takes; a tuple, several."""

    @classmethod
    def quick(cls) -> Self:
        """Return the smaller set: enough to check that it works."""
        return cls(**_varied(cls, "quick"))

    @classmethod
    def full(cls) -> Self:
        """Return the larger set, which ``memoryspace bench all`` runs."""
        return cls(**_varied(cls, "full"))


@dataclass(frozen=True)
class Options(Flags):
    """The options that every experiment has."""

    seeds: tuple[int, ...] = option(
        (1, 2, 3), "number of seeds, or the seeds themselves", quick=(1, 2)
    )


_Options = TypeVar("_Options", bound=Flags)


def _varied(kind: type[Flags], how: str) -> dict[str, Any]:
    return {
        each.name: each.metadata[how]
        for each in fields(kind)
        if each.metadata.get(how, _SAME) is not _SAME
    }


def public(options: Flags) -> dict[str, Any]:
    """Return the options that results may mention."""
    shown = [each.name for each in fields(options) if not each.metadata.get("private")]
    return {name: getattr(options, name) for name in shown}


def add_flags(parser: argparse.ArgumentParser, kind: type[Flags]) -> None:
    """Add one flag per field. Flags not given are omitted, and ``chosen`` fills them in."""
    hints = get_type_hints(kind)
    for each in fields(kind):
        shown = f"{each.metadata['help']} (default: {_shown(each.default)})"
        names = [f"--{each.name.replace('_', '-')}", *each.metadata["flags"]]
        arguments: dict[str, Any] = {"help": shown.replace("%", "%%"), "default": argparse.SUPPRESS}
        if each.metadata["choices"]:
            arguments["choices"] = each.metadata["choices"]
        parser.add_argument(*names, dest=each.name, **arguments, **_taking(hints[each.name]))


def chosen(
    kind: type[_Options], given: argparse.Namespace, *, quick: bool, full: bool = False
) -> _Options:
    """Return the options: defaults, then quick or full values, then flags."""
    said = {each.name: getattr(given, each.name) for each in fields(kind) if each.name in given}
    for name, value in said.items():
        if isinstance(value, list):
            said[name] = tuple(value)
    if "seeds" in said:
        said["seeds"] = seeds_of(said["seeds"])
    base = kind.quick() if quick else kind.full() if full else kind()
    return replace(base, **said)


def seeds_of(given: Sequence[int]) -> tuple[int, ...]:
    """Return the seeds: one number is a count, several are the seeds themselves."""
    if len(given) == 1:
        if given[0] < 1:
            raise InvalidInput(f"the number of seeds must be at least 1, got {given[0]}")
        return tuple(range(1, given[0] + 1))
    if len(set(given)) != len(given):
        raise InvalidInput("a seed was given twice; pass each seed once")
    return tuple(given)


def _taking(hint: Any) -> dict[str, Any]:
    """Return the argparse settings for an argument of this type."""
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
