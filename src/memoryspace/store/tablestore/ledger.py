"""``UserLedger``: the records of a user, as the sum of that user's commits.

A commit adds, removes and marks records in one step. It takes effect when the user's head names it.
That is one conditional write of one row, so every operation is atomic however many rows it touches.
Each commit names its predecessor; a row that no commit names was never committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace as change

from ...errors import CorruptData
from ...record import Scope, Where
from ..contract import limited


class RecordHeader(Struct, frozen=True, array_like=True, gc=False):  # holds only plain values
    """The fields of a record that are known without reading it."""

    seq: int
    session: str
    id: str
    kind: str
    marks: frozenset[str]
    expires_at: float | None
    is_searched: bool

    def is_live(self, now: float) -> bool:
        """Return whether the record has not expired."""
        return self.expires_at is None or self.expires_at > now


class Commit(Struct, frozen=True, array_like=True):
    """One step of a user's history; ``previous`` is ``None`` where a history starts."""

    stamp: int
    previous: int | None
    added: list[RecordHeader] = []
    removed: list[int] = []
    marked: list[tuple[int, frozenset[str]]] = []

    @property
    def mentioned(self) -> set[int]:
        """The seqs of all records that the commit adds or removes."""
        return {header.seq for header in self.added} | set(self.removed)


NOTHING = Commit(0, None)  # the state of a user without a head

_decoder = msgspec.json.Decoder(Commit)


def encode(commit: Commit) -> bytes:
    """Return the bytes of a commit."""
    return msgspec.json.encode(commit)


def decode(data: bytes) -> Commit:
    """Return the commit that ``encode`` wrote."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise CorruptData(f"{len(data)} bytes of a user's history cannot be decoded") from error


def chain(commits: Mapping[int, bytes], last: int, known: int) -> list[Commit] | None:
    """Return the commits that lead from ``known`` to ``last``, or ``None`` if one is missing."""
    found: list[Commit] = []
    stamp = last
    while stamp != known:
        if stamp not in commits:
            return None
        commit = decode(commits[stamp])
        found.append(commit)
        if commit.previous is None:
            break
        stamp = commit.previous
    return found[::-1]


class UserLedger:
    """The headers of one user's records, in conversation order."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Reset the ledger to no records."""
        self.stamp = 0  # the last commit's, or 0 if there is none
        self.base = 0
        self.headers: dict[int, RecordHeader] = {}
        self.stamps: set[int] = set()  # of the commits since the base
        self.lines = 0  # added, removed or marked since the base, and in it
        self._by_id: dict[str, set[int]] = {}

    def apply(self, commit: Commit) -> None:
        """Apply the commit that follows the last one."""
        if commit.previous is None:
            self.clear()
            self.base = commit.stamp
        for seq in commit.removed:
            self._drop(seq)
        for seq, marks in commit.marked:
            self.headers[seq] = change(self.headers[seq], marks=marks)
        for header in commit.added:
            self.headers[header.seq] = header
            self._by_id.setdefault(header.id, set()).add(header.seq)
        self.stamp = commit.stamp
        self.stamps.add(commit.stamp)
        self.lines += 1 + len(commit.added) + len(commit.removed) + len(commit.marked)

    def choose(self, scope: Scope, where: Where, now: float) -> list[RecordHeader]:
        """Return the matching headers in conversation order."""
        found = [
            header
            for header in self._candidates(where)
            if scope.session in (None, header.session)
            and header.is_live(now)
            and where.matches(header)  # type: ignore[arg-type]  # has the fields it looks at
        ]
        return limited(found, where)

    def find(self, session: str, record_id: str, now: float) -> RecordHeader | None:
        """Return the live record of this id in a session."""
        for seq in self._by_id.get(record_id, ()):
            header = self.headers[seq]
            if header.session == session and header.is_live(now):
                return header
        return None

    def expired(self, now: float) -> list[RecordHeader]:
        """Return the expired records that have not been removed yet."""
        return [header for header in self.headers.values() if not header.is_live(now)]

    def check(self) -> None:
        """Verify every invariant; for tests."""
        assert list(self.headers) == sorted(self.headers)
        assert all(seq <= self.stamp for seq in self.headers)
        by_id = {(header.id, seq) for seq, header in self.headers.items()}
        assert by_id == {(name, seq) for name, seqs in self._by_id.items() for seq in seqs}

    def _candidates(self, where: Where) -> Iterable[RecordHeader]:
        if where.ids is None:
            return self.headers.values()
        seqs = sorted({seq for name in where.ids for seq in self._by_id.get(name, ())})
        return [self.headers[seq] for seq in seqs]

    def _drop(self, seq: int) -> None:
        header = self.headers.pop(seq)
        seqs = self._by_id[header.id]
        seqs.discard(seq)
        if not seqs:
            del self._by_id[header.id]
