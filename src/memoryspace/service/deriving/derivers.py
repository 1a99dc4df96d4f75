"""The derivers of one service: validation, the kinds they derive, and which apply to a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import InvalidInput
from ...record import check_id
from ..values.kinds import NO_MEMORIES
from ..values.memory import RAW, MemoryItem
from ..writing.secrecy import without_secrets
from .contract import AboutPeople, Deriver, Selective
from .jobs import owner_name


def all_of(deriver: Deriver | None, derivers: Sequence[Deriver]) -> tuple[Deriver, ...]:
    """Return the derivers a service was given, after checking that their names differ.

    Raises:
        InvalidInput: Both arguments were given, or two derivers share a name.
        TypeError: Something is not a ``Deriver``.
    """
    if deriver is not None and derivers:
        raise InvalidInput("pass `deriver=` or `derivers=`, not both")
    every = tuple(derivers) if deriver is None else (deriver,)
    names: set[str] = set()
    for each in every:
        if not isinstance(each, Deriver):
            raise TypeError(
                f"{type(each).__name__} is not a deriver: it needs name, kinds, is_quick and derive"
            )
        if owner_name(each.name) in names:
            raise InvalidInput(
                f"two derivers are called {owner_name(each.name)!r}, so their jobs could not be "
                "told apart; rename one of them"
            )
        names.add(owner_name(each.name))
    return every


def kinds_of(derivers: Sequence[Deriver]) -> tuple[str, ...]:
    """Return the kinds of memories that derivers derive, each once."""
    found: dict[str, None] = {}
    for deriver in derivers:
        found.update(dict.fromkeys(_kinds_of(deriver)))
    return tuple(found)


def is_about_people(deriver: Deriver) -> bool:
    """Return whether a deriver's memories index what people said about themselves."""
    return isinstance(deriver, AboutPeople) and deriver.is_about_people


def concerned(
    derivers: Sequence[Deriver], memories: Sequence[MemoryItem], details: Mapping[str, Any]
) -> list[Deriver]:
    """Return the derivers that apply to memories. A single deriver applies to all.

    Derivers never see secrets, so they are asked about the redacted memories.
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
            raise InvalidInput(f"{deriver.name} derives {kind!r}, a reserved kind; rename it")
    if not deriver.kinds:
        raise InvalidInput(f"{deriver.name} has no kinds; name the kinds of memories it derives")
    return tuple(deriver.kinds)
