"""Shared content words: whether two facts are about the same thing, by a name or a word."""

from __future__ import annotations

import re
from functools import lru_cache

from ..language import word_set
from ..similarity import value_words

# Words that say little about the topic of a fact.
_COMMON = word_set("""
    user asks day week month year time new one two thing work job home hous live get got go
    went come make made take took start stop quit eat drink now still back last next first
    move chang good bad feel want like love hate morn night everi today never alway realli
    lot littl name call old big end left monday tuesday wednesday thursday friday saturday
    sunday am pm oh btw lol also anymor ago bit januari februari march april may june juli
    august septemb octob novemb decemb jan feb mar apr jun jul aug sept oct nov dec stay
    keep whole final use read run up down actual think peopl tell told ask need give find
    know
""")
_HAN = re.compile("[\u4e00-\u9fff]+")
_DAYS = re.compile(r"[(（]\d{4}-\d\d-\d\d[^)）]*[)）]")  # dates appended on extraction
_WHEN = re.compile(
    r"\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\b|(?:周|星期|礼拜)[一二三四五六日天]", re.IGNORECASE
)
_ADDS = re.compile(r"\b(?:also|too|as well|another|plus|second)\b|[也还又]|另外", re.IGNORECASE)
_LITTLE = frozenset(
    "用户的了我是在有不没也都就还这那一二三四五六七八九十两个上下大小去来到说要会能好很太又和跟给把被从"
    "对每天周月年日号早晚点时候现在今明后前里外多少几只条做吃喝人家他她它们你您吧呢啊呀哦哈啦吗么得着过"
    "开始最近以改换调转停再用想喜欢爱星期礼拜半午间岁叫什么可以因为所以但而且如果然后其实已经刚才一下"
)


def shares_a_word(one: str, other: str, *, besides: str = "") -> bool:
    """Return whether two texts share a content word: a name, a thing, two Chinese characters.

    Words of ``besides`` do not count, such as the name of the person both are about.
    """
    shared = _telling(one) & _telling(other)
    return bool(shared - _telling(besides)) if besides else bool(shared)


def shares_a_matter(one: str, other: str, *, besides: str = "") -> bool:
    """Return the same for two texts on one matter, where a single character is enough."""
    shared = _characters(one) & _characters(other)
    return shares_a_word(one, other, besides=besides) or bool(shared - _characters(besides))


def is_other_time(one: str, other: str) -> bool:
    """Return whether two texts name different weekdays and the later one adds nothing."""
    before, after = _schedule(one), _schedule(other)
    return bool(before and after) and before.isdisjoint(after) and _ADDS.search(other) is None


def tells_days(text: str) -> bool:
    """Return whether a text names days of the week."""
    return bool(_schedule(text))


@lru_cache(maxsize=4096)
def _schedule(text: str) -> frozenset[str]:
    return frozenset(found.group().lower()[:3] for found in _WHEN.finditer(_DAYS.sub(" ", text)))


@lru_cache(maxsize=4096)
def _telling(text: str) -> frozenset[str]:
    said = _DAYS.sub(" ", text)
    found = value_words(_HAN.sub(" ", said))
    words = {word for word in found if len(word) > 2 and not word.isdigit()} - _COMMON
    for run in _HAN.findall(said):
        pairs = {run[at : at + 2] for at in range(len(run) - 1)}
        words |= {pair for pair in pairs if not set(pair) & _LITTLE}
    return frozenset(words)


@lru_cache(maxsize=4096)
def _characters(text: str) -> frozenset[str]:
    return frozenset("".join(_HAN.findall(text))) - _LITTLE
