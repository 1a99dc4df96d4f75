"""Rule-based fact extraction for English and Chinese; no model.

Only a user's own messages count, and of those only lasting statements about the user or people
around them. The rules prefer missing a fact to inventing one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from ....retrieval.text.quotations import without_quotations
from ....retrieval.times import TimeSpan, times_in
from ...values.memory import MemoryItem
from ..language import is_chinese, sentences, stated_part
from .chinese import rules as personal_chinese
from .dates import dated
from .english import rules as personal_english
from .facts import (
    EXCLUSIVE_MATTERS,
    INSTRUCTION,
    USER,
    Fact,
    Statement,
    is_exclusive,
    matter_of,
    trimmed,
    type_of,
)
from .instructions import InstructionEffect, instruction_effect
from .people import People

_USERS = frozenset({None, "user", "human"})  # roles of a user's own messages
_NO_NAMES = frozenset({"", "user", "human", "me", "用户"})
_YEAR = re.compile(r"\d{4}")
_LEADS_TO_TIME = re.compile(
    r"[\s,，]*(?:\b(?:in|on|at|since|from|around|back in|in the|over the))?[\s,，]*$"
)
_SPEAK_OF_TIME = frozenset({"event", "plan", "habit", "birthday", "instruction"})
_NEVER_TIMED = frozenset({"birthday", "age"})  # their dates are values, not times of events
_JOKE = re.compile(
    r"\b(?:jk|j/k|just kidding|only joking|kidding)\b|开玩笑|逗你|骗你的|瞎说", re.IGNORECASE
)
# "I changed my name. It's Wren now.": the second sentence continues the first.
_NEW = re.compile(
    r"\b(?:changed|new|opened|moved|joined|bought|adopted|started|got|engaged)\b|[换改新搬养签]|考上",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"(?:it'?s|his name|her name|name'?s|called|it is|legally)\b|(?:名字)?叫|就在", re.IGNORECASE
)


def is_said_by_user(memory: MemoryItem) -> bool:
    """Return whether a memory holds a user's own words."""
    return memory.role in _USERS


def facts_in(memory: MemoryItem, names: Mapping[str, str] | None = None) -> Iterator[Fact]:
    """Yield the facts that a user states in one memory, in reading order.

    ``names`` are people known from earlier memories, as ``people.names_of`` returns them.
    """
    if not is_said_by_user(memory):
        return
    people = People(names, _own_names(memory))
    for sentence in _serious_sentences(memory.text):
        yield from _read(sentence, memory, people)


def subject_of(memory: MemoryItem) -> str:
    """Return the subject that "I" refers to: the user, or the named speaker if there is no role."""
    return USER if _speaker(memory) is None else str(_speaker(memory)).casefold()


def called(memory: MemoryItem, *, chinese: bool) -> str:
    """Return the name of the speaker for use in a sentence."""
    name = _speaker(memory)
    if name is not None:
        return name
    return "用户" if chinese else "The user"


def _speaker(memory: MemoryItem) -> str | None:
    name = (memory.name or "").strip()
    return None if memory.role is not None or name.casefold() in _NO_NAMES else name


def _own_names(memory: MemoryItem) -> frozenset[str]:
    """Return possible names of the speaker: "I'm nora" gives a name if the user is nora_p."""
    return frozenset(re.split(r"[\W\d_]+", f"{memory.name or ''} {memory.user_id}".casefold())) - {
        ""
    }


def _serious_sentences(text: str) -> Iterator[str]:
    """Yield sentences without jokes; a sentence that continues the one before is joined to it."""
    found: list[str] = []
    for sentence in sentences(without_quotations(text)):
        if not any(map(str.isalnum, sentence)):
            continue
        if _JOKE.search(sentence):
            found = found[:-1]
        elif found and _GOES_ON.match(sentence) and _NEW.search(found[-1]):
            found[-1] = f"{found[-1].rstrip('.!。！')}, {sentence}"
        else:
            found.append(sentence)
    yield from found


