"""Rejections: what must not be derived again from the same messages.

A rejection replaces a memory that a reviewer rejected, in one step, or stands beside one that was
deleted or corrected. It holds what the memory claimed as digests, and its sources. A rejected
memory is kept in it, so that the decision can be undone; a deleted one is not. It is erased with
its sources. A new message that says the same is another source, so it may be derived from it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import replace as change

from ...record import MAX_MARKS, RESERVED_PREFIX, Origin, Record, Scope, Where
from ...store import Store
from ..values.envelope import derived_mark, record_of, sources_of
from ..values.kinds import EXPERIENCE, REJECTION, SOURCE_VERSIONS, TOOL
from ..values.memory import RAW, MemoryItem

REBUILT = frozenset({RAW, EXPERIENCE, TOOL})  # kinds that are changed by what comes, not repeated

_WORD = re.compile(r"\w+")
_SLOT = ("subject", "attribute", "polarity", "ended")


class Rejection(Struct, frozen=True):
    """What was rejected: digests of its claims, and its sources."""

    claims: frozenset[str]
    sources: frozenset[str]


def claims_of(kind: str, text: str, details: Mapping[str, Any]) -> list[str]:
    """Return digests of what a memory claims: of its words, and of its subject and value."""
    claims = [("text", _words(text))]
    if details.get("attribute") and details.get("value"):
        slot = [str(details.get(name)) for name in _SLOT]
        claims.append(("slot", "\n".join([*slot, _words(str(details["value"]))])))
    return [_digest(kind, how, said) for how, said in claims]


def all_sources(memory: MemoryItem) -> tuple[str, ...]:
    """Return what a memory was derived from and confirmed by."""
    confirmed = memory.details.get("confirmed_by")
    also = map(str, confirmed) if isinstance(confirmed, list) else ()
    return tuple(dict.fromkeys((*sources_of(memory), *also)))


def rejection_of(memory: MemoryItem, now: float, *, is_kept: bool) -> Record | None:
    """Return the rejection of a memory; ``None`` if it comes from nothing.

    With ``is_kept`` the memory is in it, for ``record_in``.
    """
    sources = all_sources(memory)
    if not sources or (memory.kind in REBUILT and not is_kept):
        return None
    value: dict[str, Any] = {
        "of": memory.id,
        "claims": claims_of(memory.kind, memory.text, memory.details),
        "details": {SOURCE_VERSIONS: memory.details.get(SOURCE_VERSIONS, {})},
    }
    was = record_of(memory)
    if is_kept:
        value |= {
            "was": was.value,
            "kind": was.kind,
            "marks": sorted(was.marks),
            "derived_from": list(sources_of(was)),
        }
    author = None if memory.origin is None else memory.origin.author
    return Record(
        id=f"{mark_of(memory.id)}:{memory.seq}",
        value=value,
        text=was.text if is_kept else "",
        marks=frozenset({mark_of(memory.id), *map(derived_mark, sources)}),
        kind=REJECTION,
        created_at=was.created_at if is_kept else now,
        expires_at=was.expires_at,
        importance=was.importance if is_kept else 0.5,
        origin=Origin(author, sources),
    )


def record_in(rejection: Record) -> Record | None:
    """Return the record of the memory that was rejected; ``None`` if it was deleted."""
    held = rejection.value if isinstance(rejection.value, dict) else {}
    if "was" not in held:
        return None
    author = None if rejection.origin is None else rejection.origin.author
    return change(
        rejection,
        id=str(held.get("of")),
        kind=str(held.get("kind")),
        marks=frozenset(map(str, held.get("marks", ()))),
        value=held["was"],
        origin=Origin(author, tuple(map(str, held.get("derived_from", ())))),
    )


def without_memory(rejection: Record) -> Record:
    """Return a rejection that no longer holds the memory."""
    held = rejection.value if isinstance(rejection.value, dict) else {}
    value = {key: held[key] for key in ("of", "claims", "details") if key in held}
    return change(rejection, value=value, text="")


def narrowed(rejection: Record, lost: Collection[str]) -> Record | None:
    """Return a rejection without some of its sources; ``None`` if none is left."""
    left = tuple(each for each in sources_of(rejection) if each not in lost)
    if not left or not isinstance(rejection.value, dict):
        return None
    author = None if rejection.origin is None else rejection.origin.author
    marks = rejection.marks - frozenset(map(derived_mark, lost))
    return change(without_memory(rejection), marks=marks, origin=Origin(author, left))


async def rejections_about(store: Store, user: str, sources: Iterable[str]) -> list[Rejection]:
    """Return the rejections of what was derived from these memories."""
    marks = sorted(map(derived_mark, sources))
    found: dict[int, Record] = {}
    for start in range(0, len(marks), MAX_MARKS):
        where = Where(kind=REJECTION, marks=frozenset(marks[start : start + MAX_MARKS]))
        found.update((each.seq, each) for each in await store.select(Scope(user), where))
    return [_rejection(each) for each in found.values()]


async def rejections_of(store: Store, user: str, memory_id: str) -> list[Record]:
    """Return the rejections of a memory, oldest first."""
    where = Where(kind=REJECTION, marks=frozenset({mark_of(memory_id)}))
    return await store.select(Scope(user), where)


def is_rejected(
    claims: Iterable[str], sources: Collection[str], rejections: Sequence[Rejection]
) -> bool:
    """Return whether a claim was rejected for every one of its sources."""
    own, open_ = frozenset(claims), set(sources)
    for each in rejections:
        if not own.isdisjoint(each.claims):
            open_ -= each.sources
    return bool(sources) and not open_


def is_rejection_of(record: Record, claims: Iterable[str]) -> bool:
    """Return whether a rejection is about one of these claims."""
    return not _rejection(record).claims.isdisjoint(claims)


def mark_of(memory_id: str) -> str:
    """Return the mark of the rejections of a memory."""
    return f"{RESERVED_PREFIX}rejected:{_digest(memory_id)}"


def _rejection(record: Record) -> Rejection:
    held = record.value if isinstance(record.value, dict) else {}
    claims = held.get("claims", ())
    return Rejection(frozenset(map(str, claims)), frozenset(sources_of(record)))


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _digest(*parts: str) -> str:
    return blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
