"""A search written down, to be done again: after a change of weights, of the embedder, of the data.

A recording is a plain value that goes to JSON and back.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ..errors import CorruptData
from .entries import EVERYTHING, Only
from .recall import Recall


class Recording(Struct, frozen=True):
    """What was asked, of whom, and what came back, best first."""

    question: str
    top_k: int
    only: Only
    now: float
    entries: int  # that there were
    embedder: str | None
    ids: tuple[str, ...]
    scores: tuple[float, ...]

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Recording:
        """Return what ``to_json`` wrote."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise CorruptData(f"this is no recording of a search: {error}") from error


class Replay(Struct, frozen=True):
    """How a search done again differs: who is gone, who is new, who moved from where to where."""

    again: Recording
    gone: tuple[str, ...]
    new: tuple[str, ...]
    moved: dict[str, tuple[int, int]]  # places from 1: before, now

    @property
    def is_same(self) -> bool:
        """Whether the same came back in the same order."""
        return not (self.gone or self.new or self.moved)


def record(
    recall: Recall, question: str, top_k: int = 10, *, only: Only = EVERYTHING, now: float
) -> Recording:
    """Search, and write down what was asked and what came back."""
    hits = recall.search(question, top_k, only=only, now=now)
    embedder = recall.vectors.embedder
    return Recording(
        question,
        top_k,
        only,
        now,
        len(recall),
        None if embedder is None else embedder.name,
        tuple(hit.id for hit in hits),
        tuple(hit.score for hit in hits),
    )


def replay(recall: Recall, recording: Recording) -> Replay:
    """Do a recorded search again and compare."""
    again = record(
        recall, recording.question, recording.top_k, only=recording.only, now=recording.now
    )
    before = {entry_id: place for place, entry_id in enumerate(recording.ids, 1)}
    now = {entry_id: place for place, entry_id in enumerate(again.ids, 1)}
    return Replay(
        again,
        gone=tuple(each for each in before if each not in now),
        new=tuple(each for each in now if each not in before),
        moved={
            each: (before[each], now[each])
            for each in before
            if each in now and before[each] != now[each]
        },
    )
