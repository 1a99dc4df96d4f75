"""``FactEntry``: a fact that holds, and the rules that relate it to a new fact."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from ...values.memory import MemoryItem
from ..language import word_set
from ..similarity import overlap, similarity, value_words
from .facts import (
    CORRECTION,
    EVENT,
    EXCLUSIVE_MATTERS,
    HABIT_MATTERS,
    INSTRUCTION,
    PLAN,
    Fact,
    matter_of,
    slot_of,
)
from .instructions import is_one_thing, names_language
from .shared_words import is_other_time, shares_a_matter, shares_a_word, tells_days

_PARTNERS = word_set("""
    wife husband hubby missus spouse partner girlfriend boyfriend gf bf fiance fiancee fiancé
    fiancée 老婆 妻子 老公 丈夫 爱人 对象 女朋友 男朋友 女友 男友
""")
_ONE_AT_A_TIME = _PARTNERS | word_set("boss manager landlord landlady 老板 领导 房东")
_OF_PEOPLE = word_set("pets family partner")  # matters that end when the named one has died
_TELLS_NEW = re.compile(r"\bnew\b|新|换了", re.IGNORECASE)
_GIVEN_AWAY = re.compile(
    "把(?:我的?)?(?P<what>[^，。]{2,8}?)(?:给|都)?(?:卖|扔|丢|送|退|停|戒|辞|删|关|取消)"
)
_SAME_TEXT = 0.92  # similarity from which two sentences say the same
_SAME_VALUE = 0.75  # word overlap from which two values are the same


class Relation(Enum):
    """How a known fact relates to a new one."""

    SAME = "same"
    CONTRADICTED = "contradicted"
    OTHER = "other"


@dataclass
class FactEntry:
    """A fact that holds: stored, or (``is_new``) added by this job."""

    id: str
    subject: str
    attribute: str
    value: str
    polarity: int
    ended: bool
    text: str
    said_at: float
    since: float
    event: tuple[float, float] | None
    sources: set[str]
    confirmed_by: list[str] = field(default_factory=list)
    is_exclusive: bool = True
    is_new: bool = False
    is_waiting: bool = False  # for approval

    @classmethod
    def of(cls, memory: MemoryItem) -> FactEntry:
        """Return the entry of a stored fact. A fact written by hand may lack any detail."""
        details = memory.details
        subject, attribute = slot_of(details)
        event = details.get("event_time")
        derived = memory.origin.derived_from if memory.origin is not None else ()
        confirmed = [str(each) for each in details.get("confirmed_by") or ()]
        return cls(
            memory.id,
            subject,
            attribute,
            str(details.get("value", "")),
            -1 if details.get("polarity") == -1 else 1,
            bool(details.get("ended", False)),
            memory.text,
            memory.created_at,
            memory.valid_from if memory.valid_from is not None else memory.created_at,
            (float(event[0]), float(event[1])) if event else None,
            {*derived, *confirmed},
            confirmed,
            bool(details.get("exclusive", True)),
            is_waiting=memory.is_waiting,
        )


def related(entry: FactEntry, fact: Fact, words: frozenset[str]) -> Relation:
    """Return how a known fact relates to a new one, by subject, attribute, value and time.

    ``words`` are the words of the new value, computed once for many comparisons.
    """
    if (entry.subject, entry.attribute) != (fact.subject, fact.attribute):
        return Relation.OTHER
    is_one = _is_one_value(entry.value, fact, words)
    if entry.ended != fact.ended or entry.polarity != fact.polarity:
        return Relation.CONTRADICTED if is_one else Relation.OTHER
    if is_one:
        return Relation.SAME if _at_one_time(entry, fact) else Relation.OTHER
    has_come = entry.event is not None and entry.event[0] <= fact.said_at
    is_rival = fact.is_exclusive and (entry.is_exclusive or has_come) and not fact.ended
    return Relation.CONTRADICTED if is_rival else Relation.OTHER


def may_end(fact: Fact) -> bool:
    """Return whether a fact could end others. Most cannot, which saves comparing them."""
    is_instruction = fact.attribute == INSTRUCTION
    is_new = _TELLS_NEW.search(fact.text) is not None
    is_turn = fact.ended or fact.change or fact.polarity < 0
    return is_instruction or is_turn or is_new or tells_days(fact.text)


def is_ended_by(entry: FactEntry, fact: Fact) -> bool:
    """Return whether a new fact ends a known one.

    A change in an exclusive matter ends everything known in it. Any other ending or change ends
    facts that share a content word or a name with it; a plain negation ends only affirmations.
    """
    if entry.said_at > fact.said_at or not entry.sources.isdisjoint(fact.sources):
        return False
    if INSTRUCTION in (entry.attribute, fact.attribute):
        return entry.attribute == fact.attribute and _ends_instruction(entry, fact)
    is_one = entry.subject == fact.subject
    is_about = matter_of(entry.attribute) == matter_of(fact.attribute)
    if fact.attribute == "death" and "/" in fact.subject:
        return is_one or (matter_of(entry.attribute) in _OF_PEOPLE and _names(entry, fact))
    if any(is_so(entry, fact) for is_so in (_is_parted, _is_replaced, _is_put_right)):
        return True
    is_sure = not fact.needs_rival or fact.attribute in HABIT_MATTERS
    if fact.change and is_sure and matter_of(fact.attribute) in EXCLUSIVE_MATTERS:
        return is_one and is_about
    if not is_one and not fact.needs_rival and not _names(entry, fact):
        return False
    person = fact.subject.partition("/")[2]
    if fact.ended and is_one and (gone := _GIVEN_AWAY.search(fact.text)) is not None:
        return gone["what"] in entry.text
    if fact.change and is_about:
        return shares_a_matter(entry.text, fact.text, besides=person)
    if fact.ended or fact.change:
        return shares_a_word(entry.text, fact.text, besides=person)
    if is_about and is_other_time(entry.text, fact.text):
        return shares_a_word(entry.text, fact.text)
    is_denied = fact.polarity < 0 < entry.polarity and is_about and not entry.ended
    return is_denied and shares_a_word(entry.text, fact.text)


def _is_parted(entry: FactEntry, fact: Fact) -> bool:
    """Return whether a separation ends what is known about a partner."""
    whose, _, who = entry.subject.partition("/")
    is_parting = fact.ended and fact.polarity > 0 and matter_of(fact.attribute) == "partner"
    is_partner = whose == fact.subject and who.partition(" ")[0] in _PARTNERS
    return is_parting and is_partner


def _is_replaced(entry: FactEntry, fact: Fact) -> bool:
    """Return whether there is a new boss (or the like) and the entry names the old one."""
    whose, _, who = entry.subject.partition("/")
    relation, _, name = who.partition(" ")
    if whose != fact.subject.partition("/")[0] or relation not in _ONE_AT_A_TIME or not name:
        return False
    said = fact.text.casefold()
    is_new = any(f"{new}{relation}" in said for new in ("new ", "新", "换了", "换了个"))
    return is_new and name not in said and entry.attribute in ("family", "name")


def _is_put_right(entry: FactEntry, fact: Fact) -> bool:
    """Return whether a correction is about what is known of the person it names."""
    person = entry.subject.partition("/")[2]
    if fact.attribute.partition(" ")[0] != CORRECTION or not person:
        return False
    if fact.attribute != CORRECTION:  # "actually he's a labrador"
        return fact.attribute.endswith(f" {matter_of(entry.attribute)}")
    name = person.rpartition(" ")[2]
    return name in fact.text.casefold() and shares_a_word(entry.text, fact.text, besides=person)


def _ends_instruction(entry: FactEntry, fact: Fact) -> bool:
    """Return whether an instruction replaces or withdraws another."""
    if entry.ended:
        return False
    if fact.polarity < 0 < entry.polarity:
        return is_one_thing(entry.value, fact.value)
    return names_language(entry.value) and names_language(fact.value)


def has_same_slot(entry: FactEntry, fact: Fact) -> bool:
    """Return whether a known fact has the subject and attribute of a new one."""
    is_one = entry.subject == fact.subject and entry.attribute == fact.attribute
    return is_one and entry.said_at <= fact.said_at and entry.sources.isdisjoint(fact.sources)


def _names(entry: FactEntry, fact: Fact) -> bool:
    """Return whether an entry about the user names the person that a fact is about."""
    name = fact.subject.rpartition(" ")[2].rpartition("/")[2]
    return "/" in fact.subject and "/" not in entry.subject and name in entry.text.casefold()


def says_the_same(entry: FactEntry, fact: Fact) -> bool:
    """Return whether a known fact has nearly the words of a new one and the same time."""
    if entry.polarity != fact.polarity or entry.ended != fact.ended:
        return False
    return similarity(entry.text, fact.text) >= _SAME_TEXT and _at_one_time(entry, fact)


def _is_one_value(value: str, fact: Fact, new: frozenset[str]) -> bool:
    if value.casefold() == fact.value.casefold():
        return True
    if _beginnings(value).isdisjoint(_beginnings(fact.value)):
        return False  # much cheaper than splitting them into words
    known = value_words(value)
    if fact.is_exclusive or fact.ended:
        return known <= new or new <= known
    return overlap(known, new) >= _SAME_VALUE and _numbers(known) == _numbers(new)


def _beginnings(value: str) -> set[str]:
    """Return what related words share: their first two letters, or Chinese characters."""
    lower = value.casefold()
    return {word[:2] for word in lower.split()} if lower.isascii() else set(lower)


def _numbers(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(char.isdigit() for char in word))


def _at_one_time(entry: FactEntry, fact: Fact) -> bool:
    """Return whether two events overlap: "I went to the gym today" is said on many days."""
    if fact.type not in (EVENT, PLAN) or entry.event is None or fact.event is None:
        return True
    return entry.event[0] < fact.event[1] and fact.event[0] < entry.event[1]


def says_more(fact: Fact, entry: FactEntry) -> bool:
    """Return whether a new value extends the old one: "Lyon, France" after "Lyon"."""
    return fact.is_exclusive and value_words(entry.value) < value_words(fact.value)
