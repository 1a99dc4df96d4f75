"""Standing instructions: how a user wants to be answered, whatever is asked."""

from __future__ import annotations

from collections.abc import Sequence

from ...record import Scope, Where
from ..deriving.language import overlap, value_words
from ..values.kinds import FACT, INSTRUCTION, SUPERSEDED
from ..values.memory import QUARANTINED, MemoryItem
from ..writing.repository import MemoryRepository

_SAME_THING = 0.5  # of their words that two instructions share if they are about one thing
_FRAME = frozenset({"alway", "never", "pleas", "now", "futur", "以后", "每次"})


async def standing(repository: MemoryRepository, scope: Scope) -> list[MemoryItem]:
    """Return those that hold now, the newest first, and of two on one thing the newer."""
    where = Where(kind=FACT, without=frozenset({QUARANTINED, SUPERSEDED}))
    known = await repository.select(scope, where)
    told = [each for each in known if each.details.get("type") == INSTRUCTION]
    told = [each for each in told if not each.details.get("ended")]
    return _newest_on_each(sorted(told, key=lambda each: -each.seq))


def _newest_on_each(instructions: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Leave out what a newer one says otherwise: "answer in French" after "answer in English"."""
    kept: list[MemoryItem] = []
    for each in instructions:
        words = _told_in(each)
        if all(overlap(words, _told_in(newer)) < _SAME_THING for newer in kept):
            kept.append(each)
    return kept


def _told_in(instruction: MemoryItem) -> frozenset[str]:
    """Return the words of an instruction that tell what it is about."""
    return value_words(str(instruction.details.get("value", instruction.text))) - _FRAME
