"""``ExportReader``: reads an export and notices whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from hashlib import sha256
from typing import TypeVar

from ..errors import ImportRefused, InvalidInput
from ..record import check_id
from .arrivals import Arrival
from .leaving import check_user
from .lines import (
    FORMAT,
    Check,
    Done,
    End,
    Header,
    RecordLine,
    arrival_in,
    parsed,
)
from .source import LineSource

_CHANGED = "export again, or import what is before the damage with until_damage=True"

T = TypeVar("T")


class ExportReader:
    """Reads an export from its first line to its last.

    ``verified`` counts the records before the last checksum that was right.
    """

    def __init__(self, lines: LineSource, *, allowed: Collection[str] | None = None) -> None:
        self._lines = lines
        self._allowed = allowed
        self._hash = sha256()
        self._user: str | None = None
        self._own = 0
        self._users = 0
        self.records = self.verified = 0
        self.is_at_end = False
        self.header = self._header()

    def batch(self, size: int, until: int | None = None) -> tuple[list[Arrival], list[str]]:
        """Return some ``size`` bytes of records, and the users whose sections began.

        With ``until``, stop when so many records were read from the file.
        """
        found: list[Arrival] = []
        began: list[str] = []
        read = 0
        while read < size and not self.is_at_end and self.records != until:
            data = self._next()
            read += len(data)
            arrival = self._step(data, began)
            if arrival is not None:
                found.append(arrival)
        return found, began

    def position(self) -> int:
        """Return how many bytes of the file were read."""
        return self._lines.position()

    def _next(self) -> bytes:
        data = self._lines.next()
        if not data.endswith(b"\n"):
            raise self._lines.refused("the file ends here, before its last line", _CHANGED)
        return data

    def _header(self) -> Header:
        data = self._lines.next()
        try:
            held = parsed(data).held()
        except InvalidInput as error:
            raise self._not_ours(str(error)) from None
        if not isinstance(held, Header):
            raise self._not_ours("its first line is not the header of one")
        if held.format != FORMAT:
            raise self._lines.refused(
                f"it has format {held.format}, made by {held.made_by!r:.60}; this version reads "
                f"format {FORMAT}",
                "upgrade memoryspace",
            )
        self._valid(lambda: [check_id("kind", kind) for kind in held.kinds])
        self._hash.update(data)
        return held

    def _not_ours(self, why: str) -> ImportRefused:
        return self._lines.refused(
            f"this is not an export of memoryspace: {why}",
            "for files of other programs, name their importer",
        )

    def _step(self, data: bytes, began: list[str]) -> Arrival | None:
        held = self._valid(lambda: parsed(data).held())
        before, arrival = self._hash.copy() if not isinstance(held, RecordLine) else None, None
        self._hash.update(data)
        match held:
            case RecordLine():
                arrival = self._record(held, data)
            case str():
                self._begin(held)
                began.append(held)
            case Header():
                raise self._lines.refused("a second header: several exports in one file")
            case _:
                assert before is not None  # of a line that is not a record
                self._verify(held, before.hexdigest())
        return arrival

    def _record(self, line: RecordLine, data: bytes) -> Arrival:
        user = self._user
        if user is None:
            raise self._lines.refused("a record outside of a user's section", _CHANGED)
        arrival: Arrival = self._valid(lambda: arrival_in(user, line, data))
        self._own += 1
        self.records += 1
        return arrival

    def _begin(self, user: str) -> None:
        if self._user is not None:
            raise self._lines.refused(f"the section of user {self._user!r} has no end", _CHANGED)
        self._valid(lambda: check_user(user))
        if self._allowed is not None and user not in self._allowed:
            raise self._lines.refused(f"user {user!r} may not be imported here")
        self._user, self._own = user, 0

    def _verify(self, held: Check | Done | End, checksum: str) -> None:
        expected = (checksum, self.records if isinstance(held, End) else self._own)
        if (held.sha256, held.records) != expected:
            raise self._lines.refused(
                "the lines before it were changed, lost or added (the checksum differs)", _CHANGED
            )
        if isinstance(held, Check):
            self._verified_section(self._user)
        elif isinstance(held, Done):
            self._verified_section(held.user)
            self._user = None
            self._users += 1
        else:
            self._finish(held)
        self.verified = self.records

    def _verified_section(self, user: str | None) -> None:
        if user is None or user != self._user:
            raise self._lines.refused("a checksum outside of its user's section", _CHANGED)

    def _finish(self, end: End) -> None:
        if self._user is not None or end.users != self._users:
            raise self._lines.refused("the number of users differs", _CHANGED)
        if self._lines.next():
            raise self._lines.refused("the export has ended, but the file goes on", _CHANGED)
        self.is_at_end = True

    def _valid(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except ImportRefused:
            raise
        except (InvalidInput, TypeError, RecursionError) as error:
            raise self._lines.refused(str(error), _CHANGED) from None
