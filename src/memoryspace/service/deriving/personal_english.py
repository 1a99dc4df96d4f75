"""What somebody says of themselves in English: clauses, whom they are about, and what they state.

A clause is read from its beginning: whom it is about ("I", "my sister Emma", "my favourite town"),
then what is said of them, by the first row of a table that matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...retrieval.times.reading import lowered
from . import personal_english_life, personal_english_self
from .language import word_set
from .personal_english_rules import Rule
from .personal_english_voice import in_third_person
from .personal_english_words import OPENER, is_idle
from .personal_facts import Statement, attribute_named, trimmed

_HYPOTHETICAL = re.compile(
    r"\b(?:if i|if we|i wish|i would (?!love)|i could (?!n)|i might|i'd (?!love)|imagine|suppose|"
    r"let's say|pretend|what if|hypothetically|as if|in my dream|maybe i'll|perhaps i'll)\b"
)
_CLAUSES = re.compile(
    r"(?:\s*[,;:]\s+|\s+[-–—]+\s+|\s+(?=(?:and|but|so|then|while|plus|yet|because)\b))"
    r"(?:(?:and|but|so|then|while|plus|yet|because|also|now|recently|lately),?\s+)*"
    r"(?=(?:i|we|my)\b)"
)
_VERBS = (  # with these a second statement about the same person begins: "… and work as a nurse"
    r"(?:work|works|live|lives|love|loves|hate|hates|enjoy|enjoys|prefer|prefers|have|has|like|likes|"
    r"study|studies|play|plays|speak|speaks|own|owns|moved|bought|got|started|joined|adopted|"
    r"don't|doesn't|am|is)"
)
_SAME_SUBJECT = re.compile(rf"\s*,?\s+(?:and|but)\s+(?:also\s|now\s|really\s)?(?={_VERBS}\b\s)")
_LISTED = re.compile(r"\s*,\s*(?:and\s|or\s|as well as\s)?\s*|\s+(?:and|as well as|&)\s+")
_RELATIONS = (
    r"mother|mom|mum|father|dad|parents|sister|brother|wife|husband|partner|girlfriend|boyfriend|"
    r"fiancee?|spouse|son|daughter|kids?|child(?:ren)?|grand(?:ma|pa|mother|father|son|daughter)|"
    r"uncle|aunt|cousin|nephew|niece|boss|roommate|flatmate|neighbou?r|colleague|co-?worker|"
    r"(?:best\s|close\s|old\s)?friend|teacher|mentor|dog|cat|puppy|kitten|(?:older|younger|big|little|"
    r"elder|twin|eldest|youngest|oldest)\s(?:sister|brother|son|daughter)|[a-z]+-in-law|family"
)
_SPEAKER = re.compile(r"(?:i|we)(?=\b)\s?(?!\.|are\b(?<!we are)|were\b(?<!we were))")
_RELATED = re.compile(
    rf"(?:my|our)\s(?P<relation>{_RELATIONS})\b(?:,?\s(?P<name>[A-Z][\w-]+),?)?(?P<of>'s\s(?:name|"
    r"birthday|job|favou?rite\s[a-z ]{2,20}?)(?=\s(?:is|are)\b))?",
    re.IGNORECASE,
)
_OWN = re.compile(r"(?:my|our)\s(?P<what>[a-z][a-z' -]{1,40}?)\s(?=(?:is|are|was|were|will be)\b)")
# "Hi, I'm Luna": a name, unless it is a people, a faith or a mood in capitals.
_INTRODUCED = re.compile(
    r"(?:(?i:hi|hey|hello|yes|oh|well)(?: there)?[,.!]?\s(?:\w+[,!]\s)?)?(?:I'm|I am|This is)\s"
    r"(?!\w+(?:ese|ish|ian|ench|utch|reek|ican|eran|OK|rman)\b)(?P<v>[A-Z][a-z]+(?:\s[A-Z][a-z]+)?)"
    r"(?=[.!]?$|,|\sand\s|\s(?:nice|from)\b|[.!])"
)
_NO_NAMES = word_set("""
    Jewish Muslim Christian Hindu Not Sorry Back Fine Good So Very Here Thai
""")
_CALL_ME = re.compile(
    r"\b(?:call me|known as|address me as)\s(?P<v>[A-Z][\w-]+)(?=[.!,;]|$|\s(?:by|if))"
)
# A lasting wish about the answers; what is asked for once is none.
_STANDING = re.compile(
    r"(?:please,?\s)?(?:from now on|in (?:the )?future|always|never|going forward),?\s(?:please\s)?"
    r"(?P<v>(?:don't\s|do not\s|never\s|always\s)?(?:answer|reply|respond|write|speak|talk|use|"
    r"give|keep|explain|start|end|include|remind)\b.+)",
    re.IGNORECASE,
)
_NO_NAME = word_set("""
    is and was has who just had will would lives works
