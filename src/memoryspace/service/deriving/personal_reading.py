"""Reading facts out of what was said, by rules: English and Chinese, no model.

Only what a user says counts, and of it only what states something lasting about them or their
people. The rules would rather miss a fact than make one up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from ...retrieval.times import TimeSpan, times_in
from ..memory import Memory
from . import personal_chinese, personal_english
from .language import is_chinese, sentences, stated_part
from .personal_facts import USER, Fact, Statement, is_exclusive, type_of

_USERS = frozenset({None, "user", "human"})  # the roles whose words are a user's
_NO_NAMES = frozenset({"", "user", "human", "me", "用户"})
_YEAR = re.compile(r"\d{4}")
_LEADS_TO_TIME = re.compile(r"[\s,，]*(?:\b(?:in|on|at|since|from|around|back in))?[\s,，]*$")
_SPEAK_OF_TIME = frozenset({"event", "plan", "habit", "birthday", "instruction"})
_NEVER_TIMED = frozenset({"birthday", "age"})  # their dates are values, not when something happened


def is_said_by_user(memory: Memory) -> bool:
    """Tell whether a memory holds a user's own words."""
    return memory.role in _USERS


def facts_in(memory: Memory) -> Iterator[Fact]:
    """Yield the facts that a user states in one memory, in reading order."""
    if not is_said_by_user(memory):
        return
    for sentence in sentences(memory.text):
        yield from _read(stated_part(sentence), memory)


def subject_of(memory: Memory) -> str:
    """Return whom "I" means: a name, if the memory has one."""
    name = (memory.name or "").strip()
    return USER if name.casefold() in _NO_NAMES else name.casefold()


def called(memory: Memory, *, chinese: bool) -> str:
    """Return what to call the speaker in a sentence."""
    name = (memory.name or "").strip()
    if name.casefold() not in _NO_NAMES:
        return name
    return "用户" if chinese else "The user"


def _read(sentence: str, memory: Memory) -> Iterator[Fact]:
    chinese = is_chinese(sentence)
    language = personal_chinese if chinese else personal_english
    said = datetime.fromtimestamp(memory.created_at, UTC)
    times = times_in(sentence, said)
    for statement in language.statements(sentence, called(memory, chinese=chinese)):
        fact = _fact(statement, memory, times, chinese=chinese)
        if fact is not None:
            yield fact


def _fact(
    statement: Statement, memory: Memory, times: list[TimeSpan], *, chinese: bool
) -> Fact | None:
    attribute, _, need = statement.attribute.partition(":")
    attribute = attribute if not attribute.startswith("favourite:") else statement.attribute
    time = times[0] if times and attribute not in _NEVER_TIMED else None
    if not _is_timely(need, time, memory.created_at):
        return None
    subject = subject_of(memory) + (f"/{statement.subject}" if statement.subject else "")
    return Fact(
        text=_dated(statement.text, time, chinese=chinese),
        subject=subject,
        attribute=attribute,
        value=_without_time(statement.value, attribute, times),
        polarity=statement.polarity,
        ended=statement.ended,
        change=statement.change,
        type=type_of(attribute),
        is_exclusive=is_exclusive(subject, attribute, change=statement.change),
        event=None if time is None else (time.start.timestamp(), time.end.timestamp()),
        said_at=memory.created_at,
        sources=(memory.id,),
        quarantined=memory.is_quarantined,
    )


def _without_time(value: str, attribute: str, times: list[TimeSpan]) -> str:
    """Cut "last week" off "Rome last week": a home is to be compared with another one."""
    if attribute in _SPEAK_OF_TIME:
        return value
    for time in times:
        if value.endswith(time.text) and len(value) > len(time.text):
            return _LEADS_TO_TIME.sub("", value[: -len(time.text)])
    return value


def _is_timely(need: str, time: TimeSpan | None, said_at: float) -> bool:
    """Whether a statement that needs a time has one: "I'm flying" alone is no plan."""
    if need == "timed":
        return time is not None and time.end.timestamp() > said_at
    return need != "past" or time is None or time.start.timestamp() <= said_at


def _dated(text: str, time: TimeSpan | None, *, chinese: bool) -> str:
    """Put the days behind a sentence that speaks of "yesterday": it is to be read alone."""
    if time is None or _YEAR.search(time.text) is not None:
        return text
    first, last = time.start.date(), datetime.fromordinal(time.end.toordinal() - 1).date()
    days = f"{first}" if first == last else f"{first} to {last}"
    return f"{text[:-1]}（{days}）。" if chinese else f"{text[:-1]} ({days})."
