"""``UserIndex``: the searchable entries of one user, updated with the changes of the store.

Entries are ordered by seq, in whatever order and batches they arrive. An index that has applied
every change answers exactly like one that was just built. One caller at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from functools import cached_property
from heapq import heapify, heappop, heappush, nlargest
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ...embedding import Embedder
from ...errors import CorruptData
from ...record import Record
from ...retrieval.entries import Entry, embedded_text
from ...retrieval.hits import Hit, WhyNot
from ...retrieval.recall import Recall
from ...retrieval.saving import joined, load_recall, parted, save_recall
from ...store.contract import Changes, session_in
from ...store.vectors import Place
from .caching import CachingEmbedder
from .contract import EntryOf, Found, Query
from .keeping import RecordText
from .packed import Vector

_NO_VECTORS: Mapping[str, Vector] = MappingProxyType({})
_MANY = 100_000  # entries that take more than a millisecond or two to search
_EMPTY_BYTES = 1 << 10  # the size of an index without entries
_PLACE_BYTES = 300  # the size of an entry's place in it
_SPARE = 64  # removed entries that may stay in the expiry heap


class NewVectors(NamedTuple):
    """Vectors that were just made, and the embedder that made them."""

    by: Embedder | None
    vectors: dict[RecordText, Vector]


class UserIndex:
    """A ``Recall`` over the entries that ``entry_of`` makes of records, keyed by seq.

    ``state`` is the state of the store that was read last; ``None`` at the beginning. ``caching``
    is the embedder of the recall, if it has one that takes known vectors.
    """

    def __init__(
        self,
        make_recall: Callable[[], Recall],
        entry_of: EntryOf,
        caching: CachingEmbedder | None = None,
    ) -> None:
        self.state: Any = None
        self._caching = caching
        self._made: dict[RecordText, Vector] = {}
        self._make_recall, self._entry_of = make_recall, entry_of
        self._places: dict[int, tuple[str, str]] = {}  # seq → session, id
        self._sessions: dict[str, dict[str, int]] = {}  # session → id → seq
        self._due: list[tuple[float, int]] = []  # a heap of (expiry time, seq)
        self._newest = 0  # the highest seq ever added
        self._size: int | None = None  # in bytes, if counted since the last change
        self._is_settled = True  # whether a search ran since the last change
        self.unsaved = 0  # entries added or removed since the last save
        self.lost = 0  # entries that were removed for good since the last save

    def __len__(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """The approximate size in RAM, counted again after a change."""
        if self._size is None:
            held = self.recall.nbytes + _PLACE_BYTES * len(self) if self._places else 0
            self._size = _EMPTY_BYTES + held
        return self._size

    @cached_property
    def recall(self) -> Recall:
        """The index itself, created on first use."""
        return self._make_recall()

    def apply(
        self,
        changes: Changes,
        known: Mapping[str, Vector] = _NO_VECTORS,
        by: Embedder | None = None,
    ) -> None:
        """Remove what is gone and add what is new. After an error the index is unusable.

        Texts with ``known`` vectors are not embedded. A new index embeds the rest ``by`` the
        embedder that made those.
        """
        self._is_settled = self._is_settled and not _has_changes(changes)
        if self._caching is not None:
            self._caching.set_known(known)
            if self.state is None and by is not None:
                self._caching.embedder = by
        self._drop(self._removed(changes))
        self._add_newest(changes.records)
        self._note_made(record.seq for record in changes.records)
        self.state = changes.state

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the vectors in use, if it takes known vectors."""
        return None if self._caching is None else self._caching.embedder

    def texts(self) -> list[RecordText]:
        """Return the embedded text of every entry."""
        return self._texts(self._places)

    def late(self, records: Iterable[Record]) -> list[int]:
        """Return the seqs of records that arrive after others with a higher seq."""
        seqs = (record.seq for record in records)
        return [seq for seq in seqs if seq < self._newest and seq not in self._places]

    def texts_behind(self, seq: int) -> list[RecordText]:
        """Return the texts that are added again when a record with this seq arrives late."""
        return self._texts(each for each in self._places if each > seq)

    def switch_embedder(self, embedder: Embedder, known: Mapping[str, Vector]) -> bool:
        """Switch to another embedder; return whether every entry has a vector of it.

        Texts without a ``known`` vector are embedded here.
        """
        self._size = None
        caching = CachingEmbedder(embedder)
        caching.set_known(known)
        self.recall.change_embedder(caching)
        if self.recall.embed_anew(len(self)):
            return False
        self._caching = caching
        self._note_made(self._places)
        return True

    def take_made(self) -> NewVectors:
        """Return the vectors made since the last call."""
        made, self._made = self._made, {}
        return NewVectors(self.embedder, made)

    def expire(self, now: float) -> None:
        """Remove entries that have expired."""
        due: list[int] = []
        while self._due and self._due[0][0] <= now:
            due.append(heappop(self._due)[1])
        self.lost += len(due)
        self._drop(due)

    def save(self, folder: Path, about: Mapping[str, Any]) -> None:
        """Write the index into an empty folder, with plain data beside it; errors as there."""
        seqs = self._seqs_by_row()
        names = {name: number for number, name in enumerate(self._sessions)}
        held = [self._places.get(seq) for seq in seqs]
        more: dict[str, NDArray[Any]] = {
            "seqs": np.array(seqs, np.int64),
            "homes": np.array([-1 if at is None else names[at[0]] for at in held], np.int64),
            "ids": joined(["" if at is None else at[1] for at in held]),
            "due": np.array(self._due, np.float64).reshape(-1),
        }
        whole = {**about, "homes": [*names], "newest": self._newest}
        save_recall(self.recall, folder, more, whole)
        self.unsaved = self.lost = 0

    def load(
        self,
        folder: Path,
        make: Callable[..., Recall],
        *,
        embedder: Embedder | None,
        zone: tzinfo,
        personal: bool,
    ) -> dict[str, Any]:
        """Fill an empty index from a folder; return the plain data that was saved beside it.

        Raises:
            FileNotFoundError: If nothing was saved.
            CorruptData: If it cannot be used. The index is then unusable.
        """
        recall, more, about = load_recall(
            folder,
            embedder=embedder if self._caching is None else self._caching,
            zone=zone,
            personal=personal,
            make=make,
        )
        try:
            seqs = more["seqs"].tolist()
            ids, homes = parted(more["ids"], len(seqs)), more["homes"].tolist()
            rows = [row for row, home in enumerate(homes) if home >= 0]
            names = about["homes"]
            self._places = {seqs[row]: (names[homes[row]], ids[row]) for row in rows}
            for seq, (session, each) in self._places.items():
                self._sessions.setdefault(session, {})[each] = seq
            recall.catalogue.name_rows({str(seqs[row]): row for row in rows})
            self._due = [(at, int(seq)) for at, seq in more["due"].reshape(-1, 2).tolist()]
            self._newest = int(about["newest"])
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise CorruptData(f"the index in {folder} does not fit together: {error!r}") from error
        self.__dict__["recall"] = recall
        return about

    def newest(self, most: int) -> dict[Place, Entry]:
        """Return the newest entries by place."""
        found = ((seq, self.recall.get(str(seq))) for seq in nlargest(most, self._places))
        return {Place(*self._places[seq], seq): entry for seq, entry in found if entry is not None}

    @property
    def listed(self) -> Mapping[str, Mapping[str, int]]:
        """The seq of every entry by session and id."""
        return self._sessions

    def _seqs_by_row(self) -> list[int]:
        """Return the seq of each row of the recall; 0 for an empty row."""
        seqs = [0] * len(self.recall.catalogue.entries)
        for seq in self._places:
            seqs[self.recall.catalogue.find(str(seq))] = seq
        return seqs

    def is_quick(self, changes: Changes, now: float) -> bool:
        """Return whether an update and a search take a millisecond or two."""
        is_due = self._due and self._due[0][0] <= now
        if is_due or _has_changes(changes) or not self._is_settled or len(self) > _MANY:
            return False
        return not self._places or not self._uses_a_model

    @cached_property
    def _uses_a_model(self) -> bool:
        return self.recall.vectors.embedder is not None or self.recall.reranker is not None

    def search(self, query: Query) -> list[Found]:
        """Return the best matches, best first, ties newest first."""
        if not self._places:  # many users have no entries, and even an empty recall takes memory
            return []
        hits = self.recall.search(
            query.text,
            query.top_k,
            only=query.only,
            now=query.now,
            explain=query.explain,
            matching=not query.neighbours,
        )
        self._is_settled = True
        alike = groupby(map(self._found, hits), key=lambda found: found.score)
        return [found for _, some in alike for found in sorted(some, key=lambda each: -each.seq)]

    def why_not(self, query: Query, seq: int) -> WhyNot:
        """Return why a search does not return a record; those ranked before it are named by id."""
        if seq not in self._places:
            return WhyNot("unknown", f"no searchable memory has the seq {seq}")
        answer = self.recall.why_not(
            query.text,
            str(seq),
            query.top_k,
            only=query.only,
            now=query.now,
            matching=not query.neighbours,
        )
        return replace(answer, by=tuple(self._places[int(each)][1] for each in answer.by))

    def embed_waiting(self, most: int) -> int:
        """Retry entries the embedder failed for; return how many still wait."""
        if not self._places:
            return 0
        left = self.recall.embed_waiting(most)
        self._size = None
        self._note_made(self._places)
        return left

    def check(self) -> None:
        """Verify every invariant. For tests: it reads the whole index."""
        self.recall.check()
        assert {str(seq) for seq in self._places} == set(self.recall.ids())
        assert self._places == {
            seq: (session, each)
            for session, ids in self._sessions.items()
            for each, seq in ids.items()
        }
        assert all(self._sessions.values()), "a session without entries remains"
        assert self._newest >= max(self._places, default=0)
        assert len(self._due) <= 2 * len(self) + _SPARE

    def _texts(self, seqs: Iterable[int]) -> list[RecordText]:
        found = ((seq, self.recall.get(str(seq))) for seq in seqs)
        return [
            RecordText(Place(*self._places[seq], seq), embedded_text(entry))
            for seq, entry in found
            if entry is not None
        ]

    def _note_made(self, seqs: Iterable[int]) -> None:
        """Collect the vectors made for these entries; others stay while entries wait for one."""
        caching = self._caching
        if caching is None or not caching.made:
            return
        for seq in seqs:
            entry = self.recall.get(str(seq)) if seq in self._places else None
            if entry is not None and (text := embedded_text(entry)) in caching.made:
                self._made[RecordText(Place(*self._places[seq], seq), text)] = caching.made[text]
        if not self.recall.vectors.waiting:
            caching.made.clear()

    def _found(self, hit: Hit) -> Found:
        """Convert a hit. The score is rounded so that the last digits of a sum decide nothing."""
        session, record_id = self._places[int(hit.id)]
        relevance = float(f"{hit.relevance:.9g}")
        newer = None if hit.superseded_by is None else self._places[int(hit.superseded_by)][1]
        return Found(int(hit.id), record_id, session, relevance, hit.why, newer, hit.by_meaning)

    def _removed(self, changes: Changes) -> list[int]:
        """Return the seqs that the store no longer has, or has replaced."""
        gone = [seq for name in changes.gone for seq in self._sessions.get(name, {}).values()]
        self.lost += len(gone)
        for name, kept in changes.kept.items():
            held = self._sessions.get(name, {})
            gone += [seq for each, seq in held.items() if kept.get(each) != seq]
            self.lost += sum(each not in kept for each in held)
        return gone

    def _add_newest(self, records: Iterable[Record]) -> None:
        """Index new records in the order of seq, only the latest version of each."""
        new: dict[tuple[str, str], tuple[Record, Entry]] = {}
        for record in sorted(records, key=lambda record: record.seq):
            place = (session_in(record), record.id)
            held = self._sessions.get(place[0], {}).get(record.id, 0)
            if held >= record.seq:
                continue
            if held:
                self._drop([held])
            entry = self._entry_of(record)
            new.pop(place, None)  # an earlier version
            if entry is not None:
                new[place] = (record, entry)
        self._add(list(new.values()))

    def _add(self, new: Sequence[tuple[Record, Entry]]) -> None:
        """Add records in ascending order of seq.

        The records of a slow writer become visible after later ones of another writer. Then the
        later ones are removed and added again behind them.
        """
        if not new:
            return
        entries = [replace(entry, id=str(record.seq)) for record, entry in new]
        first, last = new[0][0].seq, new[-1][0].seq
        if first < self._newest:
            entries += self._pop_after(first)
            entries.sort(key=lambda entry: int(entry.id))
        self.recall.add(entries)
        self._size = None
        self.unsaved += len(new)
        self._newest = max(self._newest, last)
        for record, _ in new:
            self._note(record)

    def _pop_after(self, seq: int) -> list[Entry]:
        """Remove the entries after a seq from the recall and return them; their places stay."""
        later = [str(each) for each in self._places if each > seq]
        entries = [entry for each in later if (entry := self.recall.get(each)) is not None]
        self.recall.remove(later)
        return entries

    def _note(self, record: Record) -> None:
        session = session_in(record)
        self._places[record.seq] = (session, record.id)
        self._sessions.setdefault(session, {})[record.id] = record.seq
        if record.expires_at is not None:
            heappush(self._due, (record.expires_at, record.seq))

    def _drop(self, seqs: Sequence[int]) -> None:
        """Remove entries; seqs that are not here are skipped. Every removal goes through here."""
        here = [seq for seq in seqs if seq in self._places]
        if not here:
            return
        self.recall.remove(map(str, here))
        self._size = None
        self.unsaved += len(here)
        for seq in here:
            session, record_id = self._places.pop(seq)
            del self._sessions[session][record_id]
            if not self._sessions[session]:
                del self._sessions[session]
        if len(self._due) > 2 * len(self) + _SPARE:
            self._due = [each for each in self._due if each[1] in self._places]
            heapify(self._due)


def _has_changes(changes: Changes) -> bool:
    return bool(changes.records or changes.kept or changes.gone)
