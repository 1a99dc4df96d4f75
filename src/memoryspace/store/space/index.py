"""``SpaceIndex``: which records and vectors a space holds, kept in RAM and up to date.

What a choice needs to know of every record is here; its value stays in the object. The index learns
what is in a space when it opens, and hears of every object that leaves it, for whatever reason.
Everything is called with the lock of the space held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from msgspec.structs import replace as change

from ...errors import CorruptData
from ...kernel import LivingObject, ObjectHandles, Placed
from ...record import Record, Scope, Where
from ..contract import Clock
from ..sessions import Sessions
from ..vectors import Place
from .objects import RecordEntry, entry_of, payload_of
from .vectors import SpaceVectors

Report = Callable[[Scope, str, CorruptData], None]


class SpaceIndex:
    """The records of a space by session, and the vectors beside them.

    ``freed_at`` is the last change that freed something, or -1 if no file knows of any.
    """

    def __init__(self, clock: Clock, report_corrupt: Report) -> None:
        self.sessions: Sessions[RecordEntry] = Sessions()
        self.vectors = SpaceVectors()
        self.freed_at = 0
        self._entries: dict[int, RecordEntry] = {}
        self._clock = clock
        self._report_corrupt = report_corrupt

    def follow(self, space: ObjectHandles) -> None:
        """Learn what is in a space, then hear of everything that leaves it."""
        with space.lock:
            self._learn(space)
            space.follow(lambda handle: self._forget(space, handle), lambda: self._learn(space))

    def clear(self) -> None:
        """Forget everything: the space is closed, and another process may change its folder."""
        self.sessions = Sessions()
        self.vectors = SpaceVectors()
        self._entries.clear()
        self.freed_at = max(0, self.freed_at)

    def choose(self, scope: Scope, where: Where) -> list[RecordEntry]:
        """Return the entries that are asked for, in order."""
        return self.sessions.choose(scope, where, self._clock())

    def known(
        self, user: str, name: str, ids: set[str], gone: set[tuple[str, str]]
    ) -> dict[str, RecordEntry]:
        """Return those of some ids that a session has, without those that are about to go."""
        session = self.sessions.find(user, name)
        if session is None:
            return {}
        session.expire(self._clock())
        return {
            record_id: session.records[record_id]
            for record_id in ids
            if record_id in session.records and (name, record_id) not in gone
        }

    def standing(self, user: str, places: Iterable[Place]) -> list[RecordEntry]:
        """Return the records that still stand where they stood."""
        standing = self.sessions.standing_at(user, places, self._clock())
        return [session.records[place.id] for place, session in standing]

    def in_objects(
        self, objects: Collection[str], id_of: Callable[[int], str]
    ) -> list[RecordEntry]:
        """Return the entries whose objects have one of these ids."""
        return [entry for entry in self._entries.values() if id_of(entry.handle) in objects]

    def handles(self, entries: Sequence[RecordEntry]) -> list[int]:
        """Return the handles to free with some records: their vectors' as well."""
        if not entries:
            return []
        own = [entry.handle for entry in entries]
        return [*own, *self.vectors.beside(own)]

    def note(
        self, records: Sequence[Record], user: str, name: str, placed: Sequence[Placed]
    ) -> None:
        """Add records that were just stored."""
        for record, (handle, stamp) in zip(records, placed, strict=True):
            self._add(
                RecordEntry(
                    record.id,
                    record.kind,
                    record.marks,
                    stamp,
                    user,
                    name,
                    record.expires_at,
                    handle,
                )
            )

    def remark(self, entry: RecordEntry, marks: frozenset[str]) -> None:
        """Replace the marks of a record."""
        marked = change(entry, marks=marks)
        self._entries[entry.handle] = marked
        self.sessions.of(entry.user, entry).remark(entry, marked)

    def _add(self, entry: RecordEntry) -> None:
        self._entries[entry.handle] = entry
        self.sessions.open(entry.user, entry.session).add(entry)

    def _learn(self, space: ObjectHandles) -> None:
        self.sessions = Sessions()
        self.vectors = SpaceVectors()
        self._entries.clear()
        for found in space.living():
            if not self.vectors.learn(space, found):
                self._recall(space, found)
        self.vectors.settle(self._entries)
        for session in {(entry.user, entry.session) for entry in self._entries.values()}:
            self.sessions.open(*session).sort()

    def _recall(self, space: ObjectHandles, found: LivingObject) -> None:
        if found.expires_at is not None and found.expires_at <= self._clock():
            return  # the space will free it soon; its id may have been used again
        try:
            payload = payload_of(space.body(found.handle))
        except CorruptData as error:
            self._report_corrupt(Scope(found.tenant or "unknown"), space.id(found.handle), error)
            return
        self._add(entry_of(found, payload))

    def _forget(self, space: ObjectHandles, handle: int) -> None:
        self.freed_at = space.last_lsn
        self.vectors.freed(handle)
        entry = self._entries.pop(handle, None)
        if entry is None:
            return
        session = self.sessions.find(entry.user, entry.session)
        known = None if session is None else session.records.get(entry.id)
        if known is not None and known.handle == handle:  # else it has expired from the index
            self.sessions.remove(entry.user, (known,))
