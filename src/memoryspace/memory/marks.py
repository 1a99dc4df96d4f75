"""Marks by message id, for a memory whose storage holds only messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..message import Msg
from ..record import as_marks

_NONE: frozenset[str] = frozenset()


class Marks:
    """The marks of each message, by id. A message without marks has no entry."""

    def __init__(self) -> None:
        self._marks: dict[str, frozenset[str]] = {}

    def change(
        self, ids: Iterable[str], *, add: frozenset[str] = _NONE, remove: frozenset[str] = _NONE
    ) -> int:
        """Remove and add marks; return how many messages changed."""
        return sum(self._change(id, add, remove) for id in dict.fromkeys(ids))

    def _change(self, id: str, add: frozenset[str], remove: frozenset[str]) -> bool:
        before = self._marks.get(id, _NONE)
        after = (before - remove) | add
        if after:
            self._marks[id] = after
        else:
            self._marks.pop(id, None)
        return after != before

    def forget(self, ids: Iterable[str]) -> None:
        """Remove the marks of these messages."""
        for id in ids:
            self._marks.pop(id, None)

    def keep(self, ids: Collection[str]) -> None:
        """Remove the marks of all other messages."""
        self._marks = {id: marks for id, marks in self._marks.items() if id in ids}

    def fit(self, msg: Msg, wanted: frozenset[str], unwanted: frozenset[str] = _NONE) -> bool:
        """Return whether a message has a wanted mark, if any are given, and no unwanted one."""
        marks = self._marks.get(msg.id, _NONE)
        return (not wanted or not wanted.isdisjoint(marks)) and unwanted.isdisjoint(marks)

    def to_dict(self) -> dict[str, list[str]]:
        """Return the marks as plain data."""
        return {id: sorted(marks) for id, marks in self._marks.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Marks:
        """Return marks from plain data."""
        made = cls()
        made._marks = {id: as_marks(marks) for id, marks in data.items()}
        return made
