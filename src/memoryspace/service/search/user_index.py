"""``UserIndex``: what of one user's records can be found, kept up to date by what changes.

Entries stand in the order of their seq, however and in how many portions they came, so an index
that has seen every change answers like one that was built a moment ago. One caller at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import replace

from ...embedding import Embedder
from ...record import Record
from ...retrieval.entries import Entry, embedded_text
from ...retrieval.hits import Hit, WhyNot
from ...retrieval.recall import Recall
from ...store.contract import Changes, session_in
from ...store.vectors import Place
from .contract import Found, Query
from .keeping import Text
from .known import Told
from .packed import Vector

EntryOf = Callable[[Record], Entry | None]

_NOTHING: Mapping[str, Vector] = MappingProxyType({})
_MANY = 100_000  # entries that take more than a moment to search
_EMPTY_BYTES = 1 << 10  # of an index without entries
_PLACE_BYTES = 300  # of an entry's place in it
_SPARE = 64  # of those who are gone already, so many may wait for their time to expire


class Made(NamedTuple):
    """Vectors, and who made them."""

    by: Embedder | None
    vectors: dict[Text, Vector]


class UserIndex:
    """A ``Recall`` over the records of which ``entry_of`` makes an entry, keyed by their seq.

    ``state`` is how far the store was read; ``None`` at the beginning. ``told``, if any, is the
    embedder of the recall, to be told of vectors that were made before.
    """

    def __init__(
        self, make_recall: Callable[[], Recall], entry_of: EntryOf, told: Told | None = None
    ) -> None:
        self.state: Any = None
        self._told = told
        self._made: dict[Text, Vector] = {}
        self._make_recall, self._entry_of = make_recall, entry_of
        self._places: dict[int, tuple[str, str]] = {}  # seq → session, id
        self._sessions: dict[str, dict[str, int]] = {}  # session → id → seq
        self._due: list[tuple[float, int]] = []  # a heap: when who expires
        self._newest = 0  # the highest seq that ever came in
        self._size: int | None = None  # in bytes, if counted since the last change
        self._is_settled = True  # whether a search has seen all that came and went

    def __len__(self) -> int:
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """About how many bytes of RAM it takes; counted anew after it has changed."""
        if self._size is None:
            held = self.recall.nbytes + _PLACE_BYTES * len(self) if self._places else 0
            self._size = _EMPTY_BYTES + held
        return self._size

    @cached_property
    def recall(self) -> Recall:
        """The index itself, made when it is first needed."""
        return self._make_recall()

    def apply(
        self,
        changes: Changes,
        known: Mapping[str, Vector] = _NOTHING,
        by: Embedder | None = None,
    ) -> None:
        """Drop what is no longer there, take in what came. If this fails, begin anew.

        What is ``known`` of its vectors, by text, need not be embedded. ``by`` whom they were made
        is who embeds the rest, if this is the beginning.
        """
        self._is_settled = self._is_settled and not _is_news(changes)
        if self._told is not None:
            self._told.hear(known)
            if self.state is None and by is not None:
                self._told.embedder = by
        self._drop(self._vanished(changes))
        self._take_in(changes.records)
        self._note_made(record.seq for record in changes.records)
        self.state = changes.state

    @property
    def embedder(self) -> Embedder | None:
        """Who made the vectors that serve, where that is known here."""
        return None if self._told is None else self._told.embedder

    def texts(self) -> list[Text]:
        """Return everything that can be found, as it is embedded."""
        return self._texts(self._places)

    def late(self, records: Iterable[Record]) -> list[int]:
        """Return the seqs of records that come after others with a higher seq."""
        seqs = (record.seq for record in records)
        return [seq for seq in seqs if seq < self._newest and seq not in self._places]

    def texts_behind(self, seq: int) -> list[Text]:
        """Return what is added again when a record with this seq comes late."""
        return self._texts(each for each in self._places if each > seq)

    def go_over(self, embedder: Embedder, known: Mapping[str, Vector]) -> bool:
        """Let another embedder's vectors serve; tell whether it has some for everything.

        What is not among those that are ``known``, by text, is embedded here.
        """
        self._size = None
        told = Told(embedder)
        told.hear(known)
        self.recall.change_embedder(told)
        if self.recall.embed_anew(len(self)):
            return False
        self._told = told
        self._note_made(self._places)
        return True

    def take_made(self) -> Made:
        """Return the vectors that were made since this was last asked."""
        made, self._made = self._made, {}
        return Made(self.embedder, made)

    def expire(self, now: float) -> None:
        """Let those go whose time has come."""
        due: list[int] = []
        while self._due and self._due[0][0] <= now:
            due.append(heappop(self._due)[1])
        self._drop(due)

    def is_quick(self, changes: Changes, now: float) -> bool:
        """Tell whether it can be brought up to date and asked within a millisecond or two."""
        is_due = self._due and self._due[0][0] <= now
        if is_due or _is_news(changes) or not self._is_settled or len(self) > _MANY:
            return False
        return not self._places or not self._asks_a_model

    @cached_property
    def _asks_a_model(self) -> bool:
        return self.recall.vectors.embedder is not None or self.recall.reranker is not None

    def search(self, query: Query) -> list[Found]:
        """Return the best, the best first, equals the newest first."""
        if not self._places:  # many users have nothing, and a recall takes room even when empty
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
        return sorted(map(self._found, hits), key=lambda found: (-found.score, -found.seq))

    def why_not(self, query: Query, seq: int) -> WhyNot:
        """Say where a record falls out of a search; those in front of it are named by id."""
        if seq not in self._places:
            return WhyNot("unknown", f"nothing that can be searched has the seq {seq} now")
        said = self.recall.why_not(
            query.text,
            str(seq),
            query.top_k,
            only=query.only,
            now=query.now,
            matching=not query.neighbours,
        )
        return replace(said, by=tuple(self._places[int(each)][1] for each in said.by))

    def embed_waiting(self, most: int) -> int:
        """Embed what the embedder failed for; return how many still wait."""
        if not self._places:
            return 0
        left = self.recall.embed_waiting(most)
        self._size = None
        self._note_made(self._places)
        return left

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
        self.recall.check()
        assert {str(seq) for seq in self._places} == set(self.recall.ids())
        assert self._places == {
            seq: (session, each)
            for session, ids in self._sessions.items()
            for each, seq in ids.items()
        }
        assert all(self._sessions.values()), "a session without entries is kept"
        assert self._newest >= max(self._places, default=0)
        assert len(self._due) <= 2 * len(self) + _SPARE

    def _texts(self, seqs: Iterable[int]) -> list[Text]:
        found = ((seq, self.recall.get(str(seq))) for seq in seqs)
        return [
            Text(Place(*self._places[seq], seq), embedded_text(entry))
            for seq, entry in found
            if entry is not None
        ]

    def _note_made(self, seqs: Iterable[int]) -> None:
        """Note the vectors that were made for these; what was made in vain is needed again."""
        told = self._told
        if told is None or not told.made:
            return
        for seq in seqs:
            entry = self.recall.get(str(seq)) if seq in self._places else None
            if entry is not None and (text := embedded_text(entry)) in told.made:
                self._made[Text(Place(*self._places[seq], seq), text)] = told.made[text]
        if not self.recall.vectors.waiting:
            told.made.clear()

    def _found(self, hit: Hit) -> Found:
        """Round, so that the last digits of a sum decide nothing."""
        session, record_id = self._places[int(hit.id)]
        relevance = float(f"{hit.relevance:.9g}")
        heir = None if hit.superseded_by is None else self._places[int(hit.superseded_by)][1]
        return Found(int(hit.id), record_id, session, relevance, hit.why, heir, hit.by_meaning)

    def _vanished(self, changes: Changes) -> list[int]:
        """Return who is not named any more, or is named with another seq."""
        gone = [seq for name in changes.gone for seq in self._sessions.get(name, {}).values()]
        for name, kept in changes.kept.items():
            held = self._sessions.get(name, {})
            gone += [seq for each, seq in held.items() if kept.get(each) != seq]
        return gone

    def _take_in(self, records: Iterable[Record]) -> None:
        """Index what is new in the order of seq, of two versions the later."""
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
        """Add records, which rise.

        A writer may be slow: its records become visible after later ones of another writer. Then
        the later ones are taken out and put behind them again.
        """
        if not new:
            return
        entries = [replace(entry, id=str(record.seq)) for record, entry in new]
        first, last = new[0][0].seq, new[-1][0].seq
        if first < self._newest:
            entries += self._taken_out(first)
            entries.sort(key=lambda entry: int(entry.id))
        self.recall.add(entries)
        self._size = None
        self._newest = max(self._newest, last)
        for record, _ in new:
            self._note(record)

    def _taken_out(self, seq: int) -> list[Entry]:
        """Take those that came after a seq out of the recall; they are still held here."""
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
        """The one door out; who is gone already is passed over."""
        here = [seq for seq in seqs if seq in self._places]
        if not here:
            return
        self.recall.remove(map(str, here))
        self._size = None
        for seq in here:
            session, record_id = self._places.pop(seq)
            del self._sessions[session][record_id]
            if not self._sessions[session]:
                del self._sessions[session]
        if len(self._due) > 2 * len(self) + _SPARE:
            self._due = [each for each in self._due if each[1] in self._places]
            heapify(self._due)


def _is_news(changes: Changes) -> bool:
    return bool(changes.records or changes.kept or changes.gone)
