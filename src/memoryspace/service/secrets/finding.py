"""``secrets_in``: where a text holds what nobody but its owner should read.

Cards, passwords, PINs, codes of doors, keys and tokens, national ids, bank accounts; by their form,
or by a word in English or Chinese that says what follows. Talk about secrets that tells none ("I
forgot my password") passes. It knows the usual ways of saying one, not every way. Its time is
linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from .cues import by_cue
from .formats import by_form

MASK = "•••"  # of one length, whatever it stands for; no value has such a sign
_MOST_REPEATED = 20  # secrets of one text whose repetitions are looked for: time stays linear


class Secret(Struct, frozen=True, order=True):
    """A secret of a kind, from ``start`` up to ``end``."""

    start: int
    end: int
    kind: str


def secrets_in(text: str) -> list[Secret]:
    """Return the secrets in a text, in reading order; no two overlap.

    What was told to be one is one wherever it is repeated.
    """
    told = [Secret(start, end, kind) for kind, start, end in (*by_form(text), *by_cue(text))]
    apart: list[Secret] = []
    for each in sorted({*told, *_repeated(told, text)}) if told else ():
        if apart and each.start < apart[-1].end:
            last = apart.pop()
            each = Secret(last.start, max(last.end, each.end), last.kind)
        apart.append(each)
    return apart


def _repeated(told: Sequence[Secret], text: str) -> Iterator[Secret]:
    kinds = {text[each.start : each.end]: each.kind for each in told[:_MOST_REPEATED]}
    for match in anywhere(kinds).finditer(text):
        yield Secret(*match.span(), kinds[match[0]])


def anywhere(values: Iterable[str]) -> re.Pattern[str]:
    """Return the pattern of any of some values where it stands by itself."""
    longest_first = sorted(values, key=len, reverse=True)
    return re.compile(
        rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9])"
    )


def masked(text: str) -> str:
    """Return a text with a mask in the place of each secret, until none is found any more."""
    while found := secrets_in(text):
        ends = [0, *(each.end for each in found)]
        starts = [*(each.start for each in found), len(text)]
        text = MASK.join(text[end:start] for end, start in zip(ends, starts, strict=True))
    return text
