"""Profiles of entries: what ranking computes once, when an entry is added, by row."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

import numpy as np
from numpy.typing import NDArray

from ..entries import Entry
from ..times import times_in
from .names import Mentions, TitleNames
from .traits import INSTRUCTS, fullness_of, traits_of

Span = tuple[float, float]

_LEAST = 256
_READ = 1500  # characters that are searched for times
_LONGEST_SPAN = 35 * 86400.0  # a longer period is too vague


class Profiles:
    """Traits, fullness, mentioned times and names of entries; flat arrays where all have one."""

    def __init__(self, zone: tzinfo = UTC) -> None:
        self.traits: NDArray[np.uint8] = np.zeros(_LEAST, np.uint8)
        self.fullness: NDArray[np.float64] = np.zeros(_LEAST)
        self.said: dict[int, tuple[Span, ...]] = {}  # row → the times that its text mentions
        self.instructions: dict[int, None] = {}  # rows with standing instructions
        self.names = TitleNames()
        self.titled: dict[int, None] = {}  # rows with a title
        self.mentions = Mentions()
        self.zone = zone

    def add(self, row: int, entry: Entry, text: str) -> None:
        """Add the profile of an entry; ``text`` is its indexed text."""
        if row >= len(self.traits):
            self.traits = np.resize(self.traits, 2 * row)
            self.fullness = np.resize(self.fullness, 2 * row)
        self.traits[row] = traits = traits_of(entry)
        self.fullness[row] = fullness_of(text)
        if traits & INSTRUCTS:
            self.instructions[row] = None
        said = self._times_said(entry)
        if said:
            self.said[row] = said
        self.names.add(row, entry.title)
        if entry.title is not None:
            self.titled[row] = None

    def remove(self, row: int, entry: Entry) -> None:
        """Remove the profile of an entry."""
        self.said.pop(row, None)
        self.instructions.pop(row, None)
        self.names.remove(row, entry.title)
        self.titled.pop(row, None)
        self.mentions.forget(row)

    def _times_said(self, entry: Entry) -> tuple[Span, ...]:
        if entry.time is None:
            return ()
        try:
            now = datetime.fromtimestamp(entry.time, self.zone)
        except (OverflowError, OSError, ValueError):
            return ()  # outside the calendar
        spans = [
            (each.start.timestamp(), each.end.timestamp())
            for each in times_in(entry.text[:_READ], now)
        ]
        return tuple(span for span in spans if span[1] - span[0] <= _LONGEST_SPAN)
