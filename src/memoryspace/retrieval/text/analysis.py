"""Tokens of texts: the stems of their words, as strings or hashed in batches.

``words`` defines what a word is, ``stems`` what its stem is. ``tokens`` is the readable reference;
``analyse`` returns the hashes of the same tokens with a few vector operations.
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

VERSION = 1  # of the definition of a token: an index made with another one must be rebuilt

_LETTERED = 3  # the kinds of spans that may have a stem; ideographs have none


class Analysis(NamedTuple):
    """The tokens of a batch, text by text; within a text in no particular order."""

    hashes: Hashes
    owners: Numbers  # the text of the batch that each token belongs to, rising
    lengths: Numbers  # the number of tokens of each text


def tokens(text: str, language: str | None = DEFAULT_LANGUAGE) -> list[str]:
    """Return the tokens of a text in reading order, with repetitions.

    Args:
        text: Any text.
        language: The language whose stemmer reads Latin script; ``None`` leaves words unstemmed.

    Returns:
        The stemmed, case-folded words.

    Raises:
        InvalidInput: If there is no stemmer for the language.
    """
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
    order = np.argsort(owners, kind="stable")  # a few sorted stretches, so this only merges
    hashes = _hash(codes, spans, stems_for(language))
    return Analysis(hashes[order], owners[order], np.sum(counts, axis=0, dtype=np.int64))


def words_of_long(text: str) -> list[str]:
    """Return what ``words`` returns, faster for a long text."""
    codes, kinds = read(f"\n{spell(text)}\n")
    spans = find_spans(codes, kinds)
    order = np.lexsort((-np.concatenate(spans.ends), np.concatenate(spans.begins)))
    codes, begins, ends = _spelled_out(codes, spans)
    line = text_in(codes)
    pairs = zip(begins[order].tolist(), ends[order].tolist(), strict=True)
    return [line[begin:end] for begin, end in pairs]


def prepare() -> None:
    """Build the lookup tables now (some hundredths of a second) instead of at the first use."""
    analyse(["a", "é"])


def _hash(codes: Codes, spans: Spans, stems: Stems) -> Hashes:
    """Hash the spans without their dropped characters, replacing words by their stems."""
    codes, begins, ends = _spelled_out(codes, spans)
    hashes = hash_spans(codes, begins, ends)
    lettered = sum(map(len, spans.begins[:_LETTERED]))
    at = np.flatnonzero(codes.take(begins[:lettered]) > ord("9"))  # most of the others are numbers

    def cut(which: Numbers) -> list[str]:
        places = at[which]
        line = text_in(codes)
        pairs = zip(begins[places].tolist(), ends[places].tolist(), strict=True)
        return [line[begin:end] for begin, end in pairs]

    hashes[at] = stems.replace(hashes[at], cut)
    return hashes


def _spelled_out(codes: Codes, spans: Spans) -> tuple[Codes, Numbers, Numbers]:
    """Append copies of the few spans with dropped characters, without these, at the end."""
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
    """Return which of the spans contain a dropped character."""
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
    """Return where each of some consecutive stretches begins."""
    return np.cumsum(lengths) - lengths


def _ranges(begins: Numbers, ends: Numbers) -> Numbers:
    """Return all positions of some stretches, one after the other."""
    lengths = ends - begins
    return np.repeat(begins - _starts(lengths), lengths) + np.arange(lengths.sum())


def text_of(payload: Any) -> str:
    """Return the searchable text of a JSON-like value: its strings and numbers, one per line.

    Keys, ``True``, ``False`` and ``None`` are left out. A str is returned as it is.
    """
    if isinstance(payload, str):
        return payload
    return "\n".join(_leaves(payload))


def _leaves(payload: Any) -> Iterator[str]:
    """Yield the searchable leaves in order; an explicit stack allows any depth of nesting."""
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
