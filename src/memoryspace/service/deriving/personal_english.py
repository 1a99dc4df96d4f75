"""What somebody says of themselves and their people in English, clause by clause.

A sentence falls into pieces. Each is about the speaker, about a person, or about some thing; a
piece that says nothing new belongs to the one before it. A clause is a fact if a row reads a value
out of it, or if it touches a matter of life.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...retrieval.times.reading import lowered
from .personal_english_matters import ANIMALS, ENDS, MATTERS, NEGATED, RELATIONS, TURNS, Matter
from .personal_english_values import ROWS, Row
from .personal_english_voice import in_third_person
from .personal_english_words import (
    ANSWERS,
    ASKS,
    BARE,
    DENIES,
    IDLE,
    INTENDS,
    LEAD,
    OPENER,
    SAYS,
    STANDING,
    SUBORDINATE,
    UNREAL,
    plain,
)
from .personal_facts import CORRECTION, EXCLUSIVE_MATTERS, Statement, attribute_named, trimmed
from .personal_people import People

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
_VERBS = (  # with these a second statement about the same person begins: "… and work as a nurse"
    r"(?:work|works|live|lives|love|loves|hate|hates|enjoy|prefer|have|has|like|likes|study|play"
    r"|plays|speak|"
    r"own|moved|bought|got|started|joined|adopted|don't|doesn't|am|is|went|quit|left)"
)
_SAME_SUBJECT = re.compile(rf"\s*,?\s+(?:and|but)\s+(?:also\s|now\s|really\s)?(?={_VERBS}\b\s)")
_LISTED = re.compile(r"\s*,\s*(?:and\s|or\s|as well as\s)?\s*|\s+(?:and|or|as well as|&)\s+")
_SPEAKER = re.compile(r"(?:I|we|me)\b\s?", re.IGNORECASE)
_RELATED = re.compile(
    rf"(?:(?i:my|our)\s(?i:(?:\w+\s){{0,2}}?)|(?i:the\s)(?=(?i:wife|husband|hubby|missus|kids"
    rf"|lad|boyfriend|girlfriend)\b)"
    r"|(?=(?i:mum|dad|mom|sis|hubby|gran|granny|nan|ma|moms|mums)\b)|(?=(?i:\w+)\s[A-Z][a-z]))"
    rf"(?P<relation>(?i:{RELATIONS}))\b(?!\s(?i:is|was"
    rf"|name)\s(?i:off)\b)(?:,?\s\(?(?P<name>[A-Z][\w-]+|"
    r"(?!who|that|and|just|also|still|already|now|she|he|is|was|has|had|never|always|really"
    r"|keeps|got|says|said|thinks|works|lives|in|on|for|with|from|will)"
    r"[a-z]{3,9}(?=\s(?:is|was|has|says|said|reckons|thinks|wants|lives|works|got|plays|he|she"
    r"|goes|keeps|can't|moved)\b|'s\s|,\s(?:she|he)\b))\)?,?)?"
    r"(?P<of>'s\s(?:name|birthday|job|favou?rite\s[a-z ]{2,20}?)(?=\s(?:is|are)\b))?"
)
_IS_NAMED = re.compile(
    rf"(?i:my|our)\s(?i:\w+\s)?(?P<relation>(?i:{RELATIONS}|{ANIMALS}))(?:'s\sname)?"
    r"\s(?i:is|was)\s(?i:called\s|named\s)?(?P<name>[A-Z][a-z]+)\b"
)
_MENTIONED = re.compile(
    rf"(?i:my|our|new)\s(?i:(?:\w+\s)?)(?P<relation>(?i:{RELATIONS})),?\s\(?(?P<name>[A-Z][a-zà-ÿ]+)\b"
)
_HIS_NAME = re.compile(r"(?i:his|her|their)\sname(?:'s|\sis)\s(?P<name>[A-Z]\w+)")
_OWN = re.compile(r"(?:my|our)\s(?P<what>[a-z][a-z' -]{1,40}?)\s(?=(?:is|are|was|were|will be)\b)")
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
_IT = re.compile(r"(?:it|it's|its|name's)\b", re.IGNORECASE)  # goes on with what was said
_SOME = re.compile(
    r"(?:a|an|another|some|both|all|one|two|three|second|no more)\b(?!\s(?:guy|girl|man|woman"
    r"|lady|bloke|friend|patient|customer|client|kid))",
    re.IGNORECASE,
)
_TO_ME = re.compile(r"they(?:'ve|\shave)?\s\w+\sme\b", re.IGNORECASE)
_AFFECTED = re.compile(r"\bme\b|\b(?:is|'s|are) my\b", re.IGNORECASE)
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
    r"\b(?:(?:just |pls |please )?call me|address me as)\s(?P<v>[A-Z][\w-]+)(?=[.!,;]|$|\s(?:by"
    r"|if|now|from|please|pls))"
)
_IF = re.compile(
    r"\bif (?:i|we|you) (?:were|was|had|could)\b|\bimagine\b|\bwhat if\b", re.IGNORECASE
)
_DIGITS = re.compile(r"\d{6,}")  # a number to keep rather than to tell
_SHORTENED = re.compile(r"^'(?:m|ve|re|s|ll|d)\s+")
_AGE = re.compile(r"[1-9]\d[.!]?$")
_LONGEST_LIST = 12


@dataclass
class _Clause:
    """Words of a sentence about one subject. A ``thing`` is neither the speaker nor a person."""

    begin: int
    end: int
    at: int  # where what is said of the subject begins
    subject: str = ""
    is_thing: bool = False
    is_bare: bool = False
    told: bool = True  # its words name the subject


def is_standing(sentence: str) -> bool:
    """Tell whether a sentence is a lasting wish about the answers."""
    text = plain(sentence)
    return bool(STANDING.search(text) and ANSWERS.search(text)) and _IF.search(text) is None


def statements(sentence: str, who: str, people: People) -> Iterator[Statement]:
    """Yield what a sentence states about its speaker, who is called ``who``, or their people."""
    text = plain(sentence)
    if is_standing(sentence):
        yield Statement("instruction", trimmed(text), in_third_person(f"{text}", f"{who} asks"))
        return
    if _CORRECTS.search(text) and not UNREAL.search(text):
        yield _corrected(text, who)
        return
    yield from _names(text, who, people)
    told = " "
    for clause in _clauses(text, people):
        for statement in _stated(text, clause, who):
            told += statement.text.lower()
            yield statement
    yield from _introduced(people, told, who)


def _corrected(text: str, who: str) -> Statement:
    """Return a correction whole: what is right stands somewhere in it."""
    return Statement(
        CORRECTION, trimmed(text), f"{who}: {trimmed(text)}.", change=True, is_exact=False
    )


def _introduced(people: People, told: str, who: str) -> Iterator[Statement]:
    """Yield who was named on the way: "my brother Callum would eat that" tells of a brother."""
    for relation, name in people.met:
        if name not in told:
            text = f"{who}'s {relation} is called {name.title()}."
            yield Statement("family", name.title(), text, f"{relation} {name}", is_exact=False)
    people.met.clear()


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


def _clauses(text: str, people: People) -> Iterator[_Clause]:
    """Yield the clauses of a sentence that state something; what says nothing new joins them."""
    found: list[_Clause] = []
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
        for mention in _MENTIONED.finditer(text, clause.at, end):
            people.meet(mention["relation"], mention["name"])
        is_more = clause.is_bare and before is not None and before.end <= begin
        if is_more and before is not None and not _has_own_matter(text, clause, before):
            before.end = end
            continue
        found.append(clause)
        before = clause
    for clause in found:
        yield from _parts(text, clause)


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for cut in [*_BREAK.finditer(text), None]:
        end = len(text) if cut is None else cut.start()
        opener = OPENER.match(text, begin, end)
        begin = begin if opener is None else opener.end()
        if text[begin:end].strip(" .!"):
            yield begin, end
        begin = end if cut is None else cut.end()


def _about(
    text: str, begin: int, end: int, people: People, before: _Clause | None
) -> _Clause | None:
    """Return a piece with whom it is about, or nothing if it states nothing."""
    if ASKS.match(text, begin, end):
        return None
    lead = LEAD.match(text, begin, end)
    speaker = _SPEAKER.match(text, begin if lead is None else lead.end(), end)
    if speaker is not None:
        return None if IDLE.match(text, speaker.end(), end) else _Clause(begin, end, speaker.end())
    person = _person(text, begin, end, people)
    if person is not None:
        return None if _are_their_words(text, person) else person
    if _PRONOUN.match(text, begin, end):
        return None
    if _MINE.match(text, begin, end):
        return (
            _Clause(begin, end, begin)
            if _OWN.match(lowered(text[begin:end])) or len(text[begin:end].split()) > 3
            else None
        )
    return _bare(text, begin, end, before)


def _person(text: str, begin: int, end: int, people: People) -> _Clause | None:
    named = _IS_NAMED.match(text, begin, end)
    if named is not None:
        who = people.meet(named["relation"], named["name"])
        return _Clause(begin, end, begin, who)
    related = _RELATED.match(text, begin, end)
    if related is not None:
        return _Clause(begin, end, related.end(), people.meet(related["relation"], related["name"]))
    pronoun = _PRONOUN.match(text, begin, end)
    if pronoun is not None and people.last is not None:
        if not _may_mean(pronoun.group().lower(), people.last):
            return None
        his = _HIS_NAME.match(text, begin, end)
        who = people.last if his is None else people.meet(people.last.split()[0], his["name"])
        at = pronoun.end() if pronoun.group().lower() in ("he", "she") else begin
        return _Clause(begin, end, at, who, told=False)
    name = _NAME.match(text, begin, end)
    known = None if name is None else people.named(name.group().removesuffix("'s"))
    if known is None and begin > 0 and (stranger := _STRANGER.match(text, begin, end)) is not None:
        return _Clause(begin, end, stranger.end(), people.meet("", stranger.group()))
    if name is None or known is None:
        return None
    return _Clause(begin, end, name.end(), known, told=False)


def _may_mean(pronoun: str, person: str) -> bool:
    """Whether "he" may be a person: it is no sister."""
    wrong = _WOMEN if pronoun in ("he", "his", "him") else _MEN
    return wrong.search(person) is None


def _are_their_words(text: str, clause: _Clause) -> bool:
    """Whether a person is said to say something, of others than themselves."""
    return SAYS.match(text[clause.at : clause.end].lstrip()) is not None


def _bare(text: str, begin: int, end: int, before: _Clause | None) -> _Clause | None:
    """A piece without a person: it goes on about the one before, or is about some thing."""
    is_joined = _IT.match(text, begin, end) or (before and _APPOSED.match(text[begin:end]))
    is_thing = _THING.match(text, begin, end) is not None and not is_joined
    if _TO_ME.match(text, begin, end) or (before is None and BARE.match(text, begin, end)):
        return _Clause(begin, end, begin, is_bare=before is None)
    is_some = _SOME.match(text, begin, end) is not None
    if before is not None and before.subject and _IT.match(text, begin, end):
        return None
    if before is not None and (not is_thing or is_some):
        return _Clause(begin, end, begin, before.subject, before.is_thing, is_bare=True, told=False)
    if before is None and is_some:
        return _Clause(begin, end, begin, is_bare=True)
    return _Clause(begin, end, begin, is_thing=True)


def _has_own_matter(text: str, clause: _Clause, before: _Clause) -> bool:
    words = lowered(text[clause.begin : clause.end])
    if words.isdigit() and len(words) == 2:
        return True
    if _LEANS.match(words) is not None:
        return False
    own, other = _matter_of(words), _matter_of(lowered(text[before.begin : before.end]))
    return own is not None and own is not other and " " in words and own.name != "habit"


def _parts(text: str, clause: _Clause) -> Iterator[_Clause]:
    """Yield "I live in Rome" and "work as a nurse" of "I live in Rome and work as a nurse"."""
    begin = clause.begin
    for cut in _SAME_SUBJECT.finditer(text, clause.at, clause.end):
        at = clause.at if begin == clause.begin else begin
        yield _Clause(
            begin,
            cut.start(),
            at,
            clause.subject,
            clause.is_thing,
            told=begin == clause.begin and clause.told,
        )
        begin = cut.end()
    at = clause.at if begin == clause.begin else begin
    yield _Clause(
        begin,
        clause.end,
        at,
        clause.subject,
        clause.is_thing,
        told=begin == clause.begin and clause.told,
    )


def _stated(text: str, clause: _Clause, who: str) -> Iterator[Statement]:
    said = text[clause.begin : clause.end]
    named = _IS_NAMED.match(said)
    if named is not None and clause.subject:
        yield Statement("name", named["name"], _worded(said, clause, who), clause.subject)
        return
    if _AGE.match(said) and not clause.subject:
        yield Statement("age", trimmed(said), f"{who} is {trimmed(said)}.")
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


def _worded(said: str, clause: _Clause, who: str) -> str:
    """Return a clause so that it reads alone: whom it is about stands in it."""
    if clause.subject and not clause.told:
        return f"{who}'s {_titled(clause.subject)}: {said.strip(' ,;:-').rstrip('.!')}."
    return in_third_person(said, who)


def _titled(subject: str) -> str:
    relation, _, name = subject.rpartition(" ")
    return f"{relation} {name.title()}" if relation else subject


def _matter_of(words: str) -> Matter | None:
    return next((each for each in MATTERS if each.words.search(words)), None)


def _turns(matter: Matter, main: str) -> bool:
    """Whether a matter is otherwise from now on; what is denied or only meant to be is not."""
    found = None if matter.turns is None else matter.turns.search(main)
    return (
        found is not None and not DENIES.search(main[: found.start()]) and not INTENDS.search(main)
    )


def _general(said: str, clause: _Clause, text: str) -> Statement | None:
    """Return a clause as a fact about a matter of life; a thing's only if it ends something."""
    words = lowered(said)
    rest = trimmed(_SHORTENED.sub("", said[clause.at - clause.begin :]))
    value = rest if rest else trimmed(said)
    main = SUBORDINATE.split(words)[0]
    matter = _matter_of(words)
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


def _exact(text: str, clause: _Clause, who: str) -> Iterator[Statement]:
    said = text[clause.begin : clause.end]
    predicate, at, own = lowered(text[clause.at : clause.end]), clause.at, None
    mine = _OWN.match(lowered(said))
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


def _is_for(row: Row, own: str | None) -> bool:
    if row.own is None or own is None:
        return row.own is None and own is None
    return row.own.fullmatch(own) is not None


def _made(
    row: Row, match: re.Match[str], text: str, clause: _Clause, at: int, who: str, own: str | None
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
    """Split "tennis, hiking and climbing"; what is no plain list stays whole."""
    items = [trimmed(part) for part in _LISTED.split(value)]
    is_plain = all(item and len(item.split()) <= 4 for item in items)
    return items if is_plain and len(items) <= _LONGEST_LIST else []