""")
_PLEASANTRY = re.compile(r"^(?:especially|particularly|also|even|both|all kinds of)\s")
_LONGEST_LIST = 12
_RULES = (*personal_english_self.ROWS, *personal_english_life.ROWS)


class _About(NamedTuple):
    """Whom a clause is about, and where what is said of them begins."""

    subject: str
    predicate: str  # in lower case
    at: int
    attribute: str | None = None  # of "my favourite colour is", "my email is"


def statements(sentence: str, who: str) -> Iterator[Statement]:
    """Yield what a sentence states about its speaker, who is called ``who``, or their people."""
    if _HYPOTHETICAL.search(lowered(sentence)) is not None:
        return
    introduced = _INTRODUCED.match(sentence)
    if introduced is not None and introduced["v"].split()[0] not in _NO_NAMES:
        yield Statement("name", introduced["v"], f"{who}'s name is {introduced['v']}.")
        return
    standing = _STANDING.match(sentence)
    if standing is not None:
        yield Statement("instruction", trimmed(standing["v"]), f"{who}: {standing.group()}")
        return
    told = _CALL_ME.search(sentence)
    if told is not None:
        yield Statement("nickname", told["v"], f"{who} wants to be called {told['v']}.")
        return
    for clause in _clauses(sentence):
        about = _about(clause)
        if about is not None and not is_idle(about.predicate):
            yield from _stated(clause, about, who)


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the clauses that begin with a person; what leads up to them is cut off."""
    lower = lowered(sentence)
    cuts = [0, *(match.end() for match in _CLAUSES.finditer(lower)), len(sentence)]
    begins = [match.start() for match in _CLAUSES.finditer(lower)]
    for begin, end in zip(cuts, [*begins, len(sentence)], strict=False):
        clause = sentence[begin:end]
        opener = OPENER.match(lowered(clause))
        yield from _parts(clause[opener.end() :] if opener is not None else clause)


def _parts(clause: str) -> Iterator[str]:
    """Yield "I live in Rome" and "I work as a nurse" of "I live in Rome and work as a nurse"."""
    about = _about(clause)
    if about is None or about.attribute is not None:
        yield clause
        return
    person = clause[: about.at].rstrip()
    first, *others = _SAME_SUBJECT.split(clause)
    yield first
    for other in others:
        yield f"{person} {other}"


def _about(clause: str) -> _About | None:
    lower = lowered(clause)
    speaker = _SPEAKER.match(lower)
    if speaker is not None:
        return _About("", lower[speaker.end() :], speaker.end())
    related = _RELATED.match(clause)
    if related is not None:
        return _of_a_relation(clause, related)
    own = _OWN.match(lower)
    if own is None:
        return None
    return _About("", lower[own.end() :], own.end(), attribute_named(own["what"]))


def _of_a_relation(clause: str, match: re.Match[str]) -> _About:
    name, at = match["name"], match.end()
    if name is not None and (name[0].islower() or name.lower() in _NO_NAME):
        name, at = None, match.end("relation")
    subject = match["relation"].lower() + (f" {name.lower()}" if name else "")
    attribute = attribute_named(match["of"][3:]) if match["of"] else None
    rest = lowered(clause[at:])
    return _About(subject, rest.lstrip(), at + len(rest) - len(rest.lstrip()), attribute)


def _stated(clause: str, about: _About, who: str) -> Iterator[Statement]:
    for rule in _RULES:
        match = rule.pattern.match(about.predicate)
        if match is not None and rule.takes(match["v"], about.attribute):
            yield from _made(rule, match, clause, about, who)
            return


def _made(
    rule: Rule, match: re.Match[str], clause: str, about: _About, who: str
) -> Iterator[Statement]:
    begin, end = (about.at + place for place in match.span("v"))
    whole = Statement(
        rule.attribute_for(about.attribute),
        trimmed(clause[begin:end]),
        in_third_person(clause, who),
        about.subject,
        rule.polarity,
        rule.ended,
        rule.change,
    )
    items = _items(whole.value) if rule.is_list and not clause[end:].strip(" .!") else []
    if len(items) < 2:
        yield whole
        return
    for item in items:
        if rule.takes(item.lower(), about.attribute):
            yield whole._replace(value=item, text=in_third_person(f"{clause[:begin]}{item}.", who))


def _items(value: str) -> list[str]:
    """Split "tennis, hiking and climbing"; what is no plain list stays whole."""
    items = [_PLEASANTRY.sub("", trimmed(part)) for part in _LISTED.split(value)]
    is_plain = all(item and len(item.split()) <= 4 for item in items)
    return items if is_plain and len(items) <= _LONGEST_LIST else []
