"""``Fact``: a statement about the user or people around them, in comparable form.

A fact has a subject, an attribute and a value. An *exclusive* attribute has one value at a time: a
home, an age, a favourite colour. Values of other attributes accumulate. Attributes belong to
*matters*: areas of life such as home, work or health.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace as change

from ..language import is_chinese, word_set

USER = "user"  # the subject of what speakers say about themselves, if their name is unknown

FACT, PREFERENCE, EVENT, PLAN, INSTRUCTION = "fact", "preference", "event", "plan", "instruction"
IMPORTANCE = {INSTRUCTION: 0.8, FACT: 0.7, PREFERENCE: 0.6, PLAN: 0.6, EVENT: 0.5}

_EXCLUSIVE = word_set("""
    name nickname age birthday home hometown job employer school marital diet partner
    address height weight zodiac major
""")
# The matter of each attribute that is not a matter itself.
_MATTERS = {
    "job": "work",
    "employer": "work",
    "major": "school",
    "marital": "partner",
    "nickname": "name",
    "age": "birthday",
    "eats": "taste",
    "likes": "taste",
    "prefers": "taste",
    "fears": "taste",
    "plays": "learning",
    "speaks": "learning",
    "whereabouts": "home",
}
CORRECTION = "correction"  # the attribute of a statement that corrects an earlier one
# In these matters a change ends everything known before: a new job ends the old one.
HABIT_MATTERS = word_set("smoking alcohol diet")
EXCLUSIVE_MATTERS = word_set("name home work school partner") | HABIT_MATTERS
_TYPES = {
    "likes": PREFERENCE,
    "taste": PREFERENCE,
    "prefers": PREFERENCE,
    "fears": PREFERENCE,
    "event": EVENT,
    "plan": PLAN,
    "instruction": INSTRUCTION,
}
# Relations a user has only one of, so that two statements are about the same person.
_ONLY_ONE = word_set("""
    mother mom mum father dad wife husband partner girlfriend boyfriend fiance fiancee spouse
    boss parents 妈妈 母亲 爸爸 父亲 老婆 妻子 老公 丈夫 女朋友 男朋友 女友 男友 爱人 对象 父母 老板
