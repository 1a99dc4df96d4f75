"""Personal facts by a chat model: extraction, comparison and summaries.

The model refers to messages and known facts by id; an answer about an unknown id is dropped. Model
output is validated here and treated as data, never as instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, TypeVar

from msgspec import Struct

from ....model import ChatModel, Spending, ask, prompt_messages, read_prompt
from ...values.memory import MemoryItem
from ..language import is_chinese
from .entries import FactEntry, Relation
from .extraction import called, subject_of
from .facts import Fact, attribute_named, is_exclusive

_LONGEST_CALL = 12_000  # characters of messages in one call
_MOST_FACTS = 200  # per call; a model that returns more repeats itself
_RELATIONS = {"same": Relation.SAME, "contradicts": Relation.CONTRADICTED, "new": Relation.OTHER}

_T = TypeVar("_T", bound=Struct)


# The JSON schemas sent to the model contain the names and docstrings of the structs below.


class Noted(Struct):
    """A fact as a model gives it."""

    source: str
    text: str
    type: Literal["fact", "preference", "event", "plan", "instruction"] = "fact"
    subject: str = "user"
    attribute: str = ""
    value: str = ""
    denied: bool = False
    ended: bool = False
    exclusive: bool = False
    from_day: str | None = None
    to_day: str | None = None


class Notes(Struct):
    """What a model notes down."""

    facts: list[Noted]


class Verdict(Struct):
    """How a model thinks a known fact stands to a new one."""

    new: str
    verdict: Literal["same", "contradicts", "new"]
    known: str | None = None


class Verdicts(Struct):
    """A model's judgement."""

    verdicts: list[Verdict]


class Summary(Struct):
    """A model's sentence about many facts."""

    sentence: str


class FactModel:
    """Asks a chat model the three questions of personal memory."""

    def __init__(self, model: ChatModel, *, spending: Spending | None, attempts: int) -> None:
        self._model = model
        self._spending = spending
        self._attempts = attempts

    async def facts(self, memories: Sequence[MemoryItem]) -> list[Fact]:
        """Return the facts in a user's messages.

        Raises:
            ModelFailed: The model gave no valid answer.
        """
        found: list[Fact] = []
        for some in _batches(memories):
            notes = await self._ask("facts", {"messages": _shown(some)}, Notes)
            by_id = {memory.id: memory for memory in some}
            found += [
                _fact(note, by_id[note.source])
                for note in notes.facts[:_MOST_FACTS]
                if note.source in by_id and note.text.strip()
            ]
        return found

    async def verdicts(
        self, facts: Mapping[str, Fact], known: Sequence[FactEntry]
    ) -> dict[str, tuple[Relation, str]]:
        """Return the model's verdicts on new facts; some facts may have none.

        Raises:
            ModelFailed: The model gave no valid answer.
        """
        data = {
            "new": [{"id": each, "text": fact.text} for each, fact in facts.items()],
            "known": [{"id": entry.id, "text": entry.text} for entry in known],
        }
        ids = {entry.id for entry in known}
        answer = await self._ask("judging", data, Verdicts)
        return {
            each.new: (_RELATIONS[each.verdict], each.known or "")
            for each in answer.verdicts
            if each.new in facts and (each.verdict == "new" or each.known in ids)
        }

    async def summary(self, texts: Sequence[str]) -> str | None:
        """Return a sentence that sums up facts, or ``None`` if the answer is empty or too long.

        Raises:
            ModelFailed: The model gave no valid answer.
        """
        answer = await self._ask("insight", {"facts": list(texts)}, Summary)
        sentence = " ".join(answer.sentence.split())
        return sentence if 0 < len(sentence) <= 500 else None

    async def _ask(self, name: str, data: Mapping[str, object], answer: type[_T]) -> _T:
        messages = prompt_messages(read_prompt(__package__, f"{name}.md"), data)
        return await ask(
            self._model,
            messages,
            answer,
            attempts=self._attempts,
            spending=self._spending,
            purpose=f"personal_{name}",
        )


def _batches(memories: Sequence[MemoryItem]) -> Iterator[list[MemoryItem]]:
    batch: list[MemoryItem] = []
    length = 0
    for memory in memories:
        if batch and length + len(memory.text) > _LONGEST_CALL:
            yield batch
            batch, length = [], 0
        batch.append(memory)
        length += len(memory.text)
    if batch:
        yield batch


def _shown(memories: Sequence[MemoryItem]) -> list[dict[str, str]]:
    return [
        {
            "id": memory.id,
            "day": datetime.fromtimestamp(memory.created_at, UTC).strftime("%Y-%m-%d (%A)"),
            "speaker": called(memory, chinese=is_chinese(memory.text)),
            "text": memory.text[:_LONGEST_CALL],
        }
        for memory in memories
    ]


def _fact(note: Noted, memory: MemoryItem) -> Fact:
    person = note.subject.strip().casefold()
    speaker = subject_of(memory)
    is_speaker = person in ("", "user", "用户", "the user", speaker)
    subject = speaker if is_speaker else f"{speaker}/{person}"
    attribute = attribute_named(note.attribute)
    attribute = attribute if attribute else note.type
    return Fact(
        text=" ".join(note.text.split()),
        subject=subject,
        attribute=attribute,
        value=note.value.strip() if note.value.strip() else note.text.strip(),
        polarity=-1 if note.denied else 1,
        ended=note.ended,
        change=True,
        type=note.type,
        is_exclusive=note.exclusive or is_exclusive(subject, attribute),
        event=_days(note.from_day, note.to_day),
        said_at=memory.created_at,
        sources=(memory.id,),
        quarantined=memory.is_quarantined,
    )


def _days(first: str | None, last: str | None) -> tuple[float, float] | None:
    """Return the days a model names, from midnight to midnight; ``None`` if they are no dates."""
    begin, end = _day(first), _day(last)
    if begin is None:
        return None
    stop = max(begin, end if end is not None else begin) + timedelta(days=1)
    return _midnight(begin), _midnight(stop)


def _day(text: str | None) -> date | None:
    try:
        found = None if text is None else date.fromisoformat(text.strip()[:10])
    except ValueError:
        return None
    return found if found is not None and 1 < found.year < 9999 else None


def _midnight(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()
