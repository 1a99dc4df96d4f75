"""Insights: many facts of one kind summed up in a sentence ("The user likes tennis, hiking …").

An insight lists its facts as its origin. When they change, it is replaced; when too few are left,
it is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ....record import Origin
from ...values.memory import Draft, MemoryItem
from ..contract import Add, Decision, Drop
from ..language import is_chinese
from .entries import FactEntry
from .facts import USER, slot_of
from .ledger import FactLedger

INSIGHT = "insight"  # the kind of memory

_IMPORTANCE = 0.75
_MOST_NAMED = 12  # values in a sentence

# Sentence templates by attribute and polarity. A group without a template gets no insight.
_ENGLISH = {
    ("likes", 1): "{who} likes {what}.",
    ("likes", -1): "{who} does not like {what}.",
    ("eats", -1): "{who} does not eat or drink {what}.",
    ("prefers", 1): "{who} prefers {what}.",
    ("fears", 1): "{who} is afraid of {what}.",
    ("allergy", 1): "{who} is allergic to {what}.",
    ("pets", 1): "{who} has these animals: {what}.",
    ("owns", 1): "{who} owns {what}.",
    ("plays", 1): "{who} plays {what}.",
    ("speaks", 1): "{who} speaks {what}.",
    ("collects", 1): "{who} collects {what}.",
    ("doing", 1): "{who} has been busy with {what}.",
    ("habit", 1): "Habits of {who}: {what}.",
    ("plan", 1): "{who} plans: {what}.",
    ("health", 1): "{who} has to do with {what}.",
    ("skill", 1): "{who} is skilled in {what}.",
}
_CHINESE = {
    ("likes", 1): "{who}喜欢{what}。",
    ("likes", -1): "{who}不喜欢{what}。",
    ("eats", -1): "{who}不吃或不喝{what}。",
    ("prefers", 1): "{who}更喜欢{what}。",
    ("fears", 1): "{who}害怕{what}。",
    ("allergy", 1): "{who}对{what}过敏。",
    ("pets", 1): "{who}养有{what}。",
    ("owns", 1): "{who}有{what}。",
    ("doing", 1): "{who}最近在做的事：{what}。",
    ("habit", 1): "{who}的习惯：{what}。",
    ("plan", 1): "{who}的计划：{what}。",
    ("health", 1): "{who}的健康状况：{what}。",
    ("skill", 1): "{who}会{what}。",
}


class FactGroup(Struct, frozen=True):
    """Facts with the same subject, attribute and polarity, and a plain sentence about them."""

    subject: str
    attribute: str
    polarity: int
    facts: tuple[FactEntry, ...]
    text: str


def groups(ledger: FactLedger, *, least: int) -> list[FactGroup]:
    """Return the groups this job changed that have enough facts for an insight, sorted."""
    found = [_group(ledger.entries.values(), *slot) for slot in sorted(ledger.touched)]
    return [group for group in found if group is not None and len(group.facts) >= least]


def outdated(ledger: FactLedger, stored: Iterable[MemoryItem]) -> list[MemoryItem]:
    """Return the stored insights about groups that this job changed."""
    return [each for each in stored if group_of(each) in ledger.touched]


def renewed(
    ledger: FactLedger,
    old: Sequence[MemoryItem],
    insights: Sequence[tuple[FactGroup, str]],
    *,
    now: float,
    author: str,
) -> list[Decision]:
    """Return the decisions that leave each group with one insight over its current facts."""
    decisions: list[Decision] = []
    drafts = [_draft(ledger, group, text, now=now, author=author) for group, text in insights]
    wanted = {(each.subject, each.attribute, each.polarity): each for each, _ in insights}
    kept = {group_of(each) for each in old if _stands_on(each, wanted.get(group_of(each)))}
    decisions += [Drop(each.id, (each.id,)) for each in old if group_of(each) not in kept]
    decisions += [
        Add(draft)
        for (group, _), draft in zip(insights, drafts, strict=True)
        if (group.subject, group.attribute, group.polarity) not in kept
    ]
    return decisions


def group_of(memory: MemoryItem) -> tuple[str, str, int]:
    """Return the group of a fact, or the one that an insight is about."""
    polarity = -1 if memory.details.get("polarity") == -1 else 1
    return (*slot_of(memory.details), polarity)


def _stands_on(insight: MemoryItem, group: FactGroup | None) -> bool:
    if group is None or insight.origin is None:
        return False
    return set(insight.origin.derived_from) == {fact.id for fact in group.facts}


def _group(
    entries: Iterable[FactEntry], subject: str, attribute: str, polarity: int
) -> FactGroup | None:
    facts = tuple(
        each
        for each in entries
        if (each.subject, each.attribute, each.polarity) == (subject, attribute, polarity)
        and not each.ended
        and not each.is_waiting
    )
    chinese = bool(facts) and is_chinese(facts[-1].text)
    form = (_CHINESE if chinese else _ENGLISH).get((attribute, polarity))
    if form is None or not facts:
        return None
    text = form.format(who=_who(subject, chinese=chinese), what=_listed(facts, chinese=chinese))
    return FactGroup(subject, attribute, polarity, facts, text)


def _who(subject: str, *, chinese: bool) -> str:
    person, _, relation = subject.partition("/")
    if chinese:
        return ("用户" if person == USER else person) + (f"的{relation}" if relation else "")
    name = "The user" if person == USER else person.title()
    return f"{name}'s {relation}" if relation else name


def _listed(facts: Sequence[FactEntry], *, chinese: bool) -> str:
    """Return the values as a list in words; only the newest if there are too many."""
    values = list(dict.fromkeys(fact.value for fact in facts))[-_MOST_NAMED:]
    if chinese:
        return "、".join(values)
    return " and ".join(part for part in (", ".join(values[:-1]), values[-1]) if part)


def _draft(ledger: FactLedger, group: FactGroup, text: str, *, now: float, author: str) -> Draft:
    ids = tuple(fact.id for fact in group.facts)
    return Draft(
        id=ledger.name(INSIGHT, group.subject, group.attribute, str(group.polarity)),
        value=text,
        text=text,
        kind=INSIGHT,
        title=group.attribute,
        details={
            "subject": group.subject,
            "attribute": group.attribute,
            "polarity": group.polarity,
            "values": [fact.value for fact in group.facts],
        },
        importance=_IMPORTANCE,
        created_at=now,
        valid_from=now,
        origin=Origin(author, ids),
    )
