"""``Recall``: ranked search over one owner's entries.

The question is parsed. Two arms, words and vectors, propose candidates. Signals score the
candidates, and the weighted sum of the signals ranks them. ``explain=True`` says why a hit was
returned; ``why_not`` says why an entry was not.

The index is derived data: it can be rebuilt from the store that holds the records. A ``Recall`` has
no lock; allow one caller at a time.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..embedding import Embedder, best_embedder
from ..errors import InvalidInput
from ..record import is_number
from .catalogue import NO_ROW, Catalogue
from .conditions import ANYTHING, Condition, refusal
from .entries import Entry, checked, embedded_text, indexed_text
from .hits import Hit, SessionHit, Why, WhyNot
from .matching import LIKENESS_FLOOR, Matcher
from .personal import PersonalReader
from .ranking import (
    WIDE,
    Profiles,
    Ranked,
    Ranker,
    Ranking,
    Reranker,
    ask,
    covered,
    default_ranking,
    reread,
    varied,
)
from .relevance import relevances
from .sparse.index import SparseIndex
from .vector_arm import EmbedderStatus, VectorArm

_NAMED = 5  # how many better entries ``why_not`` names
_SHOWN = 3  # entries shown for a session
_PER_SESSION = 10  # candidates per requested session, since several may belong to the same one


class _SearchRequest(Struct, frozen=True):
    """One search: the question, its options, and the least number of candidates to score."""

    text: str
    only: Condition
    now: float | None
    ranking: Ranking | None
    at_least: int
    matching: bool = False
    overview: bool = True  # answer in order of time if the question asks for an overview


class ReadyIndexes(Protocol):
    """The indexes that a recall searches, as ``Recall.over`` takes them."""

    catalogue: Catalogue
    profiles: Profiles
    sparse: SparseIndex
    vectors: VectorArm

    @property
    def reader(self) -> PersonalReader | None:
        """The personal second pass, if the memory is personal."""


class Recall:
    """A searchable index of one owner's entries.

    Args:
        embedder: Makes the vectors. ``"best"`` takes the best embedder that is installed; ``None``
            searches by words alone.
        ranking: The weights of the signals; ``default_ranking()`` if not given.
        reranker: Scores the best candidates against the question a second time.
        zone: The time zone in which days begin and end.
        clock: Returns the time of a question (seconds since 1970) that comes without ``now``.
        floor: The cosine from which an entry matches by meaning alone (see ``search``).
        personal: Treat the entries as what one person said. The best candidates are then read
            again for whom and what they are about, and for what is still true
            (``memoryspace.retrieval.personal``).

    Raises:
        TypeError: If ``embedder`` is neither an ``Embedder``, ``"best"`` nor ``None``.

    Examples:
        >>> recall = Recall(embedder=None)
        >>> recall.add([Entry("1", "Ann moved to Lisbon.")])
        1
        >>> recall.search("Where does Ann live?")[0].id
        '1'
    """

    def __init__(
        self,
        *,
        embedder: Embedder | Literal["best"] | None = "best",
        ranking: Ranking | None = None,
        reranker: Reranker | None = None,
        zone: tzinfo = UTC,
        clock: Callable[[], float] = time.time,
        floor: float = LIKENESS_FLOOR,
        personal: bool = False,
    ) -> None:
        self.ranking = default_ranking() if ranking is None else ranking
        self.reranker = reranker
        self.catalogue = Catalogue()
        self.profiles = Profiles(zone)
        self.sparse = SparseIndex()
        self.vectors = VectorArm(_chosen(embedder))
        self._zone = zone
        self._clock = clock
        self._floor = floor
        self._reader = PersonalReader() if personal else None

    @classmethod
    def over(
        cls,
        indexes: ReadyIndexes,
        *,
        ranking: Ranking,
        reranker: Reranker | None = None,
        zone: tzinfo = UTC,
        clock: Callable[[], float] = time.time,
        floor: float = LIKENESS_FLOOR,
    ) -> Recall:
        """Return a recall over indexes that were made elsewhere. Options as for the class."""
        recall = cls.__new__(cls)
        recall.ranking, recall.reranker = ranking, reranker
        recall.catalogue, recall.profiles = indexes.catalogue, indexes.profiles
        recall.sparse, recall.vectors = indexes.sparse, indexes.vectors
        recall._zone, recall._clock, recall._floor = zone, clock, floor
        recall._reader = indexes.reader
        return recall

    def __repr__(self) -> str:
        embedder = self.vectors.embedder
        name = None if embedder is None else embedder.name
        personal = ", personal" if self._reader is not None else ""
        return f"<Recall: {len(self)} entries, embedder {name}{personal}>"

    @property
    def reader(self) -> PersonalReader | None:
        """The personal re-ranker, or ``None`` unless ``personal=True`` was passed."""
        return self._reader

    def __len__(self) -> int:
        return len(self.catalogue)

    @property
    def nbytes(self) -> int:
        """The approximate bytes of RAM that the entries and their indexes take."""
        return self.sparse.nbytes + self.vectors.nbytes + self.catalogue.nbytes

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self.catalogue

    def ids(self) -> list[str]:
        """Return the ids of all entries, in no particular order."""
        return self.catalogue.ids()

    def get(self, entry_id: str) -> Entry | None:
        """Return the entry with this id, or ``None``."""
        row = self.catalogue.find(entry_id)
        return None if row == NO_ROW else self.catalogue.at(row)

    def add(self, entries: Iterable[Entry]) -> int:
        """Index entries. If one of them is invalid, none is indexed.

        An entry whose id is already indexed replaces the old one, and keeps its place in the
        session if the session is the same. The next search sees the entries. With an embedder,
        adding many at once is faster than adding one by one.

        Args:
            entries: The entries to index.

        Returns:
            How many of them have a new id.

        Raises:
            TypeError: If an entry or one of its fields has the wrong type.
            InvalidInput: If a number is not finite or the metadata cannot be indexed.
        """
        new = {entry.id: entry for entry in map(checked, entries)}
        known = len(self)
        rows = [self._take_in(entry) for entry in new.values()]
        texts = [self.indexed_text(row) for row in rows]
        for row, text in zip(rows, texts, strict=True):
            self.sparse.add(row, text)
            self.profiles.add(row, self.catalogue.at(row), text)
            if self._reader is not None:
                self._reader.facts.add(row, self.catalogue.at(row))
        self.vectors.add(rows, [self.embedded_text(row) for row in rows])
        return len(self) - known

    def remove(self, entry_ids: Iterable[str]) -> int:
        """Remove entries and return how many of the ids were indexed.

        Raises:
            TypeError: If ``entry_ids`` is a single str.
        """
        if isinstance(entry_ids, str):
            raise TypeError(
                f"entry ids must be a list, got the str {entry_ids!r}; put it in a list"
            )
        return sum(self._remove(entry_id) for entry_id in entry_ids)

    def search(
        self,
        question: str,
        top_k: int = 10,
        *,
        only: Condition = ANYTHING,
        now: float | None = None,
        explain: bool = False,
        ranking: Ranking | None = None,
        matching: bool = False,
    ) -> list[Hit]:
        """Return the entries that answer a question best.

        Args:
            question: The question, in any language.
            top_k: The most hits to return.
            only: Which entries may be returned. It is applied before ranking.
            now: When the question is asked (seconds since 1970): "last week" counts from there.
                The recall's clock by default.
            explain: Give each hit a ``why``.
            ranking: Weights for this search instead of the recall's own.
            matching: Return only entries that match by themselves: by a word of the question in
                their own text (stop words aside), or by their own vector.

        Returns:
            Up to ``top_k`` hits, the best first; of equals, the newest first.

        Raises:
            TypeError: If ``question`` is not a str.
            InvalidInput: If ``top_k`` is less than 1 or ``now`` is no date.
        """
        most = _count(top_k)
        ranked = self._ranked(_SearchRequest(question, only, now, ranking, most, matching))
        chances = relevances(ranked, most, self.catalogue)
        return [self._hit(ranked, place, explain, chance) for place, chance in enumerate(chances)]

    def sessions(
        self,
        question: str,
        top_k: int = 5,
        *,
        only: Condition = ANYTHING,
        now: float | None = None,
        explain: bool = False,
        ranking: Ranking | None = None,
    ) -> list[SessionHit]:
        """Return the sessions that answer a question best, each with its best entries.

        The arguments and errors are those of ``search``; ``top_k`` counts sessions. Entries without
        a session are left out.
        """
        most, found = _count(top_k), dict[str, list[Hit]]()
        ranked = self._ranked(
            _SearchRequest(question, only, now, ranking, _PER_SESSION * most, overview=False)
        )
        chances = relevances(ranked, len(ranked), self.catalogue)
        for place, row in enumerate(ranked.rows.tolist()):
            session = self.catalogue.at(row).session
            if session is None or (session not in found and len(found) == most):
                continue
            hits = found.setdefault(session, [])
            if len(hits) < _SHOWN:
                hits.append(self._hit(ranked, place, explain, chances[place]))
        return [SessionHit(name, hits[0].score, tuple(hits)) for name, hits in found.items()]

    def instructions(self, *, only: Condition = ANYTHING) -> list[Entry]:
        """Return the user's standing instructions ("always answer in metric units"), newest first.

        They apply whatever the question is. If you show them beside the hits of a search, search
        with ``default_ranking().without("instruction")``, so that they take no place among these.
        """
        rows = set(self.profiles.instructions).intersection(self.catalogue.allowed(only).tolist())
        newest = sorted(rows, key=lambda row: -int(self.catalogue.ages[row]))
        return [self.catalogue.at(row) for row in newest]

    def why_not(
        self,
        question: str,
        entry_id: str,
        top_k: int = 10,
        *,
        only: Condition = ANYTHING,
        now: float | None = None,
        ranking: Ranking | None = None,
        matching: bool = False,
    ) -> WhyNot:
        """Return why a search does not return an entry, and which entries rank above it.

        The arguments and errors are those of ``search``.
        """
        asked = _SearchRequest(question, only, now, ranking, _count(top_k), matching)
        row = self.catalogue.find(entry_id)
        if row == NO_ROW:
            return WhyNot("unknown", f"no entry has the id {entry_id!r}")
        reason = refusal(only, self.catalogue.at(row))
        if reason is not None:
            return WhyNot("filtered", reason)
        ranked = self._ranked(asked)
        place = ranked.place_of(row)
        if place is None:
            return self._why_unseen(row, self._ranked(asked, also=(row,)))
        why = self._why(ranked, place)
        if place < top_k:
            return WhyNot("found", f"it ranks number {place + 1}", place + 1, why=why)
        before = ranked.rows[: min(place, _NAMED)].tolist()
        by = tuple(self.catalogue.at(each).id for each in before)
        detail = f"it ranks number {place + 1}; top_k is {top_k}"
        return WhyNot("outranked", detail, place + 1, by, why)

    def embedder_status(self) -> EmbedderStatus:
        """Return the embedder's name, its failures, and how many entries wait for a vector."""
        return self.vectors.status()

    def embed_waiting(self, most: int = 1000) -> int:
        """Embed up to ``most`` entries that the embedder failed on; return how many still wait."""
        return self.vectors.catch_up(self.embedded_text, most)

    def change_embedder(self, embedder: Embedder) -> None:
        """Start to re-embed all entries. Searches use the old vectors until that is finished."""
        self.vectors.change(embedder)

    def embed_anew(self, most: int = 1000) -> int:
        """Re-embed up to ``most`` entries with the new embedder; return how many are left."""
        return self.vectors.embed_anew(self.catalogue.allowed().tolist(), self.embedded_text, most)

    def check(self) -> None:
        """Verify every invariant. Reads everything; meant for tests."""
        self.catalogue.check()
        self.sparse.check()
        rows = self.catalogue.allowed().tolist()
        assert len(rows) == len(self.sparse)
        assert all(row in self.sparse for row in rows)
        index = self.vectors.index
        assert index is None or set(index.keys().tolist()) <= set(rows)

    def indexed_text(self, row: int) -> str:
        """Return the text of an entry that is searched by words: its title and its text."""
        return indexed_text(self.catalogue.at(row))

    def embedded_text(self, row: int) -> str:
        """Return the text of an entry that is embedded."""
        return embedded_text(self.catalogue.at(row))

    def _ranked(self, asked: _SearchRequest, *, also: tuple[int, ...] = ()) -> Ranked:
        """Rank the candidates of the arms, and the rows in ``also``."""
        if not isinstance(asked.text, str):
            raise TypeError(f"the question must be a str, got {type(asked.text).__name__}")
        now = self._clock() if asked.now is None else asked.now
        question = ask(asked.text, _moment(now, self._zone), self.catalogue.people())
        ranking = self.ranking if asked.ranking is None else asked.ranking
        wants_overview = question.wants_overview and ranking.overview and asked.overview
        least = max(asked.at_least, WIDE if wants_overview else 0)
        if least > ranking.candidates:
            ranking = replace(ranking, candidates=least)
        ranker = Ranker(question, self.catalogue.allowed(asked.only), self, ranking, now)
        ranked = ranker.rank(also)
        if asked.matching:
            matcher = Matcher(question, self.catalogue, self.sparse, self._floor)
            ranked = matcher.only_matching(ranked)
            if len(ranked) < asked.at_least and matcher.has_other_words:
                ranked = matcher.only_matching(ranker.rank((*also, *self._with_any_word(asked))))
        if self._reader is not None:
            missing = self._reader.wanted(ranked)
            if missing:
                ranked = ranker.rank((*also, *missing))
            ranked = self._reader.reread(
                ranked, question, self, now, with_others=not asked.matching
            )
        if self.reranker is not None:
            ranked = reread(ranked, asked.text, self.reranker, self.indexed_text, ranking.reranked)
        ranked = varied(ranked, self.indexed_text, ranking.diversity)
        return covered(ranked, question, self, asked.at_least) if wants_overview else ranked

    def _with_any_word(self, asked: _SearchRequest) -> list[int]:
        """Return the best rows by all words, including those that usually propose no candidates."""
        allow = self.catalogue.mask(self.catalogue.allowed(asked.only))
        return [row for row, _ in self.sparse.search(asked.text, asked.at_least, allow=allow)]

    def _why_unseen(self, row: int, ranked: Ranked) -> WhyNot:
        """Return why a row was not found. In ``ranked`` it was made a candidate."""
        place = ranked.place_of(row)
        if place is None:
            return WhyNot("not matched", "it shares no word with the question and is not like it")
        detail = f"no arm has it among its best; as a candidate it would rank number {place + 1}"
        return WhyNot("not a candidate", detail, place + 1, why=self._why(ranked, place))

    def _why(self, ranked: Ranked, place: int) -> Why:
        row, index = int(ranked.rows[place]), self.vectors.index
        why = ranked.why(place)
        if ranked.pool.likeness is None or index is None or row not in index:
            return why
        return replace(why, likeness=float(ranked.pool.cosines[ranked.order[place]]))

    def _hit(self, ranked: Ranked, place: int, explain: bool, relevance: float) -> Hit:
        entry = self.catalogue.at(int(ranked.rows[place]))
        successor = ranked.successors.get(int(ranked.order[place]))
        return Hit(
            entry.id,
            ranked.score(place),
            entry,
            self._why(ranked, place) if explain else None,
            relevance,
            None if successor is None else self.catalogue.at(int(ranked.pool.rows[successor])).id,
            ranked.pool.likeness is not None,
        )

    def _take_in(self, entry: Entry) -> int:
        """Return the row for an entry. Neither arm has indexed it yet."""
        row = self.catalogue.find(entry.id)
        if row == NO_ROW:
            return self.catalogue.add(entry)
        self._forget(row)
        if self.catalogue.at(row).session == entry.session:
            self.catalogue.replace(row, entry)
            return row
        self.catalogue.remove(row)
        return self.catalogue.add(entry)

    def _remove(self, entry_id: str) -> bool:
        row = self.catalogue.find(entry_id)
        if row == NO_ROW:
            return False
        self._forget(row)
        self.catalogue.remove(row)
        return True

    def _forget(self, row: int) -> None:
        """Remove a row from everything but the catalogue."""
        self.sparse.remove(row)
        self.vectors.remove(row)
        self.profiles.remove(row, self.catalogue.at(row))
        if self._reader is not None:
            self._reader.forget(row, self.catalogue.at(row))


def _chosen(embedder: Embedder | Literal["best"] | None) -> Embedder | None:
    if embedder == "best":
        return best_embedder()
    if embedder is None or isinstance(embedder, Embedder):
        return embedder
    raise TypeError(f'embedder must be an Embedder, "best" or None, got {embedder!r}')


def _moment(now: float, zone: tzinfo) -> datetime:
    if not is_number(now):
        raise InvalidInput(f"now must be a number of seconds since 1970, got {now!r}")
    try:
        return datetime.fromtimestamp(now, zone)
    except (OverflowError, OSError, ValueError) as error:
        raise InvalidInput(f"now must be a valid date, got {now} seconds since 1970") from error


def _count(top_k: int) -> int:
    if isinstance(top_k, bool) or operator.index(top_k) < 1:
        raise InvalidInput(f"top_k must be 1 or more, got {top_k}")
    return top_k
