"""Statements in English sentences, clause by clause.

A clause is a fact if a row extracts a value from it or if it touches a matter (an area of life). A
clause about a mere thing counts only if it ends a known fact.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from .....retrieval.times.reading import lowered
from ..facts import CORRECTION, EXCLUSIVE_MATTERS, Statement, attribute_named, trimmed
from ..patterns import Matter, ValueRow
from ..people import People
from .clauses import IS_NAMED, OWN, EnglishClause, clauses, matter_of
from .matters import ENDS, NEGATED, TURNS
from .third_person import in_third_person
from .values import ROWS
from .words import (
    DENIES,
    INTENDS,
    SUBORDINATE,
    UNREAL,
    plain,
)

_LISTED = re.compile(r"\s*,\s*(?:and\s|or\s|as well as\s)?\s*|\s+(?:and|or|as well as|&)\s+")
_AFFECTED = re.compile(
    r"\bme\b|\b(?:is|'s|are|changed|switched|swapped|stopped|raised|lowered) my\b", re.IGNORECASE
)
_PLACED = re.compile(
    r"\bin (?!January|February|March|April|May|June|July|August|Sept|October|November"
    r"|December)(?P<v>[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)?)\b"
)
_CORRECTS = re.compile(
    r"(?:\b(?:was|is|it's|its) [^,]{1,30}, not (?:the |on |in )?\w+|\btold you (?:wrong|a fib"
    r"|\d+)|\b(?:correction|mixed (?:it|that|them|those) up|mixed up|(?:got|had) (?:it|that)"
    r" wrong|I meant|my mistake|scratch that|turns out I)\b)",
    re.IGNORECASE,
)
_ACTUALLY = re.compile(
    r"(?:(?:no|oh|wait|sorry|hm+)\W+)*actually,?\s(?P<said>(?:he|she|it)(?:'s| is)\s.+)",
    re.IGNORECASE,
)
_INTRODUCED = re.compile(
    r"(?:I'm|I am|this is|(?:real |^)name(?:'s|"
    r" is)?)\s(?P<v>[A-Za-z]+(?:\s[A-Z][a-z]+)?)(?=[.!,]|$|\s(?:and|nice|from|btw|here|by)\b)",
    re.IGNORECASE,
)
_A_PEOPLE = re.compile(
    r"\w+(?:ese|ish|ian|ench|utch|reek|ican|OK|rman)$|^(?:Jewish|Muslim|Hindu|Thai|Back|Not|Fine"
    r"|So|Vegan)$"
)
_CALL_ME = re.compile(
    r"\b(?:(?:just |pls |please )?call me|address me as"
    r"|(?i:everyone|everybody|people|(?:my )?friends|they(?: all)?) calls? me)"
    r"\s(?P<v>[A-Z][\w-]+)(?=[.!,;]|$|\s(?:by|if|now|from|please|pls))"
)
_ADJUNCT = re.compile(
    r"\b(?:before|after|from|to|at) (?:work|school)\b|\bwith (?:my|our|the) (?:[\w-]+ )?\w+"
)
_DIGITS = re.compile(r"\d{6,}")  # a private number, such as an account's
_SHORTENED = re.compile(r"^'(?:m|ve|re|s|ll|d)\s+")
_AGE = re.compile(r"[1-9]\d(?=[.!,]|$)")
_LONGEST_LIST = 12


def statements(sentence: str, who: str, people: People) -> Iterator[Statement]:
    """Yield what a sentence states about its speaker, called ``who``, or people around them."""
    text = plain(sentence)
    if _CORRECTS.search(text) and not UNREAL.search(text):
        yield _corrected(text, who)
        return
    unnamed = None if people.mentioned else _ACTUALLY.match(text)
    matter = None if unnamed is None else matter_of(lowered(unnamed["said"]))
    if matter is not None:  # about whom is unknown: the ledger looks for the same matter
        yield _corrected(text, who)._replace(
            attribute=f"{CORRECTION} {matter.name}", text=f"{trimmed(text)}.", needs_rival=True
        )
        return
    yield from _names(text, who, people)
    told = set()
    for clause in clauses(text, people):
        for statement in _stated(text, clause, who):
            if statement.attribute != "event:dated":  # seldom kept
                told.add(statement.subject)
            yield statement
    yield from _introduced(people, told, who)


def _corrected(text: str, who: str) -> Statement:
    """Return a correction as a whole; the right value is somewhere in it."""
    return Statement(
        CORRECTION, trimmed(text), f"{who}: {trimmed(text)}.", change=True, is_exact=False
    )


def _introduced(people: People, told: Collection[str], who: str) -> Iterator[Statement]:
    """Yield people named in passing: "my brother Callum would eat that" reveals a brother.

    People that another statement is about are skipped: that statement makes them known.
    """
    for relation, name in people.introduced:
        if f"{relation} {name}" not in told:
            text = f"{who}'s {relation} is called {name.title()}."
            yield Statement("family", name.title(), text, f"{relation} {name}", is_exact=False)
    people.introduced.clear()


def _names(text: str, who: str, people: People) -> Iterator[Statement]:
    told = _CALL_ME.search(text)
    if told is not None:
        yield Statement(
            "nickname", told["v"], f"{who} wants to be called {told['v']}.", change=True
        )
    found = _INTRODUCED.search(text)
    is_first, people.is_first = people.is_first, False
    if found is None or told is not None:
        return
    name = found["v"]
    is_name = name[0].isupper() and _A_PEOPLE.match(name.split()[0]) is None
    is_early = found.start() <= len("hello there, my ") and (is_first or found.group()[0] in "Iim")
    if name.lower() in people.own or (is_name and is_early):
        yield Statement("name", name.title(), f"{who}'s name is {name.title()}.")


def _stated(text: str, clause: EnglishClause, who: str) -> Iterator[Statement]:
    said = text[clause.begin : clause.end]
    named = IS_NAMED.match(said)
    if named is not None and clause.subject:
        yield Statement("name", named["name"], _worded(said, clause, who), clause.subject)
        return
    age = None if clause.subject else _AGE.match(said)
    if age is not None:
        yield Statement("age", age.group(), f"{who} is {age.group()}.")
        return
    if not clause.is_thing:
        exact = list(_exact(text, clause, who))
        if exact:
            yield from exact
            return
    general = _general(said, clause, _worded(said, clause, who))
    if general is None:
        return
    yield general
    place = _PLACED.search(said)
    if (
        place is not None
        and general.attribute == "work"
        and not clause.subject
        and not general.ended
        and not clause.is_thing
    ):
        yield Statement("whereabouts", place["v"], f"{who} is in {place['v']}.", is_exact=False)


def _worded(said: str, clause: EnglishClause, who: str) -> str:
    """Return a clause that reads on its own, with its subject named."""
    if clause.subject and not clause.names_subject:
        return f"{who}'s {_titled(clause.subject)}: {said.strip(' ,;:-').rstrip('.!')}."
    return in_third_person(said, who)


def _titled(subject: str) -> str:
    relation, _, name = subject.rpartition(" ")
    return f"{relation} {name.title()}" if relation else subject


def _turns(matter: Matter, main: str) -> bool:
    """Return whether a matter changes, unless the change is negated or only intended."""
    found = None if matter.turns is None else matter.turns.search(main)
    return (
        found is not None and not DENIES.search(main[: found.start()]) and not INTENDS.search(main)
    )


def _matter(main: str, words: str, clause: EnglishClause) -> Matter | None:
    """Return the matter of a clause; adjuncts such as "with my sister" are considered last."""
    predicate = main[clause.at - clause.begin :] if clause.subject else main
    looked_at = (_ADJUNCT.sub("", predicate), predicate, main, words)
    return next(filter(None, map(matter_of, looked_at)), None)


def _general(said: str, clause: EnglishClause, text: str) -> Statement | None:
    """Return a clause as a statement about a matter; one about a thing must end something."""
    words = lowered(said)
    rest = trimmed(_SHORTENED.sub("", said[clause.at - clause.begin :]))
    value = rest if rest else trimmed(said)
    main = SUBORDINATE.split(words)[0]
    matter = _matter(main, words, clause)
    turns = matter is not None and _turns(matter, main)
    ends, changes = ENDS.search(main) is not None, TURNS.search(main) is not None
    is_own = not clause.is_thing or (turns and _AFFECTED.search(said) is not None)
    if matter is None and not ends and not changes:
        return (
            None
            if clause.is_thing or len(said.split()) < 3
            else Statement("event:dated", value, text, clause.subject, is_exact=False)
        )
    if not is_own and not turns and not ends and not changes:
        return None
    name = "event" if matter is None else matter.name
    if _DIGITS.search(said) or (
        clause.subject and not said[clause.at - clause.begin :].strip(" .!")
    ):
        return None
    polarity = -1 if NEGATED.search(main) else 1
    is_change = turns or (changes and name not in EXCLUSIVE_MATTERS)
    return Statement(
        name, value, text, clause.subject, polarity, ends, is_change, not is_own, is_exact=False
    )


def _exact(text: str, clause: EnglishClause, who: str) -> Iterator[Statement]:
    said = text[clause.begin : clause.end]
    predicate, at, own = lowered(text[clause.at : clause.end]), clause.at, None
    mine = OWN.match(lowered(said))
    if mine is not None and not clause.subject:
        own = attribute_named(mine["what"])
        at = clause.begin + mine.end()
        predicate = lowered(text[at : clause.end])
    stripped = predicate.lstrip(" ,")
    at += len(predicate) - len(stripped)
    for row in ROWS:
        match = row.pattern.match(stripped)
        if match is not None and _is_for(row, own):
            yield from _made(row, match, text, clause, at, who, own)
            return


def _is_for(row: ValueRow, own: str | None) -> bool:
    if row.own is None or own is None:
        return row.own is None and own is None
    return row.own.fullmatch(own) is not None


def _made(
    row: ValueRow,
    match: re.Match[str],
    text: str,
    clause: EnglishClause,
    at: int,
    who: str,
    own: str | None,
) -> Iterator[Statement]:
    begin, end = (at + place for place in match.span("v"))
    said = text[clause.begin : clause.end]
    whole = Statement(
        row.attribute.replace("*", own or ""),
        trimmed(text[begin:end]),
        _worded(said, clause, who),
        clause.subject,
        row.polarity,
        row.ended,
        row.change,
    )
    items = _items(whole.value) if row.is_list and not text[end : clause.end].strip(" .!") else []
    if not whole.value or len(items) < 2:
        yield from [whole] if whole.value else []
        return
    for item in items:
        words = _worded(f"{text[clause.begin : begin]}{item}.", clause, who)
        yield whole._replace(value=item, text=words)


def _items(value: str) -> list[str]:
    """Split "tennis, hiking and climbing"; return nothing if it is not a plain list."""
    items = [trimmed(part) for part in _LISTED.split(value)]
    is_plain = all(item and len(item.split()) <= 4 for item in items)
    return items if is_plain and len(items) <= _LONGEST_LIST else []
