"""The journal of holders beside the files of an archive: one line per change.

Lines are only appended, so a crash can tear only the last one, which then counts as never written.
Several processes may write, each while it holds the folder's lock. A reader without the lock may
see a slightly older state.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from ...errors import CorruptData
from ...files import write_atomic
from .base import Kept

FORMAT = 1
_HEAD, _HOLD, _FREE, _GONE = "journal", "hold", "free", "gone"
_HEAD_LENGTH = 64  # bytes that identify a journal
_MIN_LINES_TO_REWRITE = 256

# ["hold", handle, kind, lines, characters, holders], ["free", holders] or ["gone", handles]
Line: TypeAlias = list[Any]


class HeldContent(Struct):
    """A content and its holders, in the order they arrived."""

    kept: Kept
    holders: dict[str, None]


class HolderJournal:
    """The journal's current state. ``held`` maps handles to contents, oldest first."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held: dict[str, HeldContent] = {}
        self.is_damaged = False  # a line in the middle is unreadable, so holders may be missing
        self._by_holder: dict[str, dict[str, None]] = {}
        self._head = b""
        self._read = 0  # bytes
        self._lines = 0

    @property
    def is_new(self) -> bool:
        """Whether there is no journal file."""
        return not self._head

    def catch_up(self) -> None:
        """Read what other processes have written since the last call."""
        try:
            with open(self.path, "rb") as file:
                head = file.read(_HEAD_LENGTH)
                if head != self._head or os.fstat(file.fileno()).st_size < self._read:
                    self._forget(head)
                file.seek(self._read)
                self._take(file.read())
        except FileNotFoundError:
            self._forget(b"")

    def hold(self, changes: Iterable[tuple[Kept, Iterable[str]]]) -> None:
        """Record holders of contents, durably."""
        self._write([_hold(kept, holders) for kept, holders in changes])

    def free(self, holders: Iterable[str]) -> list[str]:
        """Release holders, durably; return the handles left without any."""
        known = [holder for holder in dict.fromkeys(holders) if holder in self._by_holder]
        touched = dict.fromkeys(handle for each in known for handle in self._by_holder[each])
        if known:
            self._write([[_FREE, known]])
        return [handle for handle in touched if handle not in self.held]

    def discard(self, handles: list[str]) -> None:
        """Record, durably, that contents are removed whether held or not."""
        if handles:
            self._write([[_GONE, handles]])

    def clear(self) -> None:
        """Start an empty journal."""
        self._replace([])

    def rewrite(self) -> None:
        """Rewrite the journal without superseded lines, once they are most of it."""
        if self._lines > max(_MIN_LINES_TO_REWRITE, 4 * len(self.held)) and not self.is_damaged:
            self._replace([_hold(each.kept, each.holders) for each in self.held.values()])

    def _replace(self, lines: list[Line]) -> None:
        whole = [[_HEAD, secrets.token_hex(_HEAD_LENGTH // 2), FORMAT], *lines]
        write_atomic(self.path, b"".join(map(_line, whole)))
        self.catch_up()

    def _write(self, lines: list[Line]) -> None:
        """Every change goes through here: to disk first, then to the state in memory."""
        if self.is_new:
            self._replace([])
        with open(self.path, "r+b") as file:
            file.truncate(self._read)  # a torn line was never acknowledged
            file.seek(self._read)
            file.write(b"".join(map(_line, lines)))
            file.flush()
            os.fsync(file.fileno())
        self.catch_up()

    def _take(self, data: bytes) -> None:
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].split(b"\n")[:-1]:
            self._lines += 1
            try:
                self._apply(json.loads(line))
            except (ValueError, LookupError, TypeError, msgspec.ValidationError):
                self.is_damaged = True
        self._read += whole

    def _apply(self, change: Line) -> None:
        if change[0] == _HOLD:
            kept = msgspec.convert(
                dict(zip(Kept.__struct_fields__, change[1:], strict=False)), Kept
            )
            self._note(kept, change[5])
        elif change[0] == _FREE:
            self._let_go(change[1])
        elif change[0] == _GONE:
            for handle in change[1]:
                self._remove(handle)
        elif change[0] != _HEAD:
            raise ValueError
        elif len(change) > 2 and change[2] > FORMAT:
            raise CorruptData(
                f"the archive of {self.path} has format {change[2]}, this version of memoryspace "
                f"reads up to {FORMAT}; upgrade memoryspace"
            )

    def _note(self, kept: Kept, holders: Iterable[str]) -> None:
        held = self.held.setdefault(kept.handle, HeldContent(kept, {}))
        for holder in holders:
            held.holders[holder] = None
            self._by_holder.setdefault(holder, {})[kept.handle] = None

    def _let_go(self, holders: Iterable[str]) -> None:
        for holder in holders:
            for handle in self._by_holder.pop(holder, {}):
                held = self.held[handle]
                held.holders.pop(holder, None)
                if not held.holders:
                    del self.held[handle]

    def _remove(self, handle: str) -> None:
        held = self.held.pop(handle, None)
        for holder in held.holders if held is not None else ():
            self._by_holder[holder].pop(handle, None)

    def _forget(self, head: bytes) -> None:
        self.held, self._by_holder, self._head = {}, {}, head
        self._read = self._lines = 0
        self.is_damaged = False


def _hold(kept: Kept, holders: Iterable[str]) -> Line:
    return [_HOLD, kept.handle, kept.kind, kept.lines, kept.characters, list(holders)]


def _line(change: Line) -> bytes:
    return json.dumps(change, separators=(",", ":")).encode() + b"\n"
