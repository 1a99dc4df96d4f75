"""Recorded searches that can be replayed, to see what a change of weights, embedder or data does.

A recording is a plain value that converts to JSON and back.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ..errors import CorruptData
from .entries import EVERYTHING, Only
from .recall import Recall


class Recording(Struct, frozen=True):
    """A search and its result: the arguments, the memory's size and embedder, ids and scores.

    ``ids`` and ``scores`` are in the order of the hits, best first.
    """

    question: str
    top_k: int
    only: Only
    now: float
    entries: int  # the number of entries in the memory
    embedder: str | None
    ids: tuple[str, ...]
    scores: tuple[float, ...]

    def to_json(self) -> str:
        """Return the recording as one line of JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Recording:
        """Return the recording that ``to_json`` wrote.

        Raises:
            CorruptData: If the text is not such a recording.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise CorruptData(f"not a recording of a search: {error}") from error


class Replay(Struct, frozen=True):
    """A replayed search and its differences from the recording.

    Attributes:
        again: The new recording.
        gone: The ids that are no longer among the hits.
        new: The ids that were not among them before.
        moved: The old and the new rank, from 1, of the ids whose rank changed.
    """

    again: Recording
    gone: tuple[str, ...]
    new: tuple[str, ...]
    moved: dict[str, tuple[int, int]]

    @property
    def is_same(self) -> bool:
        """Whether the search returned the same ids in the same order."""
        return not (self.gone or self.new or self.moved)


def record(
    recall: Recall, question: str, top_k: int = 10, *, only: Only = EVERYTHING, now: float
) -> Recording:
    """Search, and return the arguments and the result as a recording.

    The arguments are those of ``Recall.search``. ``now`` is required, so that a replay is the same.

    Example::

        taken = record(recall, "Who moved to Lisbon?", now=1_700_000_000.0)
        replay(recall, taken).is_same
        # True
    """
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
    """Repeat a recorded search and return how its result differs."""
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
