"""Sighting reports as texts to store and to query."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import CorruptData
from ..harness.data import Data

FILE = "ufo.csv.gz"
_COLUMNS = ("City", "Colors Reported", "Shape Reported", "State", "Time")


@dataclass(frozen=True)
class Sighting:
    """The place, time and description of a sighting."""

    city: str
    colour: str
    shape: str
    state: str
    time: str

    @property
    def text(self) -> str:
        """Return the text that is stored."""
        colour = f"{self.colour} " if self.colour else ""
        return f"{colour}{self.shape} over {self.city}, {self.state} at {self.time}"

    @property
    def question(self) -> str:
        """Return the prototype's query: shape and city."""
        return f"{self.shape} {self.city}"

    @property
    def exact_question(self) -> str:
        """Return a query that only this report answers, unless there are duplicates."""
        return f"{self.shape} {self.city} {self.state} {self.time}"


def sightings(data: Data) -> list[Sighting]:
    """Return the reports that have a shape and a city, in file order."""
    return data.once("sightings", lambda: _read(data))


def shuffled(data: Data, seed: int, limit: int) -> list[Sighting]:
    """Return some of the reports in random order."""
    found = list(sightings(data))
    random.Random(f"sightings {seed}").shuffle(found)
    return found[:limit]


def same(one: Sighting, text: str) -> bool:
    """Return whether a text names this shape and city, the prototype's criterion."""
    return one.shape in text and one.city in text


def texts_of(found: Sequence[Sighting]) -> list[str]:
    """Return the texts."""
    return [each.text for each in found]


def _read(data: Data) -> list[Sighting]:
    rows = csv.DictReader(io.StringIO(data.bytes_of(FILE).decode("utf-8", "replace")))
    if tuple(rows.fieldnames or ()) != _COLUMNS:
        raise CorruptData(f"{data.path_of(FILE).name} must have the columns {', '.join(_COLUMNS)}")
    found = []
    for number, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise CorruptData(f"line {number} of {data.path_of(FILE).name} is malformed")
        city, colour, shape, state, time = (row[name] for name in _COLUMNS)
        if city and shape:
            found.append(Sighting(city, colour, shape, state, time))
    return found
