"""Secrets identified by a word beside them: "the pin is …", "… is my password".

A value follows its name and a link ("is", ":", 是), perhaps with a few words between that say what
it is for. Or it follows after a comma, later in the same sentence. Or it precedes its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .chinese import in_chinese
from .formats import PASSWORD, Span
from .names import NAMES, TOKEN, Names
from .values import SET_APART, Value, is_password

_MOST_WORDS = 8  # words of purpose between a name and its link
_FURTHEST = 80  # characters between a name and a value after a comma
_BEFORE = 200  # characters before a name that are searched for its value
_AFTER = 24  # characters behind a value that are read

Place = tuple[int, str, str]  # the possible position of a value, its link, its opening quote

_LINK = re.compile(
    r"""(?: ["'”]?\s{0,3}(?P<sign>[:：=]|->|=>|→)\s{0,3}
        | (?:['’]s | \s+(?:is|was|will\ be|should\ be|has\ been|got|i)) (?:\s+(?:re)?set\ to)?
          (?:\s+(?:now|still|just|currently|always|probably|actually|literally|also|simply))?
          (?:\s+changed\ to)? (?:\s{0,3}[:：]\s{0,3}|\s+)
        | \s*(?:就?是|为)\s*[:：]?\s* | (?P<nothing>\s{1,3}) )
        (?P<quote>["'“‘`«「『]?)""",
    re.VERBOSE | re.IGNORECASE,
)
_TO = re.compile(r"\s+(?:again\s+)?to\s+(?P<quote>[\"'“‘`]?)", re.IGNORECASE)
_CHANGED = re.compile(
    r"\b(?:re)?(?:set|chang\w{1,3}|updat\w{1,3}|mak\w{1,3}|made)\b[^.!?\n]{0,30}$", re.IGNORECASE
)
_PURPOSE = re.compile(
    r"\s+(?:for|of|to|at|on|in|from|into|i|we|you|he|she|they|that|which|my|our|here|there|now|again"
    r"|currently|btw|atm|rn)\b",
    re.IGNORECASE,
)
_NEXT_WORD = re.compile(r"\s+[\w'’&@./•-]{1,30}")
_APART = re.compile(
    r"(?:[,:;(–—]|\s-|\b(?:it['’]?s|is|was|reads|says)(?:\s+now)?)\s{1,3}(?P<quote>[\"'“‘`]?)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。！？](?:\s|$)|\n")
_QUOTED = {
    opening: re.compile(rf"[^{closing}\n•]{{3,100}}(?={closing})")
    for opening, closing in zip("\"'“‘`«「『", "\"'”’`»」』", strict=True)
}

_OWNED = re.compile(
    r"\s+(?:is|was|as|for)\s+(?:my|the|our|your|his|her|their|a)\s+"
    r"(?:(?:wi-?fi|bank|door|router|login|laptop|phone|email|account|card|gate|alarm|new)\s+){0,3}"
    r"(?:pass\s?word|pass\s?code|pwd|pw|pin|code)(?![A-Za-z0-9_])",
    re.IGNORECASE,
)
_LAST_TOKEN = re.compile(rf"(?<![A-Za-z0-9]){TOKEN}$")


def by_cue(text: str) -> Iterator[Span]:
    """Yield the secrets identified by a word beside them."""
    lowered = text.lower()
    for names in NAMES:
        if any(stem in lowered for stem in names.stems):
            for name in names.pattern.finditer(text):
                yield from _first_fitting(names, text, name)
    yield from _values_before(text)
    if not text.isascii():
        yield from in_chinese(text)


def _first_fitting(names: Names, text: str, name: re.Match[str]) -> Iterator[Span]:
    """Yield the value of a name, if there is one."""
    for at, link, quote in _places(text, name):
        match = (_QUOTED[quote] if quote else names.value).match(text, at)
        if match is None:
            continue
        shown = match[0] if quote else _trimmed(match[0])
        end = at + len(shown)
        after = text[end : end + _AFTER]
        if names.fits(Value(shown, link, is_quoted=bool(quote), after=after)):
            yield names.kind, at, end
            return


def _places(text: str, name: re.Match[str]) -> Iterator[Place]:
    """Yield the possible positions of a name's value, most likely first."""
    link = _LINK.match(text, name.end())
    if link is not None:
        yield _place(link)
    link = _TO.match(text, name.end())
    if link is not None and _CHANGED.search(text[max(0, name.start() - 40) : name.start()]):
        yield link.end(), "is", link["quote"]
    yield from _after_purpose(text, name.end())
    yield from _set_apart(text, name.end())


def _after_purpose(text: str, at: int) -> Iterator[Place]:
    """Yield the positions after words of purpose: "for the joint account is"."""
    if _PURPOSE.match(text, at) is None:
        return
    for _ in range(_MOST_WORDS):
        word = _NEXT_WORD.match(text, at)
        if word is None:
            return
        at = word.end()
        link = _LINK.match(text, at)
        if link is not None and link["nothing"] is None:
            yield _place(link)


def _set_apart(text: str, at: int) -> Iterator[Place]:
    """Yield the positions after a comma: "my pin, i keep forgetting it, …"."""
    end = _SENTENCE_END.search(text, at, at + _FURTHEST)
    for link in _APART.finditer(text, at, at + _FURTHEST if end is None else end.start()):
        yield link.end(), SET_APART, link["quote"]


def _place(link: re.Match[str]) -> Place:
    if link["nothing"] is not None:
        return link.end(), "", link["quote"]
    sign: str | None = link["sign"]
    return link.end(), "is" if sign is None else sign.replace("：", ":"), link["quote"]


def _trimmed(value: str) -> str:
    """Return a value without trailing punctuation and mark-up."""
    while value and (value[-1] in ".:?*_" or (value[-1] in ")]}" and not {*"([{"} & {*value})):
        value = value[:-1]
    return value


def _values_before(text: str) -> Iterator[Span]:
    """Yield the values that precede their names."""
    for name in _OWNED.finditer(text):
        before = _LAST_TOKEN.search(text, max(0, name.start() - _BEFORE), name.start())
        if before is None or not any(map(str.isdigit, before[0])):
            continue
        if is_password(Value(before[0], "is")):
            yield PASSWORD, *before.span()
