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

_NAMED = 5  # of those who outrank an entry, in ``why_not``
_SHOWN = 3  # entries of a session
_PER_SESSION = 10  # candidates for each session asked for: many may be of one


class _Asked(Struct, frozen=True):
    """A search: what is asked of whom, and how many at least must be looked at for it."""

    text: str
    only: Condition
    now: float | None
    ranking: Ranking | None
    at_least: int
    matching: bool = False
    overview: bool = True  # answered along time, if the question is for one


class Recall:
    """The entries of one owner, found by questions.

    ``embedder`` makes the vectors: by default the best one installed, with ``None`` words alone
    are searched. ``ranking`` holds the weights. ``reranker`` reads the best candidates beside the
    question once more. ``clock`` tells when a question is asked, unless the asker does; days begin
    and end as in ``zone``. From a cosine of ``floor`` on, an entry matches by its meaning alone.
    With ``personal`` the entries are what one person told: the best are read for whom and what they
    are about, and for what holds now (``memoryspace.retrieval.personal``).
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

    @property
    def reader(self) -> PersonalReader | None:
        """Who takes the second look, if it is a personal memory."""
        return self._reader

    def __len__(self) -> int:
        return len(self.catalogue)

    @property
    def nbytes(self) -> int:
        """About how many bytes of RAM the entries and their indexes take."""
        return self.sparse.nbytes + self.vectors.nbytes + self.catalogue.nbytes

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self.catalogue

    def ids(self) -> list[str]:
        """Return the ids of all entries, in no special order."""
        return self.catalogue.ids()

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
            if self._reader is not None:
                self._reader.facts.add(row, self.catalogue.at(row))
        self.vectors.add(rows, [self.embedded_text(row) for row in rows])
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
        only: Condition = ANYTHING,
        now: float | None = None,
        explain: bool = False,
        ranking: Ranking | None = None,
        matching: bool = False,
    ) -> list[Hit]:
        """Return the entries that answer a question best, the best first, then the newest.

        ``now`` is when it is asked (seconds since 1970): "last week" counts from there.
        With ``matching``, only those are returned that match by themselves: by a word of the
        question in their own text (stop words aside), or by their own meaning.
        """
        most = _count(top_k)
        ranked = self._ranked(_Asked(question, only, now, ranking, most, matching))
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
        """Return the sessions that answer a question best, each with its best entries."""
        most, found = _count(top_k), dict[str, list[Hit]]()
        ranked = self._ranked(
            _Asked(question, only, now, ranking, _PER_SESSION * most, overview=False)
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
        """Return what the user said of how things are to be done from now on, the newest first.

        It holds whatever is asked, so it stands beside hits: whoever shows it there searches with
        ``default_ranking().without("instruction")``, and it takes no place among them.
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
        """Say where an entry falls out of a search, and who is in front of it."""
        asked = _Asked(question, only, now, ranking, _count(top_k), matching)
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
            return WhyNot("found", f"it is number {place + 1}", place + 1, why=why)
        before = ranked.rows[: min(place, _NAMED)].tolist()
        by = tuple(self.catalogue.at(each).id for each in before)
        detail = f"it is number {place + 1}, and {top_k} were asked for"
        return WhyNot("outranked", detail, place + 1, by, why)

    def embedder_status(self) -> EmbedderStatus:
        """Tell who embeds, how often that failed, and how many entries wait for it."""
        return self.vectors.status()

    def embed_waiting(self, most: int = 1000) -> int:
        """Embed entries for which the embedder failed before; return how many still wait."""
        return self.vectors.catch_up(self.embedded_text, most)

    def change_embedder(self, embedder: Embedder) -> None:
        """Begin to embed everything anew. Searches use the old vectors until that is done."""
        self.vectors.change(embedder)

    def embed_anew(self, most: int = 1000) -> int:
        """Go on with a change of the embedder for so many entries; return how many are left."""
        return self.vectors.embed_anew(self.catalogue.allowed().tolist(), self.embedded_text, most)

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
        """Return what of an entry the words' arm sees: its title and its text."""
        return indexed_text(self.catalogue.at(row))

    def embedded_text(self, row: int) -> str:
        """Return what of an entry the vectors' arm sees."""
        return embedded_text(self.catalogue.at(row))

    def _ranked(self, asked: _Asked, *, also: tuple[int, ...] = ()) -> Ranked:
        """Rank. ``also`` are looked at, too, whether an arm names them or not."""
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

    def _with_any_word(self, asked: _Asked) -> list[int]:
        """Return the best by all words, those included that are not looked for otherwise."""
        allow = self.catalogue.mask(self.catalogue.allowed(asked.only))
        return [row for row, _ in self.sparse.search(asked.text, asked.at_least, allow=allow)]

    def _why_unseen(self, row: int, ranked: Ranked) -> WhyNot:
        """Say why a row is not among those found; in ``ranked`` it was made a candidate."""
        place = ranked.place_of(row)
        if place is None:
            return WhyNot("not matched", "it shares no word with the question and is not like it")
        detail = f"no arm has it among its best; looked at, it would be number {place + 1}"
        return WhyNot("not a candidate", detail, place + 1, why=self._why(ranked, place))

    def _why(self, ranked: Ranked, place: int) -> Why:
        row, index = int(ranked.rows[place]), self.vectors.index
        why = ranked.why(place)
        if ranked.pool.likeness is None or index is None or row not in index:
            return why
        return replace(why, likeness=float(ranked.pool.cosines[ranked.order[place]]))

    def _hit(self, ranked: Ranked, place: int, explain: bool, relevance: float) -> Hit:
        entry = self.catalogue.at(int(ranked.rows[place]))
        heir = ranked.heirs.get(int(ranked.order[place]))
        return Hit(
            entry.id,
            ranked.score(place),
            entry,
            self._why(ranked, place) if explain else None,
            relevance,
            None if heir is None else self.catalogue.at(int(ranked.pool.rows[heir])).id,
            ranked.pool.likeness is not None,
        )

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
        raise InvalidInput(f"now is {now} seconds since 1970, which no calendar has") from error


def _count(top_k: int) -> int:
    if isinstance(top_k, bool) or operator.index(top_k) < 1:
        raise InvalidInput(f"top_k must be 1 or more, got {top_k}")
    return top_k
