"""The writing systems of a text, so that a model only ranks texts in scripts it has learnt."""

from __future__ import annotations

import re
from collections.abc import Set

LATIN = frozenset({"latin"})

# Letters only: digits and punctuation belong to every script.
_LETTERS = {
    "latin": "A-Za-zªºÀ-ÖØ-öø-ɏḀ-ỿＡ-Ｚａ-ｚ",
    "greek": "Ͱ-ͽͿ-Ͽἀ-῾",
    "cyrillic": "Ѐ-ԯᲀ-ᲈ",
    "armenian": "Ա-֏",
    "hebrew": "א-ת",
    "arabic": "ؠ-يٮ-ۓۺ-ۿݐ-ݿࢠ-ࣿﭐ-﷿ﹰ-ﻼ",
    "devanagari": "ऄ-ॡॱ-ॿ",
    "bengali": "অ-ৡ",
    "tamil": "அ-ௐ",
    "thai": "ก-๎",
    "georgian": "Ⴀ-ჿ",
    "ethiopic": "ሀ-ፚ",
    "hangul": "ᄀ-ᇿㄱ-ㆎ가-힣",
    "kana": "ぁ-ゟァ-ヿｦ-ﾝ",
    "han": "㐀-䶿一-鿿豈-﫿𠀀-𯨟𰀀-𲎯々",
}
_SCRIPT = re.compile("|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _LETTERS.items()))
_OTHER = re.compile(r"[^\W\d_]")
_ASCII_LETTER = re.compile("[A-Za-z]")


def script_shares(text: str) -> dict[str, float]:
    """Return the share of each script in a text's letters, the most used first.

    A text without letters has none; letters of unknown scripts count as ``other``.

    Examples:
        >>> script_shares("loam 壤土")
        {'latin': 0.6666666666666666, 'han': 0.3333333333333333}
    """
    if text.isascii():
        return {"latin": 1.0} if _ASCII_LETTER.search(text) else {}
    counts: dict[str, int] = {}
    for found in _SCRIPT.finditer(text):
        name = str(found.lastgroup)
        counts[name] = counts.get(name, 0) + len(found.group())
    other = len(_OTHER.findall(_SCRIPT.sub("", text)))
    if other:
        counts["other"] = other
    total = sum(counts.values())
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    return {name: count / total for name, count in ranked}


def scripts_of(text: str) -> frozenset[str]:
    """Return the scripts in which a text has letters."""
    return frozenset(script_shares(text))


def dominant_script(text: str) -> str | None:
    """Return the script of most letters in a text, or None without letters."""
    return next(iter(script_shares(text)), None)


def can_rank(scripts: Set[str] | None, text: str) -> bool:
    """Return whether a model of these scripts (None: all) can rank a text.

    It can if most of the text is in these scripts, or in no script at all, like a number. A Chinese
    character carries more meaning than a Latin letter, so half of each is not enough for an English
    model.
    """
    if scripts is None:
        return True
    weights = {
        name: share * (_DENSE_WEIGHT if name in _DENSE else 1.0)
        for name, share in script_shares(text).items()
    }
    if not weights:
        return any(character.isdigit() for character in text)
    ours = sum(weight for name, weight in weights.items() if name in scripts)
    return ours > sum(weights.values()) - ours


_DENSE = frozenset({"han", "kana", "hangul"})
_DENSE_WEIGHT = 3.0  # Latin letters with as much meaning as one of these