def _read(sentence: str, memory: MemoryItem, people: People) -> Iterator[Fact]:
    chinese = is_chinese(sentence)
    language = personal_chinese if chinese else personal_english
    said = datetime.fromtimestamp(memory.created_at, UTC)
    times = times_in(sentence, said)
    effect = instruction_effect(sentence)
    if effect is not None:
        yield _instruction_fact(effect, sentence, memory, chinese=chinese)
        return
    stated = stated_part(sentence)
    for statement in language.statements(stated, called(memory, chinese=chinese), people):
        fact = _fact(statement, memory, times, chinese=chinese)
        if fact is not None:
            yield fact


def _instruction_fact(
    effect: InstructionEffect, sentence: str, memory: MemoryItem, *, chinese: bool
) -> Fact:
    who, said = called(memory, chinese=chinese), trimmed(sentence)
    return Fact(
        text=f"{who}：{said}。" if chinese else f"{who} asks: {said[:1].upper()}{said[1:]}.",
        subject=subject_of(memory),
        attribute=INSTRUCTION,
        value=said,
        polarity=1 if effect is InstructionEffect.STANDS else -1,
        type=INSTRUCTION,
        said_at=memory.created_at,
        sources=(memory.id,),
        quarantined=memory.is_quarantined,
        needs_rival=effect is InstructionEffect.ALLOWS,
    )


def _fact(
    statement: Statement, memory: MemoryItem, times: list[TimeSpan], *, chinese: bool
) -> Fact | None:
    attribute, _, need = statement.attribute.partition(":")
    told = [time for time in times if time.text in statement.text]
    said = datetime.fromtimestamp(memory.created_at, UTC)
    is_timed = attribute not in _NEVER_TIMED and not (attribute == "habit" and statement.change)
    time = dated(told[0], said, statement.text) if told and is_timed else None
    if need == "dated":  # it belongs to no matter, but with a time it is an event or a plan
        if not told:
            return None
        attribute = "plan" if time is not None and time.start > said else "event"
    # Someone who moves next month still lives where they live.
    is_to_come = (
        time is not None and time.start > said and matter_of(attribute) in EXCLUSIVE_MATTERS
    )
    subject = subject_of(memory) + (f"/{statement.subject}" if statement.subject else "")
    return Fact(
        text=_with_dates(statement.text, time, chinese=chinese),
        subject=subject,
        attribute=attribute,
        value=_without_time(statement.value, attribute, times),
        polarity=statement.polarity,
        ended=statement.ended,
        change=statement.change and not is_to_come,
        type=type_of(attribute),
        is_exclusive=statement.is_exact
        and not is_to_come
        and is_exclusive(subject, attribute, change=statement.change),
        event=None if time is None else (time.start.timestamp(), time.end.timestamp()),
        said_at=memory.created_at,
        sources=(memory.id,),
        quarantined=memory.is_quarantined,
        needs_rival=statement.needs_rival,
    )


def _without_time(value: str, attribute: str, times: list[TimeSpan]) -> str:
    """Return "Rome" for "Rome last week", so that homes can be compared."""
    if attribute in _SPEAK_OF_TIME:
        return value
    for time in times:
        if value.endswith(time.text) and len(value) > len(time.text):
            return _LEADS_TO_TIME.sub("", value[: -len(time.text)])
    return value


def _with_dates(text: str, time: TimeSpan | None, *, chinese: bool) -> str:
    """Append dates to a sentence with a relative time ("yesterday"), so that it reads alone."""
    if time is None or _YEAR.search(time.text) is not None:
        return text
    first, last = time.start.date(), datetime.fromordinal(time.end.toordinal() - 1).date()
    days = f"{first}" if first == last else f"{first} to {last}"
    return f"{text[:-1]}（{days}）。" if chinese else f"{text[:-1]} ({days})."
