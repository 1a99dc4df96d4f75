"""``suspicion``: detects text that gives instructions to a model.

Stored text returns into a prompt, where a model might obey it. Such text is better not recalled
before a person has reviewed it. Detection is heuristic. It knows the usual wordings in English and
Chinese, and sees through look-alike letters, digits for letters, invisible characters, spelled-out
words and base64. Ordinary talk about instructions, prompts and such attacks passes. Of wordings it
was not written for it finds about half, so memories are also quoted as data. The running time is
linear.
"""

from __future__ import annotations

import re

from msgspec import Struct

from . import chinese, english, markers
from .hidden import decoded_parts, hidden_in
from .reading import normalized
from .rules import Rule

_RULES = (*markers.MARKERS, *english.RULES, *chinese.RULES)
_STEMS = tuple(dict.fromkeys(stem for rule in _RULES for stem in rule.stems))  # each once
_MAX_EXCUSES = 20  # harmless matches of one rule in one text; more of them are suspicious

_SQUEEZED = re.compile(
    r"(?:ignore|disregard|forget)(?:all|the|any|your|of){0,4}(?:previous|prior|above|earlier|your)"
    r"(?:system)?(?:instructions?|prompts?|rules)|(?:reveal|print|show)your(?:system)?prompt"
)

_OPENING, _CLOSING = "\"'`«「『}", "\"'`»」』{%"  # braces: a template variable
_TALK_ABOUT = re.compile(
    r"\b(?:injections?|jailbreaks?|attack(?:s|ers?)?|phrases?|detect\w{0,3}|patterns?|regex|filters?"
    r"|strings?|assert|tests?|examples?|such as|like|sentence|words?|titled|called|means|if|in"
    r"|malicious|hackers?|tricks?|says?|said|saying)\b|注入|攻击|越狱|例如|比如|这句话|这样的|检测|所谓"
)
_REPORTED = re.compile(
    r"(?:\b(?:i|we|he|she|they|who|people|students|kids|children|users?|employees|drivers|players"
    r"|attackers?|models?|it|someone|everyone|nobody)(?:'d|'ll)?"
    r"(?: (?:always|often|just|sometimes|usually|never|tend to|tends to|tried to|try to|decided to"
    r"|want to|wanted to|would|can|could|might|will|may|did|do|not|had to|chose to|used to)){0,2}"
    r"|\b(?:told|asked|tells|asks|convinced|allowed|made|forced)"
    r" (?:me|him|her|us|them|the \w{2,12})(?: not)? to"
    r"|\b(?:don't|didn't|can't|cannot|never|not) (?:just )?"
    r"|\b(?:how|why|whether|tempting|easy|dangerous|wrong|risky|unwise|best not|attempts?) to"
    r"|(?:^|[^对给让])(?:我|他|她|孩子|司机|学生|员工|有人|大家|玩家|怎么|如何)们?"
    r"(?:总是|经常|有时|不小心|常常|居然|竟然|却|会|都|也|老是)?) ?$"
)


class Suspicion(Struct, frozen=True):
    """The reason why a text is not trusted: the name of the rule, and the position in the text."""

    pattern: str
    start: int


def suspicion(text: str, *, role: str | None = None) -> Suspicion | None:
    """Return the first instruction to a model found in a text.

    Args:
        text: The text to check.
        role: The role of the speaker. Some rules do not apply to a system prompt.

    Returns:
        The rule that matched and its position, or ``None`` for ordinary text.

    Examples:
        >>> suspicion("I live in Rome") is None
        True
    """
    hidden = None if text.isascii() and "<" not in text else hidden_in(text)
    if hidden is not None:
        return Suspicion(*hidden)
    cleaned = normalized(text)
    found = _order_in(cleaned, role)
    if found is not None:
        return Suspicion(found[0], _original_position(text, found[1]))
    for plain, start in decoded_parts(text):
        plain = normalized(plain)
        if _SQUEEZED.search(plain) or _order_in(plain, role) is not None:
            return Suspicion("encoded orders", start)
    return None


def _order_in(text: str, role: str | None) -> tuple[str, int] | None:
    stems = {stem for stem in _STEMS if stem in text}
    if not stems:
        return None
    for rule in _RULES:
        if role not in rule.not_from and not stems.isdisjoint(rule.stems):
            for number, match in enumerate(rule.pattern.finditer(text)):
                start, end = match.span()
                if number >= _MAX_EXCUSES or not _is_harmless(rule, text, start, end):
                    return rule.name, start
    return None


def _is_harmless(rule: Rule, text: str, start: int, end: int) -> bool:
    """Return whether a match is only quoted, in talk about such words, or reported."""
    before = text[max(0, start - 60) : start].replace("\n", " ")
    quoted = before.endswith(tuple(_OPENING)) and any(
        sign in text[end : end + 12] for sign in _CLOSING
    )
    if quoted and (not rule.is_talk or _TALK_ABOUT.search(before + text[end : end + 60])):
        return True
    return rule.is_talk and _REPORTED.search(before) is not None


def _original_position(text: str, cleaned_start: int) -> int:
    """Return the position in a text of a position in its normalized form."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        if len(normalized(text[:middle])) <= cleaned_start:
            low = middle + 1
        else:
            high = middle
    return max(0, low - 1)
