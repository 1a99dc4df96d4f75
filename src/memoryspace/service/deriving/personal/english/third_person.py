"""English in the third person: "I live with my cat" becomes "Ann lives with their cat".

A clause that the rules cannot convert safely stays as it was said, with the name before it.
"""

from __future__ import annotations

import re

from ...language import word_set

_SHORT = {"'m": "is", "'ve": "has", "'ll": "will", "'d": "would"}
_HELPING = {"am": "is", "have": "has", "do": "does", "don't": "doesn't", "haven't": "hasn't"}
_UNCHANGED = word_set("""
    was had did will would can could should must may cannot can't won't wasn't didn't couldn't
    went got bought met saw took made found ate drank read ran won lost left quit gave began
    came became grew wrote taught thought felt told said sold spent broke built caught chose
    drove fell flew forgot heard held kept knew led moved paid rode sang sat slept spoke swam
    threw woke wore used put hit cut set let
""")
_PRESENT = word_set("""
    live work like love enjoy prefer hate dislike want need own speak play study teach drive
    plan hope intend come go eat drink cook sleep wake run walk swim adore collect write watch
    listen practise practice suffer attend reside travel volunteer detest loathe avoid wear use
    keep raise manage lead learn train exercise meditate paint draw sing dance garden knit bake
    ride visit
""")
_ADVERB = re.compile(
    r"(?:really|quite|also|still|just|now|currently|actually|absolutely|always|usually|often"
    r"|especially|"
    r"never|recently|finally|only|simply|totally|already|mostly|definitely|truly|both|sometimes|"
    r"mainly|no longer|particularly|rarely|normally|generally|even|once|\w+ly)\s+",
    re.IGNORECASE,
)
_FIRST = re.compile(r"I(?P<short>'m|'ve|'ll|'d)?\s+", re.IGNORECASE)
_REST = (
    (re.compile(r"\bI'm\b"), "they're"),
    (re.compile(r"\bI am\b"), "they are"),
    (re.compile(r"\bI was\b"), "they were"),
    (re.compile(r"\bI've\b"), "they've"),
    (re.compile(r"\bI('ll|'d)\b"), r"they\1"),
    (re.compile(r"\bI\b"), "they"),
    (re.compile(r"\bmyself\b"), "themselves"),
    (re.compile(r"\bmy\b"), "their"),
    (re.compile(r"\bmine\b"), "theirs"),
    (re.compile(r"\bme\b"), "them"),
)
_UNSURE = re.compile(r"\b(?:you|your|yours|we|our|us)\b", re.IGNORECASE)


def in_third_person(clause: str, who: str) -> str:
    """Return a clause in the third person, about ``who``."""
    sentence = clause.strip(" ,;:-").rstrip(".!") + "."
    if _UNSURE.search(sentence) is None:
        turned = _turned(sentence, who)
        if turned is not None:
            return turned
    return f"{who}: {sentence[0].upper()}{sentence[1:]}"


def _turned(sentence: str, who: str) -> str | None:
    if sentence[:3].lower() == "my ":
        return f"{who}'s {_others(sentence[3:])}"
    first = _FIRST.match(sentence)
    if first is None:
        return None
    rest = sentence[first.end() :]
    if first["short"] is not None:
        return f"{who} {_SHORT[first['short'].lower()]} {_others(rest)}"
    adverbs = 0
    while (match := _ADVERB.match(rest, adverbs)) is not None:
        adverbs = match.end()
    verb, _, after = rest[adverbs:].partition(" ")
    said = _conjugated(verb.rstrip("."))
    if said is None:
        return None
    return f"{who} {rest[:adverbs]}{said}{' ' if after else '.'}{_others(after)}"


def _conjugated(verb: str) -> str | None:
    word = verb.lower()
    if word in _HELPING:
        return _HELPING[word]
    if word in _UNCHANGED or word.endswith("ed"):
        return verb
    if word not in _PRESENT:
        return None
    if word.endswith(("s", "sh", "ch", "x", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if word.endswith(("dy", "ry", "ty", "ly")) else f"{verb}s"


def _others(rest: str) -> str:
    for pattern, word in _REST:
        rest = pattern.sub(word, rest)
    return rest
