"""Clauses of English sentences and their subjects.

A sentence is split into pieces. Each is about the speaker, a person or a thing; a piece that says
nothing new is joined to the one before it. Reading stops at the first hypothetical piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .....retrieval.times.reading import lowered
from ..patterns import Matter
from ..people import People
from .matters import ANIMALS, MATTERS, RELATIONS
from .words import ASKS, BARE, IDLE, LEAD, OPENER, SAYS, UNREAL

_SUBJECT = (
    r"(?:I|I'\w+|we|we'\w+|my|our|he|he's|she|she's|they|they'\w+|it|it's|its|that's|there"
    r"|there's|you|"
    r"you're|the|his|her|this|everyone|someone|mum|dad|mom)\b"
)
_BREAK = re.compile(
    r"\s*[,;()—–]+\s*|\s+-+\s+|\s*(?:\.\.+|…)\s*|:\s+|"
    rf"\s+(?:and|but|so|then|while|plus|yet|because|cos|bc|though)\s+(?=(?:{_SUBJECT}"
    rf"|(?-i:[A-Z][a-z]+)(?:'s)?\s(?:is|was|has|had|got|will|says|said|lives|works|wants|can"
    rf"|went|goes|just|still|died|found)\b))"
    r"|\s+(?:knows?|knew)\s+(?:that\s+)?(?=I\b)",
    re.IGNORECASE,
)
_VERBS = (  # verbs that begin a second statement about the same person: "… and work as a nurse"
    r"(?:work|works|live|lives|love|loves|hate|hates|enjoy|prefer|have|has|like|likes|study|play"
    r"|plays|speak|"
    r"own|moved|bought|got|started|joined|adopted|don't|doesn't|am|is|went|quit|left)"
)
_SAME_SUBJECT = re.compile(rf"\s*,?\s+(?:and|but)\s+(?:also\s|now\s|really\s)?(?={_VERBS}\b\s)")
_SPEAKER = re.compile(r"(?:I|we|me)\b\s?", re.IGNORECASE)
_RELATED = re.compile(
    rf"(?:(?i:my|our)\s(?i:(?:\w+\s){{0,2}}?)|(?i:the\s)(?=(?i:wife|husband|hubby|missus|kids"
    rf"|lad|boyfriend|girlfriend)\b)"
    r"|(?=(?i:mum|dad|mom|sis|hubby|gran|granny|nan|ma|moms|mums)\b)|(?=(?i:\w+)\s[A-Z][a-z]))"
    rf"(?P<relation>(?i:{RELATIONS})|(?<=\s)(?i:{ANIMALS}))\b(?!\s(?i:is|was"
    rf"|name)\s(?i:off)\b)(?:,?\s\(?(?:(?:Mrs?|Ms|Dr|Miss)\.?\s)?(?P<name>[A-Z][\w-]+|"
    r"(?!who|that|and|just|also|still|already|now|she|he|is|was|has|had|never|always|really"
    r"|keeps|got|says|said|thinks|works|lives|in|on|for|with|from|will)"
    r"[a-z]{3,9}(?=\s(?:is|was|has|says|said|reckons|thinks|wants|lives|works|got|plays|he|she"
    r"|goes|keeps|can't|moved)\b|'s\s|,\s(?:she|he)\b))\)?,?)?"
    r"(?P<of>'s\s(?:name|birthday|job|favou?rite\s[a-z ]{2,20}?)(?=\s(?:is|are)\b))?"
)
IS_NAMED = re.compile(
    rf"(?:(?i:my|our|the new)\s(?i:\w+\s)?|new\s)"
    rf"(?P<relation>(?i:{RELATIONS}|{ANIMALS}))(?:'s\sname)?"
    r"\s(?i:is|was)\s(?i:called\s|named\s)?(?P<name>[A-Z][a-z]+)\b"
)
_MENTIONED = re.compile(
    rf"(?i:my|our|new|an?)\s(?i:(?:\w+\s)?)(?P<relation>(?i:{RELATIONS})),?\s\(?(?P<name>[A-Z][a-zà-ÿ]+)\b"
)
# "We have a hound called Biscuit", "my daughters Anya and Katya".
_HAD = re.compile(
    r"(?i:(?:have|'ve|just)\s)?(?i:have|has|got|adopted|rescued|had|bought)\s(?i:an?|this|one|two|our)\s(?:[\w'-]+\s){0,3}?"
    r"(?P<relation>[a-z]+),?\s(?i:called|named)\s(?P<name>[A-Z][\w-]+)"
)
_SEVERAL = re.compile(
    rf"(?P<relation>(?i:{RELATIONS}))(?:s|(?<=children)),?\s(?i:called\s|named\s)?"
    r"(?P<name>[A-Z][a-z]+)(?:,\s(?P<third>[A-Z][a-z]+))?,?\s(?:and|&)\s(?P<other>[A-Z][a-z]+)\b"
)
_HIS_NAME = re.compile(r"(?i:his|her|their)\sname(?:'s|\sis)\s(?P<name>[A-Z]\w+)")
OWN = re.compile(r"(?:my|our)\s(?P<what>[a-z][a-z' -]{1,40}?)\s(?=(?:is|are|was|were|will be)\b)")
# "Sam and I" is the speaker, together with somebody.
_JOINT = re.compile(
    r"(?:(?i:my|the)(?:\s(?!(?i:is|was|are|has|name)\b)\w+){1,3}?|[A-Z]\w+)\sand\sI(?='|\s)"
)
_MINE = re.compile(r"(?:my|our|mine)\b", re.IGNORECASE)
_PRONOUN = re.compile(r"(?:he|she|his|her|hers|him)\b", re.IGNORECASE)
_WOMEN = re.compile(
    r"\b(?:mother|mom|mum|sister|sis|wife|girlfriend|gf|daughter|aunt\w*|niece|grandm\w+|gran"
    r"|granny|nan|missus|girl)\b"
)
_MEN = re.compile(
    r"\b(?:father|dad|brother|bro|husband|hubby|boyfriend|bf|son|lad|uncle|nephew|grand(?:pa|dad"
    r"|father|son)|boy)\b"
)
_NAME = re.compile(r"[A-Za-z][\w-]+")
_STRANGER = re.compile(
    r"[A-Z][a-z]+(?=(?:'s)?\s(?:is|was|has|had|got|will|says|said|lives|works|wants|can|went"
    r"|goes|just|still|died|found|moved|started|left|took|asked|told|never)\b|,\s(?:he|she)\b)"
)
_THING = re.compile(
    r"(?:it|its|it's|that|this|these|those|there|they|you|your|u|the|their|everyone|everybody"
    r"|someone|somebody"
    r"|people|ppl|a guy|some|a|an|let's|all|both)\b|[A-Z][a-z]+\b",
)
_LEANS = re.compile(
    r"(?:at|in|on|with|w|from|for|near|by|to|under|about|of|near|after|before|until|till|which"
    r"|who|where)\b"
)
_APPOSED = re.compile(r"(?:[A-Z][\w'-]+\.?\s?){1,3}[.!]?$")  # "my new flatmate, Tobias"
_IT = re.compile(r"(?:it|it's|its|name's)\b", re.IGNORECASE)  # continues the piece before
_SOME = re.compile(
    r"(?:a|an|another|some|both|all|one|two|three|second|no more)\b(?!\s(?:guy|girl|man|woman"
    r"|lady|bloke|friend|patient|customer|client|kid))",
    re.IGNORECASE,
)
_TO_ME = re.compile(r"they(?:'ve|\shave)?\s\w+\sme\b", re.IGNORECASE)


@dataclass
class EnglishClause:
    """Part of a sentence about one subject. A *thing* is neither the speaker nor a person."""

    begin: int
    end: int
    at: int  # where the predicate begins
    subject: str = ""
    is_thing: bool = False
    is_bare: bool = False
    names_subject: bool = True  # whether its words name the subject


def clauses(text: str, people: People) -> Iterator[EnglishClause]:
    """Yield the clauses of a sentence that state something."""
    found: list[EnglishClause] = []
    before, is_lost = None, bool(people.topic)
    for begin, end in _pieces(text):
        if UNREAL.search(text, begin, end):
            _person(text, begin, end, people)
            break
        clause = _about(text, begin, end, people, before)
        if clause is None or (is_lost and before is None and clause.is_bare):
            before, is_lost = None, True
            continue
        is_lost = False
        people.topic = "?" if clause.is_thing and text[begin].isupper() else clause.subject
        _mention_named(text, clause, people)
        is_more = clause.is_bare and before is not None and before.end <= begin
        if is_more and before is not None and not _has_own_matter(text, clause, before):
            before.end = end
            continue
        found.append(clause)
        before = clause
    for clause in found:
        yield from _parts(text, clause)


def _mention_named(text: str, clause: EnglishClause, people: People) -> None:
    """Add the people that a clause names to ``people``."""
    for mention in _MENTIONED.finditer(text, clause.at):
        if mention.start() < clause.end:  # the name may follow a comma
            people.mention(mention["relation"], mention["name"])
    had = None if clause.subject else _HAD.match(text, clause.at, clause.end)
    if had is not None:
        people.mention(had["relation"], had["name"])
    several = _SEVERAL.search(text, clause.at)  # the names may follow commas
    if several is not None and several.start() < clause.end:
        relation = several["relation"].lower().replace("children", "child")
        for name in filter(None, several.group("name", "third", "other")):
            people.mention(relation, name)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for cut in [*_BREAK.finditer(text), None]:
        end = len(text) if cut is None else cut.start()
        opener = OPENER.match(text, begin, end)
        begin = begin if opener is None else opener.end()
        if cut is not None and (joint := _JOINT.match(text, begin)) and joint.end() > cut.end():
            continue
        if text[begin:end].strip(" .!"):
            yield begin, end
        begin = end if cut is None else cut.end()


def _about(
    text: str, begin: int, end: int, people: People, before: EnglishClause | None
) -> EnglishClause | None:
    """Return a piece with its subject, or ``None`` if it states nothing."""
    # "my wife, Ann, is a nurse": the predicate is still to come
    is_open = before is not None and before.subject and before.at >= before.end
    if ASKS.match(text, begin, end) and not is_open:
        return None
    lead = LEAD.match(text, begin, end)
    speaker = _SPEAKER.match(text, begin if lead is None else lead.end(), end)
    if speaker is None and (speaker := _JOINT.match(text, begin, end)) is not None:
        _person(text, begin, end, people)  # "she" may refer to them from now on
    if speaker is not None:
        return (
            None
            if IDLE.match(text, speaker.end(), end)
            else EnglishClause(begin, end, speaker.end())
        )
    person = _person(text, begin, end, people)
    if person is not None:
        return None if _are_their_words(text, person) else person
    if before is not None and is_open:
        return EnglishClause(begin, end, begin, before.subject, names_subject=False)
    if _PRONOUN.match(text, begin, end):
        return None
    if _MINE.match(text, begin, end):
        return (
            EnglishClause(begin, end, begin)
            if OWN.match(lowered(text[begin:end])) or len(text[begin:end].split()) > 3
            else None
        )
    return _bare(text, begin, end, before)


def _person(text: str, begin: int, end: int, people: People) -> EnglishClause | None:
    named = IS_NAMED.match(text, begin, end)
    if named is not None:
        who = people.mention(named["relation"], named["name"])
        return EnglishClause(begin, end, begin, who)
    related = _related(text, begin, end)
    if related is not None:
        who = people.mention(related["relation"], related["name"])
        return EnglishClause(begin, end, min(related.end(), end), who)
    pronoun = _PRONOUN.match(text, begin, end)
    meant = None if pronoun is None else _meant(pronoun.group().lower(), people)
    if pronoun is not None and meant is not None:
        his = _HIS_NAME.match(text, begin, end)
        who = meant if his is None else people.mention(meant.split()[0], his["name"])
        at = pronoun.end() if pronoun.group().lower() in ("he", "she") else begin
        return EnglishClause(begin, end, at, who, names_subject=False)
    name = _NAME.match(text, begin, end)
    known = None if name is None else people.named(name.group().removesuffix("'s"))
    stranger = None if known is not None else _STRANGER.match(text, begin)
    if stranger is not None and begin > 0 and stranger.end() <= end:
        return EnglishClause(begin, end, stranger.end(), people.mention("", stranger.group()))
    if stranger is not None:  # "Ben" or "Rent": undecidable; "he" may refer to it
        people.mention_unknown()
    if name is None or known is None:
        return None
    return EnglishClause(begin, end, name.end(), known, names_subject=False)


def _related(text: str, begin: int, end: int) -> re.Match[str] | None:
    """Match a relation with a name that follows: "the missus (Anneke, she's Dutch)"."""
    wide = _RELATED.match(text, begin)
    is_named = wide is not None and wide["name"] is not None and wide["name"][0].isupper()
    return wide if is_named else _RELATED.match(text, begin, end)


def _meant(pronoun: str, people: People) -> str | None:
    """Return whom a pronoun refers to; ``None`` if it is ambiguous."""
    may = [who for who in people.mentioned if _may_mean(pronoun, who)]
    return may[0] or None if len(may) == 1 else None


def _may_mean(pronoun: str, person: str) -> bool:
    """Return whether a pronoun fits a person: "he" is not a sister."""
    wrong = _WOMEN if pronoun in ("he", "his", "him") else _MEN
    return wrong.search(person) is None


def _are_their_words(text: str, clause: EnglishClause) -> bool:
    """Return whether a clause reports what a person says, other than about themselves."""
    return SAYS.match(text[clause.at : clause.end].lstrip()) is not None


def _bare(text: str, begin: int, end: int, before: EnglishClause | None) -> EnglishClause | None:
    """Return a piece without a person: it continues the clause before or is about a thing."""
    is_joined = _IT.match(text, begin, end) or (before and _APPOSED.match(text[begin:end]))
    is_thing = _THING.match(text, begin, end) is not None and not is_joined
    if _TO_ME.match(text, begin, end) or (before is None and BARE.match(text, begin, end)):
        return EnglishClause(begin, end, begin, is_bare=before is None)
    is_some = _SOME.match(text, begin, end) is not None
    if before is not None and before.subject and _IT.match(text, begin, end):
        return None
    if before is not None and (not is_thing or is_some):
        return EnglishClause(
            begin, end, begin, before.subject, before.is_thing, is_bare=True, names_subject=False
        )
    if before is None and is_some:
        return EnglishClause(begin, end, begin, is_bare=True)
    return EnglishClause(begin, end, begin, is_thing=True)


def _has_own_matter(text: str, clause: EnglishClause, before: EnglishClause) -> bool:
    words = lowered(text[clause.begin : clause.end])
    if words.isdigit() and len(words) == 2:
        return True
    if _LEANS.match(words) is not None:
        return False
    own, other = matter_of(words), matter_of(lowered(text[before.begin : before.end]))
    return own is not None and own is not other and " " in words and own.name != "habit"


def _parts(text: str, clause: EnglishClause) -> Iterator[EnglishClause]:
    """Split "I live in Rome and work as a nurse" into "I live in Rome" and "work as a nurse"."""
    begin = clause.begin
    for cut in _SAME_SUBJECT.finditer(text, clause.at, clause.end):
        at = clause.at if begin == clause.begin else begin
        yield EnglishClause(
            begin,
            cut.start(),
            at,
            clause.subject,
            clause.is_thing,
            names_subject=begin == clause.begin and clause.names_subject,
        )
        begin = cut.end()
    at = clause.at if begin == clause.begin else begin
    yield EnglishClause(
        begin,
        clause.end,
        at,
        clause.subject,
        clause.is_thing,
        names_subject=begin == clause.begin and clause.names_subject,
    )


def matter_of(words: str) -> Matter | None:
    """Return the first matter that words touch."""
    return next((each for each in MATTERS if each.words.search(words)), None)