""")

# Other words that a question may use for an attribute: "moved to Oslo" tells where a user lives.
_LABELS = {
    "home": ("home (lives in)", "家（住在哪里）"),
    "hometown": ("hometown (comes from)", "家乡（来自哪里）"),
    "employer": ("employer (works at)", "公司（在哪里工作）"),
    "job": ("job (works as, profession)", "工作（职业）"),
    "school": ("school (studies at)", "学校（在哪里上学）"),
    "name": ("name (called)", "名字（叫什么）"),
    "age": ("age (how old)", "年龄（多大几岁）"),
    "birthday": ("birthday (born)", "生日（出生）"),
    "allergy": ("allergy (allergic to, cannot eat, must avoid)", "过敏（不能吃、忌口）"),
    "fears": ("fears (afraid of, scared of)", "害怕（怕什么）"),
    "plan": ("plan (plans, going to)", "计划（打算）"),
    "not likes": ("dislikes (does not like, hates)", "讨厌（不喜欢）"),
    "not eats": ("does not eat or drink (avoids)", "忌口（不吃、不喝）"),
    "marital": ("marital status (married, single)", "婚姻（结婚单身）"),
    "pets": ("pets (animals)", "宠物（养了什么）"),
    "diet": ("diet (eats)", "饮食（吃什么）"),
    "health": ("health (illness)", "健康（生病）"),
    "belongings": ("belongings (car, things bought)", "东西（车、买的）"),
    "instruction": ("instruction (how to answer, reply)", "要求（怎么回答）"),
    "doing": ("activity (does)", "活动（在做什么）"),
}


class Statement(NamedTuple):
    """What a rule found in a clause. ``subject`` is empty for the speaker.

    ``polarity`` is -1 for negations and dislikes. ``ended``: it was true and no longer is.
    ``change``: it reports a change. ``text`` is in the third person. ``needs_rival``: it is worth
    storing only if it ends a known fact. ``is_exact``: the value can be compared with others;
    otherwise it is the clause as said.
    """

    attribute: str
    value: str
    text: str
    subject: str = ""
    polarity: int = 1
    ended: bool = False
    change: bool = False
    needs_rival: bool = False
    is_exact: bool = True


class Fact(Struct, frozen=True, kw_only=True):
    """A statement with its source and time. ``event`` is the period it is about, in seconds."""

    text: str
    subject: str
    attribute: str
    value: str
    polarity: int = 1
    ended: bool = False
    change: bool = False
    type: str = FACT
    is_exclusive: bool = False
    event: tuple[float, float] | None = None
    said_at: float
    sources: tuple[str, ...]
    quarantined: bool = False
    needs_rival: bool = False

    @property
    def since(self) -> float:
        """When it began to hold: at a past time it mentions, otherwise when it was said."""
        if self.event is not None and self.change and self.event[0] <= self.said_at:
            return self.event[0]
        return self.said_at

    @property
    def details(self) -> dict[str, Any]:
        """The details to store beside its text."""
        return {
            "type": self.type,
            "subject": self.subject,
            "attribute": self.attribute,
            "value": self.value,
            "polarity": self.polarity,
            "ended": self.ended,
            "exclusive": self.is_exclusive,
            "event_time": None if self.event is None else list(self.event),
            "confirmations": 0,
            "confirmed_by": [],
        }


def with_subject(fact: Fact, subject: str) -> Fact:
    """Return a fact with another subject, whose name is put before the text."""
    if subject == fact.subject:
        return fact
    _, _, person = subject.rpartition("/")
    sign = "：" if is_chinese(fact.text) else ": "
    return change(fact, subject=subject, text=f"{person.title()}{sign}{fact.text}")


def label_of(fact: Fact) -> str:
    """Return a label for the attribute of a fact, in the language of the fact."""
    plain = _LABELS.get(fact.attribute, (fact.attribute, fact.attribute))
    is_denied = fact.polarity < 0
    english, chinese = _LABELS.get(f"not {fact.attribute}", plain) if is_denied else plain
    return chinese if is_chinese(fact.text) else english


def type_of(attribute: str) -> str:
    """Return the fact type of an attribute."""
    return PREFERENCE if attribute.startswith("favourite") else _TYPES.get(attribute, FACT)


def matter_of(attribute: str) -> str:
    """Return the matter (area of life) that an attribute belongs to."""
    return _MATTERS.get(attribute, attribute)


def is_exclusive(subject: str, attribute: str, *, change: bool = False) -> bool:
    """Return whether a subject has only one value of an attribute at a time.

    "My friend" may be several people; only a change ("moved to") shows that it is the same one.
    """
    if attribute not in _EXCLUSIVE and not attribute.startswith("favourite"):
        return False
    _, _, relation = subject.partition("/")
    is_one = not relation or " " in relation or relation in _ONLY_ONE
    return is_one or (change and attribute != "name")


def attribute_named(words: str) -> str:
    """Return an attribute in canonical spelling: "favorite color" is "favourite colour"."""
    plain = " ".join(words.casefold().split())
    return plain.replace("favorite", "favourite").replace("color", "colour")


def slot_of(details: Mapping[str, Any]) -> tuple[str, str]:
    """Return the subject and attribute of a stored fact; empty strings if it has none."""
    return str(details.get("subject", "")), str(details.get("attribute", ""))


_EDGES = re.compile(r"^[\s,.:;!\"'，。：；！、“”（(]+|[\s,.:;!\"'，。：；！、“”）)~～]+$")


def trimmed(value: str) -> str:
    """Return a value without surrounding punctuation."""
    return _EDGES.sub("", value)
