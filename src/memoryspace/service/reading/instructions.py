"""Standing instructions: how a user wants every question answered."""

from __future__ import annotations

from collections.abc import Sequence

from ...record import Scope, Where
from ..deriving.similarity import overlap, value_words
from ..values.kinds import FACT, INSTRUCTION, SUPERSEDED
from ..values.memory import QUARANTINED, WAITING, MemoryItem
from ..writing.repository import MemoryRepository

_SAME_TOPIC = 0.5  # share of common words from which two instructions are on one topic
_FRAME = frozenset({"alway", "never", "pleas", "now", "futur", "以后", "每次"})


async def standing(repository: MemoryRepository, scope: Scope) -> list[MemoryItem]:
    """Return the instructions that hold now, newest first; the newest of each topic."""
    where = Where(kind=FACT, without=frozenset({QUARANTINED, SUPERSEDED, WAITING}))
    known = await repository.select(scope, where)
    found = [each for each in known if each.details.get("type") == INSTRUCTION]
    found = [each for each in found if not each.details.get("ended")]
    return _newest_on_each(sorted(found, key=lambda each: -each.seq))


def _newest_on_each(instructions: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Drop instructions that a newer one replaces: "answer in French" after "in English"."""
    kept: list[MemoryItem] = []
    for each in instructions:
        words = _topic_words(each)
        if all(overlap(words, _topic_words(newer)) < _SAME_TOPIC for newer in kept):
            kept.append(each)
    return kept


def _topic_words(instruction: MemoryItem) -> frozenset[str]:
    """Return the words that name an instruction's topic."""
    return value_words(str(instruction.details.get("value", instruction.text))) - _FRAME
