"""Patterns that extract an exact value from an English clause: a home, a job, an allergy, a taste.

A row matches a predicate in lower case ("'m a nurse", "works at the mill"); group ``v`` is the
value. The first matching row wins. A clause without a match is still a fact if it touches a matter.
"""

from __future__ import annotations

import re

from ..patterns import ValueRow, either, row
from .matters import ANIMALS

_BE = r"(?:am|is|are|'m|'s|'re)\s"
_HAVE = r"(?:(?:have|has|'ve|'s)\sgot|have|has|'ve|got)\s(?:also\s)?"
_DONE = r"(?:(?:have|has|'ve|'d|had)\s)?"
_NOT = r"(?:do not|don't|does not|doesn't|no longer)\s(?:really |particularly |much )?"
_ADVERBS = r"(?:(?:\w+ly|also|still|just|now|always|often|so|very|quite|even|do|big|both)\s)*"
_NOTHING = (
    r"(?!(?:it|that|this|you|your|how|what|when|the (?:way|idea|sound)|these|those|them|him|her"
    r"|to (?:say|ask"
    r"|know|hear)|seeing you|talking|chatting|here|everything)\b)"
)
_NUMBER = r"(?:an?|one|two|three|four|five|six|seven|eight|\d+|several)"
# A value ends where a reason, a duration or another clause begins.
_STOP = (
    r"(?=[.!;:(…]|,?\s(?:"
    + either(r"""
because | since | so that | so i | but | when | while | which | where | who | though | although
as (?:it|i|they)
if | for (?:the (?:past|last)|about|over|nearly|almost|\w+ (?:year|month|week|day)s?)
these days | now(?:adays)?
at the moment | right now | currently | too | as well | a lot | so much | very much
with (?:my|our|an?|the|some|two)
and (?:i|it|they|we|he|she|my|that|have|am|yes) | lately | recently | any\s?more
(?:last|next) (?:week|month|year)
(?:two|three|\d+|a few) \w+ ago | tbh | lol | btw | atm
""")
    + r")\b|\s-+\s|$)"
)
_SHORT = rf"(?P<v>[^\n.!;]+?){_STOP}"
# "Lyon, France" is one place; in "Lyon, which I love" it ends before the comma.
_PLACE = rf"(?P<v>[^\n.!;,]+?(?:,\s[^\W\d_]+(?=[.!;]|$))?)(?:(?=,)|{_STOP})"
_NAME = r"(?P<v>[a-z][\w'-]*(?:\s[a-z][\w'-]+){0,2}?)(?=[.!,;]|\s(?:and|but)\b|$)"
_DIETS = either("""
vegetarian | vegan | pescatarian | gluten[- ]free | lactose[- ]intolerant | celiac | coeliac
diabetic | halal | kosher
""")
_WORK = r"(?:[\w'][\w' -]*?\s)?" + either(r"""
\w+(?:er|or|ist|ian|ant|eer|ician|grapher|yst|smith|tect) | nurse | chef | cook | coach
student | pilot | judge
clerk | guide | intern | ceo | vet | barista | mechanic | poet | physio | attorney | scientist
""")
_NO_WORK = (
    r"(?!(?:[\w' -]+ )?"
    + either("""
fan | lover | member | believer | beginner | listener | reader | mother | father | sister
brother | daughter | winner
loser | foreigner | vegetarian | better | newcomer | survivor | stranger | collector | follower
learner | partner
drinker | eater | riser | sleeper | procrastinator | smoker | matter | number | never | ever
after | over | important
""")
    + r"\b)"
)


def _own(words: str, attribute: str, value: str = _SHORT, *, is_list: bool = False) -> ValueRow:
    pattern = re.compile(rf"(?:is|are)\s(?:called\s|named\s|on\s)?{value}")
    return ValueRow(pattern, attribute, is_list=is_list, own=re.compile(words))


