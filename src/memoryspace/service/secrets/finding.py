"""``secrets_in`` and ``masked``: find and mask the secrets in a text.

Secrets are cards, passwords, PINs, access codes, keys and tokens, national ids and bank accounts.
They are identified by their form, or by a word beside them in English or Chinese. Talk about
secrets that reveals none ("I forgot my password") passes. Detection covers the usual wordings, not
every wording. The running time is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from .cues import by_cue
from .formats import by_form

MASK = "•••"  # of one length for every secret; no value contains this character
_MOST_REPEATED = 20  # secrets of one text that are searched for repetitions, for linear time


class Secret(Struct, frozen=True, order=True):
    """A secret of a kind in a text, from ``start`` up to ``end``."""

    start: int
    end: int
    kind: str


def secrets_in(text: str) -> list[Secret]:
    """Return the secrets in a text, in reading order and without overlaps.

    Repetitions of a secret are secrets too.

    Examples:
        >>> secrets_in("the door code is 4711#")
        [Secret(start=17, end=22, kind='access code')]
    """
    found = [Secret(start, end, kind) for kind, start, end in (*by_form(text), *by_cue(text))]
    apart: list[Secret] = []
    for each in sorted({*found, *_repeated(found, text)}) if found else ():
        if apart and each.start < apart[-1].end:
            last = apart.pop()
            each = Secret(last.start, max(last.end, each.end), last.kind)
        apart.append(each)
    return apart


def _repeated(found: Sequence[Secret], text: str) -> Iterator[Secret]:
    kinds = {text[each.start : each.end]: each.kind for each in found[:_MOST_REPEATED]}
    for match in anywhere(kinds).finditer(text):
        yield Secret(*match.span(), kinds[match[0]])


def anywhere(values: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches any of some values as a whole word."""
    longest_first = sorted(values, key=len, reverse=True)
    return re.compile(
        rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9])"
    )


def masked(text: str) -> str:
    """Return a text with every secret replaced by ``MASK``, repeated until none is found."""
    while found := secrets_in(text):
        ends = [0, *(each.end for each in found)]
        starts = [*(each.start for each in found), len(text)]
        text = MASK.join(text[end:start] for end, start in zip(ends, starts, strict=True))
    return text
