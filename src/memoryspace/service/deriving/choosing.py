"""Several derivers on one service: which there are, what they make, and whom something concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InvalidInput
from ...record import check_id
from ..values.kinds import NO_MEMORIES
from ..values.memory import RAW, MemoryItem
from ..writing.secrecy import without_secrets
from .contract import AboutPeople, Deriver, Selective
from .jobs import known_as


def all_of(deriver: Deriver | None, derivers: Sequence[Deriver]) -> tuple[Deriver, ...]:
    """Return the derivers that a service was given, each of another name."""
    if deriver is not None and derivers:
        raise InvalidInput("give one deriver, or all of them as derivers, not both")
    every = tuple(derivers) if deriver is None else (deriver,)
    names: set[str] = set()
    for each in every:
        if not isinstance(each, Deriver):
            raise TypeError(
                f"a deriver has name, kinds, is_quick and derive; a {type(each).__name__} has not"
            )
        if known_as(each.name) in names:
            raise InvalidInput(
                f"two derivers are called {known_as(each.name)!r}: jobs would not know whose they "
                "are; name one of them otherwise"
            )
        names.add(known_as(each.name))
    return every


def kinds_of(derivers: Sequence[Deriver]) -> tuple[str, ...]:
    """Return the kinds of memories that derivers make, each once."""
    found: dict[str, None] = {}
    for deriver in derivers:
        found.update(dict.fromkeys(_kinds_of(deriver)))
    return tuple(found)


def is_about_people(deriver: Deriver) -> bool:
    """Tell whether what a deriver makes is an index over what somebody told of themselves."""
    return isinstance(deriver, AboutPeople) and deriver.is_about_people


def concerned(
    derivers: Sequence[Deriver], memories: Sequence[MemoryItem], details: Mapping[str, Any]
) -> list[Deriver]:
    """Return the derivers for whom there may be something in memories.

    One that is alone gets everything. Like all that derivers see, this is without secrets.
    """
    if len(derivers) == 1:
        return list(derivers)
    if any(each.holds_secret for each in memories):
        memories = without_secrets(memories)
    return [
        each
        for each in derivers
        if not isinstance(each, Selective) or each.concerns(memories, details)
    ]


def _kinds_of(deriver: Deriver) -> tuple[str, ...]:
    for kind in deriver.kinds:
        if check_id("a deriver's kind", kind) in {RAW, *NO_MEMORIES}:
            raise InvalidInput(f"{deriver.name} makes {kind!r}, which is taken; name it otherwise")
    if not deriver.kinds:
        raise InvalidInput(f"{deriver.name} names no kind of memory that it makes")
    return tuple(deriver.kinds)
