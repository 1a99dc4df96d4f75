"""Traits of a text: whether it is only a question, an instruction, a preference, tells a time, etc.

Traits are computed once, when an entry is added, and stored as the bits of one number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..entries import Entry

BY_USER = 1
TELLS = 2  # more than a question
INSTRUCTS = 4  # a standing instruction of the user
PREFERS = 8  # the user says what they like, chose, or avoid
TELLS_TIME = 16
TELLS_NUMBER = 32

LENGTH_ENOUGH = 30  # words from which a text is not short

_READ = 4000  # characters that are searched for traits

_FIRST_PERSON = re.compile(r"\b(?:i|my|me|mine|i['’](?:m|ve|d)|myself)\b|我|咱|俺")
_INSTRUCTS = re.compile(
    r"(?:^|[.!?\n]\s*)(?:please )?(?:"
    r"always\b(?! (?:a|the|been|wanted|loved|had|thought)\b)|"
    r"never\b(?! (?:mind|been|had|heard|thought|knew|again|tried|seen|saw)\b)|"
    r"from now on\b|whenever (?!you)|make sure to\b|remember to\b|don['’]t ever\b)|"
    r"\bwhen(?:ever)? i ask\b|以后都?要|从现在起|从今以后|每次都?要|不要再|务必"
)
_PREFERS = re.compile(
    r"\bi(?:['’]d| would)? (?:really |always |usually |also )?(?:prefer|rather|like to|love|enjoy|"
    r"hate|dislike|avoid|want to keep)\b|\bmy (?:favou?rite|preference)\b|"
    r"\bi(?:['’]ve)? (?:chose|chosen|decided)\b|"
    "我(?:更|最|很|不|非常|特别|还是)*(?:喜欢|爱|讨厌|偏好|习惯)|我(?:决定|选择?)"
)
_SOME_DAY = re.compile(r"\wday\b")  # yesterday, Friday, birthday
_TIME_WORD = re.compile(
    r"\b(?:tonight|tomorrow|(?:last|next|this) (?:night|morning|week|weekend|month|year|summer|"
    r"winter|spring|fall|autumn)|since \w+|recently|just|january|february|march|april|may|june|"
    r"july|august|september|october|november|december|(?:19|20)\d\d)\b"
)
_AGO = re.compile(r"\w (?:days?|weeks?|months?|years?) (?:ago|back)\b")
_TIME_IN_CHINESE = re.compile(
    "昨|今[天晚早年]|明[天年]|[前后]天|[上下这]个?(?:周|月|星期)|去年|[年月日号]|周[一二三四五六日天末]|最近|刚"
)
_TELLS_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|once|twice|dozen|couple)\b|"
    "[一二两三四五六七八九十百千万几]+[个次天年月岁块元只本件位]"
)
# A pattern matches only texts that contain one of its signs; looking for these is ten times faster.
_INSTRUCTS_SIGNS = (
    "always",
    "never",
    "now on",
    "whenever",
    "sure to",
    "remember to",
    "t ever",
    "when i ask",
    "以后",
    "从现在起",
    "从今以后",
    "每次",
    "不要再",
    "务必",
)
_PREFERS_SIGNS = (
    "prefer",
    "rather",
    "like to",
    "love",
    "enjoy",
    "hate",
    "dislike",
    "avoid",
    "want to keep",
    "favo",
    "chose",
    "decided",
    "我",
)
_CAPTION = re.compile(r"\s*\[[^\]]*\]\s*$")
_WORDS = re.compile(r"[^\W_]+")
_IDEOGRAPH = re.compile(r"[぀-ヿ㐀-鿿가-힣]")


def traits_of(entry: Entry) -> int:
    """Return the traits of an entry as bits."""
    text = entry.text[:_READ].lower()
    found = TELLS if not _only_asks(entry.text) or _FIRST_PERSON.search(text) else 0
    if entry.role == "user":
        found |= BY_USER | (INSTRUCTS if _finds(_INSTRUCTS, _INSTRUCTS_SIGNS, text) else 0)
        found |= PREFERS if _finds(_PREFERS, _PREFERS_SIGNS, text) else 0
    found |= TELLS_TIME if _tells_time(text) else 0
    return found | (TELLS_NUMBER if _TELLS_NUMBER.search(text) else 0)


def fullness_of(text: str) -> float:
    """Return the length of a text in words, from 0 to 1 at 30; two ideographs count as a word."""
    start = text[: 20 * LENGTH_ENOUGH]
    ideographs = 0 if start.isascii() else len(_IDEOGRAPH.findall(start))
    spaced = _IDEOGRAPH.sub(" ", start) if ideographs else start
    words = len(_WORDS.findall(spaced)) + ideographs / 2
    return min(1.0, words / LENGTH_ENOUGH)


def _tells_time(text: str) -> bool:
    """Return whether a text mentions a time; a single pattern would take twice as long."""
    return (
        _finds(_SOME_DAY, ("day",), text)
        or _TIME_WORD.search(text) is not None
        or _finds(_AGO, (" ago", " back"), text)
        or (not text.isascii() and _TIME_IN_CHINESE.search(text) is not None)
    )


def _finds(pattern: re.Pattern[str], signs: Sequence[str], text: str) -> bool:
    return any(sign in text for sign in signs) and pattern.search(text) is not None


def _only_asks(text: str) -> bool:
    """Return whether a text ends with a question, ignoring a picture's caption in brackets."""
    return _CAPTION.sub("", text[-400:]).rstrip().endswith(("?", "？"))
