"""What a search sees of a text: the stems of its words, hashed, a whole batch of texts at a time.

``words`` says what a word is, ``stems`` what its stem. ``tokens`` is the readable meaning;
``analyse`` gives the hashes of the same tokens with a few vector operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .characters import read, spell
from .hashing import Codes, Hashes, Numbers, hash_spans, text_in, token_hash
from .spans import Spans, find_spans
from .stems import DEFAULT_LANGUAGE, Stems, stems_for
from .words import words

__all__ = ["Analysis", "analyse", "prepare", "text_of", "token_hash", "tokens"]

VERSION = 1  # of what is a token: an index made with another one must be made again

_LETTERED = 3  # the sorts of spans that may have a stem; ideographs have none


class Analysis(NamedTuple):
    """The tokens of a batch, text by text; within a text in no particular order."""

    hashes: Hashes
    owners: Numbers  # which text of the batch each token stands in, rising
    lengths: Numbers  # how many tokens each text has


def tokens(text: str, language: str | None = DEFAULT_LANGUAGE) -> list[str]:
    """Return the tokens of a text in reading order, repeated as they are repeated."""
    stem = stems_for(language).stem
    return [stem(word) for word in words(text)]


def analyse(texts: Sequence[str], language: str | None = DEFAULT_LANGUAGE) -> Analysis:
    """Hash every token of every text."""
    spelled = [text if text.isascii() else spell(text) for text in texts]
    joined = "\n".join(("", *spelled, ""))
    codes, kinds = read(joined)
    spans = find_spans(codes, kinds)
    borders = np.cumsum([1, *[length + 1 for length in map(len, spelled)]])
    counts = [np.diff(begin.searchsorted(borders)) for begin in spans.begins]
    every = np.arange(len(spelled))
    owners = np.concatenate([np.repeat(every, count) for count in counts])
    order = np.argsort(owners, kind="stable")  # a few sorted stretches: these are only merged
    hashes = _hash(codes, spans, stems_for(language))
    return Analysis(hashes[order], owners[order], np.sum(counts, axis=0, dtype=np.int64))


def words_of_long(text: str) -> list[str]:
    """Return what ``words`` returns, sooner if the text is long."""
    codes, kinds = read(f"\n{spell(text)}\n")
    spans = find_spans(codes, kinds)
    order = np.lexsort((-np.concatenate(spans.ends), np.concatenate(spans.begins)))
    codes, begins, ends = _spelled_out(codes, spans)
    line = text_in(codes)
    pairs = zip(begins[order].tolist(), ends[order].tolist(), strict=True)
    return [line[begin:end] for begin, end in pairs]


def prepare() -> None:
    """Make the tables now, in some hundredths of a second, and not within the first use."""
    analyse(["a", "é"])


def _hash(codes: Codes, spans: Spans, stems: Stems) -> Hashes:
    """Hash the spans, as if the characters dropped had never been there, and stem what has one."""
    codes, begins, ends = _spelled_out(codes, spans)
    hashes = hash_spans(codes, begins, ends)
    lettered = sum(map(len, spans.begins[:_LETTERED]))
    at = np.flatnonzero(codes.take(begins[:lettered]) > ord("9"))  # of the others, most are numbers

    def cut(which: Numbers) -> list[str]:
        places = at[which]
        line = text_in(codes)
        pairs = zip(begins[places].tolist(), ends[places].tolist(), strict=True)
        return [line[begin:end] for begin, end in pairs]

    hashes[at] = stems.replace(hashes[at], cut)
    return hashes


def _spelled_out(codes: Codes, spans: Spans) -> tuple[Codes, Numbers, Numbers]:
    """Spell the few spans that have dropped characters once more, behind all others."""
    begins, ends = np.concatenate(spans.begins), np.concatenate(spans.ends)
    if not len(spans.dropped):
        return codes, begins, ends
    which = _holding(spans)
    places = _ranges(begins[which], ends[which])
    is_kept = np.ones(len(codes), np.bool_)
    is_kept[spans.dropped] = False
    kept = is_kept[places]
    lengths = np.add.reduceat(kept, _starts(ends[which] - begins[which]), dtype=np.int64)
    begins[which] = len(codes) + _starts(lengths)
    ends[which] = begins[which] + lengths
    return np.concatenate((codes, codes[places[kept]])), begins, ends


def _holding(spans: Spans) -> Numbers:
    """Which of the spans hold a dropped character."""
    found: list[Numbers] = []
    before = 0
    for begin, end in zip(spans.begins[:_LETTERED], spans.ends, strict=False):
        if len(begin):
            owners = begin.searchsorted(spans.dropped, "right") - 1
            inside = (owners >= 0) & (spans.dropped < end.take(owners))
            found.append(before + np.unique(owners[inside]))
        before += len(begin)
    return np.concatenate(found)


def _starts(lengths: Numbers) -> Numbers:
    """Where each of some stretches begins if they follow each other."""
    return np.cumsum(lengths) - lengths


def _ranges(begins: Numbers, ends: Numbers) -> Numbers:
    """All positions of some stretches, one after the other."""
    lengths = ends - begins
    return np.repeat(begins - _starts(lengths), lengths) + np.arange(lengths.sum())


def text_of(payload: Any) -> str:
    """Return what a search sees of a JSON-like value: its strings and numbers, one a line.

    Keys, ``True``, ``False`` and ``None`` are not searched.
    """
    if isinstance(payload, str):
        return payload
    return "\n".join(_leaves(payload))


def _leaves(payload: Any) -> Iterator[str]:
    """Yield the searchable leaves in order; a stack of its own lets the nesting be any depth."""
    waiting: list[Iterator[Any]] = [iter((payload,))]
    while waiting:
        for value in waiting[-1]:
            if isinstance(value, str):
                yield value
            elif isinstance(value, int | float) and not isinstance(value, bool):
                yield str(value)
            elif isinstance(value, dict | list | tuple):
                waiting.append(iter(value.values() if isinstance(value, dict) else value))
                break
        else:
            waiting.pop()
