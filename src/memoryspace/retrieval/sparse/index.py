"""A BM25 index that is always up to date and never pauses.

``add`` only notes the text. Noted texts are sealed into a sorted run together, when there are many
or before a search. ``remove`` only notes a tombstone; the postings are purged when their run is
merged.

One caller at a time: the index has no lock of its own.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidInput
from ..persistence import OutdatedIndex, load_arrays, save_arrays
from ..text.analysis import VERSION, analyse, prepare
from ..text.stems import DEFAULT_LANGUAGE, stems_for
from ..text.stopwords import STOP_WORDS, query_words
from .documents import Documents
from .filters import Allow, filter_of
from .packing import pack, unpack
from .postings import Postings
from .query import Query
from .scoring import Bm25, Floats, Scorer, Term, find_terms
from .slots_by_key import LANES

SEAL_AT = 64 * 1024  # characters: more would make the seal long, less the merges many
SEGMENT_SIZE = 1 << 15  # postings

_NOTED = 32  # what an empty text counts for, so that these are sealed, too
_REMOVALS_AT_ONCE = 64  # tombstones applied together: this is cheap, and more would be a pause
_MERGED_AT_ONCE = 1024  # removals that one call merges for; the rest is left to later calls
_KEYS = 1 << 64
_FILE = "sparse"


class WordGains(NamedTuple):
    """What the words of a query add to scores: a row for each document, a column for each word."""

    words: tuple[str, ...]
    gains: Floats


class _Asked(NamedTuple):
    """A query that was looked up: nothing has changed since."""

    text: str
    stop_words: frozenset[str]
    terms: list[Term]  # that some document holds
    scorer: Scorer


class SparseIndex:
    """Documents by int key (64 bits, unsigned), searched by their words.

    A search sees everything added before it and nothing removed. Words in Latin letters are stemmed
    in ``language`` (``None``: nothing is stemmed at all); ``stop_words`` are left out of queries
    that have other words; with ``any_word`` a search that finds nothing without them is done again
    with them, for whoever wants the best there is. ``seal_at`` (characters) and ``segment_size``
    (postings) bound what one call does at once; ``clock`` is what ``step`` measures its seconds
    with.
    """

    def __init__(
        self,
        *,
        k1: float = 1.2,
        b: float = 0.75,
        language: str | None = DEFAULT_LANGUAGE,
        stop_words: Collection[str] = STOP_WORDS,
        any_word: bool = False,
        seal_at: int = SEAL_AT,
        segment_size: int = SEGMENT_SIZE,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not k1 >= 0 or not 0 <= b <= 1:
            raise InvalidInput(f"k1 must be 0 or more and b from 0 to 1, got k1={k1}, b={b}")
        if seal_at < 1 or segment_size < 1:
            raise InvalidInput(
                f"sizes must be 1 or more, got seal_at={seal_at}, segment_size={segment_size}"
            )
        self._bm25 = Bm25(k1, b)
        self._stems = stems_for(language)
        self._stop_words = frozenset(stop_words)
        self._any_word = any_word
        self._seal_at = seal_at
        self._clock = clock
        self._noted: dict[int, str] = {}  # key → text, in the order of adding
        self._noted_size = 0
        self._tombstones: list[int] = []
        self._owed = 0  # merging for what was sealed: left to the next call, so that both are short
        self._last: _Asked | None = None  # one step of a search after another asks the same
        self.holds_removed = False  # whether words of removed documents may be in it
        self._unmerged = 0  # removals that nothing was merged for yet: a removal never merges
        self._hold(Postings(Documents(), segment_size))
        prepare()

    def __len__(self) -> int:
        return len(self._noted) + self._documents.count - len(self._tombstones)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and (key in self._noted or key in self._by_key)

    def keys(self) -> NDArray[np.uint64]:
        """Return the keys of all documents, in no order."""
        noted = np.fromiter(self._noted, np.uint64, len(self._noted))
        return np.concatenate([self._by_key.keys(), noted])

    def add(self, key: int, text: str) -> None:
        """Index a text under a key that is not in use."""
        if type(key) is not int or not isinstance(text, str) or not 0 <= key < _KEYS:
            raise _unusable(key, text)
        noted, stored = self._noted, self._by_key.stored
        is_known = key in noted or key in self._lanes[key % LANES]
        if is_known or (stored is not None and key in stored):
            raise InvalidInput(f"key {key} is already indexed; update() it, or remove() it first")
        noted[key] = text
        self._noted_size += _NOTED + len(text) if text.isascii() else _weight(text)
        if self._noted_size >= self._seal_at:
            self._owed += self._removals_to_merge() + self._seal()
        elif self._owed:
            self._keep_merging()

    def remove(self, key: int) -> bool:
        """Forget a document; tell whether there was one.

        Always short: what it leaves behind is purged by later adds and searches, or by ``step``.
        """
        slot = self._by_key.pop(key)
        if slot is None:
            return self._unnote(key)
        self.holds_removed = True
        self._tombstones.append(slot)
        if len(self._tombstones) >= _REMOVALS_AT_ONCE:
            self._apply_removals()
        return True

    def remove_many(self, keys: NDArray[np.uint64]) -> int:
        """Forget documents, each named once; return how many there were."""
        slots = self._by_key.pop_many(keys)
        is_sealed = slots >= 0
        self.holds_removed |= bool(is_sealed.any())
        self._apply_removals()
        self._last = None
        self._unmerged += self._postings.remove(slots[is_sealed].astype(np.uint32))
        return int(is_sealed.sum()) + sum(map(self._unnote, keys[~is_sealed].tolist()))

    def update(self, key: int, text: str) -> None:
        """Index a text under a key in the place of whatever was there; it counts as new."""
        if not isinstance(text, str):
            raise _unusable(key, text)
        self.remove(key)
        self.add(key, text)

    def search(
        self,
        text: str,
        top_k: int = 5,
        *,
        allow: Allow | None = None,
        exact: bool = False,
    ) -> list[tuple[int, float]]:
        """Return the best ``top_k`` documents as (key, score), the best first, then the newest.

        Only keys that ``allow`` says yes to are returned; as many as exist, up to ``top_k``. It is
        a callable, or a numpy array of bool by key, which costs next to nothing.
        ``exact`` scores every document that has any of the words, however common these are.
        """
        if operator.index(top_k) < 1:
            raise InvalidInput(f"top_k must be 1 or more, got {top_k}")
        found = self._best(text, self._stop_words, top_k, allow, exact)
        if found or not self._any_word:
            return found
        return self._best(text, frozenset(), top_k, allow, exact)

    def scores(self, text: str, keys: NDArray[np.integer[Any]]) -> Floats:
        """Return the score of each of these documents for a query, 0 for what does not match.

        Keys that are not in the index score 0, too. The scores are those of an exact search.
        """
        terms, scorer = self._look_up(text, self._stop_words)[2:]
        distinct, which = np.unique(_flat(keys), return_inverse=True)
        slots = self._by_key.find(distinct)
        known = np.flatnonzero(slots >= 0)
        scores = np.zeros(len(distinct))
        scores[known] = scorer.look_up(terms, slots[known], scores[known])
        return scores[which]

    def gains(self, text: str, keys: NDArray[np.integer[Any]]) -> WordGains:
        """Return what each word of a query adds to the score of each of these documents.

        Words that no document has are left out; for keys that are not in the index all is 0.
        """
        terms, scorer = self._look_up(text, self._stop_words)[2:]
        slots = self._by_key.find(_flat(keys))
        known = np.flatnonzero(slots >= 0)
        gains = scorer.look_up_each(terms, slots[known])
        if len(known) < len(slots):
            found, gains = gains, np.zeros((len(slots), len(terms)))
            gains[known] = found
        return WordGains(tuple(term.word for term in terms), gains)

    def matched(self, text: str, key: int) -> list[tuple[str, float]]:
        """Return which words of a query a document has, with what each adds to its score.

        The words are spelled as in the query; the one that adds most comes first.
        """
        terms, scorer = self._look_up(text, self._stop_words)[2:]
        found = self._by_key.find(np.array([key]))
        if found[0] < 0:
            return []
        nothing = np.zeros(1)
        shares = [(term.word, scorer.look_up([term], found, nothing).item()) for term in terms]
        return sorted((each for each in shares if each[1] > 0), key=lambda each: -each[1])

    def weights(self, text: str) -> dict[str, float]:
        """Return what the words of a query say: the rarer a word, the more (its idf)."""
        terms = self._terms(text, self._stop_words)
        scorer = self._scorer()
        return {term.word: scorer.rarity(term) for term in terms}

    def holders(self, groups: Sequence[Sequence[str]], most: int) -> list[list[int]]:
        """Return for each group of words the keys of documents that may hold them all.

        Whoever holds all is among them: of a group's words, the rarest first, so many are looked at
        as leave ``most`` documents or fewer. Nobody, where none do or a word is in no document.
        """
        self._settle()
        stem_hash, runs = self._stems.stem_hash, list(self._postings.runs.values())
        terms = find_terms([word for group in groups for word in group], stem_hash, runs)
        by_hash = {stem_hash(term.word): term for term in terms}
        scorer, keys = self._scorer(), self._documents.keys
        return [
            keys[scorer.held([by_hash[stem_hash(word)] for word in group], most)].tolist()
            for group in groups
        ]

    def step(self, seconds: float) -> bool:
        """Do upkeep for about so long; tell whether there is more to do.

        Nobody has to call this; who does it while idle makes later calls shorter.
        """
        deadline = self._clock() + seconds
        self._last = None
        self._apply_removals()
        return self._postings.merge_while(lambda: self._clock() < deadline)

    def save(self, folder: Path) -> None:
        """Write the index into a folder, in the place of what was saved there before.

        A crash leaves the old one or the new one. Merges under way are finished first.
        """
        self._settle()
        self._last = None
        self._postings.merge_while(lambda: True)
        sizes = {"seal_at": self._seal_at, "segment_size": self._postings.segment_size}
        about = {"words": self._reading(), **sizes}
        save_arrays(Path(folder), _FILE, pack(self._postings), about)

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        k1: float = 1.2,
        b: float = 0.75,
        language: str | None = DEFAULT_LANGUAGE,
        stop_words: Collection[str] = STOP_WORDS,
        any_word: bool = False,
        verify: bool = True,
    ) -> SparseIndex:
        """Open an index that was saved. Its postings stay on disk until they are needed.

        ``verify`` reads everything once and compares checksums. Raises ``FileNotFoundError`` if
        none was saved, ``CorruptData`` if it is damaged, of a later version, or was made with
        another language or stemmer (``OutdatedIndex``): then it must be built again.
        """
        about, arrays = load_arrays(Path(folder), _FILE, verify=verify)
        index = cls(k1=k1, b=b, language=language, stop_words=stop_words, any_word=any_word)
        if about.get("words") != index._reading():
            raise OutdatedIndex(
                f"the index in {folder} was made with words read as {about.get('words')}, "
                f"but {index._reading()} was asked for; rebuild it"
            )
        index._seal_at = about["seal_at"]
        index._hold(unpack(arrays, about["segment_size"]))
        return index

    @property
    def nbytes(self) -> int:
        """Bytes held, apart from texts that are noted but not sealed yet."""
        return self._documents.nbytes + self._postings.nbytes

    def check(self) -> None:
        """Verify every invariant; for tests, it looks at everything."""
        self._documents.check()
        assert self._noted_size == sum(map(_weight, self._noted.values()))
        assert not any(key in self._by_key for key in self._noted)
        self._postings.check()

    def _hold(self, postings: Postings) -> None:
        self._last = None
        self._postings = postings
        self._documents = postings.documents
        self._by_key = self._documents.by_key
        self._lanes = self._by_key.lanes

    def _reading(self) -> str:
        """Say how words are read: an index and its queries must agree."""
        return f"words {VERSION}, stems: {self._stems.version}"

    def _terms(self, text: str, stop_words: frozenset[str]) -> list[Term]:
        """Look up the words of a query, after everything noted has taken effect."""
        if not isinstance(text, str):
            raise TypeError(f"the query must be a str, got {type(text).__name__}")
        self._settle()
        found = query_words(text, stop_words)
        return find_terms(found, self._stems.stem_hash, list(self._postings.runs.values()))

    def _best(
        self, text: str, stop_words: frozenset[str], top_k: int, allow: Allow | None, exact: bool
    ) -> list[tuple[int, float]]:
        asked = self._look_up(text, stop_words)
        query = Query(asked.terms, asked.scorer, filter_of(allow))
        try:
            return query.best(top_k, exact=exact)
        finally:
            query.close()

    def _look_up(self, text: str, stop_words: frozenset[str]) -> _Asked:
        """Look up the words of a query that some document holds, or return them as they were."""
        last = self._last
        if last is not None and last[:2] == (text, stop_words) and not self._is_noted():
            return last
        terms = [term for term in self._terms(text, stop_words) if term.documents]
        self._last = _Asked(text, stop_words, terms, self._scorer())
        return self._last

    def _scorer(self) -> Scorer:
        return Scorer(list(self._postings.runs.values()), self._documents, self._bm25)

    def _is_noted(self) -> bool:
        """Tell whether there is anything that has not taken effect."""
        return bool(self._noted or self._tombstones or self._unmerged or self._owed)

    def _settle(self) -> None:
        """Let everything noted, removals and texts, take effect."""
        self._owed += self._removals_to_merge() + self._seal()
        if self._owed:
            self._keep_merging()

    def _keep_merging(self) -> None:
        owed, self._owed = self._owed, 0
        self._last = None
        self._postings.keep_merging(owed)

    def _apply_removals(self) -> None:
        if self._tombstones:
            slots = np.array(self._tombstones, np.uint32)
            self._last = None
            self._tombstones.clear()
            self._unmerged += self._postings.remove(slots)

    def _removals_to_merge(self) -> int:
        """Apply tombstones; return for how many removals to merge now."""
        self._apply_removals()
        now = min(self._unmerged, _MERGED_AT_ONCE)
        self._unmerged -= now
        return now

    def _unnote(self, key: int) -> bool:
        text = self._noted.pop(key, None)
        if text is None:
            return False
        self._noted_size -= _weight(text)
        return True

    def _seal(self) -> int:
        """Turn the texts into a run; return its size. They are let go when nothing can fail."""
        if not self._noted:
            return 0
        analysis = analyse(list(self._noted.values()), self._stems.language)
        self._last = None
        size = self._postings.seal(self._noted, analysis)
        self._noted.clear()
        self._noted_size = 0
        return size


def _flat(keys: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    keys = np.asarray(keys)
    if keys.ndim != 1 or (len(keys) and not np.issubdtype(keys.dtype, np.integer)):
        raise TypeError(f"keys must be a flat array of ints, got {keys.dtype} {keys.shape}")
    return keys


def _weight(text: str) -> int:
    """Weigh a text by what it costs to seal: outside ASCII there may be two tokens a character."""
    return _NOTED + (len(text) if text.isascii() else 3 * len(text))


def _unusable(key: object, text: object) -> Exception:
    if not isinstance(text, str):
        return TypeError(f"the text of key {key!r} must be a str, got {type(text).__name__}")
    if type(key) is not int:
        return TypeError(f"a key must be an int, got {type(key).__name__}")
    return InvalidInput(f"key {key} is not one of 64 bits; use one from 0 to 2**64 - 1")
