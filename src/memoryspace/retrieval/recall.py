"""``Recall``: what was said is found again, by its words, its meaning, and what a question names.

One recall holds one owner's entries. A question is taken apart; two arms, words and vectors, name
candidates; signals score these; their weighted sum ranks. Every step is a value that can be looked
at: ``explain=True`` says why a hit is one, ``why_not`` where an entry fell out.

The index is a hint: all of it can be rebuilt from the store that holds the records. One caller at a
time: there is no lock inside.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import Literal

from msgspec.structs import replace

from ..embedding import Embedder, best_embedder
from ..errors import InvalidInput
from ..record import is_number
from .catalogue import NO_ROW, Catalogue
from .entries import EVERYTHING, Entry, Only, checked
from .hits import Hit, SessionHit, WhyNot
from .ranking import (
    Profiles,
    Ranked,
    Ranker,
    Ranking,
    Reranker,
    ask,
    default_ranking,
    reread,
    varied,
)
from .sparse.index import SparseIndex
from .vector_arm import VectorArm

_NAMED = 5  # of those who outrank an entry, in ``why_not``
_SHOWN = 3  # entries of a session
_PER_SESSION = 10  # candidates for each session asked for: many may be of one


class Recall:
    """The entries of one owner, found by questions.

    ``embedder`` makes the vectors: by default the best one installed, with ``None`` words alone
    are searched. ``ranking`` holds the weights. ``reranker`` reads the best candidates beside the
    question once more. ``clock`` tells when a question is asked, unless the asker does; days begin
    and end as in ``zone``.
    """

    def __init__(
        self,
        *,
        embedder: Embedder | Literal["best"] | None = "best",
        ranking: Ranking | None = None,
        reranker: Reranker | None = None,
        zone: tzinfo = UTC,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ranking = default_ranking() if ranking is None else ranking
        self.reranker = reranker
        self.catalogue = Catalogue()
        self.profiles = Profiles(zone)
        self.sparse = SparseIndex()
        self.vectors = VectorArm(_chosen(embedder))
        self._zone = zone
        self._clock = clock

    def __len__(self) -> int:
        return len(self.catalogue)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self.catalogue

    def get(self, entry_id: str) -> Entry | None:
        """Return an entry, or ``None`` if there is none of this id."""
        row = self.catalogue.find(entry_id)
        return None if row == NO_ROW else self.catalogue.at(row)

    def add(self, entries: Iterable[Entry]) -> int:
        """Index entries, all or none; return how many are new.

        One whose id is known replaces that one, and keeps its place if the session is the same.
        The next search sees them. Many at once are quicker than one by one, with an embedder.
        """
        new = {entry.id: entry for entry in map(checked, entries)}
        known = len(self)
        rows = [self._take_in(entry) for entry in new.values()]
        texts = [self.indexed_text(row) for row in rows]
        for row, text in zip(rows, texts, strict=True):
            self.sparse.add(row, text)
            self.profiles.add(row, self.catalogue.at(row), text)
        self.vectors.add(rows, texts)
        return len(self) - known

    def remove(self, entry_ids: Iterable[str]) -> int:
        """Forget entries; return how many there were."""
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
        only: Only = EVERYTHING,
        now: float | None = None,
        explain: bool = False,
        ranking: Ranking | None = None,
    ) -> list[Hit]:
        """Return the entries that answer a question best, the best first, then the newest.

        ``now`` is when it is asked (seconds since 1970): "last week" counts from there.
        """
        most = _count(top_k)
        ranked = self._ranked(question, only, now, ranking, at_least=most)
        return [self._hit(ranked, place, explain) for place in range(min(most, len(ranked)))]

    def sessions(
        self,
        question: str,
        top_k: int = 5,
        *,
        only: Only = EVERYTHING,
        now: float | None = None,
        explain: bool = False,
        ranking: Ranking | None = None,
    ) -> list[SessionHit]:
        """Return the sessions that answer a question best, each with its best entries."""
        most, found = _count(top_k), dict[str, list[Hit]]()
        ranked = self._ranked(question, only, now, ranking, at_least=_PER_SESSION * most)
        for place, row in enumerate(ranked.rows.tolist()):
            session = self.catalogue.at(row).session
            if session is None or (session not in found and len(found) == most):
                continue
            hits = found.setdefault(session, [])
            if len(hits) < _SHOWN:
                hits.append(self._hit(ranked, place, explain))
        return [SessionHit(name, hits[0].score, tuple(hits)) for name, hits in found.items()]

    def why_not(
        self,
        question: str,
        entry_id: str,
        top_k: int = 10,
        *,
        only: Only = EVERYTHING,
        now: float | None = None,
        ranking: Ranking | None = None,
    ) -> WhyNot:
        """Say where an entry falls out of a search, and who is in front of it."""
        most = _count(top_k)
        row = self.catalogue.find(entry_id)
        if row == NO_ROW:
            return WhyNot("unknown", f"no entry has the id {entry_id!r}")
        refusal = only.refusal(self.catalogue.at(row))
        if refusal is not None:
            return WhyNot("filtered", refusal)
        ranked = self._ranked(question, only, now, ranking, at_least=most)
        place = ranked.place_of(row)
        if place is None:
            again = self._ranked(question, only, now, ranking, at_least=most, also=(row,))
            return self._why_unseen(row, again)
        why = ranked.why(place)
        if place < most:
            return WhyNot("found", f"it is number {place + 1}", place + 1, why=why)
        by = tuple(
            self.catalogue.at(each).id for each in ranked.rows[: min(place, _NAMED)].tolist()
        )
        detail = f"it is number {place + 1}, and {top_k} were asked for"
        return WhyNot("outranked", detail, place + 1, by, why)

    def embed_waiting(self, most: int = 1000) -> int:
        """Embed entries for which the embedder failed before; return how many still wait."""
        return self.vectors.catch_up(self.indexed_text, most)

    def change_embedder(self, embedder: Embedder) -> None:
        """Begin to embed everything anew. Searches use the old vectors until that is done."""
        self.vectors.change(embedder)

    def embed_anew(self, most: int = 1000) -> int:
        """Go on with a change of the embedder for so many entries; return how many are left."""
        return self.vectors.embed_anew(self.catalogue.allowed().tolist(), self.indexed_text, most)

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
        self.catalogue.check()
        self.sparse.check()
        rows = self.catalogue.allowed().tolist()
        assert len(rows) == len(self.sparse)
        assert all(row in self.sparse for row in rows)
        index = self.vectors.index
        assert index is None or set(index.keys().tolist()) <= set(rows)

    def indexed_text(self, row: int) -> str:
        """Return what of an entry both arms see: its title and its text."""
        entry = self.catalogue.at(row)
        return entry.text if entry.title is None else f"{entry.title}. {entry.text}"

    def _ranked(
        self,
        text: str,
        only: Only,
        now: float | None,
        ranking: Ranking | None,
        *,
        at_least: int,
        also: Iterable[int] = (),
    ) -> Ranked:
        """Rank; of each arm ``at_least`` so many candidates are looked at."""
        if not isinstance(text, str):
            raise TypeError(f"the question must be a str, got {type(text).__name__}")
        now = self._clock() if now is None else now
        when = _moment(now, self._zone)
        question = ask(text, when, self.catalogue.values_of("speaker"))
        ranking = self.ranking if ranking is None else ranking
        if at_least > ranking.candidates:
            ranking = replace(ranking, candidates=at_least)
        ranked = Ranker(question, self.catalogue.allowed(only), self, ranking, now).rank(also)
        if self.reranker is not None:
            ranked = reread(ranked, text, self.reranker, self.indexed_text, ranking.reranked)
        return varied(ranked, self.indexed_text, ranking.diversity)

    def _why_unseen(self, row: int, ranked: Ranked) -> WhyNot:
        """Say why a row is not among those found; in ``ranked`` it was made a candidate."""
        place = ranked.place_of(row)
        if place is None:
            return WhyNot("not matched", "it shares no word with the question and is not like it")
        detail = f"no arm has it among its best; looked at, it would be number {place + 1}"
        return WhyNot("not a candidate", detail, place + 1, why=ranked.why(place))

    def _hit(self, ranked: Ranked, place: int, explain: bool) -> Hit:
        entry = self.catalogue.at(int(ranked.rows[place]))
        return Hit(entry.id, ranked.score(place), entry, ranked.why(place) if explain else None)

    def _take_in(self, entry: Entry) -> int:
        """Return the row of an entry, which neither arm knows yet."""
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
        """Let everybody but the catalogue forget a row."""
        self.sparse.remove(row)
        self.vectors.remove(row)
        self.profiles.remove(row, self.catalogue.at(row))


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
        raise InvalidInput(f"now is {now} seconds since 1970, which no calendar has") from error


def _count(top_k: int) -> int:
    if isinstance(top_k, bool) or operator.index(top_k) < 1:
        raise InvalidInput(f"top_k must be 1 or more, got {top_k}")
    return top_k
