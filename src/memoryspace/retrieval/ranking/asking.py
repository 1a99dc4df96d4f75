"""Question parsing: whom a question names, whether it asks when or how many, for advice, and so on.

Each part is a small pure function of the text, in English and Chinese. The result depends on the
text alone, not on where the question comes from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import lru_cache

from msgspec import Struct

from ..times import TimeSpan, times_in
from .overview import topic_of, wants_overview

_OF_ONESELF = re.compile(r"\b(?:i|my|me|mine|i['’](?:m|ve|d|ll)|myself)\b|我|咱|俺")
_ADVICE = re.compile(
    r"\b(?:recommend\w*|suggest\w*|advice|tips?|ideas?|help me|how (?:should|can|do|could) i|"
    r"should i|what (?:would|should)|can you|could you|which)\b|建议|推荐|怎么办|该怎么|应该|帮我"
)
_SUMMARY = re.compile(r"\b(?:summar\w+|overview|recap)\b|总结|概括|概述|综述|回顾")
_OF_ASSISTANT = re.compile(
    r"\b(?:did|have|had) you\b|"
    r"\byou(?:['’]ve| have)? (?:recommended|suggested|said|told|gave|given|provided|mentioned|"
    r"helped|listed|explained|advised|proposed)\b|"
    r"\byour (?:advice|suggestions?|recommendations?|answer|explanation)\b|"
    r"\b(?:our|my) (?:previous|last|earlier|past) (?:chat|conversation|discussion|session)|"
    r"\bremind me\b|"
    "[你您](?:之前|上次|曾经?|刚才)?(?:说|建议|推荐|提到|告诉|给|解释|列)|[你您]的(?:建议|回答|解释)"
)
_WHEN = re.compile(
    r"\bwhen\b|\bwhat (?:date|day|year|month|time)\b|\bhow long\b|"
    r"\bhow many (?:days|weeks|months|years)\b|"
    "什么时候|何时|哪一?[年月天日]|几[月号点]|多久|多长时间"
)
_NUMBER = re.compile(r"\bhow (?:many|much|often|old)\b|\bnumber of\b|多少|几[个次岁本位只]|第几")

# Phrases about the conversation or the form of the answer; they say nothing about its topic.
_TALK = re.compile(
    r"\b(?:can|could|would) you (?:please )?(?:tell me|list|walk me through|give me|provide|"
    r"remind me|recommend|suggest|show me|help me|summarize|explain)?\b|\bplease\b|"
    r"\b(?:mention|name|list|give)(?: me)? only \w+ (?:items?|things?|points?)\b\.?|\bin order\b|"
    r"\b(?:across|throughout|during|in|over) (?:all )?(?:our|my) (?:previous |past )?"
    r"(?:conversations?|chats?|sessions?|discussions?|requests?|questions?)\b|"
    r"\b(?:brought up|the order in which|comprehensive summary|summary)\b|"
    "请问?|麻烦[你您]?|能不能|可以告诉我|告诉我|你(?:还)?记得",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:order|mention|item|list|aspect|different|conversation|session|discuss|talk|thing)"
    r"(?:s|ed|ing|ion|ions)?\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"([^\"]{2,200})\"|“([^”]{2,200})”|「([^」]{2,200})」|『([^』]{2,200})』")
_BORDERLESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]")
_SOMETHING = re.compile(r"\w\w|[^\W\da-zA-Z_]")


_MOST_TIMES = 16  # periods of a question that are used


class ParsedQuestion(Struct, frozen=True):
    """A parsed question.

    ``focus`` is the text without speakers' names and phrases about the conversation; ``keywords``
    is the part of it that is looked up by words.
    """

    text: str
    focus: str
    keywords: str
    speakers: frozenset[str] = frozenset()  # the speakers it names, unless it names all of them
    of_user: bool = False  # it is about what the user said: "where did I park"
    wants_advice: bool = False
    wants_overview: bool = False  # an order or a summary, which several entries answer together
    asks_when: bool = False
    asks_number: bool = False
    times: tuple[TimeSpan, ...] = ()
    phrases: tuple[str, ...] = ()  # in quotes: to be found word for word


def ask(text: str, now: datetime, speakers: Collection[str]) -> ParsedQuestion:
    """Parse a question; ``speakers`` are all known speakers."""
    lowered, names = text.lower(), named(text, speakers)
    wants_all = wants_overview(text)
    focus = focus_of(topic_of(text) if wants_all else text, names)
    weaker = " ".join(_WEAK.sub(" ", focus).split())
    is_theirs = _OF_ONESELF.search(lowered) is not None
    return ParsedQuestion(
        text,
        focus,
        keywords=weaker if _SOMETHING.search(weaker) else focus,
        speakers=names if len(names) < len(speakers) else frozenset(),
        of_user=is_theirs and not (_OF_ASSISTANT.search(lowered) or _SUMMARY.search(lowered)),
        wants_advice=_ADVICE.search(lowered) is not None,
        wants_overview=wants_all,
        asks_when=_WHEN.search(lowered) is not None,
        asks_number=_NUMBER.search(lowered) is not None,
        times=_distinct(times_in(text, now)),
        phrases=quoted(text),
    )


def _distinct(times: Iterable[TimeSpan]) -> tuple[TimeSpan, ...]:
    """Return the distinct periods, up to a limit."""
    return tuple({(each.start, each.end): each for each in times}.values())[:_MOST_TIMES]


def named(text: str, names: Collection[str]) -> frozenset[str]:
    """Return the names that occur in a text as whole words, in any case."""
    folded = text.casefold()
    return frozenset(
        name
        for name in names
        if (bare := name.strip()) and bare.casefold() in folded and _whole(bare).search(text)
    )


def quoted(text: str) -> tuple[str, ...]:
    """Return the phrases in quotation marks."""
    found = ("".join(groups).strip() for groups in _QUOTED.findall(text))
    return tuple(each for each in found if each)


def focus_of(text: str, names: Collection[str]) -> str:
    """Return a question without these names and phrases about the conversation, unless empty."""
    focus = text
    for name in sorted(names, key=lambda each: (-len(each), each)):  # "Ann Lee" before "Ann"
        focus = _whole(name.strip()).sub(" ", focus)
    focus = " ".join(_TALK.sub(" ", focus).split())
    return focus if _SOMETHING.search(focus) else text


@lru_cache(1000)
def _whole(name: str) -> re.Pattern[str]:
    """Return a pattern for a name as a whole word; anywhere in scripts without word borders."""
    words = re.escape(name)
    if _BORDERLESS.search(name):
        return re.compile(words)
    return re.compile(rf"(?<!\w){words}(?:['’]s)?(?!\w)", re.IGNORECASE)