ROWS = (
    _own("(?:full |real |first |last )?name", "name", _NAME),
    _own("birthday", "birthday"),
    _own(
        "(?:current )?(?:job|profession|occupation)",
        "job",
        rf"(?:an? )?{_NO_WORK}(?P<v>{_WORK}){_STOP}",
    ),
    _own("home ?town", "hometown"),
    _own("(?:biggest |other |main )?(?:hobby|hobbies|interests?|passions?)", "likes", is_list=True),
    _own(r"(?:all-time )?favourites?(?: \w+){1,4}", "*", rf"(?!the one|one\b){_SHORT}"),
    # identity
    row(
        rf"{_BE}{_ADVERBS}(?:an? )?(?P<v>\d{{1,3}})(?=[.!,;]|\s(?:years?\sold|now|and|this year"
        rf"|today)"
        r"|-years?-old|$)",
        "age",
    ),
    row(rf"{_ADVERBS}{_DONE}turn(?:ed|s)? (?P<v>\d{{1,3}})\b", "age", change=True),
    row(rf"(?:was|were)\sborn (?:on (?:the )?|in (?=\d{{4}})){_SHORT}", "birthday"),
    row(
        rf"(?:(?:was|were)\s(?:born(?: and raised)?|raised)|grew up|{_BE}{_ADVERBS}(?:originally"
        rf" )?from|comes?"
        rf" from)(?! (?:in )?\d| on\b)(?: in)? {_PLACE}",
        "hometown",
    ),
    row(
        rf"{_ADVERBS}(?:{_BE}{_ADVERBS}(?:living|based)|lives?|resides?|(?:have|has|'ve|'s)"
        rf" (?:\w+ )?(?:been"
        rf" living|lived)) (?:here |alone |together |abroad |on my own )?(?:in|at|near|outside)"
        r"(?! (?:an?|the|my|our) (?:[\w-]+ )*?(?:flat|house|apartment|room|studio|bungalow|home"
        r"|cottage|place)\b)"
        rf" {_PLACE}",
        "home",
    ),
    row(
        rf"{_ADVERBS}{_DONE}{_ADVERBS}(?:moved|relocated)(?:\s(?:back|here|away|out"
        rf"|in))?(?:\sfrom\s[^\n.!;]+?)?"
        rf"\s(?:in)?to\s(?!the (?:next|other)){_PLACE}",
        "home",
        change=True,
    ),
    row(
        rf"{_ADVERBS}{_DONE}(?:bought|rented|taken|took|got) an? (?:[\w-]+ )?(?:house|flat|home"
        rf"|apartment|studio|room|place|bedsit|(?:one|two|three)-bed(?:room)?)"
        rf"(?: of (?:my|our) own,?)? in {_PLACE}",
        "home",
        change=True,
    ),
    row(rf"{_BE}{_ADVERBS}(?P<v>married|single|divorced|engaged|widowed|separated)\b", "marital"),
    row(rf"{_BE}{_ADVERBS}(?:an? )?(?:strict |lifelong )?(?P<v>{_DIETS})\b", "diet"),
    row(rf"{_BE}{_ADVERBS}allergic to (?!the\b){_SHORT}", "allergy", is_list=True),
    # work and school
    row(rf"(?:{_ADVERBS}works?|{_BE}{_ADVERBS}working) as (?:an? |the )?{_SHORT}", "job"),
    row(
        rf"(?:{_ADVERBS}works?|{_BE}{_ADVERBS}working) (?:full-time |part-time |remotely )?(?:at"
        rf"|for)"
        rf" (?!home\b|it\b|night|least|a living|the (?:moment|same)|my ){_PLACE}",
        "employer",
    ),
    row(
        rf"{_BE}{_ADVERBS}an? {_NO_WORK}(?P<v>{_WORK})(?=[.!,;]|\s(?:at|in|for|from|by|and|who"
        rf"|with|but|of|now)\b|$)",
        "job",
    ),
    row(
        rf"{_BE}{_ADVERBS}an? (?!(?:bit|little|fan|lot|big|huge|member|regular|guest|good"
        rf"|great)\b)(?P<v>[\w' -]{{2,40}}?) (?:at|for)"
        r" (?:an? |the |my )?(?!(?:moment|least|home|same|while|week|few|long|start|time)\b)\w",
        "job",
    ),
    # tastes
    row(
        rf"(?:{_ADVERBS}(?:hates?|dislikes?|can't stand|cannot stand|detests?|loathes?)"
        rf"|{_NOT}(?:likes?|enjoy|care for"
        rf"|love)(?: to)?) {_NOTHING}{_SHORT}",
        "likes",
        polarity=-1,
        is_list=True,
    ),
    row(
        rf"(?:{_ADVERBS}never|{_NOT.rstrip()})\s?(?:eat|drink)s? (?!much|enough|it|that|well"
        rf"|out){_SHORT}",
        "eats",
        polarity=-1,
        is_list=True,
    ),
    row(
        rf"{_ADVERBS}(?:likes?|loves?|enjoys?|adores?) (?:to )?{_NOTHING}{_SHORT}",
        "likes",
        is_list=True,
    ),
    row(
        rf"{_BE}{_ADVERBS}(?:an? )?(?:(?:big|huge|avid|great|massive)\s)*(?:into|fond of|fan of"
        rf"|passionate about|keen on"
        rf"|mad about|obsessed with|crazy about) {_NOTHING}{_SHORT}",
        "likes",
        is_list=True,
    ),
    # animals, people, things, languages
    row(
        rf"(?:{_HAVE}|{_ADVERBS}{_DONE}(?:adopted|rescued) )(?P<v>(?:{_NUMBER}"
        rf"|this)\s(?:[\w'-]+\s){{0,3}}?"
        rf"{ANIMALS}\b[^\n.!;]*?){_STOP}",
        "pets",
    ),
)
